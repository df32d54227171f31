// The memory of a program with a runtime, as that one's readers want it: numbers at addresses, and
// what does not change while a look lasts out of pages that are read once.
#ifndef HANGSCOPE_RUNTIME_RUNTIME_MEMORY_H
#define HANGSCOPE_RUNTIME_RUNTIME_MEMORY_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proc/process_memory.h"

namespace hangscope {

class RuntimeMemory {
 public:
  explicit RuntimeMemory(ReadMemory read) : read_(std::move(read)) {}

  // 0 where it cannot be read. What is there now:
  template <typename Number>
  Number Now(uint64_t address) const {
    Number number = {};
    return read_(address, &number, sizeof number) ? number : Number{};
  }
  // What was there when its page was read first: classes, methods, code.
  template <typename Number>
  Number Kept(uint64_t address) {
    Number number = {};
    return KeptInto(address, &number, sizeof number) ? number : Number{};
  }
  bool KeptInto(uint64_t address, void* into, size_t bytes) {
    auto* out = static_cast<char*>(into);
    while (bytes > 0) {
      const uint64_t begin = address / kPage * kPage;
      const size_t at = static_cast<size_t>(address - begin);
      const size_t part = std::min(bytes, kPage - at);
      const Page* const page = PageAt(begin);
      if (page == nullptr) return read_(address, out, bytes);
      std::memcpy(out, page->data() + at, part);
      address += part;
      out += part;
      bytes -= part;
    }
    return true;
  }
  // Up to its first zero.
  std::string KeptText(uint64_t address, size_t most) {
    std::string text;
    for (char c = 0; text.size() < most && KeptInto(address + text.size(), &c, 1) && c != 0;)
      text += c;
    return text;
  }
  bool ReadInto(uint64_t address, void* into, size_t bytes) const {
    return read_(address, into, bytes);
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kMostPages = 16384;
  using Page = std::array<char, kPage>;

  // Null: not all of it can be read.
  const Page* PageAt(uint64_t begin) {
    const auto known = pages_.find(begin);
    if (known != pages_.end()) return known->second.get();
    if (pages_.size() == kMostPages) return nullptr;
    auto page = std::make_unique<Page>();
    if (!read_(begin, page->data(), kPage)) page.reset();
    return (pages_[begin] = std::move(page)).get();
  }

  ReadMemory read_;
  std::map<uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace hangscope

#endif

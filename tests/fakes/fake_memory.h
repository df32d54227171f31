// The memory of a process, written down piece by piece, from one address on.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_MEMORY_H
#define HANGSCOPE_TESTS_FAKES_FAKE_MEMORY_H

#include <cstdint>
#include <cstring>
#include <string>

namespace hangscope {

class FakeMemory {
 public:
  explicit FakeMemory(uint64_t begin) : begin_(begin) {}

  // Of zeros, where nothing else is.
  uint64_t Block(size_t bytes) {
    const uint64_t at = begin_ + image_.size();
    image_.resize(image_.size() + (bytes + 15) / 16 * 16);
    return at;
  }
  template <typename Number>
  void Put(uint64_t at, Number number) {
    std::memcpy(image_.data() + (at - begin_), &number, sizeof number);
  }
  template <typename Number>
  Number Get(uint64_t at) const {
    Number number = {};
    std::memcpy(&number, image_.data() + (at - begin_), sizeof number);
    return number;
  }
  void PutText(uint64_t at, const std::string& text) {
    image_.replace(at - begin_, text.size(), text);
  }
  // Of the process, while it is as large as this.
  bool Read(uint64_t address, void* into, size_t bytes) const {
    const uint64_t at = address - begin_;
    if (at > image_.size() || bytes > image_.size() - at) return false;
    if (bytes > 0) std::memcpy(into, image_.data() + at, bytes);
    return true;
  }
  // Any byte of it may be changed.
  std::string& image() { return image_; }

 protected:
  std::string image_;

 private:
  const uint64_t begin_;
};

}  // namespace hangscope

#endif

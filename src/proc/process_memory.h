// The memory of a live process, read without stopping it.
#ifndef HANGSCOPE_PROC_PROCESS_MEMORY_H
#define HANGSCOPE_PROC_PROCESS_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hangscope {

// Reads `bytes` of a target's memory; false where not all of it is there.
using ReadMemory = std::function<bool(uint64_t address, void* into, size_t bytes)>;

class ProcessMemory {
 public:
  explicit ProcessMemory(int pid) : pid_(pid) {}

  // As many of `most` bytes as can be read from `address` on; empty: none.
  std::string ReadUpTo(uint64_t address, size_t most) const;
  // Nothing where not all of it can be read.
  template <typename Number>
  std::optional<Number> Read(uint64_t address) const {
    Number number = {};
    if (!ReadInto(address, &number, sizeof number)) return std::nullopt;
    return number;
  }
  bool ReadInto(uint64_t address, void* into, size_t bytes) const;

 private:
  int pid_;
};

}  // namespace hangscope

#endif

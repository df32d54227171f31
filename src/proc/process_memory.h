// The memory of a process: of a live one, read without stopping it, or as a file has kept it.
#ifndef HANGSCOPE_PROC_PROCESS_MEMORY_H
#define HANGSCOPE_PROC_PROCESS_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace hangscope {

// Reads `bytes` of a target's memory; false where not all of it is there.
using ReadMemory = std::function<bool(uint64_t address, void* into, size_t bytes)>;

class ProcessMemory {
 public:
  explicit ProcessMemory(int pid) : pid_(pid) {}
  explicit ProcessMemory(ReadMemory kept) : kept_(std::move(kept)) {}

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
  int pid_ = 0;
  ReadMemory kept_;  // empty: it lives
};

}  // namespace hangscope

#endif

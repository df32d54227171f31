// The objects of a program of Go, and the pointers in them, as its collector knows them: read from
// outside. Of Go 1.19 on x86-64.
//
// It is as it was at some time while it was read: the program goes on. All that is read may be
// anything, and is bounded.
#ifndef HANGSCOPE_RUNTIME_GO_GO_HEAP_H
#define HANGSCOPE_RUNTIME_GO_GO_HEAP_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "proc/process_memory.h"

namespace hangscope {

// What is read again and again is read once. It stays as it was then.
class GoMemory {
 public:
  GoMemory(ReadMemory read, size_t most_bytes) : read_(std::move(read)), most_bytes_(most_bytes) {}

  bool Read(uint64_t address, void* into, size_t bytes);
  template <typename Number>
  std::optional<Number> Get(uint64_t address) {
    Number number = {};
    if (!Read(address, &number, sizeof number)) return std::nullopt;
    return number;
  }
  bool IsFull() const { return full_; }  // more was wanted than may be kept

 private:
  const ReadMemory read_;
  const size_t most_bytes_;
  size_t kept_bytes_ = 0;
  bool full_ = false;
  std::unordered_map<uint64_t, std::string> blocks_;  // by address; empty: cannot be read whole
};

class GoHeap {
 public:
  struct Object {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    bool has_pointers = false;
  };

  // `heap`: the address of runtime.mheap_. A sentence where what is there makes no sense.
  static Result<GoHeap> Read(uint64_t heap, std::shared_ptr<GoMemory> memory);

  // Nothing: the address is in no object.
  std::optional<Object> ObjectAt(uint64_t address) const;
  // Appends them; false: they cannot be read.
  bool PointersIn(const Object& object, std::vector<uint64_t>* pointers) const;
  // What finalizers will be called with, and what they have themselves.
  const std::vector<uint64_t>& finalized() const { return finalized_; }

 private:
  struct Span {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t object_bytes = 0;
    bool has_pointers = false;
  };

  GoHeap(std::shared_ptr<GoMemory> memory, uint64_t arenas)
      : memory_(std::move(memory)), arenas_(arenas) {}
  void AddFinalized(const Span& span, uint64_t special);

  std::shared_ptr<GoMemory> memory_;
  uint64_t arenas_;
  std::vector<Span> spans_;  // by address
  std::vector<uint64_t> finalized_;
};

}  // namespace hangscope

#endif

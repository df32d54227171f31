// Registers and stack of a thread as they were at one instant, to be followed later.
#ifndef HANGSCOPE_PROC_THREAD_IMAGE_H
#define HANGSCOPE_PROC_THREAD_IMAGE_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hangscope {

// By DWARF's numbers for this machine: x86-64 has 0..15 and the pc besides, aarch64 x0..x30 and sp
// as 31.
struct ThreadRegisters {
  static constexpr size_t kMost = 32;
  std::array<std::optional<uint64_t>, kMost> values;
  uint64_t pc = 0;

  uint64_t stack_pointer() const { return values[kStackPointer].value_or(0); }
#if defined(__aarch64__)
  static constexpr size_t kStackPointer = 31;
  static constexpr size_t kFramePointer = 29;
#else
  static constexpr size_t kStackPointer = 7;
  static constexpr size_t kFramePointer = 6;
#endif
};

struct ThreadImage {
  int tid = 0;
  bool is_32_bit = false;  // i386: registers by the numbers of that
  ThreadRegisters registers;
  // Memory from `stack_begin`, at or below the stack pointer, upwards.
  uint64_t stack_begin = 0;
  std::string stack;
};

}  // namespace hangscope

#endif

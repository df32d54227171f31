#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstring>
#include <iterator>
#include <vector>

#include "proc/thread_stop.h"

namespace hangscope {
namespace {

bool ReadsNothing(uint64_t, void*, size_t) { return false; }

// Numbers as the machine's psABI gives them to DWARF.
TEST(Registers, HaveTheNumbersOfDwarf) {
  user_regs_struct raw{};
  std::vector<uint64_t> expected;
#if defined(__aarch64__)
  for (size_t i = 0; i < std::size(raw.regs); ++i) expected.push_back(raw.regs[i] = 100 + i);
  expected.push_back(raw.sp = 0x7ff0);
  raw.pc = 0x400100;
#else
  for (auto* const place :
       {&raw.rax, &raw.rdx, &raw.rcx, &raw.rbx, &raw.rsi, &raw.rdi, &raw.rbp, &raw.rsp, &raw.r8,
        &raw.r9, &raw.r10, &raw.r11, &raw.r12, &raw.r13, &raw.r14, &raw.r15})
    expected.push_back(*place = 100 + expected.size());
  raw.rsp = expected[7] = 0x7ff0;
  raw.rip = 0x400100;
#endif
  const ThreadRegisters registers = UnderstandRegisters(raw, ReadsNothing).registers;
  for (size_t i = 0; i < registers.values.size(); ++i) {
    if (i < expected.size())
      EXPECT_EQ(registers.values[i], expected[i]) << i;
    else
      EXPECT_FALSE(registers.values[i].has_value()) << i;
  }
  EXPECT_EQ(registers.stack_pointer(), 0x7ff0u);
  EXPECT_EQ(registers.pc, 0x400100u);
}

#if defined(__aarch64__)
// Linux 6.1 shows a thread that was stopped in a call in front of it, its first argument in x0.
TEST(Registers, TellACallThatGoesOn) {
  uint32_t code = 0xd4000001;  // svc #0
  const auto read = [&](uint64_t address, void* to, size_t bytes) {
    if (address != 0x400100 || bytes != sizeof code) return false;
    std::memcpy(to, &code, sizeof code);
    return true;
  };
  user_regs_struct raw{};
  raw.regs[0] = 0x5000;
  raw.regs[8] = SYS_futex;
  raw.pc = 0x400100;
  StoppedRegisters stopped = UnderstandRegisters(raw, read);
  EXPECT_EQ(stopped.interrupted_call, SYS_futex);
  EXPECT_EQ(stopped.registers.pc, 0x400104u);
  code = 0x14000000;  // b .
  stopped = UnderstandRegisters(raw, read);
  EXPECT_EQ(stopped.interrupted_call, -1);
  EXPECT_EQ(stopped.registers.pc, 0x400100u);
  EXPECT_EQ(UnderstandRegisters(raw, ReadsNothing).interrupted_call, -1);
}
#else
TEST(Registers, TellACallThatGoesOn) {
  const auto after = [](int64_t result) {
    user_regs_struct raw{};
    raw.rax = static_cast<uint64_t>(result);
    raw.orig_rax = SYS_futex;
    return UnderstandRegisters(raw, ReadsNothing).interrupted_call;
  };
  EXPECT_EQ(after(-512), SYS_futex);  // -ERESTARTSYS
  EXPECT_EQ(after(-516), SYS_futex);  // -ERESTART_RESTARTBLOCK
  EXPECT_EQ(after(-515), -1);         // -ENOIOCTLCMD
  EXPECT_EQ(after(-4), -1);
  EXPECT_EQ(after(0), -1);
}
#endif

}  // namespace
}  // namespace hangscope

// A child executed step by step on this machine: exact counts of instructions, without performance
// counters.
#ifndef HANGSCOPE_BENCH_SINGLE_STEP_H
#define HANGSCOPE_BENCH_SINGLE_STEP_H

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

class SteppedChild {
 public:
  // In the child, once what is counted may begin.
  static void LetParentStep() {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
  }

  // `run` calls LetParentStep and does not return. False: the child may not be traced here.
  bool Start(void (*run)()) {
    pid_ = fork();
    if (pid_ == 0) run();
    int status = 0;
    return pid_ > 0 && waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
  }

  // One instruction further; false once the child has ended.
  bool Step() {
    int status = 0;
    if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0 || waitpid(pid_, &status, 0) != pid_)
      return false;
    return WIFSTOPPED(status) && ptrace(PTRACE_GETREGS, pid_, nullptr, &registers_) == 0;
  }

  bool IsAt(const void* function) const {
    return registers_.rip == reinterpret_cast<uint64_t>(function);
  }
  uint64_t NextInstruction() const { return Word(registers_.rip); }

  // From the first instruction of a function to its return: how many they are without the `ret`;
  // -1: the child ended before. `before_each` is called with the child at each of them.
  template <typename BeforeEach>
  int CountToReturn(BeforeEach before_each) {
    const uint64_t back = Word(registers_.rsp);
    int instructions = 0;
    while (registers_.rip != back) {
      before_each();
      if (!Step()) return -1;
      ++instructions;
    }
    return instructions - 1;
  }

 private:
  uint64_t Word(uint64_t address) const {
    return static_cast<uint64_t>(
        ptrace(PTRACE_PEEKDATA, pid_, reinterpret_cast<void*>(address), nullptr));
  }

  pid_t pid_ = -1;
  user_regs_struct registers_{};
};

#endif

// What a watcher's features cost a thread on this machine, in instructions: a child that does each of
// target_cost/watch_uses.h is executed step by step, from a function's first instruction to its return.
//
// Prints one JSON object, instructions by name, the median of kRounds; or why it cannot be (status 77).
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

#include "target_cost/watch_uses.h"

namespace {

constexpr int kRounds = 11;

struct Use {
  const char* name;
  void (*function)();
  std::vector<int> instructions;
};
#define ADDRESS(name) {#name, use_##name, {}},
Use uses[] = {USES(ADDRESS)};

[[noreturn]] void RunChild() {
  use_waypoint();  // gives the thread its mailbox
  prepare_uses();
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
#define RUN(name)    \
  prepare_##name();  \
  for (int i = 0; i < kRounds; ++i) use_##name();
  USES(RUN)
  _exit(0);
}

bool Step(pid_t child, user_regs_struct* registers) {
  int status = 0;
  if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || waitpid(child, &status, 0) != child) return false;
  return WIFSTOPPED(status) && ptrace(PTRACE_GETREGS, child, nullptr, registers) == 0;
}

// The child stands at the first instruction of `use`; without its ret.
void Count(pid_t child, Use* use, user_regs_struct* registers) {
  const auto back = static_cast<uint64_t>(ptrace(PTRACE_PEEKDATA, child, reinterpret_cast<void*>(registers->rsp), nullptr));
  int instructions = 0;
  while (registers->rip != back) {
    if (!Step(child, registers)) return;
    ++instructions;
  }
  use->instructions.push_back(instructions - 1);
}

}  // namespace

int main() {
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) RunChild();
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) {
    fprintf(stderr, "SKIPPED: the child did not let itself be traced\n");
    return 77;
  }
  user_regs_struct registers{};
  while (Step(child, &registers)) {
    for (Use& use : uses) {
      if (registers.rip == reinterpret_cast<uint64_t>(use.function)) Count(child, &use, &registers);
    }
  }
  printf("{");
  for (Use& use : uses) {
    if (use.instructions.size() != kRounds) {
      fprintf(stderr, "watch_steps: %s: %zu rounds were seen instead of %d\n", use.name, use.instructions.size(), kRounds);
      return 1;
    }
    std::sort(use.instructions.begin(), use.instructions.end());
    printf("%s\"%s\": %d", &use == uses ? "" : ", ", use.name, use.instructions[kRounds / 2]);
  }
  printf("}\n");
  return 0;
}

// What a watcher's features cost a thread on this machine, in instructions: a child that does each
// of target_cost/watch_uses.h is executed step by step, from a function's first instruction to its
// return.
//
// Prints one JSON object, instructions by name, the median of kRounds; or why it cannot be (status
// 77).
#include <algorithm>
#include <cstdio>
#include <vector>

#include "single_step.h"
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
  SteppedChild::LetParentStep();
#define RUN(name)   \
  prepare_##name(); \
  for (int i = 0; i < kRounds; ++i) use_##name();
  USES(RUN)
  _exit(0);
}

}  // namespace

int main() {
  SteppedChild child;
  if (!child.Start(RunChild)) {
    fprintf(stderr, "SKIPPED: the child did not let itself be traced\n");
    return 77;
  }
  while (child.Step()) {
    for (Use& use : uses) {
      if (!child.IsAt(reinterpret_cast<void*>(use.function))) continue;
      if (const int instructions = child.CountToReturn([] {}); instructions >= 0)
        use.instructions.push_back(instructions);
    }
  }
  printf("{");
  for (Use& use : uses) {
    if (use.instructions.size() != kRounds) {
      fprintf(stderr, "watch_steps: %s: %zu rounds were seen instead of %d\n", use.name,
              use.instructions.size(), kRounds);
      return 1;
    }
    std::sort(use.instructions.begin(), use.instructions.end());
    printf("%s\"%s\": %d", &use == uses ? "" : ", ", use.name, use.instructions[kRounds / 2]);
  }
  printf("}\n");
  return 0;
}

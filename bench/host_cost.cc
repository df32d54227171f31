// What an event costs on this machine, in instructions: a child that records is executed step by
// step, and the steps from the arguments in registers to the writer's return are counted, the `ret`
// itself not. Exact, and needs no performance counters.
//
// Prints one JSON object, or why it cannot be (status 77): for the events in each of the ways
// below, the least and the median instructions of kEvents of them, and how many of an event's lock
// the bus or wait for stores (a locked one may cost more than all the rest, where rdtsc does not
// hide it). Least and median are the same; but one in a long time, of which these steps take a good
// part, finds that the clock's quarter-wrap is a new one, and writes an anchor.
//
//   recorded    safe, with mask: the default
//   masked_out  its class is switched off
//   floor       rdtsc, four stores, a head that is published: what a recorder cannot do without
#define HANGSCOPE_DEFINE
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hangscope/hangscope.h"
#include "record_floor.h"
#include "single_step.h"

#define HANGSCOPE_CLASS_COST HANGSCOPE_CLASS(5)
#define COST_EVENTS(EVENT) EVENT(cost, COST, "%u of %u", u32, index, u32, thread)
HANGSCOPE_EVENTS(cost, HANGSCOPE_FIRST_USER_ID, COST_EVENTS);

namespace {

constexpr size_t kEvents = 100;

#define COUNTED __attribute__((noinline, noclone, noipa))

COUNTED void EmitRecorded(uint32_t index, uint32_t thread) { hangscope_cost(index, thread); }
COUNTED void EmitMaskedOut(uint32_t index, uint32_t thread) { hangscope_cost(index, thread); }
COUNTED void EmitFloor(uint32_t index, uint32_t thread) {
  RecordFloor(&floor_ring, 64, index, thread);
}

struct Way {
  const char* name;
  void (*emit)(uint32_t index, uint32_t thread);
  std::vector<int> instructions;
  size_t locked = 0;  // of all events
};

Way ways[] = {{"recorded", EmitRecorded, {}, 0},
              {"masked_out", EmitMaskedOut, {}, 0},
              {"floor", EmitFloor, {}, 0}};

[[noreturn]] void RunChild() {
  EmitRecorded(0, 0);  // gives the thread its ring
  SteppedChild::LetParentStep();
  for (uint32_t i = 0; i < kEvents; ++i) EmitRecorded(i, 0);
  hangscope_set_mask(0x7fffffff & ~HANGSCOPE_CLASS_COST);
  for (uint32_t i = 0; i < kEvents; ++i) EmitMaskedOut(i, 0);
  for (uint32_t i = 0; i < kEvents; ++i) EmitFloor(i, 0);
  _exit(0);
}

// A lock prefix, an exchange with memory, mfence.
bool IsLocked(uint64_t word) {
  const auto byte = [word](int i) { return static_cast<unsigned>(word >> 8 * i & 0xff); };
  const int opcode = byte(0) >= 0x40 && byte(0) <= 0x4f ? 1 : 0;  // behind REX
  const bool exchanges = (byte(opcode) | 1u) == 0x87 && byte(opcode + 1) < 0xc0;
  return byte(0) == 0xf0 || exchanges || (word & 0xffffff) == 0xf0ae0f;
}

}  // namespace

int main() {
  SteppedChild child;
  if (!child.Start(RunChild)) {
    fprintf(stderr, "SKIPPED: the child did not let itself be traced\n");
    return 77;
  }
  while (child.Step()) {
    for (Way& way : ways) {
      if (!child.IsAt(reinterpret_cast<void*>(way.emit))) continue;
      const int instructions =
          child.CountToReturn([&] { way.locked += IsLocked(child.NextInstruction()) ? 1 : 0; });
      if (instructions >= 0) way.instructions.push_back(instructions);
    }
  }
  printf("{");
  for (Way& way : ways) {
    if (way.instructions.size() != kEvents) {
      fprintf(stderr, "host_cost: %s: %zu events were seen instead of %zu\n", way.name,
              way.instructions.size(), kEvents);
      return 1;
    }
    std::sort(way.instructions.begin(), way.instructions.end());
    printf("%s\"%s\": {\"least\": %d, \"median\": %d, \"locked\": %zu}", &way == ways ? "" : ", ",
           way.name, way.instructions.front(), way.instructions[kEvents / 2], way.locked / kEvents);
  }
  printf("}\n");
  return 0;
}

// What goes wrong in the pipeline, where and at which block.
#ifndef EXAMPLES_PIPELINE_FAULTS_H
#define EXAMPLES_PIPELINE_FAULTS_H

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline.h"

enum class Fault {
  kNone,
  kDeadlock2,    // `role` and `other` each have a lock and want the other's
  kDeadlock5,    // the five of a node, each with its own lock, want the next one's
  kNoCredit,     // the writer keeps the credits: all five wait in a circle
  kMissingPush,  // one block is taken and not passed on
  kLostWakeup,   // blocks are passed on and nobody is notified
  kKeptLock,     // the thread ends with its lock, which `other` then wants
  kGone,         // the thread returns in the middle
  kSlow,         // control: each block takes `value` ms
  kHandover,     // control: `role` and `other` hand a ball to and fro, `value` times, in both orders
  kAssert,
  kArgument,     // `value` where less than 4 is possible
  kPending,      // the kernel ends with `value` transactions under way
  kEndless,      // a loop without a waypoint
  kCorrupt,      // word number `word` of the thread's mailbox becomes `value`
  kGuard,        // the node's guard word becomes `value`
  kCrash,        // a store to address 0
  kAbort,
};

struct Plan {
  Fault fault = Fault::kNone;
  Place place;             // whose
  Role other = Role::kReader;
  uint32_t word = 0;
  uint64_t value = 0;
  uint64_t block = 0;      // at which it happens; one more than there are: when the last is done
};

// nullopt: there is none of that name. Names are those of the enumeration: "missing-push".
bool ParseFault(std::string_view name, Fault* fault);
std::string FaultNames();

// Once, before the threads begin.
void SetPlan(const Plan& plan);
const Plan& ThePlan();

bool IsPlanned(Fault fault, Place place, uint64_t number);
// From that block on.
bool IsPlannedFrom(Fault fault, Place place, uint64_t number);
// Says on stdout what is done wrong, at the time and by the thread that does it.
void TellPlanted(Pipeline& pipeline, Place place, uint64_t number);

// In the middle of a role's round. False: the thread is to return.
bool MaybeFail(Pipeline& pipeline, Place place, uint64_t number);
void MaybeFailAtEnd(Pipeline& pipeline, Place place);

// What a thread does in place of passing blocks on, with kHandover.
void RunHandover(Pipeline& pipeline, Place place);

#endif

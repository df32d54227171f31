// Numbers from the events of a scope: who ran how long, how fast tasks were switched in once they
// were woken, how long interrupts and mutexes lasted, who waited for a less urgent task. Only of
// what the rings hold: where a record is missing, or a begin or end lies outside, a length is a
// least one or not known, and counted as such.
#ifndef HANGSCOPE_STATS_EVENT_STATS_H
#define HANGSCOPE_STATS_EVENT_STATS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scope/event_list.h"

namespace hangscope {

// All times are counts of the target's clock.
struct CoreNumbers {
  uint32_t core = 0;
  std::string name;
  uint64_t from = 0, to = 0;        // of its events
  uint64_t lost = 0;                // records within; those that were overwritten come before
  uint64_t overwritten = 0;         // before `from`
  uint64_t unknown = 0;             // of the time: who ran is not known
  uint64_t nobody = 0;              // no task ran
  uint64_t idle = 0;                // that and the idle tasks; 0 where they are not known
  std::optional<uint32_t> classes;  // recorded at the end, as ScopeCore has it

  uint64_t span() const { return to - from; }
};

// Lengths of one kind of thing, each with a begin and an end.
struct Lengths {
  struct One {
    uint64_t length = 0;
    uint64_t at = 0;  // its begin
    uint32_t core = 0;
    std::optional<uint32_t> task;  // whose it was
  };
  uint64_t measured = 0;       // begin and end are known
  std::optional<One> longest;  // of those
  uint64_t cut = 0;            // begin or end is not: it lasted at least so long, if anything
  std::optional<One> longest_cut;

  uint64_t seen() const { return measured + cut; }
};

struct TaskNumbers {
  uint32_t task = 0;
  std::optional<uint32_t> priority;  // of its task_create
  uint64_t ran = 0;                  // interrupts that came meanwhile included
  uint64_t switches = 0;             // to it
  // Of waits, delays and suspensions that ended in a switch to it; `measured` have a record of what
  // ended them.
  uint64_t wakes = 0;
  uint64_t measured = 0;
  uint64_t shortest = 0, median = 0;  // from that record to the switch
  Lengths::One longest;
  std::optional<Lengths::One> not_run;  // woken, and not switched to until the end
};

struct InterruptNumbers {
  uint32_t interrupt = 0;
  Lengths lengths;  // interrupts that came meanwhile included
};

struct MutexNumbers {
  uint32_t mutex = 0;
  Lengths held;
};

// `waiter` waited for a mutex whose holder is less urgent and did not run, while `runner`, less
// urgent than the waiter and more than the holder, did.
struct Inversion {
  uint32_t mutex = 0, waiter = 0, holder = 0, runner = 0;
  uint64_t waits = 0;    // in which it happened
  uint64_t total = 0;    // all of them together, at the least
  Lengths::One longest;  // in one wait
};

struct IdleTasks {
  std::vector<uint32_t> tasks;
  bool nobody = false;  // the kernel switches to no task
  std::string why;      // they are it, or none is known
  bool known() const { return nobody || !tasks.empty(); }
};

struct EventStats {
  std::vector<CoreNumbers> cores;  // that have events
  std::vector<TaskNumbers> tasks;  // who ran longest first
  std::vector<InterruptNumbers> interrupts;
  std::vector<MutexNumbers> mutexes;
  std::vector<Inversion> inversions;
  IdleTasks idle;
  uint64_t earlier = 0;           // events of earlier starts of the target, left out
  uint64_t doubtful = 0;          // events whose time may be wrong by turns of the clock
  uint64_t contended = 0;         // waits for a mutex of another task
  uint64_t not_judged = 0;        // of them: the priorities of both are not known
  bool clocks_are_apart = false;  // those of cores: nothing is measured from one to another

  bool empty() const { return cores.empty(); }
};

struct EventStatsInput {
  const std::vector<EventOrLoss>& items;  // as ScopeView::Take has them
  const std::vector<ScopeCore>& cores;
  bool clocks_compare = false;  // those of all cores
  // What a task is called: "IDLE"; empty, or null: nothing but its number.
  std::function<std::string(uint32_t)> name_of = {};
};

EventStats ComputeEventStats(const EventStatsInput& input);

}  // namespace hangscope

#endif

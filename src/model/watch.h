// What a watcher knows of a target's cores and tasks, and what it finds: plain types between the
// reader of mailboxes, the watcher, and those who show, log or act. abi/watch.h has the bytes.
#ifndef HANGSCOPE_MODEL_WATCH_H
#define HANGSCOPE_MODEL_WATCH_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"
#include "model/scope.h"

namespace hangscope {

// Who does something or waits: a core, or a task of an OS (by the number of its record, not its
// id).
struct SubjectId {
  enum class Kind { kCore, kTask };
  Kind kind = Kind::kCore;
  uint32_t index = 0;

  auto operator<=>(const SubjectId&) const = default;
};

// The same number in two looks, and odd: the same wait.
struct WaitState {
  uint32_t sequence = 0;
  uint32_t resource = 0;
  ResourceKind kind = ResourceKind::kNone;  // kNone: it does not say
  uint64_t since = 0;                       // of the target's clock
};

enum class LaunchState { kNone, kIdle, kRunning, kDone, kEnded };
enum class PausedState { kNot, kByCode, kByHost };
enum class FaultType { kNone, kAssert, kArgument, kHardware, kPending, kBus, kStack, kGuard };

// Empty where the target launches nothing.
constexpr std::string_view LaunchName(LaunchState state) {
  switch (state) {
    case LaunchState::kNone:
      return "";
    case LaunchState::kIdle:
      return "idle";
    case LaunchState::kRunning:
      return "running";
    case LaunchState::kDone:
      return "done";
    case LaunchState::kEnded:
      return "ended";
  }
  return "";
}

constexpr std::string_view FaultTypeName(FaultType type) {
  switch (type) {
    case FaultType::kNone:
      return "none";
    case FaultType::kAssert:
      return "assert";
    case FaultType::kArgument:
      return "argument";
    case FaultType::kHardware:
      return "hardware";
    case FaultType::kPending:
      return "pending";
    case FaultType::kBus:
      return "bus";
    case FaultType::kStack:
      return "stack";
    case FaultType::kGuard:
      return "guard";
  }
  return "unknown";
}

// A core's first fault; what the type does not use is 0. As hangscope_fault, checked.
struct CoreFault {
  FaultType type = FaultType::kNone;
  uint32_t reason = 0;
  uint32_t line = 0;
  uint32_t kind = 0;
  uint64_t pc = 0;
  uint64_t address = 0;
  uint64_t local = 0;
  uint32_t length = 0;
  uint32_t where = 0;
  uint64_t value = 0;
  uint64_t time = 0;    // of the target's clock
  uint32_t faults = 0;  // how many there were

  bool operator==(const CoreFault&) const = default;
};

// A mailbox in one look, checked: what is corrupt is left out and reported.
struct CoreSample {
  bool in_use = false;    // it said something once
  bool corrupt = false;   // a word of it cannot be right: nothing is concluded from it
  bool unread = false;    // its memory cannot be read now: likewise
  uint32_t waypoint = 0;  // characters, the first in the low byte
  uint32_t heartbeat = 0;
  std::optional<WaitState> wait;
  uint32_t wait_sequence = 0;  // also where it does not wait: how often it did
  uint32_t kernel = 0;
  LaunchState launch = LaunchState::kNone;
  bool pause_asked = false;
  uint32_t resumes = 0;  // how often somebody let it go on
  PausedState paused = PausedState::kNot;
  FaultType fault = FaultType::kNone;
  std::optional<uint32_t> stack_free;
  uint16_t node = 0;
  uint16_t role = 0;
};

struct TaskSample {
  bool in_use = false;
  bool corrupt = false;
  bool unread = false;  // as a core's
  TaskWait record;      // model/scope.h
};

// What a core's ring says of itself, beside its records.
struct RingLook {
  uint64_t emitted = 0;  // records so far
  uint32_t ticks = 0;    // of the tick interrupt, where the kernel counts them; 0: it does not

  bool operator==(const RingLook&) const = default;
};

// One look at a target.
struct ScopeSample {
  std::vector<CoreSample> cores;
  std::vector<TaskSample> tasks;        // by record
  std::vector<Corruption> corruptions;  // of this look
  bool ended_by_itself = false;         // of a dead process: by exit, or a return from main
  // by core: the task that runs, where the kernel says; 0: not known
  std::vector<uint32_t> running_tasks;
  std::vector<RingLook> rings;  // by core, where an OS has tasks; else empty
  // of the target's clock, now or at its end, where whoever looks knows it
  std::optional<uint64_t> target_time;
};

// What somebody holds and provides; row: cores first, then tasks.
struct ClaimRow {
  std::vector<uint32_t> holds;
  std::vector<uint32_t> provides;
  uint32_t lost = 0;  // did not fit
};

struct DebugValue {
  uint32_t order = 0;  // of its node's, from 1
  uint32_t core = 0;
  uint32_t value = 0;
};

struct NodeSample {
  uint16_t x = 0;
  uint16_t y = 0;
  std::optional<uint32_t> first_fault;  // the core
  uint32_t debug_values = 0;            // ever written
  std::string name = {};                // where it has no coordinates; else empty
};

// What a core's details say besides its fault.
struct CoreDetail {
  CoreFault fault;
  std::array<uint32_t, 3> delays{};  // before reads, writes, atomics
  uint32_t delay_seed = 0;
  std::array<uint32_t, 3> delays_done{};
  uint32_t stack_bytes = 0;  // 0: not painted
  std::optional<uint32_t> stack_lowest;
  uint32_t stack_kernel = 0;
  uint32_t debug_written = 0;  // values of the debug ring, those that are dropped by now, too
};

enum class Activity {
  kUnused,  // it never said anything
  kRunning,
  kIdle,  // by design: it says so, or waits for what comes from outside, or for time to pass
  kWaiting,
  kPaused,
  kHalted,   // by a fault
  kSilent,   // does not wait, and stands still
  kEnded,    // a thread that returned, a program that is done
  kCorrupt,  // its mailbox cannot be right
  kUnread,   // of a device: its memory cannot be read
};

constexpr std::string_view ActivityName(Activity activity) {
  switch (activity) {
    case Activity::kUnused:
      return "unused";
    case Activity::kRunning:
      return "running";
    case Activity::kIdle:
      return "idle";
    case Activity::kWaiting:
      return "waiting";
    case Activity::kPaused:
      return "paused";
    case Activity::kHalted:
      return "halted";
    case Activity::kSilent:
      return "silent";
    case Activity::kEnded:
      return "ended";
    case Activity::kCorrupt:
      return "corrupt";
    case Activity::kUnread:
      return "unread";
  }
  return "unknown";
}

// A core or task over all looks so far.
struct SubjectState {
  SubjectId subject;
  Activity activity = Activity::kUnused;
  TimeNs since = 0;             // monotonic: this activity, and where it waits, this wait
  bool since_at_least = false;  // it was so at the first look
  std::optional<WaitState> wait;
  // Monotonic: when a look last found another word of its mailbox or record, or new events in its
  // ring; nothing: none has yet. A task that is ready has not moved by that.
  std::optional<TimeNs> moved;
  // Of cores.
  CoreSample sample;
  // Of tasks.
  uint32_t task = 0;  // its id
  bool has_core = false;
};

// What the watcher of a scope finds; each is found once. Of most the summary is empty until
// somebody who knows names tells it (scope/watch_text.h).
struct ScopeFinding : SourceFinding {
  ScopeFinding() {
    kind = FindingKind::kDead;
    source = Source::kScope;
  }
  TimeNs time = 0;  // monotonic; when it was found
  bool since_at_least = false;
  // kDeadlock: the cycle, each waits for the next, the last for the first; else who
  std::vector<SubjectId> subjects;
  std::vector<SubjectId> partners;  // kStarved: who holds it, or would provide it
  std::vector<SubjectId> victims;   // who else waits for these, directly or not
  std::optional<SubjectId> first;   // who stopped first
  uint32_t resource = 0;            // kStarved: which; 0: none
  CoreFault fault;                  // kFault
  Corruption corruption;            // kCorrupt
  // Evidence that comes before the rest, and that summary and lines say with more names: who tells
  // it leaves it out.
  std::vector<std::string> repeated_evidence;
};

}  // namespace hangscope

#endif

// The window over many rings: what a snapshot declares that it covers, and what is missing inside.
// docs/windows.md has the rules.
#ifndef HANGSCOPE_MODEL_WINDOW_H
#define HANGSCOPE_MODEL_WINDOW_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hangscope {

enum class RingKind { kCpu, kThread, kCore, kSink, kStream };

constexpr std::string_view RingKindName(RingKind kind) {
  switch (kind) {
    case RingKind::kCpu:
      return "CPU";
    case RingKind::kThread:
      return "thread";
    case RingKind::kCore:
      return "core";
    case RingKind::kSink:
      return "sink";
    case RingKind::kStream:
      return "stream";
  }
  return "ring";
}

struct RingName {
  RingKind kind = RingKind::kCpu;
  int64_t number = 0;
  // "events", "cs_etm", "stdout"; tells rings of one number apart; may be empty
  std::string what = {};

  auto operator<=>(const RingName&) const = default;
};

enum class GapReason {
  kOverwritten,  // the ring was too small for the window that was asked for
  kTorn,         // its writer never finished it
  kRefused,      // its place was held by an unfinished record
  kSharedSink,   // another ring's data went over it in the sink that both use
  kBlind,        // nothing was recorded while a snapshot was taken
  kNoRoom,       // the recorder had no room and dropped it
  kUnreadable,   // a file is damaged there, or what it says contradicts itself
  kLastEvents,   // a task ended: from then on its events record nothing
  kNotRecorded,  // it did not record then: not yet, not any more, or it ran and nothing came
};

constexpr std::string_view GapReasonName(GapReason reason) {
  switch (reason) {
    case GapReason::kOverwritten:
      return "overwritten";
    case GapReason::kTorn:
      return "torn";
    case GapReason::kRefused:
      return "refused";
    case GapReason::kSharedSink:
      return "shared sink overwritten";
    case GapReason::kBlind:
      return "blind while copying";
    case GapReason::kNoRoom:
      return "dropped for want of room";
    case GapReason::kUnreadable:
      return "unreadable";
    case GapReason::kLastEvents:
      return "last events not recorded";
    case GapReason::kNotRecorded:
      return "not recorded";
  }
  return "unknown";
}

enum class AmountUnit { kUnknown, kBytes, kRecords };

// [from, to), monotonic. An instant where something is lost but no time passed: from == to.
struct TimeSpan {
  TimeNs from = 0;
  TimeNs to = 0;

  bool operator==(const TimeSpan&) const = default;
};

// What is missing inside the window.
struct Gap {
  size_t ring = 0;              // of Window::rings
  std::optional<int64_t> task;  // whose, where that is known
  TimeSpan time;
  GapReason reason = GapReason::kOverwritten;
  uint64_t amount = 0;  // 0: not known
  AmountUnit unit = AmountUnit::kUnknown;
};

// Held, but older than the window: kept, and no part of it.
struct StaleSpan {
  TimeSpan time;
  TimeNs age = 0;  // from its end to the window's begin
  uint64_t bytes = 0;
};

struct RingCoverage {
  RingName ring;
  std::optional<TimeSpan> held;  // oldest and newest that it still has; nothing: it has none
  uint64_t bytes_held = 0;
  uint64_t bytes_inside = 0;     // of the window
  uint64_t bytes_discarded = 0;  // of what it had at the trigger: overwritten while it was read
  bool lost_any = false;         // it had more once
  // inside the window, ascending, disjoint: all that happened there is held
  std::vector<TimeSpan> covered;
  std::vector<TimeSpan> idle;  // inside the window, known to have had nothing to record: no gap
  std::vector<StaleSpan> stale;
};

struct TaskCoverage {
  int64_t task = 0;
  std::string name = {};
  bool continuous = false;       // each of its runs inside the window is covered
  std::vector<TimeSpan> ran;     // inside the window, as far as known
  std::vector<TimeSpan> breaks;  // parts of `ran` that no ring covers
  bool ended = false;            // inside the window
};

enum class WindowPolicy {
  kCoherent,    // from the latest of the oldest retained times over the rings that lost anything
  kEverything,  // from the oldest that any ring has: most of it may be gaps
  kLastTime,    // the last T: as asked, though gaps show in it
  kLastBytes,   // the newest N bytes over all rings
  kSinceLast,   // from the snapshot before: shares no byte with it
};

constexpr std::string_view WindowPolicyName(WindowPolicy policy) {
  switch (policy) {
    case WindowPolicy::kCoherent:
      return "coherent";
    case WindowPolicy::kEverything:
      return "everything";
    case WindowPolicy::kLastTime:
      return "last time";
    case WindowPolicy::kLastBytes:
      return "last bytes";
    case WindowPolicy::kSinceLast:
      return "since the last snapshot";
  }
  return "unknown";
}

// Monotonic times.
struct Window {
  WindowPolicy policy = WindowPolicy::kCoherent;
  TimeSpan time;                     // [t0, t1], t1 the trigger
  bool from_the_start = false;       // nothing was ever lost: it begins where the recording began
  std::optional<size_t> limited_by;  // the ring whose oldest retained time is t0
  std::vector<RingCoverage> rings;   // as they were given
  std::vector<Gap> gaps;             // by time
  // Where it is coherent: what others wrote over in a sink that they share, before it begins; by
  // time, the newest of each ring.
  std::vector<Gap> lost_before;
  std::vector<TaskCoverage> tasks;  // by task
  TimeNs clock_error = 0;           // times of different rings may be off by this much, either way

  TimeNs length() const { return time.to - time.from; }
};

}  // namespace hangscope

#endif

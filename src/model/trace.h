// A recording as one trace, whatever it was recorded from: a scope's rings, CPUs' rings, the
// instruction trace that a simulator printed. Plain types between those who read recordings
// (trace/trace_source.h) and those who write them in the formats of other programs
// (export/trace_writer.h).
#ifndef HANGSCOPE_MODEL_TRACE_H
#define HANGSCOPE_MODEL_TRACE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "model/watch.h"
#include "model/window.h"

namespace hangscope {

// A ring: events of one track are in the order of time, and are lost in one place.
struct TraceTrack {
  // kCore: of a scope; kCpu: of the kernel's events; kStream: a core of a simulator's trace
  RingName ring;
  // "core 3 writer", "CPU 1", "hart 0"; as the target calls it, not made printable
  std::string name;
  std::string own_name = {};  // of those that have one beside a number: "writer"
};

enum class TraceFieldType { kUnsigned, kSigned, kBool, kText, kPointer };

struct TraceField {
  std::string name;
  TraceFieldType type = TraceFieldType::kUnsigned;
  int bits = 32;  // 1 to 64; of a text 0
  // of values, ascending: an enumeration; empty: none
  std::vector<std::pair<uint64_t, std::string>> names = {};

  bool operator==(const TraceField&) const = default;
};

// What an event means for the picture of who ran and who waited.
enum class TraceMeaning {
  kPlain,
  kSwitch,  // on its track `from` leaves and `to` comes
  kWake,    // `to` may run again; the event's task did it
  // something begins that ends with the next kLeave of the same task (else: track), properly
  // nested:
  kEnter,
  kLeave,          // a system call, an interrupt, a bus transaction, a function
  kFunctionEnter,  // likewise of functions, told by an instruction trace
  kFunctionLeave,
  kCounter,  // `count` has this value from now on
  kState,    // its track is in `what` from now on: a waypoint
};

// A kind of event: those of one catalog entry, one tracepoint.
struct TraceEventKind {
  std::string name;      // "mutex_lock", "sched:sched_switch"; unique in a trace
  std::string category;  // "sync", "sched"; may be empty
  std::string format;    // printf, one conversion a field (abi/catalog.h); empty: none
  std::vector<TraceField> fields;
  TraceMeaning meaning = TraceMeaning::kPlain;
  // kCounter: what is counted; where events have a `what`, that is of these
  std::string counter = {};
  bool also_event = false;  // kCounter: it happened, too: a message was sent
  // kEnter, kLeave: of the track, whoever runs on it; an end ends what has its first value
  bool of_track = false;

  bool operator==(const TraceEventKind&) const = default;
};

struct TraceValue {
  uint64_t bits = 0;      // sign-extended where the field has a sign
  std::string text = {};  // kText
  bool known = true;      // false: the record has too few parameters
};

struct TraceEvent {
  size_t track = 0;  // of TraceHead::tracks
  // of TraceHead::kinds; new kinds are added there before their first event is given
  size_t kind = 0;
  TimeNs time = 0;                 // never smaller than that of the track's event before
  bool ambiguous = false;          // the time may be wrong by whole turns of a 32-bit clock
  uint64_t sequence = 0;           // of the track's records; gaps in it are losses
  std::vector<TraceValue> values;  // one for each field of the kind
  std::optional<int64_t> task;     // that ran: a task's number, a thread's id
  // By meaning.
  std::optional<int64_t> from;  // kSwitch; nothing: nobody, or not known
  std::optional<int64_t> to;    // kSwitch, kWake
  bool from_waits = false;      // kSwitch: it gave the CPU up, and was not preempted
  // kSwitch: else `to` is not recorded, and nothing is known of the track until somebody comes who
  // is
  bool to_recorded = true;
  // kEnter, kFunctionEnter: the name of what begins; kSwitch: what `from` waits in, if known;
  // kCounter: what is counted, if the kind does not say; kState
  std::string what = {};
  std::string where = {};  // kFunctionEnter, kState: "dataflow.c:88"; may be empty
  uint64_t count = 0;      // kCounter
};

// Something is missing on a track.
struct TraceLoss {
  size_t track = 0;
  TimeSpan time;  // between what is left on either side
  GapReason reason = GapReason::kOverwritten;
  uint64_t amount = 0;  // 0: not known
  AmountUnit unit = AmountUnit::kRecords;
};

using TraceItem = std::variant<TraceEvent, TraceLoss>;

// A core of a scope, or whoever is scheduled: a task, a thread.
struct TraceWho {
  bool is_task = false;
  int64_t number = 0;

  auto operator<=>(const TraceWho&) const = default;
};

// How somebody stood at the end.
struct TraceStanding {
  TraceWho who;
  Activity activity = Activity::kRunning;
  std::optional<TimeNs> since;
  std::string waits_for;            // "cb3 of (1,2)"; empty: it does not wait, or does not say
  std::vector<TraceWho> by;         // kWaiting: who holds it, or would provide it
  std::string place;                // "CRBW, reserve back, dataflow.c:88"; may be empty
  std::string fault;                // kHalted: one sentence
  std::optional<TimeNs> seen = {};  // when it was known to stand so; nothing: at the end
};

// Since which cycle of simulated time a core of a trace has been in the verdict's state.
struct TraceSinceCycle {
  std::string core;   // "/soc/host"
  std::string state;  // "looping", "silent"
  uint64_t cycle = 0;
};

// Known before the first event.
struct TraceHead {
  std::string name;                         // of the recording, for people
  std::string host, release, architecture;  // of the machine; may be empty
  std::string program;                      // that was recorded; may be empty
  std::string build_id;                     // hexadecimal; may be empty
  std::vector<std::string> command;
  std::string recorded_by;          // "hangscope 0.1.0", "Linux 6.1 perf"; may be empty
  TimeNs wall_minus_monotonic = 0;  // 0: not known
  // nobody knows the clock's rate: a time is a number of its counts, not of nanoseconds
  bool counts_clock = false;
  // with it: what is counted are the bytes of a stream whose lines have no times
  bool counts_bytes = false;
  TimeSpan time;  // of what is held
  std::optional<TimeNs> trigger;
  std::string verdict;                        // one line; empty: none was reached
  std::vector<TraceSinceCycle> since_cycles;  // of the verdict's cores whose trace counts cycles
  std::optional<Window> window;
  std::vector<TraceTrack> tracks;
  std::vector<TraceEventKind> kinds;
  std::map<int64_t, std::string> tasks;  // their names, as far as known beforehand
  bool tasks_are_threads = false;        // of Linux
  std::vector<std::string> warnings;     // what could not be read, one sentence each
};

// Known behind the last.
struct TraceEnd {
  TimeNs time = 0;
  std::vector<TraceStanding> standings;
  std::map<int64_t, std::string> tasks;  // as TraceHead's, and those seen since
  std::vector<std::string> warnings;     // likewise
  uint64_t events = 0;
  uint64_t losses = 0;
};

}  // namespace hangscope

#endif

// A trace sink that several CPUs share (N:1), as Linux's drivers empty it: only when the last of
// its tracers stops, and all of it into that CPU's AUX area, in frames that say whose each byte is.
// What a drain holds becomes the rings of the CPUs; docs/windows.md has the rules. Pure.
//
//   sink:    |<------------------------- filled ------------------------>| drained
//   CPU 0:   [=======run=======]   its bytes end here, or before
//   CPU 1:            [=============run=============]
//   held of an overwritten sink:      [.............newest...............]
//                                   ^ since when, nothing says
//
// Of a drain that was not overwritten the rings hold everything since the drain before; where that
// one is not known, since somebody was traced without a break. Of one that was overwritten, they
// hold it since the first of those who still have bytes in it left its CPU: its last byte was
// written by then, and nothing newer than a byte that is held was overwritten. (A tracer stops some
// microseconds after the record of the switch.)
#ifndef HANGSCOPE_WINDOW_SINK_DRAINS_H
#define HANGSCOPE_WINDOW_SINK_DRAINS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "window/find_window.h"

namespace hangscope {

struct SinkDrain {
  struct Share {
    int64_t cpu = 0;
    uint64_t bytes = 0;
  };
  TimeNs time = 0;  // when the last tracer stopped
  // of all that ever came out of the sink; where they do not touch, drains are missing between them
  uint64_t begin_offset = 0;
  uint64_t end_offset = 0;
  std::vector<Share> shares;   // each CPU once, only those that have bytes
  bool overwritten = false;    // the sink was too small: only its newest bytes came out
  uint64_t missing_bytes = 0;  // the oldest of what came out, and is not held any more
  // why those are missing
  GapReason missing_reason = GapReason::kUnreadable;
  bool partial = false;  // the kernel says that not all of it was traced
  // since when drains before it are missing, where the offsets say that some are
  std::optional<TimeNs> drains_missing_since;
};

struct DrainedSink {
  RingName sink;
  std::string what;  // its rings' names: "cs_etm"
  uint64_t capacity_bytes = 0;
  std::set<int64_t> cpus;         // that use it
  std::vector<SinkDrain> drains;  // by time
  TimeNs recorded_until = 0;
  bool always_on = true;  // whoever runs on these CPUs is traced
};

// When each drain's sink began to fill, and since when the drain has everything of all CPUs: never
// (its own time), where nothing says.
struct DrainTimes {
  TimeSpan filled;
  TimeNs complete_since = 0;
};

// Adds the sink, and a ring for each of its CPUs; returns each drain's times. `input` has its runs
// already.
std::vector<DrainTimes> AddSinkRings(const DrainedSink& sink, WindowInput* input);

}  // namespace hangscope

#endif

// What one ring knows of each instant, over all time: it holds all that happened (covered), there
// was nothing to record (idle), or something is or may be missing (lost). docs/windows.md has the
// rules.
#ifndef HANGSCOPE_WINDOW_RING_TIMELINE_H
#define HANGSCOPE_WINDOW_RING_TIMELINE_H

#include <cstdint>
#include <optional>
#include <vector>

#include "window/find_window.h"
#include "window/spans.h"

namespace hangscope {

// A held span, or what is left of the ring's in a sink.
struct RingPiece {
  TimeSpan time;
  uint64_t bytes = 0;
  std::optional<int64_t> task;
  bool in_ring = true;  // else in the sink, and the offsets are not known
  uint64_t begin_offset = 0;
  uint64_t end_offset = 0;
};

struct RingLoss {
  TimeSpan time;  // from == to: an instant
  GapReason reason = GapReason::kOverwritten;
  uint64_t amount = 0;
  AmountUnit unit = AmountUnit::kUnknown;
  std::optional<int64_t> task;
  bool not_yet = false;  // the ring did not record before
  bool limits = false;   // a coherent window begins after it
};

struct RingTimeline {
  std::vector<RingPiece> pieces;  // ascending and disjoint
  // ascending and disjoint; they touch where something is lost at an instant
  std::vector<TimeSpan> covered;
  Spans idle;
  std::vector<RingLoss> losses;   // by their begin
  std::vector<RingPiece> before;  // that belong to an earlier snapshot
};

// Who ran where this ring records, as far as known.
struct RunsOfRing {
  Spans ran;  // not of a ring that records whoever runs: it does not matter there
  std::optional<TimeNs> known_since;  // all are in `ran` from here on; nothing: not known
  bool trusted = false;               // also where bytes are missing
};

// The sink that a ring's data passes through.
struct SinkOfRing {
  std::vector<RingPiece> rest;           // the ring's, oldest first
  Spans others;                          // when data of other rings may have gone into it
  TimeNs complete_since = kBeginOfTime;  // what was written to it since is in it, or was drained
};

RingTimeline MakeTimeline(const RingHistory& ring, const RunsOfRing& runs,
                          const std::optional<SinkOfRing>& sink);

// The same of what was written since its head was `last_head`, at `last_trigger`.
RingTimeline MakeTimelineSince(const RingHistory& ring, const RunsOfRing& runs,
                               const std::optional<SinkOfRing>& sink, uint64_t last_head,
                               TimeNs last_trigger);

}  // namespace hangscope

#endif

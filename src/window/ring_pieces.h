// A ring's held spans, checked: what contradicts itself is not believed.
#ifndef HANGSCOPE_WINDOW_RING_PIECES_H
#define HANGSCOPE_WINDOW_RING_PIECES_H

#include <cstdint>
#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

struct RingPieces {
  // ascending and disjoint in time and offsets, all before `until`
  std::vector<RingPiece> good;
  // where held spans overlap, run backwards or lie beyond the head
  Spans contradicting;
  TimeNs until = 0;  // the ring was read then
};

// `rest`: of the sink, newer than all that the ring holds; pieces of it that are not are left out.
RingPieces FindPieces(const RingHistory& ring, const std::vector<RingPiece>& rest);

// By their begin, none backwards, none beyond the times that can be calculated with.
std::vector<KnownLoss> OrderedLosses(const RingHistory& ring);

// A ring as if it had begun when its head was `last_head`, at `last_trigger`.
struct CutRing {
  RingHistory ring;
  TimeNs begin = 0;               // of what is new
  std::vector<RingPiece> before;  // what it still has from before that
};
CutRing CutAt(const RingHistory& ring, uint64_t last_head, TimeNs last_trigger);

}  // namespace hangscope

#endif

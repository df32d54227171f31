#include "window/ring_pieces.h"

#include <algorithm>

namespace hangscope {
namespace {

RingPiece PieceOf(const HeldSpan& span) {
  const uint64_t bytes = span.end_offset - span.begin_offset;
  return {InTime(span.time), bytes - std::min(bytes, span.others_bytes),
          span.task,         true,
          span.begin_offset, span.end_offset};
}

bool Possible(const HeldSpan& span, uint64_t head) {
  return span.time.from <= span.time.to && span.begin_offset <= span.end_offset &&
         span.end_offset <= head;
}

bool Follows(const RingPiece& next, const RingPiece& last) {
  return next.time.from >= last.time.to && (!next.in_ring || next.begin_offset >= last.end_offset);
}

// Of two that overlap neither is believed: which one is wrong cannot be known.
void KeepOrDrop(const RingPiece& piece, RingPieces& pieces, std::vector<TimeSpan>& wrong) {
  TimeSpan hull = piece.time;
  bool fits = true;
  while (!pieces.good.empty() && !Follows(piece, pieces.good.back())) {
    const TimeSpan last = pieces.good.back().time;
    hull = {std::min(hull.from, last.from), std::max(hull.to, last.to)};
    pieces.good.pop_back();
    fits = false;
  }
  if (fits) {
    pieces.good.push_back(piece);
  } else {
    wrong.push_back(hull);
  }
}

}  // namespace

RingPieces FindPieces(const RingHistory& ring, const std::vector<RingPiece>& rest) {
  RingPieces pieces;
  std::vector<TimeSpan> wrong;
  for (const HeldSpan& span : ring.held) {
    if (Possible(span, ring.head)) {
      KeepOrDrop(PieceOf(span), pieces, wrong);
    } else {
      wrong.push_back({InTime(std::min(span.time.from, span.time.to)),
                       InTime(std::max(span.time.from, span.time.to))});
    }
  }
  for (RingPiece piece : rest) {
    piece.time = InTime(piece.time);
    if (piece.time.from > piece.time.to) continue;
    if (pieces.good.empty() || Follows(piece, pieces.good.back())) pieces.good.push_back(piece);
  }
  pieces.until = InTime(ring.recorded_until);
  if (ring.recorded_until == 0)
    pieces.until = pieces.good.empty() ? kBeginOfTime : pieces.good.back().time.to;
  std::erase_if(pieces.good,
                [&](const RingPiece& piece) { return piece.time.from > pieces.until; });
  for (RingPiece& piece : pieces.good) piece.time.to = std::min(piece.time.to, pieces.until);
  pieces.contradicting = MakeSpans(std::move(wrong));
  // A good piece inside what another contradicts is no better known than that.
  for (const TimeSpan& span : pieces.contradicting) {
    std::erase_if(pieces.good, [&](const RingPiece& p) {
      return p.time.from < span.to && p.time.to > span.from;
    });
  }
  return pieces;
}

std::vector<KnownLoss> OrderedLosses(const RingHistory& ring) {
  std::vector<KnownLoss> losses = ring.losses;
  for (KnownLoss& loss : losses) {
    loss.time = InTime(loss.time);
    if (loss.time.from > loss.time.to) std::swap(loss.time.from, loss.time.to);
  }
  std::stable_sort(losses.begin(), losses.end(), [](const KnownLoss& a, const KnownLoss& b) {
    return a.time.from < b.time.from;
  });
  return losses;
}

CutRing CutAt(const RingHistory& ring, uint64_t last_head, TimeNs last_trigger) {
  CutRing cut;
  cut.ring = ring;
  cut.begin = last_trigger;
  std::erase_if(cut.ring.losses, [&](const KnownLoss& loss) {
    return std::max(loss.time.from, loss.time.to) <= last_trigger;
  });
  cut.ring.held.clear();
  if (last_head > ring.head) {
    // Its counter ran backwards: nothing says which bytes are new.
    cut.ring.head = 0;
    cut.ring.recording_since = std::max(ring.recording_since, last_trigger);
    KnownLoss unknown;
    unknown.time = {last_trigger, std::max(ring.recorded_until, last_trigger)};
    unknown.reason = GapReason::kUnreadable;
    cut.ring.losses.push_back(unknown);
    return cut;
  }
  cut.ring.head = ring.head - last_head;
  for (HeldSpan span : ring.held) {
    if (!Possible(span, ring.head) || span.begin_offset >= last_head) {
      // One that is impossible stays so.
      span.end_offset -= last_head;
      span.begin_offset -= last_head;
      cut.ring.held.push_back(span);
      continue;
    }
    if (span.end_offset > last_head) {
      HeldSpan newer = span;
      newer.time.from = std::min(std::max(span.time.from, last_trigger), span.time.to);
      newer.begin_offset = 0;
      newer.end_offset -= last_head;
      cut.ring.held.push_back(newer);
      span.end_offset = last_head;
      span.time.to = newer.time.from;
    } else {
      cut.begin = std::max(cut.begin, InTime(span.time.to));
    }
    cut.before.push_back(PieceOf(span));
  }
  cut.ring.recording_since = std::max(ring.recording_since, cut.begin);
  return cut;
}

}  // namespace hangscope

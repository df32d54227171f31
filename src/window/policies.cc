#include "window/policies.h"

#include <algorithm>
#include <cmath>

namespace hangscope {
namespace {

// Of a coherent window. Without any limit: where all begins that is known.
WindowBegin CoherentBegin(const std::vector<RingTimeline>& timelines, TimeNs trigger) {
  WindowBegin begin;
  begin.time = kBeginOfTime;
  bool overwritten = false;
  for (size_t i = 0; i < timelines.size(); ++i) {
    for (const RingLoss& loss : timelines[i].losses) {
      if (!loss.limits || loss.time.from > trigger) continue;
      overwritten |= !loss.not_yet;
      const TimeNs end = std::min(loss.time.to, trigger);
      if (end > begin.time) begin = {end, i, false};
    }
  }
  begin.from_the_start = !overwritten;
  if (!overwritten) begin.limited_by.reset();
  return begin;
}

std::optional<TimeNs> OldestHeld(const std::vector<RingTimeline>& timelines) {
  std::optional<TimeNs> oldest;
  for (const RingTimeline& timeline : timelines) {
    if (timeline.pieces.empty()) continue;
    const TimeNs first = timeline.pieces.front().time.from;
    if (!oldest || first < *oldest) oldest = first;
  }
  return oldest;
}

// When the first of the rings began to record, or what is known of them begins.
TimeNs RecordingBegin(const WindowInput& input, const std::vector<RingTimeline>& timelines,
                      TimeNs trigger) {
  TimeNs begin = std::min(trigger, OldestHeld(timelines).value_or(trigger));
  for (const RingHistory& ring : input.rings) {
    if (ring.recording_since != 0)
      begin = std::min(begin, std::max(ring.recording_since, kBeginOfTime));
  }
  return begin;
}

// Where the first snapshot of a recorder begins: what else has older data, such as the scope of a
// program that ran before, does not matter.
TimeNs BeginOfFirst(const WindowInput& input, TimeNs start, TimeNs trigger) {
  std::optional<TimeNs> first;
  for (const RingHistory& ring : input.rings) {
    if (ring.recording_since != 0) first = std::min(first.value_or(trigger), ring.recording_since);
  }
  return std::max(first.value_or(start), kBeginOfTime);
}

// The instant from which on the rings hold the newest `bytes`.
TimeNs BeginOfLastBytes(const std::vector<RingTimeline>& timelines, TimeNs trigger,
                        uint64_t bytes) {
  std::vector<const RingPiece*> pieces;
  std::vector<TimeNs> borders{trigger};
  for (const RingTimeline& timeline : timelines) {
    for (const RingPiece& piece : timeline.pieces) {
      if (piece.time.from >= trigger) continue;
      pieces.push_back(&piece);
      borders.push_back(piece.time.from);
      if (piece.time.to < trigger) borders.push_back(piece.time.to);
    }
  }
  std::sort(borders.begin(), borders.end(), std::greater<>());
  std::sort(pieces.begin(), pieces.end(),
            [](const RingPiece* a, const RingPiece* b) { return a->time.to > b->time.to; });
  // Backwards from border to border: between two of them the same pieces grow, each at its own
  // rate.
  long double left = bytes;
  std::vector<const RingPiece*> open;
  size_t next = 0;
  for (size_t i = 0; i < borders.size(); ++i) {
    const TimeNs border = borders[i];
    std::erase_if(open, [&](const RingPiece* piece) { return piece->time.from >= border; });
    for (; next < pieces.size() && pieces[next]->time.to >= border; ++next) {
      const RingPiece& piece = *pieces[next];
      if (piece.time.from < piece.time.to) {
        open.push_back(&piece);
      } else {
        left -= piece.bytes;
        if (left < 0) return std::min(piece.time.from + 1, trigger);
      }
    }
    if (i + 1 == borders.size()) break;
    long double rate = 0;
    for (const RingPiece* piece : open) {
      rate += static_cast<long double>(piece->bytes) /
              static_cast<long double>(piece->time.to - piece->time.from);
    }
    const auto length = static_cast<long double>(border - borders[i + 1]);
    if (rate * length > left) return border - static_cast<TimeNs>(std::floor(left / rate));
    left -= rate * length;
  }
  return borders.back();
}

WindowBegin AskedBegin(const WindowInput& input, const std::vector<RingTimeline>& timelines,
                       const WindowRequest& request, TimeNs coherent, bool nothing_lost) {
  const TimeNs start = RecordingBegin(input, timelines, request.trigger);
  TimeNs asked = start;
  switch (request.policy) {
    case WindowPolicy::kCoherent:
      asked = coherent == kBeginOfTime ? start : coherent;
      break;
    case WindowPolicy::kEverything:
      asked = OldestHeld(timelines).value_or(request.trigger);
      break;
    case WindowPolicy::kLastTime:
      asked = request.trigger - std::clamp<TimeNs>(request.length, 0, kEndOfTime);
      break;
    case WindowPolicy::kLastBytes:
      asked = BeginOfLastBytes(timelines, request.trigger, request.bytes);
      break;
    case WindowPolicy::kSinceLast:
      asked = request.last_trigger != 0 ? request.last_trigger
                                        : BeginOfFirst(input, start, request.trigger);
      break;
  }
  if (request.policy == WindowPolicy::kLastTime || request.policy == WindowPolicy::kLastBytes) {
    asked = std::max(asked, start);
  }
  WindowBegin begin;
  begin.time = std::min(asked, request.trigger);
  begin.from_the_start = nothing_lost && begin.time <= std::max(start, coherent);
  return begin;
}

}  // namespace

uint64_t BytesInside(const RingPiece& piece, TimeSpan window) {
  if (piece.time.from >= window.from && piece.time.to <= window.to) return piece.bytes;
  const TimeSpan part = Clip(piece.time, window);
  if (part.from >= part.to) return 0;
  const long double share = static_cast<long double>(part.to - part.from) /
                            static_cast<long double>(piece.time.to - piece.time.from);
  return std::min(piece.bytes, static_cast<uint64_t>(
                                   std::llround(static_cast<long double>(piece.bytes) * share)));
}

WindowBegin FindBegin(const WindowInput& input, const std::vector<RingTimeline>& timelines,
                      const WindowRequest& request) {
  const WindowBegin coherent = CoherentBegin(timelines, request.trigger);
  WindowBegin begin = AskedBegin(input, timelines, request, coherent.time, coherent.from_the_start);
  // Of a coherent window the ring that begins it is told where something was overwritten.
  if (request.policy == WindowPolicy::kCoherent && begin.time == coherent.time)
    begin.limited_by = coherent.limited_by;
  return begin;
}

}  // namespace hangscope

#include "perf/traces/trace_rings.h"

#include <algorithm>

#include "model/perf_format.h"

namespace hangscope {
namespace {

// What offsets and sizes may be: a file can say anything, and sums must not overflow.
constexpr uint64_t kMostOffset = uint64_t{1} << 60;
constexpr uint64_t kMostBase = uint64_t{1} << 62;

// `pieces` by their begin.
void NoteNewer(const std::vector<PerfAuxPiece>& pieces, std::vector<PerfAuxSpan>* spans) {
  std::vector<uint64_t> ends(pieces.size() + 1, 0);  // the last end of this piece and those behind
  for (size_t i = pieces.size(); i > 0; --i)
    ends[i - 1] = std::max(ends[i], pieces[i - 1].end_offset);
  for (PerfAuxSpan& span : *spans) {
    const auto newer = std::upper_bound(
        pieces.begin(), pieces.end(), span.begin_offset,
        [](uint64_t begin, const PerfAuxPiece& piece) { return begin < piece.begin_offset; });
    span.newer_held = newer != pieces.end() &&
                      ends[static_cast<size_t>(newer - pieces.begin())] >= span.end_offset;
  }
}

// Undoes restarts: `offset` is where the next piece begins, `size` its bytes. Neither is above
// kMostOffset.
class Unwrapper {
 public:
  uint64_t Begin(uint64_t offset, uint64_t size, uint64_t* restarts) {
    if (any_ && offset < last_begin_) {
      base_ = std::min(end_, kMostBase);
      first_ = offset;
      ++*restarts;
    } else if (!any_) {
      first_ = 0;
    }
    any_ = true;
    last_begin_ = offset;
    const uint64_t begin = base_ + (offset - first_);
    end_ = std::max(end_, begin + size);
    return begin;
  }

 private:
  bool any_ = false;
  uint64_t base_ = 0;
  uint64_t first_ = 0;
  uint64_t last_begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace

GapReason ReasonOfMissing(const PerfAuxSpan& span) {
  const bool overwrites = (span.flags & PERF_AUX_FLAG_OVERWRITE) != 0;
  return overwrites && span.newer_held ? GapReason::kOverwritten : GapReason::kUnreadable;
}

TraceRingsReader::TraceRingsReader(const PerfFile& file, std::string tracer)
    : file_(file), tracer_(std::move(tracer)) {}

void TraceRingsReader::Add(const PerfRecord& record, TimeNs newest) {
  newest_ = newest;
  if (record.aux_trace != PerfRecord::kNoTrace) {
    const AuxTrace& trace = file_.aux()[record.aux_trace];
    told_.pieces.push_back({record.aux_trace, std::min(trace.offset, kMostOffset), 0, record.time});
    sampled_ = true;
    traced_.insert(record.tid);
    return;
  }
  const size_t piece = told_.pieces.size();
  if (record.type == kPerfAuxtrace && record.body.size() >= sizeof(PerfAuxtraceBody) &&
      piece < file_.aux().size()) {
    const uint64_t offset = file_.aux()[piece].offset;
    told_.pieces.push_back({piece, std::min(offset, kMostOffset), 0, newest_});
  }
  if (auto aux = ParsePerfAux(record)) {
    aux->offset = std::min(aux->offset, kMostOffset);
    aux->bytes = std::min(aux->bytes, kMostOffset);
    told_.spans.push_back({*aux, record.time, record.pid, record.tid, record.cpu});
    traced_.insert(record.tid);
  }
  if (const auto thread = ParsePerfTraceStart(record)) {
    told_.starts.push_back({record.time, thread->tid, record.cpu, record.tid});
    traced_.insert(thread->tid);
  }
  if (!file_.has_traces()) return;  // there may be many switches, and no span begins with one
  if (const auto change = ParsePerfSwitch(record); change && !change->out)
    told_.starts.push_back({record.time, record.tid, record.cpu, record.tid});
}

void TraceRingsReader::Finish(TimeNs until) {
  newest_ = std::max(newest_, until);
  const auto& aux = file_.aux();
  per_thread_ = !aux.empty() && std::all_of(aux.begin(), aux.end(),
                                            [](const AuxTrace& trace) { return trace.cpu < 0; });
  for (auto& [key, told] : ByRing()) {
    if (sampled_ ? !told.pieces.empty() : !told.spans.empty() || !told.pieces.empty())
      MakeRing(key, std::move(told));
  }
}

std::map<int64_t, TraceRingsReader::Told> TraceRingsReader::ByRing() const {
  std::map<int64_t, Told> rings;
  for (const Reported& one : told_.spans) rings[KeyOf(one.cpu, one.tid)].spans.push_back(one);
  for (const Start& one : told_.starts) rings[KeyOf(one.cpu, one.by)].starts.push_back(one);
  for (const PerfAuxPiece& piece : told_.pieces) {
    const AuxTrace& trace = file_.aux()[piece.trace];
    rings[KeyOf(trace.cpu, trace.tid)].pieces.push_back(piece);
  }
  return rings;
}

std::set<int> TraceRingsReader::CpusWithStarts() const {
  std::set<int> cpus;
  if (per_thread_) return cpus;
  for (const Start& start : told_.starts) cpus.insert(start.cpu);
  return cpus;
}

void TraceRingsReader::TraceAllThatCame() {
  for (const Start& start : told_.starts) traced_.insert(start.tid);
}

void TraceRingsReader::MakeRing(int64_t key, Told told) {
  PerfAuxRing ring;
  ring.name = {per_thread_ ? RingKind::kThread : RingKind::kCpu, key, tracer_};
  ring.cpu = per_thread_ ? -1 : static_cast<int>(key);
  Unwrapper offsets;
  uint64_t restarts = 0;
  uint64_t end = 0;
  for (PerfAuxPiece piece : told.pieces) {
    const uint64_t bytes = file_.aux()[piece.trace].bytes;
    const uint64_t restarts_before = restarts;
    piece.begin_offset = offsets.Begin(piece.begin_offset, bytes, &restarts);
    piece.end_offset = piece.begin_offset + bytes;
    piece.restarted = restarts > restarts_before;
    const uint64_t again = std::min(end, piece.end_offset);
    if (again > piece.begin_offset) ring.bytes_twice += again - piece.begin_offset;
    end = std::max(end, piece.end_offset);
    ring.pieces.push_back(piece);
  }
  std::stable_sort(told.spans.begin(), told.spans.end(),
                   [](const Reported& a, const Reported& b) { return a.time < b.time; });
  std::stable_sort(told.starts.begin(), told.starts.end());
  if (sampled_)
    MakeSpansOfSamples(&ring);
  else if (told.spans.empty())
    MakeSpansOfPieces(&ring);
  else
    MakeSpans(told.spans, told.starts, &ring);
  ring.restarts = std::max(ring.restarts, restarts);
  CountHeld(&ring);
  rings_.push_back(std::move(ring));
}

// A span begins when its tracer was switched on: when its thread came to the CPU, or the trace
// began. Where nothing says so, but no byte is missing since the span before, it has all since
// then.
void TraceRingsReader::MakeSpans(const std::vector<Reported>& told,
                                 const std::vector<Start>& starts, PerfAuxRing* ring) const {
  Unwrapper offsets;
  TimeNs before = -1;
  uint64_t end = 0;
  for (const Reported& one : told) {
    PerfAuxSpan span;
    const uint64_t restarts = ring->restarts;
    span.begin_offset = offsets.Begin(one.aux.offset, one.aux.bytes, &ring->restarts);
    span.end_offset = span.begin_offset + one.aux.bytes;
    span.restarted = ring->restarts > restarts;
    // Intel PT tells all of an area that overwrites itself, however little of it is new.
    if ((one.aux.flags & PERF_AUX_FLAG_OVERWRITE) != 0 && restarts == ring->restarts) {
      span.begin_offset = std::clamp(end, span.begin_offset, span.end_offset);
    }
    span.flags = one.aux.flags;
    span.pid = one.pid;
    span.tid = one.tid;
    span.time = {one.time, one.time};
    ring->bytes_told += one.aux.bytes;
    auto start = std::upper_bound(starts.begin(), starts.end(), Start{one.time});
    while (start != starts.begin() && std::prev(start)->time > before &&
           std::prev(start)->tid != one.tid)
      --start;
    if (start != starts.begin() && std::prev(start)->time > before) {
      span.time.from = std::prev(start)->time;
      span.begin_known = true;
    } else if (before >= 0 && restarts == ring->restarts && span.begin_offset == end) {
      span.time.from = before;
      span.begin_known = true;
    }
    before = one.time;
    end = span.end_offset;
    ring->spans.push_back(span);
  }
}

// A snapshot says nothing but that the bytes were there when it was taken.
void TraceRingsReader::MakeSpansOfPieces(PerfAuxRing* ring) const {
  uint64_t end = 0;
  for (const PerfAuxPiece& piece : ring->pieces) {
    const AuxTrace& trace = file_.aux()[piece.trace];
    PerfAuxSpan span;
    span.begin_offset = std::max(end, piece.begin_offset);
    span.end_offset = piece.end_offset;
    span.restarted = piece.restarted;
    if (span.begin_offset >= span.end_offset) continue;
    const TimeNs seen = std::max<TimeNs>(piece.seen, 0);
    span.time = {seen, seen};
    span.end_known = false;
    span.flags = PERF_AUX_FLAG_OVERWRITE;
    span.tid = trace.tid > 0 ? trace.tid : -1;
    end = span.end_offset;
    ring->spans.push_back(span);
  }
}

// A sample has the newest bytes at its time; since when they were written it does not say.
void TraceRingsReader::MakeSpansOfSamples(PerfAuxRing* ring) const {
  ring->sampled = true;
  for (const PerfAuxPiece& piece : ring->pieces) {
    const AuxTrace& trace = file_.aux()[piece.trace];
    PerfAuxSpan span;
    span.begin_offset = piece.begin_offset;
    span.end_offset = piece.end_offset;
    const TimeNs time = std::max<TimeNs>(trace.time, 0);
    span.time = {time, time};
    span.pid = trace.pid;
    span.tid = trace.tid;
    span.sampled = true;
    ring->spans.push_back(span);
  }
}

void TraceRingsReader::CountHeld(PerfAuxRing* ring) {
  std::vector<PerfAuxPiece> pieces = ring->pieces;
  std::sort(pieces.begin(), pieces.end(), [](const PerfAuxPiece& a, const PerfAuxPiece& b) {
    return a.begin_offset < b.begin_offset;
  });
  NoteNewer(pieces, &ring->spans);
  std::vector<PerfAuxPiece> merged;
  for (const PerfAuxPiece& piece : pieces) {
    if (!merged.empty() && piece.begin_offset <= merged.back().end_offset)
      merged.back().end_offset = std::max(merged.back().end_offset, piece.end_offset);
    else
      merged.push_back(piece);
  }
  std::vector<uint64_t> before = {0};  // bytes of all pieces before this one
  for (const PerfAuxPiece& piece : merged)
    before.push_back(before.back() + piece.end_offset - piece.begin_offset);
  ring->bytes_held = before.back();
  const auto held_before = [&](uint64_t offset) {
    const auto next = std::upper_bound(
        merged.begin(), merged.end(), offset,
        [](uint64_t at, const PerfAuxPiece& piece) { return at < piece.begin_offset; });
    if (next == merged.begin()) return uint64_t{0};
    const auto in = std::prev(next);
    return before[static_cast<size_t>(in - merged.begin())] + std::min(offset, in->end_offset) -
           in->begin_offset;
  };
  for (PerfAuxSpan& span : ring->spans)
    span.held_bytes = held_before(span.end_offset) - held_before(span.begin_offset);
}

RingHistory TraceRingsReader::HistoryOf(const PerfAuxRing& ring, bool whole_machine) const {
  RingHistory history;
  history.ring = ring.name;
  history.always_on = whole_machine;
  history.recorded_until = newest_;
  TimeNs time = 0;
  for (const PerfAuxSpan& span : ring.spans) {
    const TimeSpan when = {std::max(span.time.from, time), std::max(span.time.to, time)};
    history.head = std::max(history.head, span.end_offset);
    time = when.to;
    const std::optional<int64_t> task =
        span.tid > 0 ? std::optional<int64_t>(span.tid) : std::nullopt;
    if (span.held_bytes == span.end_offset - span.begin_offset) {
      // One of no bytes says that there was nothing to trace, unless it is told with a loss.
      if (span.held_bytes > 0 || span.flags == 0)
        history.held.push_back({when, span.begin_offset, span.end_offset, task});
    } else if (ReasonOfMissing(span) == GapReason::kOverwritten) {
      // The hole in the offsets tells of it. When what is left was written, nothing says.
      if (span.held_bytes > 0)
        history.held.push_back(
            {{when.to, when.to}, span.end_offset - span.held_bytes, span.end_offset, task});
    } else {
      history.losses.push_back({when, GapReason::kUnreadable,
                                span.end_offset - span.begin_offset - span.held_bytes,
                                AmountUnit::kBytes, task});
    }
    if ((span.flags & PERF_AUX_FLAG_TRUNCATED) != 0)
      history.losses.push_back(
          {{when.to, when.to}, GapReason::kNoRoom, 0, AmountUnit::kUnknown, task});
    if ((span.flags & (PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)) != 0)
      history.losses.push_back({when, GapReason::kNotRecorded, 0, AmountUnit::kUnknown, task});
  }
  return history;
}

}  // namespace hangscope

#include "perf/traces/span_decoder.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/bytes.h"
#include "hwtrace/auxtrace_info.h"
#include "hwtrace/trace_times.h"
#include "model/perf_format.h"

namespace hangscope {
namespace {

constexpr uint64_t kFormatRaw = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW

// Bytes of a ring's history.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
};

// Bytes that one piece of the file has.
struct Segment : Extent {
  size_t trace = 0;          // of PerfFile::aux()
  uint64_t trace_begin = 0;  // where the trace begins
};

// What the file has of the ring, by offset, each byte once.
std::vector<Segment> SegmentsOf(const PerfAuxRing& ring) {
  std::vector<Segment> all;
  for (const PerfAuxPiece& piece : ring.pieces)
    all.push_back({{piece.begin_offset, piece.end_offset}, piece.trace, piece.begin_offset});
  std::stable_sort(all.begin(), all.end(),
                   [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  std::vector<Segment> segments;
  for (Segment segment : all) {
    if (!segments.empty()) segment.begin = std::max(segment.begin, segments.back().end);
    if (segment.begin < segment.end) segments.push_back(segment);
  }
  return segments;
}

// The same, without what divides bytes that touch.
std::vector<Extent> ExtentsOf(const std::vector<Segment>& segments) {
  std::vector<Extent> extents;
  for (const Segment& segment : segments) {
    if (!extents.empty() && segment.begin == extents.back().end)
      extents.back().end = segment.end;
    else
      extents.push_back(segment);
  }
  return extents;
}

// Of the event that traces: how it was set. Others may be a PMU's, too, such as uprobes.
uint64_t TracerConfig(const PerfFile& file) {
  const auto info = ParseAuxTraceInfo(file.facts().auxtrace_info);
  for (const PerfEvent& event : file.events()) {
    if (info.ok() && event.attr.type == info->pmu_type) return event.attr.config;
  }
  return 0;
}

class RingDecoder {
 public:
  RingDecoder(PerfFile& file, const PerfAuxRing& ring, const SpanDecodeRequest& request,
              uint64_t most_bytes, InstructionTrace& trace)
      : file_(file),
        ring_(ring),
        request_(request),
        most_bytes_(most_bytes),
        trace_(trace),
        segments_(SegmentsOf(ring)),
        summaries_(ring.spans.size()) {
    options_.last_branches = request.last_branches;
    options_.most_discontinuities = request.most_discontinuities;
    const std::vector<Extent> held = ExtentsOf(segments_);
    for (const PerfAuxSpan& span : ring.spans) parts_.push_back(NewestHeld(held, span));
  }

  std::vector<std::optional<TraceSummary>> Run() {
    for (size_t span = request_.first_span; span < ring_.spans.size();) {
      size_t end = span + 1;
      if (trace_.goes_on()) {
        while (end < ring_.spans.size() && GoesOn(end)) ++end;
        DecodeStream(span, end);
      } else {
        DecodeAlone(span);
      }
      span = end;
    }
    return std::move(summaries_);
  }

 private:
  // The newest of the span's bytes that lie together; empty: there are none.
  static Extent NewestHeld(const std::vector<Extent>& held, const PerfAuxSpan& span) {
    const auto behind =
        std::lower_bound(held.begin(), held.end(), span.end_offset,
                         [](const Extent& extent, uint64_t end) { return extent.begin < end; });
    if (behind == held.begin() || std::prev(behind)->end <= span.begin_offset) return {};
    const Extent& extent = *std::prev(behind);
    return {std::max(extent.begin, span.begin_offset), std::min(extent.end, span.end_offset)};
  }

  // Whether the stream of the span before goes on in this one. Where the tracer had no room, it
  // left out what it could not write.
  bool GoesOn(size_t span) const {
    const PerfAuxSpan& before = ring_.spans[span - 1];
    const PerfAuxSpan& after = ring_.spans[span];
    if (after.restarted || (before.flags & PERF_AUX_FLAG_TRUNCATED) != 0) return false;
    return before.end_offset == after.begin_offset &&
           (before.begin_offset == before.end_offset ||
            parts_[span - 1].end == before.end_offset) &&
           (after.begin_offset == after.end_offset || parts_[span].begin == after.begin_offset);
  }

  // Bytes that the file should have all of; fewer where it cannot be read.
  std::string Read(const Extent& extent) {
    std::string bytes;
    auto segment =
        std::upper_bound(segments_.begin(), segments_.end(), extent.begin,
                         [](uint64_t offset, const Segment& one) { return offset < one.end; });
    while (bytes.size() < extent.bytes() && segment != segments_.end()) {
      const uint64_t at = extent.begin + bytes.size();
      const uint64_t most = std::min(segment->end, extent.end) - at;
      auto more = file_.ReadAux(file_.aux()[segment->trace], at - segment->trace_begin, most);
      if (!more.ok()) break;
      const bool whole = more->size() == most;
      if (bytes.empty())
        bytes = std::move(*more);
      else
        bytes += *more;
      if (!whole) break;
      ++segment;
    }
    return bytes;
  }

  ReadCode CodeOf(size_t span) const {
    return request_.code ? request_.code(ring_.spans[span], -1) : ReadCode();
  }

  // Who drained a shared sink has the bytes of others, whose code is their own.
  std::map<int, ReadCode> CodeOfOthers(size_t span) const {
    std::map<int, ReadCode> code;
    if (!request_.code) return code;
    for (const PerfTraceShare& share : ring_.spans[span].shares) {
      if (share.cpu >= 0 && share.cpu != ring_.cpu && share.bytes > 0)
        code[share.cpu] = request_.code(ring_.spans[span], share.cpu);
    }
    return code;
  }

  void DecodeAlone(size_t span) {
    Extent part = parts_[span];
    if (part.bytes() > most_bytes_) part.begin = part.end - most_bytes_;
    const std::string bytes = Read(part);
    if (bytes.empty()) return;
    options_.raw = (ring_.spans[span].flags & kFormatRaw) != 0;
    options_.read_code = CodeOf(span);
    options_.code_of_cpu = CodeOfOthers(span);
    Store(span, part.begin, trace_.Decode(bytes, options_));
  }

  // The spans from `first` to before `end`, and, to synchronise, what their stream has before them.
  void DecodeStream(size_t first, size_t end) {
    Extent left;
    for (size_t i = first; i < end; ++i) {
      if (parts_[i].bytes() == 0) continue;
      if (left.bytes() == 0) left.begin = parts_[i].begin;
      left.end = parts_[i].end;
    }
    if (left.bytes() == 0) return;
    size_t span = first;
    if (first == request_.first_span) {
      const uint64_t wanted = left.begin - std::min(left.begin, SpanDecoder::kLeadBytes);
      while (span > 0 && GoesOn(span) && left.begin > wanted)
        if (parts_[--span].bytes() > 0) left.begin = std::max(parts_[span].begin, wanted);
    }
    while (left.bytes() > 0) {
      Extent now{left.begin, std::min(left.end, left.begin + most_bytes_)};
      std::string bytes = Read(now);
      if (bytes.size() < now.bytes()) left.end = now.end = now.begin + bytes.size();
      if (bytes.empty()) return;
      if (const uint64_t cut = trace_.LastSynchronisation(bytes); now.end < left.end && cut > 0) {
        bytes.resize(cut);
        now.end = now.begin + cut;
      }
      span = DecodePiece(span, end, now, bytes);
      left.begin = now.end;
    }
  }

  // Returns the span in which the piece ends.
  size_t DecodePiece(size_t span, size_t end, const Extent& piece, const std::string& bytes) {
    std::vector<AuxPart> parts;
    std::vector<size_t> spans;
    for (; span < end && ring_.spans[span].begin_offset < piece.end; ++span) {
      const uint64_t begin = std::max(parts_[span].begin, piece.begin);
      if (begin >= std::min(parts_[span].end, piece.end)) continue;
      parts.push_back({begin - piece.begin, CodeOf(span)});
      spans.push_back(span);
    }
    std::vector<TraceSummary> decoded = trace_.DecodeParts(bytes, parts, options_);
    for (size_t i = 0; i < spans.size(); ++i)
      if (spans[i] >= request_.first_span)
        Store(spans[i], piece.begin + parts[i].begin, std::move(decoded[i]));
    return spans.empty() ? span : spans.back();
  }

  // `begin`: of the bytes, in the ring's history.
  void Store(size_t span, uint64_t begin, TraceSummary&& summary) {
    const uint64_t shift = begin - ring_.spans[span].begin_offset;
    for (Discontinuity& one : summary.discontinuities) one.offset += shift;
    for (TraceTime& one : summary.times) one.offset += shift;
    for (TraceBranch& one : summary.last_branches) {
      one.offset += shift;
      one.after += one.after == 0 ? 0 : shift;
    }
    branches_ += summary.last_branches.size();
    if (summaries_[span])
      Append(std::move(summary), &*summaries_[span]);
    else
      summaries_[span] = std::move(summary);
    for (; branches_ > request_.last_branches; --branches_) {
      while (!summaries_[oldest_] || summaries_[oldest_]->last_branches.empty()) ++oldest_;
      summaries_[oldest_]->last_branches.pop_front();
    }
  }

  // What a span has in the next piece of its stream.
  void Append(TraceSummary&& more, TraceSummary* summary) const {
    summary->bytes += more.bytes;
    summary->packets += more.packets;
    for (const auto& [kind, count] : more.packet_kinds) summary->packet_kinds[kind] += count;
    summary->atoms += more.atoms;
    summary->instructions += more.instructions;
    summary->branches += more.branches;
    summary->synchronisations += more.synchronisations;
    summary->exceptions += more.exceptions;
    summary->unconverted_times += more.unconverted_times;
    summary->more_discontinuities += more.more_discontinuities;
    for (const Discontinuity& one : more.discontinuities) {
      if (summary->discontinuities.size() < request_.most_discontinuities)
        summary->discontinuities.push_back(one);
      else
        ++summary->more_discontinuities;
    }
    summary->times.insert(summary->times.end(), more.times.begin(), more.times.end());
    summary->last_branches.insert(summary->last_branches.end(), more.last_branches.begin(),
                                  more.last_branches.end());
  }

  PerfFile& file_;
  const PerfAuxRing& ring_;
  const SpanDecodeRequest& request_;
  const uint64_t most_bytes_;
  InstructionTrace& trace_;
  const std::vector<Segment> segments_;
  TraceDecodeOptions options_;
  std::vector<Extent> parts_;  // of each span what can be decoded
  std::vector<std::optional<TraceSummary>> summaries_;
  size_t branches_ = 0;
  size_t oldest_ = 0;  // span with a branch
};

// What the kernel says of its clock does not hold of another that the records have.
bool HasOtherClock(const PerfFile& file) {
  return std::any_of(file.events().begin(), file.events().end(),
                     [](const PerfEvent& event) { return event.attr.use_clockid != 0; });
}

// What is not known is far away.
constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();
TimeSpan WidestOf(const PerfAuxSpan& span) {
  return {span.begin_known ? span.time.from : -1, span.end_known ? span.time.to : kNever};
}
}  // namespace

TimeSpan WithinOf(const TimeBounds& bounds) {
  return {bounds.from.value_or(-1), bounds.to.value_or(kNever)};
}

TimeBounds BoundsOf(const TimeSpan& within) {
  TimeBounds bounds;
  if (within.from >= 0) bounds.from = within.from;
  if (within.to != kNever) bounds.to = within.to;
  return bounds;
}

TimeBounds BoundsOfPlace(const PerfAuxSpan& span, const TraceSummary& summary, uint64_t offset,
                         int cpu) {
  return BoundsOf(TimeOfOffset(WidestOf(span), summary.times, offset, cpu));
}

TimeBounds BoundsOfBranch(const PerfAuxSpan& span, const TraceSummary& summary,
                          const TraceBranch& branch) {
  return BoundsOf(TimeOfBranch(WidestOf(span), summary.times, branch));
}

// PERF_RECORD_TIME_CONV: shift, multiplier, zero, cycles, mask; whether these hold, and whether the
// counter is short.
void SpanDecoder::Add(const PerfRecord& record) {
  constexpr size_t kFlags = 40;
  if (record.type != kPerfTimeConversion || record.body.size() < kFlags + 2) return;
  const auto word = [&](size_t at) {
    return Load64(record.body.data() + 8 * at, ByteOrder::kLittle);
  };
  const bool holds = record.body[kFlags] != 0;
  const bool is_short = record.body[kFlags + 1] != 0;
  if (!holds || word(0) >= 64 || word(1) == 0 || word(1) > UINT32_MAX) return;
  counter_ = CounterConversion{static_cast<uint16_t>(word(0)), static_cast<uint32_t>(word(1)),
                               word(2), is_short ? word(3) : 0, is_short ? word(4) : 0};
}

std::string SpanDecoder::why_no_times() const {
  if (!unconverted_times_) return {};
  const std::string begin = "time stamps of the traces are not converted: ";
  if (HasOtherClock(file_)) return begin + "the records have another clock than the kernel's own";
  if (!counter_) return begin + "the file does not say how its time follows the counter";
  return begin + "the file does not say that they count as the CPU's virtual counter does";
}

std::string NameOfTracer(const PerfFile& file) {
  for (const PerfEvent& event : file.events()) {
    const size_t slash = event.name.find('/');
    if (slash != std::string::npos && slash > 0) return event.name.substr(0, slash);
  }
  return "trace";
}

Result<std::vector<std::optional<TraceSummary>>> SpanDecoder::Decode(
    const PerfAuxRing& ring, const SpanDecodeRequest& request) {
  const std::string& info =
      request.auxtrace_info.empty() ? file_.facts().auxtrace_info : request.auxtrace_info;
  auto trace = OpenInstructionTrace(info, ring.cpu, TracerConfig(file_),
                                    HasOtherClock(file_) ? std::nullopt : counter_);
  if (!trace.ok()) return trace.status();
  RingDecoder decoder(file_, ring, request, most_bytes_, **trace);
  auto summaries = decoder.Run();
  for (size_t i = request.first_span; i < ring.spans.size(); ++i) {
    if (!summaries[i]) continue;
    left_out_ = left_out_ || summaries[i]->bytes < ring.spans[i].held_bytes;
    unconverted_times_ = unconverted_times_ || summaries[i]->unconverted_times > 0;
  }
  return summaries;
}

}  // namespace hangscope

#include "perf/traces/shared_sinks.h"

#include <algorithm>
#include <map>

#include "hwtrace/coresight_frames.h"

namespace hangscope {
namespace {

constexpr uint64_t kRawFormat = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW: no frames
constexpr uint64_t kReadBytes = 1u << 20;

// Bytes of a ring's history, where they are in the file; disjoint, by offset.
struct Part {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t trace = 0;
  uint64_t trace_begin = 0;
};

std::vector<Part> PartsOf(const PerfAuxRing& ring) {
  std::vector<Part> parts;
  for (const PerfAuxPiece& piece : ring.pieces)
    parts.push_back({piece.begin_offset, piece.end_offset, piece.trace, piece.begin_offset});
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  uint64_t end = 0;
  for (Part& part : parts) {
    part.begin = std::max(part.begin, std::min(end, part.end));
    end = std::max(end, part.end);
  }
  std::erase_if(parts, [](const Part& part) { return part.begin >= part.end; });
  return parts;
}

// The frames of the newest bytes of [begin, end) that lie together up to its end.
CoreSightFrames FramesOf(const SharedSinks::ReadBytes& read, const std::vector<Part>& parts,
                         uint64_t begin, uint64_t end) {
  CoreSightFrameReader reader;
  auto part = std::upper_bound(parts.begin(), parts.end(), begin,
                               [](uint64_t at, const Part& p) { return at < p.end; });
  uint64_t at = begin;
  for (; part != parts.end() && part->begin < end; ++part) {
    if (part->begin > at) reader = CoreSightFrameReader();
    at = std::max(at, part->begin);
    while (at < std::min(part->end, end)) {
      const uint64_t size = std::min({kReadBytes, part->end - at, end - at});
      const std::string bytes = read(part->trace, at - part->trace_begin, size);
      if (bytes.size() < size) return {};
      reader.Add(bytes);
      at += size;
    }
  }
  return at == end ? reader.frames() : CoreSightFrames();
}

bool IsCounted(const PerfAuxSpan& span) {
  return (span.flags & kRawFormat) == 0 && span.held_bytes > 0;
}

// Who ran on a CPU, by time.
using RunsOfCpu = std::map<int64_t, std::vector<TaskRun>>;

RunsOfCpu RunsByCpu(const WindowInput& input) {
  RunsOfCpu runs;
  for (const TaskRun& run : input.runs) runs[run.cpu].push_back(run);
  for (auto& [cpu, of_cpu] : runs)
    std::stable_sort(of_cpu.begin(), of_cpu.end(),
                     [](const TaskRun& a, const TaskRun& b) { return a.time.from < b.time.from; });
  return runs;
}

void SetThreads(const RunsOfCpu& runs, TimeSpan filled, PerfTraceShare* share) {
  const auto found = runs.find(share->cpu);
  if (found == runs.end()) return;
  // On one CPU runs do not overlap.
  auto run = std::lower_bound(found->second.begin(), found->second.end(), filled.from,
                              [](const TaskRun& r, TimeNs from) { return r.time.to <= from; });
  for (; run != found->second.end() && run->time.from < filled.to; ++run) {
    const int tid = static_cast<int>(run->task);
    if (share->threads.empty()) share->ran.from = std::max(run->time.from, filled.from);
    share->ran.to = std::min(run->time.to, filled.to);
    if (std::find(share->threads.begin(), share->threads.end(), tid) == share->threads.end())
      share->threads.push_back(tid);
  }
}

}  // namespace

void SharedSinks::Read(const TraceIds& ids, const std::set<int>& came, bool one_sink,
                       std::vector<PerfAuxRing>* rings) {
  if (!ids.any()) return;
  for (PerfAuxRing& ring : *rings) ReadRing(ids, &ring);
  FindSinks(ids, came, one_sink, *rings);
}

void SharedSinks::ReadRing(const TraceIds& ids, PerfAuxRing* ring) const {
  const std::vector<Part> parts = PartsOf(*ring);
  for (PerfAuxSpan& span : ring->spans) {
    if (!IsCounted(span)) continue;
    const CoreSightFrames frames = FramesOf(read_, parts, span.begin_offset, span.end_offset);
    span.sink_overwritten =
        frames.begins_with_barrier || (span.flags & PERF_AUX_FLAG_TRUNCATED) != 0;
    bool others = false;
    for (const auto& [id, of] : frames.ids) {
      if (id == 0) continue;  // padding
      const auto cpu = ids.CpuOf(id, ring->cpu);
      others = others || !cpu || *cpu != ring->cpu;
      span.shares.push_back(
          {cpu.value_or(-1), id == kUnknownTraceId ? uint8_t{0} : id, of.bytes, {}, {}});
    }
    if (!others) span.shares.clear();
    std::sort(span.shares.begin(), span.shares.end(),
              [](const PerfTraceShare& a, const PerfTraceShare& b) { return a.cpu < b.cpu; });
  }
}

// CPUs that have bytes in one span share a sink; so do those of which the kernel says it.
void SharedSinks::FindSinks(const TraceIds& ids, const std::set<int>& came, bool one_sink,
                            const std::vector<PerfAuxRing>& rings) {
  std::map<int, std::set<int>> groups;  // by any of their CPUs, until none is left to join
  const auto join = [&](const std::set<int>& cpus) {
    std::set<int> all = cpus;
    for (auto group = groups.begin(); group != groups.end();) {
      const bool meets = std::any_of(cpus.begin(), cpus.end(),
                                     [&](int cpu) { return group->second.contains(cpu); });
      if (meets) all.insert(group->second.begin(), group->second.end());
      group = meets ? groups.erase(group) : std::next(group);
    }
    groups[*all.begin()] = all;
  };
  for (const PerfAuxRing& ring : rings) {
    if (ring.name.kind != RingKind::kCpu || ring.bytes_told == 0) continue;
    for (const PerfAuxSpan& span : ring.spans) {
      std::set<int> cpus;
      for (const PerfTraceShare& share : span.shares) {
        if (share.cpu >= 0 && share.cpu != ring.cpu) cpus.insert(share.cpu);
      }
      if (cpus.empty()) continue;
      cpus.insert(ring.cpu);
      join(cpus);
    }
  }
  const auto has_spans = [&](int cpu) {
    return std::any_of(rings.begin(), rings.end(), [&](const PerfAuxRing& ring) {
      return ring.cpu == cpu && ring.bytes_told > 0;
    });
  };
  if (one_sink) {
    std::set<int> all;
    for (const int cpu : ids.cpus()) {
      if (came.contains(cpu) || has_spans(cpu)) all.insert(cpu);
    }
    if (all.size() > 1 && std::any_of(all.begin(), all.end(), has_spans)) join(all);
  }
  if (groups.empty()) return;
  std::set<int> alone;  // traced, and not one byte of theirs says through which sink
  for (const int cpu : ids.cpus()) {
    const auto sink = ids.SinkOf(cpu);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return sink && ids.SinkOf(*group.second.begin()) == sink;
    });
    if (same != groups.end())
      same->second.insert(cpu);
    else if (!sink && !has_spans(cpu) && came.contains(cpu))
      alone.insert(cpu);
  }
  if (groups.size() == 1) groups.begin()->second.insert(alone.begin(), alone.end());
  for (auto& [first, cpus] : groups) {
    Sink sink{std::move(cpus), {}};
    for (size_t r = 0; r < rings.size(); ++r) {
      if (!sink.cpus.contains(rings[r].cpu)) continue;
      for (size_t s = 0; s < rings[r].spans.size(); ++s) sink.drains.push_back({r, s});
    }
    std::stable_sort(sink.drains.begin(), sink.drains.end(), [&](const Place& a, const Place& b) {
      return rings[a.ring].spans[a.span].time.to < rings[b.ring].spans[b.span].time.to;
    });
    sinks_.push_back(std::move(sink));
  }
}

bool SharedSinks::Has(int cpu) const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [&](const Sink& sink) { return sink.cpus.contains(cpu); });
}

namespace {

SinkDrain DrainOf(const PerfAuxRing& ring, const PerfAuxSpan& span, uint64_t begin_offset) {
  const uint64_t bytes = span.end_offset - span.begin_offset;
  SinkDrain drain;
  drain.time = span.time.to;
  drain.begin_offset = begin_offset;
  drain.end_offset = begin_offset + bytes;
  drain.overwritten = span.sink_overwritten || (span.flags & PERF_AUX_FLAG_TRUNCATED) != 0;
  drain.partial = (span.flags & (PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)) != 0;
  drain.missing_bytes = bytes - span.held_bytes;
  if (drain.missing_bytes > 0) drain.missing_reason = ReasonOfMissing(span);
  for (const PerfTraceShare& share : span.shares) {
    if (share.cpu >= 0) drain.shares.push_back({share.cpu, share.bytes});
  }
  if (span.shares.empty() && span.held_bytes > 0)
    drain.shares.push_back({ring.cpu, span.held_bytes});
  return drain;
}

}  // namespace

DrainedSink SharedSinks::Drained(const Sink& sink, const std::vector<PerfAuxRing>& rings) const {
  DrainedSink drained;
  drained.what = tracer_;
  drained.cpus.insert(sink.cpus.begin(), sink.cpus.end());
  std::map<size_t, uint64_t> heads;  // of the carriers' areas, so far
  std::map<size_t, TimeNs> last;
  uint64_t total = 0;
  for (const PerfAuxRing& ring : rings) {
    const bool no_drain_left = ring.spans.empty() && !ring.pieces.empty();
    if (no_drain_left && sink.cpus.contains(ring.cpu)) total += ring.pieces.back().end_offset;
  }
  for (const Place& place : sink.drains) {
    const uint64_t first = rings[place.ring].spans[place.span].begin_offset;
    if (heads.try_emplace(place.ring, first).second) total += first;
  }
  for (const Place& place : sink.drains) {
    const PerfAuxRing& ring = rings[place.ring];
    const PerfAuxSpan& span = ring.spans[place.span];
    const uint64_t missing_before =
        span.begin_offset - std::min(span.begin_offset, heads[place.ring]);
    heads[place.ring] = std::max(heads[place.ring], span.end_offset);
    total += missing_before;
    drained.drains.push_back(DrainOf(ring, span, total));
    if (missing_before > 0) drained.drains.back().drains_missing_since = last[place.ring];
    last[place.ring] = span.time.to;
    total = drained.drains.back().end_offset;
  }
  return drained;
}

void SharedSinks::AddTo(bool whole_machine, TimeNs recorded_until, std::vector<PerfAuxRing>* rings,
                        WindowInput* input) const {
  if (sinks_.empty()) return;
  const RunsOfCpu runs = RunsByCpu(*input);
  for (const Sink& sink : sinks_) {
    DrainedSink drained = Drained(sink, *rings);
    drained.sink = {RingKind::kSink, static_cast<int64_t>(input->sinks.size()), tracer_};
    drained.recorded_until = recorded_until;
    drained.always_on = whole_machine;
    const std::vector<DrainTimes> times = AddSinkRings(drained, input);
    for (size_t i = 0; i < sink.drains.size(); ++i) {
      PerfAuxSpan& span = (*rings)[sink.drains[i].ring].spans[sink.drains[i].span];
      for (PerfTraceShare& share : span.shares) SetThreads(runs, times[i].filled, &share);
      // Of those who ran and have nothing, all is lost.
      for (const int cpu : sink.cpus) {
        PerfTraceShare none;
        none.cpu = cpu;
        SetThreads(runs, times[i].filled, &none);
        const bool has = std::any_of(span.shares.begin(), span.shares.end(),
                                     [&](const PerfTraceShare& share) { return share.cpu == cpu; });
        if (!has && !none.threads.empty() && !span.shares.empty()) span.shares.push_back(none);
      }
      std::stable_sort(
          span.shares.begin(), span.shares.end(),
          [](const PerfTraceShare& a, const PerfTraceShare& b) { return a.cpu < b.cpu; });
    }
  }
}

}  // namespace hangscope

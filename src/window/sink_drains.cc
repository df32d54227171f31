#include "window/sink_drains.h"

#include <algorithm>
#include <map>

#include "window/spans.h"

namespace hangscope {
namespace {

// The runs on each of the sink's CPUs.
class RunsOfSink {
 public:
  RunsOfSink(const DrainedSink& sink, const WindowInput& input)
      // Where everybody is traced, no run ends it.
      : known_since_(sink.always_on ? std::nullopt : input.runs_known_since) {
    std::map<int64_t, std::vector<TimeSpan>> by_cpu;
    for (const TaskRun& run : input.runs) {
      if (sink.cpus.contains(run.cpu)) by_cpu[run.cpu].push_back(run.time);
    }
    for (auto& [cpu, runs] : by_cpu) {
      by_cpu_[cpu] = MakeSpans(std::move(runs));
      anybody_ = Union(anybody_, by_cpu_[cpu]);
      if (!by_cpu_[cpu].empty())
        first_ = std::min(first_.value_or(kEndOfTime), by_cpu_[cpu].front().from);
    }
  }

  std::optional<TimeNs> first() const { return first_; }
  bool KnowsAllIn(TimeSpan span) const { return known_since_ && *known_since_ <= span.from; }
  std::vector<TimeSpan> In(int64_t cpu, TimeSpan span) const {
    std::vector<TimeSpan> inside;
    const auto found = by_cpu_.find(cpu);
    if (found == by_cpu_.end()) return inside;
    auto run = std::lower_bound(found->second.begin(), found->second.end(), span.from,
                                [](const TimeSpan& r, TimeNs from) { return r.to <= from; });
    for (; run != found->second.end() && run->from < span.to; ++run)
      inside.push_back(Clip(*run, span));
    return inside;
  }
  // Since when some CPU was traced at any time until the last of them stopped, at `drained`.
  TimeNs Began(TimeNs drained) const {
    auto busy = std::lower_bound(anybody_.begin(), anybody_.end(), drained,
                                 [](const TimeSpan& span, TimeNs to) { return span.from < to; });
    if (busy == anybody_.begin()) return drained;
    --busy;
    return KnowsAllIn(*busy) ? busy->from : drained;
  }
  // When the CPU's last byte in a drain was written, at the latest.
  TimeNs LastByte(int64_t cpu, TimeSpan filled) const {
    if (!KnowsAllIn(filled)) return filled.to;
    const std::vector<TimeSpan> runs = In(cpu, filled);
    return runs.empty() ? filled.to : runs.back().to;
  }

 private:
  const std::optional<TimeNs> known_since_;
  std::map<int64_t, Spans> by_cpu_;
  Spans anybody_;
  std::optional<TimeNs> first_;
};

DrainTimes TimesOf(const DrainedSink& sink, size_t number, const RunsOfSink& runs) {
  const SinkDrain& drain = sink.drains[number];
  const SinkDrain* const last = number > 0 ? &sink.drains[number - 1] : nullptr;
  DrainTimes times{{drain.time, drain.time}, drain.time};
  if (last != nullptr && last->end_offset == drain.begin_offset)
    times.filled.from = last->time;
  else if (last == nullptr && drain.begin_offset == 0)
    times.filled.from = runs.first().value_or(drain.time);
  else
    times.filled.from =
        std::max(runs.Began(drain.time), last == nullptr ? kBeginOfTime : last->time);
  times.filled.from = std::min(times.filled.from, drain.time);
  if (!drain.overwritten && drain.missing_bytes == 0) {
    times.complete_since = times.filled.from;
    return times;
  }
  for (const SinkDrain::Share& share : drain.shares)
    times.complete_since = std::min(times.complete_since, runs.LastByte(share.cpu, times.filled));
  return times;
}

class SinkRingMaker {
 public:
  SinkRingMaker(const DrainedSink& sink, const RunsOfSink& runs, size_t number)
      : sink_(sink), runs_(runs), number_(number) {
    for (size_t i = 0; i < sink.drains.size(); ++i) times_.push_back(TimesOf(sink, i, runs));
  }

  const std::vector<DrainTimes>& times() const { return times_; }
  RingHistory Make(int64_t cpu) const {
    RingHistory ring;
    ring.ring = {RingKind::kCpu, cpu, sink_.what};
    ring.sink = number_;
    ring.counts_sink = true;
    ring.always_on = sink_.always_on;
    ring.recorded_until = sink_.recorded_until;
    ring.recording_since = runs_.first().value_or(0);
    for (size_t i = 0; i < sink_.drains.size(); ++i) AddDrain(i, cpu, &ring);
    return ring;
  }

 private:
  void AddDrain(size_t i, int64_t cpu, RingHistory* ring) const {
    const SinkDrain& drain = sink_.drains[i];
    const uint64_t drained = drain.end_offset - drain.begin_offset;
    const uint64_t held = drained - std::min(drained, drain.missing_bytes);
    uint64_t own = 0;
    for (const SinkDrain::Share& share : drain.shares) own += share.cpu == cpu ? share.bytes : 0;
    // Of one who has nothing in a sink that lost something, nobody knows that it wrote nothing.
    const bool complete = !drain.overwritten && drain.missing_bytes == 0;
    const TimeNs since = complete || own > 0 ? times_[i].complete_since : drain.time;
    ring->head = std::max(ring->head, drain.end_offset);
    if (held > 0 || drain.missing_bytes == 0)
      ring->held.push_back({{since, drain.time},
                            drain.end_offset - held,
                            drain.end_offset,
                            {},
                            held - std::min(held, own)});
    if (drain.missing_bytes > 0)
      Lose({times_[i].filled.from, since}, drain.missing_reason, cpu, ring);
    if (drain.drains_missing_since)
      Lose({*drain.drains_missing_since, times_[i].filled.from}, GapReason::kUnreadable, cpu, ring);
    if (drain.partial) Lose({since, drain.time}, GapReason::kNotRecorded, cpu, ring);
  }

  // Only what ran there may be missing.
  void Lose(TimeSpan span, GapReason reason, int64_t cpu, RingHistory* ring) const {
    if (span.from >= span.to) return;
    for (const TimeSpan& part :
         runs_.KnowsAllIn(span) ? runs_.In(cpu, span) : std::vector<TimeSpan>{span})
      ring->losses.push_back({part, reason, 0, AmountUnit::kUnknown, {}});
  }

  const DrainedSink& sink_;
  const RunsOfSink& runs_;
  const size_t number_;
  std::vector<DrainTimes> times_;
};

}  // namespace

std::vector<DrainTimes> AddSinkRings(const DrainedSink& sink, WindowInput* input) {
  const RunsOfSink runs(sink, *input);
  const SinkRingMaker maker(sink, runs, input->sinks.size());
  for (const int64_t cpu : sink.cpus) input->rings.push_back(maker.Make(cpu));
  input->sinks.push_back({sink.sink, sink.capacity_bytes, {}});
  return maker.times();
}

}  // namespace hangscope

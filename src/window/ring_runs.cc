#include "window/ring_runs.h"

#include <algorithm>

namespace hangscope {
namespace {

// Since when all that was written to a sink, and not drained, is still in it.
TimeNs CompleteSince(const WindowInput& input, size_t number) {
  const SinkHistory& sink = input.sinks[number];
  uint64_t bytes = 0;
  TimeNs oldest = kEndOfTime;
  for (const auto& rest : sink.rest) {
    bytes += std::min(rest.bytes, UINT64_MAX - bytes);
    oldest = std::min(oldest, InTime(rest.time.from));
  }
  const bool may_have_wrapped =
      !sink.rest.empty() && (sink.capacity_bytes == 0 || bytes >= sink.capacity_bytes);
  if (may_have_wrapped) {
    // The oldest comes first; where it does not, nobody knows what was overwritten. Of the same
    // instant some may be.
    return InTime(sink.rest.front().time.from) == oldest ? std::min(oldest + 1, kEndOfTime)
                                                         : kEndOfTime;
  }
  // Nothing was overwritten since it was emptied last.
  TimeNs emptied = kBeginOfTime;
  for (const RingHistory& ring : input.rings) {
    if (ring.sink != number) continue;
    for (const HeldSpan& span : ring.held) emptied = std::max(emptied, InTime(span.time.to));
    // Of what is not held any more nobody knows when it was drained.
    const uint64_t held_to = ring.held.empty() ? 0 : ring.held.back().end_offset;
    if (ring.head != held_to) emptied = std::max(emptied, InTime(ring.recorded_until));
  }
  return emptied;
}

// Above so many on one sink, others are taken to write to it all the time.
constexpr size_t kManyRings = 64;

// When other rings than `number` may have written to the sink that these use.
Spans TimesOfOthers(const WindowInput& input, const RunIndex& runs,
                    const std::vector<size_t>& users, size_t number) {
  const Spans always{{kBeginOfTime, kEndOfTime}};
  if (users.size() > kManyRings) return always;
  Spans times;
  for (const size_t user : users) {
    if (user == number) continue;
    const RunsOfRing of_user = runs.RunsOf(input.rings[user]);
    if (input.rings[user].always_on || !of_user.known_since) return always;
    times = Union(times, of_user.ran);
    times = Union(times, MakeSpans({{kBeginOfTime, *of_user.known_since}}));
  }
  return times;
}

}  // namespace

RunIndex::RunIndex(const WindowInput& input, TimeNs until) {
  std::optional<TimeNs> first;
  for (const TaskRun& run : input.runs) {
    const TimeSpan time{InTime(run.time.from), InTime(run.time.to)};
    if (time.from > time.to) continue;
    by_cpu_[run.cpu].push_back({run.task, time});
    by_task_[run.task].push_back({run.task, time});
    if (!first || time.from < *first) first = time.from;
  }
  const auto by_begin = [](const Run& a, const Run& b) { return a.time.from < b.time.from; };
  for (auto& [cpu, runs] : by_cpu_) std::sort(runs.begin(), runs.end(), by_begin);
  for (auto& [task, runs] : by_task_) std::sort(runs.begin(), runs.end(), by_begin);
  trusted_ = input.runs_known_since.has_value();
  known_since_ = trusted_ ? InTime(*input.runs_known_since) : first;
  if (known_since_ && *known_since_ > until) known_since_.reset();
}

const std::vector<RunIndex::Run>* RunIndex::Find(const RingHistory& ring) const {
  const bool has_runs = ring.ring.kind == RingKind::kThread || ring.ring.kind == RingKind::kCpu;
  if (!has_runs) return nullptr;
  const auto& runs = ring.ring.kind == RingKind::kThread ? by_task_ : by_cpu_;
  const auto found = runs.find(ring.ring.number);
  return found == runs.end() ? nullptr : &found->second;
}

RunsOfRing RunIndex::RunsOf(const RingHistory& ring) const {
  RunsOfRing runs{{}, known_since_, trusted_};
  if (const auto* found = Find(ring)) {
    std::vector<TimeSpan> times;
    for (const Run& run : *found) times.push_back(run.time);
    runs.ran = MakeSpans(std::move(times));
  }
  return runs;
}

std::optional<int64_t> RunIndex::OnlyTask(const RingHistory& ring, TimeSpan span) const {
  const auto* found = Find(ring);
  if (found == nullptr) return {};
  // On one CPU runs do not overlap: the one before the first that begins inside is all that may
  // reach into it.
  auto run = std::lower_bound(found->begin(), found->end(), span.from,
                              [](const Run& r, TimeNs from) { return r.time.from < from; });
  if (run != found->begin() && std::prev(run)->time.to > span.from) --run;
  const bool all_recorded = !ring.always_on || ring.ring.kind == RingKind::kThread;
  std::optional<int64_t> only;
  for (; run != found->end() && (run->time.from < span.to || run->time.from == span.from); ++run) {
    if (only && *only != run->task) return {};
    // Where anybody is recorded, somebody else may have run beside it.
    if (!all_recorded && (run->time.from > span.from || run->time.to < span.to)) return {};
    only = run->task;
  }
  return only;
}

std::vector<std::optional<SinkOfRing>> FindSinks(const WindowInput& input, const RunIndex& runs) {
  std::vector<std::vector<size_t>> users(input.sinks.size());
  for (size_t i = 0; i < input.rings.size(); ++i) {
    const auto sink = input.rings[i].sink;
    if (sink && *sink < users.size()) users[*sink].push_back(i);
  }
  std::vector<std::optional<SinkOfRing>> sinks(input.rings.size());
  for (size_t i = 0; i < input.rings.size(); ++i) {
    // Of a sink that is not described nothing is known.
    if (input.rings[i].sink) sinks[i] = SinkOfRing{{}, {{kBeginOfTime, kEndOfTime}}, kEndOfTime};
  }
  for (size_t s = 0; s < input.sinks.size(); ++s) {
    const TimeNs complete = CompleteSince(input, s);
    for (const size_t ring : users[s])
      sinks[ring] = SinkOfRing{{}, TimesOfOthers(input, runs, users[s], ring), complete};
    for (const auto& rest : input.sinks[s].rest) {
      if (rest.ring >= sinks.size() || input.rings[rest.ring].sink != s) continue;
      RingPiece piece;
      piece.time = rest.time;
      piece.bytes = rest.bytes;
      piece.in_ring = false;
      sinks[rest.ring]->rest.push_back(piece);
    }
  }
  return sinks;
}

}  // namespace hangscope

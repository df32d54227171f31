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

// It records only while somebody runs, so it matters who ran.
bool FollowsRuns(const RingHistory& ring) {
  return !ring.always_on || ring.ring.kind == RingKind::kThread;
}

bool BeginsBefore(const TaskRun* a, const TaskRun* b) {
  return InTime(a->time.from) < InTime(b->time.from);
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

RunIndex::RunIndex(const WindowInput& input, TimeNs until) : input_(input) {
  std::optional<TimeNs> first;
  for (const TaskRun& run : input.runs) {
    const TimeSpan time = InTime(run.time);
    if (time.from <= time.to && (!first || time.from < *first)) first = time.from;
  }
  trusted_ = input.runs_known_since.has_value();
  known_since_ = trusted_ ? InTime(*input.runs_known_since) : first;
  if (known_since_ && *known_since_ > until) known_since_.reset();
}

RunIndex::ByRing RunIndex::Sort() const {
  ByRing sorted;
  for (const RingHistory& ring : input_.rings) {
    if (ring.ring.kind == RingKind::kCpu) sorted.of_cpu[ring.ring.number];
    if (ring.ring.kind == RingKind::kThread) sorted.of_task[ring.ring.number];
  }
  const auto add = [](const TaskRun& run, int64_t number, std::map<int64_t, Runs>* to) {
    if (const auto found = to->find(number); found != to->end()) found->second.push_back(&run);
  };
  for (const TaskRun& run : input_.runs) {
    if (InTime(run.time.from) > InTime(run.time.to)) continue;
    add(run, run.cpu, &sorted.of_cpu);
    add(run, run.task, &sorted.of_task);
  }
  for (auto* const all : {&sorted.of_cpu, &sorted.of_task}) {
    for (auto& [number, runs] : *all) {
      if (!std::is_sorted(runs.begin(), runs.end(), BeginsBefore))
        std::stable_sort(runs.begin(), runs.end(), BeginsBefore);
    }
  }
  return sorted;
}

const RunIndex::Runs* RunIndex::Find(const RingHistory& ring) const {
  const bool has_runs = ring.ring.kind == RingKind::kThread || ring.ring.kind == RingKind::kCpu;
  if (!has_runs) return nullptr;
  if (!by_ring_) by_ring_ = Sort();
  const auto& runs = ring.ring.kind == RingKind::kThread ? by_ring_->of_task : by_ring_->of_cpu;
  const auto found = runs.find(ring.ring.number);
  return found == runs.end() ? nullptr : &found->second;
}

RunsOfRing RunIndex::RunsOf(const RingHistory& ring) const {
  RunsOfRing runs{{}, known_since_, trusted_};
  const Runs* const found = FollowsRuns(ring) ? Find(ring) : nullptr;
  if (found == nullptr) return runs;
  std::vector<TimeSpan> times;
  times.reserve(found->size());
  for (const TaskRun* const run : *found) times.push_back(InTime(run->time));
  runs.ran = MakeSpans(std::move(times));
  return runs;
}

std::optional<int64_t> RunIndex::OnlyTask(const RingHistory& ring, TimeSpan span) const {
  const auto* found = Find(ring);
  if (found == nullptr) return {};
  // On one CPU runs do not overlap: the one before the first that begins inside is all that may
  // reach into it.
  auto run =
      std::lower_bound(found->begin(), found->end(), span.from,
                       [](const TaskRun* r, TimeNs from) { return InTime(r->time.from) < from; });
  if (run != found->begin() && InTime((*std::prev(run))->time.to) > span.from) --run;
  std::optional<int64_t> only;
  for (; run != found->end(); ++run) {
    const TimeSpan time = InTime((*run)->time);
    if (time.from >= span.to && time.from != span.from) break;
    if (only && *only != (*run)->task) return {};
    // Where anybody is recorded, somebody else may have run beside it.
    if (!FollowsRuns(ring) && (time.from > span.from || time.to < span.to)) return {};
    only = (*run)->task;
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

#include "stream/core_track.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "stream/function_tracker.h"
#include "stream/loop_body.h"

namespace hangscope {
namespace {

constexpr size_t kMostPlaces = 50'000;
constexpr size_t kMostLeftLoops = 1000;

uint64_t LowestPlace(const CoreFinding& loop) {
  return *std::min_element(loop.loop.begin(), loop.loop.end());
}

bool SameLoop(const CoreFinding& a, const CoreFinding& b) {
  return a.IsLoop() && b.IsLoop() && a.loop_places == b.loop_places;
}

bool IsWithin(const std::unordered_set<uint64_t>& inner, const std::unordered_set<uint64_t>& outer,
              const std::unordered_set<uint64_t>& also = {}) {
  return std::all_of(inner.begin(), inner.end(), [&](uint64_t item) {
    return outer.count(item) != 0 || also.count(item) != 0;
  });
}

// Whether `path` is a stretch of the endless repetition of `loop`, begun anywhere.
bool GoesRound(const std::vector<uint64_t>& path, const std::vector<uint64_t>& loop) {
  std::vector<uint64_t> rounds;
  while (rounds.size() < path.size() + loop.size())
    rounds.insert(rounds.end(), loop.begin(), loop.end());
  const std::boyer_moore_searcher stretch(path.begin(), path.end());
  return std::search(rounds.begin(), rounds.end(), stretch) != rounds.end();
}

// Whether a sample that shows a loop that computes shows only a part of one round of the known
// one, as of a delay between two looks at a word: it was too short for three rounds.
bool IsPartOfRound(const CoreFinding& known, const CoreFinding& sample) {
  const size_t steps = sample.path.size();
  return steps != 0 && steps < 3 * known.loop.size() && GoesRound(sample.path, known.loop);
}

// Whether a sample in which no loop was found shows nothing but the known one:
// it was too short for a round, or a line of it was out of place.
bool StaysInside(const CoreFinding& known, const CoreFinding& sample) {
  if (!known.IsLoop()) return false;
  if (sample.motion == CoreFinding::Motion::kComputing && !IsPartOfRound(known, sample))
    return false;
  if (sample.IsLoop() && sample.loop.size() >= known.loop.size()) return false;
  if (!IsWithin(sample.seen_places, known.loop_places, known.trap_places)) return false;
  const bool in_handler = !IsWithin(sample.seen_places, known.loop_places);
  return known.loop_states.empty() || in_handler || IsWithin(sample.seen_states, known.loop_states);
}

// The same lines in the same way: one that repeats exactly is another than one whose
// values change, and than one with other values.
bool SameLogLoop(const CoreFinding& a, const CoreFinding& b) {
  return SameLoop(a, b) && a.motion == b.motion && a.loop_states == b.loop_states;
}

}  // namespace

const CoreTrack::LeftLoop* CoreTrack::LeftBefore() const {
  const auto at = finding.IsLoop() ? left_loops.find(LowestPlace(finding)) : left_loops.end();
  return at == left_loops.end() ? nullptr : &at->second;
}

void CoreTrack::NotePlaces(const CoreFinding& sample, TimeNs now) {
  const size_t before = places.size();
  places.insert(sample.seen_places.begin(), sample.seen_places.end());
  if (places.size() > kMostPlaces) places = sample.seen_places;
  if (places.size() != before) places_since = now;
}

void CoreTrack::FallSilent() {
  if (!finding.IsLoop()) return;
  silenced_ = {finding, loop_since, found_at};
  finding.motion = CoreFinding::Motion::kMoving;
}

void CoreTrack::Update(CoreFinding sample, TimeNs now) {
  NotePlaces(sample, now);
  if (sample.IsLoop() && sample.loop_places == computing_loop)
    sample.motion = CoreFinding::Motion::kComputing;
  if (silenced_ &&
      (StaysInside(silenced_->finding, sample) || SameLoop(silenced_->finding, sample))) {
    finding = std::move(silenced_->finding);
    loop_since = silenced_->loop_since;
    found_at = silenced_->found_at;
  }
  silenced_.reset();
  if (StaysInside(finding, sample)) {
    finding.last = sample.last;
    return;
  }
  if (SameLoop(finding, sample)) {
    sample.trap_places.insert(finding.trap_places.begin(), finding.trap_places.end());
    sample.loop_states.insert(finding.loop_states.begin(), finding.loop_states.end());
    sample.traps += finding.traps;
    if (finding.polls_known && !sample.polls_known) {
      sample.polls = finding.polls;
      sample.polls_known = true;
    }
    sample.handler_writes_polls = finding.handler_writes_polls;
  } else {
    if (finding.motion == CoreFinding::Motion::kSpinning && left_loops.size() < kMostLeftLoops &&
        !IsWithin(sample.seen_places, finding.loop_places, finding.trap_places)) {
      LeftLoop& left = left_loops[LowestPlace(finding)];
      ++left.times;
      left.longest = std::max(left.longest, now - loop_since);
    }
    loop_since = found_at = now;
    callers.clear();
  }
  finding = std::move(sample);
}

void CoreTrack::UpdateLog(CoreFinding sample, TimeNs began, TimeNs now) {
  NotePlaces(sample, now);
  // Too few lines for three rounds of a loop that a longer look had found.
  if (!sample.IsLoop() && sample.steps < 3 * finding.loop.size() && StaysInside(finding, sample)) {
    finding.last = sample.last;
    return;
  }
  if (SameLogLoop(finding, sample)) {
    if (sample.loop.size() == finding.loop.size()) sample.loop = finding.loop;
    sample.came_before |= finding.came_before;
    loop_since = std::min(loop_since, began);
  } else {
    if (finding.motion == CoreFinding::Motion::kSpinning)
      longest_loop = std::max(longest_loop, now - loop_since);
    loop_since = sample.IsLoop() ? began : now;
    found_at = now;
  }
  finding = std::move(sample);
}

// From the entry on through the loop to its head, where the core is said to be.
void CoreTrack::FindCallers(const CoreProof& proof, ProgramCode& code) {
  callers.clear();
  if (proof.lead_in.empty() || !code.has_elf()) return;
  FunctionTracker tracker(
      code, [](const TrackedFunction&, uint64_t) {}, [] {});
  for (const Step& step : proof.lead_in) {
    if (!finding.IsLoop() && step.offset > finding.last.offset) break;  // of a trap
    tracker.Take(step);
  }
  if (finding.IsLoop()) {
    if (!proof.entered_at) return;
    const std::vector<uint64_t>& loop = finding.loop;
    auto at = std::find(loop.begin(), loop.end(), *proof.entered_at);
    for (; at != loop.end(); ++at) tracker.Take({*at, 0, 0, false, finding.last.starts_block});
    tracker.Take({loop.front(), 0, 0, false, finding.last.starts_block});
  }
  for (const uint64_t site : tracker.CallSites()) {
    if (callers.size() == kMostCallers) break;
    callers.push_back(code.PlaceOf(site));
  }
}

void CoreTrack::FindPolls(const std::vector<Step>& lead_in, ProgramCode& code) {
  if (finding.motion != CoreFinding::Motion::kSpinning || finding.basis != LoopBasis::kBody) return;
  std::vector<Step> round;
  for (const uint64_t pc : finding.loop)
    round.push_back({pc, 0, 0, false, finding.last.starts_block});
  const LoopBody body = ExamineLoopBody(round, code, lead_in);
  if (body.kind == LoopBody::Kind::kComputes) {
    finding.motion = CoreFinding::Motion::kComputing;
    computing_loop = finding.loop_places;
    return;
  }
  if (body.kind != LoopBody::Kind::kSpins) return;
  if (body.polls_known) {
    finding.polls = body.polls;
    finding.polls_known = true;
  }
  std::vector<Step> handlers;
  for (const uint64_t pc : finding.trap_places) handlers.push_back({pc, 0, 0, false, true});
  for (const uint64_t stored : StoredAddresses(handlers, code)) {
    if (std::find(finding.polls.begin(), finding.polls.end(), stored) != finding.polls.end())
      finding.handler_writes_polls = true;
  }
}

}  // namespace hangscope

#include "stream/log_analysis.h"

#include <optional>
#include <vector>

#include "stream/loop_finder.h"

namespace hangscope {
namespace {

constexpr size_t kFewestLogSteps = 3;
constexpr int kStintsOfAHeartbeat = 3;

std::vector<uint64_t> Tokens(std::span<const Step> steps, bool with_values) {
  std::vector<uint64_t> tokens;
  tokens.reserve(steps.size());
  for (const Step& step : steps) tokens.push_back(with_values ? StateOf(step) : step.pc);
  return tokens;
}

// How often the places of a loop came, one or several in a row, among other ones.
int Stints(std::span<const Step> steps, const std::unordered_set<uint64_t>& places) {
  int stints = 0;
  bool inside = false;
  for (const Step& step : steps) {
    const bool mine = places.count(step.pc) != 0;
    if (inside && !mine) ++stints;
    inside = mine;
  }
  return stints;
}

}  // namespace

CoreFinding AnalyzeLog(std::span<const Step> steps, uint64_t old_offset) {
  CoreFinding finding;
  finding.steps = steps.size();
  if (steps.empty()) return finding;
  finding.last = steps.back();
  for (const Step& step : steps) finding.seen_places.insert(step.pc);
  if (steps.size() < kFewestLogSteps) return finding;

  finding.motion = CoreFinding::Motion::kMoving;
  const auto begin_of = [&](const Period& period) { return steps.size() - period.covered; };
  const auto is_old = [&](const std::optional<Period>& period) {
    return period && (begin_of(*period) == 0 || steps[begin_of(*period)].offset < old_offset);
  };
  const bool has_values = steps.back().has_values;
  const auto states = FindPeriod(Tokens(steps, true));
  const auto places = has_values ? FindPeriod(Tokens(steps, false)) : states;
  const bool exact = states && (is_old(states) || !is_old(places));
  const std::optional<Period>& period = exact ? states : places;
  if (!period) return finding;

  const size_t begin = begin_of(*period);
  finding.loop_begin = steps[begin].offset;
  for (const Step& step : steps.subspan(begin, period->length)) {
    finding.loop.push_back(step.pc);
    finding.loop_places.insert(step.pc);
    if (exact && has_values) finding.loop_states.insert(StateOf(step));
  }
  const bool long_round = has_values && finding.loop_places.size() > kMostLinesInLoop;
  finding.motion =
      exact && !long_round ? CoreFinding::Motion::kSpinning : CoreFinding::Motion::kRepeating;
  finding.basis = exact && has_values ? LoopBasis::kLines : LoopBasis::kPlaces;
  finding.came_before = Stints(steps.first(begin), finding.loop_places) >= kStintsOfAHeartbeat;
  return finding;
}

}  // namespace hangscope

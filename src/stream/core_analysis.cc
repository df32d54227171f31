#include "stream/core_analysis.h"

#include <algorithm>

#include "base/hash.h"
#include "stream/loop_body.h"
#include "stream/loop_finder.h"

namespace hangscope {
namespace {

constexpr size_t kFewestSteps = 6;
constexpr size_t kShortTrap = 64;  // steps
constexpr size_t kLongestPath = 4096;

// Takes interrupts and exceptions out of a core's steps: an excursion begins
// where control got to without any code leading there, and ends with the return
// from the trap.
class TrapRemover {
 public:
  TrapRemover(std::span<const Step> steps, ProgramCode& code) : steps_(steps), code_(code) {
    ends_.reserve(steps.size());
    for (const Step& step : steps) ends_.push_back(code.EndOf(step));
    for (size_t i = 1; i < steps.size(); ++i) {
      if (!ends_[i - 1].MayLeadTo(steps[i].pc)) entries_.insert(steps[i].pc);
    }
  }

  std::vector<Step> Run(CoreFinding* finding) {
    std::vector<bool> inside(steps_.size(), false);
    std::vector<size_t> open;  // starts of nested excursions
    size_t longest = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (IsEntry(i)) open.push_back(i);
      if (ends_[i].kind != StepEnd::Kind::kReturnFromTrap) continue;
      // A return without an entry: the stretch begins inside a handler.
      const size_t from = open.empty() ? 0 : open.back();
      if (!open.empty()) open.pop_back();
      std::fill(inside.begin() + from, inside.begin() + i + 1, true);
      longest = std::max(longest, i + 1 - from);
      ++finding->traps;
    }
    // One that is still open at the end is an excursion if it is short, or not
    // much longer than those that returned; else the core hangs in there.
    if (!open.empty() && steps_.size() - open.front() <= std::max(4 * longest, kShortTrap)) {
      std::fill(inside.begin() + open.front(), inside.end(), true);
    }
    std::vector<Step> rest;
    rest.reserve(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (inside[i]) {
        finding->trap_places.insert(steps_[i].pc);
      } else {
        rest.push_back(steps_[i]);
      }
    }
    return rest;
  }

 private:
  bool IsEntry(size_t i) const {
    if (i == 0 || entries_.count(steps_[i].pc) == 0) return false;
    const auto before = ends_[i - 1].kind;
    return before == StepEnd::Kind::kIndirect || before == StepEnd::Kind::kUnknown ||
           !ends_[i - 1].MayLeadTo(steps_[i].pc);
  }

  std::span<const Step> steps_;
  ProgramCode& code_;
  std::vector<StepEnd> ends_;
  std::unordered_set<uint64_t> entries_;
};

// The place where the loop lives: in the function that is not called from
// within the loop, the lowest address.
size_t HeadOf(const std::vector<uint64_t>& loop, ProgramCode& code) {
  std::unordered_set<uint64_t> entered;  // functions that a place of the loop begins
  for (const uint64_t pc : loop) {
    if (code.Locate(pc).function_begin == pc) entered.insert(pc);
  }
  size_t best = 0;
  bool best_called = true;
  for (size_t i = 0; i < loop.size(); ++i) {
    const uint64_t begin = code.Locate(loop[i]).function_begin;
    const bool called = begin != 0 && entered.count(begin) != 0;
    if (i == 0 || (best_called && !called) || (best_called == called && loop[i] < loop[best])) {
      best = i;
      best_called = called;
    }
  }
  return best;
}

std::vector<uint64_t> Tokens(const std::vector<Step>& steps, bool with_values) {
  std::vector<uint64_t> tokens;
  tokens.reserve(steps.size());
  for (const Step& step : steps) tokens.push_back(with_values ? StateOf(step) : step.pc);
  return tokens;
}

// A repetition counts when it covers the newer half of what was looked at.
bool Convincing(const std::optional<Period>& period, size_t steps) {
  return period && period->covered * 2 >= steps;
}

// Whether nearly every step says what its values are.
bool HasValues(const std::vector<Step>& steps) {
  const auto known =
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.has_values; });
  return static_cast<size_t>(known) * 10 >= steps.size() * 9;
}

void JudgeByValues(const std::vector<Step>& steps, ProgramCode& code, CoreFinding* finding) {
  finding->basis = LoopBasis::kValues;
  // The newest step may still lack its values.
  std::vector<Step> complete(steps);
  if (!complete.back().has_values) complete.pop_back();
  const auto states = FindPeriod(Tokens(complete, true));
  if (!Convincing(states, complete.size())) {
    finding->motion = CoreFinding::Motion::kComputing;
    return;
  }
  finding->motion = CoreFinding::Motion::kSpinning;
  for (size_t i = complete.size() - states->length; i < complete.size(); ++i) {
    finding->loop_states.insert(StateOf(complete[i]));
  }
  for (const uint64_t pc : finding->loop) {
    for (const uint64_t address : code.AddressesAt(pc)) finding->polls.push_back(address);
  }
  finding->polls_known = !finding->polls.empty();
}

void JudgeByBody(std::span<const Step> round, ProgramCode& code, CoreFinding* finding) {
  const LoopBody body = ExamineLoopBody(round, code);
  switch (body.kind) {
    case LoopBody::Kind::kUnknown:
      finding->motion = CoreFinding::Motion::kRepeating;
      return;
    case LoopBody::Kind::kComputes:
      finding->motion = CoreFinding::Motion::kComputing;
      break;
    case LoopBody::Kind::kSpins:
      finding->motion = CoreFinding::Motion::kSpinning;
      break;
  }
  finding->basis = LoopBasis::kBody;
  finding->polls = body.polls;
  finding->polls_known = body.polls_known;
}

}  // namespace

uint64_t StateOf(const Step& step) { return HashWord(step.values, step.pc); }

CoreFinding AnalyzeCore(std::span<const Step> all, ProgramCode& code) {
  CoreFinding finding;
  finding.steps = all.size();
  if (all.empty()) return finding;
  const std::vector<Step> steps = TrapRemover(all, code).Run(&finding);
  finding.last = steps.empty() ? all.back() : steps.back();
  finding.sleeps = code.EndOf(finding.last).sleeps;
  for (const Step& step : steps) {
    finding.seen_places.insert(step.pc);
    if (step.has_values) finding.seen_states.insert(StateOf(step));
  }
  if (steps.size() < kFewestSteps) return finding;

  finding.motion = CoreFinding::Motion::kMoving;
  const auto period = FindPeriod(Tokens(steps, false));
  if (!Convincing(period, steps.size())) return finding;

  const std::span<const Step> round(steps.end() - static_cast<ptrdiff_t>(period->length),
                                    steps.end());
  for (const Step& step : round) finding.loop.push_back(step.pc);
  const size_t head = HeadOf(finding.loop, code);
  std::rotate(finding.loop.begin(), finding.loop.begin() + static_cast<ptrdiff_t>(head),
              finding.loop.end());
  finding.loop_places.insert(finding.loop.begin(), finding.loop.end());
  if (HasValues(steps)) {
    JudgeByValues(steps, code, &finding);
  } else {
    JudgeByBody(round, code, &finding);
  }
  if (finding.motion == CoreFinding::Motion::kComputing && steps.size() <= kLongestPath)
    finding.path = Tokens(steps, false);
  return finding;
}

}  // namespace hangscope

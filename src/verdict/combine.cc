#include "verdict/combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hangscope {
namespace {

// The first of these that was found is the headline.
constexpr std::array kWeightiest = {FindingKind::kFault, FindingKind::kDeadlock,
                                    FindingKind::kStarved, FindingKind::kSilent};

State StateOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kFault:
      return State::kFault;
    case FindingKind::kDeadlock:
      return State::kDeadlock;
    case FindingKind::kSpin:
      return State::kLooping;
    case FindingKind::kStarved:
    case FindingKind::kOwnerDied:
    case FindingKind::kLostWakeup:
    case FindingKind::kNoWriter:
    case FindingKind::kStoppedChild:
    case FindingKind::kHeld:
      return State::kStarved;
    default:
      return State::kSilent;
  }
}

int Weight(const ScopeFinding& found) {
  const auto at = std::find(kWeightiest.begin(), kWeightiest.end(), found.kind);
  if (at == kWeightiest.end()) return 0;
  return (found.IsBad() ? 100 : 1) + static_cast<int>(kWeightiest.end() - at);
}

// Whoever waits in a circle: the same threads, from whichever of them it is told.
bool IsOfThreads(const ScopeFinding& found, const std::vector<int>& threads) {
  return found.kind == FindingKind::kDeadlock && !threads.empty() &&
         std::is_permutation(threads.begin(), threads.end(), found.threads.begin(),
                             found.threads.end());
}

const ProcessFinding* WitnessOf(const ScopeFinding& found,
                                const std::vector<ProcessFinding>& threads) {
  const auto at = std::find_if(threads.begin(), threads.end(), [&](const ProcessFinding& each) {
    return each.kind == FindingKind::kDeadlock && IsOfThreads(found, each.threads);
  });
  return at == threads.end() ? nullptr : &*at;
}

Verdict WithSecondWitness(Verdict verdict, const ProcessFinding& witness,
                          const std::vector<ProcessFinding>& threads) {
  verdict.evidence.push_back(kSecondWitness);
  for (const std::string& line : witness.lines) verdict.evidence.push_back("  " + line);
  verdict.confidence = std::max(verdict.confidence, witness.confidence);
  verdict.findings.front().confidence = verdict.confidence;
  verdict.threads.clear();
  for (const ProcessFinding& other : threads) {
    if (&other != &witness) verdict.threads.push_back(other);
  }
  return verdict;
}

}  // namespace

Verdict Combine(Verdict verdict, const ScopeOpinion& scope) {
  verdict.findings = scope.findings;
  std::stable_sort(
      verdict.findings.begin(), verdict.findings.end(),
      [](const ScopeFinding& a, const ScopeFinding& b) { return Weight(a) > Weight(b); });
  if (verdict.state == State::kFinished || verdict.state == State::kDead) return verdict;
  const ScopeFinding* const first = verdict.findings.empty() ? nullptr : &verdict.findings.front();
  if (first != nullptr && Weight(*first) > 100) {
    if (verdict.IsHang())
      verdict.evidence.insert(verdict.evidence.begin(), "the streams: " + verdict.summary);
    else
      verdict.doubts.clear();  // they were about why the streams alone say too little
    verdict.state = StateOf(first->kind);
    verdict.confidence = first->confidence;
    verdict.since = first->since;
    verdict.time = std::max(verdict.time, first->time);
    verdict.summary = first->summary;
    verdict.of_scope = true;
    return verdict;
  }
  if (!scope.progresses.empty() &&
      (verdict.state == State::kLooping || verdict.state == State::kSilent)) {
    verdict.confidence = Confidence::kPossible;
    verdict.doubts.push_back(
        fmt::format("the scope says that {} makes progress", scope.progresses));
  }
  return verdict;
}

Verdict CombineThreads(Verdict verdict, const std::vector<ProcessFinding>& threads) {
  const ProcessFinding* const witness =
      verdict.of_scope ? WitnessOf(verdict.findings.front(), threads) : nullptr;
  if (witness != nullptr) return WithSecondWitness(std::move(verdict), *witness, threads);
  if (!verdict.IsHang() || verdict.state != State::kSilent || !verdict.cores.empty())
    return verdict;
  if (threads.empty() || !threads.front().IsBad()) return verdict;
  verdict.threads = threads;
  const ProcessFinding& first = threads.front();
  verdict.evidence.insert(verdict.evidence.begin(), "the streams: " + verdict.summary);
  verdict.evidence.insert(verdict.evidence.end(), first.evidence.begin(), first.evidence.end());
  verdict.doubts = first.doubts;  // those about the streams alone are answered
  verdict.state = StateOf(first.kind);
  verdict.confidence = first.confidence;
  verdict.summary = first.summary;
  verdict.of_scope = false;
  return verdict;
}

}  // namespace hangscope

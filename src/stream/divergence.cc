#include "stream/divergence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace hangscope {
namespace {

constexpr size_t kLeastRounds = 3;
constexpr size_t kLongestLoop = 4096;
constexpr size_t kCertainMatch = 16;
constexpr size_t kLikelyMatch = 4;

using Steps = std::vector<StepNumber>;

// All pieces of a sequence as a graph: each path from state 0 is one of them, and each of them a
// path (a suffix automaton, Blumer and others 1985). It has at most two states a step.
class Pieces {
 public:
  explicit Pieces(const Steps& steps) {
    states_.reserve(2 * steps.size() + 1);
    states_.emplace_back();
    for (const StepNumber step : steps) Extend(step);
  }

  // The state after `step`; nothing: no piece goes on so.
  std::optional<uint32_t> Next(uint32_t state, StepNumber step) const {
    const auto at = edges_.find({state, step});
    return at == edges_.end() ? std::nullopt : std::optional(at->second);
  }
  uint32_t Shorter(uint32_t state) const { return states_[state].link; }
  size_t Longest(uint32_t state) const { return states_[state].longest; }

 private:
  struct State {
    size_t longest = 0;  // of the pieces that end here
    // where the longest of their ends that is met elsewhere, too, ends; of 0: itself
    uint32_t link = 0;
    std::vector<StepNumber> steps = {};
  };
  struct Edge {
    uint32_t state;
    StepNumber step;
    bool operator==(const Edge&) const = default;
  };
  struct EdgeHash {
    size_t operator()(const Edge& edge) const {
      return (edge.step ^ edge.state * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu >> 7;
    }
  };

  void Set(uint32_t state, StepNumber step, uint32_t to) {
    if (edges_.insert_or_assign({state, step}, to).second) states_[state].steps.push_back(step);
  }

  void Extend(StepNumber step) {
    const auto added = static_cast<uint32_t>(states_.size());
    states_.push_back({states_[last_].longest + 1, 0});
    uint32_t at = last_;
    last_ = added;
    while (!Next(at, step)) {
      Set(at, step, added);
      if (at == 0) return;
      at = states_[at].link;
    }
    const uint32_t next = *Next(at, step);
    states_[added].link =
        states_[next].longest == states_[at].longest + 1 ? next : Split(at, step, next);
  }

  // `next` also ends longer pieces, which do not end wherever this one does.
  uint32_t Split(uint32_t at, StepNumber step, uint32_t next) {
    const auto copy = static_cast<uint32_t>(states_.size());
    states_.push_back({states_[at].longest + 1, states_[next].link});
    for (const StepNumber out : std::vector<StepNumber>(states_[next].steps))
      Set(copy, out, *Next(next, out));
    states_[next].link = copy;
    for (;;) {
      if (Next(at, step) != next) break;
      Set(at, step, copy);
      if (at == 0) break;
      at = states_[at].link;
    }
    return copy;
  }

  std::vector<State> states_;
  std::unordered_map<Edge, uint32_t, EdgeHash> edges_;
  uint32_t last_ = 0;
};

// By how much the sequence up to each step is the same at both ends (Knuth, Morris, Pratt).
std::vector<size_t> Borders(const Steps& steps) {
  std::vector<size_t> borders(steps.size());
  for (size_t i = 1; i < steps.size(); ++i) {
    size_t length = borders[i - 1];
    while (length > 0 && steps[i] != steps[length]) length = borders[length - 1];
    borders[i] = length + (steps[i] == steps[length]);
  }
  return borders;
}

// Behind which indexes `piece`, which is not empty, ends in `steps`.
std::vector<size_t> EndsOf(const Steps& piece, const Steps& steps) {
  const std::vector<size_t> borders = Borders(piece);
  std::vector<size_t> ends;
  size_t length = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    while (length > 0 && (length == piece.size() || steps[i] != piece[length]))
      length = borders[length - 1];
    length += steps[i] == piece[length];
    if (length == piece.size()) ends.push_back(i + 1);
  }
  return ends;
}

// The last place where enough is common; else the one with most.
size_t ChooseEnd(const std::vector<size_t>& matches) {
  size_t best = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    const size_t enough = std::min(matches[i], kSamePlace);
    if (enough > 0 && enough >= std::min(matches[best], kSamePlace)) best = i;
  }
  return best;
}

Confidence Judge(const Divergence& found) {
  if (found.agreeing < found.places)
    return found.matched >= kLikelyMatch && found.agreeing * 4 >= found.places * 3
               ? Confidence::kLikely
               : Confidence::kPossible;
  if (found.matched >= kCertainMatch) return Confidence::kCertain;
  return found.matched >= kLikelyMatch ? Confidence::kLikely : Confidence::kPossible;
}

// Behind `from`, while the healthy run goes round the loop that begins at `loop`.
size_t LeaveLoop(const Steps& hung, size_t loop, size_t steps, const Steps& healthy, size_t from) {
  size_t gone = 0;
  while (from + gone < healthy.size() && healthy[from + gone] == hung[loop + gone % steps]) ++gone;
  return from + gone;
}

}  // namespace

std::vector<size_t> LongestMatches(const Steps& within, const Steps& text) {
  const Pieces pieces(within);
  std::vector<size_t> matches(text.size());
  uint32_t state = 0;
  size_t length = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::optional<uint32_t> next;
    while (!(next = pieces.Next(state, text[i])) && state != 0) {
      state = pieces.Shorter(state);
      length = pieces.Longest(state);
    }
    if (next) {
      state = *next;
      ++length;
    }
    matches[i] = length;
  }
  return matches;
}

EndLoop FindEndLoop(const Steps& steps, size_t least_rounds, size_t longest) {
  // From its end, the shortest period of each beginning of the mirrored sequence. The one that
  // reaches farthest back is the loop: shorter ones are loops in it.
  Steps mirrored(steps.rbegin(), steps.rbegin() + static_cast<ptrdiff_t>(std::min(
                                                      steps.size(), longest * least_rounds)));
  const std::vector<size_t> borders = Borders(mirrored);
  size_t period = 0;
  for (size_t length = 1; length <= mirrored.size(); ++length) {
    const size_t mine = length - borders[length - 1];
    if (mine <= longest && mine * least_rounds <= length) period = mine;
  }
  if (period == 0) return {};
  size_t same = period;  // from the end on
  while (same < steps.size() &&
         steps[steps.size() - 1 - same] == steps[steps.size() - 1 - same + period])
    ++same;
  const size_t rounds = same / period;
  return {steps.size() - rounds * period, period, rounds};
}

Divergence FindDivergence(const Steps& hung, const Steps& healthy) {
  Divergence found;
  found.hung_next = hung.size();
  const EndLoop loop = FindEndLoop(hung, kLeastRounds, kLongestLoop);
  found.loop_steps = loop.steps;
  found.loop_rounds = loop.rounds;
  const Steps once(hung.begin(),
                   hung.begin() + static_cast<ptrdiff_t>(
                                      loop.steps == 0 ? hung.size() : loop.begin + loop.steps));
  if (once.empty() || healthy.empty()) return found;
  const std::vector<size_t> matches = LongestMatches(healthy, once);
  const size_t last = ChooseEnd(matches);
  if (matches[last] == 0) return found;
  found.matched = matches[last];
  const auto end = once.begin() + static_cast<ptrdiff_t>(last + 1);
  std::vector<size_t> ends =
      EndsOf(Steps(end - static_cast<ptrdiff_t>(found.matched), end), healthy);
  found.places = ends.size();
  const bool in_loop = loop.steps > 0 && last + 1 == once.size();
  found.hung_next = in_loop ? hung.size() : last + 1;
  if (!in_loop) found.loop_steps = found.loop_rounds = 0;
  // What came next, and how often; of those that did what most did, the latest place.
  std::map<StepNumber, size_t> counts;
  const auto next_of = [&](size_t at) {
    return in_loop ? LeaveLoop(hung, loop.begin, loop.steps, healthy, at) : at;
  };
  for (const size_t at : ends) {
    if (const size_t next = next_of(at); next < healthy.size())
      found.agreeing = std::max(found.agreeing, ++counts[healthy[next]]);
  }
  found.kind = counts.empty() ? Divergence::Kind::kSameEnd : Divergence::Kind::kDiverged;
  for (const size_t at : ends) {
    const size_t next = next_of(at);
    if (counts.empty() || (next < healthy.size() && counts[healthy[next]] == found.agreeing)) {
      found.healthy_next = next;
      found.healthy_rounds = in_loop ? (next - at) / loop.steps : 0;
    }
  }
  found.confidence = Judge(found);
  return found;
}

}  // namespace hangscope

// Where a run that hangs left the way of one that does not. Pure; docs/hangscope-report.md has the
// rules.
//
// Both are sequences of what one core did, oldest first, each step a number that says what is the
// same in both runs. Their rings begin and end at different points, so they are laid side by side
// at the last place where the hung run did, for a while, what the healthy one did somewhere.
#ifndef HANGSCOPE_STREAM_DIVERGENCE_H
#define HANGSCOPE_STREAM_DIVERGENCE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/confidence.h"

namespace hangscope {

using StepNumber = uint64_t;

struct Divergence {
  enum class Kind {
    kNothingCommon,  // not one step is in both
    kDiverged,       // the healthy run went on otherwise
    kSameEnd,        // wherever it did this, the healthy run's recording ends, too
  };
  Kind kind = Kind::kNothingCommon;
  Confidence confidence = Confidence::kPossible;
  size_t matched = 0;       // steps that both did before they parted; of a loop, one round
  size_t hung_next = 0;     // index of the first step in which they differ, or the end
  size_t healthy_next = 0;  // likewise
  size_t places = 0;        // where the healthy run did the matched steps
  size_t agreeing = 0;      // of those after which it did the same next step
  // The hung run ends in a loop of so many steps, which it went round so often; 0: in none.
  size_t loop_steps = 0;
  size_t loop_rounds = 0;
  // of that loop, before the healthy run left it, more than the matched one
  size_t healthy_rounds = 0;
};

// So many steps in common are taken for the same place, where there are several.
constexpr size_t kSamePlace = 8;

// Takes time in proportion to both lengths, and memory likewise; whoever calls bounds them.
Divergence FindDivergence(const std::vector<StepNumber>& hung,
                          const std::vector<StepNumber>& healthy);

// For each prefix of `text`, how many of its last steps stand somewhere in `within`, in order and
// without a gap.
std::vector<size_t> LongestMatches(const std::vector<StepNumber>& within,
                                   const std::vector<StepNumber>& text);

// The loop that the end of `steps` goes round `least_rounds` times or more: of several, the one
// that reaches farthest back.
struct EndLoop {
  size_t begin = 0;   // index of the first step of the first whole round
  size_t steps = 0;   // of a round; 0: there is none
  size_t rounds = 0;  // whole ones
};
EndLoop FindEndLoop(const std::vector<StepNumber>& steps, size_t least_rounds, size_t longest);

}  // namespace hangscope

#endif

// The judge: one verdict of what all sources of evidence say. Pure; docs/verdicts.md has the rules.
#ifndef HANGSCOPE_VERDICT_JUDGE_PICTURE_H
#define HANGSCOPE_VERDICT_JUDGE_PICTURE_H

#include "model/picture.h"

namespace hangscope {

struct JudgeRules {
  TimeNs stall = 0;          // without progress for so long, it stands still
  TimeNs expect_output = 0;  // silence of so long is a hang, whatever it waits for; 0: it is not
  bool closed = false;       // nobody outside will come: who waits for the outside hangs
};

// Says in evidence that the lines behind it are of the threads themselves, a second witness of what
// the scope tells.
inline constexpr const char* kSecondWitness = "the threads' own waits say the same:";

// Where nothing else is to be said.
inline constexpr const char* kNothingKnown = "what could end that is not known";

// How long a source is waited for that may know more than the streams, once these look like a hang.
inline constexpr TimeNs kLongestWaitForSources = kSecond;
// Likewise a scope that could not be looked at twice in that time: the machine is slow.
inline constexpr TimeNs kLongestWaitForSlowScope = 5 * kSecond;

// The surest finding is the headline, of equally sure ones the most specific; what the streams say
// is evidence then. Findings of two sources about the same threads are one. The silence of a
// program whose processes can be looked at is no hang by itself: what they wait for is one, or not.
Verdict JudgePicture(const Picture& picture, const JudgeRules& rules);

// Whether one of `others`, of another source, tells the same hang of the same threads.
bool IsToldBy(const std::vector<Finding>& others, const Finding& finding);

// Whether `verdict` is to take the place of `before`, which was reported of the same hang: it is
// surer, or as sure and names the cause better, or what went on then hangs now, too.
bool Supersedes(const Verdict& verdict, const Verdict& before);

}  // namespace hangscope

#endif

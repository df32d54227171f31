// One verdict of what the streams say, what the scope says, and what the program's threads do.
// Pure.
#ifndef HANGSCOPE_VERDICT_COMBINE_H
#define HANGSCOPE_VERDICT_COMBINE_H

#include <string>
#include <vector>

#include "model/process.h"
#include "model/verdict.h"

namespace hangscope {

// Says in evidence that the lines behind it are of the threads themselves, a second witness of what
// the scope tells.
inline constexpr const char* kSecondWitness = "the threads' own waits say the same:";

struct ScopeOpinion {
  std::vector<ScopeFinding> findings;  // that still hold, the weightiest anywhere
  // A core that made progress within the stall time, as people call it; empty: none did, or none is
  // watched.
  std::string progresses;
};

// The same stop seen in a stream and in the scope is one: the scope knows who waits for whom, so
// its finding is the headline and the stream's loop is evidence. Where the streams look stuck and
// the scope's cores go on, the verdict is only possible.
Verdict Combine(Verdict streams, const ScopeOpinion& scope);

// The threads of a program that is silent say why: what is found of them, the surest first, is the
// headline, and the silence is evidence. A deadlock of the same threads that its scope tells of,
// too, is one hang with two witnesses: the scope says what they wait for, and what the kernel knows
// of them becomes evidence. A verdict that is another one, or knows cores of a simulator, stays as
// it is.
Verdict CombineThreads(Verdict streams, const std::vector<ProcessFinding>& threads);

}  // namespace hangscope

#endif

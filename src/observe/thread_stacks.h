// The stacks of those whom a verdict is about.
#ifndef HANGSCOPE_OBSERVE_THREAD_STACKS_H
#define HANGSCOPE_OBSERVE_THREAD_STACKS_H

#include <string>
#include <vector>

#include "model/verdict.h"

namespace hangscope {

// Of the threads that the findings of `verdict` are about, and of those who would have to act, the
// weightiest finding's first, 8 at most. `threads`: what the look at them found, as JSON Lines
// (ThreadWatch::details).
std::vector<SubjectStack> StacksOf(const Verdict& verdict, const std::string& threads);

}  // namespace hangscope

#endif

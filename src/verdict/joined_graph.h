// Waits that begin in the scope and end in the kernel: what the mailboxes of a program say and what
// its threads wait for, as one graph. Pure; docs/verdicts.md has the rules.
#ifndef HANGSCOPE_VERDICT_JOINED_GRAPH_H
#define HANGSCOPE_VERDICT_JOINED_GRAPH_H

#include <vector>

#include "model/picture.h"

namespace hangscope {

// The cycles of waits in which both sources have a part, so that neither tells them alone. Who has
// the same thread of Linux in both is the same; who has none, or shares it with another core, is
// the same as nobody. Who moves in the eyes of either source is not stuck.
std::vector<Finding> FindJoinedCycles(const Sightings& scope, const Sightings& threads);

}  // namespace hangscope

#endif

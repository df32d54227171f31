// Who waits for whom, and what keeps the waits from ending. Pure; docs/verdicts.md has the rules.
#ifndef HANGSCOPE_VERDICT_WAIT_GRAPH_H
#define HANGSCOPE_VERDICT_WAIT_GRAPH_H

#include <cstdint>
#include <optional>
#include <vector>

#include "model/watch.h"

namespace hangscope {

// What a core or task does, as far as it matters to those that wait for it.
enum class WaitRole {
  kMoves,      // it may deliver at any time, or once some time has passed
  kUnknown,    // it cannot be looked into: nothing is concluded from it
  kExcused,    // paused; or it waits for the outside: whoever waits for it does so by design
  kWaits,      // in one wait for long enough to be looked into
  kHalted,     // these never deliver: by a fault
  kSilent,     // stands still and does not wait
  kNeverRuns,  // a task that is ready, while others run
  kIdle,       // has nothing to do, as it says
  kEnded,      // is no more
};

// Whom a wait depends on.
struct WaitEdge {
  uint32_t to = 0;              // of the nodes
  bool never_delivers = false;  // it moves, and has long done so without ending this wait
};

struct WaitNode {
  WaitRole role = WaitRole::kMoves;
  // Of kWaits.
  uint32_t resource = 0;
  ResourceKind kind = ResourceKind::kNone;
  std::optional<uint32_t> holder;  // a node; as the wait itself names it
  // those who hold it or provide it, ascending; empty: nobody known
  std::vector<WaitEdge> suppliers;
};

// Why some waits do not end. Each node that is stuck is in one cause.
struct WaitCause {
  enum class Kind {
    kCycle,     // members wait for each other, the last for the first
    kNode,      // the one member is halted, silent, or never runs
    kSupplier,  // members wait for `resource`, and partners never deliver it
    kNobody,    // members wait for `resource`, and nobody is known who could deliver it
  };
  Kind kind = Kind::kCycle;
  std::vector<uint32_t> members;
  std::vector<uint32_t> partners;
  std::vector<uint32_t> victims;  // who waits for these, directly or not; ascending
  uint32_t resource = 0;
};

// Fills in the suppliers of all that wait. An exclusive resource has its holders, a channel its
// providers; where a wait does not say which it is, it is exclusive if somebody holds it. `claims`:
// by node.
void FindSuppliers(const std::vector<ClaimRow>& claims, std::vector<WaitNode>* nodes);

// A wait is stuck when all who could end it are stuck or never deliver: whoever is left out of the
// largest such set may still be served. Of what is stuck, the causes: knots of waits that depend on
// nothing else, one cycle of each; and those who never deliver. A node that no stuck wait depends
// on is no cause.
std::vector<WaitCause> FindCauses(const std::vector<WaitNode>& nodes);

}  // namespace hangscope

#endif

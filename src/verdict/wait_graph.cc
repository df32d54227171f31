#include "verdict/wait_graph.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <unordered_map>

namespace hangscope {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

using Nodes = std::vector<WaitNode>;

bool NeverDelivers(WaitRole role) {
  return role == WaitRole::kHalted || role == WaitRole::kSilent || role == WaitRole::kNeverRuns ||
         role == WaitRole::kIdle || role == WaitRole::kEnded;
}

// A wait for what nobody is known to deliver: nothing can be said of it, so those who wait for it
// have nobody else to look at.
bool IsForsaken(const WaitNode& node) {
  return node.role == WaitRole::kWaits && node.suppliers.empty();
}

bool IsInert(const Nodes& nodes, const WaitEdge& edge) {
  return edge.never_delivers || NeverDelivers(nodes[edge.to].role) || IsForsaken(nodes[edge.to]);
}

// Who waits for each node: the edges turned round.
std::vector<std::vector<uint32_t>> Dependents(const Nodes& nodes) {
  std::vector<std::vector<uint32_t>> dependents(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].role != WaitRole::kWaits) continue;
    for (const WaitEdge& edge : nodes[i].suppliers) dependents[edge.to].push_back(i);
  }
  return dependents;
}

// The largest set of waits whose suppliers are all in it; or inert, where `with_inert`.
std::vector<bool> FindStuck(const Nodes& nodes,
                            const std::vector<std::vector<uint32_t>>& dependents, bool with_inert) {
  std::vector<bool> stuck(nodes.size());
  std::deque<uint32_t> freed;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    stuck[i] = nodes[i].role == WaitRole::kWaits && !nodes[i].suppliers.empty();
  }
  const auto blocks = [&](const WaitEdge& edge) {
    return stuck[edge.to] || (with_inert && IsInert(nodes, edge));
  };
  const auto look = [&](uint32_t i) {
    const auto& suppliers = nodes[i].suppliers;
    if (!stuck[i] || std::all_of(suppliers.begin(), suppliers.end(), blocks)) return;
    stuck[i] = false;
    freed.push_back(i);
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) look(i);
  while (!freed.empty()) {
    const uint32_t served = freed.front();
    freed.pop_front();
    for (const uint32_t waiter : dependents[served]) look(waiter);
  }
  return stuck;
}

// Strongly connected parts of the waits in `within` (Tarjan, without recursion: a chain of waits
// may be long).
class Knots {
 public:
  Knots(const Nodes& nodes, const std::vector<bool>& within)
      : nodes_(nodes),
        within_(within),
        order_(nodes.size(), kNone),
        low_(nodes.size()),
        part_(nodes.size(), kNone) {
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      if (within_[i] && order_[i] == kNone) Visit(i);
    }
  }

  // Those that depend on nothing outside themselves, members ascending.
  std::vector<std::vector<uint32_t>> Terminal() const {
    std::vector<std::vector<uint32_t>> members(parts_);
    std::vector<bool> leaves(parts_);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!within_[i]) continue;
      members[part_[i]].push_back(i);
      for (const WaitEdge& edge : nodes_[i].suppliers)
        leaves[part_[i]] = leaves[part_[i]] || part_[edge.to] != part_[i];
    }
    std::vector<std::vector<uint32_t>> terminal;
    for (uint32_t part = 0; part < parts_; ++part) {
      if (!leaves[part]) terminal.push_back(std::move(members[part]));
    }
    std::sort(terminal.begin(), terminal.end());
    return terminal;
  }

 private:
  struct Frame {
    uint32_t node;
    size_t next_edge;
  };

  void Visit(uint32_t root) {
    std::vector<Frame> frames;
    Enter(root, &frames);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const uint32_t node = frame.node;
      if (frame.next_edge < nodes_[node].suppliers.size()) {
        const uint32_t to = nodes_[node].suppliers[frame.next_edge++].to;
        if (!within_[to]) continue;
        if (order_[to] == kNone)
          Enter(to, &frames);
        else if (part_[to] == kNone)
          low_[node] = std::min(low_[node], order_[to]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty())
        low_[frames.back().node] = std::min(low_[frames.back().node], low_[node]);
      if (low_[node] == order_[node]) Close(node);
    }
  }
  void Enter(uint32_t node, std::vector<Frame>* frames) {
    order_[node] = low_[node] = entered_++;
    open_.push_back(node);
    frames->push_back({node, 0});
  }
  void Close(uint32_t root) {
    for (uint32_t node = kNone; node != root;) {
      node = open_.back();
      open_.pop_back();
      part_[node] = parts_;
    }
    ++parts_;
  }

  const Nodes& nodes_;
  const std::vector<bool>& within_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> low_;
  std::vector<uint32_t> part_;
  std::vector<uint32_t> open_;
  uint32_t entered_ = 0;
  uint32_t parts_ = 0;
};

// The shortest way along suppliers from `from` back to itself, inside a knot; of several, the one
// with the lowest numbers first.
std::vector<uint32_t> CycleThrough(const Nodes& nodes, const std::vector<bool>& within,
                                   uint32_t from) {
  std::map<uint32_t, uint32_t> came_from;
  std::deque<uint32_t> queue = {from};
  while (!queue.empty()) {
    const uint32_t node = queue.front();
    queue.pop_front();
    for (const WaitEdge& edge : nodes[node].suppliers) {
      if (edge.to == from) {
        std::vector<uint32_t> cycle;
        for (uint32_t at = node; at != from; at = came_from[at]) cycle.push_back(at);
        cycle.push_back(from);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (within[edge.to] && came_from.emplace(edge.to, node).second) queue.push_back(edge.to);
    }
  }
  return {};
}

// In a knot where each waits for one other, that is all of it.
std::vector<uint32_t> ShortestCycle(const Nodes& nodes, const std::vector<uint32_t>& knot) {
  constexpr size_t kMostTried = 64;  // a barrier's knot has as many edges as cores, squared
  std::vector<bool> within(nodes.size());
  for (const uint32_t node : knot) within[node] = true;
  std::vector<uint32_t> best;
  for (size_t i = 0; i < std::min(kMostTried, knot.size()); ++i) {
    std::vector<uint32_t> cycle = CycleThrough(nodes, within, knot[i]);
    if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
    if (best.size() == 1 || best.size() == knot.size()) break;
  }
  return best;
}

// Gives each stuck wait to one cause: those that were added first take what depends on them.
class Causes {
 public:
  Causes(const Nodes& nodes, const std::vector<bool>& stuck,
         const std::vector<std::vector<uint32_t>>& dependents)
      : stuck_(stuck), dependents_(dependents), taken_(nodes.size()) {}

  bool IsTaken(uint32_t node) const { return taken_[node]; }
  void Claim(const std::vector<uint32_t>& members) {
    for (const uint32_t member : members) taken_[member] = true;
  }
  // Adds it with all that depends on `roots`, directly or not.
  void Add(WaitCause cause, const std::vector<uint32_t>& roots) {
    Claim(cause.members);
    std::deque<uint32_t> queue(roots.begin(), roots.end());
    while (!queue.empty()) {
      const uint32_t node = queue.front();
      queue.pop_front();
      for (const uint32_t waiter : dependents_[node]) {
        if (!stuck_[waiter] || taken_[waiter]) continue;
        taken_[waiter] = true;
        cause.victims.push_back(waiter);
        queue.push_back(waiter);
      }
    }
    std::sort(cause.victims.begin(), cause.victims.end());
    causes_.push_back(std::move(cause));
  }
  std::vector<WaitCause> Take() { return std::move(causes_); }

 private:
  const std::vector<bool>& stuck_;
  const std::vector<std::vector<uint32_t>>& dependents_;
  std::vector<bool> taken_;
  std::vector<WaitCause> causes_;
};

void AddNodes(const Nodes& nodes, const std::vector<std::vector<uint32_t>>& dependents,
              const std::vector<bool>& stuck, WaitRole role, Causes* causes) {
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].role != role) continue;
    const auto waits = [&](uint32_t waiter) { return stuck[waiter] && !causes->IsTaken(waiter); };
    if (!std::any_of(dependents[i].begin(), dependents[i].end(), waits)) continue;
    causes->Add({WaitCause::Kind::kNode, {i}, {}, {}, 0}, {i});
  }
}

void AddCycles(const Nodes& nodes, const std::vector<bool>& stuck_alone, Causes* causes) {
  for (const std::vector<uint32_t>& knot : Knots(nodes, stuck_alone).Terminal()) {
    WaitCause cause;
    cause.members = ShortestCycle(nodes, knot);
    causes->Add(std::move(cause), knot);
  }
}

// What is left and waits for somebody who never delivers, or for nobody who is known; by resource.
void AddSuppliers(const Nodes& nodes, const std::vector<bool>& stuck, Causes* causes) {
  std::map<std::pair<WaitCause::Kind, uint32_t>, WaitCause> found;
  const auto cause_of = [&](WaitCause::Kind kind, uint32_t resource) {
    WaitCause* const cause = &found[{kind, resource}];
    cause->kind = kind;
    cause->resource = resource;
    return cause;
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (IsForsaken(nodes[i]))
      cause_of(WaitCause::Kind::kNobody, nodes[i].resource)->members.push_back(i);
    if (!stuck[i] || causes->IsTaken(i)) continue;
    WaitCause* cause = nullptr;
    for (const WaitEdge& edge : nodes[i].suppliers) {
      if (!IsInert(nodes, edge) || IsForsaken(nodes[edge.to])) continue;
      if (cause == nullptr) cause = cause_of(WaitCause::Kind::kSupplier, nodes[i].resource);
      cause->partners.push_back(edge.to);
    }
    if (cause != nullptr) cause->members.push_back(i);
  }
  // All members first: none is another cause's victim.
  for (auto& [key, cause] : found) {
    std::sort(cause.partners.begin(), cause.partners.end());
    cause.partners.erase(std::unique(cause.partners.begin(), cause.partners.end()),
                         cause.partners.end());
    causes->Claim(cause.members);
  }
  for (auto& [key, cause] : found) {
    const std::vector<uint32_t> roots = cause.members;
    causes->Add(std::move(cause), roots);
  }
}

}  // namespace

void FindSuppliers(const std::vector<ClaimRow>& claims, std::vector<WaitNode>* nodes) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> holders;
  std::unordered_map<uint32_t, std::vector<uint32_t>> providers;
  const auto count = static_cast<uint32_t>(std::min(claims.size(), nodes->size()));
  for (uint32_t i = 0; i < count; ++i) {
    for (const uint32_t resource : claims[i].holds) holders[resource].push_back(i);
    for (const uint32_t resource : claims[i].provides) providers[resource].push_back(i);
  }
  for (WaitNode& node : *nodes) {
    node.suppliers.clear();
    if (node.role != WaitRole::kWaits) continue;
    const auto held = holders.find(node.resource);
    const bool is_held = held != holders.end() || node.holder;
    const bool exclusive =
        node.kind == ResourceKind::kExclusive || (node.kind != ResourceKind::kChannel && is_held);
    std::vector<uint32_t> found;
    if (exclusive && held != holders.end()) found = held->second;
    if (exclusive && node.holder) found.push_back(*node.holder);
    if (const auto provided = providers.find(node.resource);
        !exclusive && provided != providers.end())
      found = provided->second;
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const uint32_t supplier : found) node.suppliers.push_back({supplier, false});
  }
}

std::vector<WaitCause> FindCauses(const std::vector<WaitNode>& nodes) {
  const auto dependents = Dependents(nodes);
  const std::vector<bool> stuck = FindStuck(nodes, dependents, true);
  const std::vector<bool> stuck_alone = FindStuck(nodes, dependents, false);
  Causes causes(nodes, stuck, dependents);
  for (const WaitRole role : {WaitRole::kHalted, WaitRole::kSilent, WaitRole::kNeverRuns})
    AddNodes(nodes, dependents, stuck, role, &causes);
  AddCycles(nodes, stuck_alone, &causes);
  AddSuppliers(nodes, stuck, &causes);
  return causes.Take();
}

}  // namespace hangscope

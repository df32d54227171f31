#include "verdict/joined_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "verdict/wait_graph.h"

namespace hangscope {
namespace {

class JoinedGraph {
 public:
  JoinedGraph(const Sightings& scope, const Sightings& threads);

  std::vector<Finding> Cycles() const;

 private:
  // Somebody, as either source knows it; null: it does not.
  struct Node {
    const FindingSubject* in_scope = nullptr;
    const FindingSubject* in_kernel = nullptr;
    const Wait* scope_wait = nullptr;
    const Wait* kernel_wait = nullptr;

    // What it stands in at this moment is what the kernel says, where it says who could end that.
    const Wait* wait() const { return kernel_wait != nullptr ? kernel_wait : scope_wait; }
  };

  void FindAmbiguous(const Sightings& scope);
  uint32_t NodeOf(const FindingSubject& who, bool is_of_scope);
  bool MayBeStuck(const Node& node) const;
  bool IsEdgeOf(const Wait* wait, uint32_t to) const;
  bool IsJoined(const std::vector<uint32_t>& cycle) const;
  FindingSubject Subject(const Node& node) const;
  std::string Label(const Node& node) const;
  Finding Told(const WaitCause& cause) const;

  std::set<int> ambiguous_;
  std::set<int> still_;
  std::set<int> moving_;
  std::map<std::tuple<int, uint32_t>, uint32_t> known_;  // nodes, by kind of identity and number
  std::vector<Node> nodes_;
  std::map<const FindingSubject*, uint32_t> of_subject_;
};

JoinedGraph::JoinedGraph(const Sightings& scope, const Sightings& threads)
    : still_(threads.still_threads.begin(), threads.still_threads.end()),
      moving_(scope.moving_threads.begin(), scope.moving_threads.end()) {
  FindAmbiguous(scope);
  for (const Sightings* source : {&scope, &threads}) {
    const bool is_of_scope = source == &scope;
    for (const Wait& wait : source->waits) {
      Node& node = nodes_[NodeOf(wait.who, is_of_scope)];
      (is_of_scope ? node.scope_wait : node.kernel_wait) = &wait;
      for (const FindingSubject& whom : wait.whom) (void)NodeOf(whom, is_of_scope);
    }
  }
}

// A mailbox that a thread left behind, or a number of another container.
void JoinedGraph::FindAmbiguous(const Sightings& scope) {
  std::map<int, std::optional<uint32_t>> cores;
  const auto see = [&](const FindingSubject& who) {
    const auto [known, is_new] = cores.emplace(who.thread, who.core);
    if (!is_new && known->second != who.core) ambiguous_.insert(who.thread);
  };
  for (const Wait& wait : scope.waits) {
    see(wait.who);
    std::for_each(wait.whom.begin(), wait.whom.end(), see);
  }
  ambiguous_.insert(0);
}

uint32_t JoinedGraph::NodeOf(const FindingSubject& who, bool is_of_scope) {
  enum Identity { kThread, kCore, kTask };
  const auto next = static_cast<uint32_t>(nodes_.size());
  uint32_t at = next;
  if (!ambiguous_.contains(who.thread))
    at = known_.emplace(std::tuple(kThread, static_cast<uint32_t>(who.thread)), next).first->second;
  else if (who.core || who.task)
    at =
        known_.emplace(who.core ? std::tuple(kCore, *who.core) : std::tuple(kTask, *who.task), next)
            .first->second;
  if (at == next) nodes_.emplace_back();
  const FindingSubject*& known = is_of_scope ? nodes_[at].in_scope : nodes_[at].in_kernel;
  if (known == nullptr) known = &who;
  of_subject_[&who] = at;
  return at;
}

// Who is no thread is known to the scope alone, and waits there.
bool JoinedGraph::MayBeStuck(const Node& node) const {
  const FindingSubject* const who = node.in_kernel != nullptr ? node.in_kernel : node.in_scope;
  if (ambiguous_.contains(who->thread)) return node.in_kernel == nullptr;
  return still_.contains(who->thread) && !moving_.contains(who->thread);
}

bool JoinedGraph::IsEdgeOf(const Wait* wait, uint32_t to) const {
  return wait != nullptr &&
         std::any_of(wait->whom.begin(), wait->whom.end(),
                     [&](const FindingSubject& whom) { return of_subject_.at(&whom) == to; });
}

// Else one of the sources tells it by itself.
bool JoinedGraph::IsJoined(const std::vector<uint32_t>& cycle) const {
  bool all_of_scope = true;
  bool all_of_kernel = true;
  for (size_t i = 0; i < cycle.size(); ++i) {
    const Node& node = nodes_[cycle[i]];
    const uint32_t next = cycle[(i + 1) % cycle.size()];
    all_of_scope = all_of_scope && IsEdgeOf(node.scope_wait, next);
    all_of_kernel = all_of_kernel && IsEdgeOf(node.kernel_wait, next);
  }
  return !all_of_scope && !all_of_kernel;
}

std::vector<Finding> JoinedGraph::Cycles() const {
  std::vector<WaitNode> waits(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Wait* const wait = nodes_[i].wait();
    if (!MayBeStuck(nodes_[i])) continue;
    waits[i].role = wait == nullptr ? WaitRole::kUnknown : WaitRole::kWaits;
    if (wait == nullptr) continue;
    std::set<uint32_t> suppliers;
    for (const FindingSubject& whom : wait->whom) suppliers.insert(of_subject_.at(&whom));
    for (const uint32_t supplier : suppliers) waits[i].suppliers.push_back({supplier, false});
  }
  std::vector<Finding> found;
  for (const WaitCause& cause : FindCauses(waits)) {
    if (cause.kind == WaitCause::Kind::kCycle && IsJoined(cause.members))
      found.push_back(Told(cause));
  }
  return found;
}

// In the words of the source that knows what it waits for; the scope's name is the program's own.
FindingSubject JoinedGraph::Subject(const Node& node) const {
  const FindingSubject* const any = node.in_scope != nullptr ? node.in_scope : node.in_kernel;
  FindingSubject subject = node.wait() == nullptr ? *any : node.wait()->who;
  subject.name = any->name;
  if (node.in_scope != nullptr) {
    subject.core = node.in_scope->core;
    subject.task = node.in_scope->task;
    subject.at = node.in_scope->at;
  }
  if (node.in_kernel != nullptr) subject.process = node.in_kernel->process;
  return subject;
}

// "thread left (4711 left)".
std::string JoinedGraph::Label(const Node& node) const {
  if (node.in_scope == nullptr) return node.in_kernel->name;
  return node.in_kernel == nullptr
             ? node.in_scope->name
             : fmt::format("{} ({})", node.in_scope->name, node.in_kernel->name);
}

Finding JoinedGraph::Told(const WaitCause& cause) const {
  Finding finding;
  finding.kind = FindingKind::kDeadlock;
  finding.source = Source::kScope;
  finding.of_two_sources = true;
  finding.confidence = Confidence::kCertain;
  for (size_t i = 0; i < cause.members.size(); ++i) {
    const Node& node = nodes_[cause.members[i]];
    const Node& next = nodes_[cause.members[(i + 1) % cause.members.size()]];
    const Wait& wait = *node.wait();
    finding.subjects.push_back(Subject(node));
    finding.lines.push_back(wait.line);
    finding.evidence.push_back(fmt::format("the {}: {} waits for {}",
                                           node.kernel_wait != nullptr ? "kernel" : "scope",
                                           Label(node), Label(next)));
    if (!wait.doubt.empty()) finding.Lower(Confidence::kLikely, wait.doubt);
    finding.since = std::max(finding.since, wait.since);
  }
  finding.evidence.push_back("each of these waits is the same in all looks, and nobody in it ran");
  const bool are_threads =
      std::all_of(finding.subjects.begin(), finding.subjects.end(),
                  [](const FindingSubject& subject) { return subject.thread != 0; });
  finding.summary = fmt::format("deadlock, {} {} wait for each other", finding.subjects.size(),
                                are_threads ? "threads" : "cores, tasks and threads");
  for (const uint32_t victim : cause.victims) finding.victims.push_back(Subject(nodes_[victim]));
  return finding;
}

}  // namespace

std::vector<Finding> FindJoinedCycles(const Sightings& scope, const Sightings& threads) {
  if (scope.waits.empty() || threads.waits.empty()) return {};
  return JoinedGraph(scope, threads).Cycles();
}

}  // namespace hangscope

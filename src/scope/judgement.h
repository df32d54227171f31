// One call of Watcher::See: what it was given, and what it makes of it. Of src/watch only.
#ifndef HANGSCOPE_SCOPE_JUDGEMENT_H
#define HANGSCOPE_SCOPE_JUDGEMENT_H

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scope/watcher.h"
#include "verdict/wait_graph.h"

namespace hangscope {

struct Watcher::Judgement {
  const ScopeSample& sample;
  TimeNs now;
  WatchSource& source;
  bool dead;
  bool first;                                // of all looks
  std::optional<uint64_t> target_time = {};  // where it can be compared with times of waits

  std::vector<WaitNode> nodes = {};  // by subject; with suppliers, where somebody waits for long
  std::vector<ClaimRow> claims = {};
  bool claims_known = true;
  // of edges that never deliver
  std::map<std::pair<uint32_t, uint32_t>, Confidence> edge_confidence = {};
  std::map<uint32_t, uint32_t> faults = {};  // cores that have one, by node
  // by core; where a node has several
  std::vector<std::optional<uint32_t>> first_faults = {};
  // of one who is halted, silent, or never runs
  std::map<uint32_t, std::vector<uint32_t>> victims = {};

  std::vector<ScopeFinding> findings = {};
  std::vector<Key> keys = {};  // by finding

  void Add(ScopeFinding finding, std::vector<uint32_t> numbers) {
    finding.time = now;
    keys.push_back({finding.kind, finding.subjects, std::move(numbers), finding.corruption.field});
    findings.push_back(std::move(finding));
  }
};

}  // namespace hangscope

#endif

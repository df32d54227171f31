// A decoder's place among the parts of its stream, and the summaries that it fills: a TraceTally
// for each part, and the last branches of all together.
#ifndef HANGSCOPE_HWTRACE_AUX_PARTS_H
#define HANGSCOPE_HWTRACE_AUX_PARTS_H

#include <algorithm>
#include <set>
#include <vector>

#include "hwtrace/instruction_trace.h"
#include "hwtrace/trace_tally.h"

namespace hangscope {

// Offsets are of the stream. All that it was made with outlives it.
class AuxParts {
 public:
  AuxParts(const std::vector<AuxPart>& parts, const TraceDecodeOptions& options,
           std::vector<TraceSummary>* summaries)
      : parts_(parts), options_(options), summaries_(summaries) {}

  // To the part with the byte at `offset`; never back.
  void Advance(uint64_t offset) {
    while (at_ + 1 < parts_.size() && parts_[at_ + 1].begin <= offset) ++at_;
  }
  size_t number() const { return at_; }
  const AuxPart& part() const { return parts_[at_]; }
  TraceSummary& summary() { return (*summaries_)[at_]; }
  uint64_t Within(uint64_t offset) const { return offset - std::min(offset, parts_[at_].begin); }

  void Break(uint64_t offset, std::optional<TimeNs> time, DiscontinuityReason reason) {
    Advance(offset);
    TraceTally(&summary(), options_).Break({Within(offset), time, reason, -1});
  }
  // What is lost goes on until `end`: each part that begins in between says so at its begin, but
  // for those that have a discontinuity there among the `known` ones.
  void GoOnWithout(uint64_t end, std::optional<TimeNs> time, DiscontinuityReason reason,
                   const std::set<uint64_t>& known = {}) {
    while (at_ + 1 < parts_.size() && parts_[at_ + 1].begin < end) {
      ++at_;
      if (summary().bytes > 0 && !known.contains(part().begin))
        TraceTally(&summary(), options_).Break({0, time, reason, -1});
    }
  }

  // Drops the oldest of all parts beyond the last N.
  void Branch(TraceBranch branch) {
    if (options_.last_branches == 0) return;
    branch.offset = Within(branch.offset);
    branch.after = Within(branch.after);
    if (branches_++ == options_.last_branches) {
      while ((*summaries_)[oldest_].last_branches.empty()) ++oldest_;
      (*summaries_)[oldest_].last_branches.pop_front();
      --branches_;
    }
    summary().last_branches.push_back(branch);
  }

 private:
  const std::vector<AuxPart>& parts_;
  const TraceDecodeOptions& options_;
  std::vector<TraceSummary>* summaries_;
  size_t at_ = 0;
  size_t branches_ = 0;
  size_t oldest_ = 0;  // with a branch
};

}  // namespace hangscope

#endif

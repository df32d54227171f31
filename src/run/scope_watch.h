// Watches the mailboxes of a program that `hangscope run` observes, beside its streams.
#ifndef HANGSCOPE_RUN_SCOPE_WATCH_H
#define HANGSCOPE_RUN_SCOPE_WATCH_H

#include <memory>
#include <string>
#include <vector>

#include "scope/live_scope.h"
#include "verdict/combine.h"

namespace hangscope {

// One thread.
class ScopeWatch {
 public:
  // `source.target`: as for hangscope show. `stall`: a wait or a silence of this length is looked
  // into.
  ScopeWatch(FileSystem& files, ScopeSource source, TimeNs stall)
      : files_(files), source_(std::move(source)), stall_(stall) {}

  // To be called a few times a second; looks when it is time to. A program that starts again is
  // followed from there; one without mailboxes is left alone after a while.
  void Sample(TimeNs now);
  // As of the latest look.
  ScopeOpinion opinion() const;

 private:
  void Open(TimeNs now);
  void AnnounceFindings(TimeNs now);
  std::vector<int> ThreadsOf(const ScopeFinding& finding) const;
  bool MadeProgress(const SubjectState& subject, TimeNs now) const;

  FileSystem& files_;
  const ScopeSource source_;
  const TimeNs stall_;
  std::unique_ptr<LiveScope> view_;
  TimeNs next_look_ = 0;
  TimeNs opened_ = 0;  // monotonic
  int tries_ = 0;
  size_t told_ = 0;  // findings that stood when their texts were made
  ScopeOpinion opinion_;
};

}  // namespace hangscope

#endif

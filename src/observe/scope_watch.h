// Watches the mailboxes of a program that `hangscope run` observes, beside its streams.
#ifndef HANGSCOPE_OBSERVE_SCOPE_WATCH_H
#define HANGSCOPE_OBSERVE_SCOPE_WATCH_H

#include <memory>
#include <string>

#include "base/jitter.h"
#include "observe/scope_sightings.h"

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
  const Sightings& sightings() const { return sightings_.sightings(); }

 private:
  void Open();

  FileSystem& files_;
  const ScopeSource source_;
  const TimeNs stall_;
  std::unique_ptr<LiveScope> view_;
  TimeNs next_look_ = 0;
  Jitter jitter_;
  int tries_ = 0;
  ScopeSightings sightings_{stall_};
};

}  // namespace hangscope

#endif

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
  // followed from there; one without mailboxes is asked again, less and less often.
  void Sample(TimeNs now);
  // As of the latest look.
  const Sightings& sightings() const { return sightings_.sightings(); }

 private:
  void Open(TimeNs now);

  FileSystem& files_;
  const ScopeSource source_;
  const TimeNs stall_;
  std::unique_ptr<LiveScope> view_;
  TimeNs next_look_ = 0;
  Jitter jitter_;
  TimeNs missing_since_ = 0;  // since when it is not open
  ScopeSightings sightings_{stall_};
};

}  // namespace hangscope

#endif

// What a scope's mailboxes say, in the judge's form: findings that stand, who moves, who waits.
#ifndef HANGSCOPE_OBSERVE_SCOPE_SIGHTINGS_H
#define HANGSCOPE_OBSERVE_SCOPE_SIGHTINGS_H

#include <vector>

#include "model/picture.h"
#include "scope/live_scope.h"
#include "scope/watched_target.h"

namespace hangscope {

// One thread.
class ScopeSightings {
 public:
  // `stall`: who moved within it makes progress.
  explicit ScopeSightings(TimeNs stall) : stall_(stall) {}

  // After a look at `view`, a LiveScope or a Watchable, at `now`, monotonic. `is_news`: the watcher
  // found something since the last call.
  template <typename View>
  void Update(View& view, bool is_news, TimeNs now);
  // Another start of the target: nothing of the earlier one holds.
  void Forget();

  // As of the latest update.
  const Sightings& sightings() const { return sightings_; }

 private:
  template <typename View>
  void TellFindings(View& view, bool is_news, TimeNs now);
  template <typename View>
  void TellWaits(View& view, TimeNs now);

  const TimeNs stall_;
  size_t told_ = 0;                      // findings that stood when their texts were made
  size_t told_victims_ = 0;              // of all of them
  std::vector<LastingWait> told_waits_;  // as of when theirs were made
  Sightings sightings_;
};

}  // namespace hangscope

#endif

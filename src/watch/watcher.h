// Follows a target over many polls: what each core and task does, since when; and what is wrong.
//
// Pure: it is given looks and the time, and asks for the rarely needed rest through WatchSource. The
// rules are in docs/verdicts.md. Not thread-safe.
#ifndef HANGSCOPE_WATCH_WATCHER_H
#define HANGSCOPE_WATCH_WATCHER_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/watch.h"

namespace hangscope {

// The rest of a target, read only when something stands still. Implemented over WatchReader, and by a fake.
class WatchSource {
 public:
  virtual ~WatchSource() = default;
  virtual Result<std::vector<ClaimRow>> Claims() = 0;
  virtual Result<CoreDetail> Detail(uint32_t core) = 0;
  // Core `core`'s records so far: a core that records is not silent. Fails where that is not to be had.
  virtual Result<uint64_t> Emitted(uint32_t core) = 0;
};

struct WatcherOptions {
  TimeNs stall = 5 * kSecond;  // a wait, a silence of this length is looked into
};

class Watcher {
 public:
  explicit Watcher(const WatcherOptions& options) : options_(options) {}

  // Two looks at least are needed before anything counts as standing still.
  void See(const WatchSample& sample, TimeNs now, WatchSource& source);
  // For what will never change any more (a dump, a dead process): judges at once, from one look; waits
  // count as long as the target's clock says.
  void SeeDead(const WatchSample& sample, TimeNs now, WatchSource& source);

  // Cores, then tasks; unused ones, too.
  const std::vector<SubjectWatch>& subjects() const { return subjects_; }
  // New since the last call; each finding comes once. One that ended and came back is a new one.
  std::vector<Finding> TakeFindings();
  // All that still hold.
  const std::vector<Finding>& standing() const { return standing_; }

 private:
  WatcherOptions options_;
  std::vector<SubjectWatch> subjects_;
  std::vector<Finding> standing_;
  std::vector<Finding> fresh_;
};

}  // namespace hangscope

#endif

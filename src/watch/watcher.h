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
  bool shared_clock = false;   // the target's times can be compared between its cores
  uint64_t clock_hz = 0;       // of the target's clock; 0: not known, and waits are as old as the watcher saw them
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
  // New since the last call; each finding comes once. One that ended and came back is a new one, and so is one that was
  // merely possible and is not any more.
  std::vector<Finding> TakeFindings();
  // All that still hold, as the latest look found them.
  const std::vector<Finding>& standing() const { return standing_; }

 private:
  // What one look at a subject does not tell.
  struct History {
    bool seen = false;
    uint32_t last_sequence = 0;
    TimeNs changed = 0;          // the latest change
    bool changed_at_least = false;  // none was seen
    uint32_t changes = 0;
    TimeNs longest_gap = 0;      // between changes, where it neither waited nor idled
    uint64_t rounds = 0;         // heartbeats, and waits that ended
    uint32_t wait_looks = 0;     // at the same wait
    uint32_t waits_ended = 0;
    TimeNs longest_wait = 0;     // of those that ended
    std::optional<uint64_t> emitted;
    TimeNs emitted_since = 0;    // no event came since
    std::optional<CoreFault> fault;
    bool moved_after_fault = false;
    uint32_t ready_looks = 0;    // of a task: ready, unchanged, and not seen to run
    bool waited_once = false;
    std::set<uint32_t> ran_instead;  // tasks
  };
  struct Look;  // watcher.cc: one call of See

  void Judge(const WatchSample& sample, TimeNs now, WatchSource& source, bool dead);
  void FollowCore(Look& look, uint32_t core);
  void FollowTask(Look& look, uint32_t index);
  void FollowWait(Look& look, uint32_t subject, const std::optional<WaitState>& wait);
  void FollowEvents(Look& look, uint32_t core);
  void FollowReady(Look& look, uint32_t index, bool changed);
  void SetActivity(Look& look, uint32_t subject, Activity activity, TimeNs since);
  Activity CoreActivity(const Look& look, uint32_t core) const;
  void BuildGraph(Look& look);
  void MarkEdges(Look& look);
  void FindAll(Look& look);
  void Publish(Look& look);

  WatcherOptions options_;
  std::vector<SubjectWatch> subjects_;
  std::vector<History> histories_;
  uint64_t looks_ = 0;
  std::optional<TimeNs> died_;  // the first look at it as a dead one
  uint32_t cores_ = 0;
  // How far a supplier had gone when a wait for it was first looked into: (waiter, supplier).
  struct Baseline {
    uint32_t sequence = 0;  // of the wait
    uint64_t rounds = 0;
  };
  std::map<std::pair<uint32_t, uint32_t>, Baseline> baselines_;
  std::set<std::string> suspected_;  // keys of what the look before found
  std::vector<Finding> standing_;
  std::vector<std::string> standing_keys_;
  std::vector<Finding> fresh_;
};

}  // namespace hangscope

#endif

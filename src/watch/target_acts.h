// What `hangscope watch` does about one target, or one device of several memories, beyond saying
// what it finds: it knows which hang is on, takes snapshots of the target, and does what --on-hang
// says.
//
// It is given what was found and how the target's memory is read, not how that was opened. One
// thread.
#ifndef HANGSCOPE_WATCH_TARGET_ACTS_H
#define HANGSCOPE_WATCH_TARGET_ACTS_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "act/hang_action.h"
#include "act/hang_command.h"
#include "act/hang_tracker.h"
#include "act/target_process.h"
#include "base/clock.h"
#include "base/file_system.h"
#include "device/live_device.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "observe/scope_sightings.h"
#include "observe/snapshot_taker.h"
#include "scope/watched_target.h"
#include "verdict/junit.h"

namespace hangscope {

struct WatchActOptions {
  HangAction on_hang = {OnHang::kNone, ""};
  ActOn act_on;
  int max_snapshots = 2;     // of each target
  InheritedSignals signals;  // that the command gets
};

// What all targets of a watch share; outlives them.
struct WatchWorld {
  FileSystem& files;
  Clock& clock;
  const Recording& recording;  // of no streams
  Narrator& narrator;
  // A line for the user; `event`: a word for programs.
  std::function<void(const std::string& target, const std::string& event, const std::string& text)>
      note;
  // The prefix of a target's snapshots, asked for once there is something to keep, or may be.
  std::function<Result<std::string>(size_t target)> prefix_of;
};

// Of all its memories, as ParseTargetSpec takes them.
std::vector<std::string> TargetsOf(const DeviceSpec& device);

class TargetActs {
 public:
  // `target` outlives this, and was opened from `source`; `index`: its place among all.
  TargetActs(const WatchWorld& world, const WatchActOptions& options, WatchedTarget& target,
             const ScopeSource& source, size_t index, TimeNs stall);
  TargetActs(const WatchWorld& world, const WatchActOptions& options, LiveDevice& device,
             size_t index, TimeNs stall);

  // Fails where hangs take snapshots and there is no place for them. `processes`: whom --on-hang
  // kill ends; else null.
  Status Start(std::unique_ptr<TargetProcesses> processes);
  // After a look at the target, which found `fresh`, told already.
  void Follow(const std::vector<ScopeFinding>& fresh);
  // Somebody asked for it. The absolute path of the folder, or why there is none, which is
  // reported.
  Result<std::string> Snapshot(TriggerKind kind, const std::string& name, bool since_last);
  // What the judge says of it now.
  Verdict VerdictNow();
  // Something is to be done about the hang that is on once it was seen again, or is being done.
  bool IsActing();
  // That the target died is its doing.
  bool EndedTarget() const { return processes_ != nullptr && processes_->was_told(); }
  // How the watching went, for --junit.
  JunitCase Junit() const;
  // Waits for what is still written.
  void Finish();

  const HangTracker& hang() const { return hang_; }
  // Null: none was to be taken yet.
  const SnapshotTaker* snapshots() const { return snapshots_.get(); }

 private:
  TargetActs(const WatchWorld& world, const WatchActOptions& options, Watchable& target,
             LiveDevice* device, std::vector<std::string> names, bool is_intrusive, size_t index,
             TimeNs stall);
  Verdict Judge(bool is_news, bool names_idle);
  void SampleClock(TimeNs now);
  Status OpenSnapshots();
  Result<std::string> Take(TriggerKind kind, const std::string& name, const std::string& detail,
                           bool since_last, const Verdict& verdict);
  void ReportHang(const Verdict& verdict);
  void AddVictims(const Verdict& verdict);
  void Act();
  void EndProcess();
  void ReportEnd(const std::vector<ScopeFinding>& fresh);
  void Note(const std::string& event, const std::string& text) {
    world_.note(target_.name(), event, text);
  }

  const WatchWorld& world_;
  const WatchActOptions& options_;
  Watchable& target_;
  LiveDevice* const device_;              // `target_`, where it is one; else null
  const std::vector<std::string> names_;  // of its memories, as ParseTargetSpec takes them
  const size_t index_;
  const bool is_intrusive_;  // each read may stop the target
  const TimeNs stall_;
  const TimeNs start_;
  const TimeNs start_wall_;
  ObserverOptions observed_;  // of the snapshots
  ScopeSightings sightings_;
  std::vector<Finding> ended_;  // how the target ended, as far as that is a finding
  HangTracker hang_;
  int life_ = 0;
  std::unique_ptr<SnapshotTaker> snapshots_;
  TimeNs next_clock_ = 0;
  std::string hang_snapshot_;   // its folder
  std::string done_;            // about the hang, a line; empty: nothing
  std::optional<Finding> bad_;  // the newest one that is no hang: a death, a corruption
  HangCommand command_;
  std::unique_ptr<TargetProcesses> processes_;  // null: nobody is to be ended
};

}  // namespace hangscope

#endif

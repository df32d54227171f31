// The process that a target is, or that simulates it: whom --on-hang kill ends where hangscope did
// not start it.
//
// It is chosen only where it is certain which one it is: process N of pid:N, or the only one that
// may write the target's file through a mapping; of this user, and neither hangscope nor process 1.
#ifndef HANGSCOPE_ACT_TARGET_PROCESS_H
#define HANGSCOPE_ACT_TARGET_PROCESS_H

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "proc/process_end.h"

namespace hangscope {

// One thread.
class TargetProcess {
 public:
  // `target`: as ParseTargetSpec takes it. Fails with one sentence (kUsage) where there is nothing
  // to end, or nobody can say for certain what.
  static Result<std::unique_ptr<TargetProcess>> Find(FileSystem& files, const std::string& target);

  int pid() const { return process_->pid(); }
  // "process 4711 (qemu-system-ris)".
  const std::string& name() const { return name_; }

  // SIGTERM, and SIGCONT, as from a shell; Tick sends SIGKILL where it is still there after 2 s.
  // Looks once more before: fails with one sentence, and does nothing, where it is not any more
  // what Find found. `now`: monotonic.
  Status End(TimeNs now);
  // To be called a few times a second.
  void Tick(TimeNs now);
  // It was told to end, whether it did or not.
  bool was_told() const { return told_ != 0; }
  bool IsEnding() { return was_told() && !process_->HasEnded(); }
  // As far as the kernel tells, once it has ended.
  ProcessEnd::How how() { return process_->how(); }

 private:
  TargetProcess(FileSystem& files, std::string target, std::unique_ptr<ProcessEnd> process,
                std::string name)
      : files_(files),
        target_(std::move(target)),
        process_(std::move(process)),
        name_(std::move(name)) {}

  FileSystem& files_;
  const std::string target_;
  const std::unique_ptr<ProcessEnd> process_;
  const std::string name_;
  TimeNs told_ = 0;  // monotonic: SIGTERM; 0: not yet
  bool killed_ = false;
};

// Those of a target of several memories, each once. One thread.
class TargetProcesses {
 public:
  // Of the targets of all its memories. Fails as TargetProcess::Find where there is nothing to end
  // for any of them.
  static Result<std::unique_ptr<TargetProcesses>> Find(FileSystem& files,
                                                       const std::vector<std::string>& targets);

  // Why there is nothing to end for some of them, a sentence each.
  const std::vector<std::string>& left_alone() const { return left_alone_; }
  // Tells all of them to end; a sentence for each that cannot be.
  std::vector<std::string> End(TimeNs now);
  // To be called a few times a second.
  void Tick(TimeNs now);
  bool was_told() const;
  bool IsEnding();
  // Those who were told, "process 4711 (qemu-system-ris), process 4712 (host)".
  std::string names() const;

 private:
  std::vector<std::unique_ptr<TargetProcess>> processes_;  // never empty
  std::vector<std::string> left_alone_;
};

}  // namespace hangscope

#endif

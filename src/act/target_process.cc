#include "act/target_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"
#include "proc/proc_folder.h"
#include "target/file_users.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr TimeNs kGrace = 2 * kSecond;  // as hangscope run gives its program

Status NothingToEnd(const std::string& why) {
  return Status::Usage("--on-hang kill: " + why + ", so there is nothing to end");
}

// The only process that has the file mapped and may write it.
Result<int> SimulatorOf(const TargetSpec& spec) {
  const std::vector<int> users = ProcessesThatWrite(spec.where);
  if (users.empty())
    return NothingToEnd(
        fmt::format("no process that may be looked into writes to '{}'", spec.where));
  if (users.size() == 1) return users[0];
  return Status::Usage(
      fmt::format("--on-hang kill: processes {} and {} both write to '{}', and which one to end is "
                  "not certain",
                  users[0], users[1], spec.where));
}

Result<int> ProcessOfTarget(FileSystem& files, const std::string& target) {
  const TargetSpec spec = ParseTargetSpec(files, target);
  if (!spec.status.ok()) return spec.status;
  switch (spec.kind) {
    case TargetSpec::Kind::kProcess:
      return spec.pid;
    case TargetSpec::Kind::kFile:
      if (!files.IsFolder(spec.where)) return SimulatorOf(spec);
      return NothingToEnd(fmt::format("'{}' is a snapshot", spec.where));
    case TargetSpec::Kind::kCore:
      return NothingToEnd(fmt::format("'{}' is a core dump", spec.where));
    case TargetSpec::Kind::kServer:
    case TargetSpec::Kind::kHelper:
      break;
  }
  return NothingToEnd(fmt::format("'{}' is no process of this machine", target));
}

}  // namespace

Result<std::unique_ptr<TargetProcess>> TargetProcess::Find(FileSystem& files,
                                                           const std::string& target) {
  auto pid = ProcessOfTarget(files, target);
  if (!pid.ok()) return pid.status();
  if (*pid == getpid() || *pid == 1)
    return Status::Usage(fmt::format("--on-hang kill: process {} is not ended", *pid));
  // Its number may become another's at any time, what is looked at below is this one's for sure if
  // it lives in the end.
  auto process = ProcessEnd::Watch(*pid);
  const ProcFolder proc("/proc");
  const auto status = ParseTaskStatus(proc.Read(fmt::format("{}/status", *pid)).value_or(""));
  const auto stat = proc.Stat(*pid);
  auto again = ProcessOfTarget(files, target);
  if (process == nullptr || !status || !stat || process->HasEnded())
    return NothingToEnd(fmt::format("process {} is no more", *pid));
  if (!again.ok() || *again != *pid)
    return Status::Usage(
        fmt::format("--on-hang kill: which process writes to '{}' changes just now", target));
  if (status->user != static_cast<int>(geteuid())) {
    return Status::Usage(fmt::format(
        "--on-hang kill: process {} belongs to another user (uid {}), and is left alone", *pid,
        status->user));
  }
  return std::unique_ptr<TargetProcess>(
      new TargetProcess(files, target, std::move(process),
                        fmt::format("process {} ({})", *pid, Printable(stat->name))));
}

Status TargetProcess::End(TimeNs now) {
  if (was_told()) return {};
  auto found = Find(files_, target_);
  if (!found.ok()) return found.status();
  if ((*found)->pid() != pid() || process_->HasEnded())
    return NothingToEnd(fmt::format("{} is no more", name_));
  if (Status status = process_->Signal(SIGTERM); !status.ok()) return status;
  told_ = now;
  return process_->Signal(SIGCONT);
}

void TargetProcess::Tick(TimeNs now) {
  if (killed_ || !IsEnding() || now - told_ < kGrace) return;
  killed_ = process_->Signal(SIGKILL).ok();
}

Result<std::unique_ptr<TargetProcesses>> TargetProcesses::Find(
    FileSystem& files, const std::vector<std::string>& targets) {
  std::unique_ptr<TargetProcesses> all(new TargetProcesses);
  Status first = Status::Usage("--on-hang kill: there is no target");
  for (const std::string& target : targets) {
    auto process = TargetProcess::Find(files, target);
    if (!process.ok()) {
      if (all->left_alone_.empty()) first = process.status();
      all->left_alone_.push_back(process.status().message());
      continue;
    }
    const auto is_same = [&](const auto& known) { return known->pid() == (*process)->pid(); };
    if (std::none_of(all->processes_.begin(), all->processes_.end(), is_same))
      all->processes_.push_back(std::move(*process));
  }
  if (all->processes_.empty()) return first;
  return all;
}

std::vector<std::string> TargetProcesses::End(TimeNs now) {
  std::vector<std::string> failures;
  for (const auto& process : processes_) {
    if (Status status = process->End(now); !status.ok()) failures.push_back(status.message());
  }
  return failures;
}

void TargetProcesses::Tick(TimeNs now) {
  for (const auto& process : processes_) process->Tick(now);
}

bool TargetProcesses::was_told() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& process) { return process->was_told(); });
}

bool TargetProcesses::IsEnding() {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& process) { return process->IsEnding(); });
}

std::string TargetProcesses::names() const {
  std::string names;
  for (const auto& process : processes_) {
    if (process->was_told()) names += (names.empty() ? "" : ", ") + process->name();
  }
  return names;
}

}  // namespace hangscope

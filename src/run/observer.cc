#include "run/observer.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "verdict/text.h"
#include "why/why_process.h"

namespace hangscope {
namespace {

constexpr TimeNs kLiveInterval = kSecond / 2;

}  // namespace

Observer::Observer(const Environment& environment, const ObserverOptions& options,
                   const Recording& recording, TimeNs start, TimeNs start_wall)
    : files_(*environment.files),
      clock_(*environment.clock),
      inspector_(environment.inspector),
      look_beside_(environment.look_beside),
      elf_(environment.elf),
      options_(options),
      recording_(recording),
      start_(start),
      narrator_(environment.narrator, start),
      analysis_(files_, clock_, recording, environment.elf, environment.place_rule, options.stall),
      snapshots_(files_, clock_, options_, recording, narrator_, start, start_wall),
      warnings_(clock_, recording, narrator_),
      requests_(files_, clock_, recording, options.triggers, options.patterns, start),
      beat_interval_(environment.narrator.live ? std::min(kLiveInterval, options.heartbeat)
                                               : options.heartbeat),
      next_beat_(start + beat_interval_),
      last_beat_(start) {
  if (environment.control_folder.empty()) return;
  const Status status = requests_.OpenControl(environment.control_folder);
  if (!status.ok())
    narrator_.Note("warning: hangscope ls and snap do not find this recorder: " + status.message(),
                   clock_.Wall());
}

bool Observer::Tick(const ChildView& child, int pid) {
  pid_ = pid;
  snapshots_.Tick(pid);
  SampleScope();
  analysis_.SetChild(child);
  const Verdict verdict = VerdictNow();
  warnings_.Report(IsBeatDue());
  warnings_.ReportUnsearched(requests_.unseen_bytes(), false);
  requests_.Poll([this] { return StatusNow(); });
  SnapshotAllOf(requests_.DrainDue(), verdict);
  ReportPutOff();
  snapshots_.ReportUnwrittenReports();
  if (IsBeatDue()) {
    ReportCode();
    Beat(child, verdict);
  }
  const bool hung_before = std::exchange(hang_now_, verdict.IsHang());
  if (!hang_now_) {
    if (hung_before) ReportEndOfHang(verdict);
    return false;
  }
  if (hung_before) return false;
  SampleThreads(verdict);
  ReportHang(CombineThreads(verdict, of_threads_));
  return true;
}

void Observer::SampleScope() {
  if (!snapshots_.found_scope()) return;  // one search of the program's memory is enough
  if (scope_watch_ == nullptr) {
    scope_watch_ = std::make_unique<ScopeWatch>(files_, options_.ScopeOf(pid_), options_.stall);
  }
  scope_watch_->Sample(clock_.Monotonic());
}

// A silence says little; what the threads of the program wait for says more. Where a scope tells of
// the same threads, they are the second witness.
void Observer::SampleThreads(const Verdict& verdict) {
  const bool scope_tells_of_threads =
      !verdict.findings.empty() && !verdict.findings.front().threads.empty();
  if (inspector_ == nullptr || pid_ <= 0 ||
      (verdict.state != State::kSilent && !scope_tells_of_threads))
    return;
  auto found = look_beside_ ? FindProcessHangsBeside(clock_, *inspector_, pid_)
                            : FindProcessHangs(clock_, *inspector_, pid_);
  if (!found.ok()) {
    narrator_.Note("warning: the program's threads were not looked at: " + found.status().message(),
                   clock_.Wall());
    return;
  }
  of_threads_ = std::move(found->findings);
  threads_seen_ = std::move(found->threads);
}

// Of streams, scope and threads together.
Verdict Observer::VerdictNow() const {
  Verdict verdict = analysis_.verdict();
  if (scope_watch_ != nullptr) verdict = Combine(std::move(verdict), scope_watch_->opinion());
  return CombineThreads(std::move(verdict), of_threads_);
}

void Observer::Beat(const ChildView& child, const Verdict& verdict) {
  Heartbeat beat;
  beat.now = clock_.Monotonic();
  beat.wall = clock_.Wall();
  beat.elapsed = beat.now - start_;
  const TimeNs interval = beat.now - last_beat_;
  beat.streams = recording_.Pulse(last_totals_, interval);
  if (child.known && interval > 0) {
    beat.child_cpu = static_cast<double>(std::max<TimeNs>(0, child.cpu_time - last_cpu_)) /
                     static_cast<double>(interval);
  }
  beat.verdict = verdict;
  beat.waits_for_output = child.waits_for_output;
  narrator_.Beat(beat);
  last_totals_.clear();
  for (const StreamPulse& pulse : beat.streams) last_totals_.push_back(pulse.total_bytes);
  last_cpu_ = child.cpu_time;
  last_beat_ = beat.now;
  next_beat_ += beat_interval_ * ((beat.now - next_beat_) / beat_interval_ + 1);
}

// What befell the program's file, or who reads it: once each.
void Observer::ReportCode() {
  if (elf_ == nullptr) return;
  if (!elf_changed_ && elf_->HasChangedOnDisk()) {
    elf_changed_ = true;
    narrator_.Note(fmt::format("warning: '{}' was changed since the start; functions and lines are "
                               "those of the build that was there at the start",
                               options_.elf_path),
                   clock_.Wall());
  }
  if (!elf_failed_ && !elf_->status().ok()) {
    elf_failed_ = true;
    narrator_.Note(fmt::format("warning: '{}' cannot be read further: {}; new places have no names",
                               options_.elf_path, elf_->status().message()),
                   clock_.Wall());
  }
}

void Observer::ReportHang(const Verdict& verdict) {
  ReportCode();
  last_hang_ = verdict;
  std::string snapshot;
  if (options_.snapshot_on_hang) {
    DueSnapshot due;  // without a post: what is wanted lies before a hang
    due.trigger.kind = TriggerKind::kHang;
    due.trigger.name = "hang";
    auto folder = snapshots_.Take(due, verdict, threads_seen_, false);
    if (folder.ok()) snapshot = *folder;
  }
  narrator_.Announce(verdict, clock_.Wall(), snapshot, snapshots_.contents());
}

void Observer::ReportEndOfHang(const Verdict& verdict) {
  of_threads_.clear();
  threads_seen_.clear();
  if (verdict.time == 0) return;
  narrator_.Note(fmt::format("it goes on again: {} after {}", verdict.summary,
                             FormatElapsed(verdict.time - start_)),
                 clock_.Wall());
}

bool Observer::OnSignal(int number) {
  if (number != SIGUSR1 && number != SIGUSR2) return false;
  requests_.OnSignal(number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
  SnapshotAllOf(requests_.DrainDue(), VerdictNow());
  return true;
}

// Where a hang is still on, its snapshot has all that an end adds nothing to.
void Observer::OnExit(const ChildExit& exit) {
  if (!options_.snapshot_on_exit || (hang_now_ && options_.snapshot_on_hang)) return;
  if (exit.signal != 0)
    requests_.OnExit(fmt::format("signal {}", exit.signal));
  else if (exit.status != 0)
    requests_.OnExit(fmt::format("status {}", exit.status));
}

void Observer::SnapshotAllOf(const std::vector<DueSnapshot>& due, const Verdict& verdict) {
  for (const DueSnapshot& snapshot : due) {
    auto folder = snapshots_.Take(snapshot, verdict, threads_seen_, true);
    requests_.Answer(snapshot,
                     folder.ok() ? Result<std::string>(snapshots_.AbsolutePath(*folder)) : folder);
  }
}

void Observer::ReportPutOff() {
  for (const DueSnapshot& snapshot : requests_.DrainPutOff()) {
    if (snapshot.trigger.kind == TriggerKind::kExit) continue;
    const std::string when = snapshot.post.time != 0
                                 ? "in " + FormatElapsed(snapshot.post.time)
                                 : "after another " + FormatSize(snapshot.post.bytes);
    narrator_.Note(fmt::format("{}; snapshot {}", TriggerText(snapshot.trigger), when),
                   clock_.Wall());
  }
}

RecorderStatus Observer::StatusNow() {
  const Verdict verdict = VerdictNow();
  RecorderStatus status;
  status.pid = getpid();
  status.child_pid = pid_;
  status.name = NameOf(options_.prefix);
  status.prefix = snapshots_.AbsolutePath(options_.prefix);
  for (const RecordedStream& stream : recording_.streams())
    status.rings.push_back(snapshots_.AbsolutePath(stream.ring->prefix()));
  status.command = options_.command;
  status.age = clock_.Monotonic() - start_;
  status.total_bytes = recording_.total_bytes();
  status.bytes_per_second = requests_.bytes_per_second();
  status.state = StateName(verdict.state);
  status.confidence = ConfidenceName(verdict.confidence);
  status.hang = verdict.IsHang();
  status.summary = verdict.summary;
  status.snapshots = snapshots_.count();
  if (!snapshots_.last().empty()) status.last_snapshot = snapshots_.AbsolutePath(snapshots_.last());
  return status;
}

Verdict Observer::Conclude(const ChildView& child) {
  snapshots_.FinishPlainSnapshot();
  analysis_.Stop();
  warnings_.Report(true);
  Verdict verdict = analysis_.Conclude(child);
  if (scope_watch_ != nullptr) verdict = Combine(std::move(verdict), scope_watch_->opinion());
  std::vector<DueSnapshot> due = requests_.Finish([this] { return StatusNow(); });
  warnings_.ReportUnsearched(requests_.unseen_bytes(), true);
  const auto exit = std::stable_partition(due.begin(), due.end(), [](const DueSnapshot& d) {
    return d.trigger.kind != TriggerKind::kExit;
  });
  SnapshotAllOf({due.begin(), exit}, verdict);
  // The report of the end names its snapshot.
  if (exit != due.end() && snapshots_.Take(*exit, verdict, threads_seen_, false).ok()) {
    exit_snapshot_ = snapshots_.last();
    exit_contents_ = snapshots_.contents();
  }
  snapshots_.FinishReports();
  for (const auto& [name, count] : requests_.Suppressed()) {
    narrator_.Note(fmt::format("{}: {} more within the quiet period took no snapshot", name,
                               FormatCount(count)),
                   clock_.Wall());
  }
  requests_.Close();
  return verdict;
}

}  // namespace hangscope

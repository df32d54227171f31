#include "watch/target_acts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verdict/judge_picture.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

// What samples of the target's clock may take of a CPU: one part in so many.
constexpr TimeNs kClockShare = 200;
constexpr TimeNs kBetweenClocks = 200 * kMillisecond;

// The memory that the watch reads anyway, over all lives of the target: a debug server or a helper
// may answer one reader only.
class WatchedMemory final : public Target {
 public:
  explicit WatchedMemory(WatchedTarget& watched) : watched_(watched) {}
  const std::string& name() const override { return memory().name(); }
  Status Read(uint64_t address, std::span<char> bytes) override {
    return memory().Read(address, bytes);
  }
  Status Write(uint64_t address, std::string_view bytes) override {
    return memory().Write(address, bytes);
  }
  Life life() override { return memory().life(); }
  const std::vector<MemoryRange>& ranges() const override { return memory().ranges(); }
  std::optional<uint64_t> scope_address() const override {
    return watched_.view().layout().address;
  }
  bool IsKnown(uint64_t address, uint64_t size_bytes) const override {
    return memory().IsKnown(address, size_bytes);
  }
  std::string elf_path() const override { return memory().elf_path(); }

 private:
  Target& memory() const { return watched_.view().view().scope().target(); }

  WatchedTarget& watched_;
};

}  // namespace

std::vector<std::string> TargetsOf(const DeviceSpec& device) {
  std::vector<std::string> targets;
  for (const DeviceMemory& memory : device.memories) targets.push_back(memory.source.target);
  return targets;
}

TargetActs::TargetActs(const WatchWorld& world, const WatchActOptions& options, Watchable& target,
                       LiveDevice* device, std::vector<std::string> names, bool is_intrusive,
                       size_t index, TimeNs stall)
    : world_(world),
      options_(options),
      target_(target),
      device_(device),
      names_(std::move(names)),
      index_(index),
      is_intrusive_(is_intrusive),
      stall_(stall),
      start_(world.clock.Monotonic()),
      start_wall_(world.clock.Wall()),
      sightings_(stall),
      hang_(options.act_on),
      life_(target.life()),
      command_(options.on_hang.command, options.signals) {
  observed_.max_snapshots = options.max_snapshots;
}

TargetActs::TargetActs(const WatchWorld& world, const WatchActOptions& options,
                       WatchedTarget& target, const ScopeSource& source, size_t index, TimeNs stall)
    : TargetActs(world, options, target, nullptr, {source.target}, source.intrusive, index, stall) {
  observed_.elf_path = source.elf;
  observed_.elf_copy = source.elf_copy;
  observed_.scope.target = source.target;
  observed_.open_scope = [&target]() -> Result<std::unique_ptr<Target>> {
    return std::unique_ptr<Target>(std::make_unique<WatchedMemory>(target));
  };
}

TargetActs::TargetActs(const WatchWorld& world, const WatchActOptions& options, LiveDevice& device,
                       size_t index, TimeNs stall)
    : TargetActs(world, options, device, &device, TargetsOf(device.spec()),
                 std::any_of(device.spec().memories.begin(), device.spec().memories.end(),
                             [](const DeviceMemory& memory) { return memory.source.intrusive; }),
                 index, stall) {}

Status TargetActs::Start(std::unique_ptr<TargetProcesses> processes) {
  processes_ = std::move(processes);
  if (processes_ != nullptr) {
    for (const std::string& why : processes_->left_alone()) Note("warning", "warning: " + why);
  }
  return options_.on_hang.TakesSnapshot() ? OpenSnapshots() : Status();
}

bool TargetActs::IsActing() {
  const bool is_due = options_.on_hang.Acts() && hang_.IsActionPending() && target_.is_watched();
  return is_due || (processes_ != nullptr && processes_->IsEnding());
}

Status TargetActs::OpenSnapshots() {
  if (snapshots_ != nullptr) return {};
  auto prefix = world_.prefix_of(index_);
  if (!prefix.ok()) return prefix.status();
  observed_.prefix = std::move(*prefix);
  snapshots_ =
      std::make_unique<SnapshotTaker>(world_.files, world_.clock, observed_, world_.recording,
                                      world_.narrator, start_, start_wall_);
  if (device_ != nullptr) snapshots_->RecordDevice(*device_);
  return {};
}

Result<std::string> TargetActs::Take(TriggerKind kind, const std::string& name,
                                     const std::string& detail, bool since_last,
                                     const Verdict& verdict) {
  if (Status status = OpenSnapshots(); !status.ok()) {
    Note("warning", "cannot take a snapshot: " + status.message());
    return status;
  }
  DueSnapshot due;
  due.trigger.kind = kind;
  due.trigger.name = name;
  due.trigger.detail = detail;
  due.since_last = since_last;
  snapshots_->Tick(target_.owner());
  auto folder = snapshots_->Take(due, verdict, "", true);
  if (!folder.ok()) return folder;
  return snapshots_->AbsolutePath(*folder);
}

Result<std::string> TargetActs::Snapshot(TriggerKind kind, const std::string& name,
                                         bool since_last) {
  return Take(kind, name, "", since_last, VerdictNow());
}

Verdict TargetActs::VerdictNow() { return Judge(false, true); }

// `names_idle`: also who waits for the outside, of all cores, which takes a while.
Verdict TargetActs::Judge(bool is_news, bool names_idle) {
  const TimeNs now = world_.clock.Monotonic();
  sightings_.Update(target_, is_news, now);
  Picture picture;
  picture.now = now;
  picture.start = start_;
  picture.scope = sightings_.sightings();
  picture.scope.attached = true;
  // That one of several memories died is no verdict on the others.
  const bool is_part = device_ != nullptr && !device_->is_over();
  if (!is_part)
    picture.scope.findings.insert(picture.scope.findings.end(), ended_.begin(), ended_.end());
  if (!target_.is_watched())
    picture.scope.moving.clear();
  else if (names_idle)
    picture.scope.outside = IdleIn(target_.Scene(now));
  Verdict verdict = JudgePicture(picture, {stall_});
  if (is_part) verdict.findings.insert(verdict.findings.end(), ended_.begin(), ended_.end());
  return verdict;
}

void TargetActs::Follow(const std::vector<ScopeFinding>& fresh) {
  const bool is_another = std::exchange(life_, target_.life()) != target_.life();
  if (is_another) {
    sightings_.Forget();
    if (snapshots_ != nullptr) snapshots_->ForgetScope();
  }
  if (snapshots_ != nullptr) {
    SampleClock(world_.clock.Monotonic());
    snapshots_->ReportUnwrittenReports();
  }
  command_.Collect();
  if (processes_ != nullptr) processes_->Tick(world_.clock.Monotonic());
  const bool was_on = hang_.is_on();
  // To ask the judge of a thousand cores takes a while.
  if (fresh.empty() && !was_on) return;
  ReportEnd(fresh);
  const Verdict verdict = Judge(!fresh.empty(), false);
  switch (hang_.Follow(verdict)) {
    case HangTracker::News::kHang:
      ReportHang(verdict);
      break;
    case HangTracker::News::kBetter:
      if (!hang_snapshot_.empty() && hang_snapshot_ == snapshots_->last())
        snapshots_->AmendLast(*hang_.last(), "");
      break;
    case HangTracker::News::kOver:
      if (options_.on_hang.TakesSnapshot() && !is_another && target_.is_watched())
        Note("over", "it goes on again: " + verdict.summary);
      break;
    case HangTracker::News::kNone:
      AddVictims(verdict);
      break;
  }
  // Not before it was seen once more, where it can be.
  if ((was_on || !target_.is_watched()) && hang_.IsToBeActedOn()) Act();
}

// Who waits for a core that was found faulty at first sight comes after the report of the hang.
void TargetActs::AddVictims(const Verdict& verdict) {
  if (!hang_.is_on()) return;
  std::optional<Verdict> told;
  const std::vector<Finding>& known = hang_.last()->findings;
  for (size_t i = 0; i < known.size(); ++i) {
    const auto now =
        std::find_if(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& finding) {
          return finding.kind == known[i].kind && finding.summary == known[i].summary &&
                 finding.victims.size() > known[i].victims.size();
        });
    if (now == verdict.findings.end()) continue;
    if (!told) told = *hang_.last();
    told->findings[i] = *now;
  }
  if (!told) return;
  hang_.Complete(*told);
  if (!hang_snapshot_.empty() && hang_snapshot_ == snapshots_->last())
    snapshots_->AmendLast(*told, "");
}

void TargetActs::Act() {
  if (options_.on_hang.what == OnHang::kKill) EndProcess();
  if (options_.on_hang.what != OnHang::kExec) return;
  const Status status =
      command_.Start({snapshots_->last(), target_.owner(), hang_.last()->summary, target_.name()});
  if (!status.ok()) Note("warning", status.message());
}

// A target that started again may have another process.
void TargetActs::EndProcess() {
  if (life_ > 1 && !processes_->was_told()) {
    auto found = TargetProcesses::Find(world_.files, names_);
    if (!found.ok()) return Note("warning", found.status().message());
    processes_ = std::move(*found);
  }
  for (const std::string& failure : processes_->End(world_.clock.Monotonic()))
    Note("warning", failure);
  if (!processes_->was_told()) return;
  done_ = fmt::format("  ended by hangscope (--on-hang kill): {}\n", processes_->names());
  Note("ends", fmt::format("--on-hang kill: ends {}", processes_->names()));
}

// How the target's clock goes beside ours, for the window of a snapshot. It reads all rings.
void TargetActs::SampleClock(TimeNs now) {
  if (now < next_clock_ || is_intrusive_ || !target_.is_watched()) return;
  snapshots_->Tick(target_.owner());
  const TimeNs took = world_.clock.Monotonic() - now;
  next_clock_ = now + std::max(kBetweenClocks, kClockShare * took);
}

void TargetActs::ReportHang(const Verdict& verdict) {
  hang_snapshot_.clear();
  if (options_.on_hang.TakesSnapshot() && Take(TriggerKind::kHang, "hang", "", false, verdict).ok())
    hang_snapshot_ = snapshots_->last();
  if (options_.on_hang.Acts() && verdict.state == State::kPartial && !options_.act_on.partial)
    Note("left", fmt::format("{}: {}", verdict.goes_on, kPartialIsLeftAlone));
}

// A target that died is no hang; what it left is kept all the same, as hangscope run does.
void TargetActs::ReportEnd(const std::vector<ScopeFinding>& fresh) {
  const ScopeFinding* bad_end = nullptr;
  for (const ScopeFinding& finding : fresh) {
    if (finding.IsBad()) bad_ = target_.Tell(finding, world_.clock.Monotonic());
    if (finding.kind != FindingKind::kDead) continue;
    ended_.push_back(target_.Tell(finding, world_.clock.Monotonic()));
    if (bad_end == nullptr && finding.IsBad()) bad_end = &finding;
  }
  if (bad_end != nullptr && options_.on_hang.TakesSnapshot() && !hang_.is_on())
    (void)Take(TriggerKind::kExit, "exit", bad_end->summary, false, Judge(true, false)).ok();
}

JunitCase TargetActs::Junit() const {
  JunitCase result;
  result.name = target_.name();
  result.elapsed = world_.clock.Monotonic() - start_;
  if (const Verdict* const hang = hang_.last()) {
    result.failure = "hang: " + HeadlineWithSubject(*hang);
    result.report = VerdictText(*hang, start_, hang_snapshot_) + done_;
  } else if (bad_) {
    result.error = bad_->summary;
    for (const std::string& line : bad_->lines) result.report += "  " + line + "\n";
  }
  return result;
}

void TargetActs::Finish() {
  if (snapshots_ != nullptr) snapshots_->FinishReports();
}

}  // namespace hangscope

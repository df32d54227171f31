// An OS whose cores are dead (a loop without interrupts, an exception, a hook that does not return)
// looks like one that idles: its tasks wait, and one of them is ready. What tells them apart is a
// task that sleeps for a set time and should have woken: whoever idles, with or without a tick,
// wakes it. docs/verdicts.md has the rules.
#include <fmt/format.h>

#include <algorithm>

#include "scope/judgement.h"
#include "scope/watcher.h"

namespace hangscope {
namespace {

constexpr int kLongerThanUsual = 3;  // by this factor

}  // namespace

void Watcher::FollowStillCores(Judgement& look) {
  still_.reset();
  if (look.dead || options_.is_device || !ShowsStillness(look)) return;
  StillCores still = CoresOf(look);
  if (still.cores.empty()) return;
  const std::optional<uint32_t> works = WorkingTask(look, still);
  const bool cannot_idle = works && histories_[*works].waited_once;
  bool may_be_overdue = false;
  for (uint32_t i = cores_; i < subjects_.size(); ++i)
    may_be_overdue = may_be_overdue || MayBeOverdue(look, i);
  // One core of several is still whenever it idles; the rings are not read each time for that.
  if (!may_be_overdue && still.goes_on && !works) return;
  AskForNews(look, true);
  for (uint32_t i = cores_; i < subjects_.size(); ++i) AddOverdue(look, i, cannot_idle, &still);
  if (works) {
    still.evidence.push_back(
        fmt::format("{} has the core, and is ready", Name(subjects_[*works].subject)));
    for (const uint32_t ready : ReadyWithoutCore(look))
      still.evidence.push_back(fmt::format("{} is ready, too", Name(subjects_[ready].subject)));
  }
  if (still.overdue.empty()) {
    // A kernel may well need no tick while one task computes and none sleeps.
    const bool ticked = look.sample.rings[still.cores.front()].ticks != 0;
    if (!works || !ticked) return;
    still.doubt = "no task sleeps that should have woken: it may compute";
  } else if (still.confidence == Confidence::kPossible) {
    if (still.goes_on) return;  // a core that idles beside others is nothing special
    still.doubt = "it may idle: how long the sleep was to be is not known";
  } else if (still.goes_on && !works && still.cores.size() > 1) {
    still.doubt = "which of the cores that stand still was to wake it is not known";
  }
  for (const uint32_t core : still.cores)
    SetActivity(look, core, Activity::kSilent, histories_[core].ring_since);
  still_ = std::move(still);
}

// No core is paused or halted, and their rings are seen.
bool Watcher::ShowsStillness(const Judgement& look) const {
  return look.sample.rings.size() == cores_ && !look.sample.tasks.empty() &&
         std::none_of(subjects_.begin(), subjects_.end(), [](const SubjectState& subject) {
           return subject.activity == Activity::kCorrupt || subject.activity == Activity::kHalted ||
                  subject.activity == Activity::kPaused;
         });
}

bool Watcher::IsStill(const Judgement& look, uint32_t core) const {
  const History& history = histories_[core];
  return history.ring_looks >= 2 && LastsForStall(look, history.ring_since) &&
         (!subjects_[core].sample.in_use || LastsForStall(look, history.changed));
}

// Those that run tasks and of which nothing has moved for the stall time. Where some of these count
// ticks, they: who counts time is who lost it. Where no core goes on, no task may have changed
// either.
Watcher::StillCores Watcher::CoresOf(const Judgement& look) const {
  StillCores still;
  bool any_ticks = false;
  for (uint32_t core = 0; core < cores_; ++core) {
    const RingLook& ring = look.sample.rings[core];
    const bool runs = ring != RingLook{} || look.sample.running_tasks[core] != 0;
    if (!IsStill(look, core)) {
      if (!runs) return {};
      still.goes_on = core;
      continue;
    }
    if (!runs || subjects_[core].sample.wait || (any_ticks && ring.ticks == 0)) continue;
    if (ring.ticks != 0 && !any_ticks) still.cores.clear();
    any_ticks = any_ticks || ring.ticks != 0;
    still.cores.push_back(core);
  }
  for (uint32_t i = cores_; i < subjects_.size() && !still.goes_on; ++i) {
    if (!LastsForStall(look, histories_[i].changed)) return {};
  }
  return still;
}

// Those that have been ready for the stall time and had no core.
std::vector<uint32_t> Watcher::ReadyWithoutCore(const Judgement& look) const {
  const std::vector<uint32_t>& running = look.sample.running_tasks;
  std::vector<uint32_t> ready;
  for (uint32_t i = cores_; i < subjects_.size(); ++i) {
    const bool has_core =
        std::find(running.begin(), running.end(), subjects_[i].task) != running.end();
    if (subjects_[i].task != 0 && !has_core && subjects_[i].activity == Activity::kRunning &&
        LastsForStall(look, histories_[i].changed))
      ready.push_back(i);
  }
  return ready;
}

// A task that has a core, one that stands still, and something to do: the idle task never waits for
// anything, and has no core while another is ready.
std::optional<uint32_t> Watcher::WorkingTask(const Judgement& look, const StillCores& still) const {
  std::vector<uint32_t> running = look.sample.running_tasks;
  if (still.goes_on) {
    running.clear();
    for (const uint32_t core : still.cores) running.push_back(look.sample.running_tasks[core]);
  }
  std::optional<uint32_t> may_idle;
  for (uint32_t i = cores_; i < subjects_.size(); ++i) {
    const bool has_core = subjects_[i].task != 0 && std::find(running.begin(), running.end(),
                                                              subjects_[i].task) != running.end();
    const bool stands = LastsForStall(look, histories_[i].changed);
    if (!has_core || !stands || subjects_[i].activity != Activity::kRunning) continue;
    if (histories_[i].waited_once) return i;
    may_idle = i;
  }
  return ReadyWithoutCore(look).empty() ? std::nullopt : may_idle;
}

bool Watcher::MayBeOverdue(const Judgement& look, uint32_t index) const {
  const SubjectState& subject = subjects_[index];
  return subject.wait && subject.wait->kind == ResourceKind::kTime &&
         look.now - subject.since >=
             std::max(options_.stall, kLongerThanUsual * histories_[index].longest_sleep);
}

// Whether the task should have woken: by what its ring says of this sleep, else by what the longest
// of its sleeps took that a look saw. The second is likely only where somebody has work to do: an
// OS that idles may sleep for longer than ever before.
void Watcher::AddOverdue(const Judgement& look, uint32_t index, bool works,
                         StillCores* still) const {
  const SubjectState& subject = subjects_[index];
  const History& history = histories_[index];
  if (!subject.wait || subject.wait->kind != ResourceKind::kTime) return;
  const TimeNs slept = GivenSince(look, subject.since);
  const auto told = news_.sleeps.find(subject.task);
  const bool is_told = told != news_.sleeps.end();
  if (!is_told && history.longest_sleep == 0) return;
  // A simulator may be slower than its guest's clock says: what a look saw counts, too.
  const TimeNs due = std::max(history.longest_sleep, is_told ? told->second : options_.stall);
  if (slept < kLongerThanUsual * due) return;
  still->overdue.push_back(index);
  if (is_told || works) still->confidence = Confidence::kLikely;
  still->evidence.push_back(
      is_told ? fmt::format("{} sleeps for {:.1f} s, and was to sleep for {:.1f} s",
                            Name(subject.subject), Seconds(slept), Seconds(due))
              : fmt::format("{} sleeps for {:.1f} s, and never slept for longer than {:.1f} s",
                            Name(subject.subject), Seconds(slept), Seconds(history.longest_sleep)));
}

bool Watcher::IsStillCore(uint32_t subject) const {
  return still_ &&
         std::find(still_->cores.begin(), still_->cores.end(), subject) != still_->cores.end();
}

void Watcher::FindStillCores(Judgement& look) const {
  if (!still_) return;
  for (const uint32_t core : still_->cores) {
    ScopeFinding finding = FindingAbout(look, core);
    finding.kind = FindingKind::kSilent;
    finding.confidence = Confidence::kLikely;
    for (const uint32_t task : still_->overdue) finding.victims.push_back(subjects_[task].subject);
    const bool ticks = look.sample.rings[core].ticks != 0;
    const double still_s = Seconds(look.now - histories_[core].ring_since);
    finding.evidence.push_back(
        still_->goes_on
            ? fmt::format("it recorded no event{} for {:.1f} s, while core {} goes on",
                          ticks ? " and counted no tick" : "", still_s, *still_->goes_on)
            : fmt::format("no event was recorded{} and no task's record has changed for {:.1f} s",
                          ticks ? ", no tick counted," : "", still_s));
    finding.evidence.insert(finding.evidence.end(), still_->evidence.begin(),
                            still_->evidence.end());
    AddHeldUp(look, histories_[core].ring_since, &finding);
    if (!still_->doubt.empty()) finding.Lower(Confidence::kPossible, still_->doubt);
    look.Add(std::move(finding), {static_cast<uint32_t>(look.sample.rings[core].emitted)});
  }
}

}  // namespace hangscope

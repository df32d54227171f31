#include "observe/thread_watch.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace hangscope {
namespace {

constexpr TimeNs kShortestMotion = 100 * kMillisecond;
constexpr int kMotionsPerStall = 10;
// What samples of the motion, and looks where nothing is suspected, may each take of a CPU: 1 %.
constexpr TimeNs kCostShare = 100;
constexpr TimeNs kBurst = kSecond / 2;    // of a CPU, that looks may take beyond that, once
constexpr TimeNs kLongAbsence = kSecond;  // between two samples that are due: we were stopped
// Loops that only others can end are waited in for moments, too: seen again so much later, it is no
// moment.
constexpr TimeNs kSpinLasts = 800 * kMillisecond;

// A look that waits for those who poll, or try again and again, keeps this thread from all else:
// not sooner after the one before than this, nor than so many times what that took.
constexpr TimeNs kBetweenPatientLooks = 10 * kSecond;
constexpr TimeNs kPatientShare = 20;

// Of this thread, and of the processes that it started and collected.
TimeNs CpuTimeSoFar() {
  TimeNs time = 0;
  for (const int who : {RUSAGE_THREAD, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval& each : {used.ru_utime, used.ru_stime})
      time += each.tv_sec * kSecond + each.tv_usec * (kMillisecond / 1000);
  }
  return time;
}

// That its threads stand is known from looks alone: they move meanwhile.
bool IsKnownByLooks(const Finding& finding) {
  return finding.kind == FindingKind::kSpin || finding.is_restless;
}

std::string ThreadName(const ProcFolder& proc, int thread) {
  std::string name = proc.Read(fmt::format("{}/comm", thread)).value_or("");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return fmt::format("{} {}", thread, name);
}

}  // namespace

void ThreadWatch::Follow(int pid, const std::vector<int>& processes, TimeNs suspected_since,
                         bool silent) {
  const TimeNs now = clock_.Monotonic();
  if (now < next_motion_) return;
  if (!blind_.empty()) {
    sightings_.attached = true;
    sightings_.as_of = now;
    sightings_.incomplete = warning_ = blind_;
    return;
  }
  if (HasBeenAway(now)) motion_.Interrupted(now);
  if (began_ == 0) began_ = now;
  processes_ = processes;
  const TimeNs used_before = CpuTimeSoFar();
  Confirm();
  const TimeNs cost = CpuTimeSoFar() - used_before;
  next_motion_ = now + std::max({kShortestMotion, stall_ / kMotionsPerStall, kCostShare * cost});
  if (IsDue(now, suspected_since)) Look(pid, silent);
  may_attach_ = false;
}

void ThreadWatch::SampleMotion(TimeNs now) {
  if (may_attach_) motion_.NoteAttach();
  motion_.Sample(now, processes_);
}

// Nobody looked for a while: this process was stopped, or the machine was, or it is overloaded.
// What the others could not do meanwhile counts for nobody's stillness.
bool ThreadWatch::HasBeenAway(TimeNs now) {
  return next_motion_ != 0 && now - std::max(next_motion_, looked_until_) > kLongAbsence;
}

void ThreadWatch::Confirm() {
  const TimeNs now = clock_.Monotonic();
  SampleMotion(now);
  std::erase_if(found_,
                [this](const Finding& finding) { return HasEnded(finding) || HasMoved(finding); });
  Sum(now);
}

bool ThreadWatch::Runs(int thread) const {
  const auto at = motion_.still_since().find(thread);
  return at != motion_.still_since().end() && at->second == motion_.sampled();
}

bool ThreadWatch::SomebodyRuns() const {
  const auto& threads = motion_.still_since();
  return std::any_of(threads.begin(), threads.end(),
                     [this](const auto& thread) { return Runs(thread.first); });
}

// The latest look saw a hang, and others that did something beside it and have stood still since:
// only another look says whether these may go on, whatever it costs.
bool ThreadWatch::DecidesWhoGoesOn(TimeNs now) const {
  const auto& moved = standing_.moving;
  return now - looked_until_ >= stall_ && !moved.empty() &&
         std::any_of(found_.begin(), found_.end(),
                     [](const Finding& finding) { return finding.IsBad(); }) &&
         std::all_of(moved.begin(), moved.end(), [&](int thread) {
           return motion_.still_since().contains(thread) &&
                  motion_.StillTime(thread, now) >= stall_;
         });
}

// A suspicion is looked into at once; and again what may be a spin, when it would be one. Later
// looks tell something new only where others stand still by now, or somebody runs.
bool ThreadWatch::IsDue(TimeNs now, TimeNs suspected_since) const {
  if (motion_.IsDisturbed()) return false;  // it would see the debugger's stops
  if (looks_again_ || looked_ < suspected_since || DecidesWhoGoesOn(now)) return true;
  const bool may_spin = std::any_of(spinning_since_.begin(), spinning_since_.end(),
                                    [&](const auto& spin) { return !HasLasted(spin.second, now); });
  if (may_spin) return now - looked_until_ >= kSpinLasts;
  const std::set<int> still = motion_.StillFor(stall_);
  const bool is_news = (!still.empty() && still != stood_still_) ||
                       (suspected_since != 0 && (SomebodyRuns() || found_.empty()));
  return is_news && now - looked_until_ >= kSpinLasts &&
         spent_ <= kBurst + (now - began_) / kCostShare;
}

void ThreadWatch::Look(int pid, bool silent) {
  const TimeNs begin = clock_.Monotonic();
  const TimeNs used_before = CpuTimeSoFar();
  const uint64_t disturbances = motion_.disturbances();
  HangQuestion question(pid);
  question.descendants = true;
  question.also = processes_;
  question.step = silent && SomebodyRuns();
  const bool any_restless = std::any_of(found_.begin(), found_.end(),
                                        [](const Finding& finding) { return finding.is_restless; });
  question.is_patient = silent && (any_restless || begin >= patient_after_);
  auto found = beside_ ? FindProcessHangsBeside(clock_, inspector_, question)
                       : FindProcessHangs(clock_, inspector_, question);
  const TimeNs now = clock_.Monotonic();
  looked_ = begin;
  looked_until_ = now;
  if (question.is_patient)
    patient_after_ = now + std::max(kBetweenPatientLooks, kPatientShare * (now - begin));
  spent_ += CpuTimeSoFar() - used_before;
  stood_still_ = motion_.StillFor(stall_);
  if (motion_.keeps_waits()) {
    SampleMotion(now);
    if (motion_.disturbances() != disturbances) return;  // it saw the debugger's stops
  }
  if (!found.ok()) {
    warning_ = found.status().message();
    return;
  }
  const std::vector<int> moved_before = std::exchange(standing_.moving, {});
  standing_ = std::move(found->standing);
  tickers_.insert(standing_.tickers.begin(), standing_.tickers.end());
  for (const int thread :
       moved_before) {  // in two looks: it does more than to wake and sleep again
    if (std::count(standing_.moving.begin(), standing_.moving.end(), thread) != 0)
      tickers_.erase(thread);
  }
  std::erase_if(tickers_, [this](int thread) { return !motion_.still_since().contains(thread); });
  details_ = std::move(found->threads);
  waits_ = std::move(found->waits);
  slept_ = std::move(found->still_threads);
  CollectFindings(found->findings, now);
  const bool any_bad = std::any_of(found_.begin(), found_.end(),
                                   [](const Finding& finding) { return finding.IsBad(); });
  looks_again_ = !looks_again_ && any_bad && !MovedLately(now).empty();
  Sum(now);
}

void ThreadWatch::CollectFindings(const std::vector<Finding>& found, TimeNs now) {
  found_.clear();
  // One that was not seen in its loop this time, for a busy machine gave it no time, may still be.
  std::map<int, TimeNs> spinning;
  for (const auto& [thread, since] : spinning_since_) {
    if (Runs(thread) || !motion_.still_since().contains(thread)) spinning.emplace(thread, since);
  }
  for (const Finding& each : found) {
    if (IsKnownByLooks(each)) {
      for (const FindingSubject& subject : each.subjects) spinning.emplace(subject.thread, now);
    }
    if (each.is_restless) {
      for (const FindingSubject& victim : each.victims) spinning.emplace(victim.thread, now);
    }
    if (!HasEnded(each)) found_.push_back(each);
  }
  spinning_since_ = std::move(spinning);
}

bool ThreadWatch::HasMoved(const Finding& finding) const {
  return !IsKnownByLooks(finding) &&
         std::any_of(finding.subjects.begin(), finding.subjects.end(),
                     [this](const FindingSubject& who) {
                       const auto at = motion_.still_since().find(who.thread);
                       return at != motion_.still_since().end() && at->second > looked_;
                     });
}

// A wait is over when whoever waited has ended, as when the program ends between a look and the
// next. Threads of other programs, to which waits may lead, are not followed.
bool ThreadWatch::HasEnded(const Finding& finding) {
  bool ended = false;
  for (const FindingSubject& who : finding.subjects) {
    if (motion_.still_since().contains(who.thread))
      followed_.insert(who.thread);
    else
      ended = ended || followed_.contains(who.thread);
  }
  return ended;
}

bool ThreadWatch::HasLasted(TimeNs spinning_since, TimeNs now) const {
  return now - spinning_since >= std::min(kSpinLasts, stall_);
}

// But for those that only wake from a timer, and sleep so again.
std::vector<int> ThreadWatch::MovedLately(TimeNs now) const {
  std::vector<int> moved = standing_.moving;
  for (const auto& [thread, since] : motion_.still_since()) {
    const bool ticks = tickers_.contains(thread);
    const bool known = std::count(moved.begin(), moved.end(), thread) != 0;
    if (!ticks && !known && motion_.StillTime(thread, now) < stall_) moved.push_back(thread);
  }
  std::erase_if(moved, [&](int thread) {
    const auto& serving = standing_.serving;
    if (tickers_.contains(thread) || std::count(serving.begin(), serving.end(), thread) != 0)
      return true;
    const auto spin = spinning_since_.find(thread);
    return spin != spinning_since_.end() && HasLasted(spin->second, now);
  });
  return moved;
}

// For the stall time, and since before the latest look.
std::vector<int> ThreadWatch::StillOf(const std::vector<int>& threads, TimeNs now) const {
  std::vector<int> still;
  for (const int thread : threads) {
    const auto at = motion_.still_since().find(thread);
    if (at != motion_.still_since().end() && at->second <= looked_ &&
        motion_.StillTime(thread, now) >= stall_)
      still.push_back(thread);
  }
  return still;
}

// What stands still for less than the stall time may only be slow.
void ThreadWatch::Sum(TimeNs now) {
  const TimeNs found_at = sightings_.findings.empty() ? now : sightings_.found_at;
  sightings_ = {};
  sightings_.attached = true;
  sightings_.as_of = looked_;
  sightings_.undecided = looks_again_;
  for (const Finding& finding : found_) {
    Finding mine = finding;
    mine.since = 0;
    bool lasts = true;
    for (const FindingSubject& subject : finding.subjects) {
      const auto spin = spinning_since_.find(subject.thread);
      const auto still = motion_.still_since().find(subject.thread);
      if (IsKnownByLooks(finding) && spin != spinning_since_.end()) {
        lasts = lasts && HasLasted(spin->second, now);
        mine.since = std::max(mine.since, spin->second);
      } else if (still != motion_.still_since().end()) {
        lasts = lasts && motion_.StillTime(subject.thread, now) >= stall_;
        mine.since = std::max(mine.since, still->second);
      }
    }
    if (lasts) sightings_.findings.push_back(std::move(mine));
  }
  if (!sightings_.findings.empty()) sightings_.found_at = found_at;
  for (const int thread : MovedLately(now)) sightings_.moving.push_back(ThreadName(proc_, thread));
  for (const int thread : standing_.tickers) sightings_.timed.push_back(ThreadName(proc_, thread));
  sightings_.outside = standing_.outside;
  sightings_.unknown = standing_.unknown;
  sightings_.halted = standing_.halted;
  sightings_.still_threads = StillOf(slept_, now);
  for (const Wait& wait : waits_) {
    if (StillOf({wait.who.thread}, now).empty()) continue;
    sightings_.waits.push_back(wait);
    sightings_.waits.back().since = motion_.still_since().at(wait.who.thread);
  }
  if (looked_ != 0 && !standing_.complete)
    sightings_.incomplete =
        standing_.hidden.empty() ? "not all of its processes could be looked at" : standing_.hidden;
}

std::optional<std::string> ThreadWatch::DrainWarning() {
  if (warning_.empty() || warning_ == warned_) return std::nullopt;
  warned_ = warning_;
  return warning_;
}

}  // namespace hangscope

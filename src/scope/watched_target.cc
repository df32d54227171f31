#include "scope/watched_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/signal_text.h"
#include "base/units.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr TimeNs kBetweenTries = 200 * kMillisecond;
constexpr int kRestartLoop = 4;  // starts
constexpr TimeNs kSoon = 3;      // stalls

// Cores and tasks that were not at rest.
std::vector<SubjectId> AtWork(const std::vector<SubjectState>& subjects) {
  std::vector<SubjectId> found;
  for (const SubjectState& subject : subjects) {
    const bool rests = subject.activity == Activity::kUnused ||
                       subject.activity == Activity::kEnded || subject.activity == Activity::kIdle;
    if (!rests) found.push_back(subject.subject);
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<WatchedTarget>> WatchedTarget::Open(FileSystem& files,
                                                           const ScopeSource& source,
                                                           const WatcherOptions& options,
                                                           TimeNs now) {
  std::unique_ptr<WatchedTarget> target(new WatchedTarget(files, source, options));
  if (Status status = target->OpenView(); !status.ok()) return status;
  const int pid = target->view_->pid();
  const bool no_more = pid > 0 && target->process_ == nullptr && !target->view_->view().is_image();
  // Of a process that ended a moment ago the next look says how.
  if (target->process_ != nullptr || (!no_more && !target->view_->IsDead())) return target;
  (void)target->view_->PollDead(now).ok();
  target->was_found_dead_ = true;
  target->is_dump_ = !no_more;
  if (target->view_->is_held()) {
    target->notes_.push_back({"held", "stopped for one look by its debug server; not watched on"});
  } else {
    target->notes_.push_back(
        {"ended", no_more ? fmt::format("process {} is no more; this is how it ended", pid)
                          : "nobody writes to it any more; this is how it ended"});
  }
  target->state_ = State::kOver;
  return target;
}

Status WatchedTarget::OpenView() {
  // Before all else: it may end meanwhile, and how is not known of a process that is no more.
  const TargetSpec spec = ParseTargetSpec(files_, source_.target);
  std::unique_ptr<ProcessEnd> process;
  if (spec.kind == TargetSpec::Kind::kProcess && spec.pid > 0)
    process = ProcessEnd::Watch(spec.pid);
  auto view = LiveScope::Open(files_, source_, options_);
  if (!view.ok()) return view.status();
  if (view_ != nullptr) bytes_before_ += view_->reader().bytes_read();
  view_ = std::move(*view);
  const int owner = view_->view().is_image() ? 0 : view_->owner();
  if (process == nullptr || process->pid() != owner)
    process = owner > 0 ? ProcessEnd::Watch(owner) : nullptr;
  process_ = std::move(process);
  ++life_;
  first_look_.reset();
  found_.clear();
  return {};
}

void WatchedTarget::Poll(TimeNs now) {
  if (state_ == State::kWatched) SampleLive(now);
  if (state_ == State::kAway && now >= next_try_) TryAgain(now);
}

void WatchedTarget::SampleLive(TimeNs now) {
  // Asked before the look, so that the last look comes after the end.
  const bool ended = process_ != nullptr && process_->HasEnded();
  auto same = view_->IsSame();
  if (!same.ok()) return ended ? End(now) : GoAway(same.status().message(), now);
  if (!*same) return GoAway(view_->why_another(), now);
  if (Status status = view_->Poll(now); !status.ok())
    return ended ? End(now) : GoAway(status.message(), now);
  if (!first_look_) first_look_ = now;
  if (!ended && TakesItForDump(now)) return;
  TakeFindings();
  if (ended) End(now);
}

void WatchedTarget::TakeFindings() {
  for (ScopeFinding& finding : view_->watcher().DrainFindings()) {
    found_.emplace_back(finding.kind, finding.subjects);
    findings_.push_back(std::move(finding));
  }
}

// In a dump all waits last as long as one looks, those of a target that was at work, too: it is
// judged as one, once, and as hangscope why does.
bool WatchedTarget::TakesItForDump(TimeNs now) {
  if (!view_->MayBeDump() || now - *first_look_ < options_.stall) return false;
  const auto found = std::move(found_);
  if (!OpenView().ok() || !view_->MayBeDump()) return false;  // somebody has it mapped meanwhile
  if (!view_->PollDead(now).ok()) return false;
  notes_.push_back(
      {"dump", fmt::format("nobody has it mapped, and nothing in it changed for {}: it "
                           "is taken for a dump",
                           FormatElapsed(options_.stall))});
  for (ScopeFinding& finding : view_->watcher().DrainFindings()) {
    const std::pair key{finding.kind, finding.subjects};
    if (std::find(found.begin(), found.end(), key) == found.end())
      findings_.push_back(std::move(finding));
  }
  is_dump_ = was_found_dead_ = true;
  state_ = State::kOver;
  return true;
}

void WatchedTarget::GoAway(const std::string& why, TimeNs now) {
  state_ = State::kAway;
  away_why_ = why;
  away_since_ = now;
  next_try_ = now;
}

// A target that starts again is unreadable for a moment.
void WatchedTarget::TryAgain(TimeNs now) {
  next_try_ = now + kBetweenTries;
  if (OpenView().ok()) {
    state_ = State::kWatched;
    NoteRestart(now);
    return;
  }
  if (now - away_since_ < options_.stall) return;
  FindDead("it is gone: " + away_why_, Confidence::kCertain, "", away_since_);
  state_ = State::kOver;
}

// A target that starts again and again is one finding; who starts one by hand takes longer.
void WatchedTarget::NoteRestart(TimeNs now) {
  const bool soon = restarts_ != 0 && now - last_restart_ <= kSoon * options_.stall;
  if (!soon) {
    restarts_ = 0;
    first_restart_ = now;
  }
  last_restart_ = now;
  ++restarts_;
  const std::string often =
      fmt::format("at least {} times in {}", restarts_, FormatElapsed(now - first_restart_));
  if (restarts_ < kRestartLoop)
    notes_.push_back({"restarted", "it started again: " + away_why_});
  else if (restarts_ == kRestartLoop)
    FindDead("it starts again and again, " + often, Confidence::kLikely,
             "somebody may start it again by hand", first_restart_);
  else if (std::has_single_bit(static_cast<unsigned>(restarts_)))
    notes_.push_back({"restarted", "it goes on starting again, " + often});
}

void WatchedTarget::End(TimeNs now) {
  state_ = State::kOver;
  const int pid = process_->pid();
  const ProcessEnd::How how = process_->how();
  if (how.known && how.signal_number != 0) {
    return FindDead(fmt::format("process {} was killed by {}", pid, SignalText(how.signal_number)),
                    Confidence::kCertain, "", now);
  }
  if (how.known) {
    notes_.push_back(
        {"ended", fmt::format("process {} ended with status {}", pid, how.exit_status)});
    return;
  }
  const std::vector<SubjectId> at_work = AtWork(view_->watcher().subjects());
  if (at_work.empty() || view_->EndedByItself()) {
    notes_.push_back({"ended", fmt::format("process {} ended", pid)});
  } else {
    FindDead(fmt::format("process {} ended while {} of its cores and tasks were at work", pid,
                         at_work.size()),
             Confidence::kLikely,
             "this kernel does not tell how a process ended that is not one's own", now);
  }
}

void WatchedTarget::FindDead(const std::string& what, Confidence confidence, std::string doubt,
                             TimeNs now) {
  ScopeFinding finding;
  finding.kind = FindingKind::kDead;
  finding.confidence = confidence;
  finding.time = now;
  finding.since = now;
  finding.subjects = AtWork(view_->watcher().subjects());
  finding.summary = what;
  finding.repeated_evidence = {what};
  if (!doubt.empty()) finding.doubts = {std::move(doubt)};
  findings_.push_back(std::move(finding));
}

std::vector<ScopeFinding> WatchedTarget::DrainFindings() {
  std::ranges::move(view_->watcher().DrainFindings(), std::back_inserter(findings_));
  return std::exchange(findings_, {});
}

std::vector<WatchedTarget::Note> WatchedTarget::DrainNotes() { return std::exchange(notes_, {}); }

}  // namespace hangscope

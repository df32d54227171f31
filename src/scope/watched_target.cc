#include "scope/watched_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace hangscope {
namespace {

constexpr TimeNs kBetweenTries = 200 * kMillisecond;

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
  if (target->view_->pid() > 0 && target->process_ == nullptr) {
    (void)target->view_->PollDead(now).ok();
    target->notes_.push_back({"ended", fmt::format("process {} is no more; this is how it ended",
                                                   target->view_->pid())});
    target->state_ = State::kOver;
  }
  return target;
}

Status WatchedTarget::OpenView() {
  auto view = LiveScope::Open(files_, source_, options_);
  if (!view.ok()) return view.status();
  if (view_ != nullptr) bytes_before_ += view_->reader().bytes_read();
  view_ = std::move(*view);
  process_ = view_->owner() > 0 ? ProcessEnd::Watch(view_->owner()) : nullptr;
  ++life_;
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
  if (!*same) return GoAway("something else is in its place", now);
  if (Status status = view_->Poll(now); !status.ok())
    return ended ? End(now) : GoAway(status.message(), now);
  std::ranges::move(view_->watcher().DrainFindings(), std::back_inserter(findings_));
  if (ended) End(now);
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
    notes_.push_back({"restarted", "it started again: " + away_why_});
    return;
  }
  if (now - away_since_ < options_.stall) return;
  FindDead("it is gone: " + away_why_, Confidence::kCertain, away_since_);
  state_ = State::kOver;
}

void WatchedTarget::End(TimeNs now) {
  state_ = State::kOver;
  const int pid = process_->pid();
  const ProcessEnd::How how = process_->how();
  if (how.known && how.signal_number != 0) {
    return FindDead(fmt::format("process {} was killed by signal {} ({})", pid, how.signal_number,
                                strsignal(how.signal_number)),
                    Confidence::kCertain, now);
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
             Confidence::kLikely, now);
  }
}

void WatchedTarget::FindDead(const std::string& what, Confidence confidence, TimeNs now) {
  ScopeFinding finding;
  finding.kind = FindingKind::kDead;
  finding.confidence = confidence;
  finding.time = now;
  finding.since = now;
  finding.subjects = AtWork(view_->watcher().subjects());
  finding.summary = what;
  finding.repeated_evidence = {what};
  if (confidence != Confidence::kCertain)
    finding.doubts = {"this kernel does not tell how a process ended that is not one's own"};
  findings_.push_back(std::move(finding));
}

std::vector<ScopeFinding> WatchedTarget::DrainFindings() {
  std::ranges::move(view_->watcher().DrainFindings(), std::back_inserter(findings_));
  return std::exchange(findings_, {});
}

std::vector<WatchedTarget::Note> WatchedTarget::DrainNotes() { return std::exchange(notes_, {}); }

}  // namespace hangscope

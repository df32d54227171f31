#include "run/scope_watch.h"

#include <algorithm>

namespace hangscope {
namespace {

constexpr TimeNs kInterval = 100 * kMillisecond;
// Its scope is there already: what has no mailboxes then will have none. Opening may search all of
// its memory.
constexpr int kMostTries = 10;

}  // namespace

void ScopeWatch::Sample(TimeNs now) {
  if (now < next_look_) return;
  next_look_ = now + kInterval;
  if (view_ == nullptr) Open(now);
  if (view_ == nullptr) return;
  auto same = view_->IsSame();
  if (!same.ok()) return;  // it is gone; what it was last is what is known of it
  if (!*same) {
    view_.reset();
    opinion_ = {};
    tries_ = 0;
    return;
  }
  if (!view_->Poll(now).ok()) return;
  AnnounceFindings(now);
  opinion_.progresses.clear();
  for (const SubjectState& subject : view_->watcher().subjects()) {
    if (!MadeProgress(subject, now)) continue;
    opinion_.progresses = SubjectName(subject.subject, view_->Scene(now));
    break;
  }
}

void ScopeWatch::Open(TimeNs now) {
  if (tries_ == kMostTries) return;
  ++tries_;
  WatcherOptions options;
  options.stall = stall_;
  auto view = LiveScope::Open(files_, source_, options);
  if (!view.ok()) return;
  view_ = std::move(*view);
  opened_ = now;
}

// Texts of findings that stand are made once: they say how it was when they were found.
void ScopeWatch::AnnounceFindings(TimeNs now) {
  const std::vector<ScopeFinding> fresh = view_->watcher().DrainFindings();
  const std::vector<ScopeFinding>& standing = view_->watcher().standing();
  if (fresh.empty() && standing.size() == told_) return;
  told_ = standing.size();
  opinion_.findings.clear();
  (void)view_->RefreshNames().ok();
  for (ScopeFinding finding : standing) {
    const WatchScene scene = view_->Scene(now);
    finding.summary = FindingSummary(finding, scene);
    finding.lines = LinesBelowHeadline(finding, scene, view_->History(finding));
    finding.threads = ThreadsOf(finding);
    opinion_.findings.push_back(std::move(finding));
  }
}

std::vector<int> ScopeWatch::ThreadsOf(const ScopeFinding& finding) const {
  std::vector<int> threads;
  for (const SubjectId& subject : finding.subjects) threads.push_back(view_->ThreadOf(subject));
  const bool any =
      std::any_of(threads.begin(), threads.end(), [](int thread) { return thread != 0; });
  return any ? threads : std::vector<int>();
}

// Only after the stall time is a core that runs known to have done something in it.
bool ScopeWatch::MadeProgress(const SubjectState& subject, TimeNs now) const {
  if (now - opened_ < stall_) return false;
  if (subject.activity == Activity::kRunning) return true;
  return subject.activity == Activity::kWaiting && now - subject.since < stall_;
}

ScopeOpinion ScopeWatch::opinion() const { return opinion_; }

}  // namespace hangscope

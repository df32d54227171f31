#include "why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/units.h"
#include "scope/live_scope.h"
#include "scope/watch_json.h"
#include "scope/watch_text.h"

namespace hangscope {
namespace {

constexpr size_t kLeastTableLines = 6;

class Why {
 public:
  Why(FileSystem& files, Clock& clock, const WhyOptions& options)
      : files_(files), clock_(clock), options_(options) {}

  Result<WhyReport> Ask();

 private:
  Status SampleLive();
  Status SampleDead();
  bool NothingChanged(const ScopeSample& first) const;
  void CollectFindings();
  std::string Head(const WatchScene& scene) const;
  std::string FindingsText(const WatchScene& scene);
  std::string TableText(const WatchScene& scene, size_t most) const;
  WhyReport Report();

  FileSystem& files_;
  Clock& clock_;
  const WhyOptions& options_;
  std::unique_ptr<LiveScope> view_;
  std::vector<ScopeFinding> findings_;
  std::string how_looked_;
};

bool Why::NothingChanged(const ScopeSample& first) const {
  const ScopeSample& now = view_->sample();
  for (size_t i = 0; i < std::min(first.cores.size(), now.cores.size()); ++i) {
    const CoreSample& a = first.cores[i];
    const CoreSample& b = now.cores[i];
    if (a.waypoint != b.waypoint || a.heartbeat != b.heartbeat ||
        a.wait_sequence != b.wait_sequence || a.fault != b.fault || a.paused != b.paused)
      return false;
  }
  for (size_t i = 0; i < std::min(first.tasks.size(), now.tasks.size()); ++i) {
    if (first.tasks[i].record.sequence != now.tasks[i].record.sequence) return false;
  }
  return true;
}

Status Why::SampleLive() {
  ScopeSample first;
  if (Status status = view_->PollFor(clock_, options_.stall, &first); !status.ok()) return status;
  // In a dump all waits last as long as one looks, those of a target that was at work, too.
  const bool may_be_a_dump =
      view_->view().scope().target().life() == Life::kUnknown && view_->owner() == 0;
  if (!may_be_a_dump || !NothingChanged(first)) {
    how_looked_ = fmt::format("looked at for {}", FormatElapsed(options_.stall));
    CollectFindings();
    return {};
  }
  how_looked_ = fmt::format("nothing in it changed for {}, so it is taken for a dump",
                            FormatElapsed(options_.stall));
  auto again = LiveScope::Open(files_, options_.source, WatcherOptions{options_.stall});
  if (!again.ok()) return again.status();
  view_ = std::move(*again);
  return SampleDead();
}

Status Why::SampleDead() {
  if (Status status = view_->PollDead(clock_.Monotonic()); !status.ok()) return status;
  CollectFindings();
  return {};
}

// The worst first.
void Why::CollectFindings() {
  std::ranges::move(view_->watcher().DrainFindings(), std::back_inserter(findings_));
  std::stable_sort(
      findings_.begin(), findings_.end(),
      [](const ScopeFinding& a, const ScopeFinding& b) { return a.IsBad() > b.IsBad(); });
}

std::string Why::Head(const WatchScene& scene) const {
  std::map<Activity, size_t> counts;
  for (const SubjectState& subject : *scene.subjects) ++counts[subject.activity];
  std::string text;
  for (const auto& [activity, count] : counts) {
    if (activity != Activity::kUnused)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, ActivityName(activity));
  }
  return text.empty() ? "no core has said anything yet" : text;
}

std::string Why::FindingsText(const WatchScene& scene) {
  std::string text;
  for (const ScopeFinding& finding : findings_) {
    const FindingHistory history = view_->History(finding);
    text += options_.json ? FindingJson(finding, scene, history, clock_.Wall())
                          : FindingText(finding, scene, history);
  }
  return text;
}

// Those that the findings are about first; of the rest, as many as fit.
std::string Why::TableText(const WatchScene& scene, size_t most) const {
  std::set<SubjectId> involved;
  for (const ScopeFinding& finding : findings_) {
    for (const auto* list : {&finding.subjects, &finding.partners, &finding.victims})
      involved.insert(list->begin(), list->end());
  }
  std::vector<const SubjectState*> lines;
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.activity != Activity::kUnused) lines.push_back(&subject);
  }
  const size_t all = lines.size();
  if (all > most) {
    std::stable_partition(lines.begin(), lines.end(),
                          [&](const SubjectState* s) { return involved.count(s->subject) != 0; });
    lines.resize(most);
  }
  const WatchTable table(scene, false);
  std::string text = table.Head();
  for (const SubjectState* line : lines) text += table.Line(*line, scene);
  if (all > lines.size())
    text += fmt::format("and {} more: hangscope watch shows all\n", all - lines.size());
  return text;
}

WhyReport Why::Report() {
  (void)view_->RefreshNames().ok();
  const WatchScene scene = view_->Scene(clock_.Monotonic());
  WhyReport report;
  report.is_bad = std::any_of(findings_.begin(), findings_.end(),
                              [](const ScopeFinding& f) { return f.IsBad(); });
  const std::string found = FindingsText(scene);
  const std::string how = fmt::format("{}: {}: {}", view_->name(), how_looked_, Head(scene));
  if (options_.json) {
    report.text =
        WatchNoteJson(view_->name(), report.is_bad ? "bad" : "clean", how, clock_.Wall()) + found;
    for (const SubjectState& subject : *scene.subjects) {
      if (subject.activity != Activity::kUnused)
        report.text += SubjectJson(subject, scene, clock_.Wall());
    }
    return report;
  }
  report.text = found.empty() ? "no hang and no fault found\n" : found;
  report.text += how + "\n";
  const auto used =
      static_cast<size_t>(std::count(report.text.begin(), report.text.end(), '\n')) + 2;
  report.text += TableText(
      scene, used + kLeastTableLines < kScreenLines ? kScreenLines - used : kLeastTableLines);
  return report;
}

Result<WhyReport> Why::Ask() {
  auto view = LiveScope::Open(files_, options_.source, WatcherOptions{options_.stall});
  if (!view.ok()) return view.status();
  view_ = std::move(*view);
  how_looked_ = "it does not change any more";
  if (Status status = view_->IsDead() ? SampleDead() : SampleLive(); !status.ok()) return status;
  return Report();
}

}  // namespace

Result<WhyReport> AskWhy(FileSystem& files, Clock& clock, const WhyOptions& options) {
  return Why(files, clock, options).Ask();
}

}  // namespace hangscope

#include "why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/jitter.h"
#include "base/units.h"
#include "device/live_device.h"
#include "scope/live_scope.h"
#include "scope/watch_json.h"
#include "scope/watch_text.h"
#include "verdict/json.h"
#include "verdict/judge_picture.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr size_t kLeastTableLines = 6;
constexpr int kRuns = 2;  // that are looked at, where it starts again
constexpr TimeNs kBetweenTries = 20 * kMillisecond;
constexpr TimeNs kShortestInterval = kMillisecond;  // between looks at a device
constexpr TimeNs kLongestInterval = 100 * kMillisecond;
constexpr int kLooksAfterwards = 3;

class Why {
 public:
  Why(FileSystem& files, Clock& clock, const WhyOptions& options)
      : files_(files), clock_(clock), options_(options) {}

  Result<WhyPart> Look();

 private:
  Status OpenView();
  bool HasStartedAgain();
  Status SampleRun();
  Status SampleLive();
  Status SampleDead();
  std::string HowLong();
  void CollectFindings();
  Sightings Told(TimeNs now);
  WhyPart Part();

  FileSystem& files_;
  Clock& clock_;
  const WhyOptions& options_;
  std::unique_ptr<LiveScope> view_;
  std::vector<ScopeFinding> findings_;
  std::string how_looked_;
  TimeNs begin_ = 0;
  TimeNs looked_since_ = 0;
  int restarts_ = 0;  // while it was looked at
};

// A target that starts again is unreadable for a moment.
Status Why::OpenView() {
  const TimeNs give_up = clock_.Monotonic() + options_.stall;
  while (true) {
    auto view = LiveScope::Open(files_, options_.source, WatcherOptions{options_.stall});
    if (view.ok()) view_ = std::move(*view);
    if (view.ok() || clock_.Monotonic() >= give_up) return view.status();
    clock_.Sleep(kBetweenTries);
  }
}

bool Why::HasStartedAgain() {
  auto same = view_->IsSame();
  return same.ok() && !*same;
}

// Looks of one run tell nothing of the next. One that does not live through two looks is in a
// circle.
Status Why::SampleRun() {
  for (int run = 0; run < kRuns; ++run) {
    looked_since_ = clock_.Monotonic();
    const Status status = view_->PollFor(clock_, options_.stall, nullptr);
    if (!HasStartedAgain()) return status;
    ++restarts_;
    if (Status opened = OpenView(); !opened.ok()) return opened;
  }
  ScopeFinding finding;
  finding.kind = FindingKind::kDead;
  finding.confidence = Confidence::kLikely;
  finding.time = finding.since = clock_.Monotonic();
  finding.summary = fmt::format("it starts again and again, in each of {} looks of {}", kRuns,
                                FormatElapsed(options_.stall));
  finding.repeated_evidence = {finding.summary};
  finding.doubts = {"somebody may start it again by hand"};
  findings_.push_back(std::move(finding));
  return view_->PollFor(clock_, 0, nullptr);
}

// It is looked at for longer where what runs it was not let run; and even then that may be too
// short.
std::string Why::HowLong() {
  const auto given = view_->Given(looked_since_);
  if (!given || given->time >= options_.stall) return FormatElapsed(options_.stall);
  return fmt::format(
      "{}, of which {} do not count: the process that runs it had no processor or was stopped",
      FormatElapsed(given->time + given->held_up), FormatElapsed(given->held_up));
}

Status Why::SampleLive() {
  if (Status status = SampleRun(); !status.ok()) return status;
  // In a dump all waits last as long as one looks, those of a target that was at work, too.
  if (restarts_ > 0 || !view_->MayBeDump()) {
    how_looked_ = fmt::format(
        "{}looked at for {}",
        restarts_ == 1 ? "it started again while it was looked at, and was " : "", HowLong());
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

void SortWorstFirst(std::vector<ScopeFinding>* findings) {
  std::stable_sort(
      findings->begin(), findings->end(),
      [](const ScopeFinding& a, const ScopeFinding& b) { return a.IsBad() > b.IsBad(); });
}

void Why::CollectFindings() {
  for (ScopeFinding& finding :
       AsTheyStand(view_->watcher().DrainFindings(), view_->watcher().standing()))
    findings_.push_back(std::move(finding));
  SortWorstFirst(&findings_);
}

// Who was there while it was alive looked more than once, and knows for how long it had waited.
void BelieveRecorded(const std::vector<ReportFinding>& all, const WatchScene& scene,
                     std::vector<ScopeFinding>* findings) {
  for (ScopeFinding& finding : *findings) {
    const std::string summary = FindingSummary(finding, scene);
    for (const ReportFinding& recorded : all) {
      if (recorded.summary != summary || recorded.confidence <= finding.confidence) continue;
      finding.confidence = recorded.confidence;
      finding.doubts.clear();
      finding.evidence.push_back("it was watched while it was alive, and found to be so");
    }
  }
}

Sightings Why::Told(TimeNs now) {
  Sightings told;
  told.attached = true;
  told.as_of = now;
  for (const ScopeFinding& finding : findings_) told.findings.push_back(view_->Tell(finding, now));
  if (view_->IsDead() || view_->MayBeDump()) return told;
  told.moving = view_->Moving(now, options_.stall);
  told.outside = view_->Idle(now);
  told.moving_threads = view_->MovingThreads(now, options_.stall);
  told.waits = view_->Waits(now);
  return told;
}

std::string HeadText(const WatchScene& scene) {
  std::map<Activity, size_t> counts;
  for (const SubjectState& subject : *scene.subjects) ++counts[subject.activity];
  std::string text;
  for (const auto& [activity, count] : counts) {
    if (activity != Activity::kUnused)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, ActivityName(activity));
  }
  return text.empty() ? "no core has said anything yet" : text;
}

// Those that the findings are about first; of the rest, as many as fit.
std::string TableText(const WatchScene& scene, const std::vector<ScopeFinding>& findings,
                      size_t most) {
  std::set<SubjectId> involved;
  for (const ScopeFinding& finding : findings) {
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

// The words of what was found. `how` it was looked at, `history` tells what led up to a finding.
template <typename History>
void AddEvidence(const WatchScene& scene, const std::vector<ScopeFinding>& findings,
                 const std::string& how_looked, bool json, Clock& clock, History history,
                 WhyPart* part) {
  const std::string how = fmt::format("{}: {}: {}", part->target, how_looked, HeadText(scene));
  if (json) {
    part->evidence = WatchNoteJson(part->target, "looked", how, clock.Wall());
    for (const SubjectState& subject : *scene.subjects) {
      if (subject.activity != Activity::kUnused)
        part->evidence += SubjectJson(subject, scene, clock.Wall());
    }
    return;
  }
  for (const ScopeFinding& finding : findings)
    part->found += FindingText(finding, scene, history(finding));
  part->evidence = how + "\n";
  const auto used =
      static_cast<size_t>(std::count(part->found.begin(), part->found.end(), '\n')) + 3;
  part->evidence +=
      TableText(scene, findings,
                used + kLeastTableLines < kScreenLines ? kScreenLines - used : kLeastTableLines);
}

WhyPart Why::Part() {
  (void)view_->RefreshNames().ok();
  const TimeNs now = clock_.Monotonic();
  const WatchScene scene = view_->Scene(now);
  BelieveRecorded(options_.recorded, scene, &findings_);
  WhyPart part{view_->name(), begin_, Told(now), "", ""};
  AddEvidence(
      scene, findings_, how_looked_, options_.json, clock_,
      [this](const ScopeFinding& finding) { return view_->History(finding); }, &part);
  return part;
}

// As LiveScope::PollFor does one scope.
void PollDevice(LiveDevice* device, Clock& clock, TimeNs stall) {
  const TimeNs interval = std::clamp(stall / 10, kShortestInterval, kLongestInterval);
  const TimeNs end = clock.Monotonic() + stall + kLooksAfterwards * interval;
  Jitter jitter;
  while (true) {
    device->Poll(clock.Monotonic());
    if (device->is_over() || clock.Monotonic() >= end) return;
    clock.Sleep(jitter.Next(interval));
  }
}

std::string HowLookedAt(LiveDevice* device, const WhyOptions& options) {
  std::string how = fmt::format("{} memories, ", device->memories());
  how += device->is_dead() ? "none of which changes any more"
                           : "looked at for " + FormatElapsed(options.stall);
  for (const std::string& unread : device->Unread()) how += "; cannot be read: " + unread;
  for (const Watchable::Note& note : device->DrainNotes()) {
    if (note.event == "ended" || note.event == "restarted" || note.event == "warning")
      how += "; " + note.text;
  }
  return how;
}

Result<WhyPart> Why::Look() {
  begin_ = clock_.Monotonic();
  auto view = LiveScope::Open(files_, options_.source, WatcherOptions{options_.stall});
  if (!view.ok()) return view.status();
  view_ = std::move(*view);
  how_looked_ = view_->is_held() ? "stopped for one look" : "it does not change any more";
  if (Status status = view_->IsDead() ? SampleDead() : SampleLive(); !status.ok()) return status;
  return Part();
}

}  // namespace

Verdict JudgeLook(Clock& clock, Picture picture, TimeNs begin) {
  picture.now = clock.Monotonic();
  picture.start = begin;
  return JudgePicture(picture, {});
}

bool IsBad(const Verdict& verdict) {
  return verdict.IsHang() || std::any_of(verdict.findings.begin(), verdict.findings.end(),
                                         [](const Finding& finding) { return finding.IsBad(); });
}

std::string WhyVerdictLine(Clock& clock, const Verdict& verdict, const WhyPart& part) {
  return VerdictJson(verdict, part.target, part.begin, clock.Wall()) + "\n";
}

Result<WhyPart> LookAtScope(FileSystem& files, Clock& clock, const WhyOptions& options) {
  return Why(files, clock, options).Look();
}

namespace {

WhyReport ReportOf(const WhyPart& part, bool json, Clock& clock) {
  Picture picture;
  picture.scope = part.sightings;
  const Verdict verdict = JudgeLook(clock, std::move(picture), part.begin);
  if (json) return {WhyVerdictLine(clock, verdict, part) + part.evidence, IsBad(verdict)};
  const std::string standing = StandingText(verdict);
  return {part.found + (standing.empty() ? "" : standing + "\n") + part.evidence, IsBad(verdict)};
}

}  // namespace

std::vector<ScopeFinding> AsTheyStand(std::vector<ScopeFinding> found,
                                      const std::vector<ScopeFinding>& standing) {
  std::vector<ScopeFinding> told;
  std::set<const ScopeFinding*> taken;
  for (ScopeFinding& finding : found) {
    const auto now = std::find_if(standing.begin(), standing.end(), [&](const ScopeFinding& each) {
      return each.kind == finding.kind && each.subjects == finding.subjects;
    });
    if (now == standing.end())
      told.push_back(std::move(finding));
    else if (taken.insert(&*now).second)
      told.push_back(*now);
  }
  return told;
}

Result<WhyReport> AskWhy(FileSystem& files, Clock& clock, const WhyOptions& options) {
  auto part = LookAtScope(files, clock, options);
  if (!part.ok()) return part.status();
  return ReportOf(*part, options.json, clock);
}

Result<WhyPart> LookAtDevice(FileSystem& files, Clock& clock, const DeviceSpec& spec,
                             const WhyOptions& options) {
  const TimeNs begin = clock.Monotonic();
  auto opened = LiveDevice::Open(files, spec, WatcherOptions{options.stall}, begin);
  if (!opened.ok()) return opened.status();
  LiveDevice& device = **opened;
  PollDevice(&device, clock, options.stall);
  const TimeNs now = clock.Monotonic();
  (void)device.RefreshNames().ok();
  // As they are now: who waits for a core that was found faulty at first sight comes later.
  std::vector<ScopeFinding> findings = device.watcher().standing();
  for (ScopeFinding& finding : device.DrainFindings()) {
    if (finding.kind == FindingKind::kDead) findings.push_back(std::move(finding));
  }
  SortWorstFirst(&findings);
  const WatchScene scene = device.Scene(now);
  BelieveRecorded(options.recorded, scene, &findings);
  WhyPart part{device.name(), begin, {}, "", ""};
  part.sightings.attached = true;
  part.sightings.as_of = now;
  for (const ScopeFinding& finding : findings)
    part.sightings.findings.push_back(device.Tell(finding, now));
  if (!device.is_dead()) {
    part.sightings.moving = MovingIn(scene, options.stall);
    part.sightings.outside = IdleIn(scene);
  }
  AddEvidence(
      scene, findings, HowLookedAt(&device, options), options.json, clock,
      [&](const ScopeFinding& finding) { return device.History(finding); }, &part);
  return part;
}

Result<WhyReport> AskWhyDevice(FileSystem& files, Clock& clock, const DeviceSpec& device,
                               const WhyOptions& options) {
  auto part = LookAtDevice(files, clock, device, options);
  if (!part.ok()) return part.status();
  return ReportOf(*part, options.json, clock);
}

}  // namespace hangscope

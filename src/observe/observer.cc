#include "observe/observer.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "act/hang_action.h"
#include "base/signal_text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "observe/thread_stacks.h"
#include "perf/thread_history.h"
#include "process/core_stack.h"
#include "verdict/judge_picture.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr TimeNs kLiveInterval = kSecond / 2;
constexpr TimeNs kWakesAfter = kSecond;        // cpu/history_recorder.h
constexpr TimeNs kLongestTickPause = kSecond;  // from one to the next: we were stopped

}  // namespace

Observer::Observer(const Environment& environment, const ObserverOptions& options,
                   const Recording& recording, TimeNs start, TimeNs start_wall)
    : files_(*environment.files),
      clock_(*environment.clock),
      elf_(environment.elf),
      options_(options),
      recording_(recording),
      start_(start),
      narrator_(environment.narrator, start),
      analysis_(files_, clock_, recording, environment.elf, environment.place_rule, options.stall),
      snapshots_(files_, clock_, options_, recording, narrator_, start, start_wall),
      warnings_(clock_, recording, narrator_),
      requests_(files_, clock_, recording, options.triggers, options.patterns, start),
      history_(options.history == HistoryOf::kThreads
                   ? environment.keep_history(clock_, kWakesAfter)
                   : nullptr),
      ticked_(start),
      beat_interval_(environment.narrator.live ? std::min(kLiveInterval, options.heartbeat)
                                               : options.heartbeat),
      next_beat_(start + beat_interval_),
      last_beat_(start),
      hang_(options.act_on) {
  if (environment.inspector != nullptr)
    thread_watch_ = std::make_unique<ThreadWatch>(clock_, *environment.inspector,
                                                  environment.look_beside, options.stall);
  if (options.scope.is_searched)
    scope_finder_ = std::make_unique<ScopeFinder>(files_, options.ScopeOf(0));
  if (environment.control_folder.empty()) return;
  const Status status = requests_.OpenControl(environment.control_folder);
  if (!status.ok())
    narrator_.Note("warning: hangscope ls and snap do not find this recorder: " + status.message(),
                   clock_.Wall());
}

bool Observer::Tick(const ChildView& child, int pid, const std::function<bool()>& has_ended) {
  if (child.stopped && hang_.is_on())
    stopped_at_ = clock_.Monotonic();
  else if (child.stopped)
    counts_from_ = clock_.Monotonic();
  NoteAbsence();
  ticked_ = clock_.Monotonic();
  return TickNow(child, pid, has_ended);
}

// Between two ticks, or in this one.
void Observer::NoteAbsence() {
  const TimeNs now = clock_.Monotonic();
  if (now - ticked_ > kLongestTickPause) counts_from_ = now;
}

bool Observer::TickNow(const ChildView& child, int pid, const std::function<bool()>& has_ended) {
  pid_ = pid;
  snapshots_.Tick(pid);
  if (history_ != nullptr) history_->Follow(child.processes);
  SampleScope();
  analysis_.SetChild(child);
  const Verdict streams = analysis_.verdict();
  FindScope(child, streams);
  SampleThreads(child, streams);
  NoteAbsence();
  Verdict verdict = Judge(streams);
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
  return judges_ && FollowHang(std::move(verdict), streams, has_ended);
}

// Reports what is news of `verdict`. True: it is to be acted on.
bool Observer::FollowHang(Verdict verdict, const Verdict& streams,
                          const std::function<bool()>& has_ended) {
  if (hang_.IsReported(verdict) && !hang_.is_on()) {
    if (has_ended()) return false;
    if (thread_watch_ != nullptr) {
      thread_watch_->Confirm();
      verdict = Judge(streams);
    }
  }
  if (!WasStoppedInHang() || !verdict.StandsStill()) Report(hang_.Follow(verdict), verdict);
  if (thread_watch_ != nullptr) thread_watch_->SetHang(hang_.is_on());
  return hang_.IsActionPending() && !has_ended() && hang_.IsToBeActedOn();
}

void Observer::Report(HangTracker::News news, const Verdict& verdict) {
  switch (news) {
    case HangTracker::News::kHang:
      return ReportHang();
    case HangTracker::News::kBetter:
      return ReportBetter();
    case HangTracker::News::kOver:
      return ReportEndOfHang(verdict);
    case HangTracker::News::kNone:
      return;
  }
}

// A debugger or a signal stopped a program that hangs. Until it has had the stall time to show what
// it does, its stillness is neither the end of the hang nor a better cause.
bool Observer::WasStoppedInHang() const {
  return hang_.is_on() && stopped_at_ != 0 && clock_.Monotonic() - stopped_at_ < options_.stall;
}

// That of the program itself tells after its end how it ended; a descendant's is over with it.
void Observer::FindScope(const ChildView& child, const Verdict& streams) {
  if (scope_finder_ == nullptr || pid_ <= 0 || child.ended) return;
  if (scope_finder_->HasEnded() &&
      std::count(child.processes.begin(), child.processes.end(), pid_) != 0) {
    scope_watch_.reset();
    snapshots_.RecordScope({});
  }
  scope_finder_->Search(clock_.Monotonic(), child.processes,
                        streams.StandsStill() ? suspected_since_ : 0);
  if (const auto found = scope_finder_->DrainFound()) {
    snapshots_.RecordScope(found->source);
    scope_watch_ = std::make_unique<ScopeWatch>(files_, found->source, options_.stall);
    narrator_.Remark(fmt::format("scope found in process {}, {} core{}", found->pid, found->cores,
                                 found->cores == 1 ? "" : "s"),
                     clock_.Wall());
  }
  if (const auto warning = scope_finder_->DrainWarning())
    narrator_.Note("warning: the scope of --elf was not looked for: " + *warning, clock_.Wall());
}

void Observer::SampleScope() {
  if (!snapshots_.found_scope()) return;  // one search of the program's memory is enough
  if (scope_watch_ == nullptr) {
    scope_watch_ = std::make_unique<ScopeWatch>(files_, options_.ScopeOf(pid_), options_.stall);
  }
  scope_watch_->Sample(clock_.Monotonic());
}

// On any suspicion all sources are asked.
void Observer::SampleThreads(const ChildView& child, const Verdict& streams) {
  if (!streams.StandsStill())
    suspected_since_ = 0;
  else if (suspected_since_ == 0)
    suspected_since_ = clock_.Monotonic();
  if (thread_watch_ == nullptr || pid_ <= 0 || child.ended) return;
  // Lines that repeat say as little as none of what else the program does.
  const bool is_trace = std::any_of(streams.streams.begin(), streams.streams.end(),
                                    [](const StreamVerdict& each) { return !each.format.empty(); });
  const bool says_nothing =
      streams.state == State::kSilent || (streams.state == State::kLooping && !is_trace);
  thread_watch_->Follow(pid_, child.processes, suspected_since_, says_nothing);
  if (const auto warning = thread_watch_->DrainWarning())
    narrator_.Note("warning: the program's threads were not looked at: " + *warning, clock_.Wall());
}

// Of streams, scope and threads together.
Verdict Observer::Judge(const Verdict& streams) const {
  Picture picture;
  picture.now = clock_.Monotonic();
  picture.start = start_;
  picture.counts_from = counts_from_;
  picture.streams = streams;
  picture.suspected_since = suspected_since_;
  if (scope_watch_ != nullptr) picture.scope = scope_watch_->sightings();
  // also while it is looked for
  picture.scope.attached = !options_.scope.none() || scope_watch_ != nullptr ||
                           (scope_finder_ != nullptr && scope_finder_->IsExpected());
  if (thread_watch_ != nullptr && pid_ > 0) picture.threads = thread_watch_->sightings();
  Verdict verdict =
      JudgePicture(picture, {options_.stall, options_.expect_output, options_.closed});
  // Streams tell themselves how long they have been silent. Without any, it was so since we look.
  const TimeNs looked_for = picture.now - std::max(start_, counts_from_);
  if (recording_.streams().empty() && looked_for < options_.stall) verdict.undecided = true;
  if (verdict.state == State::kPartial && options_.acts && !options_.act_on.partial)
    verdict.evidence.push_back(kPartialIsLeftAlone);
  return verdict;
}

// What is told of it says what the threads did before they stopped, too.
Verdict Observer::Explained(const Verdict& judged) {
  Verdict told = judged;
  if (told.stacks.empty()) told.stacks = StacksOf(judged, ThreadsSeen());
  crashes_.AddTo(&told);
  if (told.findings.empty()) return told;
  std::optional<ThreadHistory> history;
  if (history_ != nullptr) history.emplace(history_->Take());
  if (options_.history == HistoryOf::kCpus) history = snapshots_.ReadHistory();
  if (!history) return told;
  for (Finding& finding : told.findings) history->AddTo(&finding);
  return told;
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

void Observer::ReportHang() {
  ReportCode();
  hang_.Complete(Explained(*hang_.last()));
  std::string snapshot;
  if (options_.snapshot_on_hang) {
    DueSnapshot due;  // without a post: what is wanted lies before a hang
    due.trigger.kind = TriggerKind::kHang;
    due.trigger.name = "hang";
    auto folder = snapshots_.Take(due, *hang_.last(), ThreadsSeen(), false);
    if (folder.ok()) snapshot = *folder;
    if (folder.ok()) hang_.Complete(snapshots_.last_verdict());
    hang_snapshot_ = snapshot;
  }
  hang_.NoteLastOutput(LastOutputBy(snapshot));
  narrator_.Announce(*hang_.last(), clock_.Wall(), snapshot, snapshots_.contents());
}

// What was printed last when `snapshot` was taken; where there is none, by now.
std::vector<LastOutput> Observer::LastOutputBy(const std::string& snapshot) const {
  return snapshot.empty() ? recording_.ReadLastOutput() : snapshots_.last_output();
}

void Observer::ReportTimeout(TimeNs after) {
  at_timeout_ = Explained(VerdictNow());
  narrator_.Note(fmt::format("it has run for {} (--timeout)", FormatElapsed(after)), clock_.Wall());
  if (hang_.is_on()) return;  // that is reported
  std::string snapshot;
  if (options_.snapshot_on_hang) {
    DueSnapshot due;
    due.trigger.kind = TriggerKind::kTimeout;
    due.trigger.name = "timeout";
    auto folder = snapshots_.Take(due, at_timeout_, ThreadsSeen(), false);
    if (folder.ok()) snapshot = *folder;
    if (folder.ok()) at_timeout_ = snapshots_.last_verdict();
  }
  at_timeout_.last_output = LastOutputBy(snapshot);
  narrator_.Announce(at_timeout_, clock_.Wall(), snapshot, snapshots_.contents());
}

// A surer or better cause of the hang that was reported: what was written says it, too.
void Observer::ReportBetter() {
  hang_.Complete(Explained(*hang_.last()));
  if (options_.snapshot_on_hang && hang_snapshot_ == snapshots_.last() &&
      snapshots_.AmendLast(*hang_.last(), ThreadsSeen()))
    hang_.Complete(snapshots_.last_verdict());
  narrator_.Announce(*hang_.last(), clock_.Wall(), hang_snapshot_, snapshots_.contents());
}

void Observer::ReportEndOfHang(const Verdict& verdict) {
  if (verdict.time == 0) return;
  narrator_.Note(fmt::format("it goes on again: {} after {}", verdict.summary,
                             FormatElapsed(verdict.time - start_)),
                 clock_.Wall());
}

void Observer::OnCrash(const ProcessCrash& crash) {
  const std::string text = crashes_.Add(crash, StartWall(), clock_.Monotonic() - start_);
  if (!text.empty()) narrator_.Note(text, clock_.Wall());
}

bool Observer::OnSignal(int number) {
  if (number != SIGUSR1 && number != SIGUSR2) return false;
  requests_.OnSignal(number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
  SnapshotAllOf(requests_.DrainDue(), VerdictNow());
  return true;
}

// Where a hang is still on, its snapshot has all that an end adds nothing to.
void Observer::OnExit(const ChildExit& exit) {
  if (options_.on_exit == OnExit::kNone || (hang_.is_on() && options_.snapshot_on_hang)) return;
  if (exit.signal != 0)
    requests_.OnExit(SignalText(exit.signal));
  else if (exit.status != 0 || options_.on_exit == OnExit::kAlways)
    requests_.OnExit(fmt::format("status {}", exit.status));
}

void Observer::SnapshotAllOf(const std::vector<DueSnapshot>& due, const Verdict& judged) {
  if (due.empty()) return;
  const Verdict verdict = Explained(judged);
  for (const DueSnapshot& snapshot : due) {
    auto folder = snapshots_.Take(snapshot, verdict, ThreadsSeen(), true);
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

Verdict Observer::Conclude(const ChildView& child, int pid) {
  pid_ = pid;
  snapshots_.FinishPlainSnapshot();
  analysis_.Stop();
  warnings_.Report(true);
  Verdict verdict = analysis_.Conclude(child);
  verdict = Judge(verdict);
  if (WritesCore(child.exit_signal)) AddProgramCrash(pid_, options_.command, StartWall(), &verdict);
  crashes_.AddTo(&verdict);
  if (child.exit_signal != 0 || child.exit_status != 0)
    verdict.last_output = recording_.ReadLastOutput();
  std::vector<DueSnapshot> due = requests_.Finish([this] { return StatusNow(); });
  warnings_.ReportUnsearched(requests_.unseen_bytes(), true);
  const auto exit = std::stable_partition(due.begin(), due.end(), [](const DueSnapshot& d) {
    return d.trigger.kind != TriggerKind::kExit;
  });
  SnapshotAllOf({due.begin(), exit}, verdict);
  // The report of the end names its snapshot.
  if (exit != due.end() && snapshots_.Take(*exit, verdict, ThreadsSeen(), false).ok()) {
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

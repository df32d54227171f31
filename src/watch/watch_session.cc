#include "watch/watch_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/jitter.h"
#include "base/units.h"
#include "base/utf8.h"
#include "control/remote_control.h"
#include "device/live_device.h"
#include "scope/watch_json.h"
#include "scope/watch_text.h"
#include "scope/watched_target.h"
#include "target/target_spec.h"
#include "verdict/json.h"
#include "watch/dump_schedule.h"
#include "watch/live_display.h"
#include "watch/metrics.h"
#include "watch/metrics_server.h"
#include "watch/paused_cores.h"
#include "watch/target_log.h"

namespace hangscope {
namespace {

constexpr TimeNs kScopeComesWithin = kSecond;
constexpr TimeNs kScopeIsLookedFor = 10 * kMillisecond;  // once in so long
constexpr const char* kLogBegins = "hangscope watch, log of ";

TimeNs OwnCpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// One target and what was said of it.
struct Watched {
  std::unique_ptr<Watchable> target;
  SourceOf source_of;
  std::unique_ptr<TargetActs> acts;
  std::unique_ptr<TargetLog> log;
  std::map<FindingKind, size_t> findings;
  PausedCores paused;
};

class WatchSession {
 public:
  WatchSession(const WatchEnvironment& environment, const WatchOptions& options)
      : environment_(environment),
        clock_(*environment.clock),
        options_(options),
        interval_(options.interval),
        remote_(*environment.files) {}

  WatchOutcome Run();

 private:
  Status Open();
  Result<std::unique_ptr<WatchedTarget>> OpenTarget(const ScopeSource& source,
                                                    const WatcherOptions& watcher);
  Status FindProcesses();
  Status OpenActs();
  void Start();
  void OpenDisplay();
  LiveData DataForDisplay();
  bool StillHolds(const Watched& watched, const ScopeFinding& finding) const;
  Status WithAdvice(const Status& status, const ScopeSource& source) const;
  void Say(const std::string& text);
  void ShowWork(const std::string& text);
  void PollAll();
  void Announce(Watched& watched);
  void AnnounceFinding(Watched& watched, const ScopeFinding& finding);
  void AnnouncePauses(Watched& watched);
  void Note(const std::string& target, const std::string& event, const std::string& text);
  void NoteAs(const std::string& target, const std::string& text, const std::string& json);
  void Log(Watched& watched);
  void Dump(const std::string& why);
  void AnnounceDelays(Watched& watched);
  void WriteLog(const std::string& lines);
  std::string LogHead();
  std::string Table();
  void KeepBudget(uint64_t bytes);
  bool IsOver() const;
  void WaitUntil(TimeNs time);
  void ReadSignals();
  void ReadTerminal();
  void ReadKeys(bool terminal_is_gone);
  void ResumeAll();
  bool ReadsTerminal() const;
  void AnnounceEnd();
  NarratorOptions Narrating();
  Result<std::string> PrefixOf(size_t target);
  Result<std::string> SnapshotAll(TriggerKind kind, const std::string& name, bool since_last);
  void AnswerControl();
  void WriteJunit();
  RecorderStatus StatusNow();
  std::string Metrics();
  WatchScene Scene(Watched& watched) const;
  std::string Stamp() const { return FormatWallTime(clock_.Wall()); }

  const WatchEnvironment& environment_;
  Clock& clock_;
  const WatchOptions& options_;
  std::vector<Watched> targets_;
  std::optional<RotatedLog> log_;
  bool log_fails_ = false;
  DumpSchedule dumps_{options_.dump_every};
  std::unique_ptr<MetricsServer> metrics_;
  TimeNs start_ = 0;
  TimeNs interval_;  // as the budget makes it; the mean
  Jitter jitter_;
  WatchCost cost_;
  TimeNs cpu_at_start_ = 0;
  size_t findings_ = 0;
  size_t bad_ = 0;
  bool interrupted_ = false;
  bool quits_ = false;  // by the view's key
  // The newest finding that is bad; else the newest.
  struct Newest {
    size_t target = 0;
    ScopeFinding finding;
    std::string headline;
  };
  std::optional<Newest> newest_;
  std::optional<LiveDisplay> display_;
  // What acts on the targets.
  std::vector<std::unique_ptr<TargetProcesses>>
      processes_;  // to be ended; until the targets are open
  RemoteControl remote_;
  std::optional<std::string> prefix_;                 // of snapshots; nothing: nobody has asked yet
  Recording recording_{*environment_.files, clock_};  // of no streams
  Narrator narrator_{Narrating(), clock_.Monotonic()};
  const WatchWorld world_{*environment_.files,
                          clock_,
                          recording_,
                          narrator_,
                          [this](const std::string& target, const std::string& event,
                                 const std::string& text) { Note(target, event, text); },
                          [this](size_t target) { return PrefixOf(target); }};
};

void WatchSession::Say(const std::string& text) {
  if (display_)
    display_->Say(text);
  else if (!environment_.say(text))
    quits_ = true;
}

WatchScene WatchSession::Scene(Watched& watched) const {
  WatchScene scene = watched.target->Scene(clock_.Monotonic());
  scene.of_several = targets_.size() > 1;
  return scene;
}

// A program that records nothing is for others to explain.
Status WatchSession::WithAdvice(const Status& status, const ScopeSource& source) const {
  const TargetSpec spec = ParseTargetSpec(*environment_.files, source.target);
  const bool is_process = spec.kind == TargetSpec::Kind::kProcess && spec.status.ok();
  if (!is_process || status.code() != Status::Code::kNotFound || kill(spec.pid, 0) != 0)
    return status;
  return Status::NotFound(fmt::format(
      "{}; of a program that does not record, 'hangscope why pid:{}' says why it hangs, and "
      "'hangscope watch pid:{}' without other targets watches its threads",
      status.message(), spec.pid, spec.pid));
}

// Before all else, so that nobody else has got its number by then.
Status WatchSession::FindProcesses() {
  std::vector<std::vector<std::string>> targets;
  for (const ScopeSource& source : options_.sources) targets.push_back({source.target});
  for (const DeviceSpec& device : options_.devices) targets.push_back(TargetsOf(device));
  processes_.resize(targets.size());
  if (options_.acts.on_hang.what != OnHang::kKill) return {};
  for (size_t i = 0; i < processes_.size(); ++i) {
    auto processes = TargetProcesses::Find(*environment_.files, targets[i]);
    if (!processes.ok()) return processes.status();
    processes_[i] = std::move(*processes);
  }
  return {};
}

// Between a reset and hangscope_init a target has no scope, or half of one.
Result<std::unique_ptr<WatchedTarget>> WatchSession::OpenTarget(const ScopeSource& source,
                                                                const WatcherOptions& watcher) {
  const TargetSpec spec = ParseTargetSpec(*environment_.files, source.target);
  const bool may_have_one =
      spec.kind == TargetSpec::Kind::kFile && environment_.files->Exists(spec.where);
  const TimeNs until = clock_.Monotonic() + kScopeComesWithin;
  while (true) {
    const TimeNs now = clock_.Monotonic();
    auto target = WatchedTarget::Open(*environment_.files, source, watcher, now);
    const Status::Code code = target.ok() ? Status::Code::kOk : target.status().code();
    const bool may_come = code == Status::Code::kNotFound || code == Status::Code::kCorrupt;
    if (!may_come || !may_have_one || now >= until) return target;
    clock_.Sleep(kScopeIsLookedFor);
  }
}

Status WatchSession::Open() {
  if (Status status = FindProcesses(); !status.ok()) return status;
  const WatcherOptions watcher{options_.stall};
  for (const ScopeSource& source : options_.sources) {
    ShowWork(fmt::format("looking for the scope of {}", Printable(source.target)));
    auto target = OpenTarget(source, watcher);
    if (!target.ok()) return WithAdvice(target.status(), source);
    targets_.push_back(
        {std::move(*target), [&source](const LiveScope&) { return &source; }, {}, {}, {}, {}});
    targets_.back().target->Poll(clock_.Monotonic());  // the log begins with how they are
  }
  for (const DeviceSpec& spec : options_.devices) {
    ShowWork("looking for the scopes of the device's memories");
    auto device = LiveDevice::Open(*environment_.files, spec, watcher, clock_.Monotonic());
    if (!device.ok()) return device.status();
    LiveDevice& live = **device;
    const auto source_of = [&live](const LiveScope& scope) { return live.SourceOf(scope); };
    targets_.push_back({std::move(*device), source_of, {}, {}, {}, {}});
    targets_.back().target->Poll(clock_.Monotonic());
  }
  if (!options_.metrics.empty()) {
    auto server = MetricsServer::Open(options_.metrics, [this] { return Metrics(); });
    if (!server.ok()) return server.status();
    metrics_ = std::move(*server);
  }
  if (Status status = OpenActs(); !status.ok()) return status;
  if (options_.log.path.empty()) return {};
  for (Watched& watched : targets_)
    watched.log = std::make_unique<TargetLog>(*watched.target, options_.json, options_.dump_all);
  RotatedLogOptions log = options_.log;
  log.begins = {kLogBegins, "{\"type\":\""};  // as text, as JSON
  log_.emplace(
      *environment_.files, log, [this] { return LogHead(); },
      [this](uint64_t lines) {
        return options_.json
                   ? WatchNoteJson("", "lost", fmt::format("{} lines could not be written", lines),
                                   clock_.Wall())
                   : fmt::format("{}  {} lines could not be written\n", Stamp(), lines);
      });
  return log_->Open();
}

Status WatchSession::OpenActs() {
  const size_t sources = options_.sources.size();  // devices come behind
  for (size_t i = 0; i < targets_.size(); ++i) {
    Watchable& target = *targets_[i].target;
    if (i < sources)
      targets_[i].acts =
          std::make_unique<TargetActs>(world_, options_.acts, static_cast<WatchedTarget&>(target),
                                       options_.sources[i], i, options_.stall);
    else
      targets_[i].acts = std::make_unique<TargetActs>(
          world_, options_.acts, static_cast<LiveDevice&>(target), i, options_.stall);
    if (Status status = targets_[i].acts->Start(std::move(processes_[i])); !status.ok())
      return status;
  }
  return {};
}

// Snapshots are told as all else is.
NarratorOptions WatchSession::Narrating() {
  NarratorOptions options;
  options.json = options_.json;
  options.write = [this](std::string_view message) {
    Say(std::string(message));
    WriteLog(options_.json ? std::string(message) : fmt::format("{}  {}", Stamp(), message));
  };
  options.show_work = [this](const std::string& text) { ShowWork(text); };
  return options;
}

void WatchSession::ShowWork(const std::string& text) {
  if (!display_ && environment_.show_work) environment_.show_work(text);
}

// Of several targets each has its own number behind it, so that none takes the room of another.
Result<std::string> WatchSession::PrefixOf(size_t target) {
  if (!prefix_) {
    auto prefix = environment_.make_prefix();
    if (!prefix.ok()) return prefix.status();
    prefix_ = std::move(*prefix);
  }
  return targets_.size() == 1 ? *prefix_ : fmt::format("{}-{}", *prefix_, target + 1);
}

// One of each target; returns the last folder, or why there is none of one of them.
Result<std::string> WatchSession::SnapshotAll(TriggerKind kind, const std::string& name,
                                              bool since_last) {
  Result<std::string> last = Status::NotFound("nothing is watched");
  Status failed;
  for (Watched& watched : targets_) {
    last = watched.acts->Snapshot(kind, name, since_last);
    if (!last.ok()) failed = last.status();
  }
  return failed.ok() ? last : Result<std::string>(failed);
}

void WatchSession::AnswerControl() {
  for (const RemoteControl::SnapRequest& request :
       remote_.Poll(clock_.Monotonic(), [this] { return StatusNow(); }))
    remote_.Answer(request.ticket, SnapshotAll(TriggerKind::kSnap, "snap", request.since_last));
}

// A case for each target.
void WatchSession::WriteJunit() {
  if (options_.junit_path.empty()) return;
  std::vector<JunitCase> cases;
  for (const Watched& watched : targets_) cases.push_back(watched.acts->Junit());
  const Status status = WriteWholeFile(*environment_.files, options_.junit_path, JunitXml(cases));
  if (!status.ok()) Note("", "warning", "--junit: " + status.message());
}

// Of several targets, of the first that hangs.
RecorderStatus WatchSession::StatusNow() {
  RecorderStatus status;
  status.pid = getpid();
  status.age = clock_.Monotonic() - start_;
  status.name = targets_.front().target->name();
  Watched* watched = nullptr;
  for (Watched& each : targets_) {
    if (watched == nullptr || (each.acts->hang().is_on() && !watched->acts->hang().is_on()))
      watched = &each;
  }
  const Verdict verdict = watched->acts->VerdictNow();
  status.child_pid = watched->target->owner();
  status.name = prefix_ ? NameOf(*prefix_) : watched->target->name();
  status.state = StateName(verdict.state);
  status.confidence = ConfidenceName(verdict.confidence);
  status.hang = verdict.IsHang();
  status.summary = verdict.summary;
  for (const Watched& each : targets_) {
    const SnapshotTaker* const snapshots = each.acts->snapshots();
    if (snapshots == nullptr) continue;
    status.snapshots += snapshots->count();
    status.prefix = snapshots->AbsolutePath(*prefix_);
    if (!snapshots->last().empty())
      status.last_snapshot = snapshots->AbsolutePath(snapshots->last());
  }
  return status;
}

// So that a file of the log can be read by itself.
std::string WatchSession::LogHead() {
  if (options_.json) return "";
  std::string text = fmt::format("{}{}\n", kLogBegins, Stamp()) + WatchLegend();
  const size_t room = options_.log.size_bytes / 2 / targets_.size();
  for (Watched& watched : targets_) text += watched.log->Head(Scene(watched), clock_.Wall(), room);
  return text + "\n";
}

std::string WatchSession::Table() {
  std::string text;
  for (Watched& watched : targets_) {
    const WatchScene scene = Scene(watched);
    const WatchTable table(scene, false);
    if (scene.of_several) text += fmt::format("{}\n", watched.target->name());
    text += table.Head();
    for (const SubjectState& subject : *scene.subjects) {
      if (subject.activity != Activity::kUnused) text += table.Line(subject, scene);
    }
  }
  return text;
}

void WatchSession::Start() {
  start_ = clock_.Monotonic();
  cpu_at_start_ = OwnCpuTime();
  cost_.shortest_interval = cost_.longest_interval = options_.interval;
  for (Watched& watched : targets_) {
    for (const std::string& warning : watched.target->warnings())
      Note(watched.target->name(), "warning", "warning: " + warning);
    const auto& subjects = watched.target->watcher().subjects();
    const auto tasks = static_cast<size_t>(
        std::count_if(subjects.begin(), subjects.end(), [](const SubjectState& subject) {
          return subject.subject.kind == SubjectId::Kind::kTask;
        }));
    std::string text = fmt::format("watching {}: room for {} cores", watched.target->name(),
                                   subjects.size() - tasks);
    if (tasks > 0) text += fmt::format(" and {} tasks", tasks);
    text += fmt::format(", every {:.0f} ms", Seconds(options_.interval) * 1e3);
    if (environment_.terminal_fd >= 0 && !display_) text += "; ENTER resumes paused cores";
    Note(watched.target->name(), "watching", text);
  }
  if (metrics_ != nullptr) Note("", "metrics", "metrics at " + metrics_->address());
  if (environment_.control_folder.empty()) return;
  if (const Status status = remote_.Open(environment_.control_folder); !status.ok()) {
    Note("", "warning",
         "warning: hangscope ls and snap do not find this watcher: " + status.message());
  }
}

void WatchSession::Note(const std::string& target, const std::string& event,
                        const std::string& text) {
  NoteAs(event == "watching" ? "" : target, text,
         WatchNoteJson(target, event, text, clock_.Wall()));
}

void WatchSession::NoteAs(const std::string& target, const std::string& text,
                          const std::string& json) {
  const bool several = targets_.size() > 1;
  const std::string line = several && !target.empty() ? fmt::format("{}: {}", target, text) : text;
  Say(options_.json ? json : fmt::format("hangscope: {}\n", line));
  WriteLog(options_.json ? json : fmt::format("{}  {}\n", Stamp(), line));
}

void WatchSession::WriteLog(const std::string& lines) {
  if (!log_ || lines.empty()) return;
  const Status status = log_->Write(lines);
  if (status.ok() == !log_fails_) return;
  log_fails_ = !status.ok();
  const std::string text =
      log_fails_ ? fmt::format("the log is not complete: {}; watching goes on", status.message())
                 : "the log can be written again";
  Say(options_.json ? WatchNoteJson("", "log", text, clock_.Wall())
                    : fmt::format("hangscope: {}\n", text));
}

void WatchSession::AnnounceFinding(Watched& watched, const ScopeFinding& finding) {
  ++findings_;
  ++watched.findings[finding.kind];
  if (finding.IsBad()) ++bad_;
  dumps_.NoteFinding();
  const WatchScene scene = Scene(watched);
  if (!newest_ || finding.IsBad() || !newest_->finding.IsBad()) {
    newest_ = {static_cast<size_t>(&watched - targets_.data()), finding,
               FindingHeadline(finding, scene)};
  }
  Watchable& target = *watched.target;
  const std::string told =
      options_.json ? FindingJson(target.Tell(finding, scene.now), scene.target, clock_.Wall())
                    : FindingText(finding, scene, target.History(finding));
  Say(options_.json ? told : "hangscope: " + told);
  WriteLog(options_.json ? told : fmt::format("{}  {}", Stamp(), told));
}

void WatchSession::Announce(Watched& watched) {
  Watchable& target = *watched.target;
  std::vector<ScopeFinding> findings = target.DrainFindings();
  if (watched.acts->EndedTarget()) {
    for (const ScopeFinding& finding : findings) {
      if (finding.kind == FindingKind::kDead)
        Note(target.name(), "ended", "ended by hangscope (--on-hang kill): " + finding.summary);
    }
    std::erase_if(findings, [](const ScopeFinding& f) { return f.kind == FindingKind::kDead; });
  }
  // Threads may have got names, and a target's cores their nodes, after it was opened. It reads all
  // rings.
  if (!findings.empty()) (void)target.RefreshNames().ok();
  for (const ScopeFinding& finding : findings) AnnounceFinding(watched, finding);
  for (const Watchable::Note& note : target.DrainNotes())
    Note(target.name(), note.event, note.text);
  watched.acts->Follow(findings);
}

void WatchSession::AnnouncePauses(Watched& watched) {
  Watchable& target = *watched.target;
  if (!target.is_watched()) return;
  const PausedCores::News news =
      watched.paused.See(target.watcher().subjects(), target.life(), clock_.Monotonic());
  const auto note = [&](const char* event, const std::vector<SubjectId>& cores,
                        const std::string& text, const std::string& command) {
    NoteAs(target.name(), text,
           CoresNoteJson(event, text, cores, command, Scene(watched), clock_.Wall()));
  };
  if (!news.continued.empty())
    note("continued", news.continued, ContinuedText(news, Scene(watched)), "");
  if (news.paused.empty()) return;
  const std::string command = ResumeCommand(target, news.paused, watched.source_of);
  const std::string how = ReadsTerminal()   ? "; ENTER resumes paused cores"
                          : command.empty() ? ""
                                            : "; to resume: " + command;
  note("paused", news.paused, PausedText(news.paused, Scene(watched)) + how, command);
}

void WatchSession::Log(Watched& watched) {
  if (!log_ || !watched.target->is_watched()) return;
  WriteLog(watched.log->Changes(Scene(watched), clock_.Wall()));
}

void WatchSession::Dump(const std::string& why) {
  if (!log_ || why.empty()) return;
  const TimeNs begin = clock_.Monotonic();
  for (Watched& watched : targets_) {
    const uint64_t before = watched.target->bytes_read();
    for (const std::string& text : watched.log->Dump(Scene(watched), why, clock_.Wall()))
      WriteLog(text);
    cost_.bytes += watched.target->bytes_read() - before;
  }
  dumps_.Wrote(begin, clock_.Monotonic(), cost_.polls);
}

// Slower, never faster than asked for.
void WatchSession::KeepBudget(uint64_t bytes) {
  const double needed =
      static_cast<double>(bytes) / static_cast<double>(options_.budget_bytes_per_s) * 1e9;
  const TimeNs interval = std::max(options_.interval, static_cast<TimeNs>(needed));
  if (interval > cost_.longest_interval) {
    if (cost_.longest_interval == options_.interval) {
      Note("", "slowed",
           fmt::format("a poll reads {}, and the budget is {} a second: one every {:.0f} ms",
                       FormatSize(bytes), FormatSize(options_.budget_bytes_per_s),
                       Seconds(interval) * 1e3));
    }
    cost_.longest_interval = interval;
  }
  interval_ = interval;
}

void WatchSession::PollAll() {
  const TimeNs begin = clock_.Monotonic();
  uint64_t bytes = 0;
  for (Watched& watched : targets_) {
    const uint64_t before = watched.target->bytes_read();
    watched.target->Poll(clock_.Monotonic());
    bytes += watched.target->bytes_read() - before;
  }
  cost_.longest_poll = std::max(cost_.longest_poll, clock_.Monotonic() - begin);
  ++cost_.polls;
  cost_.bytes += bytes;
  for (Watched& watched : targets_) {
    Log(watched);
    AnnouncePauses(watched);
    Announce(watched);
  }
  Dump(dumps_.WhyNow(clock_.Monotonic(), cost_.polls));
  KeepBudget(bytes);
  // hangs up on the slow, whether anybody else asks or not
  if (metrics_ != nullptr) metrics_->Poll(clock_.Monotonic());
  AnswerControl();
}

bool WatchSession::IsOver() const {
  if (interrupted_ || quits_) return true;
  const bool acts = std::any_of(targets_.begin(), targets_.end(),
                                [](const Watched& w) { return w.acts->IsActing(); });
  if (options_.exit_on_hang && bad_ > 0 && !acts) return true;
  if (options_.length > 0 && clock_.Monotonic() - start_ >= options_.length) return true;
  return std::all_of(targets_.begin(), targets_.end(),
                     [](const Watched& w) { return w.target->is_over(); });
}

void WatchSession::ReadSignals() {
  signalfd_siginfo info{};
  while (read(environment_.signal_fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGUSR1) {
      if (!options_.json) Say(Table());
    } else if (info.ssi_signo == SIGUSR2) {
      (void)SnapshotAll(TriggerKind::kSignal, "SIGUSR2", false).ok();  // reported there
    } else if (display_ && display_->OnSignal(static_cast<int>(info.ssi_signo))) {
      continue;
    } else if (info.ssi_signo != SIGCHLD) {
      interrupted_ = true;
    }
  }
}

void WatchSession::ResumeAll() {
  for (Watched& watched : targets_) {
    if (!watched.target->is_watched()) continue;
    const auto resumed = ResumeAllOf(*watched.target, Scene(watched));
    if (!resumed.ok())
      Note(watched.target->name(), "error", "cannot resume: " + resumed.status().message());
    else
      Note(watched.target->name(), "resumed",
           resumed.value().empty() ? "no core is paused" : "resumed " + resumed.value());
  }
}

bool WatchSession::ReadsTerminal() const {
  return environment_.terminal_fd >= 0 && !display_ &&
         (!environment_.terminal_may_be_read || environment_.terminal_may_be_read());
}

// In a terminal's own mode a line at a time arrives: ENTER.
void WatchSession::ReadTerminal() {
  char bytes[256];
  if (environment_.terminal_may_be_read && !environment_.terminal_may_be_read()) return;
  const ssize_t got = read(environment_.terminal_fd, bytes, sizeof bytes);
  if (got > 0 && std::find(bytes, bytes + got, '\n') != bytes + got) ResumeAll();
}

// Who is late already still looks once: else nobody would hear a signal or a key.
void WatchSession::WaitUntil(TimeNs time) {
  for (bool looked = false; !interrupted_ && !quits_; looked = true) {
    if (display_) display_->Tick();
    const TimeNs now = clock_.Monotonic();
    if (now >= time && looked) return;
    const TimeNs end = std::max(time, now);
    const TimeNs left = (display_ ? std::clamp(display_->next_draw(), now, end) : end) - now;
    const bool reads = ReadsTerminal();
    const bool shows = display_ && display_->MayBeRead();
    pollfd fds[] = {{environment_.signal_fd, POLLIN, 0},
                    {reads   ? environment_.terminal_fd
                     : shows ? display_->input_fd()
                             : -1,
                     POLLIN, 0},
                    {metrics_ == nullptr ? -1 : metrics_->event_fd(), POLLIN, 0},
                    {remote_.event_fd(), POLLIN, 0}};
    const timespec wait = {left / kSecond, left % kSecond};
    if (ppoll(fds, std::size(fds), &wait, nullptr) <= 0) continue;
    if (fds[0].revents != 0) ReadSignals();
    if (fds[1].revents != 0 && display_)
      ReadKeys((fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0);
    else if (fds[1].revents != 0)
      ReadTerminal();
    if (fds[2].revents != 0) metrics_->Poll(clock_.Monotonic());
    if (fds[3].revents != 0) AnswerControl();
  }
}

void WatchSession::ReadKeys(bool terminal_is_gone) {
  display_->OnInput();
  interrupted_ = interrupted_ || terminal_is_gone;
  quits_ = display_->quits();
}

std::string WatchSession::Metrics() {
  cost_.cpu = OwnCpuTime() - cpu_at_start_;
  std::vector<WatchedMetrics> targets;
  for (Watched& watched : targets_) {
    targets.push_back({Scene(watched),
                       watched.target->is_watched(),
                       {watched.findings.begin(), watched.findings.end()}});
  }
  return WatchMetrics(targets, cost_);
}

// The proof that they ran, or that they did not.
void WatchSession::AnnounceDelays(Watched& watched) {
  const auto cores = DelayedCores(*watched.target);
  if (cores.empty()) return;
  const WatchScene scene = Scene(watched);
  const std::string text = DelayedCoresText(cores, scene);
  NoteAs(watched.target->name(), text, DelaysNoteJson(text, cores, scene, clock_.Wall()));
}

void WatchSession::AnnounceEnd() {
  Dump(dumps_.HasWrittenAfter(cost_.polls) ? "" : "at the end");
  for (Watched& watched : targets_) AnnounceDelays(watched);
  cost_.elapsed = clock_.Monotonic() - start_;
  cost_.cpu = OwnCpuTime() - cpu_at_start_;
  const std::string json = WatchEndJson(cost_, findings_, bad_, clock_.Wall());
  const std::string text = WatchCostText(cost_);
  Say(options_.json ? json : fmt::format("hangscope: {}\n", text));
  WriteLog(options_.json ? json : fmt::format("{}  {}\n", Stamp(), text));
}

// Without the screen all is said at once, as ever.
void WatchSession::OpenDisplay() {
  if (environment_.screen == nullptr) return;
  display_.emplace(*environment_.screen, clock_,
                   LiveCallbacks{[this] { return DataForDisplay(); },
                                 [this](const LiveSubject& subject) {
                                   return ReadDetails(*targets_[subject.target].target,
                                                      subject.subject, clock_.Monotonic());
                                 },
                                 [this] { ResumeAll(); }});
  const Status status = display_->Open();
  if (status.ok()) return;
  display_.reset();
  Note("", "warning", "no live view: " + status.message());
}

bool WatchSession::StillHolds(const Watched& watched, const ScopeFinding& finding) const {
  if (!watched.target->is_watched()) return true;  // it ended so
  const std::vector<ScopeFinding>& standing = watched.target->watcher().standing();
  return std::any_of(standing.begin(), standing.end(), [&](const ScopeFinding& f) {
    return f.kind == finding.kind && f.subjects == finding.subjects;
  });
}

LiveData WatchSession::DataForDisplay() {
  LiveData data;
  for (Watched& watched : targets_) {
    const LiveTarget::State state = watched.target->is_watched() ? LiveTarget::State::kWatched
                                    : watched.target->is_over()  ? LiveTarget::State::kOver
                                                                 : LiveTarget::State::kAway;
    data.targets.push_back({Scene(watched), &watched.target->watcher().standing(), state});
  }
  if (newest_) {
    data.headline = newest_->headline;
    data.headline_is_bad = newest_->finding.IsBad();
    data.headline_holds = StillHolds(targets_[newest_->target], newest_->finding);
  }
  data.bad_findings = bad_;
  data.elapsed = clock_.Monotonic() - start_;
  return data;
}

WatchOutcome WatchSession::Run() {
  const Status opened = Open();
  ShowWork("");
  if (!opened.ok())
    return {opened.code() == Status::Code::kUsage ? WatchExit::kUsage : WatchExit::kFailed, opened};
  OpenDisplay();
  Start();
  TimeNs next = clock_.Monotonic();
  for (bool first = true;; first = false) {
    PollAll();
    if (first && !options_.json && !display_) Say(Table());
    if (IsOver()) break;
    // After a pause of our own the missed polls are not made up for.
    next = std::max(next + jitter_.Next(interval_), clock_.Monotonic());
    const TimeNs end = options_.length > 0 ? start_ + options_.length : next;
    WaitUntil(std::min(next, end));
  }
  for (Watched& watched : targets_) watched.acts->Finish();
  WriteJunit();
  if (display_) display_->Close();
  remote_.Close();
  AnnounceEnd();
  if (display_) environment_.say(display_->DrainSaid());
  if (bad_ > 0) return {WatchExit::kHang, {}};
  return {interrupted_ ? WatchExit::kInterrupted : WatchExit::kClean, {}};
}

}  // namespace

WatchOutcome RunWatch(const WatchEnvironment& environment, const WatchOptions& options) {
  return WatchSession(environment, options).Run();
}

}  // namespace hangscope

#include "run/run_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "act/hang_command.h"
#include "base/side_process.h"
#include "base/signal_text.h"
#include "base/units.h"
#include "observe/observer.h"
#include "observe/standby.h"
#include "run/run_junit.h"

namespace hangscope {
namespace {

constexpr TimeNs kPollInterval = 50 * kMillisecond;
constexpr TimeNs kActivityInterval = 250 * kMillisecond;
constexpr TimeNs kKillGrace = 2 * kSecond;

// QEMU's -d exec prints every step only with nochain.
bool LacksNochain(const std::vector<std::string>& command) {
  const bool qemu = std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return NameOf(word).starts_with("qemu-");  // perhaps behind timeout, env, nice ...
  });
  if (!qemu) return false;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i - 1] != "-d") continue;
    const std::string items = "," + command[i] + ",";
    if (items.find(",exec,") != std::string::npos && items.find(",nochain,") == std::string::npos)
      return true;
  }
  return false;
}

class Runner {
 public:
  Runner(const Environment& environment, const RunOptions& options)
      : environment_(environment),
        options_(options),
        clock_(*environment.clock),
        recording_(*environment.files, clock_, options.stages) {}

  RunOutcome Run() {
    RunOutcome outcome;
    // Nothing of an earlier run is given up for a program that cannot start.
    outcome.status = environment_.check_program(options_.observer.command[0]);
    if (!outcome.status.ok()) return CannotStart(outcome.status);
    outcome.status = PrepareRings();
    if (!outcome.status.ok()) return outcome;
    ChildOptions child;
    child.command = options_.launcher;
    child.command.insert(child.command.end(), options_.observer.command.begin(),
                         options_.observer.command.end());
    for (const RunStream& stream : options_.streams) child.streams.push_back(stream.captured);
    child.signals = options_.signals;
    child.before_start = [this](const std::vector<int>& stream_fds) { PostGuards(stream_fds); };
    if (options_.record_cpus) child.before_exec = [this](pid_t pid) { StartCpuRecording(pid); };
    child.is_ours = [this](pid_t pid) { return IsOurs(pid); };
    const TimeNs start = clock_.Monotonic();
    const TimeNs start_wall = clock_.Wall();
    auto started = environment_.start_child(child);
    if (!started.ok()) return CannotStart(started.status());
    child_ = std::move(*started);
    StartDrains();
    Observer observer(environment_, options_.observer, recording_, start, start_wall);
    observer_ = &observer;
    if (!guard_status_.ok()) {
      observer.narrator().Note(
          "warning: no guard, so the program will not survive a kill of hangscope: " +
              guard_status_.message(),
          clock_.Wall());
    }
    if (recorder_ != nullptr) observer.RecordCpus(std::move(recorder_));
    if (!recorder_status_.ok()) {
      observer.narrator().Note(
          "warning: --cpu: " + recorder_status_.message() + "; the program runs without",
          clock_.Wall());
    }
    if (LacksNochain(options_.observer.command)) {
      observer.analysis().SetChained();
      observer.narrator().Note(
          "warning: -d exec without nochain prints only some of the steps; use -d exec,nochain",
          clock_.Wall());
    }
    observer.analysis().Start();
    Watch();
    outcome.exit_status = Conclude();
    outcome.terminal_signal = TerminalSignal();
    outcome.keep_rings = KeepsRings(outcome.exit_status);
    return outcome;
  }

 private:
  static RunOutcome CannotStart(const Status& status) {
    return {status.code() == Status::Code::kNotFound ? kRunNotFound : kRunCannotExecute, status};
  }

  // From before the program starts, so that there is no instant without them.
  void PostGuards(const std::vector<int>& stream_fds) {
    if (environment_.guard_program.empty()) return;
    std::vector<StandbyStream> streams;
    for (size_t i = 0; i < stream_fds.size(); ++i) {
      streams.push_back(recording_.Guarded(i, stream_fds[i], options_.streams[i].passthrough));
    }
    auto posted = Standby::Post(environment_.guard_program, streams);
    guard_status_ = posted.status();
    if (posted.ok()) standby_ = std::move(*posted);
  }

  // Before the program's first instruction. That it cannot be recorded does not keep it from
  // running.
  void StartCpuRecording(pid_t pid) {
    auto recorder = environment_.record_cpus(clock_, pid, options_.cpus);
    recorder_status_ = recorder.status();
    if (recorder.ok()) recorder_ = std::move(*recorder);
  }

  Status PrepareRings() {
    for (const RunStream& stream : options_.streams) {
      const std::string& name = stream.captured.name;
      Status status = recording_.AddRing(name, options_.ring_prefix + "." + name, options_.geometry,
                                         stream.passthrough.fd >= 0);
      if (!status.ok()) return status;
    }
    return {};
  }

  void StartDrains() {
    for (size_t i = 0; i < options_.streams.size(); ++i) {
      recording_.Drain(i, child_->stream_fds()[i], true, options_.streams[i].passthrough);
    }
  }

  // Until the child has ended and all of its output is taken. Descendants that
  // still hold the streams are recorded to their end, too.
  void Watch() {
    TimeNs next_activity = 0;
    while (!(exit_ && recording_.ended())) {
      WaitForEvents(exit_ ? kMillisecond * 20 : kPollInterval);
      ReadSignals();
      if (exit_)
        (void)child_->Poll();
      else
        (void)HasJustEnded();
      if (hang_command_.pid() != 0) observer_->NoteAttach();
      ReportCrashes();
      const TimeNs now = clock_.Monotonic();
      if (now >= next_activity) {
        if (standby_ != nullptr) standby_->Check();
        hang_command_.Collect();
        SampleChild();
        next_activity = now + kActivityInterval;
      }
      if (exit_ && recording_.ended()) break;
      if (observer_->Tick(view_, child_->pid(), [this] { return HasEndedLately(); })) ActOnHang();
      if (options_.timeout != 0 && now - observer_->start() >= options_.timeout) TimeOut();
      if (kill_at_ != 0 && now >= kill_at_) {
        child_->Signal(SIGKILL);
        child_->SignalDescendants(SIGKILL);
        kill_at_ = 0;
      }
    }
  }

  // Since it was last asked.
  bool HasJustEnded() {
    if (exit_) return false;
    exit_ = child_->Poll();
    if (!exit_) return false;
    ended_at_ = clock_.Monotonic();
    const bool is_as_wanted = IsToldToEnd() && options_.observer.on_exit == OnExit::kUnlessStopped;
    if (!ended_by_hang_ && !timed_out_ && !is_as_wanted) observer_->OnExit(*exit_);
    return true;
  }

  // What is still to be read of it is no hang, and those who hold its output may go on now.
  bool HasEndedLately() {
    (void)HasJustEnded();
    return exit_ && clock_.Monotonic() - ended_at_ < options_.observer.stall;
  }

  void ReportCrashes() {
    for (const ProcessCrash& crash : child_->DrainCrashes()) observer_->OnCrash(crash);
  }

  void WaitForEvents(TimeNs longest) {
    pollfd events[] = {{environment_.signal_fd, POLLIN, 0},
                       {recording_.done_event(), POLLIN, 0},
                       {observer_->control_fd(), POLLIN, 0},
                       {child_->crash_fd(), POLLIN, 0}};
    poll(events, std::size(events), static_cast<int>(longest / kMillisecond));
    if (events[1].revents != 0) {
      uint64_t count = 0;
      (void)!read(recording_.done_event(), &count, sizeof count);
    }
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (read(environment_.signal_fd, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (observer_->OnSignal(number)) continue;
      if (number == SIGWINCH) {
        child_->FollowTerminalSize();
      } else if (number != SIGCHLD) {
        // Of the terminal's end the kernel may have told us alone, as the leader of the session.
        const bool has_group_got_it = info.ssi_code == SI_KERNEL && number != SIGHUP;
        PassOn(number, has_group_got_it ? SignalSource::kTerminal : SignalSource::kProcess);
      }
    }
  }

  // Once the program has ended there are only those left who hold its output. They may ignore what
  // they are sent; who asks a second time wants hangscope to end.
  void PassOn(int number, SignalSource source) {
    if (source == SignalSource::kTerminal) terminal_signals_.insert(number);
    child_->Signal(number, source);
    if (exit_ && (!passed_on_.empty() || exit_->signal == number)) recording_.Stop();
    passed_on_.insert(number);
  }

  // SIGHUP means to many: read your settings.
  bool IsToldToEnd() const {
    return std::any_of(passed_on_.begin(), passed_on_.end(),
                       [](int number) { return number != SIGHUP; });
  }

  std::string WhoIsWaitedFor(const std::vector<std::string>& holders) const {
    if (!exit_ || recording_.ended()) return {};
    const std::string ended = exit_->signal != 0
                                  ? "was killed by " + SignalText(exit_->signal)
                                  : fmt::format("ended with status {}", exit_->status);
    if (holders.empty() && recording_.blocked())
      return fmt::format(
          "the program {}; the rest of its output waits to be recorded and passed on", ended);
    constexpr size_t kMostNamed = 3;
    const size_t named = std::min(kMostNamed, holders.size());
    const std::string others =
        holders.size() > named ? fmt::format(" and {} more", holders.size() - named) : "";
    return fmt::format(
        "the program {}; waiting for {}{}, which still hold{} its output", ended,
        holders.empty() ? "another process"
                        : fmt::to_string(fmt::join(holders.begin(), holders.begin() + named, ", ")),
        others, holders.size() > 1 ? "" : "s");
  }

  void SampleChild() {
    const ChildActivity activity = child_->Activity();
    view_.known = activity.known;
    view_.cpu_time = activity.cpu_time;
    view_.timed_sleep = activity.timed_sleep;
    view_.stopped = activity.stopped;
    view_.runnable = activity.runnable;
    view_.waits_in = activity.waits_in;
    view_.is_looked_into = environment_.inspector != nullptr;
    // The threads tell it better.
    view_.waits_for_input = !view_.is_looked_into && child_->WaitsForInput(activity.ids);
    view_.processes = activity.ids;
    view_.waits_for_output = WhoIsWaitedFor(activity.holds_output);
  }

  void EndProgram() {
    observer_->StopJudging();
    child_->Signal(SIGTERM);
    kill_at_ = clock_.Monotonic() + kKillGrace;
  }

  // With the same evidence as a hang: why it has not ended by now is what its user wants to know.
  void TimeOut() {
    if (HasJustEnded() || std::exchange(is_time_over_, true) || ended_by_hang_) return;
    timed_out_ = !exit_;  // else only those are left who hold its output
    if (timed_out_) observer_->ReportTimeout(options_.timeout);
    EndProgram();
  }

  void ActOnHang() {
    if (timed_out_) return;
    if (options_.on_hang.what == OnHang::kKill) {
      ended_by_hang_ = true;
      EndProgram();
    }
    if (options_.on_hang.what == OnHang::kExec) StartHangCommand();
  }

  void StartHangCommand() {
    const Status status = hang_command_.Start(
        {observer_->last_snapshot(), child_->pid(), observer_->last_hang()->summary});
    if (!status.ok()) observer_->narrator().Note(status.message(), clock_.Wall());
  }

  bool IsOurs(pid_t pid) const {
    return SideProcess::Is(pid) || (standby_ != nullptr && standby_->Has(pid)) ||
           hang_command_.pid() == pid;
  }

  // Typed where the program has a terminal of its own, it is ended by keys that went on to it.
  int TerminalSignal() const {
    const int number = exit_ ? exit_->signal : 0;
    const bool typed = number == SIGINT || number == SIGQUIT;
    const bool relayed = std::any_of(options_.streams.begin(), options_.streams.end(),
                                     [](const RunStream& stream) { return stream.captured.pty; }) &&
                         isatty(STDIN_FILENO) != 0;
    return !ended_by_hang_ && !timed_out_ && typed &&
                   (relayed || terminal_signals_.count(number) != 0)
               ? number
               : 0;
  }

  int Conclude() {
    ReadSignals();
    ReportCrashes();
    standby_.reset();
    SampleChild();
    view_.ended = true;
    view_.exit_status = exit_->status;
    view_.exit_signal = exit_->signal;
    view_.was_told_to = passed_on_.count(exit_->signal) != 0;
    const Verdict verdict = observer_->Conclude(view_, child_->pid());
    Narrator& narrator = observer_->narrator();
    narrator.Close();
    if (ended_by_hang_ || timed_out_) {
      narrator.Note(fmt::format("ended it after {}; status {}",
                                FormatElapsed(verdict.time - observer_->start()), int{kRunHang}),
                    clock_.Wall());
    } else {
      narrator.Announce(verdict, clock_.Wall(), observer_->exit_snapshot(),
                        observer_->exit_contents());
    }
    const int status = exit_->signal != 0 ? kRunSignalBase + exit_->signal : exit_->status;
    const int result = ended_by_hang_ || timed_out_ ? int{kRunHang} : status;
    if (!options_.junit_path.empty()) WriteJunit(verdict, result);
    if (!options_.place.empty() && KeepsRings(result))
      narrator.Note("recording: " + options_.place + "/", clock_.Wall());
    return result;
  }

  void WriteJunit(const Verdict& verdict, int status) {
    const RunEnd end = {child_->pid(), *exit_, ended_by_hang_, timed_out_, status, verdict};
    const Status written =
        WriteRunJunit(*environment_.files, options_, end, *observer_, recording_);
    if (!written.ok()) observer_->narrator().Note("--junit: " + written.message(), clock_.Wall());
  }

  bool KeepsRings(int status) const {
    return options_.keep_rings || status != 0 || observer_->last_hang() != nullptr ||
           !observer_->last_snapshot().empty();
  }

  const Environment& environment_;
  const RunOptions& options_;
  Clock& clock_;
  Recording recording_;
  std::unique_ptr<Standby> standby_;
  HangCommand hang_command_{options_.on_hang.command, options_.signals};
  Status guard_status_;
  std::unique_ptr<CpuRecorder> recorder_;  // until the observer has it
  Status recorder_status_;
  std::unique_ptr<ChildProcess> child_;
  Observer* observer_ = nullptr;
  std::optional<ChildExit> exit_;
  TimeNs ended_at_ = 0;  // monotonic: when exit_ was noticed
  ChildView view_;
  std::set<int> terminal_signals_;  // of those below, what the terminal sent
  std::set<int> passed_on_;
  TimeNs kill_at_ = 0;
  bool ended_by_hang_ = false;
  bool timed_out_ = false;
  bool is_time_over_ = false;
};

}  // namespace

RunOutcome RunProgram(const Environment& environment, const RunOptions& options) {
  return Runner(environment, options).Run();
}

}  // namespace hangscope

#include "run/process_watch_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "act/hang_command.h"
#include "act/target_process.h"
#include "base/side_process.h"
#include "observe/observer.h"
#include "proc/process_end.h"
#include "scope/scope_view.h"
#include "target/process_target.h"
#include "verdict/junit.h"
#include "verdict/text.h"
#include "why/why_process.h"

namespace hangscope {
namespace {

constexpr TimeNs kTickInterval = 50 * kMillisecond;
// For processes that it has started: what that may take of a CPU is one part in so many.
constexpr TimeNs kBetweenSearches = 250 * kMillisecond;
constexpr TimeNs kSearchShare = 200;

class ProcessWatch {
 public:
  ProcessWatch(const Environment& environment, const ProcessWatchOptions& options)
      : environment_(environment),
        clock_(*environment.clock),
        options_(options),
        recording_(*environment.files, clock_) {}

  ProcessWatchOutcome Run() {
    ProcessWatchOutcome outcome;
    std::unique_ptr<CpuRecorder> recorder;
    outcome.status = Open(&recorder);
    if (!outcome.status.ok()) return outcome;
    Observer observer(environment_, ObservedAs(), recording_, clock_.Monotonic(), clock_.Wall());
    observer_ = &observer;
    if (recorder != nullptr) observer.RecordCpus(std::move(recorder));
    Announce();
    Watch();
    view_.ended = has_ended_;
    (void)observer.Conclude(view_, options_.pid);
    if (has_ended_) AnnounceEnd();
    if (!options_.junit_path.empty()) WriteJunit();
    observer.narrator().Close();
    outcome.interrupted = interrupted_;
    outcome.found = observer.last_hang() != nullptr || was_killed_;
    return outcome;
  }

 private:
  // Who is to be ended is chosen before all else, so that nobody else has got the number by then.
  Status Open(std::unique_ptr<CpuRecorder>* recorder) {
    if (options_.on_hang.what == OnHang::kKill) {
      auto process = TargetProcess::Find(*environment_.files, ProcessSpec(options_.pid));
      if (!process.ok()) return process.status();
      process_ = std::move(*process);
    }
    end_ = ProcessEnd::Watch(options_.pid);
    if (end_ == nullptr || LifeOfProcess(options_.pid) == Life::kDead)
      return Status::NotFound(fmt::format("there is no process {}", options_.pid));
    if (Status status = MayBeLookedAt(); !status.ok()) {
      if (!options_.record_cpus) return status;
      blind_ = status.message();
    }
    if (!options_.record_cpus) return {};
    auto started = environment_.record_cpus(clock_, options_.pid, options_.recorder);
    if (started.ok()) *recorder = std::move(*started);
    return started.status();
  }

  // Threads that nobody may look at would be taken for healthy ones.
  Status MayBeLookedAt() const {
    if (environment_.inspector == nullptr) return Status::NotFound("this machine does not let us");
    auto found =
        FindProcessHangsBeside(clock_, *environment_.inspector, HangQuestion(options_.pid));
    if (!found.ok() || !found->threads.empty()) return {};
    WhyProcessOptions why;  // which has the sentence
    why.pid = options_.pid;
    why.stop = false;
    return AskWhyProcess(clock_, *environment_.inspector, why).status();
  }

  // A scope that is there goes into the snapshots; none is no error.
  ObserverOptions ObservedAs() {
    ObserverOptions observed = options_.observer;
    const std::string target = ProcessSpec(options_.pid);
    if (ScopeView::Open(*environment_.files, {target, observed.elf_path, false}).ok())
      observed.scope.target = target;
    has_scope_ = !observed.scope.none();
    return observed;
  }

  void Say(const std::string& text) { observer_->narrator().Note(text, clock_.Wall()); }

  void Announce() {
    if (!blind_.empty()) Say("warning: the program's threads are not looked at: " + blind_);
    std::string what = blind_.empty() ? ": its threads" : "";
    if (has_scope_) what += what.empty() ? ": its mailboxes" : " and its mailboxes";
    Say(
        fmt::format("{} process {}{}; SIGUSR1 and hangscope snap take a snapshot: "
                    "{}.snapshot-NNNN/",
                    options_.record_cpus ? "recording" : "watching", options_.pid, what,
                    options_.observer.prefix));
  }

  void Watch() {
    while (!interrupted_ && !IsOver()) {
      pollfd events[] = {{environment_.signal_fd, POLLIN, 0}, {observer_->control_fd(), POLLIN, 0}};
      poll(events, std::size(events), static_cast<int>(kTickInterval / kMillisecond));
      ReadSignals();
      (void)HasJustEnded();
      FindProcesses();
      if (command_.pid() != 0) observer_->NoteAttach();
      command_.Collect();
      if (process_ != nullptr) process_->Tick(clock_.Monotonic());
      if (observer_->Tick(view_, options_.pid, [this] { return HasJustEnded(); })) Act();
    }
  }

  // Since it was last asked.
  bool HasJustEnded() {
    if (has_ended_) return false;
    has_ended_ = end_->HasEnded() || LifeOfProcess(options_.pid) == Life::kDead;
    return has_ended_;
  }

  bool IsOver() {
    if (has_ended_) return true;
    if (options_.length > 0 && clock_.Monotonic() - observer_->start() >= options_.length)
      return true;
    const bool is_ending = process_ != nullptr && process_->IsEnding();
    return options_.exit_on_hang && observer_->last_hang() != nullptr && !is_ending;
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (read(environment_.signal_fd, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (!observer_->OnSignal(number) && number != SIGCHLD) interrupted_ = true;
    }
  }

  // The process and what descends from it, but for us, whom its shell may have started.
  void FindProcesses() {
    const TimeNs now = clock_.Monotonic();
    view_.ended = has_ended_;
    if (now < next_search_) return;
    view_.is_looked_into = environment_.inspector != nullptr;
    view_.processes = {options_.pid};
    const auto is_ours = [this](pid_t pid) {
      return pid == getpid() || SideProcess::Is(pid) || pid == command_.pid();
    };
    for (const TaskStat& process : Descendants(options_.pid, is_ours))
      view_.processes.push_back(process.id);
    const TimeNs took = clock_.Monotonic() - now;
    next_search_ = now + std::max(kBetweenSearches, kSearchShare * took);
  }

  void Act() {
    if (options_.on_hang.what == OnHang::kKill) {
      const Status status = process_->End(clock_.Monotonic());
      Say(status.ok() ? fmt::format("--on-hang kill: ends {}", process_->name())
                      : status.message());
      if (status.ok()) observer_->StopJudging();
    }
    if (options_.on_hang.what != OnHang::kExec) return;
    const Status status =
        command_.Start({observer_->last_snapshot(), options_.pid, observer_->last_hang()->summary,
                        fmt::format("process {}", options_.pid)});
    if (!status.ok()) Say(status.message());
  }

  void AnnounceEnd() {
    const ProcessEnd::How how = end_->how();
    const bool by_us = process_ != nullptr && process_->was_told();
    was_killed_ = how.known && how.signal_number != 0 && !by_us;
    std::string text = fmt::format("process {} ended", options_.pid);
    if (how.known && how.signal_number != 0)
      text = fmt::format("{}process {} was killed by signal {} ({})", was_killed_ ? "DEAD: " : "",
                         options_.pid, how.signal_number, strsignal(how.signal_number));
    else if (how.known)
      text += fmt::format(" with status {}", how.exit_status);
    end_text_ = (by_us ? "ended by hangscope (--on-hang kill): " : "") + text;
    Say(end_text_);
  }

  void WriteJunit() {
    JunitCase result;
    result.name = fmt::format("process {}", options_.pid);
    result.elapsed = clock_.Monotonic() - observer_->start();
    if (const Verdict* const hang = observer_->last_hang()) {
      result.failure = "hang: " + HeadlineWithSubject(*hang);
      result.report =
          VerdictText(*hang, observer_->start(), observer_->last_snapshot()) + end_text_;
    } else if (was_killed_) {
      result.error = end_text_;
    }
    const Status status =
        WriteWholeFile(*environment_.files, options_.junit_path, JunitXml(result));
    if (!status.ok()) Say("--junit: " + status.message());
  }

  const Environment& environment_;
  Clock& clock_;
  const ProcessWatchOptions& options_;
  Recording recording_;  // of no streams
  std::unique_ptr<ProcessEnd> end_;
  std::unique_ptr<TargetProcess> process_;  // to be ended on a hang; null: nobody
  HangCommand command_{options_.on_hang.command, options_.signals};
  Observer* observer_ = nullptr;
  ChildView view_;
  TimeNs next_search_ = 0;
  std::string end_text_;  // how the process ended; empty: it did not
  std::string blind_;     // why nobody looks at its threads; empty: they are looked at
  bool has_scope_ = false;
  bool has_ended_ = false;
  bool was_killed_ = false;
  bool interrupted_ = false;
};

}  // namespace

ProcessWatchOutcome WatchProcess(const Environment& environment,
                                 const ProcessWatchOptions& options) {
  return ProcessWatch(environment, options).Run();
}

}  // namespace hangscope

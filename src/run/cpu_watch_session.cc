#include "run/cpu_watch_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iterator>
#include <optional>

#include "run/observer.h"
#include "scope/scope_view.h"
#include "target/process_target.h"

namespace hangscope {
namespace {

constexpr TimeNs kCpuPollInterval = 50 * kMillisecond;
constexpr TimeNs kNever = 1'000'000 * kSecond;  // without streams, their silence says nothing

class CpuWatch {
 public:
  CpuWatch(const Environment& environment, const CpuWatchOptions& options)
      : environment_(environment),
        clock_(*environment.clock),
        options_(options),
        recording_(*environment.files, clock_) {}

  Result<CpuWatchEnd> Run() {
    auto recorder = environment_.record_cpus(clock_, options_.pid, options_.recorder);
    if (!recorder.ok()) return recorder.status();
    const TimeNs start = clock_.Monotonic();
    Observer observer(environment_, ObservedAs(), recording_, start, clock_.Wall());
    observer.RecordCpus(std::move(*recorder));
    observer.narrator().Note(
        fmt::format(
            "recording process {}; SIGUSR1 and hangscope snap take a snapshot: {}.snapshot-NNNN/",
            options_.pid, options_.observer.prefix),
        clock_.Wall());
    const CpuWatchEnd end = Watch(&observer, start);
    ChildView view;
    view.ended = end == CpuWatchEnd::kProcessEnded;
    (void)observer.Conclude(view);
    observer.narrator().Close();
    return end;
  }

 private:
  // A scope that is there goes into the snapshots; none is no error.
  ObserverOptions ObservedAs() const {
    ObserverOptions observed = options_.observer;
    observed.stall = kNever;
    const std::string target = ProcessSpec(options_.pid);
    if (ScopeView::Open(*environment_.files, {target, observed.elf_path, false}).ok())
      observed.scope.target = target;
    return observed;
  }

  CpuWatchEnd Watch(Observer* observer, TimeNs start) {
    for (;;) {
      pollfd events[] = {{environment_.signal_fd, POLLIN, 0}, {observer->control_fd(), POLLIN, 0}};
      poll(events, std::size(events), static_cast<int>(kCpuPollInterval / kMillisecond));
      if (IsInterrupted(observer)) return CpuWatchEnd::kInterrupted;
      (void)observer->Tick({}, options_.pid);
      if (LifeOfProcess(options_.pid) == Life::kDead) return CpuWatchEnd::kProcessEnded;
      if (options_.length > 0 && clock_.Monotonic() - start >= options_.length)
        return CpuWatchEnd::kTimeOver;
    }
  }

  bool IsInterrupted(Observer* observer) const {
    signalfd_siginfo info{};
    bool interrupted = false;
    while (read(environment_.signal_fd, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (!observer->OnSignal(number) && number != SIGCHLD) interrupted = true;
    }
    return interrupted;
  }

  const Environment& environment_;
  Clock& clock_;
  const CpuWatchOptions& options_;
  Recording recording_;  // of no streams
};

}  // namespace

Result<CpuWatchEnd> WatchCpus(const Environment& environment, const CpuWatchOptions& options) {
  return CpuWatch(environment, options).Run();
}

}  // namespace hangscope

#include "run/tee_session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iterator>

#include "observe/observer.h"
#include "observe/standby.h"

namespace hangscope {
namespace {

constexpr int kPollMs = 50;
constexpr int kPipeBytes = 1 << 20;

// True when a signal asked for the end.
bool ReadSignals(int signal_fd, Observer* observer) {
  bool interrupted = false;
  signalfd_siginfo info{};
  while (read(signal_fd, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (!observer->OnSignal(number) && number != SIGCHLD) interrupted = true;
  }
  return interrupted;
}

}  // namespace

TeeOutcome RunTee(const Environment& environment, const TeeOptions& options) {
  TeeOutcome outcome;
  Recording recording(*environment.files, *environment.clock, options.stages);
  outcome.status =
      recording.AddRing("stdin", options.ring_prefix, options.geometry, options.out.fd >= 0);
  if (!outcome.status.ok()) return outcome;
  const TimeNs start = environment.clock->Monotonic();
  const TimeNs start_wall = environment.clock->Wall();
  (void)fcntl(options.input_fd, F_SETPIPE_SZ, kPipeBytes);  // fewer wake-ups; no pipe, no matter
  std::unique_ptr<Standby> standby;
  Status guarded;
  if (!environment.guard_program.empty()) {
    auto posted = Standby::Post(environment.guard_program,
                                {recording.Guarded(0, options.input_fd, options.out)});
    guarded = posted.status();
    if (posted.ok()) standby = std::move(*posted);
  }
  recording.Drain(0, options.input_fd, false, options.out);
  Observer observer(environment, options.observer, recording, start, start_wall);
  if (!guarded.ok())
    observer.narrator().Note(
        "warning: no guard, so the writer will not survive a kill of hangscope: " +
            guarded.message(),
        environment.clock->Wall());
  observer.analysis().Start();

  const ChildView nobody;
  bool interrupted = false;
  while (!recording.ended()) {
    pollfd events[] = {{environment.signal_fd, POLLIN, 0},
                       {recording.done_event(), POLLIN, 0},
                       {observer.control_fd(), POLLIN, 0}};
    poll(events, std::size(events), kPollMs);
    if (ReadSignals(environment.signal_fd, &observer)) {
      interrupted = true;
      recording.Stop();
    }
    observer.Tick(nobody, 0, [] { return false; });
    if (standby != nullptr) standby->Check();
  }
  interrupted |= ReadSignals(environment.signal_fd, &observer);
  standby.reset();
  ChildView ended;
  ended.ended = true;
  const Verdict verdict = observer.Conclude(ended, 0);
  observer.narrator().Close();
  observer.narrator().Announce(verdict, environment.clock->Wall(), "", "");
  outcome.exit = interrupted                       ? TeeExit::kInterrupted
                 : observer.last_hang() != nullptr ? TeeExit::kHang
                                                   : TeeExit::kClean;
  outcome.keep_rings =
      options.keep_rings || outcome.exit != TeeExit::kClean || !observer.last_snapshot().empty();
  if (!options.place.empty() && outcome.keep_rings)
    observer.narrator().Note("recording: " + options.place + "/", environment.clock->Wall());
  return outcome;
}

}  // namespace hangscope

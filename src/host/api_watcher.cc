#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file_system.h"
#include "base/thread_name.h"
#include "hangscope/host/hangscope.hpp"
#include "host/live_acts.h"
#include "host/translation.h"
#include "scope/watched_target.h"

namespace hangscope::host {
namespace {

// While it exists, threads that this one makes block all signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Whose thread this is; null: nobody's.
thread_local const void* running = nullptr;

}  // namespace

// What the thread shares with who started it. It does not move.
struct Watcher::Inner {
  SystemClock clock;
  TimeNs interval = 0;
  OnFinding on_finding;

  // Guards the target and what is behind it; held while the target is looked at, not while the
  // callback runs.
  std::mutex looking;
  std::unique_ptr<WatchedTarget> target;
  TimeNs looked = 0;
  size_t named = 0;  // how many subjects were in use when names were read

  // Guards the words below.
  mutable std::mutex stating;
  std::condition_variable changed;
  bool stop = false;
  bool over = false;  // the thread looks no more
  uint64_t looks = 0;

  std::mutex joining;
  std::thread thread;

  ~Inner() { Stop(); }

  // One look; what it found. False: there is nothing more to look at.
  bool Poll(std::vector<Finding>* findings) {
    const std::lock_guard lock(looking);
    const TimeNs now = clock.Monotonic();
    // A probe may know; asked before the look, so that the last look comes after the end.
    const bool dead = target->is_watched() &&
                      target->view().view().scope().target().life() == hangscope::Life::kDead;
    if (dead)
      (void)target->view().PollDead(now).ok();
    else
      target->Poll(now);
    looked = now;
    RefreshNames();
    for (const hangscope::ScopeFinding& finding : target->DrainFindings())
      findings->push_back(FindingOf(finding, target->view(), now));
    (void)target->DrainNotes();
    return !dead && !target->is_over();
  }

  // Threads come while it is watched, and are called by their names.
  void RefreshNames() {
    size_t in_use = 0;
    for (const SubjectState& subject : target->view().watcher().subjects())
      in_use += subject.activity != hangscope::Activity::kUnused;
    // else they are called as before
    if (in_use != named) (void)target->view().RefreshNames().ok();
    named = in_use;
  }

  void Run() noexcept {
    NameThread("hangscope-watch");
    running = this;
    for (bool goes_on = true; goes_on;) {
      std::vector<Finding> findings;
      const TimeNs begin = clock.Monotonic();
      goes_on = Poll(&findings);
      for (const Finding& finding : findings) {
        if (IsStopped()) break;
        if (on_finding) on_finding(finding);
      }
      goes_on &= Rest(begin + interval);
    }
    const std::lock_guard lock(stating);
    over = true;
    changed.notify_all();
  }

  bool IsStopped() const {
    const std::lock_guard lock(stating);
    return stop;
  }
  // Until then; false: it is to stop.
  bool Rest(TimeNs until) {
    std::unique_lock lock(stating);
    ++looks;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::nanoseconds(std::max<TimeNs>(0, until - clock.Monotonic())),
                     [this] { return stop; });
    return !stop;
  }
  void RequestStop() {
    const std::lock_guard lock(stating);
    stop = true;
    changed.notify_all();
  }
  void Stop() {
    RequestStop();
    if (running == this) return;  // called back: it ends by itself
    const std::lock_guard lock(joining);
    if (thread.joinable()) thread.join();
  }

  static Result<Watcher> Start(const std::string& specification, std::shared_ptr<Probe> probe,
                               const Options& options, OnFinding on_finding) {
    auto watcher = WatcherOptionsOf(options);
    if (!watcher.ok()) return ToHost(watcher.status());
    auto inner = std::make_unique<Inner>();
    const ScopeSource source = SourceOf(specification, std::move(probe), options);
    auto target =
        WatchedTarget::Open(PosixFileSystem(), source, *watcher, inner->clock.Monotonic());
    if (!target.ok()) return ToHost(target.status());
    inner->target = std::move(*target);
    inner->interval = options.interval.count();
    inner->on_finding = std::move(on_finding);
    const SignalsBlocked blocked;
    try {
      inner->thread = std::thread(&Inner::Run, inner.get());
    } catch (const std::system_error& error) {
      return Status(Code::kIo, std::string("cannot start the watcher's thread: ") + error.what());
    }
    return Watcher(std::move(inner));
  }
};

Watcher::Watcher(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}
Watcher::Watcher(Watcher&&) noexcept = default;
Watcher& Watcher::operator=(Watcher&&) noexcept = default;
Watcher::~Watcher() = default;

Result<Watcher> Watcher::Start(const std::string& specification, const Options& options,
                               OnFinding on_finding) {
  return Inner::Start(specification, nullptr, options, std::move(on_finding));
}

Result<Watcher> Watcher::Start(std::unique_ptr<Probe> probe, const Options& options,
                               OnFinding on_finding) {
  if (probe == nullptr) return Status(Code::kUsage, "there is no probe: a null pointer was given");
  return Inner::Start("", std::move(probe), options, std::move(on_finding));
}

void Watcher::RequestStop() noexcept { inner_->RequestStop(); }
void Watcher::Stop() { inner_->Stop(); }

bool Watcher::Wait(std::chrono::nanoseconds at_most) {
  std::unique_lock lock(inner_->stating);
  return inner_->changed.wait_for(lock, at_most, [this] { return inner_->over; });
}

std::vector<Subject> Watcher::Subjects() const {
  const std::lock_guard lock(inner_->looking);
  return SubjectsOf(inner_->target->view(), inner_->looked);
}

uint64_t Watcher::looks() const noexcept {
  const std::lock_guard lock(inner_->stating);
  return inner_->looks;
}

Status Watcher::Pause(uint32_t core) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).Pause(core);
}

Status Watcher::Resume(uint32_t core) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).Resume(core);
}

Result<Events> Watcher::ReadEvents() {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).ReadEvents(inner_->clock);
}

Status Watcher::SetDelays(uint32_t core, const Delays& delays) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).SetDelays(core, delays);
}

Status Watcher::SetMask(uint32_t core, uint32_t classes) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).SetMask(core, classes);
}

Status Watcher::FreezeAfter(uint32_t core, uint32_t records) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).FreezeAfter(core, records);
}

Result<Features> Watcher::ReadFeatures() {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).ReadFeatures();
}

Status Watcher::SetFeatures(uint32_t on) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).SetFeatures(on);
}

Status Watcher::TakeSnapshot(const std::string& folder) {
  const std::lock_guard lock(inner_->looking);
  return LiveActs(inner_->target->view()).TakeSnapshot(PosixFileSystem(), folder);
}

}  // namespace hangscope::host

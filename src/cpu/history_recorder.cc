#include "cpu/history_recorder.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/capabilities.h"
#include "base/file_system.h"
#include "cpu/perf_events.h"
#include "cpu/perf_open.h"
#include "cpu/perf_permission.h"
#include "cpu/perf_ring.h"

namespace hangscope {
namespace {

constexpr uint64_t kThreadRingPages = 4;  // some 300 records; with its first page 20 KiB
constexpr size_t kMostFollowed = 256;     // threads; two file descriptors each
constexpr size_t kMostAttachedAtOnce = 64;
constexpr TimeNs kFollowInterval = 50 * kMillisecond;
constexpr TimeNs kListInterval = kSecond;  // of threads whose number did not change
// What the rings may take a second, of all threads together. A byte costs the program some 15 ns,
// so this is 0.8 % of a CPU.
constexpr uint64_t kBytesPerSecond = 512u << 10;
// A thread that goes over it is not recorded for so long, and twice as long each time again.
constexpr TimeNs kShortestPause = kSecond;
constexpr TimeNs kLongestPause = 8 * kSecond;

// That a thread comes to a CPU and leaves it. It counts nothing of the kernel's.
PerfEvent SwitchesOfThread() {
  PerfEvent event;
  event.name = "dummy:u";
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_DUMMY;
  event.attr.sample_period = 1;
  event.attr.exclude_kernel = 1;
  event.attr.context_switch = 1;
  event.attr = Recorded(event.attr);
  event.attr.write_backward = 1;
  return event;
}

std::optional<PerfEvent> WakesOfThread() {
  auto found = PerfEventFinder(PosixFileSystem()).Find("sched:sched_waking");
  if (!found.ok() || found->size() != 1) return std::nullopt;
  PerfEvent event = std::move(found->front().event);
  event.attr = Recorded(event.attr);
  event.attr.write_backward = 1;
  return event;
}

// Who may see wake-ups. Rings that count as the user's locked memory would be missing to a `perf
// record` that the program starts.
bool MayKeepHistory() {
  const PerfPermission permission = ReadPerfPermission();
  return permission.tracepoints() &&
         (permission.paranoid < 0 || OwnCapabilities().Has(Capability::kIpcLock));
}

std::string TasksOf(int process) { return "/proc/" + std::to_string(process) + "/task"; }

std::string TaskOf(const ThreadRing& what) {
  return TasksOf(what.process) + "/" + std::to_string(what.thread);
}

// Two more than its threads; 0: it has ended.
uint64_t LinksOf(const std::string& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 ? status.st_nlink : 0;
}

// Half of the descriptors stay free.
size_t MostFollowed() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<size_t>(kMostFollowed, limit.rlim_cur / 4);
}

struct FollowedThread {
  ThreadRing what;
  PerfDescriptor switches, wakes;  // closed in pauses: also events that are off cost each switch
  PerfRingMapping mapping;
  std::optional<BackwardRingReader> reader;
  uint64_t written = 0;  // bytes, when it was looked at last
  TimeNs resumes = 0;    // monotonic
  TimeNs next_pause = kShortestPause;

  bool paused() const { return what.paused_since != 0; }
  uint64_t WrittenByNow() const {
    return -__atomic_load_n(&mapping.pages().control->data_head, __ATOMIC_RELAXED);
  }
  void ReadName() {
    const auto name = ReadWholeFile(PosixFileSystem(), TaskOf(what) + "/comm");
    if (name.ok()) what.name = name->substr(0, name->find('\n'));
  }
  void Pause(TimeNs now) {
    reader.reset();
    mapping = PerfRingMapping();
    wakes = PerfDescriptor();
    switches = PerfDescriptor();
    what.ring.records.clear();
    what.paused_since = now;
    resumes = now + next_pause;
    next_pause = std::min(kLongestPause, 2 * next_pause);
  }
};

struct FollowedProcess {
  uint64_t links = 0;
  TimeNs listed = 0;
};

class ThreadRingRecorder final : public HistoryRecorder {
 public:
  ThreadRingRecorder(Clock& clock, PerfEvent wakes, TimeNs wakes_after)
      : clock_(clock),
        events_{SwitchesOfThread(), std::move(wakes)},
        began_(clock.Monotonic()),
        wakes_after_(wakes_after) {}

  void Follow(const std::vector<int>& processes) override;
  HistoryCapture Take() override;

 private:
  void ListThreads(int process);
  void Attach(int process, int thread);
  bool Record(FollowedThread* followed);
  void RecordWakes(FollowedThread* followed);
  void EndPauses(TimeNs now);
  void KeepWithinBudget(TimeNs now);
  bool MakeRoom();

  Clock& clock_;
  const std::vector<PerfEvent> events_;  // switches, wake-ups
  const TimeNs began_;
  const TimeNs wakes_after_;
  const size_t most_followed_ = MostFollowed();
  TimeNs followed_ = 0;
  size_t attached_ = 0;  // in this call of Follow
  PerfDescriptor keeper_;
  std::map<int, FollowedProcess> processes_;
  std::list<FollowedThread> threads_;  // the oldest first
};

void ThreadRingRecorder::Follow(const std::vector<int>& processes) {
  const TimeNs now = clock_.Monotonic();
  if (followed_ != 0 && now - followed_ < kFollowInterval) return;
  KeepWithinBudget(now);
  EndPauses(now);
  followed_ = now;
  attached_ = 0;
  const std::set<int> live(processes.begin(), processes.end());
  std::erase_if(processes_, [&](const auto& each) { return !live.contains(each.first); });
  for (FollowedThread& each : threads_) {
    if (!live.contains(each.what.process)) each.what.ended = true;
  }
  for (const int process : live) {
    FollowedProcess& known = processes_[process];
    const uint64_t links = LinksOf(TasksOf(process));
    if (links == known.links && now - known.listed < kListInterval) continue;
    known = {links, now};
    ListThreads(process);
  }
  for (FollowedThread& each : threads_) RecordWakes(&each);
}

void ThreadRingRecorder::ListThreads(int process) {
  std::set<int> live;
  for (const std::string& name : PosixFileSystem().List(TasksOf(process)))
    live.insert(std::atoi(name.c_str()));
  for (FollowedThread& each : threads_) {
    if (each.what.process != process || each.what.ended) continue;
    if (live.erase(each.what.thread) == 0) each.what.ended = true;
  }
  for (const int thread : live) Attach(process, thread);
}

// Of those that have ended the oldest goes.
bool ThreadRingRecorder::MakeRoom() {
  if (threads_.size() < most_followed_) return true;
  const auto ended = std::find_if(threads_.begin(), threads_.end(),
                                  [](const FollowedThread& each) { return each.what.ended; });
  if (ended == threads_.end()) return false;
  threads_.erase(ended);
  return true;
}

void ThreadRingRecorder::Attach(int process, int thread) {
  if (attached_ == kMostAttachedAtOnce) processes_[process].listed = 0;  // the others the next time
  if (attached_ == kMostAttachedAtOnce || !MakeRoom()) return;
  ++attached_;
  FollowedThread followed;
  followed.what.process = process;
  followed.what.thread = thread;
  followed.what.ring.cpu = -1;
  followed.what.ring.tid = thread;
  followed.ReadName();
  if (Record(&followed)) threads_.push_back(std::move(followed));
}

// False: the thread has ended, or there are no more descriptors.
bool ThreadRingRecorder::Record(FollowedThread* followed) {
  followed->switches = OpenPerfEvent(events_[0].attr, followed->what.thread, -1);
  if (!followed->switches.ok()) return false;
  followed->mapping = PerfRingMapping(followed->switches, kThreadRingPages * PageBytes(),
                                      PerfRingMapping::Kind::kOverwrite);
  if (!followed->mapping.ok()) return false;
  followed->reader.emplace(followed->mapping.pages());
  followed->written = 0;
  followed->what.paused_since = 0;
  ioctl(followed->switches.get(), PERF_EVENT_IOC_ENABLE, 0);
  followed->what.ring.recording_since = clock_.Monotonic();
  return true;
}

// It writes into the ring of the switches.
void ThreadRingRecorder::RecordWakes(FollowedThread* followed) {
  if (followed->paused() || followed->wakes.ok() || followed->what.ended ||
      clock_.Monotonic() - began_ < wakes_after_)
    return;
  // Off, and never closed before the end: with it the tracepoint stays, whoever is paused.
  if (!keeper_.ok()) keeper_ = OpenPerfEvent(events_[1].attr, 0, -1);
  PerfDescriptor wakes = OpenPerfEvent(events_[1].attr, followed->what.thread, -1);
  if (!wakes.ok() || ioctl(wakes.get(), PERF_EVENT_IOC_SET_OUTPUT, followed->switches.get()) != 0)
    return;
  ioctl(wakes.get(), PERF_EVENT_IOC_ENABLE, 0);
  followed->ReadName();  // many threads name themselves when they run
  followed->wakes = std::move(wakes);
}

// Those that switch the most are not recorded for a while.
void ThreadRingRecorder::KeepWithinBudget(TimeNs now) {
  if (followed_ == 0) return;
  std::vector<std::pair<uint64_t, FollowedThread*>> busy;
  uint64_t all = 0;
  for (FollowedThread& each : threads_) {
    if (each.what.ended || each.paused()) continue;
    const uint64_t written = each.WrittenByNow();
    const uint64_t more = written - std::exchange(each.written, written);
    all += more;
    if (more != 0) busy.emplace_back(more, &each);
  }
  const auto allowed = static_cast<uint64_t>(static_cast<double>(kBytesPerSecond) *
                                             static_cast<double>(now - followed_) / kSecond);
  std::sort(busy.rbegin(), busy.rend());
  for (const auto& [bytes, followed] : busy) {
    if (all > allowed)
      followed->Pause(now);
    else
      followed->next_pause = std::max(kShortestPause, followed->next_pause / 2);
    if (followed->paused()) all -= bytes;
  }
}

void ThreadRingRecorder::EndPauses(TimeNs now) {
  for (FollowedThread& each : threads_) {
    if (!each.paused() || each.what.ended || now < each.resumes) continue;
    if (!Record(&each)) each.Pause(now);
  }
}

HistoryCapture ThreadRingRecorder::Take() {
  HistoryCapture capture;
  capture.time = clock_.Monotonic();
  capture.events = events_;
  for (FollowedThread& each : threads_) {
    if (!each.what.ended) each.ReadName();
    if (each.reader) {
      capture.events[0].ids.push_back(PerfEventId(each.switches));
      if (each.wakes.ok()) capture.events[1].ids.push_back(PerfEventId(each.wakes));
      each.reader->Read(clock_, &each.what.ring);
    }
    capture.threads.push_back(each.what);
  }
  return capture;
}

}  // namespace

std::unique_ptr<HistoryRecorder> StartHistoryRecorder(Clock& clock, TimeNs wakes_after) {
  if (!MayKeepHistory()) return nullptr;
  auto wakes = WakesOfThread();
  if (!wakes) return nullptr;
  return std::make_unique<ThreadRingRecorder>(clock, std::move(*wakes), wakes_after);
}

}  // namespace hangscope

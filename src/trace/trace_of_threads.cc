#include "trace/trace_of_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "snapshot/saved_threads.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

// A look that is so much older than the snapshot may tell of waits that are over.
constexpr TimeNs kOldLook = kSecond;

// A thread that sleeps for a set time, or waits for what comes from outside, waits by design.
Activity ActivityOf(const SavedThread& thread) {
  if (thread.stand == "waits") return Activity::kWaiting;
  if (thread.stand == "timed" || thread.stand == "outside") return Activity::kIdle;
  if (thread.stand == "spins" || thread.stand == "moves") return Activity::kRunning;
  if (thread.stand == "halted" || thread.stand == "frozen") return Activity::kPaused;
  if (thread.stand == "ended") return Activity::kEnded;
  if (thread.state == "running") return Activity::kRunning;
  return thread.waits_for.empty() ? Activity::kSilent : Activity::kWaiting;
}

std::string PlaceText(const ReportPlace& place) {
  return place.function + (place.source.empty() ? "" : ", " + place.source);
}

class ThreadsTrace final : public TraceSource {
 public:
  ThreadsTrace(const SavedThreads& saved, std::optional<TimeNs> taken, bool other_clock) {
    head_.tasks_are_threads = true;
    std::optional<TimeNs> looked;
    if (!other_clock && taken && saved.looked && saved.looked_wall) {
      looked = saved.looked;
      head_.wall_minus_monotonic = *saved.looked_wall - *saved.looked;
      const TimeNs end = *taken - head_.wall_minus_monotonic;
      head_.time = {end, end};
      if (end - *looked > kOldLook)
        end_.warnings.push_back(
            fmt::format("how the threads stand was seen {} before the end of the recording",
                        FormatElapsed(end - *looked)));
    }
    for (const SavedThread& thread : saved.threads) Add(thread, looked);
    end_.time = head_.time.to;
    end_.tasks = head_.tasks;
    if (saved.damaged_lines > 0)
      end_.warnings.push_back(
          fmt::format("{}: {} lines in it are damaged", kThreadsName, saved.damaged_lines));
  }

  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  Result<bool> Next(TraceItem*) override { return false; }
  double progress() const override { return 1; }

 private:
  void Add(const SavedThread& thread, std::optional<TimeNs> looked) {
    const auto number = static_cast<int64_t>(thread.tid);
    TraceStanding standing;
    standing.who = {true, number};
    standing.activity = ActivityOf(thread);
    if (looked && thread.lasts) standing.since = *looked - *thread.lasts;
    standing.seen = looked;
    standing.waits_for = thread.waits_for;
    for (const uint64_t by : thread.by) standing.by.push_back({true, static_cast<int64_t>(by)});
    standing.place = PlaceText(thread.where);
    if (standing.since) head_.time.from = std::min(head_.time.from, *standing.since);
    head_.tasks.emplace(number, thread.name);
    end_.standings.push_back(std::move(standing));
  }

  TraceHead head_;
  TraceEnd end_;
};

}  // namespace

Result<std::unique_ptr<TraceSource>> OpenThreadsTrace(FileSystem& files, const std::string& path,
                                                      std::optional<TimeNs> taken,
                                                      bool other_clock) {
  auto saved = ReadSavedThreads(files, path);
  if (!saved.ok()) return saved.status();
  return std::unique_ptr<TraceSource>(std::make_unique<ThreadsTrace>(*saved, taken, other_clock));
}

}  // namespace hangscope

// What threads did before they stopped, and who woke whom last, from the rings of their own that
// cpu/history_recorder.h keeps, or from those of the CPUs. Says only what the records prove.
#ifndef HANGSCOPE_PERF_THREAD_HISTORY_H
#define HANGSCOPE_PERF_THREAD_HISTORY_H

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/cpu_recorder.h"
#include "cpu/history_recorder.h"
#include "model/finding.h"
#include "perf/perf_record.h"

namespace hangscope {

class ThreadHistory {
 public:
  // Keeps nothing of `capture`.
  explicit ThreadHistory(const HistoryCapture& capture);
  explicit ThreadHistory(const CpuCapture& capture);

  // Adds to what is found of threads: to its lines, when each ran last and who woke it; to its
  // history, their last steps; and who stopped first, where that is proved. Times are those before
  // the capture.
  void AddTo(Finding* finding) const;

 private:
  // It ran, or it woke another.
  struct Step {
    TimeNs time = 0;            // monotonic: when it left the CPU, when it woke
    TimeNs came = 0;            // of a run: to the CPU; 0: that is overwritten
    bool preempted = false;     // of a run: it would have gone on
    std::optional<int> whom{};  // that it woke, a thread; nothing: it ran
  };
  struct Change {
    TimeNs time = 0;
    bool out = false;  // it leaves the CPU; else it comes
    bool preempted = false;
  };
  struct Thread {
    std::string name;  // "4713 worker-b"
    TimeNs recorded_since = 0;
    TimeNs paused_since = 0;  // 0: it is recorded
    bool running = false;     // it came to a CPU, and did not leave it
    TimeNs came = 0;          // then; 0: it is not known to run
    std::vector<Step> steps;  // the oldest first

    void Switch(const Change& change);  // in the order of time
    const Step* LastRun() const;
  };
  struct Wake {
    TimeNs time = 0;
    int by = 0;
  };
  void NameThreads(const PerfRecordParser& parser, std::string_view side_band);
  // Nothing: nobody is known to be woken.
  void Wakes(Thread* thread, int tid, TimeNs time, std::optional<int64_t> whom);
  void SortWakes();
  // By a thread that was recorded; null: none is known.
  const Wake* LastWake(int thread) const;
  const Thread* Find(const FindingSubject& subject) const;
  bool HasStopped(const Thread& thread) const;
  std::string Ago(TimeNs time) const;
  std::string StepText(TimeNs time, const std::string& what) const;
  std::string NameOf(int thread) const;
  std::string LastRunLine(int tid, const Thread& thread) const;
  void AddSteps(int tid, const Thread& thread,
                std::vector<std::pair<TimeNs, std::string>>* steps) const;
  std::string FirstToStop(const Finding& finding) const;

  TimeNs now_;
  std::map<int, Thread> threads_;
  std::map<int, std::vector<Wake>> wakes_;  // by who was woken; ascending
};

}  // namespace hangscope

#endif

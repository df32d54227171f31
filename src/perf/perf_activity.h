// Who did what last: what the records of a perf.data say about each thread and each CPU, in
// whatever order they come (rings that are written backwards are in the file newest first).
#ifndef HANGSCOPE_PERF_PERF_ACTIVITY_H
#define HANGSCOPE_PERF_PERF_ACTIVITY_H

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf/perf_file.h"
#include "perf/perf_record.h"
#include "perf/perf_side_band.h"

namespace hangscope {

// The newest of something that happened to a thread.
struct PerfInstant {
  TimeNs time = -1;  // -1: never
  int cpu = -1;

  bool happened() const { return time >= 0; }
};

struct PerfThreadActivity {
  int pid = -1;
  int tid = -1;
  int parent = -1;   // the process that made this one, where a fork was recorded
  std::string name;  // as it is in the records
  uint64_t records = 0;
  PerfInstant ran;   // its newest record of its own: it was on the CPU then
  PerfInstant came;  // to a CPU, as a switch says
  PerfInstant switched_out;
  // of sched_switch: 0 wanted to go on, else TASK_ bits; -1: not known
  int64_t state_when_out = -1;
  bool preempted = false;
  PerfInstant woken;
  PerfInstant ended;
  PerfInstant entered;       // a system call: PerfActivity::CallOf
  PerfInstant left;          // one
  size_t entered_event = 0;  // of the sample that says so
  std::string entered_raw;   // its bytes
  size_t last_event = 0;     // of the newest sample
  std::string last_raw;      // its bytes
  TimeNs last_sample = -1;

  // On the CPU when it was last heard of, as far as anything tells.
  bool IsRunning() const {
    return !ended.happened() && ran.happened() && ran.time > switched_out.time;
  }
  // Off the CPU, and wants it.
  bool IsWaitingForCpu() const {
    return !IsRunning() && switched_out.happened() &&
           (preempted || state_when_out == 0 || woken.time > switched_out.time);
  }
};

// A system call that was entered.
struct PerfCall {
  int64_t number = -1;
  std::string name;  // where its event says so: "futex"
  std::array<uint64_t, 6> arguments{};
  bool has_arguments = false;
};

// What the file has of one ring of events: samples and switches. The side band (names, forks, ends,
// mappings) is kept from the start on, and may tell of times long before it: it says nothing of
// what a ring still has.
struct PerfHeldEvents {
  uint64_t records = 0;
  uint64_t bytes = 0;
  TimeNs from = -1;  // -1: none
  TimeNs to = -1;

  void Add(TimeNs time, uint64_t of_bytes);
};

struct PerfCpuActivity {
  int cpu = -1;  // -1: the records do not say
  uint64_t records = 0;
  TimeNs first = -1;
  TimeNs last = -1;
  int last_tid = -1;
  PerfHeldEvents held;
  struct Loss {
    TimeSpan time;  // between the record before it and the one that tells it
    uint64_t records = 0;
  };
  std::vector<Loss> losses;  // bounded; what is more is added to the last one
  uint64_t lost_records = 0;
};

// One thread left a CPU, and another came to it.
struct PerfSwitchAt {
  TimeNs time = 0;
  int left = 0;  // 0: none, or it is not known
  int came = 0;  // likewise
};

// Of one CPU, in the order of the file.
using PerfSwitches = std::deque<PerfSwitchAt>;

class PerfActivity {
 public:
  // `events` must outlive it.
  explicit PerfActivity(const std::vector<PerfEvent>& events);
  void Add(const PerfRecord& record);
  // To be called once, after all records.
  void Finish();

  const std::unordered_map<int, PerfThreadActivity>& threads() const { return threads_; }
  const std::map<int, PerfCpuActivity>& cpus() const { return cpus_; }
  // By CPU; where the records do not tell it, by thread, whose number is negative then. Of all
  // together at most kMostSwitches tell of a thread; how many more did is counted.
  const std::map<int64_t, PerfSwitches>& switches() const { return switches_; }
  uint64_t more_switches() const { return more_switches_; }
  uint64_t records() const { return records_; }
  uint64_t samples() const { return samples_; }
  // Some event's ring overwrites itself: then only what is in such rings counts as held.
  bool overwrites() const { return overwrites_; }
  // Each once, though perf tells of most twice.
  uint64_t lost_records() const { return lost_records_; }
  // Names, forks and mappings, where rings of events overwrite themselves.
  uint64_t side_band_lost() const { return side_band_lost_; }
  // Records that tell of more threads than are kept.
  uint64_t left_out() const { return left_out_; }
  // By event.
  const std::vector<uint64_t>& samples_of() const { return samples_of_; }
  // The newest of all; -1: no record has a time.
  TimeNs last() const { return last_; }
  TimeNs first() const { return first_; }
  // It records every process, as its thread map says.
  bool whole_machine() const { return whole_machine_; }
  // Whom perf was asked to record, but for a whole machine; bounded.
  const std::vector<int>& thread_map() const { return thread_map_; }
  // Who comes to a CPU and who leaves it would be in the records.
  bool reports_switches() const { return reports_switches_; }
  // Some tracepoint's fields are not known.
  bool lacks_formats() const { return lacks_formats_; }
  // perf stat record wrote it.
  bool counts_only() const { return counts_ && samples_ == 0; }
  // It entered one and did not return, for certain: returns are recorded, or it left the CPU after
  // it had entered.
  bool IsInSystemCall(const PerfThreadActivity& thread) const;
  // The one that it entered last.
  PerfCall CallOf(const PerfThreadActivity& thread) const;
  // "comm=x pid=3" of a thread's newest sample; empty: no tracepoint.
  std::string Describe(const PerfThreadActivity& thread) const;

 private:
  enum class Kind { kOther, kSwitch, kWakeup, kEnter, kLeave, kEnterNamed, kLeaveNamed };
  struct EventKind {
    Kind kind = Kind::kOther;
    std::string call;  // of kEnterNamed: "futex"
    std::optional<TracepointFormat> format;
    // Where its records have what; of those that do not have it, nowhere.
    using Place = TracepointFormat::Place;
    Place from, from_name, from_state, to, to_name;  // of a switch
    Place woken;
    Place number;  // of a system call
    std::array<Place, 6> arguments;
  };
  static EventKind KindOf(const PerfEvent& event);

  static void FindPlaces(EventKind* kind);
  PerfThreadActivity* Thread(int tid);
  PerfThreadActivity* FindThread(int tid);
  PerfCpuActivity* Cpu(int number);
  bool IsOfOverwrittenRing(const PerfRecord& record) const;
  bool IsInRing(const PerfRecord& record) const;
  PerfThreadActivity* AddTimes(const PerfRecord& record);
  void AddLoss(const PerfRecord& record, uint64_t lost);
  void AddLoss(int cpu, TimeNs time, uint64_t lost);
  void AddLossOfUnknownCpu(uint64_t lost);
  void NoteId(const PerfRecord& record);
  int CpuOfId(uint64_t id) const;  // -1: not known
  void AddSample(const PerfRecord& record, PerfThreadActivity* thread);
  void AddSchedSwitch(const PerfRecord& record, const EventKind& kind);
  void AddThreadMap(std::string_view body);
  void AddSideBand(const PerfRecord& record);
  void AddSwitchRecord(const PerfRecord& record, const PerfSwitch& change);
  void NoteSwitch(const PerfRecord& record, int left, int came);
  bool Leave(int tid, const PerfRecord& record, int64_t state, bool preempted);
  bool Come(int tid, const PerfRecord& record);
  void Name(int tid, int pid, const EventKind::Place& name, std::string_view raw);
  void AddComm(const PerfComm& comm);

  const std::vector<PerfEvent>& events_;
  std::vector<EventKind> kinds_;
  std::unordered_map<int, PerfThreadActivity> threads_;
  std::map<int, PerfCpuActivity> cpus_;
  // Of these two, those that were asked for last: each thread at its number's rest, CPUs by number.
  std::array<PerfThreadActivity*, 1024> recent_threads_{};
  std::array<PerfCpuActivity*, 256> few_cpus_{};
  std::map<int64_t, PerfSwitches> switches_;
  uint64_t switch_count_ = 0;  // of those in there, each thread that one tells of
  uint64_t more_switches_ = 0;
  uint64_t records_ = 0;
  uint64_t samples_ = 0;
  uint64_t lost_records_ = 0;
  uint64_t side_band_lost_ = 0;
  std::map<int, uint64_t> told_losses_;  // by CPU: of LOST records
  std::map<int, uint64_t> totals_;       // by CPU: what perf says at the end
  struct RecentId {
    uint64_t id = 0;
    int cpu = -1;
  };
  std::array<RecentId, 1024> recent_ids_{};
  std::unordered_map<uint64_t, int> cpu_of_id_;  // -1: of several
  uint64_t left_out_ = 0;
  bool overwrites_ = false;
  bool has_sched_switch_ = false;
  bool has_returns_ = false;
  std::vector<uint64_t> samples_of_;
  TimeNs first_ = -1;
  TimeNs last_ = -1;
  bool whole_machine_ = false;
  bool reports_switches_ = false;
  bool lacks_formats_ = false;
  bool counts_ = false;
  std::vector<int> thread_map_;
};

}  // namespace hangscope

#endif

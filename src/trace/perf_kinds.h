// The events of a perf.data as those of any trace: fields by the tracepoints' formats, and what
// they mean for who ran and who waited.
#ifndef HANGSCOPE_TRACE_PERF_KINDS_H
#define HANGSCOPE_TRACE_PERF_KINDS_H

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "perf/perf_file.h"
#include "perf/tracepoint_format.h"

namespace hangscope {

// One thread.
class PerfKinds {
 public:
  // `file` outlives it.
  explicit PerfKinds(const PerfFile& file);

  // One for each of the file's events, and behind them that of switches.
  const std::vector<TraceEventKind>& kinds() const { return kinds_; }
  // The kind of records that tell switches, where no tracepoint does.
  size_t switch_kind() const { return kinds_.size() - 1; }
  bool has_sched_switch() const { return has_sched_switch_; }

  // Of a sample, in the order of time: all that is not the track's. False: it is of no event that
  // is known.
  bool Fill(const PerfRecord& record, TraceEvent* filled);

  // Where a sample of an event says what a thread is called.
  struct NameField {
    TracepointFormat::Place tid;
    TracepointFormat::Place name;
  };
  // Of the record's event.
  const std::vector<NameField>& NameFields(const PerfRecord& record) const {
    return record.event < events_.size() ? events_[record.event].names : none_;
  }

  // A thread as the latest records left it; those that nothing was told of are not there.
  struct Thread {
    // it has records of its own; else others' records name it, and what it did since is not known
    bool recorded = false;
    bool waits = false;  // it gave the CPU up, and nobody woke it since
    bool ended = false;
    TimeNs since = 0;  // that is so
    std::string call;  // the system call that it is in; empty: none is known
  };
  const std::unordered_map<int, Thread>& threads() const { return threads_; }
  // A thread left a CPU, or came to one.
  void Switched(int tid, TimeNs time, bool waits);
  void Ended(int tid, TimeNs time);
  // It has records of its own that are no samples.
  void Recorded(int tid) {
    if (Thread* thread = ThreadOf(tid)) thread->recorded = true;
  }

 private:
  enum class Role {
    kOther,
    kSwitch,
    kWake,
    kCall,
    kReturn,
    kNamedCall,
    kNamedReturn,
    kEnter,
    kLeave
  };
  struct Event {
    size_t kind = 0;  // of kinds_
    Role role = Role::kOther;
    std::optional<TracepointFormat> format;
    std::string what;  // kNamedCall: "futex"; kEnter: "irq"
    std::vector<NameField> names;
    // By role; the others are not there.
    TracepointFormat::Place from, to, state;  // who leaves and comes, who is woken
    TracepointFormat::Place number, name;     // of a system call, of what is entered
    bool has_ip = false;
    bool has_address = false;
  };

  Event DescribeEvent(const PerfEvent& event, TraceEventKind* kind) const;
  static void FindPlaces(Event* event);
  Role RoleOf(const std::string& name, std::string* what) const;
  void FillSwitch(const Event& event, const PerfRecord& record, TraceEvent* filled);
  void FillWake(const Event& event, const PerfRecord& record, TraceEvent* filled);
  const std::string& CallName(const Event& event, const PerfRecord& record);
  Thread* ThreadOf(int tid);

  bool same_machine_ = true;  // whose numbers of system calls are ours
  bool has_sched_switch_ = false;
  bool has_waking_ = false;
  bool has_raw_calls_ = false;
  std::vector<Event> events_;
  const std::vector<NameField> none_;
  std::vector<TraceEventKind> kinds_;
  std::unordered_map<int64_t, std::string> call_names_;  // by number
  std::string unusual_call_;                             // the name of one that has no room there
  std::unordered_map<int, Thread> threads_;
  // Those of threads_ that were asked for last: most records are of few threads.
  struct Recent {
    int tid = 0;  // 0: none
    Thread* thread = nullptr;
  };
  static constexpr size_t kRecent = 256;
  std::array<Recent, kRecent> recent_;
};

}  // namespace hangscope

#endif

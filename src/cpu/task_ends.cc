#include "cpu/task_ends.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <tuple>
#include <unordered_map>

#include "cpu/side_band_recorder.h"
#include "model/perf_format.h"

namespace hangscope {
namespace {

// From a task's end until it leaves the CPU; others may go before it meanwhile.
constexpr TimeNs kLongestEnding = kSecond;

template <typename Number>
Number NumberAt(std::string_view bytes, size_t at) {
  Number number{};
  if (at + sizeof number <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// Of a record that is whole; else nothing, and what follows is no record.
std::string_view WholeRecord(std::string_view bytes) {
  const size_t size = PerfRecordBytes(bytes);
  return size > bytes.size() ? std::string_view() : bytes.substr(0, size);
}

// Where in a sample of an event of ends lies what: { header, id, [ip], pid, tid, time, [addr], cpu,
// reserved, [period], [callchain], u32 size of the raw bytes, raw bytes }.
class EndSamples {
 public:
  explicit EndSamples(const std::vector<PerfEvent>& events) {
    for (const PerfEvent& event : events) {
      if (event.filter.empty()) continue;
      for (const uint64_t id : event.ids) attrs_[id] = &event.attr;
    }
  }

  bool none() const { return attrs_.empty(); }
  // Null: it is none.
  const perf_event_attr* AttrOf(std::string_view record) const {
    if (NumberAt<perf_event_header>(record, 0).type != PERF_RECORD_SAMPLE) return nullptr;
    const auto found = attrs_.find(NumberAt<uint64_t>(record, sizeof(perf_event_header)));
    return found == attrs_.end() ? nullptr : found->second;
  }
  static size_t NumbersAt(const perf_event_attr& attr) {
    return sizeof(perf_event_header) + 8 + Words(attr, PERF_SAMPLE_IP);
  }
  static TimeNs TimeOf(const perf_event_attr& attr, std::string_view record) {
    return NumberAt<TimeNs>(record, NumbersAt(attr) + 8);
  }
  // As the tracepoint itself has it, also where the sample has it no more. 0: there is none.
  static pid_t ThreadOf(const perf_event_attr& attr, std::string_view record) {
    constexpr size_t kThreadInRaw = 4;  // common_pid, behind common_preempt_count
    size_t at =
        NumbersAt(attr) + 24 + Words(attr, PERF_SAMPLE_ADDR) + Words(attr, PERF_SAMPLE_PERIOD);
    if ((attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
      const auto frames = NumberAt<uint64_t>(record, at);
      if (frames > record.size() / 8) return 0;
      at += 8 + 8 * frames;
    }
    return NumberAt<pid_t>(record, at + sizeof(uint32_t) + kThreadInRaw);
  }

 private:
  static size_t Words(const perf_event_attr& attr, uint64_t field) {
    return (attr.sample_type & field) != 0 ? 8 : 0;
  }

  std::unordered_map<uint64_t, const perf_event_attr*> attrs_;  // by the event's id
};

}  // namespace

// { header, u32 pid, ppid, tid, ptid, u64 time }.
TaskEnds::TaskEnds(std::string_view side_band) {
  for (std::string_view record; !(record = WholeRecord(side_band)).empty();
       side_band.remove_prefix(record.size())) {
    if (NumberAt<perf_event_header>(record, 0).type != PERF_RECORD_EXIT) continue;
    ends_.push_back({NumberAt<pid_t>(record, 8), NumberAt<pid_t>(record, 16),
                     NumberAt<TimeNs>(record, 24), EndOfPerfRecord(record).cpu});
  }
  std::sort(ends_.begin(), ends_.end(), [](const TaskEnd& a, const TaskEnd& b) {
    return std::tie(a.thread, a.time) < std::tie(b.thread, b.time);
  });
}

const TaskEnd* TaskEnds::Before(pid_t thread, TimeNs time) const {
  const TaskEnd* const end = Last(thread, time);
  return end != nullptr && time - end->time <= kLongestEnding ? end : nullptr;
}

const TaskEnd* TaskEnds::Last(pid_t thread, TimeNs time) const {
  const auto after = std::upper_bound(ends_.begin(), ends_.end(), std::pair(thread, time),
                                      [](const auto& wanted, const TaskEnd& end) {
                                        return wanted < std::pair(end.thread, end.time);
                                      });
  if (after == ends_.begin()) return nullptr;
  const TaskEnd& end = *std::prev(after);
  return end.thread == thread ? &end : nullptr;
}

bool MissesEnds(const std::vector<PerfEvent>& events) {
  const auto any = [&](auto is) { return std::any_of(events.begin(), events.end(), is); };
  return any([](const PerfEvent& event) { return event.attr.inherit != 0; }) &&
         !any([](const PerfEvent& event) { return !event.filter.empty(); });
}

void NameEndedTasks(const std::vector<PerfEvent>& events, const TaskEnds& ends, PerfRing* ring) {
  const EndSamples samples(events);
  if (samples.none()) return;
  for (size_t at = 0; at < ring->records.size();) {
    const std::string_view record = WholeRecord(std::string_view(ring->records).substr(at));
    if (record.empty()) return;
    if (const perf_event_attr* const attr = samples.AttrOf(record)) {
      const TaskEnd* const end =
          ends.Before(EndSamples::ThreadOf(*attr, record), EndSamples::TimeOf(*attr, record));
      if (end != nullptr) {
        const pid_t numbers[] = {end->process, end->thread};
        std::memcpy(ring->records.data() + at + EndSamples::NumbersAt(*attr), numbers,
                    sizeof numbers);
      }
    }
    at += record.size();
  }
}

void DropEndsOfOthers(const std::vector<PerfEvent>& events, const TaskEnds& ends, PerfRing* ring) {
  const EndSamples samples(events);
  if (samples.none()) return;
  const auto is_of_others = [&](std::string_view record) {
    const perf_event_attr* const attr = samples.AttrOf(record);
    return attr != nullptr && ends.Before(EndSamples::ThreadOf(*attr, record),
                                          EndSamples::TimeOf(*attr, record)) == nullptr;
  };
  std::string& records = ring->records;
  size_t kept = 0;
  for (size_t at = 0; at < records.size();) {
    std::string_view record = WholeRecord(std::string_view(records).substr(at));
    if (record.empty()) record = std::string_view(records).substr(at);  // no records any more
    const size_t bytes = record.size();
    if (!is_of_others(record)) {
      if (kept != at) std::memmove(records.data() + kept, record.data(), bytes);
      kept += bytes;
    }
    at += bytes;
  }
  records.resize(kept);
}

}  // namespace hangscope

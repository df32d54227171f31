#include "cpu/shared_samples.h"

#include <cstring>
#include <optional>
#include <unordered_map>

namespace hangscope {
namespace {

constexpr size_t kIdOffset = sizeof(perf_event_header);  // PERF_SAMPLE_IDENTIFIER comes first

// The only one that the kernel counts by itself and writes samples of.
const PerfEvent* SoftwareEvent(const std::vector<PerfEvent>& events) {
  const PerfEvent* only = nullptr;
  for (const PerfEvent& event : events) {
    if (event.attr.type != PERF_TYPE_SOFTWARE || event.attr.config == PERF_COUNT_SW_DUMMY ||
        event.ids.empty())
      continue;
    if (only != nullptr) return nullptr;
    only = &event;
  }
  return only;
}

size_t SampleTimeOffset(const perf_event_attr& attr) {
  return kIdOffset + 8 + ((attr.sample_type & PERF_SAMPLE_IP) != 0 ? 8 : 0) +
         ((attr.sample_type & PERF_SAMPLE_TID) != 0 ? 8 : 0);
}

}  // namespace

uint64_t MendSharedSamples(const std::vector<PerfEvent>& events, std::string* records) {
  const PerfEvent* const software = SoftwareEvent(events);
  if (software == nullptr) return 0;
  std::unordered_map<uint64_t, size_t> time_offsets;  // in a sample, by the event's id
  for (const PerfEvent& event : events) {
    for (const uint64_t id : event.ids) time_offsets[id] = SampleTimeOffset(event.attr);
  }
  const size_t software_time = SampleTimeOffset(software->attr);
  uint64_t mended = 0;
  std::vector<size_t> without_time;  // of the oldest: nothing is before them
  std::optional<TimeNs> newest;
  for (size_t at = 0; at + sizeof(perf_event_header) <= records->size();) {
    perf_event_header header;
    std::memcpy(&header, records->data() + at, sizeof header);
    if (header.size < sizeof header || header.size > records->size() - at) break;
    // Behind the fields of other records lie those that say whose they are: thread, time, CPU, id.
    size_t time_at = header.size >= sizeof header + 32 ? at + header.size - 24 : 0;
    if (header.type == PERF_RECORD_SAMPLE && header.size >= software_time + 8) {
      uint64_t id = 0;
      std::memcpy(&id, records->data() + at + kIdOffset, sizeof id);
      const auto ours = time_offsets.find(id);
      time_at = ours == time_offsets.end() ? 0 : at + ours->second;
      if (ours == time_offsets.end()) {
        std::memcpy(records->data() + at + kIdOffset, &software->ids.front(), sizeof id);
        if (newest)
          std::memcpy(records->data() + at + software_time, &*newest, sizeof *newest);
        else
          without_time.push_back(at + software_time);
        ++mended;
      }
    }
    if (time_at != 0) {
      TimeNs time = 0;
      std::memcpy(&time, records->data() + time_at, sizeof time);
      for (const size_t earlier : without_time)
        std::memcpy(records->data() + earlier, &time, sizeof time);
      without_time.clear();
      newest = time;
    }
    at += header.size;
  }
  return mended;
}

}  // namespace hangscope

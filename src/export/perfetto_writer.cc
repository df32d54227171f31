#include "export/perfetto_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "export/perfetto_packets.h"
#include "export/timeline_writer.h"
#include "export/trace_facts.h"
#include "export/trace_output.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

// Tracks that no row of the picture is: the recording, and one above the rows of each sort.
constexpr uint64_t kRecording = 1, kCores = 2, kTasks = 3, kFirstRow = 16;

class PerfettoSink final : public TimelineSink {
 public:
  explicit PerfettoSink(File& file) : output_(file), packets_(output_) {}

  Status Begin(const TraceHead& head);
  Status End(const TraceEnd& end, const std::vector<std::string>& contradictions);

  Status Define(const TimelineTrack& track) override;
  Status Begin(TimelineTrackId track, TimeNs time, SliceState state, const std::string& name,
               const TimelineArguments& arguments) override;
  Status End(TimelineTrackId track, TimeNs time) override;
  Status Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                 const TraceEventKind& kind) override;
  Status Count(TimelineTrackId track, TimeNs time, uint64_t value) override;
  Status Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
              TimeNs to_time, const std::string& name, bool wakes) override;
  Status Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) override;

 private:
  void Remark(TimeNs time, const char* name, const TraceFacts& facts);
  void AddValue(const TraceField& field, const TraceValue& value);
  void EventAt(TimelineTrackId track, TimeNs time, PerfettoEventType type, std::string_view name,
               std::string_view category);

  TraceOutput output_;
  PerfettoPackets packets_;
  std::string times_;  // what there is to say of them
  bool has_cores_ = false, has_tasks_ = false;
};

uint64_t IdOf(TimelineTrackId track) { return kFirstRow + track; }

Status PerfettoSink::Begin(const TraceHead& head) {
  times_ = TimesRemark(head);
  packets_.Clocks(head.time.from, head.wall_minus_monotonic);
  packets_.Track({.id = kRecording,
                  .name = head.name.empty() ? "hangscope" : head.name,
                  .is_process = true,
                  .command = head.command});
  Remark(head.time.from, "recording", FactsOf(head));
  if (head.trigger) Remark(std::max(*head.trigger, head.time.from), "trigger", {});
  return packets_.status();
}

Status PerfettoSink::End(const TraceEnd& end, const std::vector<std::string>& contradictions) {
  Remark(end.time, "end of the recording", FactsOf(end, contradictions));
  packets_.Finish();
  return packets_.status().ok() ? output_.Flush() : packets_.status();
}

void PerfettoSink::Remark(TimeNs time, const char* name, const TraceFacts& facts) {
  packets_.BeginEvent(time, kRecording, PerfettoEventType::kInstant);
  packets_.Name(name);
  packets_.Category("hangscope");
  for (const auto& [fact, text] : facts) packets_.Argument(fact, text);
}

Status PerfettoSink::Define(const TimelineTrack& track) {
  bool& has_parent = track.row == TimelineRow::kTask ? has_tasks_ : has_cores_;
  uint64_t parent = track.row == TimelineRow::kTask ? kTasks : kCores;
  if (!std::exchange(has_parent, true))
    packets_.Track({.id = parent,
                    .parent = kRecording,
                    .name = (parent == kTasks ? "tasks" : "cores") + times_,
                    .command = {}});
  if (track.parent != 0) parent = IdOf(track.parent);
  packets_.Track({.id = IdOf(track.id),
                  .parent = parent,
                  .name = track.name,
                  .is_counter = track.row == TimelineRow::kCounter,
                  .command = {}});
  return packets_.status();
}

void PerfettoSink::EventAt(TimelineTrackId track, TimeNs time, PerfettoEventType type,
                           std::string_view name, std::string_view category) {
  packets_.BeginEvent(time, IdOf(track), type);
  packets_.Name(name);
  packets_.Category(category);
}

Status PerfettoSink::Begin(TimelineTrackId track, TimeNs time, SliceState state,
                           const std::string& name, const TimelineArguments& arguments) {
  EventAt(track, time, PerfettoEventType::kBegin, name, SliceStateName(state));
  for (const auto& [argument, text] : arguments) packets_.Argument(argument, text);
  return packets_.status();
}

Status PerfettoSink::End(TimelineTrackId track, TimeNs time) {
  packets_.BeginEvent(time, IdOf(track), PerfettoEventType::kEnd);
  return packets_.status();
}

void PerfettoSink::AddValue(const TraceField& field, const TraceValue& value) {
  if (!value.known || !field.names.empty() || field.type == TraceFieldType::kText) {
    packets_.Argument(field.name, value.known && field.type == TraceFieldType::kText
                                      ? value.text
                                      : FieldText(field, value));
    return;
  }
  switch (field.type) {
    case TraceFieldType::kSigned:
      packets_.Signed(field.name, static_cast<int64_t>(value.bits));
      break;
    case TraceFieldType::kBool:
      packets_.Bool(field.name, value.bits != 0);
      break;
    case TraceFieldType::kPointer:
      packets_.Pointer(field.name, value.bits);
      break;
    default:
      packets_.Unsigned(field.name, value.bits);
      break;
  }
}

Status PerfettoSink::Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                             const TraceEventKind& kind) {
  EventAt(track, time, PerfettoEventType::kInstant, kind.name, kind.category);
  const size_t count = std::min(kind.fields.size(), event.values.size());
  for (size_t i = 0; i < count; ++i) AddValue(kind.fields[i], event.values[i]);
  if (event.task) packets_.Signed("task", *event.task);
  if (event.ambiguous) packets_.Bool("time may be wrong by whole turns of a 32-bit clock", true);
  return packets_.status();
}

Status PerfettoSink::Count(TimelineTrackId track, TimeNs time, uint64_t value) {
  packets_.BeginEvent(time, IdOf(track), PerfettoEventType::kCounter);
  packets_.Counter(value);
  return packets_.status();
}

Status PerfettoSink::Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
                          TimeNs to_time, const std::string& name, bool) {
  // An arrow joins events. Of two at one time the first in the file is the earlier.
  EventAt(from, from_time, PerfettoEventType::kInstant, name, "flow");
  packets_.FlowOut(id);
  EventAt(to, to_time, PerfettoEventType::kInstant, name, "flow");
  packets_.FlowIn(id);
  return packets_.status();
}

Status PerfettoSink::Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) {
  EventAt(track, time.from, PerfettoEventType::kInstant, gap.Text(), "missing");
  packets_.Signed("length", time.to - time.from);
  return packets_.status();
}

}  // namespace

std::unique_ptr<TraceWriter> MakePerfettoWriter(File& file) {
  return std::make_unique<TimelineWriter<PerfettoSink>>(file);
}

}  // namespace hangscope

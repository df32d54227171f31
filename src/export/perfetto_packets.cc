#include "export/perfetto_packets.h"

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr uint64_t kSequence = 1;
constexpr uint64_t kCleared = 1, kNeedsState = 2;  // TracePacket.SequenceFlags
constexpr uint64_t kRealtime = 1, kMonotonic = 3;  // BuiltinClock

// TracePacket
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kClockId = 58, kTrackDescriptor = 60;

// Perfetto's times have no sign.
uint64_t Time(TimeNs time) { return time < 0 ? 0 : static_cast<uint64_t>(time); }

ProtobufMessage ClockReading(uint64_t clock, TimeNs time) {
  ProtobufMessage reading;
  reading.Number(1, clock);
  reading.Number(2, Time(time));
  return reading;
}

}  // namespace

void PerfettoPackets::Clocks(TimeNs now, TimeNs wall_minus_monotonic) {
  ProtobufMessage snapshot;
  snapshot.Message(1, ClockReading(kMonotonic, now));
  if (wall_minus_monotonic != 0)
    snapshot.Message(1, ClockReading(kRealtime, now + wall_minus_monotonic));
  snapshot.Number(2, kMonotonic);  // that of the trace
  packet_.Message(kClockSnapshot, snapshot);
  AppendPacket(0);
}

void PerfettoPackets::Track(const PerfettoTrack& track) {
  Finish();
  const std::string name = ValidUtf8(track.name);
  ProtobufMessage descriptor;
  descriptor.Number(1, track.id);
  descriptor.Text(2, name);
  if (track.is_process) {
    ProtobufMessage process;
    process.Number(1, 1);  // a process has a number; the trace's own it is not
    for (const std::string& word : track.command) process.Text(2, ValidUtf8(word));
    process.Text(6, name);
    descriptor.Message(3, process);
  }
  if (track.parent != 0) descriptor.Number(5, track.parent);
  if (track.is_counter) descriptor.Message(8, {});
  descriptor.Number(11, 3);         // its children in the order of their ranks
  descriptor.Number(12, track.id);  // its own
  packet_.Message(kTrackDescriptor, descriptor);
  AppendPacket(0);
}

void PerfettoPackets::AppendPacket(uint64_t flags) {
  packet_.Number(kSequenceId, kSequence);
  if (cleared_) flags |= kCleared;
  cleared_ = false;
  if (flags != 0) packet_.Number(kSequenceFlags, flags);
  trace_.Message(1, packet_);
  if (status_.ok()) status_ = output_.Add(trace_.bytes());
  packet_.Clear();
  trace_.Clear();
}

void PerfettoPackets::BeginEvent(TimeNs time, uint64_t track, PerfettoEventType type) {
  Finish();
  pending_time_ = time;
  event_.Number(9, static_cast<uint64_t>(type));
  event_.Number(11, track);
}

std::optional<uint64_t> PerfettoPackets::Intern(Interned& texts, std::string_view text) {
  if (text.size() > kLongestText) return std::nullopt;
  const auto at = texts.known.find(text);
  if (at != texts.known.end()) return at->second;
  ProtobufMessage entry;
  entry.Number(1, ++texts.last);
  entry.Text(2, ValidUtf8(text));
  interned_.Message(texts.field, entry);
  texts.known.emplace(text, texts.last);
  return texts.last;
}

void PerfettoPackets::Name(std::string_view name) {
  if (const auto number = Intern(names_, name)) {
    event_.Number(10, *number);
  } else {
    event_.Text(23, ValidUtf8(name));
  }
}

void PerfettoPackets::Category(std::string_view category) {
  if (category.empty()) return;
  if (const auto number = Intern(categories_, category)) {
    event_.Number(3, *number);
  } else {
    event_.Text(22, ValidUtf8(category));
  }
}

void PerfettoPackets::AddArgument(std::string_view name) {
  if (const auto number = Intern(argument_names_, name)) {
    argument_.Number(1, *number);
  } else {
    argument_.Text(10, ValidUtf8(name));
  }
  event_.Message(4, argument_);
  argument_.Clear();
}

void PerfettoPackets::Argument(std::string_view name, std::string_view text) {
  argument_.Text(6, ValidUtf8(text));
  AddArgument(name);
}

void PerfettoPackets::Unsigned(std::string_view name, uint64_t number) {
  argument_.Number(3, number);
  AddArgument(name);
}

void PerfettoPackets::Signed(std::string_view name, int64_t number) {
  argument_.Number(4, static_cast<uint64_t>(number));
  AddArgument(name);
}

void PerfettoPackets::Bool(std::string_view name, bool yes) {
  argument_.Number(2, yes ? 1 : 0);
  AddArgument(name);
}

void PerfettoPackets::Pointer(std::string_view name, uint64_t address) {
  argument_.Number(7, address);
  AddArgument(name);
}

void PerfettoPackets::Counter(uint64_t value) { event_.Number(30, value); }

void PerfettoPackets::FlowOut(uint64_t flow) { event_.Fixed64(47, flow); }

void PerfettoPackets::FlowIn(uint64_t flow) { event_.Fixed64(48, flow); }

void PerfettoPackets::Finish() {
  if (!pending_time_) return;
  packet_.Number(kTimestamp, Time(*pending_time_));
  packet_.Number(kClockId, kMonotonic);
  packet_.Message(kTrackEvent, event_);
  if (!interned_.empty()) packet_.Message(kInternedData, interned_);
  AppendPacket(kNeedsState);
  pending_time_.reset();
  event_.Clear();
  interned_.Clear();
  // Behind the packet that uses them: the numbers of the next one are told anew.
  for (Interned* texts : {&categories_, &names_, &argument_names_}) {
    if (texts->known.size() < kMostTexts) continue;
    for (Interned* each : {&categories_, &names_, &argument_names_}) each->known.clear();
    cleared_ = true;
  }
}

}  // namespace hangscope

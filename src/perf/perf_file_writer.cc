#include "perf/perf_file_writer.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>

#include "hangscope/version.h"
#include "model/perf_format.h"

namespace hangscope {
namespace {

static_assert(std::endian::native == std::endian::little,
              "written in this machine's order, which is said to be this");

template <typename T>
void Add(std::string* bytes, const T& value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// With its end, filled up to a multiple of 64.
void AddText(std::string* bytes, std::string_view text) {
  const size_t size = (text.size() + 1 + 63) / 64 * 64;
  Add(bytes, static_cast<uint32_t>(size));
  bytes->append(text);
  bytes->append(size - text.size(), '\0');
}

std::string TextFeature(std::string_view text) {
  std::string bytes;
  if (!text.empty()) AddText(&bytes, text);
  return bytes;
}

std::string CpusFeature(const PerfFileOrigin& origin) {
  std::string bytes;
  if (origin.cpus_available == 0) return bytes;
  Add(&bytes, origin.cpus_available);
  Add(&bytes, origin.cpus_online);
  return bytes;
}

std::string CommandFeature(const std::vector<std::string>& command) {
  std::string bytes;
  if (command.empty()) return bytes;
  Add(&bytes, static_cast<uint32_t>(command.size()));
  for (const std::string& word : command) AddText(&bytes, word);
  return bytes;
}

perf_event_attr AttributeOf(const PerfEvent& event) {
  perf_event_attr attr = event.attr;
  attr.size = sizeof attr;
  return attr;
}

std::string EventsFeature(const std::vector<PerfEvent>& events) {
  std::string bytes;
  Add(&bytes, static_cast<uint32_t>(events.size()));
  Add(&bytes, static_cast<uint32_t>(sizeof(perf_event_attr)));
  for (const PerfEvent& event : events) {
    Add(&bytes, AttributeOf(event));
    Add(&bytes, static_cast<uint32_t>(event.ids.size()));
    AddText(&bytes, event.name);
    for (const uint64_t id : event.ids) Add(&bytes, id);
  }
  return bytes;
}

std::string_view SystemOf(const PerfEvent& event) {
  if (!event.system.empty()) return event.system;
  const std::string_view name = event.name;
  return name.substr(0, name.find(':'));
}

// perf rejects the whole file where one tracepoint's format is unknown: one without fields stands
// in for it.
std::string FormatOf(const PerfEvent& event) {
  if (!event.format.empty()) return event.format;
  const size_t colon = event.name.find(':');
  return fmt::format(
      "name: {}\nID: {}\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
      "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
      "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
      "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"fields unknown\"\n",
      colon == std::string::npos ? event.name : event.name.substr(colon + 1), event.attr.config);
}

// Describe a ring of ftrace's. None of its pages are in the file, but perf does not read on where
// these are empty.
constexpr std::string_view kHeaderPage =
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
constexpr std::string_view kHeaderEvent = "# compressed entry header\n";

void AddTracingFile(std::string* bytes, std::string_view name, std::string_view content) {
  bytes->append(name);
  bytes->push_back('\0');
  Add(bytes, static_cast<uint64_t>(content.size()));
  bytes->append(content);
}

// The tracepoints' formats in the form of trace-cmd's files, version 0.6.
std::string TracingDataFeature(const std::vector<PerfEvent>& events) {
  std::map<std::string_view, std::vector<std::string>> systems;
  for (const PerfEvent& event : events) {
    if (event.attr.type == PERF_TYPE_TRACEPOINT)
      systems[SystemOf(event)].push_back(FormatOf(event));
  }
  std::string bytes;
  if (systems.empty()) return bytes;
  bytes.append(kPerfTracingMagic).append("0.6");
  bytes.append(2, '\0');  // the version's end; little-endian
  bytes.push_back(static_cast<char>(sizeof(long)));
  Add(&bytes, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  AddTracingFile(&bytes, "header_page", kHeaderPage);
  AddTracingFile(&bytes, "header_event", kHeaderEvent);
  Add(&bytes, uint32_t{0});  // formats of ftrace's own
  Add(&bytes, static_cast<uint32_t>(systems.size()));
  for (const auto& [system, formats] : systems) {
    bytes.append(system);
    bytes.push_back('\0');
    Add(&bytes, static_cast<uint32_t>(formats.size()));
    for (const std::string& format : formats) {
      Add(&bytes, static_cast<uint64_t>(format.size()));
      bytes.append(format);
    }
  }
  Add(&bytes, uint32_t{0});  // kallsyms
  Add(&bytes, uint32_t{0});  // formats of trace_printk
  Add(&bytes, uint64_t{0});  // names of tasks: the side band has them
  return bytes;
}

// What follows a record that is no sample, where the event asks for it (sample_id_all).
std::string RecordTrailer(const perf_event_attr& attr, TimeNs time, int cpu, uint64_t id) {
  std::string bytes;
  if (!attr.sample_id_all) return bytes;
  if (attr.sample_type & PERF_SAMPLE_TID) Add(&bytes, uint64_t{0});
  if (attr.sample_type & PERF_SAMPLE_TIME) Add(&bytes, static_cast<uint64_t>(time));
  if (attr.sample_type & PERF_SAMPLE_ID) Add(&bytes, id);
  if (attr.sample_type & PERF_SAMPLE_STREAM_ID) Add(&bytes, id);
  if (attr.sample_type & PERF_SAMPLE_CPU)
    Add(&bytes, static_cast<uint64_t>(static_cast<uint32_t>(std::max(cpu, 0))));
  if (attr.sample_type & PERF_SAMPLE_IDENTIFIER) Add(&bytes, id);
  return bytes;
}

// As of the first event whose ring is of that kind: who reads takes the loss for that ring's.
const PerfEvent* EventOfLoss(const std::vector<PerfEvent>& events, bool overwrites) {
  const auto found = std::find_if(events.begin(), events.end(), [&](const PerfEvent& event) {
    return (event.attr.write_backward != 0) == overwrites && !event.ids.empty();
  });
  if (found != events.end()) return &*found;
  return events.empty() || events.front().ids.empty() ? nullptr : &events.front();
}

std::string LostRecord(const PerfEvent* event, uint64_t lost, TimeNs time, int cpu) {
  if (lost == 0 || event == nullptr) return {};
  const uint64_t id = event->ids.front();
  const std::string trailer = RecordTrailer(event->attr, time, cpu, id);
  perf_event_header header{};
  header.type = PERF_RECORD_LOST;
  header.size = static_cast<uint16_t>(sizeof header + 16 + trailer.size());
  std::string bytes;
  Add(&bytes, header);
  Add(&bytes, id);
  Add(&bytes, lost);
  return bytes + trailer;
}

class Writer {
 public:
  explicit Writer(std::unique_ptr<File> file) : file_(std::move(file)) {}

  uint64_t at() const { return at_; }
  // After a failure nothing more is written.
  void Append(std::string_view bytes) {
    PutAt(at_, bytes);
    at_ += bytes.size();
  }
  void PutAt(uint64_t offset, std::string_view bytes) {
    if (!status_.ok() || bytes.empty()) return;
    size_t written = 0;
    status_ = file_->WriteAt(offset, bytes, &written);
  }
  Status status() const { return status_; }

 private:
  std::unique_ptr<File> file_;
  uint64_t at_ = 0;
  Status status_;
};

// The ids in front of the attributes, which point at them.
void WriteAttributes(const std::vector<PerfEvent>& events, PerfHeader* header, Writer* out) {
  std::string attributes;
  for (const PerfEvent& event : events) {
    const PerfSection ids{out->at(), event.ids.size() * sizeof(uint64_t)};
    out->Append({reinterpret_cast<const char*>(event.ids.data()), ids.bytes});
    Add(&attributes, AttributeOf(event));
    Add(&attributes, ids);
  }
  header->attributes = {out->at(), attributes.size()};
  out->Append(attributes);
}

void WriteAux(const AuxRing& ring, uint32_t index, Writer* out) {
  if (ring.bytes.empty()) return;
  perf_event_header header{};
  header.type = kPerfAuxtrace;
  PerfAuxtraceBody body;
  header.size = sizeof header + sizeof body;
  body.bytes = ring.bytes.size();
  body.offset = ring.head - ring.bytes.size();
  body.reference = static_cast<uint64_t>(ring.taken);
  body.index = index;
  body.tid = ring.tid;
  body.cpu = ring.cpu;
  out->Append({reinterpret_cast<const char*>(&header), sizeof header});
  out->Append({reinterpret_cast<const char*>(&body), sizeof body});
  out->Append(ring.bytes);
}

// PERF_RECORD_THREAD_MAP of all processes: a number of entries, each a process, -1 for all, and
// its name.
std::string EverybodyRecord() {
  constexpr size_t kNameBytes = 16;
  perf_event_header header{};
  header.type = kPerfThreadMap;
  header.size = sizeof header + 2 * sizeof(uint64_t) + kNameBytes;
  std::string bytes;
  Add(&bytes, header);
  Add(&bytes, uint64_t{1});
  Add(&bytes, int64_t{-1});
  return bytes + std::string(kNameBytes, '\0');
}

void WriteData(const CpuCapture& capture, PerfHeader* header, Writer* out) {
  header->records.offset = out->at();
  if (capture.whole_machine) out->Append(EverybodyRecord());
  out->Append(capture.side_band);
  out->Append(
      LostRecord(EventOfLoss(capture.events, false), capture.side_band_lost, capture.time, -1));
  for (const PerfRing& ring : capture.rings) {
    out->Append(ring.records);
    out->Append(
        LostRecord(EventOfLoss(capture.events, true), ring.lost_records, ring.taken, ring.cpu));
  }
  for (size_t i = 0; i < capture.aux.size(); ++i)
    WriteAux(capture.aux[i], static_cast<uint32_t>(i), out);
  header->records.bytes = out->at() - header->records.offset;
}

// The table comes first, in the order of the bits.
void WriteFeatures(const std::map<PerfFeature, std::string>& features, PerfHeader* header,
                   Writer* out) {
  std::string table;
  std::string bytes;
  uint64_t begin = out->at();
  for (const auto& [feature, content] : features)
    begin += content.empty() ? 0 : sizeof(PerfSection);
  for (const auto& [feature, content] : features) {
    if (content.empty()) continue;
    header->Set(feature);
    Add(&table, PerfSection{begin + bytes.size(), content.size()});
    bytes += content;
  }
  out->Append(table);
  out->Append(bytes);
}

}  // namespace

PerfFileOrigin ThisMachine() {
  PerfFileOrigin origin;
  utsname names{};
  if (uname(&names) == 0) {
    origin.host = names.nodename;
    origin.release = names.release;
    origin.architecture = names.machine;
  }
  origin.cpus_available = static_cast<uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_CONF)));
  origin.cpus_online = static_cast<uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
  return origin;
}

Result<uint64_t> WritePerfFile(FileSystem& files, const std::string& path,
                               const CpuCapture& capture, const PerfFileOrigin& origin,
                               const RecordedRings* rings) {
  if (Status status = files.Remove(path); !status.ok()) return status;
  auto file = files.Open(path, FileSystem::Mode::kRecordedNew);
  if (!file.ok()) return file.status();
  Writer out(std::move(*file));
  PerfHeader header;
  out.Append({reinterpret_cast<const char*>(&header), sizeof header});
  WriteAttributes(capture.events, &header, &out);
  WriteData(capture, &header, &out);
  WriteFeatures({{kPerfFeatureTracingData, TracingDataFeature(capture.events)},
                 {kPerfFeatureHost, TextFeature(origin.host)},
                 {kPerfFeatureRelease, TextFeature(origin.release)},
                 {kPerfFeatureVersion, TextFeature("hangscope " HANGSCOPE_VERSION)},
                 {kPerfFeatureArchitecture, TextFeature(origin.architecture)},
                 {kPerfFeatureCpus, CpusFeature(origin)},
                 {kPerfFeatureCommand, CommandFeature(origin.command)},
                 {kPerfFeatureEventDescription, EventsFeature(capture.events)},
                 {kPerfFeatureRecordedRings, rings == nullptr ? "" : RecordedRingsText(*rings)}},
                &header, &out);
  out.PutAt(0, {reinterpret_cast<const char*>(&header), sizeof header});
  if (!out.status().ok()) return out.status();
  return out.at();
}

}  // namespace hangscope

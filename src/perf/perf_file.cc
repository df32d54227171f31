#include "perf/perf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/utf8.h"
#include "code/file_window.h"
#include "model/perf_format.h"
#include "perf/perf_header.h"
#include "perf/perf_inflater.h"

namespace hangscope {
namespace {

constexpr size_t kWindowBytes = 256 << 10;          // stays in the nearer caches
constexpr uint64_t kMostSectionBytes = 256u << 20;  // of one feature, of the ids of all events
constexpr uint64_t kMostAttributeBytes = 4096;
constexpr size_t kRecordHeaderBytes = sizeof(perf_event_header);
constexpr size_t kMostRecordBytes = 65535;  // its size has 16 bits
constexpr size_t kMostBuildIds = 100'000;
constexpr size_t kMostTroubles = 50;
constexpr uint64_t kMostFormatBytes = 64u << 20;

template <typename Number>
Number At(std::string_view bytes, size_t offset) {
  Number number{};
  if (offset + sizeof number <= bytes.size())
    std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// Newer ones are counted, not read.
bool IsKnownType(uint32_t type) {
  return (type > 0 && type < kPerfKernelRecordsEnd) ||
         (type >= kPerfToolRecordsBegin && type < kPerfToolRecordsEnd);
}

// Of a record that is there as a whole: its body is not looked into.
PerfRecord HeaderOf(std::string_view bytes) {
  PerfRecord record;
  record.type = At<uint32_t>(bytes, 0);
  record.misc = At<uint16_t>(bytes, 4);
  record.body = bytes.substr(kRecordHeaderBytes);
  return record;
}

// How many bytes stand behind a record without being one.
uint64_t FollowingBytes(uint32_t type, std::string_view body) {
  if (type == kPerfAuxtrace) return At<uint64_t>(body, 0);
  if (type == kPerfHeaderTracingData) return (uint64_t{At<uint32_t>(body, 0)} + 7) / 8 * 8;
  return 0;
}

// Where there is no better name.
std::string PlainName(const perf_event_attr& attr) {
  if (attr.type == PERF_TYPE_TRACEPOINT) return fmt::format("tracepoint {}", uint64_t{attr.config});
  return fmt::format("type {} config {:#x}", uint32_t{attr.type}, uint64_t{attr.config});
}

// Something that happens to many records: the first is told where, the others are counted.
struct Count {
  uint64_t count = 0;
  uint64_t first_at = 0;
  uint32_t first_type = 0;

  void Add(uint64_t at, uint32_t type) {
    if (count++ > 0) return;
    first_at = at;
    first_type = type;
  }
};

}  // namespace

bool IsPerfData(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path)) return false;
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  char magic[8];
  auto got = (*file)->ReadAt(0, magic);
  return got.ok() && FindPerfMagic({magic, *got}) != PerfMagic::kNone;
}

struct PerfFile::Impl {
  Impl(std::unique_ptr<File> opened, std::string name, uint64_t bytes)
      : file(std::move(opened)), path(std::move(name)), size(bytes), window(*file, kWindowBytes) {}

  Status Open();
  Status ReadFileForm(const PerfHeader& header);
  Status ReadAttributes(const PerfHeader& header);
  Status ReadIds(const PerfSection& section, std::vector<uint64_t>* ids);
  Status ReadFeatures(const PerfHeader& header);
  Result<std::string> ReadSection(const PerfSection& section);
  void StoreFeature(uint32_t feature, std::string_view bytes);
  void NameEvents(const std::vector<PerfEventName>& names);
  void LoadTracepoints();
  void NameTracers();
  Result<std::string_view> RecordAt(uint64_t at, bool first_time);
  template <typename Take>
  Status Walk(bool first_time, const Take& take);
  Status ParseToolRecord(uint64_t at, const PerfRecord& record);
  void ParseAttributeRecord(uint64_t at, std::string_view body);
  void ParseUpdate(std::string_view body);
  void ParseAuxtrace(uint64_t at, const PerfRecord& record);
  Status ForEach(const ReadPlaced& take);
  void AddEvent(const perf_event_attr& attr, std::vector<uint64_t> ids);
  void Warn(std::string sentence);
  void WarnOfCounts(const Count& unknown, const Count& contradicting);

  std::unique_ptr<File> file;
  std::string path;
  uint64_t size;
  FileWindow window;
  uint64_t begin = 0;  // of the records
  uint64_t end = 0;
  uint64_t id_bytes = 0;
  bool told_counts = false;
  std::vector<PerfEvent> events;
  std::unordered_map<uint64_t, size_t> event_of_id;
  std::vector<PerfTracepoint> tracepoints;
  std::vector<std::pair<uint32_t, std::string>> tracers;
  PerfFileFacts facts;
  std::vector<AuxTrace> aux;
};

// The record at `at` with its header; empty: there is none, or not all of it, and nothing of what
// is behind it can be read.
Result<std::string_view> PerfFile::Impl::RecordAt(uint64_t at, bool first_time) {
  const std::string_view held = window.Held(at).substr(0, end - at);
  if (const size_t bytes = PerfRecordBytes(held); bytes != 0 && bytes <= held.size())
    return held.substr(0, bytes);
  auto most = window.At(at, std::min<uint64_t>(kMostRecordBytes, end - at));
  if (!most.ok()) return most.status();
  const size_t bytes = PerfRecordBytes(*most);
  if (bytes != 0 && bytes <= most->size()) return most->substr(0, bytes);
  if (first_time && bytes == 0 && most->size() >= kRecordHeaderBytes)
    Warn(fmt::format("at offset {} is no record: the {} bytes from there on are not read", at,
                     end - at));
  else if (first_time)
    Warn(
        fmt::format("the record at offset {} is not whole: the file or its records end there", at));
  return std::string_view();
}

// Structure only: `take` gets the record's header and body, not its fields; false: it wants no
// more. What is damaged is told the first time.
template <typename Take>
Status PerfFile::Impl::Walk(bool first_time, const Take& take) {
  for (uint64_t at = begin; at < end;) {
    const auto whole = RecordAt(at, first_time);
    if (!whole.ok()) return whole.status();
    const std::string_view bytes = whole.value();
    if (bytes.empty()) return {};
    const auto type = At<uint32_t>(bytes, 0);
    const uint64_t following = FollowingBytes(type, bytes.substr(kRecordHeaderBytes));
    if (!take(at, type, bytes)) return {};
    if (following > end - at - bytes.size()) {
      if (first_time)
        Warn(
            fmt::format("of the {} bytes that belong to the record at offset {}, only {} are "
                        "there: the file ends before",
                        following, at, end - at - bytes.size()));
      return {};
    }
    at += bytes.size() + following;
  }
  return {};
}

Status PerfFile::Impl::Open() {
  auto bytes = window.At(0, kPerfHeaderBytes);
  if (!bytes.ok()) return bytes.status();
  const std::string shown = Printable(path);
  switch (FindPerfMagic(*bytes)) {
    case PerfMagic::kThis:
      break;
    case PerfMagic::kNone:
      return Status::Corrupt(
          fmt::format("'{}' is no perf.data: it does not begin with PERFILE2", shown));
    case PerfMagic::kOtherByteOrder:
      return Status::Corrupt(
          fmt::format("'{}' was recorded on a machine of the other byte order, which is not read; "
                      "look at it there",
                      shown));
    case PerfMagic::kOld:
      return Status::Corrupt(
          fmt::format("'{}' is a perf.data of perf before Linux 2.6.37, which is not read", shown));
  }
  const auto header = ParsePerfHeader(*bytes);
  if (!header)
    return Status::Corrupt(fmt::format(
        "'{}' has {} bytes and no whole header in them: it was cut, and nothing of it can be read",
        shown, size));
  facts.pipe = header->header_bytes == kPerfPipeHeaderBytes;
  begin = kPerfPipeHeaderBytes;
  end = size;
  if (Status status = facts.pipe ? Status() : ReadFileForm(*header); !status.ok()) return status;
  Status taken;
  const auto tool_records = [&](uint64_t at, uint32_t type, std::string_view record) {
    if (type < kPerfToolRecordsBegin) return true;
    taken = ParseToolRecord(at, HeaderOf(record));
    return taken.ok();
  };
  if (Status status = Walk(true, tool_records); !status.ok()) return status;
  if (!taken.ok()) return taken;
  if (events.empty())
    return Status::Corrupt(
        fmt::format("'{}' tells no events, so nothing in it can be understood: it ends too early, "
                    "or is damaged",
                    shown));
  LoadTracepoints();
  tracepoints.clear();
  NameTracers();
  return {};
}

Status PerfFile::Impl::ReadFileForm(const PerfHeader& header) {
  begin = header.records.offset;
  if (begin > size) {
    Warn(fmt::format("the records should begin at offset {}, but the file has {} bytes: it was cut",
                     begin, size));
    begin = size;
  } else if (header.records.bytes == 0) {
    Warn(
        "the header tells no records, as when perf was killed: all up to the file's end is read as "
        "records");
  } else if (header.records.bytes > size - begin) {
    Warn(fmt::format(
        "the file ends at offset {}, {} bytes before the end of its records: it was cut", size,
        header.records.bytes - (size - begin)));
  } else {
    end = begin + header.records.bytes;
  }
  if (Status status = ReadAttributes(header); !status.ok()) return status;
  return ReadFeatures(header);
}

Result<std::string> PerfFile::Impl::ReadSection(const PerfSection& section) {
  if (section.offset > size) return std::string();
  std::string bytes(std::min({section.bytes, size - section.offset, kMostSectionBytes}), '\0');
  auto got = file->ReadAt(section.offset, bytes);
  if (!got.ok()) return got.status();
  bytes.resize(*got);
  return bytes;
}

// The size of the ids of all together is bounded by the file's: sections may lie over one another.
Status PerfFile::Impl::ReadIds(const PerfSection& section, std::vector<uint64_t>* ids) {
  id_bytes += std::min(section.bytes, size);
  if (section.offset > size || section.bytes > size - section.offset ||
      section.bytes % sizeof(uint64_t) != 0 || id_bytes > std::min(size, kMostSectionBytes)) {
    Warn(
        fmt::format("the ids of an event should be at offset {}, {} bytes, which cannot be: "
                    "records of it may be taken for another's",
                    section.offset, section.bytes));
    return {};
  }
  auto bytes = ReadSection(section);
  if (!bytes.ok()) return bytes.status();
  ids->resize(bytes->size() / sizeof(uint64_t));
  if (!ids->empty()) std::memcpy(ids->data(), bytes->data(), ids->size() * sizeof(uint64_t));
  return {};
}

Status PerfFile::Impl::ReadAttributes(const PerfHeader& header) {
  const uint64_t each = header.attribute_bytes;
  if (each < PERF_ATTR_SIZE_VER0 + kPerfSectionBytes || each > kMostAttributeBytes) {
    return Status::Corrupt(
        fmt::format("'{}' says that an event's attributes take {} bytes, which cannot be: its "
                    "header is damaged",
                    Printable(path), each));
  }
  auto section = ReadSection(header.attributes);
  if (!section.ok()) return section.status();
  if (section->size() != header.attributes.bytes || section->size() % each != 0)
    Warn(fmt::format("of the {} bytes of events' attributes at offset {}, only {} can be read",
                     header.attributes.bytes, header.attributes.offset,
                     section->size() / each * each));
  for (uint64_t at = 0; at + each <= section->size(); at += each) {
    const std::string_view bytes = std::string_view(*section).substr(at, each);
    const auto attr = ParsePerfAttribute(bytes.substr(0, each - kPerfSectionBytes));
    const auto ids = ParsePerfSection(bytes.substr(each - kPerfSectionBytes));
    if (!attr) {
      Warn(fmt::format("the event's attributes at offset {} cannot be: the event is left out",
                       header.attributes.offset + at));
      continue;
    }
    std::vector<uint64_t> numbers;
    if (Status status = ReadIds(*ids, &numbers); !status.ok()) return status;
    AddEvent(*attr, std::move(numbers));
  }
  return {};
}

// The table of places is behind the records.
Status PerfFile::Impl::ReadFeatures(const PerfHeader& header) {
  uint64_t at = header.records.offset + header.records.bytes;
  if (header.records.bytes == 0 || at < header.records.offset) return {};
  uint32_t missing = 0;
  for (uint32_t feature = 0; feature < kPerfFeatures; ++feature) {
    if (!header.Has(feature)) continue;
    auto place = ReadSection({at, kPerfSectionBytes});
    if (!place.ok()) return place.status();
    at += kPerfSectionBytes;
    const auto section = ParsePerfSection(*place);
    const bool there =
        section && section->offset <= size && section->bytes <= size - section->offset;
    if (!there) {
      ++missing;
      continue;
    }
    auto bytes = ReadSection(*section);
    if (!bytes.ok()) return bytes.status();
    StoreFeature(feature, *bytes);
  }
  if (missing > 0)
    Warn(fmt::format(
        "{} parts that describe the recording (its machine, the events' names) are not in the file",
        missing));
  return {};
}

void PerfFile::Impl::StoreFeature(uint32_t feature, std::string_view bytes) {
  const auto take = [](std::optional<std::string> text, std::string* to) {
    if (text) *to = std::move(*text);
    return text.has_value();
  };
  bool whole = true;
  std::vector<PerfEventName> names;
  switch (feature) {
    case kPerfFeatureHost:
      whole = take(ParsePerfText(bytes), &facts.host);
      break;
    case kPerfFeatureRelease:
      whole = take(ParsePerfText(bytes), &facts.release);
      break;
    case kPerfFeatureVersion:
      whole = take(ParsePerfText(bytes), &facts.version);
      break;
    case kPerfFeatureArchitecture:
      whole = take(ParsePerfText(bytes), &facts.architecture);
      break;
    case kPerfFeatureCommand:
      whole = take(ParsePerfTexts(bytes), &facts.command);
      break;
    case kPerfFeatureBuildId:
      whole = ParsePerfBuildIds(bytes, &facts.build_ids);
      break;
    case kPerfFeatureTracers:
      whole = ParsePerfTracers(bytes, &tracers);
      break;
    case kPerfFeatureTracingData:
      whole = ParsePerfTracingData(bytes, &tracepoints);
      break;
    case kPerfFeatureCompressed:
      facts.compressed = true;
      break;
    case kPerfFeatureEventDescription:
      whole = ParsePerfEventNames(bytes, &names);
      NameEvents(names);
      break;
    case kPerfFeatureRecordedRings:
      facts.rings = ParseRecordedRings(bytes);
      whole = facts.rings.has_value();
      break;
    default:
      break;
  }
  if (!whole) Warn(fmt::format("the description of the recording, part {}, is damaged", feature));
}

// By their ids; where an event has none, by their order.
void PerfFile::Impl::NameEvents(const std::vector<PerfEventName>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& ids = names[i].ids;
    if (names[i].name.empty()) continue;
    const auto known = ids.empty() ? event_of_id.end() : event_of_id.find(ids.front());
    if (known != event_of_id.end())
      events[known->second].name = names[i].name;
    else if (ids.empty() && i < events.size())
      events[i].name = names[i].name;
  }
}

// As perf does where there is no better name: the tracer alone.
void PerfFile::Impl::NameTracers() {
  const std::map<uint32_t, std::string> names(tracers.begin(), tracers.end());
  for (PerfEvent& event : events) {
    const auto known = names.find(event.attr.type);
    if (known != names.end() && event.name == PlainName(event.attr))
      event.name = known->second + "//";
  }
}

void PerfFile::Impl::AddEvent(const perf_event_attr& attr, std::vector<uint64_t> ids) {
  for (const uint64_t id : ids) event_of_id.emplace(id, events.size());
  events.push_back({PlainName(attr), attr, std::move(ids), {}, {}});
}

void PerfFile::Impl::Warn(std::string sentence) {
  if (facts.warnings.size() > kMostTroubles) return;
  facts.warnings.push_back(facts.warnings.size() == kMostTroubles
                               ? "there is more damage than is told here"
                               : std::move(sentence));
}

// Several events may have one tracepoint, with one copy of its format each: bounded.
void PerfFile::Impl::LoadTracepoints() {
  std::unordered_map<uint64_t, const PerfTracepoint*> of_id;
  for (const PerfTracepoint& tracepoint : tracepoints) {
    if (const auto format = TracepointFormat::Parse(tracepoint.format))
      of_id.emplace(format->id(), &tracepoint);
  }
  uint64_t room = kMostFormatBytes;
  for (PerfEvent& event : events) {
    const auto known = of_id.find(event.attr.config);
    if (event.attr.type != PERF_TYPE_TRACEPOINT || known == of_id.end()) continue;
    const PerfTracepoint& tracepoint = *known->second;
    if (tracepoint.format.size() > room)
      return Warn("the tracepoints' formats are too long: some events have none");
    room -= tracepoint.format.size();
    event.format = tracepoint.format;
    event.system = tracepoint.system;
    if (event.name == PlainName(event.attr))
      event.name = fmt::format("{}:{}", tracepoint.system,
                               TracepointFormat::Parse(tracepoint.format)->name());
  }
}

Status PerfFile::Impl::ParseToolRecord(uint64_t at, const PerfRecord& record) {
  switch (record.type) {
    case kPerfHeaderAttr:
      ParseAttributeRecord(at, record.body);
      break;
    case kPerfEventUpdate:
      ParseUpdate(record.body);
      break;
    case kPerfAuxtraceInfo:
      if (facts.auxtrace_info.empty()) facts.auxtrace_info = record.body;
      break;
    case kPerfAuxtrace:
      ParseAuxtrace(at, record);
      break;
    case kPerfCompressed:
    case kPerfCompressed2:
      facts.compressed = true;
      break;
    case kPerfHeaderFeature:
      if (record.body.size() < sizeof(uint64_t)) break;
      StoreFeature(
          static_cast<uint32_t>(std::min<uint64_t>(At<uint64_t>(record.body, 0), kPerfFeatures)),
          record.body.substr(sizeof(uint64_t)));
      break;
    case kPerfHeaderBuildId:
      if (auto id = ParsePerfBuildId(record.body, record.misc);
          id && facts.build_ids.size() < kMostBuildIds)
        facts.build_ids.push_back(std::move(*id));
      break;
    case kPerfHeaderTracingData: {
      auto section =
          ReadSection({at + kRecordHeaderBytes + record.body.size(), At<uint32_t>(record.body, 0)});
      if (!section.ok()) return section.status();
      if (!ParsePerfTracingData(*section, &tracepoints))
        Warn(fmt::format("the tracepoints' formats at offset {} are damaged", at));
      break;
    }
    default:
      break;
  }
  return {};
}

void PerfFile::Impl::ParseAttributeRecord(uint64_t at, std::string_view body) {
  const auto attr = ParsePerfAttribute(body);
  if (!attr)
    return Warn(
        fmt::format("the event's attributes at offset {} cannot be: the event is left out", at));
  const std::string_view bytes = body.substr(std::max<uint32_t>(attr->size, PERF_ATTR_SIZE_VER0));
  std::vector<uint64_t> ids(bytes.size() / sizeof(uint64_t));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(uint64_t));
  AddEvent(*attr, std::move(ids));
}

// PERF_RECORD_EVENT_UPDATE: kind, id, and of the kind 2 a name.
void PerfFile::Impl::ParseUpdate(std::string_view body) {
  constexpr uint64_t kName = 2;
  if (body.size() < 16 || At<uint64_t>(body, 0) != kName) return;
  const std::string_view text = body.substr(16);
  NameEvents({{{At<uint64_t>(body, 8)}, std::string(text.substr(0, text.find('\0')))}});
}

void PerfFile::Impl::ParseAuxtrace(uint64_t at, const PerfRecord& record) {
  PerfAuxtraceBody body;
  if (record.body.size() < sizeof body)
    return Warn(fmt::format("the AUXTRACE record at offset {} is too short", at));
  std::memcpy(&body, record.body.data(), sizeof body);
  AuxTrace trace;
  trace.bytes = body.bytes;
  trace.offset = body.offset;
  trace.reference = body.reference;
  trace.index = body.index;
  trace.tid = body.tid;
  trace.cpu = body.cpu;
  trace.file_offset = at + kRecordHeaderBytes + record.body.size();
  const uint64_t there = std::min(trace.bytes, end - trace.file_offset);
  trace.missing_bytes = trace.bytes - there;
  trace.bytes = there;
  aux.push_back(trace);
}

Status PerfFile::Impl::ForEach(const ReadPlaced& take) {
  const PerfRecordParser parser(events);
  PerfInflater inflater;
  Count unknown, contradicting, damaged;
  bool stopped = false;
  const auto hand_out = [&](uint64_t at, std::string_view bytes, bool compressed) {
    PerfRecord record;
    if (!parser.Parse(bytes, &record)) {
      contradicting.Add(at, At<uint32_t>(bytes, 0));
      return true;
    }
    if (!IsKnownType(record.type)) unknown.Add(at, record.type);
    stopped = !take(record, {at, static_cast<uint32_t>(bytes.size()), compressed}, bytes);
    return !stopped;
  };
  const auto inflate = [&](uint64_t at, std::string_view compressed) {
    const auto outcome = inflater.Feed(
        compressed, [&](std::string_view bytes) { return hand_out(at, bytes, true); });
    if (outcome == PerfInflater::Outcome::kDamaged) damaged.Add(at, kPerfCompressed);
    return !stopped;
  };
  const Status status = Walk(false, [&](uint64_t at, uint32_t type, std::string_view bytes) {
    const std::string_view body = bytes.substr(kRecordHeaderBytes);
    if (type == kPerfCompressed) return inflate(at, body);
    if (type == kPerfCompressed2)
      return inflate(
          at, body.substr(std::min<size_t>(8, body.size())).substr(0, At<uint64_t>(body, 0)));
    return hand_out(at, bytes, false);
  });
  if (stopped || told_counts) return status;
  told_counts = true;
  WarnOfCounts(unknown, contradicting);
  if (damaged.count > 0)
    Warn(
        fmt::format("the compressed record at offset {} is damaged: what was compressed from there "
                    "on, {} records, is not read",
                    damaged.first_at, damaged.count));
  else if (inflater.left_over_bytes() > 0)
    Warn(fmt::format("the compressed records end in the middle of a record: {} bytes are left over",
                     inflater.left_over_bytes()));
  return status;
}

void PerfFile::Impl::WarnOfCounts(const Count& unknown, const Count& contradicting) {
  if (unknown.count > 0)
    Warn(
        fmt::format("{} records are of types that are not known, the first, of type {}, at offset "
                    "{}: a newer perf wrote them, or the file is damaged",
                    unknown.count, unknown.first_type, unknown.first_at));
  if (contradicting.count > 0)
    Warn(
        fmt::format("{} records contradict their own sizes, the first, of type {}, at offset {}: "
                    "they are left out",
                    contradicting.count, contradicting.first_type, contradicting.first_at));
}

Result<std::unique_ptr<PerfFile>> PerfFile::Open(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path))
    return Status::Usage(
        fmt::format("'{}' is a folder, as perf record --threads makes it; name one of the files in "
                    "it that begin with 'data'",
                    Printable(path)));
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  auto impl = std::make_unique<Impl>(std::move(*file), path, *size);
  if (Status status = impl->Open(); !status.ok()) return status;
  return std::unique_ptr<PerfFile>(new PerfFile(std::move(impl)));
}

PerfFile::PerfFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PerfFile::~PerfFile() = default;

const std::vector<PerfEvent>& PerfFile::events() const { return impl_->events; }
const PerfFileFacts& PerfFile::facts() const { return impl_->facts; }
const std::vector<AuxTrace>& PerfFile::aux() const { return impl_->aux; }
Status PerfFile::ForEach(const std::function<bool(const PerfRecord&)>& take) {
  return impl_->ForEach([&take](const PerfRecord& record, const PerfRecordPlace&,
                                std::string_view) { return take(record); });
}
Status PerfFile::ForEachPlaced(const ReadPlaced& take) { return impl_->ForEach(take); }
Result<std::string> PerfFile::ReadAt(uint64_t offset, uint64_t bytes) {
  return impl_->ReadSection({offset, bytes});
}

Result<std::string> PerfFile::ReadAux(const AuxTrace& trace, uint64_t begin, uint64_t most) {
  if (begin >= trace.bytes) return std::string();
  return impl_->ReadSection({trace.file_offset + begin, std::min(most, trace.bytes - begin)});
}

}  // namespace hangscope

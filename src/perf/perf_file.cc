#include "perf/perf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/numbers.h"
#include "base/utf8.h"
#include "code/file_window.h"
#include "code/joined_files.h"
#include "model/perf_format.h"
#include "perf/perf_byte_order.h"
#include "perf/perf_header.h"
#include "perf/perf_inflater.h"
#include "perf/record_chain.h"

namespace hangscope {
namespace {

constexpr size_t kWindowBytes = 256 << 10;          // stays in the nearer caches
constexpr uint64_t kMostSectionBytes = 256u << 20;  // of one feature, of the ids of all events
constexpr uint64_t kMostAttributeBytes = 4096;
constexpr char kHeaderFile[] = "data";  // of a folder of perf record --threads
constexpr size_t kRecordHeaderBytes = sizeof(perf_event_header);
constexpr size_t kMostRecordBytes = 65535;  // its size has 16 bits
constexpr size_t kMostBuildIds = 100'000;
constexpr size_t kMostTroubles = 50;
constexpr size_t kMostSampledTraces = 200'000;
constexpr uint64_t kMostDamagesTold = 10;
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
         (type >= kPerfToolRecordsBegin && type < kPerfToolRecordsEnd) || IsSimpleperfRecord(type);
}

// Whether events mean something else behind such a record.
bool IsDefinition(uint32_t type) {
  return type == kPerfHeaderAttr || type == kPerfEventUpdate || type == kPerfHeaderFeature ||
         type == kPerfHeaderTracingData;
}

bool IsOfTraces(uint32_t type) { return type == kPerfAuxtraceInfo || type == kPerfAuxtrace; }

// One of a PMU that the kernel has no number for: only such write trace records.
bool MayTrace(const PerfEvent& event) { return event.attr.type >= PERF_TYPE_MAX; }

// Of a record that is there as a whole: its body is not looked into.
PerfRecord HeaderOf(std::string_view bytes) {
  PerfRecord record;
  record.type = At<uint32_t>(bytes, 0);
  record.misc = At<uint16_t>(bytes, 4);
  record.body = bytes.substr(kRecordHeaderBytes);
  return record;
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

// The 'data.N' in a folder of perf record --threads, by their numbers.
std::vector<std::string> ThreadFiles(FileSystem& files, const std::string& folder) {
  constexpr uint32_t kMostThreadFiles = 16'384;
  const std::string begin = std::string(kHeaderFile) + ".";
  std::vector<std::pair<uint32_t, std::string>> numbered;
  for (const std::string& name : files.List(folder)) {
    if (!name.starts_with(begin)) continue;
    if (const auto number = ParseWhole<uint32_t>(name.substr(begin.size()), 0, kMostThreadFiles))
      numbered.emplace_back(*number, name);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> names;
  for (auto& [number, name] : numbered) names.push_back(std::move(name));
  return names;
}

// A folder's file with the header comes first.
Result<std::unique_ptr<JoinedFiles>> OpenAll(FileSystem& files, const std::string& path) {
  auto all = std::make_unique<JoinedFiles>();
  const bool is_folder = files.IsFolder(path);
  Status status = is_folder ? all->Add(files, path + "/" + kHeaderFile, kHeaderFile)
                            : all->Add(files, path, "");
  if (is_folder) {
    for (const std::string& name : ThreadFiles(files, path)) {
      if (status.ok()) status = all->Add(files, path + "/" + name, name);
    }
  }
  if (!status.ok()) return status;
  return all;
}

}  // namespace

bool IsPerfData(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path)) {
    const std::string header = path + "/" + kHeaderFile;
    return files.Exists(header) && !files.IsFolder(header) && IsPerfData(files, header);
  }
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  char magic[8];
  auto got = (*file)->ReadAt(0, magic);
  return got.ok() && FindPerfMagic({magic, *got}) != PerfMagic::kNone;
}

struct PerfFile::Impl {
  Impl(std::unique_ptr<JoinedFiles> opened, std::string name)
      : file(std::move(opened)),
        path(std::move(name)),
        size(file->parts().front().end),
        all_bytes(file->parts().back().end),
        window(*file, kWindowBytes),
        chain(*file, events) {}

  Status Open(PerfOpen how);
  Status ReadFileForm(const PerfHeader& header);
  Status ReadAttributes(const PerfHeader& header);
  Status ReadIds(const PerfSection& section, std::vector<uint64_t>* ids);
  Status ReadFeatures(const PerfHeader& header);
  Result<std::string> ReadSection(const PerfSection& section);
  void StoreFeature(uint32_t feature, std::string_view bytes);
  void NameEvents(const std::vector<PerfEventName>& names);
  void LoadTracepoints();
  void NameTracers();
  Result<std::string_view> RecordAt(uint64_t at);
  std::string_view Turned(std::string_view record);
  Result<bool> GoesOnAt(uint64_t at);
  struct Next {
    bool is_record = false;  // what is before it is a record as a whole
    uint64_t at = 0;         // the end: there is none
  };
  Result<Next> FindNext(uint64_t at, PerfExtent extent);
  void NoteTheEnd();
  void NoteSkipped(uint64_t from, uint64_t to);
  void WarnOfEnd(uint64_t at);
  template <typename Take>
  Status Walk(const Take& take);
  template <typename Take>
  Status WalkPart(uint64_t from, const Take& take);
  template <typename Take>
  std::optional<uint64_t> WalkHeld(uint64_t at, const Take& take);
  bool IsEnoughFor(PerfOpen how, uint32_t type) const;
  void WarnOfOtherParts(FileSystem& files);
  Status ParseToolRecord(uint64_t at, const PerfRecord& record);
  void ParseAttributeRecord(uint64_t at, std::string_view body);
  void ParseUpdate(std::string_view body);
  void ParseAuxtrace(uint64_t at, const PerfRecord& record);
  template <typename Take>
  Status ForEach(const Take& take);
  void AddEvent(const perf_event_attr& attr, std::vector<uint64_t> ids);
  void Warn(std::string sentence);
  void WarnOfCounts(const Count& unknown, const Count& contradicting);
  void AddSampledTrace(const PerfRecordPlace& place, std::string_view bytes, PerfRecord* record);

  std::unique_ptr<JoinedFiles> file;
  std::string path;
  uint64_t size;       // of the part that has the header
  uint64_t all_bytes;  // of all parts
  FileWindow window;
  uint64_t begin = 0;  // of the records in the part that has the header
  uint64_t first_end = 0;
  uint64_t end = 0;               // of the records in the part that is read
  bool has_thread_files = false;  // so its header says
  bool has_traces = false;        // the same, or its records
  // Of what is before, damages are told, and perf's own records known.
  uint64_t told_to = 0;
  uint64_t parsed_to = 0;
  bool is_all_told = false;
  bool came_late = false;
  uint64_t id_bytes = 0;
  bool told_counts = false;
  std::vector<PerfEvent> events;
  RecordChain chain;
  bool turn = false;  // it is of the other byte order
  std::unique_ptr<PerfRecordTurner> turner;
  size_t turned_events = 0;  // that it knows
  uint64_t damages = 0;      // places where no record was, and records go on behind it
  uint64_t skipped_bytes = 0;
  std::unordered_map<uint64_t, size_t> event_of_id;
  std::vector<PerfTracepoint> tracepoints;
  std::vector<std::pair<uint32_t, std::string>> tracers;
  PerfFileFacts facts;
  std::vector<AuxTrace> aux;
  // Where the samples are that `aux` has traces of, in their order; how many of them this reading
  // of the file has come by, how many samples' traces are not kept, and what each ring has so far.
  std::vector<uint64_t> sampled;
  size_t sampled_seen = 0;
  uint64_t sampled_left_out = 0;
  std::unordered_map<int64_t, uint64_t> sampled_offsets;
};

// The record at `at` with its header; empty: there is none, or not all of it.
Result<std::string_view> PerfFile::Impl::RecordAt(uint64_t at) {
  // With the begin of what is behind it, so that nothing need be read twice.
  const auto whole = [this](std::string_view bytes, size_t behind) {
    if (!chain.IsPlausible(bytes)) return std::string_view();
    const PerfExtent extent = turn ? PerfExtentOf(TurnRecordHeader(bytes)) : PerfExtentOf(bytes);
    if (extent.bytes + behind > bytes.size()) return std::string_view();
    return turn ? Turned(bytes.substr(0, extent.bytes)) : bytes.substr(0, extent.bytes);
  };
  const std::string_view held = window.Held(at).substr(0, end - at);
  const size_t behind = held.size() == end - at ? 0 : kRecordHeaderBytes;
  if (const std::string_view record = whole(held, behind); !record.empty()) return record;
  auto most = window.At(at, std::min<uint64_t>(kMostRecordBytes + kRecordHeaderBytes, end - at));
  if (!most.ok()) return most.status();
  return whole(*most, 0);
}

// Valid until the next call.
std::string_view PerfFile::Impl::Turned(std::string_view record) {
  if (turner == nullptr || turned_events != events.size()) {
    turner = std::make_unique<PerfRecordTurner>(events);
    turned_events = events.size();
  }
  return turner->Turn(record);
}

// It keeps what the window holds.
Result<bool> PerfFile::Impl::GoesOnAt(uint64_t at) {
  if (at >= end) return at == end;
  const std::string_view held = window.Held(at).substr(0, end - at);
  if (held.size() >= kRecordHeaderBytes) return chain.IsPlausible(held);
  return chain.IsPlausibleAt(at, end);
}

void PerfFile::Impl::NoteSkipped(uint64_t from, uint64_t to) {
  ++damages;
  skipped_bytes += to - from;
  if (damages <= kMostDamagesTold)
    Warn(fmt::format("at {} is no record: {} bytes are skipped, up to {}, where records go on",
                     file->Where(from), to - from, file->Where(to)));
}

// Nothing can be read from `at` on.
void PerfFile::Impl::WarnOfEnd(uint64_t at) {
  const uint64_t most = std::min<uint64_t>(kRecordHeaderBytes, end - at);
  auto header = window.At(at, static_cast<size_t>(most));
  if (header.ok() && header->size() == kRecordHeaderBytes && !chain.IsPlausible(*header))
    Warn(fmt::format("at {} is no record: the {} bytes from there on are not read", file->Where(at),
                     end - at));
  else
    Warn(fmt::format("the record at {} is not whole: the file or its records end there",
                     file->Where(at)));
}

// Where records go on, if `extent`, of no bytes where there is none, does not end where another
// begins. A record over whose end the next one reaches has lost its size.
Result<PerfFile::Impl::Next> PerfFile::Impl::FindNext(uint64_t at, PerfExtent extent) {
  const bool first_time = at >= told_to;
  told_to = std::max(told_to, at + 1);
  const bool fits = extent.bytes > 0 && extent.following <= end - at - extent.bytes;
  const uint64_t next = fits ? at + extent.bytes + extent.following : end;
  auto found = chain.Find(at + kRecordHeaderBytes, end);
  if (!found.ok()) return found.status();
  if (*found < end) {
    const bool is_record = fits && *found >= next;
    if (first_time) NoteSkipped(is_record ? next : at, *found);
    return Next{is_record, *found};
  }
  if (first_time && extent.bytes == 0) {
    WarnOfEnd(at);
  } else if (first_time && !fits) {
    Warn(fmt::format(
        "of the {} bytes that belong to the record at {}, only {} are there: the file ends before",
        extent.following, file->Where(at), end - at - extent.bytes));
  } else if (first_time) {
    WarnOfEnd(next);
  }
  return Next{extent.bytes > 0, end};
}

// All of it was looked through for once.
void PerfFile::Impl::NoteTheEnd() {
  if (!is_all_told && damages > kMostDamagesTold)
    Warn(fmt::format("{} places in all are damaged: {} bytes are skipped", damages, skipped_bytes));
  is_all_told = true;
}

// Structure only: `take` gets the record's part, header and body, not its fields; false: it wants
// no more. What is damaged is told the first time.
template <typename Take>
Status PerfFile::Impl::Walk(const Take& take) {
  for (size_t part = 0; part < file->parts().size(); ++part) {
    bool stopped = false;
    const uint64_t from = part == 0 ? begin : file->parts()[part].begin;
    end = part == 0 ? first_end : file->parts()[part].end;
    const Status status = WalkPart(from, [&](uint64_t at, uint32_t type, std::string_view record) {
      stopped = !take(part, at, type, record);
      return !stopped;
    });
    if (!status.ok() || stopped) return status;
  }
  NoteTheEnd();
  return {};
}

// The plain records from `at` on that the window holds, each with a record behind it: nearly all of
// most files. Returns where they end; nothing: `take` wants no more.
template <typename Take>
std::optional<uint64_t> PerfFile::Impl::WalkHeld(uint64_t at, const Take& take) {
  std::string_view held = turn ? std::string_view() : window.Held(at).substr(0, end - at);
  while (IsPlainPerfHeader(held)) {
    const size_t bytes = PerfRecordBytes(held);
    if (bytes > held.size() || !IsPlausiblePerfHeader(held.substr(bytes))) break;
    if (!take(at, At<uint32_t>(held, 0), held.substr(0, bytes))) return std::nullopt;
    held.remove_prefix(bytes);
    at += bytes;
  }
  return at;
}

template <typename Take>
Status PerfFile::Impl::WalkPart(uint64_t from, const Take& take) {
  for (uint64_t at = from; at < end;) {
    const std::optional<uint64_t> held_to = WalkHeld(at, take);
    if (!held_to) return {};
    at = *held_to;
    auto record = RecordAt(at);
    if (!record.ok()) return record.status();
    const PerfExtent extent = record->empty() ? PerfExtent() : PerfExtentOf(*record);
    const bool fits = !record->empty() && extent.following <= end - at - extent.bytes;
    Next next{fits, fits ? at + extent.bytes + extent.following : end};
    auto goes_on = fits ? GoesOnAt(next.at) : Result<bool>(false);
    if (!goes_on.ok()) return goes_on.status();
    if (*goes_on && fits && IsOddPerfRecord(*record, events)) {
      auto inside = chain.FindInside(at, extent.bytes, end);
      if (!inside.ok()) return inside.status();
      goes_on = *inside >= at + extent.bytes;
    }
    if (!*goes_on) {
      auto found = FindNext(at, extent);
      if (!found.ok()) return found.status();
      next = *found;
    }
    if (next.is_record) {
      // Where it was looked for the next, the window has moved.
      if (!*goes_on) record = RecordAt(at);
      if (!record.ok()) return record.status();
      if (record->empty()) return {};  // the file has changed
      if (!take(at, At<uint32_t>(*record, 0), *record)) return {};
    }
    at = next.at;
  }
  return {};
}

// Whether a record of this type comes behind all that says what the others mean.
bool PerfFile::Impl::IsEnoughFor(PerfOpen how, uint32_t type) const {
  const bool is_event =
      type < kPerfToolRecordsBegin || type == kPerfCompressed || type == kPerfCompressed2;
  return how == PerfOpen::kDefinitions && is_event && !events.empty();
}

Status PerfFile::Impl::Open(PerfOpen how) {
  auto bytes = window.At(0, kPerfHeaderBytes);
  if (!bytes.ok()) return bytes.status();
  const std::string shown = Printable(path);
  std::string head(*bytes);
  switch (FindPerfMagic(head)) {
    case PerfMagic::kThis:
      break;
    case PerfMagic::kNone:
      return Status::Corrupt(
          fmt::format("'{}' is no perf.data: it does not begin with PERFILE2", shown));
    case PerfMagic::kOtherByteOrder:
      turn = true;
      chain.SetTurn();
      head = TurnPerfHeader(head);
      break;
    case PerfMagic::kOld:
      return Status::Corrupt(
          fmt::format("'{}' is a perf.data of perf before Linux 2.6.37, which is not read", shown));
  }
  const auto header = ParsePerfHeader(head);
  if (!header)
    return Status::Corrupt(fmt::format(
        "'{}' has {} bytes and no whole header in them: it was cut, and nothing of it can be read",
        shown, size));
  facts.pipe = header->header_bytes == kPerfPipeHeaderBytes;
  begin = kPerfPipeHeaderBytes;
  end = first_end = size;
  if (Status status = facts.pipe ? Status() : ReadFileForm(*header); !status.ok()) return status;
  Status taken;
  const auto tool_records = [&](size_t, uint64_t at, uint32_t type, std::string_view record) {
    if (IsEnoughFor(how, type)) return false;
    if (type < kPerfToolRecordsBegin) return true;
    parsed_to = at + 1;
    taken = ParseToolRecord(at, HeaderOf(record));
    return taken.ok();
  };
  if (Status status = Walk(tool_records); !status.ok()) return status;
  if (!taken.ok()) return taken;
  if (events.empty())
    return Status::Corrupt(
        fmt::format("'{}' tells no events, so nothing in it can be understood: it ends too early, "
                    "or is damaged",
                    shown));
  LoadTracepoints();
  tracepoints.clear();
  turner.reset();  // it did not know the formats
  NameTracers();
  has_traces = has_traces || !facts.auxtrace_info.empty() || !aux.empty() ||
               std::any_of(events.begin(), events.end(), MayTrace);
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
    end = first_end = begin + header.records.bytes;
  }
  if (Status status = ReadAttributes(header); !status.ok()) return status;
  return ReadFeatures(header);
}

Result<std::string> PerfFile::Impl::ReadSection(const PerfSection& section) {
  if (section.offset > all_bytes) return std::string();
  std::string bytes(std::min({section.bytes, all_bytes - section.offset, kMostSectionBytes}), '\0');
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
  *ids = ReadPerfWords(*bytes, turn);
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
    const std::string raw = section->substr(at, each);
    const std::string bytes = turn ? TurnPerfAttribute(raw) : raw;
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
    const auto section = ParsePerfSection(*place, turn);
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
      whole = take(ParsePerfText(bytes, turn), &facts.host);
      break;
    case kPerfFeatureRelease:
      whole = take(ParsePerfText(bytes, turn), &facts.release);
      break;
    case kPerfFeatureVersion:
      whole = take(ParsePerfText(bytes, turn), &facts.version);
      break;
    case kPerfFeatureArchitecture:
      whole = take(ParsePerfText(bytes, turn), &facts.architecture);
      break;
    case kPerfFeatureCommand:
      whole = take(ParsePerfTexts(bytes, turn), &facts.command);
      break;
    case kPerfFeatureBuildId:
      whole = ParsePerfBuildIds(bytes, &facts.build_ids, turn);
      break;
    case kPerfFeatureTracers:
      whole = ParsePerfTracers(bytes, &tracers, turn);
      break;
    case kPerfFeatureTracingData:
      whole = ParsePerfTracingData(bytes, &tracepoints);
      break;
    case kPerfFeatureCompressed:
      // A version and how: perf stat record has the part, too, and 0 in it.
      facts.compressed = facts.compressed || At<uint32_t>(bytes, sizeof(uint32_t)) != 0;
      break;
    case kPerfFeatureEventDescription:
      whole = ParsePerfEventNames(bytes, &names, turn);
      NameEvents(names);
      break;
    case kPerfFeatureTraces:
      has_traces = true;
      break;
    case kPerfFeatureDirectory:
      has_thread_files = true;
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
      // Behind the record, or, of older simpleperf, in it.
      const auto bytes = At<uint32_t>(record.body, 0);
      auto section = record.body.size() >= sizeof bytes + uint64_t{bytes}
                         ? Result<std::string>(std::string(record.body.substr(sizeof bytes, bytes)))
                         : ReadSection({at + kRecordHeaderBytes + record.body.size(), bytes});
      if (!section.ok()) return section.status();
      if (!ParsePerfTracingData(*section, &tracepoints))
        Warn(fmt::format("the tracepoints' formats at {} are damaged", file->Where(at)));
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
    return Warn(fmt::format("the event's attributes at {} cannot be: the event is left out",
                            file->Where(at)));
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

// Each is kept once, however often the file is read. perf records a trace either so or in AUXTRACE.
void PerfFile::Impl::AddSampledTrace(const PerfRecordPlace& place, std::string_view bytes,
                                     PerfRecord* record) {
  const bool is_known = sampled_seen < sampled.size() && sampled[sampled_seen] == place.offset;
  const bool is_new = sampled.empty() || place.offset > sampled.back();
  if (place.compressed ||
      (is_new && (sampled.size() == kMostSampledTraces || aux.size() > sampled.size()))) {
    sampled_left_out += told_counts ? 0 : 1;
    return;
  }
  if (!is_known && !is_new) return;
  if (!is_known) {
    AuxTrace trace;
    trace.sampled = true;
    trace.time = record->time;
    trace.pid = record->pid;
    trace.tid = record->tid;
    trace.cpu = record->cpu;
    trace.bytes = record->aux.size();
    trace.file_offset = place.offset + static_cast<uint64_t>(record->aux.data() - bytes.data());
    uint64_t& next = sampled_offsets[record->cpu >= 0 ? record->cpu : -1 - int64_t{record->tid}];
    trace.offset = next;
    next += trace.bytes + 1;
    sampled.push_back(place.offset);
    aux.push_back(trace);
  }
  record->aux_trace = sampled_seen++;
}

void PerfFile::Impl::ParseAuxtrace(uint64_t at, const PerfRecord& record) {
  if (!sampled.empty()) return;
  PerfAuxtraceBody body;
  if (record.body.size() < sizeof body)
    return Warn(fmt::format("the AUXTRACE record at {} is too short", file->Where(at)));
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

// `take` is a ReadPlaced.
template <typename Take>
Status PerfFile::Impl::ForEach(const Take& take) {
  const PerfRecordParser parser(events);
  std::optional<PerfInflater> inflater;  // of the part that is read: each has a stream of its own
  size_t inflated_part = 0;
  uint64_t left_over_bytes = 0;
  Count unknown, contradicting, damaged;
  bool stopped = false;
  Status taken;
  PerfRecord record;
  const auto hand_out = [&](uint64_t at, std::string_view bytes, bool compressed) {
    if (compressed && turn) bytes = Turned(bytes);
    const auto type = At<uint32_t>(bytes, 0);
    if (IsSimpleperfRecord(type)) record = HeaderOf(bytes);
    if (!IsSimpleperfRecord(type) && !parser.Parse(bytes, &record)) {
      contradicting.Add(at, At<uint32_t>(bytes, 0));
      return true;
    }
    if (!IsKnownType(record.type)) unknown.Add(at, record.type);
    const PerfRecordPlace place{at, static_cast<uint32_t>(bytes.size()), compressed || turn};
    if (!record.aux.empty()) AddSampledTrace(place, bytes, &record);
    stopped = !take(record, place, bytes);
    return !stopped;
  };
  sampled_seen = 0;
  std::string copy;  // of what is inflated, where its records are turned around meanwhile
  const auto inflate = [&](size_t part, uint64_t at, std::string_view compressed) {
    if (turn) compressed = copy = compressed;
    if (!inflater || inflated_part != part) {
      left_over_bytes += inflater ? inflater->left_over_bytes() : 0;
      inflater.emplace(turn);
      inflated_part = part;
    }
    const auto outcome = inflater->Feed(
        compressed, [&](std::string_view bytes) { return hand_out(at, bytes, true); });
    if (outcome == PerfInflater::Outcome::kDamaged) damaged.Add(at, kPerfCompressed);
    return !stopped;
  };
  const Status status = Walk([&](size_t part, uint64_t at, uint32_t type, std::string_view bytes) {
    const std::string_view body = bytes.substr(kRecordHeaderBytes);
    if (type >= kPerfToolRecordsBegin && at >= parsed_to) {
      parsed_to = at + 1;
      came_late = came_late || IsDefinition(type) || (IsOfTraces(type) && !has_traces);
      taken = ParseToolRecord(at, HeaderOf(bytes));
      if (!taken.ok()) return false;
    }
    if (type == kPerfCompressed) return inflate(part, at, body);
    if (type == kPerfCompressed2)
      return inflate(
          part, at, body.substr(std::min<size_t>(8, body.size())).substr(0, At<uint64_t>(body, 0)));
    return hand_out(at, bytes, false);
  });
  if (!taken.ok()) return taken;
  if (stopped || told_counts) return status;
  told_counts = true;
  WarnOfCounts(unknown, contradicting);
  if (sampled_left_out > 0)
    Warn(
        fmt::format("the traces in {} samples are not read: they are compressed, of the other byte "
                    "order or too many",
                    sampled_left_out));
  if (damaged.count > 0)
    Warn(
        fmt::format("the compressed record at {} is damaged: what was compressed from there "
                    "on, {} records, is not read",
                    file->Where(damaged.first_at), damaged.count));
  left_over_bytes += inflater ? inflater->left_over_bytes() : 0;
  if (damaged.count == 0 && left_over_bytes > 0)
    Warn(fmt::format("the compressed records end in the middle of a record: {} bytes are left over",
                     left_over_bytes));
  return status;
}

void PerfFile::Impl::WarnOfCounts(const Count& unknown, const Count& contradicting) {
  if (unknown.count > 0)
    Warn(
        fmt::format("{} records are of types that are not known, the first, of type {}, at {}: a "
                    "newer perf wrote them, or the file is damaged",
                    unknown.count, unknown.first_type, file->Where(unknown.first_at)));
  if (contradicting.count > 0)
    Warn(fmt::format(
        "{} records contradict their own sizes, the first, of type {}, at {}: they are "
        "left out",
        contradicting.count, contradicting.first_type, file->Where(contradicting.first_at)));
}

// Of a folder's file that has the header alone, little of what was recorded.
void PerfFile::Impl::WarnOfOtherParts(FileSystem& files) {
  if (!has_thread_files || file->parts().size() > 1) return;
  const std::string folder = files.IsFolder(path) ? path : FolderOf(path);
  const std::vector<std::string> others = ThreadFiles(files, folder);
  const std::string count =
      fmt::format("{} other file{}", others.size(), others.size() == 1 ? "" : "s");
  if (others.empty())
    Warn(
        fmt::format("perf record --threads wrote most records into files 'data.0' and so on, none "
                    "of which is in '{}'",
                    Printable(folder)));
  else
    Warn(
        fmt::format("perf record --threads wrote most records into {}, '{}' and so on: name the "
                    "folder, '{}', to read all",
                    count, others.front(), Printable(folder)));
}

Result<std::unique_ptr<PerfFile>> PerfFile::Open(FileSystem& files, const std::string& path,
                                                 PerfOpen how) {
  if (files.IsFolder(path) && !files.Exists(path + "/" + kHeaderFile))
    return Status::Usage(
        fmt::format("'{}' is a folder, and has no file '{}', as those of perf record --threads do",
                    Printable(path), kHeaderFile));
  auto parts = OpenAll(files, path);
  if (!parts.ok()) return parts.status();
  auto impl = std::make_unique<Impl>(std::move(*parts), path);
  if (Status status = impl->Open(how); !status.ok()) return status;
  impl->WarnOfOtherParts(files);
  return std::unique_ptr<PerfFile>(new PerfFile(std::move(impl)));
}

PerfFile::PerfFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PerfFile::~PerfFile() = default;

const std::vector<PerfEvent>& PerfFile::events() const { return impl_->events; }
bool PerfFile::came_late() const { return impl_->came_late; }
uint64_t PerfFile::bytes() const { return impl_->all_bytes; }
const PerfFileFacts& PerfFile::facts() const { return impl_->facts; }
const std::vector<AuxTrace>& PerfFile::aux() const { return impl_->aux; }
bool PerfFile::has_traces() const { return impl_->has_traces; }
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

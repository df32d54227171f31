#include "export/ctf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "export/ctf_environment.h"
#include "export/ctf_metadata.h"
#include "export/ctf_notes.h"
#include "export/ctf_streams.h"
#include "export/ctf_text.h"
#include "export/trace_facts.h"

namespace hangscope {
namespace {

constexpr uint32_t kNoClass = ~uint32_t{0};
constexpr unsigned kHasTask = 1, kIsAmbiguous = 2;  // flags of a class
constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();
constexpr size_t kMostOfTrackName = 200;  // it is in each packet
constexpr size_t kTaskBytes = 8;
constexpr size_t kAmbiguousBytes = 1;
constexpr size_t kMostEmptyTexts = 64;
constexpr size_t kMostClassesOfKind = 1024;

struct FieldCode {
  bool is_text = false;
  uint8_t bytes = 0;
  uint64_t bias = 0;    // brings the least value of a field with a sign to 0
  uint64_t beyond = 0;  // bits that no value of the field has then
};

// How the events of a kind become bytes.
struct KindCode {
  std::optional<CtfNoteKind> note = {};  // else:
  size_t number = 0;                     // of TraceHead::kinds
  std::vector<FieldCode> fields;
  bool enters_function = false;
  bool has_texts = false;
  size_t fixed_bytes = 0;  // of its numbers
  // with all fields, no text of them empty; by ClassFlags
  uint32_t classes[4] = {kNoClass, kNoClass, kNoClass, kNoClass};
  // by flags, fields, empty texts
  std::map<std::tuple<unsigned, size_t, uint64_t>, uint32_t> other_classes;
};

FieldCode CodeOf(const TraceField& field) {
  FieldCode code;
  code.is_text = field.type == TraceFieldType::kText;
  if (code.is_text) return code;
  const int bits = CtfBits(field);
  code.bytes = static_cast<uint8_t>(bits / 8);
  if (field.type == TraceFieldType::kSigned && bits < 64) code.bias = uint64_t{1} << (bits - 1);
  code.beyond = bits == 64 ? 0 : ~uint64_t{0} << bits;
  return code;
}

KindCode CodeOf(const TraceEventKind& kind) {
  KindCode code;
  code.enters_function = kind.meaning == TraceMeaning::kFunctionEnter;
  for (const TraceField& field : kind.fields) {
    code.fields.push_back(CodeOf(field));
    code.fixed_bytes += code.fields.back().bytes;
    code.has_texts = code.has_texts || code.fields.back().is_text;
  }
  code.has_texts = code.has_texts || code.enters_function;
  return code;
}

unsigned ClassFlags(const TraceEvent& event) {
  return (event.task ? kHasTask : 0) | (event.ambiguous ? kIsAmbiguous : 0);
}

// How many of the kind's fields the record has.
size_t KnownFields(const KindCode& code, const TraceEvent& event) {
  const size_t most = std::min(code.fields.size(), event.values.size());
  size_t known = 0;
  while (known < most && event.values[known].known) ++known;
  return known;
}

template <typename T>
char* PutNumber(char* at, T number) {
  std::memcpy(at, &number, sizeof number);
  return at + sizeof number;
}

char* PutText(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  at[text.size()] = '\0';
  return at + text.size() + 1;
}

CtfUuid RandomUuid() {
  std::random_device random;
  CtfUuid uuid;
  for (uint8_t& byte : uuid) byte = static_cast<uint8_t>(random());
  uuid[6] = (uuid[6] & 0x0f) | 0x40;  // version 4
  uuid[8] = (uuid[8] & 0x3f) | 0x80;
  return uuid;
}

// A class of events as it is known while they are written: the kind by its number, since there may
// become more.
struct ClassKey {
  std::optional<CtfNoteKind> note;  // else:
  size_t kind = 0;                  // of TraceHead::kinds
  unsigned flags = 0;
  size_t fields = 0;
};

}  // namespace

struct CtfWriter::Impl {
  Impl(FileSystem& files_to_use, std::string folder_to_use)
      : files(files_to_use), folder(std::move(folder_to_use)), uuid(RandomUuid()) {
    for (size_t i = 0; i < kCtfNoteKinds; ++i) {
      note_codes[i] = CodeOf(KindOfNote(static_cast<CtfNoteKind>(i)));
      note_codes[i].note = static_cast<CtfNoteKind>(i);
    }
  }

  Status Begin(const TraceHead& trace);
  Status CheckEmpty();
  KindCode& CodeOfKind(size_t kind);
  uint64_t TimeOf(TimeNs time) const {
    return static_cast<uint64_t>(std::clamp<TimeNs>(time, 0, latest));
  }
  uint64_t Place(size_t track, TimeNs time);
  uint32_t ClassOf(KindCode* code, unsigned flags, size_t known, uint64_t empty_texts);
  uint64_t CollectTexts(const KindCode& code, const TraceEvent& event, size_t known, size_t* bytes);
  bool Put(KindCode* code, const TraceEvent& event);
  char* PutFields(const KindCode& code, const TraceEvent& event, size_t known, char* at);
  bool PutNotes(size_t track, TimeNs until);
  CtfDescription Describe(const TraceEnd& end) const;

  FileSystem& files;
  const std::string folder;
  const CtfUuid uuid;
  const TraceHead* head = nullptr;
  TimeNs latest = 0;  // that CTF's readers can still add to the clock's offset
  std::unique_ptr<CtfStreams> streams;
  std::vector<KindCode> codes;  // of head->kinds, as far as events of them came
  std::array<KindCode, kCtfNoteKinds> note_codes;
  std::vector<ClassKey> classes;
  CtfWindowNotes notes;
  std::vector<size_t> next_note;  // of each track
  std::vector<TimeNs> next_note_time;
  CtfTally tally;
  // Of the event that is being written.
  std::vector<std::string_view> texts;
  std::deque<std::string> made_texts;
};

// Nobody's files are overwritten, and what another trace left would belong to this one.
Status CtfWriter::Impl::CheckEmpty() {
  if (files.Exists(folder) && !files.IsFolder(folder)) {
    return Status::Usage(fmt::format(
        "cannot write a CTF trace to '{}': it is a file, and a trace is a folder; name another",
        folder));
  }
  if (files.List(folder).empty()) return {};
  return Status::Usage(
      fmt::format("cannot write a CTF trace to '{}': it is not empty, and a trace has a folder of "
                  "its own; remove it or name another",
                  folder));
}

Status CtfWriter::Impl::Begin(const TraceHead& trace) {
  if (Status status = CheckEmpty(); !status.ok()) return status;
  if (!files.IsFolder(folder)) {
    Status status = files.MakeFolder(folder, FileSystem::Mode::kNew);
    if (!status.ok()) return status;
  }
  head = &trace;
  const TimeNs offset = trace.counts_clock ? 0 : trace.wall_minus_monotonic;
  latest = std::numeric_limits<TimeNs>::max() - 1 - std::max<TimeNs>(offset, 0);
  streams = std::make_unique<CtfStreams>(files, folder, uuid);
  for (const TraceTrack& track : trace.tracks) {
    const std::string fallback =
        fmt::format("{} {}", RingKindName(track.ring.kind), track.ring.number);
    const auto cpu =
        std::clamp<int64_t>(track.ring.number, 0, std::numeric_limits<uint32_t>::max());
    streams->AddTrack(static_cast<uint32_t>(cpu),
                      Printable(track.name.empty() ? fallback : track.name, kMostOfTrackName) +
                          TimesRemark(trace));
  }
  notes = NotesOfWindow(trace);
  tally.notes_elsewhere = notes.elsewhere;
  next_note.assign(notes.tracks.size(), 0);
  next_note_time.clear();
  for (const auto& of_track : notes.tracks)
    next_note_time.push_back(of_track.empty() ? kNever : of_track.front().event.time);
  return {};
}

KindCode& CtfWriter::Impl::CodeOfKind(size_t kind) {
  while (codes.size() <= kind) {
    codes.push_back(CodeOf(head->kinds[codes.size()]));
    codes.back().number = codes.size() - 1;
  }
  return codes[kind];
}

uint64_t CtfWriter::Impl::Place(size_t track, TimeNs time) {
  const uint64_t placed = std::max(TimeOf(time), streams->last(track));
  if (placed != static_cast<uint64_t>(time)) ++tally.times_moved;
  return placed;
}

uint32_t CtfWriter::Impl::ClassOf(KindCode* code, unsigned flags, size_t known,
                                  uint64_t empty_texts) {
  uint32_t* found = nullptr;
  if (known == code->fields.size() && empty_texts == 0) {
    found = &code->classes[flags];
  } else {
    if (code->other_classes.size() >= kMostClassesOfKind) empty_texts = 0;
    found = &code->other_classes.try_emplace({flags, known, empty_texts}, kNoClass).first->second;
  }
  if (*found == kNoClass) {
    *found = static_cast<uint32_t>(classes.size());
    classes.push_back({code->note, code->number, flags, known});
  }
  return *found;
}

// Into `texts`, in their order; *bytes grows by theirs. Returns which of them are empty:
// babeltrace2 up to 2.0 takes an empty text for that of the event of the class before. In a class
// of its own that one is empty, too.
uint64_t CtfWriter::Impl::CollectTexts(const KindCode& code, const TraceEvent& event, size_t known,
                                       size_t* bytes) {
  texts.clear();
  uint64_t empty = 0;
  const auto add = [&](std::string_view text) {
    if (made_texts.size() <= texts.size()) made_texts.emplace_back();
    texts.push_back(CtfString(text, &made_texts[texts.size()]));
    if (text.empty() && texts.size() <= kMostEmptyTexts) empty |= uint64_t{1} << (texts.size() - 1);
    *bytes += texts.back().size() + 1;
  };
  if (code.enters_function) {
    add(event.what);
    add(event.where);
  }
  for (size_t i = 0; i < known; ++i) {
    if (code.fields[i].is_text) add(event.values[i].text);
  }
  return empty;
}

char* CtfWriter::Impl::PutFields(const KindCode& code, const TraceEvent& event, size_t known,
                                 char* at) {
  size_t text = 0;
  if (code.enters_function) {
    at = PutText(at, texts[text++]);
    at = PutText(at, texts[text++]);
  }
  for (size_t i = 0; i < known; ++i) {
    const FieldCode& field = code.fields[i];
    if (field.is_text) {
      at = PutText(at, texts[text++]);
      continue;
    }
    const uint64_t value = event.values[i].bits;
    if (((value + field.bias) & field.beyond) != 0) ++tally.values_cut;
    std::memcpy(at, &value, sizeof value);
    at += field.bytes;
  }
  return at;
}

bool CtfWriter::Impl::Put(KindCode* code, const TraceEvent& event) {
  const size_t known = KnownFields(*code, event);
  const unsigned flags = ClassFlags(event);
  size_t bytes = CtfStreams::kEventHeaderBytes + (flags & kHasTask ? kTaskBytes : 0) +
                 (flags & kIsAmbiguous ? kAmbiguousBytes : 0);
  for (size_t i = 0; known != code->fields.size() && i < known; ++i) bytes += code->fields[i].bytes;
  if (known == code->fields.size()) bytes += code->fixed_bytes;
  const uint64_t empty_texts = code->has_texts ? CollectTexts(*code, event, known, &bytes) : 0;
  const uint32_t id = ClassOf(code, flags, known, empty_texts);
  const uint64_t time = Place(event.track, event.time);
  char* at = streams->Begin(event.track, time, bytes);
  if (at == nullptr) return false;
  at = PutNumber(PutNumber(at, id), time);
  if (flags & kHasTask) at = PutNumber(at, *event.task);
  if (flags & kIsAmbiguous) at = PutNumber(at, uint8_t{1});
  PutFields(*code, event, known, at);
  return true;
}

// Those that begin no later than `until`.
bool CtfWriter::Impl::PutNotes(size_t track, TimeNs until) {
  const std::vector<CtfNote>& of_track = notes.tracks[track];
  size_t& next = next_note[track];
  for (; next < of_track.size() && of_track[next].event.time <= until; ++next) {
    // A note has its times in its fields: that it is moved is no news.
    TraceEvent event = of_track[next].event;
    event.time = static_cast<TimeNs>(std::max(TimeOf(event.time), streams->last(track)));
    if (!Put(&note_codes[static_cast<size_t>(of_track[next].kind)], event)) return false;
  }
  next_note_time[track] = next < of_track.size() ? of_track[next].event.time : kNever;
  return true;
}

CtfDescription CtfWriter::Impl::Describe(const TraceEnd& end) const {
  CtfDescription trace;
  trace.uuid = uuid;
  trace.counts_clock = head->counts_clock;
  trace.times = TimesText(*head);
  trace.offset = head->counts_clock ? 0 : head->wall_minus_monotonic;
  if (head->window) trace.clock_error = head->window->clock_error;
  trace.environment = EnvironmentOf(*head, end, tally);
  trace.tasks = end.tasks;
  trace.tasks.insert(head->tasks.begin(), head->tasks.end());
  for (const ClassKey& key : classes) {
    const TraceEventKind& kind = key.note ? KindOfNote(*key.note) : head->kinds[key.kind];
    const size_t before = CtfFields(kind).size() - kind.fields.size();
    trace.classes.push_back(
        {&kind, (key.flags & kHasTask) != 0, (key.flags & kIsAmbiguous) != 0, before + key.fields});
  }
  return trace;
}

CtfWriter::CtfWriter(FileSystem& files, std::string folder)
    : impl_(std::make_unique<Impl>(files, std::move(folder))) {}
CtfWriter::~CtfWriter() = default;

Status CtfWriter::Begin(const TraceHead& head) { return impl_->Begin(head); }

Status CtfWriter::Write(const TraceEvent& event) {
  Impl& to = *impl_;
  if (event.track >= to.streams->size() || event.kind >= to.head->kinds.size()) {
    return Status::Corrupt(fmt::format(
        "an event of track {} and kind {} is of none of the trace's {} tracks and {} kinds",
        event.track, event.kind, to.streams->size(), to.head->kinds.size()));
  }
  if (event.time >= to.next_note_time[event.track] && !to.PutNotes(event.track, event.time))
    return to.streams->failure();
  ++to.tally.events;
  return to.Put(&to.CodeOfKind(event.kind), event) ? Status() : to.streams->failure();
}

Status CtfWriter::Write(const TraceLoss& loss) {
  Impl& to = *impl_;
  if (loss.track >= to.streams->size())
    return Status::Corrupt(fmt::format("a loss of track {} is of none of the trace's {} tracks",
                                       loss.track, to.streams->size()));
  if (!to.PutNotes(loss.track, loss.time.from)) return to.streams->failure();
  const uint64_t from = std::max(to.TimeOf(loss.time.from), to.streams->last(loss.track));
  const uint64_t until = std::max(to.TimeOf(loss.time.to), from);
  const bool is_counted = loss.unit == AmountUnit::kRecords && loss.amount != 0;
  ++to.tally.losses;
  if (!is_counted) ++to.tally.losses_of_unknown_amount;
  if (loss.unit == AmountUnit::kBytes) to.tally.bytes_lost += loss.amount;
  if (Status status = to.streams->Discard(loss.track, from, until, is_counted ? loss.amount : 1);
      !status.ok())
    return status;
  CtfNote note = NoteOf(loss);
  note.event.time = static_cast<TimeNs>(until);
  return to.Put(&to.note_codes[static_cast<size_t>(note.kind)], note.event) ? Status()
                                                                            : to.streams->failure();
}

Status CtfWriter::End(const TraceEnd& end) {
  Impl& to = *impl_;
  for (size_t track = 0; track < to.streams->size(); ++track) {
    if (!to.PutNotes(track, std::numeric_limits<TimeNs>::max())) return to.streams->failure();
  }
  if (Status status =
          to.streams->Finish(to.TimeOf(to.head->time.from), to.TimeOf(to.head->time.to));
      !status.ok())
    return status;
  return WriteWholeFile(to.files, to.folder + "/metadata", CtfMetadata(to.Describe(end)));
}

}  // namespace hangscope

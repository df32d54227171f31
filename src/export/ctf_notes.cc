#include "export/ctf_notes.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "export/trace_facts.h"

namespace hangscope {
namespace {

TraceField Time(const char* name) { return {name, TraceFieldType::kSigned, 64, {}}; }
TraceField Count(const char* name) { return {name, TraceFieldType::kUnsigned, 64, {}}; }

TraceField Reason() {
  TraceField field{"reason", TraceFieldType::kUnsigned, 8, {}};
  for (auto reason = GapReason::kOverwritten; reason <= GapReason::kNotRecorded;
       reason = static_cast<GapReason>(static_cast<int>(reason) + 1)) {
    field.names.emplace_back(static_cast<uint64_t>(reason), GapReasonName(reason));
  }
  return field;
}

TraceField Unit() {
  return {"unit",
          TraceFieldType::kUnsigned,
          8,
          {{static_cast<uint64_t>(AmountUnit::kUnknown), "unknown"},
           {static_cast<uint64_t>(AmountUnit::kBytes), "bytes"},
           {static_cast<uint64_t>(AmountUnit::kRecords), "records"}}};
}

TraceEventKind Kind(const char* name, std::vector<TraceField> fields) {
  TraceEventKind kind;
  kind.name = name;
  kind.fields = std::move(fields);
  return kind;
}

TraceValue Value(uint64_t bits) { return {bits, {}, true}; }
TraceValue Value(TimeNs time) { return Value(static_cast<uint64_t>(time)); }
template <typename Enumeration>
TraceValue ValueOf(Enumeration value) {
  return Value(static_cast<uint64_t>(value));
}

CtfNote Note(CtfNoteKind kind, size_t track, TimeNs time, std::vector<TraceValue> values) {
  CtfNote note;
  note.kind = kind;
  note.event.track = track;
  note.event.time = time;
  note.event.values = std::move(values);
  return note;
}

std::vector<TraceValue> Missing(const TimeSpan& time, GapReason reason, uint64_t amount,
                                AmountUnit unit) {
  return {Value(time.from), Value(time.to), ValueOf(reason), Value(amount), ValueOf(unit)};
}

void AddNote(const CtfNote& note, const std::vector<size_t>& tracks, CtfWindowNotes* notes) {
  if (tracks.empty()) ++notes->elsewhere;
  for (const size_t track : tracks) {
    notes->tracks[track].push_back(note);
    notes->tracks[track].back().event.track = track;
  }
}

}  // namespace

const TraceEventKind& KindOfNote(CtfNoteKind kind) {
  static const std::array<TraceEventKind, kCtfNoteKinds> kKinds = {
      Kind("hangscope:lost", {Time("from"), Time("to"), Reason(), Count("amount"), Unit()}),
      Kind("hangscope:gap", {Time("from"), Time("to"), Reason(), Count("amount"), Unit()}),
      Kind("hangscope:stale", {Time("from"), Time("to"), Count("bytes"), Time("age")})};
  return kKinds[static_cast<size_t>(kind)];
}

CtfNote NoteOf(const TraceLoss& loss) {
  return Note(CtfNoteKind::kLost, loss.track, loss.time.to,
              Missing(loss.time, loss.reason, loss.amount, loss.unit));
}

CtfWindowNotes NotesOfWindow(const TraceHead& head) {
  CtfWindowNotes notes;
  notes.tracks.resize(head.tracks.size());
  if (!head.window) return notes;
  std::vector<std::vector<size_t>> tracks;
  for (const RingCoverage& ring : head.window->rings) tracks.push_back(TracksOf(head, ring.ring));
  for (const Gap& gap : head.window->gaps) {
    CtfNote note = Note(CtfNoteKind::kGap, 0, gap.time.from,
                        Missing(gap.time, gap.reason, gap.amount, gap.unit));
    note.event.task = gap.task;
    AddNote(note, gap.ring < tracks.size() ? tracks[gap.ring] : std::vector<size_t>(), &notes);
  }
  for (size_t ring = 0; ring < tracks.size(); ++ring) {
    for (const StaleSpan& span : head.window->rings[ring].stale) {
      AddNote(
          Note(CtfNoteKind::kStale, 0, span.time.from,
               {Value(span.time.from), Value(span.time.to), Value(span.bytes), Value(span.age)}),
          tracks[ring], &notes);
    }
  }
  for (std::vector<CtfNote>& track : notes.tracks) {
    std::stable_sort(track.begin(), track.end(), [](const CtfNote& a, const CtfNote& b) {
      return a.event.time < b.event.time;
    });
  }
  return notes;
}

}  // namespace hangscope

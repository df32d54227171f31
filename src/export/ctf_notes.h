// What a CTF trace says of itself, in events among those that were recorded: what was lost, and
// where its window has gaps or holds what is stale.
#ifndef HANGSCOPE_EXPORT_CTF_NOTES_H
#define HANGSCOPE_EXPORT_CTF_NOTES_H

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace hangscope {

enum class CtfNoteKind { kLost, kGap, kStale };
inline constexpr size_t kCtfNoteKinds = 3;

// "hangscope:lost", "hangscope:gap", "hangscope:stale".
const TraceEventKind& KindOfNote(CtfNoteKind kind);

struct CtfNote {
  CtfNoteKind kind = CtfNoteKind::kLost;
  TraceEvent event;  // its kind is not used
};

CtfNote NoteOf(const TraceLoss& loss);

struct CtfWindowNotes {
  std::vector<std::vector<CtfNote>> tracks;  // of each, by time
  int64_t elsewhere = 0;                     // of rings that are no track of the trace
};

CtfWindowNotes NotesOfWindow(const TraceHead& head);

}  // namespace hangscope

#endif

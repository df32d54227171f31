// How a picture of a trace calls what it shows.
#ifndef HANGSCOPE_EXPORT_TIMELINE_WORDS_H
#define HANGSCOPE_EXPORT_TIMELINE_WORDS_H

#include <cstdint>
#include <optional>
#include <string>

#include "export/timeline_rows.h"

namespace hangscope {

// Of what events of this kind begin or end, by their names: "irq:irq_handler_entry",
// "raw_syscalls:sys_exit".
SliceState SliceStateOf(const TraceEventKind& kind);

TimelineGap GapOf(GapReason reason, uint64_t amount, AmountUnit unit);

// The event's fields and place.
TimelineArguments ArgumentsOf(const TraceEvent& event, const TraceEventKind& kind);

// Of somebody who waits for that.
std::string WaitingFor(const std::string& what);

// How somebody is drawn who stands so at the end; nothing: as before.
std::optional<TimelineSlice> StandingSlice(const TraceStanding& standing);

}  // namespace hangscope

#endif

// What is known of a recording as a whole, as names and texts: for formats that have a place for
// remarks.
#ifndef HANGSCOPE_EXPORT_TRACE_FACTS_H
#define HANGSCOPE_EXPORT_TRACE_FACTS_H

#include <string>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace hangscope {

using TraceFacts = std::vector<std::pair<std::string, std::string>>;

// What a time is: of which clock, and what a nanosecond stands for where it is none.
std::string TimesText(const TraceHead& head);
// Behind a name that a viewer always shows: " (times are bytes of the stream)"; empty where they
// are times.
std::string TimesRemark(const TraceHead& head);

// "/soc/host: looping since cycle 284564".
std::string SinceText(const TraceSinceCycle& since);

// Between what somebody does and what it waits for: who is halted was so while it waited.
std::string WaitWord(const TraceStanding& standing);

// The tracks that a ring of the window is about: of a stream those of all its cores, else one.
// Empty: none.
std::vector<size_t> TracksOf(const TraceHead& head, const RingName& ring);

// Known at the begin: verdict, program, machine, the window, what times mean.
TraceFacts FactsOf(const TraceHead& head);
// At the end: counts; what could not be read, and what contradicts itself (`contradictions`), one
// fact each.
TraceFacts FactsOf(const TraceEnd& end, const std::vector<std::string>& contradictions);

}  // namespace hangscope

#endif

// What is known of a recording as a whole, as names and texts: for formats that have a place for remarks.
#ifndef HANGSCOPE_EXPORT_TRACE_FACTS_H
#define HANGSCOPE_EXPORT_TRACE_FACTS_H

#include <string>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace hangscope {

using TraceFacts = std::vector<std::pair<std::string, std::string>>;

// Known at the begin: verdict, program, machine, the window, what times mean.
TraceFacts FactsOf(const TraceHead& head);
// At the end: counts; what could not be read, and what contradicts itself (`contradictions`), one fact each.
TraceFacts FactsOf(const TraceEnd& end, const std::vector<std::string>& contradictions);

}  // namespace hangscope

#endif

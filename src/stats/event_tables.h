// Numbers of events as hangscope show --stats and a report's page have them.
#ifndef HANGSCOPE_STATS_EVENT_TABLES_H
#define HANGSCOPE_STATS_EVENT_TABLES_H

#include <string>
#include <vector>

#include "model/number_table.h"
#include "scope/scope_view.h"
#include "scope/watch_names.h"
#include "stats/event_stats.h"

namespace hangscope {

// Of the events of all cores; takes them.
EventStats TakeEventStats(ScopeView& view);

// Empty where there are no events.
std::vector<NumberTable> EventTables(const EventStats& stats, const ScopeLayout& layout,
                                     const WatchNames& names);
// As lines.
std::string TablesText(const std::vector<NumberTable>& tables);
// One line (docs/json.md).
std::string EventStatsJson(const EventStats& stats, const ScopeLayout& layout);

}  // namespace hangscope

#endif

// What code costs, as a table for people and as JSON.
#ifndef HANGSCOPE_TOOLS_COST_TABLE_H
#define HANGSCOPE_TOOLS_COST_TABLE_H

#include <string>

#include "model/cost.h"

namespace hangscope {

// A heading, a line for each hart that entered, and one for all where there are several.
std::string CostTable(const CostReport& report);
// One object, docs/hangscope-cost.md.
std::string CostJson(const CostReport& report);

}  // namespace hangscope

#endif

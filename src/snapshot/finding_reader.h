// A finding as verdict/json.h writes it, read back.
#ifndef HANGSCOPE_SNAPSHOT_FINDING_READER_H
#define HANGSCOPE_SNAPSHOT_FINDING_READER_H

#include <nlohmann/json_fwd.hpp>

#include "model/report.h"

namespace hangscope {

// Anybody may have written it: what is absent, of another type or out of range is nothing. A kind
// that this hangscope does not know keeps its name.
ReportFinding ReadFinding(const nlohmann::json& json);

}  // namespace hangscope

#endif

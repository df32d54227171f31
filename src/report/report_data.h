// The data of a report page as JSON: docs/report-data.md.
#ifndef HANGSCOPE_REPORT_REPORT_DATA_H
#define HANGSCOPE_REPORT_REPORT_DATA_H

#include <string>
#include <string_view>

#include "model/report.h"

namespace hangscope {

// One object, one line, no newline. `<` is written \u003c and what is no UTF-8 replaced, so that it
// may stand in a page.
std::string ReportDataJson(const Report& report);

// RFC 4648, with padding.
std::string Base64(std::string_view bytes);

}  // namespace hangscope

#endif

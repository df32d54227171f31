// A few lines of the source that a place names.
#ifndef HANGSCOPE_REPORT_SOURCE_EXCERPT_H
#define HANGSCOPE_REPORT_SOURCE_EXCERPT_H

#include <optional>
#include <string>

#include "model/report.h"
#include "scope/watch_names.h"

namespace hangscope {

// The lines around `where.line`. The path comes from the target, so nothing is read but plain files
// of moderate size whose names end as sources' do. Nothing: there is no such file here, or no such
// line in it.
std::optional<ReportExcerpt> ReadSourceExcerpt(const SourceLine& where);

}  // namespace hangscope

#endif

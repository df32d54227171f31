// `hangscope report HUNG --against HEALTHY`: where each core of the one left the way of the
// other's.
#ifndef HANGSCOPE_REPORT_REPORT_DIVERGENCE_H
#define HANGSCOPE_REPORT_REPORT_DIVERGENCE_H

#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/report.h"
#include "perf/code/code_places.h"
#include "scope/scope_view.h"

namespace hangscope {

// Adds the report's divergence; the report is of `hung`, and has its tracks. Times of the hung run
// count from its end, those of the healthy one from its own. Fails where one of both cannot be
// read.
Status AddDivergence(FileSystem& files, Clock& clock, const ScopeSource& hung,
                     const ScopeSource& healthy, const CodePlaces& code, Report* report);

// The same in lines, for a terminal: those that diverge, as many as are worth a screen.
std::string DivergenceText(const ReportDivergence& divergence);

}  // namespace hangscope

#endif

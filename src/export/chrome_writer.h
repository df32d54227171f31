// A trace as Chrome's JSON ("Trace Event Format"): opened by chrome://tracing, ui.perfetto.dev,
// speedscope and others. docs/exports.md says what is drawn as what. Times are microseconds with
// three decimals, monotonic.
#ifndef HANGSCOPE_EXPORT_CHROME_WRITER_H
#define HANGSCOPE_EXPORT_CHROME_WRITER_H

#include <memory>

#include "base/file_system.h"
#include "export/trace_writer.h"

namespace hangscope {

// `file` outlives it.
std::unique_ptr<TraceWriter> MakeChromeWriter(File& file);

}  // namespace hangscope

#endif

// A trace as Perfetto's own format: one protobuf message `Trace` (perfetto/protos/perfetto/trace),
// of packets that define tracks and tell of events on them. Opened by ui.perfetto.dev and
// trace_processor. docs/exports.md says what is drawn as what.
//
// Texts that come again and again (names, categories, names of arguments) are interned: told once
// with a number. All packets are of one sequence, so that the numbers hold for all; where there are
// too many, they are told anew.
#ifndef HANGSCOPE_EXPORT_PERFETTO_WRITER_H
#define HANGSCOPE_EXPORT_PERFETTO_WRITER_H

#include <memory>

#include "base/file_system.h"
#include "export/trace_writer.h"

namespace hangscope {

// `file` outlives it.
std::unique_ptr<TraceWriter> MakePerfettoWriter(File& file);

}  // namespace hangscope

#endif

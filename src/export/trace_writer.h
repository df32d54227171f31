// Writes a trace in some format. Calls come in this order: Begin, any number of Write, End.
#ifndef HANGSCOPE_EXPORT_TRACE_WRITER_H
#define HANGSCOPE_EXPORT_TRACE_WRITER_H

#include "base/status.h"
#include "model/trace.h"

namespace hangscope {

// One thread. Memory does not grow with the number of events. Every call fails with one sentence
// where its output cannot be written; nothing is to be called behind that.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  // `head` outlives the writer; its kinds may become more until End.
  virtual Status Begin(const TraceHead& head) = 0;
  // Over all tracks in the order of time, those of one track strictly so.
  virtual Status Write(const TraceEvent& event) = 0;
  // At the time when it is known: not before what was lost would have come.
  virtual Status Write(const TraceLoss& loss) = 0;
  virtual Status End(const TraceEnd& end) = 0;
};

}  // namespace hangscope

#endif

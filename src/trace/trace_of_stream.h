// A recorded stream with the instruction trace of a simulator as a trace: the functions of its
// cores.
#ifndef HANGSCOPE_TRACE_TRACE_OF_STREAM_H
#define HANGSCOPE_TRACE_TRACE_OF_STREAM_H

#include <memory>
#include <string>

#include "trace/trace_source.h"

namespace hangscope {

struct StreamPart {
  std::string name;    // "stdout"; of a log, its file's
  std::string prefix;  // of a ring's files, for BlockReader; empty: `log`
  std::string log;     // a file of lines
};

// Makes traces of streams. One thread.
class StreamTracer {
 public:
  virtual ~StreamTracer() = default;
  // Null where the stream's lines are no instruction trace. Fails where they are one, and no trace
  // can be made of it.
  virtual Result<std::unique_ptr<TraceSource>> Open(FileSystem& files, const StreamPart& part,
                                                    const TraceRequest& request) = 0;
};

// Functions by the symbols of `request.source.elf`, or as the trace names them (gvsoc).
std::unique_ptr<StreamTracer> MakeStreamTracer();

}  // namespace hangscope

#endif

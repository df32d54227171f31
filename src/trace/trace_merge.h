// Several traces as one, in the order of time; and a trace without what nobody asked for.
#ifndef HANGSCOPE_TRACE_TRACE_MERGE_H
#define HANGSCOPE_TRACE_TRACE_MERGE_H

#include <memory>
#include <vector>

#include "trace/trace_source.h"

namespace hangscope {

struct TracePart {
  std::unique_ptr<TraceSource> source;
  // added to the numbers of its tasks, where another part's are others of the same numbers
  int64_t task_shift = 0;
};

// The tracks of the parts one behind the other. `head`: what is not the parts' to say; theirs is
// added. A part that cannot be read on ends there, which becomes a trouble of the end; fails where
// that is so of all of them.
std::unique_ptr<TraceSource> MergeTraces(TraceHead head, std::vector<TracePart> parts);

// What `request` asks for of `source`: times, cores, task, event, the newest. Fails with kUsage
// where there can be none of that, in one sentence.
Result<std::unique_ptr<TraceSource>> FilterTrace(std::unique_ptr<TraceSource> source,
                                                 const TraceRequest& request);

}  // namespace hangscope

#endif

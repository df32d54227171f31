// Several traces as one, in the order of time.
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
  // a memory of a device: kinds that say the same as another memory's are the same
  bool is_of_device = false;
};

// The tracks of the parts one behind the other. `head`: what is not the parts' to say; theirs is
// added. A part that cannot be read on ends there, which becomes a trouble of the end; fails where
// that is so of all of them.
std::unique_ptr<TraceSource> MergeTraces(TraceHead head, std::vector<TracePart> parts);

}  // namespace hangscope

#endif

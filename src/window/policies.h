// Where a window begins, by what was asked for.
#ifndef HANGSCOPE_WINDOW_POLICIES_H
#define HANGSCOPE_WINDOW_POLICIES_H

#include <optional>
#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

struct WindowBegin {
  TimeNs time = 0;
  std::optional<size_t> limited_by;
  bool from_the_start = false;
};

// `timelines`: of the input's rings, in their order.
WindowBegin FindBegin(const WindowInput& input, const std::vector<RingTimeline>& timelines,
                      const WindowRequest& request);

// How much of a piece lies in `window`, as if it had been written evenly.
uint64_t BytesInside(const RingPiece& piece, TimeSpan window);

}  // namespace hangscope

#endif

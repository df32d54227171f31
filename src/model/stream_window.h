// The window of one stream that a snapshot covers.
#ifndef HANGSCOPE_MODEL_STREAM_WINDOW_H
#define HANGSCOPE_MODEL_STREAM_WINDOW_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/loss.h"

namespace hangscope {

struct StreamWindow {
  std::string name;           // "stdout", "stderr", "stdin"
  uint64_t begin_offset = 0;  // oldest byte held
  uint64_t end_offset = 0;    // one past the newest byte
  TimeNs begin_time = 0;      // monotonic arrival of the oldest stamped byte
  TimeNs end_time = 0;        // when the snapshot was taken
  std::vector<Loss> losses;   // inside [begin_offset, end_offset)

  uint64_t bytes() const {
    uint64_t held = end_offset - begin_offset;
    for (const Loss& loss : losses) held -= loss.bytes();
    return held;
  }
};

}  // namespace hangscope

#endif

// Rings of all kinds in the form in which windows are found over them (window/find_window.h).
#ifndef HANGSCOPE_SNAPSHOT_RING_HISTORIES_H
#define HANGSCOPE_SNAPSHOT_RING_HISTORIES_H

#include <string>
#include <vector>

#include "cpu/cpu_recorder.h"
#include "ring/block_reader.h"
#include "window/find_window.h"

namespace hangscope {

// Where a ring stood at an earlier look.
struct RingMark {
  RingName ring;
  uint64_t head = 0;
  uint64_t lost_records = 0;
};

// The mark of that name; null: there is none.
const RingMark* FindMark(const std::vector<RingMark>& marks, const RingName& ring);

RingName NameOfRing(const PerfRing& ring);

// Adds the capture's rings, who ran when, as far as the records say, and the names of tasks.
// `before`: what is lost since `last_time` is told of that span; 0: since the rings began.
void AddCpuRings(const CpuCapture& capture, const std::vector<RingMark>& before, TimeNs last_time,
                 WindowInput* input);

// The stream of a snapshot, which `reader` has open; `number` tells streams apart.
RingHistory StreamHistory(BlockReader& reader, size_t number, const StreamWindow& window);

}  // namespace hangscope

#endif

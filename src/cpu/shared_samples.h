// Mends what Linux writes of software events beside other recorders.
//
// When a page fault (or another event that the kernel itself counts) happens, the kernel prepares
// one sample for all recorders that have that event on the CPU, and on Linux 6.18 keeps the fields
// that the first of them asked for: the samples of the others carry the id of that recorder's
// event, which is none of theirs, and the time of its clock. perf gives up on such a file ("Can't
// parse sample"). The other fields are about the one fault, and right.
#ifndef HANGSCOPE_CPU_SHARED_SAMPLES_H
#define HANGSCOPE_CPU_SHARED_SAMPLES_H

#include <cstdint>
#include <string>
#include <vector>

#include "model/perf_event.h"

namespace hangscope {

// `records`: of a ring into which only `events` write, the oldest first. A sample of none of them
// is of the one software event among them: it gets that one's id, and the time of the record before
// it, which is at most a little earlier than it was. How many there were. Where several software
// events are recorded nobody knows which it is, and nothing is changed.
uint64_t MendSharedSamples(const std::vector<PerfEvent>& events, std::string* records);

}  // namespace hangscope

#endif

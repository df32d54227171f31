// What is known of a recording as a whole, for the environment of its CTF trace.
#ifndef HANGSCOPE_EXPORT_CTF_ENVIRONMENT_H
#define HANGSCOPE_EXPORT_CTF_ENVIRONMENT_H

#include <cstdint>

#include "export/ctf_metadata.h"
#include "model/trace.h"

namespace hangscope {

// What was met while the trace was written.
struct CtfTally {
  int64_t events = 0;
  int64_t losses = 0;
  int64_t losses_of_unknown_amount = 0;  // each is told as one discarded event
  // of losses that are not counted in records; these likewise
  uint64_t bytes_lost = 0;
  int64_t notes_elsewhere = 0;
  int64_t times_moved = 0;
  int64_t values_cut = 0;
};

CtfEnvironment EnvironmentOf(const TraceHead& head, const TraceEnd& end, const CtfTally& tally);

}  // namespace hangscope

#endif

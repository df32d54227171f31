// Reads the ring back to prove that cores loop: since when, how often.
#ifndef HANGSCOPE_STREAM_LOOP_PROOF_H
#define HANGSCOPE_STREAM_LOOP_PROOF_H

#include <functional>
#include <memory>
#include <vector>

#include "ring/block_reader.h"
#include "stream/core_track.h"
#include "stream/step_reader.h"

namespace hangscope {

inline constexpr uint64_t kSearchForSilent = 128u << 20;

// Makes a reader of the stream's steps that numbers cores as `findings` do.
using StepSourceMaker = std::function<std::unique_ptr<StepSource>(StepSource::Sink)>;

// `findings[i]` is what the samples say of core i. Reads from the end of the ring
// back to stream offset `back_to` at least, and on until the entry into the loop
// of every looping core is found or the ring ends; interrupts that return do not
// end a loop. What a core that is in no loop did last is looked for in `search_bytes` before the
// end, else in as many from the step on that a sample saw, and at the begin of the ring. The result
// has an entry for each core of `findings`, then for those that only this reading brought to light.
// Code that QEMU lists on the way is learned. Gives up early when `stop` says so.
std::vector<CoreProof> ProveLoops(BlockReader& reader, const StepSourceMaker& make_source,
                                  const std::vector<const CoreFinding*>& findings,
                                  ProgramCode& code, uint64_t back_to,
                                  const std::function<bool()>& stop,
                                  uint64_t search_bytes = kSearchForSilent);

}  // namespace hangscope

#endif

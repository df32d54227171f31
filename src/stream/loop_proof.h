// Reads the ring back to prove that cores loop: since when, how often.
#ifndef HANGSCOPE_STREAM_LOOP_PROOF_H
#define HANGSCOPE_STREAM_LOOP_PROOF_H

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ring/block_reader.h"
#include "stream/core_analysis.h"
#include "stream/step_reader.h"

namespace hangscope {

constexpr size_t kLeadIn = 4096;

// What reading back said of one core.
struct CoreProof {
  uint64_t entered_offset = 0;         // of the first step of the loop
  std::optional<uint64_t> entered_at;  // its place, unless at_least
  bool at_least = false;               // the ring holds nothing before it
  uint64_t rounds = 0;
  uint64_t traps = 0;
  std::optional<Step> last;   // its newest step
  std::vector<Step> lead_in;  // its steps before the entry, at most kLeadIn of them
};

// Makes a reader of the stream's steps that numbers cores as `findings` do.
using StepSourceMaker = std::function<std::unique_ptr<StepSource>(StepSource::Sink)>;

// `findings[i]` is what the samples say of core i. Reads from the end of the ring
// back to stream offset `back_to` at least, and on until the entry into the loop
// of every looping core is found or the ring ends; interrupts that return do not
// end a loop. The result has an entry for each core of `findings`, then for those
// that only reading back brought to light. Code that QEMU lists on the way is
// learned. Gives up early when `stop` says so.
std::vector<CoreProof> ProveLoops(BlockReader& reader, const StepSourceMaker& make_source,
                                  const std::vector<const CoreFinding*>& findings,
                                  ProgramCode& code, uint64_t back_to,
                                  const std::function<bool()>& stop);

}  // namespace hangscope

#endif

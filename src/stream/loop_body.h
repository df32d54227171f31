// Tells a spin from a computation by the code of one round.
//
// One round is executed on symbols: registers begin as unknowns, memory answers
// a load with "what is at this address", the same each time unless the round
// itself stored there. If some round ends in the state in which it began, then
// every further round will too, for as long as nobody else changes what it
// loads: the core spins. If the state differs each time (a counter, a sum, a
// pointer, a value that grows in memory) it computes. A stack frame built and
// torn down each round, or a store of the same value to the same address, is no
// progress, which is why "does it store?" alone would be the wrong question.
#ifndef HANGSCOPE_STREAM_LOOP_BODY_H
#define HANGSCOPE_STREAM_LOOP_BODY_H

#include <cstdint>
#include <span>
#include <vector>

#include "code/code_source.h"
#include "stream/step_reader.h"

namespace hangscope {

struct LoopBody {
  enum class Kind {
    kSpins,     // reproduces its own state
    kComputes,  // every round differs from the one before
    kUnknown,   // some code is missing or not understood
  };
  Kind kind = Kind::kUnknown;
  bool reads_time = false;      // polls a clock: ends by itself
  bool polls_known = false;     // all loaded addresses are known numbers
  std::vector<uint64_t> polls;  // those that are
};

// `round` is one round of a loop, in order; its last step goes to its first.
// `lead_in`, the steps that led to round[0], may be empty: it tells what the
// registers hold, and so which addresses are polled.
LoopBody ExamineLoopBody(std::span<const Step> round, CodeSource& code,
                         std::span<const Step> lead_in = {});

// The numbers among the addresses that the straight runs of code at `places`
// store to.
std::vector<uint64_t> StoredAddresses(std::span<const Step> places, CodeSource& code);

}  // namespace hangscope

#endif

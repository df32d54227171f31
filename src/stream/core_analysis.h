// What one core does, from a stretch of its steps. Pure: no files, no clock.
#ifndef HANGSCOPE_STREAM_CORE_ANALYSIS_H
#define HANGSCOPE_STREAM_CORE_ANALYSIS_H

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "model/verdict.h"
#include "stream/program_code.h"
#include "stream/step_reader.h"

namespace hangscope {

struct CoreFinding {
  enum class Motion {
    kTooShort,   // too few steps to say anything
    kMoving,     // no loop
    kComputing,  // a loop whose values change
    kRepeating,  // a loop, and nothing tells whether its values change
    kSpinning,   // a loop that reproduces its state exactly
  };
  Motion motion = Motion::kTooShort;
  size_t steps = 0;
  Step last;            // the latest one outside of traps
  bool sleeps = false;  // `last` is a wfi
  LoopBasis basis = LoopBasis::kPlaces;
  std::vector<uint64_t> loop;  // its places in order, the head first; if not kMoving/kTooShort
  std::vector<uint64_t> path;  // of a short stretch that computes: its places in order
  uint64_t traps = 0;
  bool polls_known = false;
  std::vector<uint64_t> polls;
  bool handler_writes_polls = false;  // an interrupt handler stores to one of them
  uint64_t loop_begin = 0;   // of a log: the offset of the oldest step that belongs to the loop
  bool came_before = false;  // of a log: its lines came, between others, before the loop

  bool IsLoop() const { return motion == Motion::kSpinning || motion == Motion::kRepeating; }

  std::unordered_set<uint64_t> loop_places;
  std::unordered_set<uint64_t> trap_places;  // of interrupt handlers that ran meanwhile
  std::unordered_set<uint64_t> loop_states;  // StateOf its steps, if basis is kValues
  std::unordered_set<uint64_t> seen_places;  // all of the stretch, traps excluded
  std::unordered_set<uint64_t> seen_states;  // likewise, StateOf the steps that have values
};

// A step as place and machine state.
uint64_t StateOf(const Step& step);

// `steps` are consecutive steps of one core, oldest first.
CoreFinding AnalyzeCore(std::span<const Step> steps, ProgramCode& code);

}  // namespace hangscope

#endif

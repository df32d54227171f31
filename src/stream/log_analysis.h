// What a log does, from a stretch of its lines. Pure: no files, no clock.
#ifndef HANGSCOPE_STREAM_LOG_ANALYSIS_H
#define HANGSCOPE_STREAM_LOG_ANALYSIS_H

#include <cstdint>
#include <span>

#include "stream/core_analysis.h"

namespace hangscope {

// A round of more different lines than this may be work, however often it comes.
constexpr size_t kMostLinesInLoop = 32;

// `steps` are consecutive steps of one core of a log, oldest first. What began
// before stream offset `old_offset` has lasted for the stall time: of the
// repetitions the one of places and values counts if it has, else that of places
// alone. With steps that have no values, because a rule says what a place is,
// places are all there is.
//
// kSpinning: the loop repeats exactly. kRepeating: its values change, or a round
// is long.
CoreFinding AnalyzeLog(std::span<const Step> steps, uint64_t old_offset);

}  // namespace hangscope

#endif

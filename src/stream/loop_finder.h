// Finds the loop at the end of a sequence.
#ifndef HANGSCOPE_STREAM_LOOP_FINDER_H
#define HANGSCOPE_STREAM_LOOP_FINDER_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hangscope {

struct Period {
  size_t length = 0;   // tokens per round
  size_t covered = 0;  // tokens at the end of the sequence that repeat with it

  size_t rounds() const { return covered / length; }
};

// The period that explains the longest stretch at the end of `tokens`: of those
// that explain equally much, the shortest. At least three rounds, or nothing.
// Linear time (the Z function over the reversed sequence: Gusfield, Algorithms
// on Strings, Trees and Sequences, chapter 1).
std::optional<Period> FindPeriod(std::span<const uint64_t> tokens);

}  // namespace hangscope

#endif

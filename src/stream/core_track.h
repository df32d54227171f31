// What is known of one core of a trace or of a log: by samples, and by reading the ring back. Pure:
// no files, no clock.
#ifndef HANGSCOPE_STREAM_CORE_TRACK_H
#define HANGSCOPE_STREAM_CORE_TRACK_H

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "stream/core_analysis.h"

namespace hangscope {

// After reading the ring back: first as offsets of the stream, then dated.
struct CoreProof {
  uint64_t entered_offset = 0;         // of the first step of the loop
  std::optional<uint64_t> entered_at;  // its place, unless at_least
  bool at_least = false;               // the ring holds nothing before it
  uint64_t rounds = 0;
  uint64_t traps = 0;
  std::optional<Step> last;  // its newest step
  std::vector<Step>
      lead_in;  // its newest steps before the entry, or, of one that is in no loop, at all

  // Once dated, from when these offsets arrived:
  bool looping = false;
  TimeNs since = 0;           // entry into the loop, or arrival of the latest step
  bool nothing_else = false;  // as far as anybody saw, it never did anything but this
};

// After the latest sample.
struct CoreTrack {
  std::string name;
  std::optional<uint32_t> hart;         // by which the trace knows it
  CoreFinding finding;                  // latest
  TimeNs last_seen = 0;                 // when a sample last held a new step of it; 0: never
  TimeNs loop_since = 0;                // since when each sample showed this very loop
  TimeNs found_at = 0;                  // when a sample first showed it
  TimeNs longest_loop = 0;              // of a log: the longest loop that it got out of by itself
  TimeNs places_since = 0;              // since when no new place was seen
  std::unordered_set<uint64_t> places;  // seen so far, bounded
  std::vector<Place> callers;           // of where it is, as CoreVerdict's
  // Of a loop that looks like a spin and, with what led into it, reads a clock.
  std::unordered_set<uint64_t> computing_loop;

  // Of a trace: the spins that it got out of by itself, by their lowest places, as samples saw
  // them.
  struct LeftLoop {
    uint32_t times = 0;
    TimeNs longest = 0;
  };
  std::unordered_map<uint64_t, LeftLoop> left_loops;
  // Of the loop that it is in; null: it has not been seen to leave it.
  const LeftLoop* LeftBefore() const;

  // No sample has shown a step of it for long: it is in no loop, as far as anybody knows.
  void FallSilent();
  // A sample of a trace shows `sample`. Who comes back into the loop in which it fell silent has
  // been there all the while: it was given no processor.
  void Update(CoreFinding sample, TimeNs now);
  // A sample of a log does; if that is a loop, its lines have come since `began` at least.
  void UpdateLog(CoreFinding sample, TimeNs began, TimeNs now);
  // What led there tells who called the function that it is in.
  void FindCallers(const CoreProof& proof, ProgramCode& code);
  // What led into the loop tells what its registers point at, and so what it polls.
  void FindPolls(const std::vector<Step>& lead_in, ProgramCode& code);

 private:
  // The loop in which it fell silent, and the times of it.
  struct Silenced {
    CoreFinding finding;
    TimeNs loop_since = 0;
    TimeNs found_at = 0;
  };

  void NotePlaces(const CoreFinding& sample, TimeNs now);

  std::optional<Silenced> silenced_;
};

// How a core got to the step at stream offset `at`.
struct CoreWay {
  uint64_t at = 0;
  std::vector<WayStep> steps;          // the oldest first; empty: not known
  std::optional<uint64_t> cycle = {};  // of simulated time at that step
};

}  // namespace hangscope

#endif

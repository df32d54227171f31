// Watches one stream through its ring: samples raise suspicion, reading the ring
// back proves it.
//
// Costs: a sample parses at most 512 KiB however fast the stream is; a proof
// reads the ring from its newest byte back to where the loop was entered, and
// happens only when a hang is suspected for the whole stall time.
#ifndef HANGSCOPE_VERDICT_STREAM_ANALYST_H
#define HANGSCOPE_VERDICT_STREAM_ANALYST_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "capture/block_reader.h"
#include "verdict/core_analysis.h"
#include "verdict/loop_proof.h"

namespace hangscope {

// What is known of one core after the latest sample.
struct CoreTrack {
  std::string name;
  CoreFinding finding;       // latest
  TimeNs last_seen = 0;      // when a sample last held a new step of it; 0: never
  TimeNs loop_since = 0;     // since when each sample showed this very loop
  TimeNs places_since = 0;   // since when no new place was seen
  std::unordered_set<uint64_t> places;  // seen so far, bounded
  // Of a loop that looks like a spin and, with what led into it, reads a clock.
  std::unordered_set<uint64_t> computing_loop;
};

class StreamAnalyst {
 public:
  StreamAnalyst(BlockReader reader, CodeSource* elf);

  // Looks at what came since the last call. `now` is monotonic.
  void Sample(TimeNs now);
  // Looks at a much longer stretch, for loops whose round does not fit a sample.
  void SampleDeeply(TimeNs now);
  // Reads back from the end, to `back_to` at least (a stream offset), until the
  // entry into the loop of every spinning core is found. Gives up when `stop`
  // says so.
  std::vector<CoreProof> Prove(uint64_t back_to, const std::function<bool()>& stop);

  const std::vector<CoreTrack>& cores() const { return cores_; }
  const std::string& name() const { return name_; }
  bool is_trace() const { return is_trace_; }
  bool only_translations() const { return only_translations_; }
  bool chained() const { return chained_; }
  TraceFormat format() const { return format_; }
  // The latest block QEMU translated (-d in_asm).
  uint64_t translated_pc() const { return translated_pc_; }
  ProgramCode& code() { return code_; }
  // When the byte at `offset` arrived; where its stamp is overwritten, a later
  // time: that of the oldest stamp.
  std::optional<TimeNs> TimeOf(uint64_t offset);
  // The first offset that arrived at `time` or later.
  uint64_t OffsetAt(TimeNs time);
  uint64_t end_offset() const { return reader_.end_offset(); }
  // Bytes missing in [from, end of the stream).
  uint64_t LostSince(uint64_t from);

 private:
  using StepsByCore = std::vector<std::vector<Step>>;

  StepsByCore ReadSteps(uint64_t begin, uint64_t end);
  void Absorb(const StepsByCore& steps, uint64_t new_from, TimeNs now);
  void FindPolls(const std::vector<Step>& lead_in, CoreTrack* track);
  void Update(CoreTrack* track, CoreFinding finding, TimeNs now);

  BlockReader reader_;
  std::string name_;
  ProgramCode code_;
  CoreNames names_;
  std::vector<CoreTrack> cores_;
  uint64_t sampled_to_ = 0;
  bool is_trace_ = false;
  bool only_translations_ = false;
  bool chained_ = false;
  uint64_t translated_pc_ = 0;
  TraceFormat format_ = TraceFormat::kNone;
};

}  // namespace hangscope

#endif

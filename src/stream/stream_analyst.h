// Watches one stream through its ring: samples raise suspicion, reading the ring
// back proves it.
//
// Costs: a sample parses at most 512 KiB however fast the stream is; a proof
// reads the ring from its newest byte back to where the loop was entered, and
// happens only when a hang is suspected for the whole stall time.
#ifndef HANGSCOPE_STREAM_STREAM_ANALYST_H
#define HANGSCOPE_STREAM_STREAM_ANALYST_H

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ring/block_reader.h"
#include "stream/core_track.h"
#include "stream/loop_proof.h"
#include "stream/place_rule.h"
#include "stream/place_texts.h"

namespace hangscope {

// When the bytes of a stream had arrived at the latest, as its samples saw it.
// (The ring's stamps tell since when at the earliest, and get coarse on a slow
// stream; who claims that something lasts needs the other side.)
class ArrivalLog {
 public:
  void Note(uint64_t end_offset, TimeNs now);
  std::optional<TimeNs> ArrivedBy(uint64_t offset) const;
  // What is behind this offset arrived after `time`, and perhaps some of what is before.
  uint64_t OffsetBefore(TimeNs time) const;

 private:
  struct Mark {
    uint64_t end_offset = 0;
    TimeNs time = 0;
  };
  std::deque<Mark> marks_;  // both rise
};

class StreamAnalyst {
 public:
  // `rule` says what a place of a log is, and may be null; `stall` is how long a
  // loop must last to be told.
  StreamAnalyst(BlockReader reader, CodeSource* elf, const PlaceRule* rule, TimeNs stall);

  // Looks at what came since the last call. `now` is monotonic.
  void Sample(TimeNs now);
  // Looks at a much longer stretch, for loops whose round does not fit a sample.
  void SampleDeeply(TimeNs now);
  // Reads back from the end, to `back_to` at least (a stream offset), until the
  // entry into the loop of every spinning core is found. Gives up when `stop`
  // says so.
  std::vector<CoreProof> Prove(uint64_t back_to, const std::function<bool()>& stop);

  // How each core came into the loop that `proofs` found, or, of one that is in none, to its last
  // step: of a trace functions, of a log lines. Reads 4 MiB of the trace before that for each core,
  // as long as `stop` does not say so.
  std::vector<CoreWay> FindWays(const std::vector<CoreProof>& proofs,
                                const std::function<bool()>& stop);

  // Of the trace; where there is none, of the log.
  const std::vector<CoreTrack>& cores() const { return is_trace_ ? trace_.cores : log_.cores; }
  const std::string& name() const { return name_; }
  bool is_trace() const { return is_trace_; }
  bool is_log() const { return !is_trace_ && !log_.cores.empty(); }
  // The texts of a log's places.
  const PlaceTexts& texts() const { return texts_; }
  bool only_translations() const { return only_translations_; }
  bool chained() const { return chained_; }
  TraceFormat format() const { return format_; }
  // The latest block QEMU translated (-d in_asm).
  uint64_t translated_pc() const { return translated_pc_; }
  ProgramCode& code() { return code_; }
  // When the byte at `offset` arrived; where its stamp is overwritten, a later
  // time: that of the oldest stamp.
  std::optional<TimeNs> TimeOf(uint64_t offset);
  // An offset as of which everything arrived at `time` or later is read.
  uint64_t OffsetAt(TimeNs time);
  uint64_t end_offset() const { return reader_.end_offset(); }
  // Bytes missing in [from, end of the stream).
  uint64_t LostSince(uint64_t from);

 private:
  using StepsByCore = std::vector<std::vector<Step>>;
  // Cores by the number that their names have.
  struct Cores {
    CoreNames names;
    std::vector<CoreTrack> cores;
  };

  static StepSource::Sink AppendTo(StepsByCore* steps);
  void ReadInto(StepSource* source, uint64_t begin, uint64_t end, StepsByCore* steps);
  StepsByCore ReadTrace(uint64_t begin, uint64_t end);
  StepsByCore ReadLog(uint64_t begin, uint64_t end);
  // Takes what is new to each core as of `new_from`.
  void Absorb(const StepsByCore& steps, uint64_t new_from, TimeNs now);
  void AbsorbLog(const StepsByCore& steps, uint64_t new_from, TimeNs now);
  void SampleLog(uint64_t from, uint64_t end, TimeNs now);
  void SampleLogDeeply(uint64_t from, uint64_t end, TimeNs now);
  CoreTrack* TrackOf(Cores* cores, uint32_t core, const std::vector<Step>& steps, uint64_t new_from,
                     TimeNs now);
  void UpdateLog(CoreTrack* track, CoreFinding sample, TimeNs now);
  void HearAgain(const CoreProof& proof, CoreTrack* core);
  CoreWay WayTo(size_t core, uint64_t at);
  std::unique_ptr<StepSource> MakeProofSource(StepSource::Sink sink);

  BlockReader reader_;
  std::string name_;
  const PlaceRule* const rule_;
  const TimeNs stall_;
  ProgramCode code_;
  Cores trace_;
  Cores log_;
  PlaceTexts texts_;
  ArrivalLog arrivals_;
  uint64_t sampled_to_ = 0;
  TimeNs sampled_at_ = 0;
  bool is_trace_ = false;
  bool only_translations_ = false;
  bool chained_ = false;
  uint64_t translated_pc_ = 0;
  TraceFormat format_ = TraceFormat::kNone;
};

}  // namespace hangscope

#endif

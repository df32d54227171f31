// The thread that watches the streams of a run and keeps the verdict.
#ifndef HANGSCOPE_OBSERVE_ANALYSIS_H
#define HANGSCOPE_OBSERVE_ANALYSIS_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "code/code_source.h"
#include "observe/recording.h"
#include "proc/child_process.h"
#include "stream/judge.h"
#include "stream/stream_analyst.h"

namespace hangscope {

class Analysis {
 public:
  // `recording`, `elf` and `rule` (which may be null) and `clock` outlive this.
  Analysis(FileSystem& files, Clock& clock, const Recording& recording, CodeSource* elf,
           const PlaceRule* rule, TimeNs stall);
  ~Analysis();

  void Start();
  void Stop();

  // What the child does, as its owner sees it; to be called regularly.
  void SetChild(const ChildView& child);
  // QEMU was told to print steps without nochain.
  void SetChained() { chained_ = true; }
  // The newest verdict.
  Verdict verdict() const;
  // Looks once more, now, in the caller's thread; after Stop.
  Verdict Conclude(const ChildView& child);

 private:
  struct Stream {
    const RecordedStream* recorded = nullptr;
    std::unique_ptr<StreamAnalyst> analyst;
    Proof proof;
    std::vector<CoreWay> ways;  // by core; of `proof`, or of the last steps
    bool proven = false;
    TimeNs next_proof = 0;
    Proof part_proof;  // of cores that loop while others go on
    TimeNs next_part_proof = 0;
    TimeNs next_deep_sample = 0;
    TimeNs deep_pause = 0;
    TimeNs next_listing_read = 0;
    TimeNs last_deep_sample = 0;
    uint64_t read_to_the_end_at = 0;  // the stream's size when its last steps were read
  };

  void Run();
  void Sample(TimeNs now, bool final_look);
  void SampleStream(Stream* stream, TimeNs now, bool final_look);
  Proof ProofOf(Stream* stream, TimeNs now, TimeNs longest);
  void MakeProof(Stream* stream, TimeNs now, TimeNs longest);
  void ProvePart(Stream* stream, TimeNs now);
  void ReadLastSteps(Stream* stream, TimeNs now);
  void ReadListings(Stream* stream, TimeNs now);
  // Says stop once `longest` has passed, or when the thread that asks is to end.
  std::function<bool()> StopAfter(TimeNs longest);
  bool EndedBadly() const;
  bool WorthProving(const Stream& stream, TimeNs now) const;
  bool StillProven(const Stream& stream) const;
  StreamView ViewOf(const Stream& stream) const;

  FileSystem& files_;
  Clock& clock_;
  CodeSource* const elf_;
  const PlaceRule* const rule_;
  const TimeNs stall_;
  const TimeNs tick_;
  bool chained_ = false;
  StreamJudge judge_;
  ProgramCode no_code_;
  std::vector<Stream> streams_;
  std::thread thread_;
  mutable std::mutex mutex_;  // guards the four below
  std::condition_variable wake_;
  bool stopping_ = false;
  ChildView child_;
  Verdict verdict_;
};

}  // namespace hangscope

#endif

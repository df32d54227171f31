// Judges a run by its streams: progressing, slow, looping, silent, dead or finished.
//
// Pure: it is told the time, what the streams did and what the child does, and
// keeps only its own memory of earlier calls. The rules of confidence are in
// docs/verdicts.md. Not thread-safe.
#ifndef HANGSCOPE_STREAM_JUDGE_H
#define HANGSCOPE_STREAM_JUDGE_H

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"
#include "stream/core_track.h"
#include "stream/place_texts.h"

namespace hangscope {

// What reading the ring back said of a stream.
struct Proof {
  TimeNs time = 0;                 // when it was made
  uint64_t lost_bytes = 0;         // missing in what was read
  TimeNs only_sampled_before = 0;  // 0: all of the stall time was read back
  std::vector<CoreProof> cores;    // dated; parallel to StreamView::cores
};

// A stream as of the latest sample. It points into what the stream's analyst keeps, and so holds
// until the next sample.
struct StreamView {
  std::string name;
  uint64_t total_bytes = 0;
  TimeNs last_byte = 0;  // monotonic; 0: none yet
  bool is_trace = false;
  bool only_translations = false;     // QEMU -d in_asm alone
  bool chained = false;               // QEMU -d exec without nochain
  bool by_rule = false;               // of a log: the user said what a place is
  const PlaceTexts* texts = nullptr;  // of a log: what its places say; null: it is none
  std::string format;
  std::span<const CoreTrack> cores;    // of the trace or of the log
  std::span<const CoreWay> ways = {};  // likewise: to where they were when the ring was read back
  bool blocked = false;          // the reader of its passthrough does not read: nothing can come
  const Proof* proof = nullptr;  // the latest, while its loops still run
  // likewise, of a trace some of whose cores go on; null: none was made, or it no longer holds
  const Proof* part_proof = nullptr;
};

struct ChildView {
  bool known = false;  // false: nobody knows the process (tee), or /proc does not show it
  bool ended = false;
  int exit_status = 0;       // if ended by itself
  int exit_signal = 0;       // if killed by one
  bool was_told_to = false;  // hangscope itself had passed that signal on to it
  TimeNs cpu_time = 0;       // of all its processes so far
  bool timed_sleep = false;  // a main thread sleeps for a set time
  bool stopped = false;      // by a signal, a debugger or a freezer
  bool runnable = false;     // one of its threads runs, or would if it were given a processor
  // Somebody looks at what its threads wait for: what their silence means is not judged here.
  bool is_looked_into = false;
  bool waits_for_input = false;  // one of them reads its standard input; if nobody looks
  std::vector<int> processes;    // all that live
  std::string waits_in;          // "futex", "read" ...: what its main thread waits in
  // It has ended, and its output has not: a clause that says so, and why; else empty.
  std::string waits_for_output;
};

class StreamJudge {
 public:
  StreamJudge(TimeNs stall, TimeNs start) : stall_(stall), start_(start) {}

  // Whether every core that still prints has been in one loop for the whole
  // stall time: worth reading the ring back.
  bool SuspectsLoop(const StreamView& stream, TimeNs now) const;
  // Whether, by the samples, a core that still prints has waited in a loop for much longer than it
  // ever did, while another goes on: worth reading the ring back.
  bool SuspectsPart(const StreamView& stream, TimeNs now) const;
  // Whether no core that still prints has seen a new place for the whole stall
  // time although its samples show no spin: worth a longer sample.
  bool SuspectsLongLoop(const StreamView& stream, TimeNs now) const;

  // Time passed in which nobody could look or nothing could run (the machine or
  // the recorder was stopped): no verdict counts until a stall time from `now`.
  void Interrupted(TimeNs now) { trusted_from_ = now + stall_; }

  // To be called regularly, a few times per stall time.
  Verdict Assess(TimeNs now, const std::vector<StreamView>& streams, const ChildView& child,
                 ProgramCode* code);

 private:
  void NoteActivity(TimeNs now, const std::vector<StreamView>& streams, const ChildView& child);
  bool Active(const CoreTrack& core, TimeNs now) const {
    return core.last_seen != 0 && now - core.last_seen < stall_;
  }
  void JudgeEnd(const ChildView& child, Verdict* verdict) const;
  bool JudgeLoops(const StreamView& stream, ProgramCode* code, Verdict* verdict) const;
  bool JudgeLogs(const std::vector<StreamView>& streams, Verdict* verdict) const;
  bool LogLoops(const StreamView& stream, TimeNs now) const;
  bool GoesOn(const CoreTrack& core, TimeNs now) const;
  bool MayBeLeftBehind(const CoreTrack& core, TimeNs now) const;
  std::optional<TimeNs> PatienceBesideOthers(const CoreTrack& core) const;
  bool JudgePart(const StreamView& stream, ProgramCode* code, Verdict* verdict) const;
  TimeNs Patience(TimeNs longest_earlier) const;
  bool JudgeSilence(const std::vector<StreamView>& streams, const ChildView& child,
                    Verdict* verdict) const;
  void JudgeRate(Verdict* verdict) const;
  void DoubtIfInterrupted(Verdict* verdict) const;
  CoreVerdict DescribeCore(const StreamView& stream, size_t index, TimeNs now, bool ended,
                           ProgramCode* code) const;

  struct Tick {
    TimeNs time = 0;
    uint64_t total = 0;
    TimeNs cpu = 0;
  };

  const TimeNs stall_;
  const TimeNs start_;
  std::deque<Tick> ticks_;    // the latest stall time
  std::deque<double> rates_;  // bytes per second of earlier stall times
  TimeNs rate_window_start_ = 0;
  uint64_t rate_window_total_ = 0;
  TimeNs last_byte_ = 0;
  TimeNs cpu_at_last_byte_ = 0;
  TimeNs pending_gap_ = 0;
  TimeNs longest_gap_ = 0;
  TimeNs trusted_from_ = 0;
};

}  // namespace hangscope

#endif

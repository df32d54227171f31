// Tells the user what befalls the streams of a recorder: losses, a disk that refuses, a reader that
// is too slow. Each is reported when it begins; what grows then, at most once a heartbeat.
//
// One thread.
#ifndef HANGSCOPE_OBSERVE_STREAM_WARNINGS_H
#define HANGSCOPE_OBSERVE_STREAM_WARNINGS_H

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "observe/narrator.h"
#include "observe/recording.h"

namespace hangscope {

class StreamWarnings {
 public:
  // All of them outlive this.
  StreamWarnings(Clock& clock, const Recording& recording, Narrator& narrator)
      : clock_(clock), recording_(recording), narrator_(narrator) {}

  // `with_growth`: a heartbeat is due, or the streams have ended.
  void Report(bool with_growth);
  // `bytes` passed so far without being searched for --trigger.
  void ReportUnsearched(uint64_t bytes, bool with_growth);

 private:
  // Of a stream, as reported.
  struct Reported {
    bool failing = false;
    bool plain = false;
    uint64_t not_passed_on = 0;
    uint64_t lost = 0;
  };

  void ReportDisk(const RecordedStream& stream, const RingFill& fill, Reported* reported);
  void ReportNotPassedOn(const RecordedStream& stream, bool with_growth, Reported* reported);
  void ReportLost(const RecordedStream& stream, const RingFill& fill, bool with_growth,
                  Reported* reported);

  Clock& clock_;
  const Recording& recording_;
  Narrator& narrator_;
  std::vector<Reported> reported_;  // by stream
  bool unsearched_reported_ = false;
};

}  // namespace hangscope

#endif

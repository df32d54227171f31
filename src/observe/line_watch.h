// The thread that looks for lines on which a snapshot is wanted. It follows the
// rings like any reader, so it never holds up recording; what a ring overwrote
// before it was looked at is counted.
#ifndef HANGSCOPE_OBSERVE_LINE_WATCH_H
#define HANGSCOPE_OBSERVE_LINE_WATCH_H

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "observe/recording.h"
#include "ring/block_reader.h"
#include "stream/line_matcher.h"

namespace hangscope {

// A line that matched, and how often its pattern did within the quiet period
// that it began.
struct WatchedLine {
  LineHit hit;
  std::string stream;
  TimeNs time = 0;  // when it had come, as far as known
  uint64_t more = 0;
};

class LineWatch {
 public:
  // `recording` and `clock` outlive this.
  LineWatch(FileSystem& files, Clock& clock, const Recording& recording,
            std::shared_ptr<const LinePatterns> patterns, TimeNs quiet);
  ~LineWatch();

  void Start();
  // Looks at what is left, for some seconds at most, and ends. The streams have ended.
  void Finish();

  // The lines found since the last call, oldest first.
  std::vector<WatchedLine> Take();
  // Bytes of all streams that passed unseen so far.
  uint64_t unseen_bytes() const;

 private:
  struct Stream {
    const RecordedStream* recorded = nullptr;
    std::optional<BlockReader> reader;
    std::unique_ptr<LineMatcher> matcher;
    TimeNs last_look = 0;   // what is read after it is younger
    TimeNs block_time = 0;  // of the block that is searched
    bool looked_at_open_line = false;
  };

  void Run();
  void Follow(Stream* stream, TimeNs now, TimeNs deadline);
  bool OpenReader(Stream* stream);
  bool ReadOn(Stream* stream, TimeNs deadline);
  void Add(const Stream& stream, const LineHit& hit);
  void CountUnseen(uint64_t bytes);

  FileSystem& files_;
  Clock& clock_;
  const std::shared_ptr<const LinePatterns> patterns_;
  const TimeNs quiet_;
  std::vector<Stream> streams_;
  std::thread thread_;
  mutable std::mutex mutex_;  // guards the four below
  std::condition_variable wake_;
  bool finishing_ = false;
  std::vector<WatchedLine> found_;
  uint64_t unseen_ = 0;
};

}  // namespace hangscope

#endif

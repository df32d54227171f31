// Writes report.html into snapshots that are there already, in a thread of its own: to draw a page may take seconds, and
// neither recording nor the snapshot waits for it.
#ifndef HANGSCOPE_SESSION_REPORT_WRITER_H
#define HANGSCOPE_SESSION_REPORT_WRITER_H

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"

namespace hangscope {

class ReportWriter {
 public:
  // What a page may cost: older events are left out of it where it costs more, and it says so.
  static constexpr uint64_t kMostBytes = 8u << 20;
  static constexpr TimeNs kMostTime = 3 * kSecond;
  static constexpr size_t kMostEvents = 50'000;

  explicit ReportWriter(FileSystem& files) : files_(files) {}
  ~ReportWriter();  // finishes what was asked for
  ReportWriter(const ReportWriter&) = delete;
  ReportWriter& operator=(const ReportWriter&) = delete;

  // One thread calls these.
  void Write(const std::string& folder);
  // Why pages could not be written since the last call, one sentence each. That the snapshot is no more is no reason.
  std::vector<std::string> TakeTroubles();
  // Waits for all that was asked for.
  void Finish();

 private:
  void Run();
  Status WriteOne(const std::string& folder);

  FileSystem& files_;
  SystemClock clock_;   // of drawing: how long it takes is no affair of a test's clock
  std::thread thread_;  // from the first Write on
  std::mutex mutex_;    // guards the three below
  std::condition_variable wake_;
  std::deque<std::string> wanted_;
  std::vector<std::string> troubles_;
  bool finishing_ = false;
};

}  // namespace hangscope

#endif

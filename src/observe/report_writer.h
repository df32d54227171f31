// Writes report.html into snapshots that are there already, in a thread of its own: to draw a page
// may take seconds, and neither recording nor the snapshot waits for it.
#ifndef HANGSCOPE_OBSERVE_REPORT_WRITER_H
#define HANGSCOPE_OBSERVE_REPORT_WRITER_H

#include <mutex>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/clock.h"
#include "base/file_system.h"

namespace hangscope {

class ReportWriter {
 public:
  // What a page may cost: older events are left out of it where it costs more, and it says so.
  static constexpr uint64_t kMostBytes = 8u << 20;
  static constexpr TimeNs kMostTime = 3 * kSecond;
  static constexpr size_t kMostEvents = 50'000;

  // Its end waits for all that was asked for.
  explicit ReportWriter(FileSystem& files);

  // One thread calls these.
  void Write(const std::string& folder) { queue_.Add(folder); }
  // Why pages could not be written since the last call, one sentence each. That the snapshot is no
  // more is no reason.
  std::vector<std::string> DrainWarnings();
  // Waits for all that was asked for.
  void Finish() { queue_.Finish(); }

 private:
  void WriteOrTell(const std::string& folder);
  Status WriteOne(const std::string& folder);

  FileSystem& files_;
  SystemClock clock_;  // of drawing: how long it takes is no affair of a test's clock
  std::mutex mutex_;   // guards the one below
  std::vector<std::string> warnings_;
  BackgroundQueue<std::string> queue_;  // the last: its thread uses the others
};

}  // namespace hangscope

#endif

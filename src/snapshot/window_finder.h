// The one window that a snapshot's rings, of whatever kind, cover together; and where they stood at
// the snapshot before.
#ifndef HANGSCOPE_SNAPSHOT_WINDOW_FINDER_H
#define HANGSCOPE_SNAPSHOT_WINDOW_FINDER_H

#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "model/manifest.h"
#include "snapshot/ring_histories.h"

namespace hangscope {

// Which window snapshots declare.
struct WindowChoice {
  WindowPolicy policy = WindowPolicy::kCoherent;
  TimeNs length = 0;   // of kLastTime
  uint64_t bytes = 0;  // of kLastBytes
};

// "2s", "16M", "all", "since-last", "coherent".
Result<WindowChoice> ParseWindowChoice(std::string_view option, std::string_view text);

// One thread.
class WindowFinder {
 public:
  WindowFinder(FileSystem& files, const WindowChoice& choice) : files_(files), choice_(choice) {}

  // The streams that lie in `folder` already.
  void AddStreams(const std::string& folder, const Manifest& manifest, TimeNs trigger,
                  WindowInput* input) const;
  // `since_last`: whatever was chosen, only what came after the snapshot before.
  Window Find(const WindowInput& input, TimeNs trigger, bool since_last) const;
  // This snapshot is the one before the next. `trigger`: the next window begins there.
  void Remember(std::vector<RingMark> marks, TimeNs trigger);

  // As remembered.
  const std::vector<RingMark>& last_marks() const { return last_marks_; }
  TimeNs last_trigger() const { return last_trigger_; }

 private:
  FileSystem& files_;
  const WindowChoice choice_;
  std::vector<RingMark> last_marks_;
  TimeNs last_trigger_ = 0;
};

// Where the rings of `input` stand.
std::vector<RingMark> MarksOf(const WindowInput& input);

}  // namespace hangscope

#endif

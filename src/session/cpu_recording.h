// The CPU rings of a run: what a snapshot gets of them, and the one window that they, the streams and the scope
// cover together.
#ifndef HANGSCOPE_SESSION_CPU_RECORDING_H
#define HANGSCOPE_SESSION_CPU_RECORDING_H

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "capture/cpu_recorder.h"
#include "export/perf_file_writer.h"
#include "model/manifest.h"
#include "session/ring_histories.h"
#include "session/triggers.h"

namespace hangscope {

// The name of a snapshot's part.
constexpr char kCpuFileName[] = "cpu.perf.data";

// Which window snapshots declare.
struct WindowChoice {
  WindowPolicy policy = WindowPolicy::kCoherent;
  TimeNs length = 0;   // of kLastTime
  uint64_t bytes = 0;  // of kLastBytes
};

struct CpuRecordingOptions {
  bool on = false;
  CpuRecorderOptions recorder;
  WindowChoice window;
};

// "2s", "16M", "all", "since-last", "coherent".
Result<WindowChoice> ParseWindowChoice(std::string_view option, std::string_view text);

// One thread.
class CpuRecording {
 public:
  CpuRecording(FileSystem& files, std::unique_ptr<CpuRecorder> recorder, const WindowChoice& window, std::vector<std::string> command);

  // To be called a few times a second.
  void Tick() { recorder_->Tick(); }
  const std::vector<std::string>& warnings() const { return recorder_->warnings(); }

  // Reads all rings: this instant is the end of the window. What it read is kept until Write.
  Status Capture();
  // Finds the window over what Capture read, the streams that lie in `folder` already and `others`, writes
  // kCpuFileName there, and sets manifest->window and manifest->cpu. `since_last`: whatever was chosen, only what
  // came after the snapshot before.
  Status Write(const std::string& folder, bool since_last, std::vector<RingHistory> others, TimeNs clock_error, Manifest* manifest);

 private:
  WindowRequest RequestFor(const WindowInput& input, bool since_last) const;
  void Trim(Window* window);
  CpuManifest Describe(uint64_t file_bytes) const;
  void Remember(const WindowInput& input);

  FileSystem& files_;
  const std::unique_ptr<CpuRecorder> recorder_;
  const WindowChoice window_;
  PerfFileOrigin origin_;
  std::optional<CpuCapture> captured_;
  std::vector<RingMark> last_marks_;  // at the snapshot before
  TimeNs last_trigger_ = 0;
};

}  // namespace hangscope

#endif

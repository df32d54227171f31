// The CPU rings of a run, and what a snapshot gets of them.
#ifndef HANGSCOPE_SNAPSHOT_CPU_RECORDING_H
#define HANGSCOPE_SNAPSHOT_CPU_RECORDING_H

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "cpu/cpu_recorder.h"
#include "model/manifest.h"
#include "perf/perf_file_writer.h"
#include "perf/thread_history.h"
#include "snapshot/window_finder.h"

namespace hangscope {

// The name of a snapshot's part.
constexpr char kCpuFileName[] = "cpu.perf.data";

struct CpuRecordingOptions {
  bool on = false;
  CpuRecorderOptions recorder;
  WindowChoice window;
};

// One thread.
class CpuRecording {
 public:
  CpuRecording(FileSystem& files, std::unique_ptr<CpuRecorder> recorder,
               std::vector<std::string> command);

  // To be called a few times a second.
  void Tick() { recorder_->Tick(); }
  const std::vector<std::string>& warnings() const { return recorder_->warnings(); }

  // Reads all rings: this instant is the end of the window. What it read is kept until Write.
  Status Capture();
  // What the rings say of each thread's last steps, now. What Capture read is kept.
  Result<ThreadHistory> ReadHistory();
  // Has `finder` find the window over what Capture read, the streams that lie in `folder` already
  // and `others`, writes kCpuFileName there, and sets manifest->window and manifest->cpu.
  // `since_last`: whatever was chosen, only what came after the snapshot before. `clock_error`: of
  // the times of `others`.
  Status Write(const std::string& folder, bool since_last, std::vector<RingHistory> others,
               TimeNs clock_error, WindowFinder* finder, Manifest* manifest);

 private:
  void Trim(const std::vector<RingMark>& last_marks, Window* window);
  CpuManifest Describe(uint64_t file_bytes) const;
  void Remember(const WindowInput& input, WindowFinder* finder) const;

  FileSystem& files_;
  const std::unique_ptr<CpuRecorder> recorder_;
  PerfFileOrigin origin_;
  std::optional<CpuCapture> captured_;
};

}  // namespace hangscope

#endif

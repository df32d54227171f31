#include "snapshot/cpu_recording.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpu/task_ends.h"
#include "model/perf_format.h"
#include "perf/perf_record.h"

namespace hangscope {
namespace {

uint64_t BytesOf(const CpuCapture& capture) {
  uint64_t bytes = 0;
  for (const PerfRing& ring : capture.rings) bytes += ring.records.size();
  for (const AuxRing& ring : capture.aux) bytes += ring.bytes.size();
  return bytes;
}

// How many bytes of the oldest records the window leaves out: those before `from`, and those below
// `begin_offset`.
size_t BytesBefore(const PerfRing& ring, const PerfRecordParser& parser, TimeNs from,
                   uint64_t begin_offset) {
  const uint64_t first = ring.head - std::min<uint64_t>(ring.head, ring.records.size());
  size_t at = 0;
  while (at < ring.records.size()) {
    const std::string_view rest = std::string_view(ring.records).substr(at);
    const size_t bytes = PerfRecordBytes(rest);
    const auto record = bytes == 0 ? std::nullopt : parser.Parse(rest.substr(0, bytes));
    if (!record) break;
    const bool older = record->time >= 0 && record->time < from;
    if (!older && first + at >= begin_offset) break;
    at += bytes;
  }
  return at;
}

// Since when `history` has all that its ring was given behind the offset `wanted_from`. What came
// before was overwritten; it is there no more since the oldest record that is.
TimeNs CompleteSince(const RingHistory& history, uint64_t wanted_from) {
  const uint64_t held_from =
      history.held.empty() ? history.head : history.held.front().begin_offset;
  if (held_from <= wanted_from) return history.recording_since;
  return history.held.empty() ? history.recorded_until : history.held.front().time.from;
}

// For the file that has what `window` wants of the rings.
RecordedRings RecordedOf(const CpuCapture& capture, const WindowInput& input, const Window& window,
                         const std::vector<RingMark>& last_marks, int process) {
  RecordedRings recorded{window.time, window.policy, process, {}};
  const bool all =
      window.policy == WindowPolicy::kCoherent || window.policy == WindowPolicy::kEverything;
  for (const PerfRing& ring : capture.rings) {
    const auto history =
        std::find_if(input.rings.begin(), input.rings.end(),
                     [&](const RingHistory& each) { return each.ring == NameOfRing(ring); });
    if (history == input.rings.end() || ring.cpu < 0) continue;
    const RingMark* mark = window.policy == WindowPolicy::kSinceLast
                               ? FindMark(last_marks, NameOfRing(ring))
                               : nullptr;
    const TimeNs until = std::max(ring.taken, ring.recording_since);
    TimeNs complete =
        std::max(CompleteSince(*history, mark == nullptr ? 0 : mark->head), ring.recording_since);
    if (!all) complete = std::max(complete, window.time.from);
    recorded.rings.push_back({ring.cpu, ring.recording_since, std::min(complete, until), until});
  }
  return recorded;
}

// Records after `trigger` are the next snapshot's. Their order is that of time, but for those of
// interrupts: the newest that is not after it is the last.
void EndAt(TimeNs trigger, const PerfRecordParser& parser, PerfRing* ring) {
  const std::string_view records = ring->records;
  std::vector<size_t> begins;
  for (size_t at = 0, bytes = 0; (bytes = PerfRecordBytes(records.substr(at))) != 0; at += bytes)
    begins.push_back(at);
  size_t end = records.size();
  for (; !begins.empty(); begins.pop_back()) {
    const auto record = parser.Parse(records.substr(begins.back(), end - begins.back()));
    if (!record || (record->time >= 0 && record->time <= trigger)) break;
    end = begins.back();
  }
  ring->head -= ring->records.size() - end;
  ring->records.resize(end);
  ring->taken = std::min(ring->taken, trigger);
}

}  // namespace

CpuRecording::CpuRecording(FileSystem& files, std::unique_ptr<CpuRecorder> recorder,
                           std::vector<std::string> command)
    : files_(files), recorder_(std::move(recorder)), origin_(ThisMachine()) {
  origin_.command = std::move(command);
}

Status CpuRecording::Capture() {
  captured_.reset();
  auto captured = recorder_->Take();
  if (!captured.ok()) return captured.status();
  captured_ = std::move(*captured);
  const PerfRecordParser parser(captured_->events);
  for (PerfRing& ring : captured_->rings) EndAt(captured_->time, parser, &ring);
  return {};
}

Result<ThreadHistory> CpuRecording::ReadHistory() {
  auto captured = recorder_->Take();
  if (!captured.ok()) return captured.status();
  return ThreadHistory(*captured);
}

// Where less was asked for than the rings hold, what is older stays out of the file, too.
void CpuRecording::Trim(const std::vector<RingMark>& last_marks, Window* window) {
  const WindowPolicy policy = window->policy;
  if (policy == WindowPolicy::kCoherent || policy == WindowPolicy::kEverything) return;
  const PerfRecordParser parser(captured_->events);
  for (PerfRing& ring : captured_->rings) {
    const RingMark* mark =
        policy == WindowPolicy::kSinceLast ? FindMark(last_marks, NameOfRing(ring)) : nullptr;
    // The records since the snapshot before are wanted whatever their time: it read one ring after
    // the other.
    const TimeNs from = policy == WindowPolicy::kSinceLast ? 0 : window->time.from;
    ring.records.erase(0, BytesBefore(ring, parser, from, mark == nullptr ? 0 : mark->head));
  }
  for (RingCoverage& ring : window->rings) ring.stale.clear();
}

CpuManifest CpuRecording::Describe(uint64_t file_bytes) const {
  CpuManifest cpu;
  cpu.file = kCpuFileName;
  cpu.file_bytes = file_bytes;
  cpu.bytes = BytesOf(*captured_);
  cpu.took = captured_->took;
  cpu.side_band_lost = captured_->side_band_lost;
  cpu.threads_at_start = captured_->threads_at_start;
  cpu.threads_not_recorded = captured_->threads_not_recorded;
  for (const PerfEvent& event : captured_->events) {
    if (event.filter.empty()) cpu.events.push_back(event.name);
  }
  for (const PerfRing& ring : captured_->rings) {
    ++cpu.rings;
    cpu.ring_bytes = std::max(cpu.ring_bytes, ring.capacity_bytes);
    cpu.discarded_bytes += ring.discarded_bytes;
  }
  return cpu;
}

void CpuRecording::Remember(const WindowInput& input, WindowFinder* finder) const {
  std::vector<RingMark> marks = MarksOf(input);
  for (const PerfRing& ring : captured_->rings) {
    for (RingMark& mark : marks) {
      if (mark.ring == NameOfRing(ring)) mark.lost_records = ring.lost_records;
    }
  }
  finder->Remember(std::move(marks), captured_->time);
}

Status CpuRecording::Write(const std::string& folder, bool since_last,
                           std::vector<RingHistory> others, TimeNs clock_error,
                           WindowFinder* finder, Manifest* manifest) {
  WindowInput input;
  input.clock_error = clock_error;
  AddCpuRings(*captured_, finder->last_marks(), finder->last_trigger(), &input);
  finder->AddStreams(folder, *manifest, captured_->time, &input);
  for (RingHistory& ring : others) input.rings.push_back(std::move(ring));
  Window window = finder->Find(input, captured_->time, since_last);
  const RecordedRings rings =
      RecordedOf(*captured_, input, window, finder->last_marks(), manifest->pid);
  Trim(finder->last_marks(), &window);
  const TaskEnds ends(captured_->side_band);
  for (PerfRing& ring : captured_->rings) DropEndsOfOthers(captured_->events, ends, &ring);
  auto written = WritePerfFile(files_, folder + "/" + kCpuFileName, *captured_, origin_, &rings);
  if (!written.ok()) return written.status();
  manifest->cpu = Describe(*written);
  manifest->window = std::move(window);
  Remember(input, finder);
  captured_.reset();
  return {};
}

}  // namespace hangscope

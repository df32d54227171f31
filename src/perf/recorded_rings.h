// What hangscope's own perf.data files say of the rings that they were made of: since when each of
// them had everything, and the window that the snapshot declared. So that a copy of cpu.perf.data
// tells the same without its manifest.json. It is a feature of the file's header whose number perf
// does not know, and which it passes over: JSON, docs/perf-data.md has an example.
#ifndef HANGSCOPE_PERF_RECORDED_RINGS_H
#define HANGSCOPE_PERF_RECORDED_RINGS_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/window.h"

namespace hangscope {

struct RecordedRing {
  int cpu = -1;
  TimeNs recording_since = 0;
  // From here to `until` the file has all that was recorded on the CPU, but for what LOST records
  // tell. What came before was overwritten, or is left out.
  TimeNs complete_since = 0;
  TimeNs until = 0;
};

struct RecordedRings {
  TimeSpan window;
  WindowPolicy policy = WindowPolicy::kCoherent;
  int process = 0;  // of the command; 0: not known
  std::vector<RecordedRing> rings;
};

std::string RecordedRingsText(const RecordedRings& rings);
// Nothing where it is damaged, of a newer version, or contradicts itself.
std::optional<RecordedRings> ParseRecordedRings(std::string_view text);

}  // namespace hangscope

#endif

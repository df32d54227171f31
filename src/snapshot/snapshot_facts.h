// What a snapshot's manifest.json says, read back: of a recording that may be damaged, cut, or a
// newer hangscope's.
#ifndef HANGSCOPE_SNAPSHOT_SNAPSHOT_FACTS_H
#define HANGSCOPE_SNAPSHOT_SNAPSHOT_FACTS_H

#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/manifest.h"

namespace hangscope {

struct SnapshotFacts {
  int version = 0;
  std::string host;
  std::vector<std::string> command;
  std::string elf;
  int pid = 0;
  std::string verdict;                // one line; empty: none was reached
  TimeNs wall_minus_monotonic = 0;    // 0: not known
  std::optional<TimeNs> trigger;      // monotonic
  std::vector<ScopeClockFit> clocks;  // of the scope's cores
  std::string scope_not_in_window;    // one sentence; empty: its times are the window's
  std::optional<Window> window;
  std::vector<std::string> streams;   // their names
  std::vector<std::string> troubles;  // what in it makes no sense, or is newer than this program
};

// Fails where there is none or it is no manifest; what is missing in it stays empty.
Result<SnapshotFacts> ReadSnapshotFacts(FileSystem& files, const std::string& folder);

}  // namespace hangscope

#endif

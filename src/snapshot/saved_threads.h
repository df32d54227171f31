// The threads of a program that stood still, as threads.jsonl of a snapshot has them: the stored
// look at a process that process/process_json.h writes.
#ifndef HANGSCOPE_SNAPSHOT_SAVED_THREADS_H
#define HANGSCOPE_SNAPSHOT_SAVED_THREADS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/report.h"

namespace hangscope {

struct SavedThread {
  uint64_t tid = 0;
  uint64_t pid = 0;  // of its process; 0: not known
  std::string name;
  std::string process;          // "4711 make: make -j2"
  std::string state;            // the kernel's: "sleeping"
  std::string stand;            // what it is to its waiters: "waits", "outside", "spins"
  std::string does;             // "waits 2.1 s for mutex lock_b, held by 20563"
  std::optional<TimeNs> lasts;  // so long it had done that
  std::string waits_for;        // "mutex lock_b, held by 20563"; empty: it does not wait
  std::vector<uint64_t> by;     // threads and processes that could end the wait, ascending
  ReportPlace where;
  std::vector<ReportPlace> stack;
};

struct SavedThreads {
  std::vector<SavedThread> threads;     // in the order of the file
  std::vector<ReportFinding> findings;  // of the verdict on them
  std::optional<TimeNs> looked;         // monotonic
  std::optional<TimeNs> looked_wall;    // the same instant
  size_t damaged_lines = 0;
};

// What is absent, of another type or out of range stays empty.
Result<SavedThreads> ReadSavedThreads(FileSystem& files, const std::string& path);
// The same of the lines themselves.
SavedThreads ParseSavedThreads(const std::string& lines);

}  // namespace hangscope

#endif

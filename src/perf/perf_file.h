// perf.data, as perf writes it into a file or a pipe, compressed or not: nothing in it is trusted,
// what can be read is read, and the rest is said. Format:
// tools/perf/Documentation/perf.data-file-format.txt of Linux.
#ifndef HANGSCOPE_PERF_PERF_FILE_H
#define HANGSCOPE_PERF_PERF_FILE_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/perf_event.h"
#include "perf/perf_record.h"
#include "perf/recorded_rings.h"

namespace hangscope {

// Whether it begins as a perf.data does, or is a folder of perf record --threads; false, too, where
// it cannot be read.
bool IsPerfData(FileSystem& files, const std::string& path);

// Trace bytes in the file: a PERF_RECORD_AUXTRACE with what follows it; or what a sample has
// (PERF_SAMPLE_AUX, perf record --aux-sample).
struct AuxTrace {
  uint64_t file_offset = 0;    // of the bytes
  uint64_t bytes = 0;          // that are there
  uint64_t missing_bytes = 0;  // the file ends before
  uint64_t offset = 0;         // of the ring's history
  uint64_t reference = 0;
  uint32_t index = 0;
  int tid = -1;
  int cpu = -1;
  // Of a sample: no two of them are known to touch, and so `offset` has a byte between them.
  bool sampled = false;
  TimeNs time = -1;  // likewise
  int pid = -1;
};

// Which memory was mapped when.
struct PerfMapping {
  int pid = 0;
  TimeNs time = 0;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  // bytes; may be empty
  bool executable = false;
};

// Where a record lies in the file.
struct PerfRecordPlace {
  uint64_t offset = 0;  // compressed: of what it was in
  uint32_t bytes = 0;   // its header with them
  bool compressed =
      false;  // it is not in the file as it is: compressed, or of the other byte order
};

struct PerfFileFacts {
  bool pipe = false;
  bool compressed = false;
  std::string host, release, version, architecture, command;  // may be empty
  // a sentence each: truncated, corrupted, not understood; those in records are known when ForEach
  // has read them
  std::vector<std::string> warnings;
  std::string auxtrace_info;                                   // the record's body; empty: none
  std::vector<std::pair<std::string, std::string>> build_ids;  // path, bytes
  std::optional<RecordedRings> rings;                          // of a file that hangscope wrote
};

// How far a file is read before its records are asked for: through all of it; or only up to the
// first event, and the rest of facts() and aux() is known when ForEach has read it.
enum class PerfOpen { kAll, kDefinitions };

// One thread. Memory is bounded, however long the file is: it is read through a window.
class PerfFile {
 public:
  // Reads what is no event. `path` may be a folder of perf record --threads. Fails where it is no
  // perf.data, or nothing of it can be read.
  static Result<std::unique_ptr<PerfFile>> Open(FileSystem& files, const std::string& path,
                                                PerfOpen how = PerfOpen::kAll);
  ~PerfFile();

  const std::vector<PerfEvent>& events() const;
  const PerfFileFacts& facts() const;
  const std::vector<AuxTrace>& aux() const;
  // Whether there is anything of hardware traces: aux(), or records that tell of them. Known before
  // the first ForEach, or came_late() says later that it was wrong.
  bool has_traces() const;
  // Something between the records said that events are others than was known, or that there are
  // traces: what ForEach handed out means nothing, and the file is to be opened again, and all of
  // it.
  bool came_late() const;
  // Of the file, or of all those in its folder: offsets count through them.
  uint64_t bytes() const;
  // All records in the order of the file, those in compressed ones, too (COMPRESSED itself is not
  // handed out); stops where `take` says false. Views in a record are valid during the call. Fails
  // where the file cannot be read.
  Status ForEach(const std::function<bool(const PerfRecord&)>& take);
  // The same, with where each is; `bytes` are the record's own, valid during the call.
  using ReadPlaced = std::function<bool(const PerfRecord& record, const PerfRecordPlace& place,
                                        std::string_view bytes)>;
  Status ForEachPlaced(const ReadPlaced& take);
  // What the file holds at `offset`: fewer bytes only at its end.
  Result<std::string> ReadAt(uint64_t offset, uint64_t bytes);
  // The bytes of one AUX trace; at most `most` from `begin` on.
  Result<std::string> ReadAux(const AuxTrace& trace, uint64_t begin, uint64_t most);

 private:
  struct Impl;
  explicit PerfFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hangscope

#endif

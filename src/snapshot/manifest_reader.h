// What a snapshot's manifest.json says, read back: the only reader of it. The snapshot may be
// damaged, cut, or a newer hangscope's: what is absent, of another type or out of range stays
// empty. snapshot/manifest_writer.h has the writer, docs/json.md the schema.
#ifndef HANGSCOPE_SNAPSHOT_MANIFEST_READER_H
#define HANGSCOPE_SNAPSHOT_MANIFEST_READER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/manifest.h"
#include "model/report.h"
#include "model/trace.h"

namespace hangscope {

// States, kinds and reasons are the file's words: a newer hangscope may have some that this one
// does not know.
struct SavedVerdict {
  std::string state, confidence, summary;
  bool hang = false;
  std::vector<std::string> evidence, doubts;
  std::vector<ReportFinding> findings;
  std::vector<ReportLastOutput> last_output;
  std::vector<ReportLoop> loops;              // of the cores that have one
  std::vector<TraceSinceCycle> since_cycles;  // of the cores whose trace counts cycles
  std::vector<std::string> trace_streams;     // the streams that carry an instruction trace
};

struct SavedLoss {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string reason;
};

struct SavedStream {
  std::string name;  // may be no name of a file
  uint64_t begin_offset = 0;
  std::vector<SavedLoss> losses;
};

struct SavedWindow {
  Window window;  // as far as this hangscope knows it; no span in it ends before it begins
  // As the file has them.
  std::optional<TimeNs> from, to;
  std::string policy;
  std::string limited_by;              // "CPU 1 events"; empty: by none
  std::map<std::string, size_t> gaps;  // "CPU 1 events: overwritten", and how many

  bool has_times() const { return from && to && *from <= *to; }
};

// A memory of a device.
struct SavedMemory {
  std::string name;
  std::string unread;  // why it is not there; empty: it is
};

struct SavedManifest {
  std::string path;        // of the file, for messages
  bool is_object = false;  // false: it is no object of JSON, and nothing but its trouble is known
  // One sentence: it is damaged, not of hangscope, or newer than this one. Empty: none of them.
  std::string warning;
  std::string format;  // kManifestFormat, unless something else wrote it
  std::optional<double> version;
  std::string run_id, host, elf, elf_id;
  std::vector<std::string> command;  // of any length
  uint64_t pid = 0;
  std::string start, taken;       // UTC, as the file has them
  std::optional<TimeNs> elapsed;  // from the start until the snapshot was taken
  std::string trigger, trigger_kind, trigger_detail, trigger_stream;
  std::string trigger_time;             // UTC
  std::optional<TimeNs> trigger_after;  // from the start on
  std::vector<SavedStream> streams;
  ScopeManifest scope;     // its cores and clocks, and why cores are not in the window
  bool is_device = false;  // of several memories
  std::vector<SavedMemory> memories;
  CpuManifest cpu;  // what was lost
  std::optional<SavedWindow> window;
  std::optional<SavedVerdict> verdict;
};

// Fails where the file cannot be read, or is larger than any manifest.
Result<SavedManifest> ReadManifest(FileSystem& files, const std::string& folder);

// Of the snapshot whose CPUs' file this is; nothing where it is another file, or lies elsewhere.
std::optional<SavedManifest> ManifestBeside(FileSystem& files, const std::string& cpu_file);

// All members of the verdict, in the order of the file, those included that this hangscope does not
// know. Empty: there is none.
nlohmann::ordered_json ReadVerdictMembers(FileSystem& files, const std::string& folder);

}  // namespace hangscope

#endif

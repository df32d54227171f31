// What a snapshot says of itself: manifest.json.
#ifndef HANGSCOPE_MODEL_MANIFEST_H
#define HANGSCOPE_MODEL_MANIFEST_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/scope.h"
#include "model/stream_window.h"
#include "model/trigger.h"
#include "model/verdict.h"
#include "model/window.h"

namespace hangscope {

constexpr char kManifestFormat[] = "hangscope-snapshot";
constexpr int kManifestVersion = 2;

// Where a core's clock and CLOCK_MONOTONIC meet: `count` was at `at`, and `ns_per_count` goes on
// from there.
struct ScopeClockFit {
  uint32_t core = 0;
  uint64_t count = 0;
  TimeNs at = 0;
  double ns_per_count = 0;
  TimeNs error = 0;  // either way, of the events that the core's ring has
};

// The scope in a snapshot: its files, and what its cores had recorded.
struct ScopeManifest {
  std::string image;    // name of the file; empty: there is no scope
  std::string catalog;  // likewise
  std::vector<ScopeCore> cores;
  std::vector<ScopeClockFit> clocks;  // of the cores whose rings are in the window, ascending
  // one sentence: why cores are no rings of the window; empty: none is missing
  std::string not_in_window;
};

// A memory of a device in a snapshot.
struct MemoryManifest {
  std::string name;   // as the device's file has it
  std::string place;  // "(1,0)", "(host)"
  std::string image;  // name of the file; empty: it could not be read
  uint64_t image_bytes = 0;
  std::string catalog;           // likewise
  std::vector<ScopeCore> cores;  // their numbers are its own
  std::string unread;            // why it could not be read; empty: it could
};

// The memories of a device in a snapshot.
struct DeviceManifest {
  std::string file;  // name of the one that lists them; empty: it is no device
  std::string name;
  std::vector<MemoryManifest> memories;
};

// The CPUs' rings in a snapshot.
struct CpuManifest {
  std::string file;  // its name; empty: there are none
  uint64_t file_bytes = 0;
  uint64_t rings = 0;
  uint64_t ring_bytes = 0;          // the room of each
  uint64_t bytes = 0;               // of records in the file
  std::vector<std::string> events;  // as perf names them
  TimeNs took = 0;                  // reading them, from the trigger on
  uint64_t discarded_bytes = 0;     // overwritten while they were read
  uint64_t side_band_lost = 0;      // names and mappings that found no room
  uint64_t threads_at_start = 0;    // when the recording began; and how many of them it lacks
  uint64_t threads_not_recorded = 0;
};

struct Manifest {
  uint64_t run_id = 0;
  Trigger trigger;
  Post post;                         // that lies between the trigger and `time`
  bool since_last = false;           // only what no snapshot before it has was asked for
  std::vector<std::string> command;  // empty for tee
  int pid = 0;                       // of the child; 0: none
  std::string elf;                   // path given; empty: none
  std::string elf_id;                // as ProgramId has it; empty: not known
  std::string host;
  TimeNs start_wall = 0;
  TimeNs start = 0;  // monotonic, as all other times
  TimeNs time = 0;   // when it was taken: the end of the window
  TimeNs wall = 0;   // the same instant
  std::vector<StreamWindow> streams;
  ScopeManifest scope;
  DeviceManifest device;
  CpuManifest cpu;
  // over the rings of CPUs, streams and scope; where CPUs or a scope are recorded
  std::optional<Window> window;
  Verdict verdict;
};

}  // namespace hangscope

#endif

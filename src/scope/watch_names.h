// What cores, tasks, resources, waypoints and faults are called: by the catalog, the ELF, and where
// both are silent, by their numbers. Pure text; what comes from the target is made printable.
#ifndef HANGSCOPE_SCOPE_WATCH_NAMES_H
#define HANGSCOPE_SCOPE_WATCH_NAMES_H

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "code/code_source.h"
#include "model/verdict.h"
#include "model/watch.h"
#include "scope/scope_catalog.h"

namespace hangscope {

struct SourceLine {
  std::string path;
  uint32_t line = 0;
};

class WatchNames {
 public:
  // `code` may be null; `program_at` is the layout's. Both outlive this.
  WatchNames(const ScopeCatalog& catalog, CodeSource* code, uint64_t program_at);

  // The names that the scope's rings give (threads), and where nodes lie; others are numbered.
  void SetCores(const std::vector<ScopeCore>& cores, const std::vector<NodeSample>& nodes);
  // The nodes are a device's, of which the scope is one: threads are told with theirs, too.
  void SetOfDevice() { of_device_ = true; }

  // "core 3", "core 3 writer (1,2)", "thread decoder".
  std::string Core(uint32_t core, const CoreSample& sample) const;
  std::string Node(uint32_t node) const;           // "(1,2)"; empty: there is one only
  std::string Thread(uint32_t core) const;         // "decoder"; empty: it has no name
  std::string Task(uint32_t id) const;             // "task 3 motor", "task 3"
  std::string Role(uint16_t role) const;           // empty: it has no name
  std::string Kernel(uint32_t kernel) const;       // "7 matmul (kernels/matmul.cc)", "7"
  std::string ShortKernel(uint32_t kernel) const;  // "7 matmul", "7"
  std::string Resource(uint32_t resource) const;   // "cb3 of (1,2)", "queue_lock", "0x80001234"
  // Of a number that is no node's.
  std::string LocalResource(uint32_t resource) const;
  // Behind "waits for": the resource, or a word where the kind is what is waited for: "time to
  // pass", "being resumed".
  std::string WaitedFor(ResourceKind kind, uint32_t resource) const;
  // "CRBW", without what is not printable.
  static std::string Waypoint(uint32_t waypoint);
  // "reserve back, dataflow.c:88 in cb_reserve_back", as far as it is known; or empty.
  std::string WaypointPlace(uint32_t waypoint) const;
  // Of that, where it is known, only "dataflow.c:88 in cb_reserve_back".
  std::string ShortWaypointPlace(uint32_t waypoint) const;
  // The functions that have it, by the program; empty: not known.
  std::vector<std::string> WaypointFunctions(uint32_t waypoint) const;
  // Of where a core stands and its callers, as CodeSource::Unwind has them: with their names, as
  // far as there are any.
  std::vector<hangscope::Place> Places(const std::vector<uint64_t>& pcs) const;
  // One sentence: "assert 'count below capacity' tripped at cb.c:41 in cb_push", "write of 64 bytes
  // to (3,1) 0x1000 from 0x200: zero length".
  std::string Fault(const CoreFault& fault) const;
  // "bank.c:88 in transfer"; empty: not known.
  std::string Place(uint64_t pc) const;
  // "cb.c:41 in cb_push", "bank.c:88 in transfer"; empty: not known.
  std::string FaultPlace(const CoreFault& fault) const;
  // Where the fault stands in the source, with its folder, as the target says: nothing that a file
  // may be opened by unseen. Nothing: not known.
  std::optional<SourceLine> FaultSource(const CoreFault& fault) const;

 private:
  const CatalogEntry* FindAssert(const CoreFault& fault) const;
  std::pair<std::string, std::string> FindWaypoint(uint32_t waypoint) const;
  std::string WholePath(std::string path, uint64_t pc) const;
  std::string BusFault(const CoreFault& fault) const;
  std::string Cause(uint32_t cause) const;

  const ScopeCatalog& catalog_;
  CodeSource* const code_;
  const uint64_t program_at_;
  std::vector<ScopeCore> cores_;
  std::vector<NodeSample> nodes_;
  bool of_device_ = false;
};

}  // namespace hangscope

#endif

// What watch, why and set say about a target, as people read it.
#ifndef HANGSCOPE_SCOPE_WATCH_TEXT_H
#define HANGSCOPE_SCOPE_WATCH_TEXT_H

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"
#include "model/watch.h"
#include "scope/watch_names.h"

namespace hangscope {

// Of a device of several memories: who names a subject, and its number in its own memory.
struct SubjectHome {
  const WatchNames* names = nullptr;   // by the ELF that its core runs
  const WatchNames* kernel = nullptr;  // by what was loaded at run time; null: nothing
  uint32_t index = 0;                  // of the core, or the id of the task
  std::string place = {};              // "(1,2)", "(host)"
  std::string memory = {};             // as the device's file names it
};
// Likewise of a resource that is known in one memory only.
struct ResourceHome {
  const WatchNames* names = nullptr;
  uint32_t number = 0;
  std::string place = {};
};

// What a text about a target is made from. All of it outlives this.
struct WatchScene {
  std::string target;                                   // as people call it
  bool of_several = false;                              // targets: texts begin with its name
  const std::vector<SubjectState>* subjects = nullptr;  // cores, then tasks
  const WatchNames* names = nullptr;
  const std::vector<NodeSample>* nodes = nullptr;
  TimeNs now = 0;        // monotonic
  bool is_dead = false;  // the target does not change any more
  // Of a device; else null. By subject, and by resource as the subjects' waits have it.
  const std::vector<SubjectHome>* homes = nullptr;
  const std::map<uint32_t, ResourceHome>* resources = nullptr;
  bool is_partly_unread = false;  // a memory of it cannot be read
  // Where cores stand and who called that, the innermost first; null: of none it is known.
  const std::map<SubjectId, std::vector<Place>>* stacks = nullptr;

  // Null: there is no such subject.
  const SubjectState* Find(const SubjectId& subject) const;
  // Null: the target is no device.
  const SubjectHome* HomeOf(const SubjectId& subject) const;
  const WatchNames& NamesOf(const SubjectId& subject) const;
  // Of the code that knows the waypoint, or the place of the fault.
  const WatchNames& NamesOf(const SubjectId& subject, uint32_t waypoint) const;
  const WatchNames& NamesOf(const SubjectId& subject, const CoreFault& fault) const;
  // The number by which people know a core in its own memory, or a task.
  uint32_t NumberOf(const SubjectState& subject) const;
  // What `who` waits for, or could.
  std::string ResourceOf(const SubjectId& who, uint32_t resource) const;
  std::string WaitedForBy(const SubjectState& subject) const;
};

// What led up to a finding.
struct FindingHistory {
  std::vector<std::string> events;  // of one core or task, the oldest first; each one a line's text
  std::vector<DebugValue> debug;    // of its node, the newest first
  std::vector<ShownWord> words = {};  // of those whom the finding is about
};

// A core or task and what it does, without its Linux thread.
FindingSubject ToldSubject(const SubjectId& subject, const WatchScene& scene);
// "core 1 writer (0,0)", "task 3".
std::string SubjectName(const SubjectId& subject, const WatchScene& scene);
// Where it is by its fault or waypoint: "dataflow.c:88 in cb_reserve_back"; empty: not known.
std::string SubjectPlace(const SubjectId& subject, const WatchScene& scene);

// What it does, with its wait where it has one: "waits 31.0 s at CRBW for cb3 of (1,2)", "runs at
// MULR".
std::string SubjectDoing(const SubjectState& subject, const WatchScene& scene);

// The same of one that waits, with its name and place, and from whom it would get it.
std::string WaitLine(const SubjectId& who, const std::vector<SubjectId>& from,
                     const WatchScene& scene);

// "HANG: deadlock, 2 of 5 cores wait for each other (certain)"; one line without an end.
std::string FindingHeadline(const ScopeFinding& finding, const WatchScene& scene);
// "deadlock, 2 of 5 cores wait for each other"; one line without an end.
std::string FindingSummary(const ScopeFinding& finding, const WatchScene& scene);
// The finding with all that is known of it, in lines.
std::string FindingText(const ScopeFinding& finding, const WatchScene& scene,
                        const FindingHistory& history);
// What travels of it: all but the Linux threads of its subjects (LiveScope::Tell has those).
Finding ToldFinding(const ScopeFinding& finding, const WatchScene& scene,
                    const FindingHistory& history);
// Eight values a row, the newest first, each with the core that wrote it.
std::vector<std::string> DebugRingRows(const std::vector<DebugValue>& values);

// What the columns and their words mean, in lines.
std::string WatchLegend();

// The columns of a WatchTable, in its order.
enum class WatchColumn { kWho, kNode, kRole, kActivity, kAt, kWaitsFor, kSince, kKernel, kStack };
constexpr size_t kWatchColumns = 9;
const char* WatchColumnTitle(WatchColumn column);
// A subject's line by column; empty: nothing to say.
std::vector<std::string> WatchCells(const SubjectState& subject, const WatchScene& scene);

// Aligned columns: one line for each core and task. The widths are those of what there is at the
// beginning and what usually comes; a longer word pushes the rest of its line.
class WatchTable {
 public:
  // `all_columns`: also those in which nothing stands.
  WatchTable(const WatchScene& scene, bool all_columns);

  std::string Head() const;
  std::string Line(const SubjectState& subject, const WatchScene& scene) const;

 private:
  std::vector<size_t> widths_;  // 0: the column is left out
  bool has_tasks_ = false;
};

}  // namespace hangscope

#endif

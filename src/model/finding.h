// What is found wrong: Finding is what travels to the judge, to texts, JSON, JUnit and the page.
// Until its source has told it, it is of a type that only the source understands: ScopeFinding,
// ProcessFinding, PerfFinding.
#ifndef HANGSCOPE_MODEL_FINDING_H
#define HANGSCOPE_MODEL_FINDING_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/confidence.h"

namespace hangscope {

// The first seven, in this order, are also those of the host API.
enum class FindingKind {
  kDeadlock,  // a cycle of waits
  // Of a scope's cores and tasks.
  kStarved,   // a wait, or a ready task, whose holder or providers never deliver
  kSilent,    // a core stands still and does not wait
  kFault,     // assert, bus, hardware, stack, guard, pending
  kStackLow,  // fewer than 64 bytes were ever free; a warning
  kCorrupt,   // a word of a mailbox or record cannot be right
  kDead,      // the target is gone
  // Of a process's threads.
  kOwnerDied,   // a lock whose holder is no more
  kCopiedLock,  // a lock that was held when fork() copied it
  kLostWakeup,  // waits for a signal that nobody is left to give
  kNoWriter,    // reads from what nobody writes
  kStoppedChild,
  kStopped,  // it is stopped itself
  kHeld,     // waits for somebody who stands still for another reason
  kSpin,
  kZombie,
};

constexpr std::string_view FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kStarved:
      return "starved";
    case FindingKind::kSilent:
      return "silent";
    case FindingKind::kFault:
      return "fault";
    case FindingKind::kStackLow:
      return "stack";
    case FindingKind::kCorrupt:
      return "corrupt";
    case FindingKind::kDead:
      return "dead";
    case FindingKind::kOwnerDied:
      return "owner-died";
    case FindingKind::kCopiedLock:
      return "copied-lock";
    case FindingKind::kLostWakeup:
      return "lost-wakeup";
    case FindingKind::kNoWriter:
      return "no-writer";
    case FindingKind::kStoppedChild:
      return "stopped-child";
    case FindingKind::kStopped:
      return "stopped";
    case FindingKind::kHeld:
      return "held";
    case FindingKind::kSpin:
      return "spin";
    case FindingKind::kZombie:
      return "zombie";
  }
  return "unknown";
}

// A conclusion and how well it is founded: a finding, or a verdict over several.
struct Conclusion {
  Confidence confidence = Confidence::kPossible;
  std::string summary;                // one line: "deadlock, 2 of 5 cores wait for each other"
  std::vector<std::string> evidence;  // what it rests on
  std::vector<std::string> doubts;    // what lowers the confidence

  void Lower(Confidence limit, std::string why) {
    confidence = std::min(confidence, limit);
    doubts.push_back(std::move(why));
  }
};

// Where the evidence comes from.
enum class Source { kStreams, kScope, kThreads, kPerf };

constexpr std::string_view SourceName(Source source) {
  switch (source) {
    case Source::kStreams:
      return "streams";
    case Source::kScope:
      return "scope";
    case Source::kThreads:
      return "threads";
    case Source::kPerf:
      return "perf";
  }
  return "unknown";
}

// What the findings of all sources have.
struct SourceFinding : Conclusion {
  FindingKind kind = FindingKind::kHeld;
  Source source = Source::kThreads;
  bool is_warning = false;  // no hang and no fault, however sure it is
  // Who waits runs or naps meanwhile: that it moves does not end its wait.
  bool is_restless = false;
  TimeNs since = 0;  // monotonic; when it began, as far as was seen; 0: not known

  // Worth an exit status of 1.
  bool IsBad() const { return !is_warning && confidence > Confidence::kPossible; }
};

// A look may hold processes of several hosts: those of the k-th other one have their numbers and k
// times this, which is more than any number of Linux.
constexpr int kIdsOfHost = 1 << 22;
constexpr int kMostHosts = 500;  // in one look
constexpr int IdOnHost(int id) { return id % kIdsOfHost; }

// Whom a finding is about, who would have to act, or who waits for these: its numbers, and words.
struct FindingSubject {
  std::string name;                   // "4713 worker-b", "core 1 writer (0,0)"
  std::optional<uint32_t> core = {};  // of a scope
  std::optional<uint32_t> task = {};  // likewise: its id
  int process = 0;                    // of Linux; 0: none, or not known
  int thread = 0;                     // likewise
  std::string host = {};              // where it runs; empty: where it is judged
  std::string does = {};              // "waits 41.0 s for mutex lock_b, held by 4713"
  std::string at = {};                // its waypoint
  std::string where = {};             // "transfer  abba.c:31"
  // Where in a function that `where` called: of a core of a scope its waypoint's place, where the
  // caller is known; else empty
  std::string inside = {};
  // Those that have its waypoint, by the program; for judges alone
  std::vector<std::string> functions = {};
  std::string waits_for = {};         // "mutex lock_b, held by 4713"; empty: nothing, or unknown
  std::optional<TimeNs> lasts = {};   // since it began to do so
  std::optional<uint32_t> hart = {};  // of a core of a scope: which no other core of it is
  // Of a core or task of a device: its memory as the device's file names it, and its node.
  std::string memory = {};
  std::optional<std::pair<uint32_t, uint32_t>> node = {};  // x, y
  // Of `where`, the nearest first, as far as they are known: "main  abba.c:40".
  std::vector<std::string> callers = {};
};

// A word of the program's own that it registered to be shown (target/show.h), as it was read.
struct ShownWord {
  std::string of;                // "all", "node (1,0)", "core 3 writer (0,0)"
  std::string memory;            // of a device: the name of its memory
  std::string name;              // "cb0 received"
  std::optional<int64_t> value;  // nothing: it cannot be read
  std::string text;              // the value by its type; or why it cannot be read
};

inline constexpr size_t kMostCallers = 8;  // that are told of one

// A branch that a hardware trace tells; 0: it enters what is traced, or leaves it.
struct FindingBranch {
  uint64_t from = 0;
  uint64_t to = 0;
  std::string from_place = {};  // "worker+0x14 abba.c:40"; empty: not known
  std::string to_place = {};
  uint64_t times = 1;  // one after the other
};

// Where a thread went last, by the trace of the CPU that it ran last on.
struct FindingTrace {
  std::string name;  // "4713 worker-b"
  int thread = 0;
  int cpu = -1;                              // -1: not known
  std::vector<FindingBranch> branches = {};  // the newest, the oldest of them first
  std::string why_none = {};                 // a sentence, where there are none
};

// As it travels, in words: each source tells its own findings so (ToldFinding).
struct Finding : SourceFinding {
  Finding() = default;
  explicit Finding(const SourceFinding& found) : SourceFinding(found) {}

  // Whom it is about: of a deadlock each waits for the next, the last for the first. Those who are
  // the same threads of Linux in two sources are the same.
  std::vector<FindingSubject> subjects;
  std::vector<FindingSubject>
      partners;  // who would have to act: holds, or provides, what is waited for
  std::vector<FindingSubject> victims;  // who else waits for these, directly or not
  std::string resource;                 // what is waited for, where it is one thing; else empty
  std::string first;                    // who stopped first; empty: not known
  // Who waits for whom, where, since when; of a scope the subjects' come first, in their order.
  std::vector<std::string> lines;
  std::vector<std::string> history;  // the last events of the first to stop, the oldest first
  // Of threads that were traced by hardware, when the snapshot was taken; `lines` has them, too.
  std::vector<FindingTrace> traces;
  std::vector<ShownWord> words;  // of a scope: of those that it is about, when it was told
  bool of_two_sources = false;   // neither of which tells it alone
  // What only its source knows, by name: of a fault its type, reason and place.
  std::vector<std::pair<std::string, std::string>> facts;
};

}  // namespace hangscope

#endif

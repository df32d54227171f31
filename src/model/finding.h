// What a judge finds wrong: the type that travels to texts, JSON, JUnit and the page. What the
// finding is about is in the type of each judge: ScopeFinding, ProcessFinding, PerfFinding.
#ifndef HANGSCOPE_MODEL_FINDING_H
#define HANGSCOPE_MODEL_FINDING_H

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

struct Finding : Conclusion {
  bool is_warning = false;         // no hang and no fault, however sure it is
  std::vector<std::string> lines;  // who waits for whom, where, since when

  // Worth an exit status of 1.
  bool IsBad() const { return !is_warning && confidence > Confidence::kPossible; }
};

}  // namespace hangscope

#endif

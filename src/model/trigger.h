// Why and when a snapshot is taken.
#ifndef HANGSCOPE_MODEL_TRIGGER_H
#define HANGSCOPE_MODEL_TRIGGER_H

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"

namespace hangscope {

enum class TriggerKind { kHang, kSignal, kSnap, kRegex, kRate, kSilence, kExit, kTimeout };

constexpr std::string_view TriggerKindName(TriggerKind kind) {
  switch (kind) {
    case TriggerKind::kHang:
      return "hang";
    case TriggerKind::kSignal:
      return "signal";
    case TriggerKind::kSnap:
      return "snap";
    case TriggerKind::kRegex:
      return "regex";
    case TriggerKind::kRate:
      return "rate";
    case TriggerKind::kSilence:
      return "silence";
    case TriggerKind::kExit:
      return "exit";
    case TriggerKind::kTimeout:
      return "timeout";
  }
  return "unknown";
}

struct Trigger {
  TriggerKind kind = TriggerKind::kSnap;
  std::string name;    // "regex: panic", "SIGUSR1": tells one trigger from another
  std::string detail;  // the line that matched, the status; may be empty
  TimeNs time = 0;     // monotonic; 0: when the snapshot was taken
  // Of kRegex: the line's stream and place in it.
  std::string stream;
  uint64_t begin_offset = 0;
  uint64_t end_offset = 0;
  // How often the same trigger fired since its snapshot before, and got none.
  uint64_t suppressed = 0;
};

// How much is recorded between a trigger and its snapshot; bytes are those of the stream that
// fired, else of all.
using Post = TimeOrSize;

}  // namespace hangscope

#endif

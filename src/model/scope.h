// What a scope says: the plain types between its reader and those who show it.
#ifndef HANGSCOPE_MODEL_SCOPE_H
#define HANGSCOPE_MODEL_SCOPE_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope {

// One record. `time` counts the target's clock in full width; see docs/format.md.
struct ScopeEvent {
  static constexpr size_t kMostParameters = 14;

  uint32_t core = 0;
  uint64_t sequence = 0;  // of the core's records, from 0
  uint32_t age = 0;       // starts of the target since: 0 is the newest run
  uint64_t time = 0;
  bool ambiguous = false;  // the time may be wrong by whole turns of a 32-bit clock
  uint32_t id = 0;
  uint32_t parameter_count = 0;
  std::array<uint32_t, kMostParameters> parameters{};
  std::optional<uint32_t> task;  // that ran, as far as the switches tell
};

enum class EventLossReason {
  kOverwritten,  // older than the ring holds
  kTorn,         // its writer never finished it
  kRefused,      // its place was held by an unfinished record
  kUnread,       // the dump is damaged where it lies
};

constexpr std::string_view EventLossReasonName(EventLossReason reason) {
  switch (reason) {
    case EventLossReason::kOverwritten:
      return "overwritten";
    case EventLossReason::kTorn:
      return "torn";
    case EventLossReason::kRefused:
      return "refused";
    case EventLossReason::kUnread:
      return "unread";
  }
  return "unknown";
}

// The records [begin, end) of a core are not to be had. Of those that are called overwritten
// here some may have been refused: which ones is not known any more, but how many is.
struct EventLoss {
  uint32_t core = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  EventLossReason reason = EventLossReason::kOverwritten;
  uint32_t age = 0;
  uint64_t time = 0;  // of a neighbour: where it belongs among the events
};

// emitted == returned + overwritten + torn + refused + pending + unread, always. Only a live
// target has records pending: begun, not finished, looked at again. Only a damaged dump has unread
// ones.
struct EventCounts {
  uint64_t emitted = 0;  // since the ring was cleared
  uint64_t returned = 0;
  uint64_t overwritten = 0;
  uint64_t torn = 0;
  uint64_t refused = 0;
  uint64_t pending = 0;
  uint64_t unread = 0;
};

// Classes of the kernel's events (abi/kernel_events.h), as bits of a ring's mask.
constexpr uint32_t kTaskClass = 1, kSyncClass = 2, kIsrClass = 4;

// A core's ring, as its control says.
struct ScopeCore {
  uint32_t index = 0;
  std::string name;  // of the owner; may be empty
  uint32_t owner = 0;
  uint32_t generation = 0;
  bool in_use = false;
  bool frozen = false;
  // That are recorded now; nothing: none is, and which were before that is not known.
  std::optional<uint32_t> classes = {};
  std::optional<uint32_t> records_until_frozen;  // where it is armed
  EventCounts counts;
};

enum class TaskState { kReady, kWaiting };
enum class ResourceKind { kNone, kExclusive, kChannel, kTime, kSuspended, kOutside };

constexpr std::string_view ResourceKindName(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kNone:
      return "none";
    case ResourceKind::kExclusive:
      return "exclusive";
    case ResourceKind::kChannel:
      return "channel";
    case ResourceKind::kTime:
      return "time";
    case ResourceKind::kSuspended:
      return "suspended";
    case ResourceKind::kOutside:
      return "outside";
  }
  return "unknown";
}

struct TaskWait {
  uint32_t index = 0;     // of the record
  uint32_t sequence = 0;  // the same in two looks: the same wait
  uint32_t task = 0;
  TaskState state = TaskState::kReady;
  ResourceKind kind = ResourceKind::kNone;
  uint32_t resource = 0;
  std::optional<uint32_t> holder;
  uint64_t since = 0;
};

// What the target says and cannot be right: never trusted, and reported. scope/scope_text.h has its
// words.
struct Corruption {
  enum class Part { kHeader, kCore, kTaskRecord, kNode };

  Part part = Part::kHeader;
  uint32_t index = 0;      // of the core, record or node
  std::string why;         // "0 to 2 are states"
  std::string field = {};  // "state"; empty: the whole part
  std::string value = {};  // "77"; empty: it does not matter
  // Of a device: which memory, and how many cores, or task records, of others come before its own.
  std::string memory = {};
  uint32_t first = 0;
};

}  // namespace hangscope

#endif

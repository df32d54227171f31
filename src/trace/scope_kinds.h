// A scope's events as those of any trace: what a catalog says of them, and what they mean for who
// ran and who waited.
#ifndef HANGSCOPE_TRACE_SCOPE_KINDS_H
#define HANGSCOPE_TRACE_SCOPE_KINDS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "scope/scope_catalog.h"
#include "scope/watch_names.h"

namespace hangscope {

// One thread.
class ScopeKinds {
 public:
  // `names` may be null. Both outlive this. `parameters`: that a record has room for.
  ScopeKinds(const ScopeCatalog& catalog, const WatchNames* names, uint32_t word_bytes,
             uint32_t parameters);

  // Where in `kinds` those of this id are: added, where they are not there yet. `kinds`: always the
  // same.
  size_t Of(uint32_t id, std::vector<TraceEventKind>* kinds) { return Know(id, kinds)->number; }
  // Fills in the kind, and all that follows from it: values, and by meaning who, from whom, what.
  // Of one core's events each, in their order: what a task waits in is told by the event before it
  // is switched away.
  void Fill(const ScopeEvent& event, std::vector<TraceEventKind>* kinds, TraceEvent* filled);

 private:
  struct Role {
    TraceMeaning meaning = TraceMeaning::kPlain;
    std::string what = {};     // begins or ends: "dma_read"
    std::string counter = {};  // kCounter
  };
  // What events say of the task that records them.
  enum class Says { kNothing, kOther, kDelays, kSuspends, kWaitsForSemaphore, kLocksMutex };
  // What is known of an id.
  struct Known {
    size_t number = 0;                 // of the kind
    const EventKind* entry = nullptr;  // of the catalog; null: it is not there
    Role role;
    Says says = Says::kOther;
  };
  // What a core's task has said last, if that was that it begins to wait.
  struct LastWait {
    std::optional<uint32_t> task;
    uint32_t id = 0;
    uint32_t resource = 0;
    uint32_t kind = 0;  // of a core's wait
  };

  TraceEventKind Describe(uint32_t id) const;
  Role RoleOf(uint32_t id) const;
  const Known* Know(uint32_t id, std::vector<TraceEventKind>* kinds);
  void FillValues(const ScopeEvent& event, const Known& known, TraceEvent* filled) const;
  std::string ResourceText(uint32_t resource) const;
  std::string WaitText(uint32_t id, uint32_t resource, uint32_t wait_kind) const;
  void AddWaitText(const LastWait& wait, std::string* text);
  void FillSwitch(const ScopeEvent& event, TraceEvent* filled);
  void FillBegin(const ScopeEvent& event, const Known& known, const TraceEventKind& kind,
                 TraceEvent* filled);
  void NoteWait(const ScopeEvent& event, Says says);
  LastWait& LastWaitOf(uint32_t core);
  static Says SaysOf(uint32_t id);
  static bool BeginsWait(const ScopeEvent& event, Says says);

  const ScopeCatalog& catalog_;
  const WatchNames* const names_;
  const uint32_t word_bytes_;
  const uint32_t parameters_;
  std::unordered_map<uint32_t, Known> known_;             // by id
  std::set<ptrdiff_t> own_;                               // the kinds that they are
  std::vector<LastWait> last_waits_;                      // by core
  std::unordered_map<uint64_t, std::string> wait_texts_;  // by id and resource: the first of them
};

}  // namespace hangscope

#endif

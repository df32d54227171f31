// A scope's events as those of any trace: what a catalog says of them, and what they mean for who ran and who waited.
#ifndef HANGSCOPE_SESSION_SCOPE_KINDS_H
#define HANGSCOPE_SESSION_SCOPE_KINDS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decode/scope_catalog.h"
#include "decode/watch_names.h"
#include "model/trace.h"

namespace hangscope {

// One thread.
class ScopeKinds {
 public:
  // `names` may be null. Both outlive this. `parameters`: that a record has room for.
  ScopeKinds(const ScopeCatalog& catalog, const WatchNames* names, uint32_t word_bytes, uint32_t parameters);

  // Where in `kinds` those of this id are: added, where they are not there yet.
  size_t Of(uint32_t id, std::vector<TraceEventKind>* kinds);
  // Fills in all that follows from the kind: values, and by meaning who, from whom, what. Of one core's events each, in
  // their order: what a task waits in is told by the event before it is switched away.
  void Fill(const ScopeEvent& event, const TraceEventKind& kind, TraceEvent* filled);

 private:
  struct Role {
    TraceMeaning meaning = TraceMeaning::kPlain;
    std::string what;    // begins or ends: "dma_read"
  };
  // What a core's task has said last, if that was that it begins to wait.
  struct LastWait {
    std::optional<uint32_t> task;
    std::string what;
  };

  TraceEventKind Describe(uint32_t id) const;
  Role RoleOf(uint32_t id) const;
  std::string WaitText(const ScopeEvent& event) const;
  void FillSwitch(const ScopeEvent& event, TraceEvent* filled);
  void NoteWait(const ScopeEvent& event);

  const ScopeCatalog& catalog_;
  const WatchNames* const names_;
  const uint32_t word_bytes_;
  const uint32_t parameters_;
  std::map<uint32_t, size_t> index_;         // by id
  std::map<uint32_t, Role> roles_;           // by id
  std::map<uint32_t, LastWait> last_waits_;  // by core
};

}  // namespace hangscope

#endif

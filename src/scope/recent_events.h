// What cores and tasks did last: the newest events of their rings, read when they are asked for.
// One thread.
#ifndef HANGSCOPE_SCOPE_RECENT_EVENTS_H
#define HANGSCOPE_SCOPE_RECENT_EVENTS_H

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "scope/scope_catalog.h"
#include "scope/scope_view.h"
#include "scope/watcher.h"

namespace hangscope {

// The newest events of a core or task, and how many records its ring had.
struct RingSample {
  struct Event {
    // "12.000345" where the clock's rate is known; "~" before one that may be wrong
    std::string time;
    std::string text;
  };
  std::vector<Event> events;      // the oldest first
  std::optional<ScopeCore> ring;  // of a core; nothing: it cannot be read
};

class RecentEvents {
 public:
  // `watcher` knows the tasks. All of them outlive this.
  RecentEvents(ScopeView& view, const ScopeCatalog& catalog, const Watcher& watcher)
      : view_(view), catalog_(catalog), watcher_(watcher) {}

  // Reads a core's whole ring, or for a task those of all cores; returns the newest `most` events.
  RingSample Read(const SubjectId& subject, size_t most);
  // The few newest ones as text, the oldest first.
  std::vector<std::string> LastTexts(const SubjectId& subject);
  // The target has run meanwhile: tasks are read anew.
  void Forget() { of_tasks_.reset(); }

 private:
  using Events = std::deque<ScopeEvent>;

  // A task of the watcher; null: `subject` is none.
  const SubjectState* TaskOf(const SubjectId& subject) const;
  std::optional<ScopeCore> ForEachEvent(uint32_t core,
                                        const std::function<void(const ScopeEvent&)>& take);
  const Events& OfTask(uint32_t task);
  std::vector<RingSample::Event> Describe(const Events& events) const;

  ScopeView& view_;
  const ScopeCatalog& catalog_;
  const Watcher& watcher_;
  // By task, as of one reading: a thousand findings about tasks read the rings once.
  std::optional<std::unordered_map<uint32_t, Events>> of_tasks_;
};

}  // namespace hangscope

#endif

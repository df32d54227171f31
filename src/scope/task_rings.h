// What the rings tell of an OS's tasks between two looks: who was given a core, who sleeps and for
// how long. Each record is read once. One thread.
#ifndef HANGSCOPE_SCOPE_TASK_RINGS_H
#define HANGSCOPE_SCOPE_TASK_RINGS_H

#include <map>
#include <vector>

#include "scope/event_reader.h"
#include "scope/watcher.h"

namespace hangscope {

class TaskRings {
 public:
  // `scope` outlives this.
  explicit TaskRings(const ScopeReader& scope);

  // Reads what is new in all rings.
  Result<TaskNews> Poll();

 private:
  struct Sleep {
    int64_t since_ns = 0;
    uint32_t ticks = 0;
  };

  void Take(const ScopeEvent& event, TaskNews* news);

  const ScopeReader& scope_;
  std::vector<EventReader> rings_;
  bool tells_switches_ = false;
  std::map<uint32_t, Sleep> sleeps_;  // by task; not over yet
  double longest_tick_ns_ = 0;        // of a sleep that is over; 0: none is
};

}  // namespace hangscope

#endif

// What the log of hangscope watch says of one target: a head for each file, a line for each change,
// and now and then a dump of all there is. One thread.
#ifndef HANGSCOPE_WATCH_TARGET_LOG_H
#define HANGSCOPE_WATCH_TARGET_LOG_H

#include <optional>
#include <string>
#include <vector>

#include "scope/watched_target.h"

namespace hangscope {

class TargetLog {
 public:
  // `json`: nothing but JSON lines. `all_words`: dumps have the words that the program wants
  // dumped, too, and not only those that it wants shown.
  TargetLog(Watchable& target, bool json, bool all_words)
      : target_(target), json_(json), all_words_(all_words) {}

  // How all cores and tasks are, and what kernels are called, in lines: at most about `most_bytes`.
  std::string Head(const WatchScene& scene, TimeNs wall, size_t most_bytes);
  // Whose activity, waypoint, wait or kernel is another one than at the latest Head or Changes.
  std::string Changes(const WatchScene& scene, TimeNs wall);
  // A line for each node with the waypoints of its cores, then of each core the debug ring and the
  // delays, then the kernels; `why`: "at the end". Texts of whole lines, which can be written one
  // after the other. It reads every core's details.
  std::vector<std::string> Dump(const WatchScene& scene, const std::string& why, TimeNs wall);
  // How many dumps there were.
  int dumps() const { return dumps_; }

 private:
  // What a line says; a heartbeat alone is none.
  struct Said {
    Activity activity = Activity::kUnused;
    uint32_t waypoint = 0;
    uint32_t waits_for = 0;
    bool waits = false;
    uint32_t kernel = 0;

    bool operator==(const Said&) const = default;
  };
  static Said SaidBy(const SubjectState& subject);
  std::vector<std::string> DumpJson(const WatchScene& scene, const std::string& why, TimeNs wall);

  Watchable& target_;
  const bool json_;
  const bool all_words_;
  std::vector<Said> said_;
  std::optional<WatchTable> table_;
  int life_ = 0;
  int dumps_ = 0;
};

// "120 writes delayed (writes up to 500, seed 7)" of each core that has delays, or had: by subject.
// Where the target's details cannot be read, nothing.
std::vector<std::pair<SubjectId, CoreDetail>> DelayedCores(Watchable& target);
// "delays: core 4 writer (0,0) 120 writes delayed (...); core 9 ..."; empty: of none.
std::string DelayedCoresText(const std::vector<std::pair<SubjectId, CoreDetail>>& cores,
                             const WatchScene& scene);

}  // namespace hangscope

#endif

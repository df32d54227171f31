// Which cores of a target stand at a pause point, said once for each pause; and the command by
// which another hangscope lets them go on. One thread.
#ifndef HANGSCOPE_WATCH_PAUSED_CORES_H
#define HANGSCOPE_WATCH_PAUSED_CORES_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "scope/watched_target.h"

namespace hangscope {

class PausedCores {
 public:
  // What one look found.
  struct News {
    std::vector<SubjectId> paused;     // that were not, or go by another pause
    std::vector<SubjectId> continued;  // that were paused, and are not
    TimeNs longest = 0;                // of these pauses, as far as they were watched
    bool longest_at_least = false;     // one of them had begun before
  };

  // `now`: of the look, monotonic. `life`: of the target; another one begins anew.
  News See(const std::vector<SubjectState>& subjects, int life, TimeNs now);

 private:
  struct Pause {
    TimeNs since = 0;
    bool since_at_least = false;
    uint32_t resumes = 0;
    bool was_resumed = false;  // at the latest look, and was there all the same
  };
  int life_ = 0;
  std::map<SubjectId, Pause> paused_;
};

// "core 2 math (0,0) is paused by its own code: kernel 2 compute, last waypoint LCKD"; of several,
// one line with a list, of many the first.
std::string PausedText(const std::vector<SubjectId>& cores, const WatchScene& scene);
// "core 2 math (0,0) goes on, after 1.3 s".
std::string ContinuedText(const PausedCores::News& news, const WatchScene& scene);

// By what a scope of the target was opened; null: that is not known.
using SourceOf = std::function<const ScopeSource*(const LiveScope&)>;
// "hangscope set resume ram --elf fw.elf 0-2", one for each of the memories that the cores are in;
// empty: none can be told.
std::string ResumeCommand(Watchable& target, const std::vector<SubjectId>& cores,
                          const SourceOf& source_of);

// Lets all cores go on that are paused, or are to pause; returns who that was, in words.
Result<std::string> ResumeAllOf(Watchable& target, const WatchScene& scene);

}  // namespace hangscope

#endif

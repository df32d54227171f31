// What watch and why say, as JSON Lines (docs/json.md); one line each, with its newline.
#ifndef HANGSCOPE_SCOPE_WATCH_JSON_H
#define HANGSCOPE_SCOPE_WATCH_JSON_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scope/watch_text.h"

namespace hangscope {

// `wall`: when it was found. What a core or task does now.
std::string SubjectJson(const SubjectState& subject, const WatchScene& scene, TimeNs wall);
// `event`: a word for programs, "restarted", "ended"; `text`: one sentence for people.
std::string WatchNoteJson(const std::string& target, const std::string& event,
                          const std::string& text, TimeNs wall);
// A note about these cores; `resume`: the command by which paused ones go on, or empty.
std::string CoresNoteJson(const std::string& event, const std::string& text,
                          const std::vector<SubjectId>& cores, const std::string& resume,
                          const WatchScene& scene, TimeNs wall);

// A core as a dump of a log has it: as in a change, with its part of the debug ring, the newest
// first, and its delays.
struct DumpOf {
  int number = 0;
  std::string why;
};
std::string DumpJsonLine(const SubjectState& subject, const WatchScene& scene, const DumpOf& dump,
                         const std::optional<CoreDetail>& detail,
                         const std::vector<DebugValue>& debug, TimeNs wall);
// The words of a dump.
std::string DumpWordsJson(const std::string& target, const DumpOf& dump,
                          const std::vector<ShownWord>& words, TimeNs wall);
// The delays of cores, and which of them ran, as a note.
std::string DelaysNoteJson(const std::string& text,
                           const std::vector<std::pair<SubjectId, CoreDetail>>& cores,
                           const WatchScene& scene, TimeNs wall);

struct WatchCost {
  uint64_t polls = 0;
  uint64_t bytes = 0;  // read from targets
  TimeNs cpu = 0;      // of this process
  TimeNs elapsed = 0;
  TimeNs longest_poll = 0;
  TimeNs shortest_interval = 0;  // between polls, as it was asked for
  TimeNs longest_interval = 0;   // as the budget made it
};
std::string WatchEndJson(const WatchCost& cost, size_t findings, size_t bad, TimeNs wall);
// "312 polls in 31.2 s, 0.6 MiB read, 0.3 % of a CPU, longest poll 0.4 ms".
std::string WatchCostText(const WatchCost& cost);

}  // namespace hangscope

#endif

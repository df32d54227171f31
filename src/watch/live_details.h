// All that is known of one core or task, for the live view's page about it.
#ifndef HANGSCOPE_WATCH_LIVE_DETAILS_H
#define HANGSCOPE_WATCH_LIVE_DETAILS_H

#include <optional>
#include <string>
#include <vector>

#include "scope/watched_target.h"
#include "watch/live_items.h"
#include "watch/live_screen.h"

namespace hangscope {

// What polls do not read.
struct LiveDetails {
  std::vector<std::string> suppliers;  // who holds or provides what it waits for
  std::optional<CoreDetail> core;
  RingSample ring;
  std::vector<DebugValue> debug;
  std::vector<std::string> problems;  // what could not be read, a sentence each
};

// Reads its ring as a whole (of a task: all rings): not for every poll.
LiveDetails ReadDetails(Watchable& target, const SubjectId& subject, TimeNs now);

struct LiveLine {
  std::string text;
  LiveStyle style = LiveStyle::kPlain;
};

// The page; what comes from the target is made printable by whoever shows it.
std::vector<LiveLine> DetailLines(const SubjectState& subject, const LiveTarget& target,
                                  const LiveDetails& details);

}  // namespace hangscope

#endif

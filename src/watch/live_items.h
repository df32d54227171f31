// What the live view shows: the cores and tasks of all targets in one list, marked and sorted.
#ifndef HANGSCOPE_WATCH_LIVE_ITEMS_H
#define HANGSCOPE_WATCH_LIVE_ITEMS_H

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "model/watch.h"
#include "scope/watch_text.h"

namespace hangscope {

struct LiveTarget {
  enum class State { kWatched, kAway, kOver };
  WatchScene scene;
  const std::vector<ScopeFinding>* findings = nullptr;  // that hold now
  State state = State::kWatched;
};

// As of one look; what is pointed at lives until the next.
struct LiveData {
  std::vector<LiveTarget> targets;
  std::string headline;  // of the newest finding; empty: there was none
  bool headline_is_bad = false;
  bool headline_holds = false;  // still
  size_t bad_findings = 0;      // so far
  TimeNs elapsed = 0;           // since the watching began
};

// A core or task wherever lists put it.
struct LiveSubject {
  size_t target = 0;
  SubjectId subject;

  bool operator==(const LiveSubject&) const = default;
};

struct LiveItem {
  size_t target = 0;
  size_t index = 0;     // in the scene's subjects
  bool found = false;   // a finding is about it that holds now
  bool bad = false;     // and that one is bad
  bool victim = false;  // it waits for one of these
};

const SubjectState& SubjectOf(const LiveItem& item, const LiveData& data);
LiveSubject IdentityOf(const LiveItem& item, const LiveData& data);

// "R" runs ... A letter of its own for each activity.
char ActivityLetter(Activity activity);
// '!' bad, '+' another finding, '*' waits for one of these, ' '.
char MarkOf(const LiveItem& item);
// "17", of a task "t3"; where there are several targets "2:17".
std::string LabelOf(const LiveItem& item, const LiveData& data);
// In four columns at most: "2.1s", "41s", "12m", "5h", "99d".
std::string ShortElapsed(TimeNs elapsed);

// Those that ever said anything and whose name, activity or waypoint contains `filter`, in capitals
// or not: by target and number; with `worst_first` what is wrong before the rest.
std::vector<LiveItem> ListItems(const LiveData& data, const std::string& filter, bool worst_first);

// By activity.
constexpr size_t kActivities = 10;
std::array<size_t, kActivities> CountActivities(const std::vector<LiveItem>& items,
                                                const LiveData& data);

}  // namespace hangscope

#endif

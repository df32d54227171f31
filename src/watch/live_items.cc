#include "watch/live_items.h"

#include <fmt/format.h>

#include <algorithm>

namespace hangscope {
namespace {

using Kind = SubjectId::Kind;

constexpr size_t kLongestPlace = 9;  // "(127,127)"

std::string Small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

// Where a subject stands: cores come first, then tasks, each by number.
class Places {
 public:
  explicit Places(const std::vector<SubjectState>& subjects) : subjects_(subjects) {
    const auto first_task =
        std::find_if(subjects.begin(), subjects.end(),
                     [](const SubjectState& s) { return s.subject.kind == Kind::kTask; });
    tasks_at_ = static_cast<size_t>(first_task - subjects.begin());
  }
  std::optional<size_t> Find(const SubjectId& subject) const {
    const size_t at = subject.index + (subject.kind == Kind::kTask ? tasks_at_ : 0);
    return at < subjects_.size() && subjects_[at].subject == subject ? std::optional(at)
                                                                     : std::nullopt;
  }

 private:
  const std::vector<SubjectState>& subjects_;
  size_t tasks_at_ = 0;
};

struct Marks {
  bool found = false;
  bool bad = false;
  bool victim = false;
};

std::vector<Marks> MarksOf(const LiveTarget& target) {
  const std::vector<SubjectState>& subjects = *target.scene.subjects;
  std::vector<Marks> marks(subjects.size());
  if (target.findings == nullptr) return marks;
  const Places places(subjects);
  for (const ScopeFinding& finding : *target.findings) {
    for (const SubjectId& subject : finding.subjects) {
      if (const auto at = places.Find(subject)) {
        marks[*at].found = true;
        marks[*at].bad = marks[*at].bad || finding.IsBad();
      }
    }
    for (const SubjectId& victim : finding.victims) {
      if (const auto at = places.Find(victim)) marks[*at].victim = true;
    }
  }
  return marks;
}

bool Matches(const SubjectState& subject, const WatchScene& scene,
             const std::string& small_filter) {
  if (small_filter.empty()) return true;
  const bool core = subject.subject.kind == Kind::kCore;
  const std::string name = SubjectName(subject.subject, scene);
  const std::string at = core ? WatchNames::Waypoint(subject.sample.waypoint) : "";
  return Small(fmt::format("{} {} {}", name, ActivityName(subject.activity), at))
             .find(small_filter) != std::string::npos;
}

int Rank(const LiveItem& item, const LiveData& data) {
  if (item.bad) return 0;
  if (item.found) return 1;
  switch (SubjectOf(item, data).activity) {
    case Activity::kHalted:
    case Activity::kCorrupt:
    case Activity::kSilent:
      return 2;
    default:
      return item.victim ? 3 : 4;
  }
}

}  // namespace

const SubjectState& SubjectOf(const LiveItem& item, const LiveData& data) {
  return (*data.targets[item.target].scene.subjects)[item.index];
}

LiveSubject IdentityOf(const LiveItem& item, const LiveData& data) {
  return {item.target, SubjectOf(item, data).subject};
}

char ActivityLetter(Activity activity) {
  switch (activity) {
    case Activity::kUnused:
      return '-';
    case Activity::kRunning:
      return 'R';
    case Activity::kIdle:
      return 'I';
    case Activity::kWaiting:
      return 'W';
    case Activity::kPaused:
      return 'P';
    case Activity::kHalted:
      return 'H';
    case Activity::kSilent:
      return 'S';
    case Activity::kEnded:
      return 'E';
    case Activity::kCorrupt:
      return 'C';
    case Activity::kUnread:
      return 'X';
  }
  return '?';
}

char MarkOf(const LiveItem& item) {
  return item.bad ? '!' : item.found ? '+' : item.victim ? '*' : ' ';
}

std::string LabelOf(const LiveItem& item, const LiveData& data) {
  const SubjectState& subject = SubjectOf(item, data);
  const WatchScene& scene = data.targets[item.target].scene;
  const SubjectHome* const home = scene.HomeOf(subject.subject);
  // Each memory of a device has a core 0; a long name would leave no room.
  const bool has_place = home != nullptr && home->place.size() <= kLongestPlace;
  const std::string number = fmt::format("{}{}{}", subject.subject.kind == Kind::kTask ? "t" : "",
                                         scene.NumberOf(subject), has_place ? home->place : "");
  return data.targets.size() > 1 ? fmt::format("{}:{}", item.target + 1, number) : number;
}

std::string ShortElapsed(TimeNs elapsed) {
  const TimeNs tenths = std::max<TimeNs>(0, elapsed) / (kSecond / 10);
  if (tenths < 100) return fmt::format("{}.{}s", tenths / 10, tenths % 10);
  const TimeNs seconds = tenths / 10;
  if (seconds < 100) return fmt::format("{}s", seconds);
  if (seconds < 100 * 60) return fmt::format("{}m", seconds / 60);
  if (seconds < 100 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", std::min<TimeNs>(seconds / 86400, 999));
}

std::vector<LiveItem> ListItems(const LiveData& data, const std::string& filter, bool worst_first) {
  const std::string small_filter = Small(filter);
  std::vector<LiveItem> items;
  for (size_t t = 0; t < data.targets.size(); ++t) {
    const WatchScene& scene = data.targets[t].scene;
    const std::vector<Marks> marks = MarksOf(data.targets[t]);
    for (size_t i = 0; i < scene.subjects->size(); ++i) {
      const SubjectState& subject = (*scene.subjects)[i];
      if (subject.activity == Activity::kUnused || !Matches(subject, scene, small_filter)) continue;
      items.push_back({t, i, marks[i].found, marks[i].bad, marks[i].victim});
    }
  }
  if (worst_first) {
    std::stable_sort(items.begin(), items.end(), [&](const LiveItem& a, const LiveItem& b) {
      return Rank(a, data) < Rank(b, data);
    });
  }
  return items;
}

std::array<size_t, kActivities> CountActivities(const std::vector<LiveItem>& items,
                                                const LiveData& data) {
  std::array<size_t, kActivities> counts{};
  for (const LiveItem& item : items) ++counts[static_cast<size_t>(SubjectOf(item, data).activity)];
  return counts;
}

}  // namespace hangscope

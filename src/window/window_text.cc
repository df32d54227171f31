#include "window/window_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

// What a column of the picture shows of its time: what is missing first, for one instant of it is
// enough.
char Letter(GapReason reason) {
  switch (reason) {
    case GapReason::kOverwritten:
      return 'o';
    case GapReason::kTorn:
      return 't';
    case GapReason::kRefused:
      return 'r';
    case GapReason::kSharedSink:
      return 's';
    case GapReason::kBlind:
      return 'b';
    case GapReason::kNoRoom:
      return 'd';
    case GapReason::kUnreadable:
      return 'u';
    case GapReason::kLastEvents:
      return 'e';
    case GapReason::kNotRecorded:
      return 'n';
  }
  return 'x';
}

std::string Name(const RingName& ring) {
  std::string name = fmt::format("{} {}", RingKindName(ring.kind), ring.number);
  if (!ring.what.empty()) name += " " + Printable(ring.what);
  return name;
}

class Screen {
 public:
  Screen(const Window& window, const WindowTextOptions& options)
      : window_(window), options_(options), columns_(std::max<size_t>(1, options.columns)) {
    gaps_of_.resize(window.rings.size());
    for (const Gap& gap : window.gaps) gaps_of_[gap.ring].push_back(&gap);
  }

  std::string Make() {
    text_ = WindowLine(window_, options_) + "\n";
    if (window_.clock_error > 0) {
      text_ += fmt::format("  times of different rings may be off by {}, either way\n",
                           FormatShort(window_.clock_error));
    }
    Pictures();
    Gaps();
    LostBefore();
    Unrecorded();
    Tasks();
    return text_;
  }

 private:
  static std::string FormatShort(TimeNs time) {
    if (time < kMillisecond) return fmt::format("{} us", (time + 999) / 1000);
    if (time < kSecond) return fmt::format("{:.1f} ms", Seconds(time) * 1000);
    return FormatElapsed(time);
  }

  void Pictures() {
    const std::vector<size_t> shown = ShownRings();
    size_t width = 0, age_width = 0;
    for (const size_t ring : shown) {
      width = std::max(width, Name(window_.rings[ring].ring).size());
      age_width = std::max(age_width, Stale(window_.rings[ring]).size());
    }
    std::string letters;
    for (const size_t i : shown) {
      const RingCoverage& ring = window_.rings[i];
      const std::string bar = Bar(i);
      letters += bar;
      text_ += fmt::format("  {:<{}}  {:>{}} |{}| {}\n", Name(ring.ring), width, Stale(ring),
                           age_width, bar, FormatSize(ring.bytes_inside));
    }
    Rest(shown);
    Legend(letters);
    for (const size_t ring : shown) Discarded(window_.rings[ring]);
  }

  // All, or those that have something to tell, in their order.
  std::vector<size_t> ShownRings() const {
    std::vector<size_t> rings(window_.rings.size());
    for (size_t i = 0; i < rings.size(); ++i) rings[i] = i;
    std::stable_sort(rings.begin(), rings.end(),
                     [&](size_t a, size_t b) { return Interest(a) > Interest(b); });
    rings.resize(std::min(rings.size(), options_.most_rings));
    std::sort(rings.begin(), rings.end());
    return rings;
  }

  int Interest(size_t ring) const {
    if (window_.limited_by == ring) return 4;
    if (!gaps_of_[ring].empty()) return 3;
    if (!window_.rings[ring].covered.empty()) return 2;
    return window_.rings[ring].stale.empty() ? 0 : 1;
  }

  void Rest(const std::vector<size_t>& shown) {
    const size_t more = window_.rings.size() - shown.size();
    if (more == 0) return;
    size_t broken = 0;
    for (const auto& gaps : gaps_of_) broken += gaps.empty() ? 0 : 1;
    for (const size_t ring : shown) broken -= gaps_of_[ring].empty() ? 0 : 1;
    const std::string gaps =
        broken == 0 ? "without a gap" : fmt::format("{} of them with gaps", broken);
    text_ += fmt::format("  and {} more ring{}, {}\n", more, more == 1 ? "" : "s", gaps);
  }

  // A little of a full ring always is (cpu/perf_ring.h).
  void Discarded(const RingCoverage& ring) {
    const uint64_t lost = ring.bytes_discarded;
    if (lost <= ring.bytes_held / 3) return;
    text_ += fmt::format("  {}: {} of {} were overwritten while they were read\n", Name(ring.ring),
                         FormatSize(lost), FormatSize(lost + ring.bytes_held));
  }

  std::string Stale(const RingCoverage& ring) const {
    if (ring.stale.empty()) return "";
    uint64_t bytes = 0;
    for (const StaleSpan& stale : ring.stale) bytes += stale.bytes;
    return fmt::format("{} stale, {} old", FormatSize(bytes), FormatShort(ring.stale.back().age));
  }

  std::string Bar(size_t number) const {
    const RingCoverage& ring = window_.rings[number];
    std::string bar(columns_, ' ');
    Paint(ring.idle, '.', &bar);
    Paint(ring.covered, '#', &bar);
    for (const Gap* gap : gaps_of_[number]) Paint(gap->time, Letter(gap->reason), &bar);
    return bar;
  }

  void Paint(const std::vector<TimeSpan>& spans, char letter, std::string* bar) const {
    for (const TimeSpan& span : spans) Paint(span, letter, bar);
  }

  // Each column that the span touches.
  void Paint(const TimeSpan& span, char letter, std::string* bar) const {
    const double length = static_cast<double>(window_.length());
    if (length <= 0) return;
    const auto column = [&](TimeNs time) {
      const double at =
          static_cast<double>(time - window_.time.from) / length * static_cast<double>(columns_);
      return std::min(columns_ - 1, static_cast<size_t>(std::max(0.0, at)));
    };
    const size_t last = column(span.from == span.to ? span.to : span.to - 1);
    for (size_t i = column(span.from); i <= last; ++i) (*bar)[i] = letter;
  }

  void Legend(const std::string& letters) {
    std::string legend;
    const auto add = [&](char letter, std::string_view meaning) {
      if (letters.find(letter) == std::string::npos) return;
      legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", letter, meaning);
    };
    add('#', "covered");
    add('.', "idle");
    for (int i = 0; i <= static_cast<int>(GapReason::kNotRecorded); ++i) {
      add(Letter(static_cast<GapReason>(i)), GapReasonName(static_cast<GapReason>(i)));
    }
    if (!legend.empty()) text_ += "  " + legend + "\n";
  }

  // Before the trigger, as the window's line tells how long it is.
  std::string Before(TimeNs time) const {
    return fmt::format("-{:.6f}", Seconds(std::max<TimeNs>(0, window_.time.to - time)));
  }

  std::string Times(const TimeSpan& span) const {
    if (span.from == span.to) return fmt::format("at {} s", Before(span.from));
    return fmt::format("{} .. {} s ({})", Before(span.from), Before(span.to),
                       FormatShort(span.to - span.from));
  }

  std::string TaskName(int64_t number) const {
    for (const TaskCoverage& task : window_.tasks) {
      if (task.task == number && !task.name.empty())
        return fmt::format("{} ({})", Printable(task.name), number);
    }
    return std::to_string(number);
  }

  static std::string Amount(const Gap& gap) {
    if (gap.amount == 0 || gap.unit == AmountUnit::kUnknown) return "how much is not known";
    if (gap.unit == AmountUnit::kBytes) return FormatSize(gap.amount);
    return fmt::format("{} record{}", FormatCount(gap.amount), gap.amount == 1 ? "" : "s");
  }

  void Gaps() {
    if (window_.gaps.empty()) {
      text_ += "  no gaps\n";
      return;
    }
    const size_t shown = std::min(window_.gaps.size(), options_.most_gaps);
    // The newest matter most for a hang.
    for (size_t i = window_.gaps.size() - shown; i < window_.gaps.size(); ++i) {
      const Gap& gap = window_.gaps[i];
      const std::string whose = gap.task ? ", task " + TaskName(*gap.task) : "";
      text_ += fmt::format("  gap: {}, {}{}: {}, {}\n", Name(window_.rings[gap.ring].ring),
                           Times(gap.time), whose, GapReasonName(gap.reason), Amount(gap));
    }
    if (shown < window_.gaps.size())
      text_ += fmt::format("  and {} older gaps\n", window_.gaps.size() - shown);
  }

  void LostBefore() {
    const std::vector<Gap>& lost = window_.lost_before;
    const size_t shown = std::min(lost.size(), options_.most_gaps);
    for (size_t i = lost.size() - shown; i < lost.size(); ++i) {
      const std::string whose = lost[i].task ? ", task " + TaskName(*lost[i].task) : "";
      text_ += fmt::format("  lost before the window: {}, {}{}: {}\n",
                           Name(window_.rings[lost[i].ring].ring), Times(lost[i].time), whose,
                           GapReasonName(lost[i].reason));
    }
    if (shown < lost.size()) text_ += fmt::format("  and {} older losses\n", lost.size() - shown);
  }

  // What no ring of any size would hold (docs/cpu-recording.md).
  void Unrecorded() {
    const bool cpus =
        std::any_of(window_.rings.begin(), window_.rings.end(), [](const RingCoverage& ring) {
          return ring.ring.kind == RingKind::kCpu && ring.ring.what == "events";
        });
    if (!cpus) return;
    const auto ended = std::count_if(window_.tasks.begin(), window_.tasks.end(),
                                     [](const TaskCoverage& task) { return task.ended; });
    text_ += fmt::format(
        "  not in CPU rings: wake-ups by interrupts on idle CPUs; without --all-cpus, by other "
        "programs{}, too\n",
        ended == 0   ? ""
        : ended == 1 ? " and by the task that ended"
                     : fmt::format(" and by the {} tasks that ended", FormatCount(ended)));
  }

  void Tasks() {
    if (window_.tasks.empty()) return;
    size_t continuous = 0, shown = 0;
    std::string broken;
    for (const TaskCoverage& task : window_.tasks) {
      continuous += task.continuous ? 1 : 0;
      if (task.continuous || shown == options_.most_tasks) continue;
      ++shown;
      broken += fmt::format("  task {} {}\n", TaskName(task.task), Broken(task));
    }
    text_ += fmt::format("  {} of {} tasks covered without a break\n", continuous,
                         window_.tasks.size()) +
             broken;
    const size_t more = window_.tasks.size() - continuous - shown;
    if (more > 0) text_ += fmt::format("  and {} more tasks that break\n", more);
  }

  std::string Broken(const TaskCoverage& task) const {
    if (task.breaks.empty()) return "may have run where nobody knows";
    const size_t more = task.breaks.size() - 1;
    const std::string rest =
        more == 0 ? "" : fmt::format(", and {} break{} before", more, more == 1 ? "" : "s");
    return fmt::format("breaks {}{}", Times(task.breaks.back()), rest);
  }

  const Window& window_;
  const WindowTextOptions& options_;
  const size_t columns_;
  std::vector<std::vector<const Gap*>> gaps_of_;
  std::string text_;
};

std::string Why(const Window& window) {
  if (window.from_the_start) return ", from the recording's start: nothing was overwritten";
  if (window.limited_by)
    return fmt::format(", begins where {} was overwritten",
                       Name(window.rings[*window.limited_by].ring));
  switch (window.policy) {
    case WindowPolicy::kCoherent:
      return "";
    case WindowPolicy::kEverything:
      return ", everything that is held";
    case WindowPolicy::kLastTime:
      return ", as long as asked";
    case WindowPolicy::kLastBytes:
      return ", as many bytes as asked";
    case WindowPolicy::kSinceLast:
      return ", since the snapshot before";
  }
  return "";
}

}  // namespace

std::string WindowLine(const Window& window, const WindowTextOptions& options) {
  const std::string from =
      options.wall_minus_monotonic == 0
          ? fmt::format("-{:.6f} s", Seconds(window.length()))
          : FormatWallTime(window.time.from + options.wall_minus_monotonic).substr(11, 12);
  return fmt::format("window {}: {} .. trigger{}",
                     window.length() < kSecond
                         ? fmt::format("{:.1f} ms", Seconds(window.length()) * 1000)
                         : fmt::format("{:.2f} s", Seconds(window.length())),
                     from, Why(window));
}

std::string WindowText(const Window& window, const WindowTextOptions& options) {
  return Screen(window, options).Make();
}

}  // namespace hangscope

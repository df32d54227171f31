#include "perf/perf_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/units.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostFindings = 20;
constexpr TimeNs kLongInKernel = 10 * kSecond;  // disks that are slow are no hang

// The TASK_ bits of sched_switch, as their names in its format file.
char LetterOf(int64_t state) {
  constexpr std::pair<int64_t, char> kLetters[] = {{0x01, 'S'}, {0x02, 'D'}, {0x04, 'T'},
                                                   {0x08, 't'}, {0x10, 'X'}, {0x20, 'Z'},
                                                   {0x40, 'P'}, {0x80, 'I'}};
  for (const auto& [bit, letter] : kLetters) {
    if (state >= 0 && (state & bit) != 0) return letter;
  }
  return '?';
}

// Somebody else was on its CPU since; that it left, no record told.
bool MadeWay(const PerfThreadActivity& thread, const PerfActivity& activity) {
  const auto cpu = activity.cpus().find(thread.ran.cpu);
  return cpu != activity.cpus().end() && cpu->second.last > thread.ran.time &&
         cpu->second.last_tid >= 0 && cpu->second.last_tid != thread.tid;
}

// Of a recording of some processes, others are known only by those who made way for them, or woke
// them: what they did then is not known.
PerfThreadView ViewOf(const PerfThreadActivity& thread, const PerfActivity& activity) {
  PerfThreadView view{&thread};
  if (thread.records == 0 && !activity.whole_machine()) return view;
  if (thread.ended.happened()) {
    view.state = PerfThreadState::kEnded;
    view.since = thread.ended.time;
  } else if (!thread.switched_out.happened() && !thread.came.happened()) {
    view.since = thread.ran.time;  // nothing told when it left, if it did
  } else if (thread.IsRunning() && MadeWay(thread, activity)) {
    view.since = thread.ran.time;
  } else if (thread.IsRunning()) {
    view.state = PerfThreadState::kRunning;
    view.since = thread.ran.time;
  } else if (thread.IsWaitingForCpu()) {
    view.state = PerfThreadState::kWaitsForCpu;
    view.since = std::max(thread.switched_out.time, thread.woken.time);
  } else {
    view.state = PerfThreadState::kBlocked;
    view.since = thread.switched_out.time;
    view.letter = LetterOf(thread.state_when_out);
  }
  return view;
}

std::string NameOf(const PerfThreadActivity& thread) {
  return thread.name.empty() ? fmt::format("thread {}", thread.tid)
                             : fmt::format("{} {}", Printable(thread.name), thread.tid);
}

// Which processes of a whole machine are of the command: its own, or where that is not known those
// of its name, and those that they made. perf itself stands before it.
class Program {
 public:
  Program(const PerfActivity& activity, const PerfQuestion& question)
      : activity_(activity), process_(question.process) {
    constexpr size_t kMostName = 15;  // that the kernel keeps
    std::istringstream words(question.command);
    for (std::string word; words >> word;) {
      const std::string name = word.substr(word.rfind('/') + 1).substr(0, kMostName);
      if (name != "perf") names_.insert(name);
    }
  }

  bool Has(const PerfThreadActivity& thread) const {
    constexpr int kMostParents = 64;
    int pid = thread.pid;
    for (int i = 0; i < kMostParents && pid > 0; ++i) {
      if (pid == process_) return true;
      const auto process = activity_.threads().find(pid);
      if (process == activity_.threads().end()) return false;
      if (process_ == 0 && names_.contains(process->second.name)) return true;
      pid = process->second.parent;
    }
    return false;
  }

 private:
  const PerfActivity& activity_;
  const int process_;
  std::set<std::string> names_;
};

// "10216 ab, 10217 a-to-b and 3 more threads".
std::string NamesOf(const std::vector<int>& tids, const PerfActivity& activity) {
  constexpr size_t kMostNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(tids.size(), kMostNamed); ++i) {
    const auto thread = activity.threads().find(tids[i]);
    const std::string name =
        thread == activity.threads().end() ? "" : Printable(thread->second.name);
    text += fmt::format("{}{}{}{}", i == 0 ? "" : ", ", tids[i], name.empty() ? "" : " ", name);
  }
  if (tids.size() > kMostNamed) text += fmt::format(" and {} more", tids.size() - kMostNamed);
  return text;
}

std::string NothingRecorded(const PerfActivity& activity) {
  const std::vector<int>& asked = activity.thread_map();
  if (activity.whole_machine() || asked.empty())
    return "nothing was recorded: no sample and no switch is in the file";
  const size_t count = asked.size();
  if (!activity.reports_switches())
    return fmt::format("nothing was recorded of {} thread{} ({})", count, count == 1 ? "" : "s",
                       NamesOf(asked, activity));
  return fmt::format(
      "nothing was recorded of {} thread{} ({}): none of them ran; while they live, "
      "'hangscope why PID' says what they wait for",
      count, count == 1 ? "" : "s", NamesOf(asked, activity));
}

// Who stands still is known where it is known who comes and goes.
std::string WhyNothingIsTold(const PerfActivity& activity, bool has_traces) {
  const auto& cpus = activity.cpus();
  if (activity.counts_only())
    return "the file has the counters of perf stat record, which do not say what threads do";
  const bool any = std::any_of(cpus.begin(), cpus.end(),
                               [](const auto& cpu) { return cpu.second.held.records > 0; });
  if (!any && !has_traces) return NothingRecorded(activity);
  if (activity.reports_switches()) return {};
  if (activity.lacks_formats())
    return "the file does not say which fields its tracepoints have, as when its recorder was "
           "killed: who ran and who waits cannot be read";
  return "neither switches nor wake-ups were recorded, so who waits is not known; 'perf record -e "
         "sched:sched_switch,sched:sched_wakeup,raw_syscalls:sys_enter,raw_syscalls:sys_exit' "
         "records them";
}

class Analyst {
 public:
  Analyst(const PerfActivity& activity, const PerfQuestion& question)
      : activity_(activity),
        stall_(question.stall),
        end_(std::max(question.end, activity.last())),
        has_traces_(question.has_traces),
        program_(activity, question) {}

  PerfAnalysis Analyse() {
    for (const auto& [tid, thread] : activity_.threads()) {
      analysis_.threads.push_back(ViewOf(thread, activity_));
      analysis_.threads.back().is_other = activity_.whole_machine() && !program_.Has(thread);
    }
    std::sort(analysis_.threads.begin(), analysis_.threads.end(),
              [](const PerfThreadView& a, const PerfThreadView& b) {
                const auto rank = [](const PerfThreadView& v) {
                  return v.state == PerfThreadState::kUnknown ? PerfThreadState::kBlocked : v.state;
                };
                return std::tuple(a.is_other, rank(a), -a.since, a.thread->tid) <
                       std::tuple(b.is_other, rank(b), -b.since, b.thread->tid);
              });
    for (const PerfThreadView& view : analysis_.threads) Judge(view);
    JudgeAll();
    std::stable_sort(
        analysis_.findings.begin(), analysis_.findings.end(),
        [](const PerfFinding& a, const PerfFinding& b) { return a.confidence > b.confidence; });
    if (analysis_.findings.size() > kMostFindings) analysis_.findings.resize(kMostFindings);
    analysis_.cannot_tell = WhyNothingIsTold(activity_, has_traces_);
    return std::move(analysis_);
  }

 private:
  TimeNs Age(const PerfThreadView& view) const { return view.since < 0 ? 0 : end_ - view.since; }

  void Judge(const PerfThreadView& view) {
    const std::string age = FormatElapsed(Age(view));
    if (view.state == PerfThreadState::kWaitsForCpu && Age(view) >= stall_) {
      Find(FindingKind::kStarved, view.thread->tid,
           fmt::format("{} wants a CPU for {} and gets none", NameOf(*view.thread), age));
    }
    // Threads of the kernel itself may sleep so for ever.
    if (view.letter == 'D' && activity_.IsInSystemCall(*view.thread) &&
        Age(view) >= std::max(stall_, kLongInKernel)) {
      Find(FindingKind::kHeld, view.thread->tid,
           fmt::format("{} sleeps in the kernel for {}, where no signal wakes it",
                       NameOf(*view.thread), age));
    }
  }

  void Find(FindingKind kind, int tid, std::string summary) {
    PerfFinding finding;
    finding.kind = kind;
    finding.tid = tid;
    finding.summary = std::move(summary);
    finding.confidence = Confidence::kLikely;
    if (activity_.lost_records() > 0)
      finding.Lower(Confidence::kPossible,
                    fmt::format("{} records were lost: it may have run since",
                                FormatCount(activity_.lost_records())));
    analysis_.findings.push_back(std::move(finding));
  }

  // Nobody of the program ran any more, though records could have come.
  void JudgeAll() {
    size_t blocked = 0;
    TimeNs newest = -1;
    for (const PerfThreadView& view : analysis_.threads) {
      if (view.is_other || view.state == PerfThreadState::kEnded || view.since < 0) continue;
      if (view.state != PerfThreadState::kBlocked) return;
      ++blocked;
      newest = std::max(newest, view.since);
    }
    if (blocked == 0 || end_ - newest < stall_) return;
    PerfFinding finding;
    finding.summary = fmt::format("all {} threads{} are blocked, the last since {}", blocked,
                                  activity_.whole_machine() ? " of the program" : "",
                                  FormatElapsed(end_ - newest));
    finding.doubts = {"whether somebody would have woken them, records do not tell"};
    analysis_.findings.push_back(std::move(finding));
  }

  const PerfActivity& activity_;
  const TimeNs stall_;
  const TimeNs end_;
  const bool has_traces_;
  const Program program_;
  PerfAnalysis analysis_;
};

}  // namespace

PerfAnalysis AnalysePerf(const PerfActivity& activity, const PerfQuestion& question) {
  return Analyst(activity, question).Analyse();
}

}  // namespace hangscope

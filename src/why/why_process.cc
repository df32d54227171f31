#include "why/why_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/capabilities.h"
#include "base/json_text.h"
#include "base/side_process.h"
#include "base/utf8.h"
#include "process/process_draft.h"
#include "process/process_json.h"
#include "process/process_standing.h"
#include "process/process_text.h"
#include "process/process_verdict.h"
#include "process/process_words.h"
#include "scope/watch_json.h"
#include "snapshot/finding_reader.h"
#include "snapshot/snapshots.h"
#include "target/process_target.h"
#include "verdict/json.h"
#include "verdict/judge_picture.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr uint64_t kLargestLook = 256u << 20;        // of a file
constexpr TimeNs kPatientBudget = 8 * kSecond;       // on a busy machine little takes long
constexpr TimeNs kLongStop = kSecond + kSecond / 4;  // the clocks of a busy machine differ

// Nothing is known of what it waits for, and why is said: then "no hang found" would be a lie.
Status CheckKnown(const SystemSample& look, const ProcessJudgement& judgement) {
  const ProcessFacts& process = look.processes[0];
  if (process.warnings.empty() || !judgement.findings.empty() || process.threads.empty()) return {};
  const auto is_known = [](const ThreadFacts& thread) {
    return thread.wait.kind != WaitKind::kNone || !thread.stack.empty() ||
           thread.state == ThreadState::kRunning;
  };
  const bool is_unread = process.is_32_bit && process.is_hidden;
  if (!is_unread && std::any_of(process.threads.begin(), process.threads.end(), is_known))
    return {};
  return Status::Io(process.warnings[0]);
}

bool IsOf(int pid, const SystemSample& look) {
  return !look.processes.empty() && look.processes[0].pid == pid;
}

bool HasEnded(const SystemSample& look) {
  const ProcessFacts& process = look.processes[0];
  return process.state == ThreadState::kZombie &&
         std::all_of(process.threads.begin(), process.threads.end(), [](const ThreadFacts& thread) {
           return thread.state == ThreadState::kZombie || thread.state == ThreadState::kDead;
         });
}

Status EndedMeanwhile(int pid) {
  return Status::NotFound(fmt::format("process {} has ended while it was looked at", pid));
}

// The first only sees who sleeps in what, and stops nobody: whoever is stopped and goes on has run.
Result<TwoLooks> SamplePair(Clock& clock, ProcessInspector& inspector,
                            const WhyProcessOptions& options, InspectOptions inspect) {
  TwoLooks two;
  inspect.stop = inspect.step_running = inspect.stacks = false;
  auto first = inspector.Inspect(options.pid, inspect);
  if (!first.ok()) return first.status();
  if (!IsOf(options.pid, *first))
    return Status::NotFound(fmt::format("there is no process {}", options.pid));
  const TimeNs passed = std::max<TimeNs>(0, clock.Monotonic() - first->begin);
  if (passed < options.apart) clock.Sleep(options.apart - passed);
  inspect.stop = inspect.step_running = options.stop;
  inspect.stacks = true;
  auto second = inspector.Inspect(options.pid, inspect);
  if (!second.ok() || !IsOf(options.pid, *second) || (HasEnded(*second) && !HasEnded(*first)))
    return EndedMeanwhile(options.pid);
  two.looks.push_back(std::move(*first));
  two.looks.push_back(std::move(*second));
  return two;
}

bool Suspects(const std::vector<SystemSample>& looks) {
  return std::any_of(looks.begin(), looks.end(), [](const SystemSample& look) {
    return std::any_of(look.processes.begin(), look.processes.end(), [](const auto& process) {
      return std::any_of(process.threads.begin(), process.threads.end(), MayRetry);
    });
  });
}

// Processes of the newest look that the first has not.
std::vector<int> FoundOnlyLater(const std::vector<SystemSample>& looks) {
  std::vector<int> found;
  for (const ProcessFacts& process : looks.back().processes) {
    if (FindProcess(looks.front(), process.pid) == nullptr) found.push_back(process.pid);
  }
  return found;
}

// A stop wakes a thread that sleeps: where it sleeps in the same wait before and after that, in all
// looks, those after it count on from where it was.
void LeaveOutStops(const SystemSample& newest, std::span<SystemSample> later) {
  const auto find = [](SystemSample& look, int tid) {
    ThreadFacts* found = nullptr;
    for (ProcessFacts& process : look.processes) {
      for (ThreadFacts& thread : process.threads) found = thread.tid == tid ? &thread : found;
    }
    return found;
  };
  for (const ProcessFacts& process : newest.processes) {
    for (const ThreadFacts& thread : process.threads) {
      std::vector<ThreadFacts*> same;
      for (SystemSample& look : later) {
        ThreadFacts* const after = find(look, thread.tid);
        if (after != nullptr && after->stack_pointer == thread.stack_pointer &&
            after->system_call == thread.system_call &&
            (same.empty() || IsSameWait(*same.front(), *after)))
          same.push_back(after);
      }
      if (thread.state != ThreadState::kSleeping || same.size() != later.size()) continue;
      for (ThreadFacts* after : same) {
        after->voluntary_switches = thread.voluntary_switches;
        after->involuntary_switches = thread.involuntary_switches;
      }
    }
  }
}

// Who tries again and again is awake for a moment in between, and tells nothing then: where one is
// in the newest look, another look that has all of them asleep takes its place.
void EndWithAllAsleep(std::vector<SystemSample>* looks) {
  constexpr size_t kSeen = 3;
  std::map<int, size_t> seen;  // by thread
  for (const SystemSample& look : *looks) {
    for (const ProcessFacts& process : look.processes) {
      for (const ThreadFacts& thread : process.threads) seen[thread.tid] += MayRetry(thread);
    }
  }
  const auto has_all_asleep = [&](const SystemSample& look) {
    return std::all_of(seen.begin(), seen.end(), [&](const auto& times) {
      const ThreadFacts* const thread = FindThread(look, times.first);
      return times.second < kSeen || (thread != nullptr && MayRetry(*thread));
    });
  };
  if (looks->size() <= kSeen || has_all_asleep(looks->back())) return;
  const auto other = std::find_if(looks->rbegin(), looks->rend(), has_all_asleep);
  if (other == looks->rend()) return;
  other->longest_stop = looks->back().longest_stop;
  looks->back() = std::move(*other);
  looks->erase(std::next(other).base());
}

// Whether locks are waited for with time limits again and again, or got in between: more looks for
// the rest of a second. The newest look stays the one that tells most.
void ObserveRetries(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                    InspectOptions inspect, std::vector<SystemSample>* looks) {
  constexpr TimeNs kLongest = kSecond;
  constexpr TimeNs kApart = 80 * kMillisecond;
  inspect.stop = inspect.step_running = inspect.remote_ends = false;
  inspect.stacks = true;  // they tell what a word is
  const TimeNs until = clock.Monotonic() + kLongest;
  const TimeNs begin = looks->front().begin;
  SystemSample newest = std::move(looks->back());
  looks->pop_back();
  while (clock.Monotonic() < until) {
    clock.Sleep(kApart);
    if (clock.Monotonic() - begin >= WhyProcessOptions::kQuietFor)
      options.observing("observing whether what is tried again and again comes about");
    auto look = inspector.Inspect(options.pid, inspect);
    if (!look.ok() || !IsOf(options.pid, *look)) break;
    looks->push_back(std::move(*look));
    if (!Suspects({looks->back()})) break;
  }
  if (newest.longest_stop > 0) LeaveOutStops(newest, std::span(*looks).subspan(1));
  looks->push_back(std::move(newest));
  EndWithAllAsleep(looks);
}

template <typename Is>
bool HasThread(const SystemSample& look, const Is& is) {
  return std::any_of(look.processes.begin(), look.processes.end(), [&](const auto& process) {
    return std::any_of(process.threads.begin(), process.threads.end(), is);
  });
}

template <typename Is>
bool HasGoroutine(const SystemSample& look, const Is& is) {
  return HasThread(look, [&](const ThreadFacts& thread) {
    return std::any_of(thread.tasks.begin(), thread.tasks.end(),
                       [&](const TaskFacts& task) { return task.is_goroutine && is(task); });
  });
}

bool HasGoroutinesInCircles(const SystemSample& look) {
  return HasGoroutine(look,
                      [](const TaskFacts& task) { return !task.tasks.empty() || task.is_awaited; });
}

// A loop of asyncio that ran at that moment: what its tasks wait for was not read.
bool HasUnseenTasks(const SystemSample& look) {
  return HasThread(look, [](const ThreadFacts& thread) {
    return thread.state == ThreadState::kRunning && thread.tasks.empty() &&
           HasFunction(thread.stack, "BaseEventLoop.run_forever");
  });
}

// Of a loop that does something now and then, too.
bool HasTasksInCircles(const std::vector<SystemSample>& looks) {
  return HasThread(looks.back(), [&](const ThreadFacts& thread) {
    const ThreadFacts* const before = FindThread(looks.front(), thread.tid);
    const bool has_run = before == nullptr || before->cpu_time != thread.cpu_time ||
                         before->voluntary_switches != thread.voluntary_switches;
    return has_run && !thread.tasks.empty() && !thread.tasks[0].is_goroutine &&
           !CircleOf(thread.tasks).empty();
  });
}

bool PollForRanks(const SystemSample& look) {
  return HasThread(look,
                   [](const ThreadFacts& thread) { return thread.wait.kind == WaitKind::kRanks; });
}

// The time of the look was up before it came to where they stand: the tables of their code had to
// be read first.
bool HasUnseenGoroutines(const SystemSample& look) {
  return HasGoroutine(look, [](const TaskFacts& task) {
    return !task.waits_for.empty() && !task.has_timeout && task.stack.empty();
  });
}

// `steps`: threads that run are stepped, too, where they may be stopped.
void LookAgain(ProcessInspector& inspector, const WhyProcessOptions& options,
               InspectOptions inspect, bool steps, std::vector<SystemSample>* looks) {
  inspect.stop = options.stop;
  inspect.step_running = options.stop && steps;
  inspect.stacks = true;
  auto look = inspector.Inspect(options.pid, inspect);
  if (look.ok() && IsOf(options.pid, *look)) looks->push_back(std::move(*look));
}

// One that is about to wait does so a moment later.
void WaitForTasks(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                  const InspectOptions& inspect, std::vector<SystemSample>* looks) {
  constexpr int kTries = 4;
  constexpr TimeNs kMoment = 10 * kMillisecond;
  for (int tries = 0; tries < kTries && HasUnseenTasks(looks->back()); ++tries) {
    clock.Sleep(kMoment);
    LookAgain(inspector, options, inspect, false, looks);
  }
}

// Tasks and goroutines that wait for each other's locks for a moment are no hang: they are read
// again when a second has passed. Threads that run goroutines are stopped for their registers,
// which may have what others wait for.
void ObserveTasks(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                  const InspectOptions& inspect, std::vector<SystemSample>* looks) {
  const TimeNs begin = looks->back().begin;
  if (clock.Monotonic() - looks->front().begin + kSecond >= WhyProcessOptions::kQuietFor)
    options.observing("observing whether those that wait for each other go on");
  clock.Sleep(std::clamp<TimeNs>(begin + kSecond - clock.Monotonic(), 0, kSecond));
  LookAgain(inspector, options, inspect, false, looks);
  WaitForTasks(clock, inspector, options, inspect, looks);
}

// A rank runs: where it was could not be told, or it computes.
bool HasUnseenRank(const SystemSample& look) {
  return HasThread(look, [&](const ThreadFacts& thread) {
    const ProcessFacts* const process = FindProcess(look, thread.pid);
    return thread.tid == thread.pid && thread.state == ThreadState::kRunning &&
           thread.wait.kind != WaitKind::kRanks && process->rank;
  });
}

// One that polls is in its loop again a moment later, where its stack may tell more.
void SeeAllRanks(ProcessInspector& inspector, const WhyProcessOptions& options,
                 const InspectOptions& inspect, std::vector<SystemSample>* looks) {
  constexpr int kTries = 4;
  for (int tries = 0; options.stop && tries < kTries && HasUnseenRank(looks->back()); ++tries) {
    const size_t before = looks->size();
    LookAgain(inspector, options, inspect, true, looks);
    if (looks->size() > before) looks->erase(looks->end() - 2);
  }
}

// Whether a message passes among ranks of MPI that all wait for one: where they are is known while
// they are stopped only, so this looks like the second look again.
void ObserveRanks(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                  const InspectOptions& inspect, std::vector<SystemSample>* looks) {
  if (clock.Monotonic() - looks->front().begin + kSecond >= WhyProcessOptions::kQuietFor)
    options.observing("observing whether a message passes among the ranks of MPI");
  clock.Sleep(kSecond);
  LookAgain(inspector, options, inspect, true, looks);
  SeeAllRanks(inspector, options, inspect, looks);
}

// It sleeps for a short time, as far as that is known, and may have done so before.
bool MayNap(const ThreadFacts* before, const ThreadFacts& now) {
  constexpr TimeNs kShort = kSecond;
  const auto naps = [](const ThreadFacts& thread) {
    const ThreadWait& wait = thread.wait;
    return thread.state == ThreadState::kSleeping && wait.has_timeout && wait.files.empty();
  };
  const auto runs = [](const ThreadFacts& thread) {
    return thread.state == ThreadState::kRunning && (!thread.spin || thread.spin->period == 0);
  };
  if (before == nullptr) return false;
  if (naps(now) && now.wait.timeout) return *now.wait.timeout <= kShort;
  return (naps(now) && (now.naps_again || runs(*before))) || (naps(*before) && runs(now));
}

// Those who would wait for nobody but each other, and for others that stand still, if they did
// nothing in between but look. A machine of Java is not stopped, so nobody follows its naps.
std::vector<int> WhoMayNapInVain(const std::vector<SystemSample>& looks) {
  std::vector<SystemSample> if_so = looks;
  std::set<int> may;
  for (ProcessFacts& process : if_so.back().processes) {
    for (ThreadFacts& thread : process.threads) {
      if (process.is_32_bit || HandlesSignalsByRuntime(process) ||
          !MayNap(FindThread(looks.front(), thread.tid), thread))
        continue;
      may.insert(thread.tid);
      if (NapsForFileLocks(thread)) continue;  // it was followed
      thread.spin = ThreadFacts::Spin{};
      thread.spin->period = 1;
      thread.spin->naps = true;
    }
  }
  std::vector<int> who;
  if (may.empty()) return who;
  for (const ProcessFinding& finding : JudgeProcess(if_so).findings) {
    if (!finding.IsBad()) continue;
    std::copy_if(finding.threads.begin(), finding.threads.end(), std::back_inserter(who),
                 [&](int tid) { return may.count(tid) != 0; });
  }
  return who;
}

bool WereFollowed(const SystemSample& look, const std::vector<int>& nappers) {
  return std::all_of(nappers.begin(), nappers.end(), [&](int tid) {
    const ThreadFacts* const thread = FindThread(look, tid);
    return thread != nullptr && thread->spin && thread->spin->naps;
  });
}

// What those do between two naps: one look more, or a few where one of them was just awake.
void FollowNappers(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                   InspectOptions inspect, TwoLooks* two) {
  constexpr int kTries = 4;
  inspect.nappers = WhoMayNapInVain(two->looks);
  if (!options.stop || inspect.nappers.empty()) return;
  inspect.longest_nap = kSecond + kSecond / 10;
  inspect.budget += static_cast<TimeNs>(inspect.nappers.size()) * inspect.longest_nap;
  for (int tries = 0; tries < kTries; ++tries) {
    auto look = inspector.Inspect(options.pid, inspect);
    if (!look.ok() || !IsOf(options.pid, *look)) return;
    if (!look->leads.empty()) {
      inspect.with.insert(inspect.with.end(), look->leads.begin(), look->leads.end());
      auto again = SamplePair(clock, inspector, options, inspect);
      if (again.ok()) *two = std::move(*again);
      // Whom they led to may nap in vain, too.
      inspect.nappers = WhoMayNapInVain(two->looks);
    } else {
      two->looks.back() = std::move(*look);
    }
    NoteNaps(two->looks.front(), &two->looks.back());
    if (WereFollowed(two->looks.back(), inspect.nappers)) return;
  }
}

// Since when a process has stood still, if it has not done so for long; nothing: none has just
// begun.
std::optional<TimeNs> LastShortStop(const SystemSample& look) {
  std::optional<TimeNs> last;
  for (const ProcessFacts& process : look.processes) {
    for (const ThreadFacts& thread : process.threads) {
      const bool is_halted =
          thread.state == ThreadState::kStopped || thread.state == ThreadState::kTraced;
      const TimeNs since = thread.since.value_or(look.begin);
      if (is_halted && look.end - since < kLongStop) last = std::max(last.value_or(0), since);
    }
  }
  return last;
}

// A debugger, or whoever else looks at a process, holds it for a moment only: what stands still now
// is looked at again when it has done so for a second, by whatever clock; and anew, if it went on.
void ObserveStop(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                 const InspectOptions& inspect, TwoLooks* two) {
  const auto last = LastShortStop(two->looks.back());
  if (!last) return;
  const TimeNs now = clock.Monotonic();
  clock.Sleep(std::clamp<TimeNs>(*last + kLongStop - now, 0, kLongStop));
  auto again = SamplePair(clock, inspector, options, inspect);
  if (again.ok()) *two = std::move(*again);
}

// Who ticks beside a hang is no sign that anybody goes on. Where a busy machine let it wait for a
// CPU in both looks, a few more tell. The newest stays the one that tells most.
void ObserveTickers(Clock& clock, ProcessInspector& inspector, const WhyProcessOptions& options,
                    InspectOptions inspect, TwoLooks* two) {
  constexpr int kTries = 4;
  constexpr TimeNs kApart = 25 * kMillisecond;
  inspect.stop = inspect.step_running = inspect.stacks = inspect.remote_ends = false;
  const auto may_tick = [&](int tid) { return MayBeTicker(two->looks, tid); };
  for (int tries = 0; tries < kTries; ++tries) {
    const std::vector<int>& moving = two->judgement.standing.moving;
    if (!two->judgement.IsBad() || moving.empty() ||
        !std::all_of(moving.begin(), moving.end(), may_tick))
      return;
    clock.Sleep(kApart);
    auto look = inspector.Inspect(options.pid, inspect);
    if (!look.ok() || !IsOf(options.pid, *look)) return;
    two->looks.insert(std::prev(two->looks.end()), std::move(*look));
    if (two->looks.back().longest_stop > 0)
      LeaveOutStops(two->looks.back(), std::span(two->looks).subspan(1, two->looks.size() - 2));
    two->judgement = JudgeProcess(two->looks);
  }
}

Result<TwoLooks> SampleTwice(Clock& clock, ProcessInspector& inspector,
                             const WhyProcessOptions& options, InspectOptions inspect = {}) {
  auto two = SamplePair(clock, inspector, options, inspect);
  if (!two.ok()) return two.status();
  // What a thread that spins asks for is known only once it was stepped. Who could give it must
  // have stood still, too.
  if (const SystemSample& look = two->looks.back(); !look.leads.empty()) {
    if (look.end - two->looks.front().begin >= WhyProcessOptions::kQuietFor)
      options.observing(fmt::format("looking at what process {} spins for", options.pid));
    inspect.with = look.leads;
    auto again = SamplePair(clock, inspector, options, inspect);
    if (again.ok()) *two = std::move(*again);
  }
  NoteNaps(two->looks.front(), &two->looks.back());
  if (options.observes_retries) ObserveStop(clock, inspector, options, inspect, &*two);
  if (options.observes_retries) FollowNappers(clock, inspector, options, inspect, &*two);
  if (options.observes_retries && options.others.empty() && Suspects(two->looks)) {
    // Whom these wait for must be in every look: that they wait is not seen in each.
    const std::vector<int> led_to = FoundOnlyLater(two->looks);
    inspect.with.insert(inspect.with.end(), led_to.begin(), led_to.end());
    auto again = led_to.empty() ? Result<TwoLooks>(Status::NotFound(""))
                                : SamplePair(clock, inspector, options, inspect);
    if (again.ok()) *two = std::move(*again);
    ObserveRetries(clock, inspector, options, inspect, &two->looks);
  }
  if (options.observes_retries && options.others.empty())
    SeeAllRanks(inspector, options, inspect, &two->looks);
  if (options.observes_retries && options.others.empty() && PollForRanks(two->looks.back())) {
    ObserveRanks(clock, inspector, options, inspect, &two->looks);
  } else if (options.observes_retries && options.others.empty()) {
    if (HasUnseenGoroutines(two->looks.back()))
      LookAgain(inspector, options, inspect, false, &two->looks);
    WaitForTasks(clock, inspector, options, inspect, &two->looks);
    if (HasGoroutinesInCircles(two->looks.back()) || HasTasksInCircles(two->looks))
      ObserveTasks(clock, inspector, options, inspect, &two->looks);
  }
  const TimeNs wall = clock.Wall();
  if (!options.others.empty()) {
    auto joined = JoinLooks(std::move(two->looks), wall, options.others);
    if (!joined.ok()) return joined.status();
    two->looks = std::move(*joined);
  }
  two->judgement = JudgeProcess(two->looks);
  if (options.observes_retries && options.others.empty())
    ObserveTickers(clock, inspector, options, inspect, &*two);
  return two;
}

// Machines of Java whose memory cannot be read may say themselves what their threads wait for; then
// all is looked at anew.
Result<TwoLooks> SampleAsked(Clock& clock, ProcessInspector& inspector,
                             const WhyProcessOptions& options, InspectOptions inspect) {
  auto two = SampleTwice(clock, inspector, options, inspect);
  if (!two.ok() || !options.ask_java) return two;
  std::vector<std::string> troubles;
  for (const ProcessFacts& process : two->looks.back().processes) {
    if (!process.has_unread_java) continue;
    options.observing(fmt::format("asking process {} for its threads", process.pid));
    auto answer = options.ask_java(process.pid);
    if (answer.ok())
      inspect.java_threads[process.pid] = std::move(*answer);
    else
      troubles.push_back(answer.status().message());
  }
  if (!inspect.java_threads.empty()) two = SampleTwice(clock, inspector, options, inspect);
  if (two.ok()) {
    two->looks.back().asked_machines = !inspect.java_threads.empty();
    auto& warnings = two->looks.back().processes[0].warnings;
    warnings.insert(warnings.end(), troubles.begin(), troubles.end());
  }
  return two;
}

Result<TwoLooks> SampleKnown(Clock& clock, ProcessInspector& inspector,
                             const WhyProcessOptions& options) {
  InspectOptions inspect;
  inspect.descendants = true;       // as whoever runs the program asks
  inspect.budget = kPatientBudget;  // nobody is kept waiting by that but who asks
  inspect.remote_ends = options.json || !options.others.empty();
  auto two = SampleAsked(clock, inspector, options, inspect);
  if (!two.ok()) return two;
  if (Status status = CheckKnown(two->looks.back(), two->judgement); !status.ok()) return status;
  return two;
}

ProcessScene SceneOf(const TwoLooks& two, const WhyProcessOptions& options) {
  return {&two.looks.back(),  &two.judgement,  options.all_threads,
          options.all_stacks, options.columns, options.lines};
}

// A scope that is there but cannot be read is worth saying, one that is not there is not.
bool MayHaveScope(FileSystem& files, const WhyOptions& scope, int pid) {
  return !scope.source.elf.empty() || ProcessTarget::Open(files, pid, {}).ok();
}

std::string NoteText(const std::string& sentence, Clock& clock, const WhyProcessOptions& options) {
  if (!options.json) return sentence + "\n";
  return WatchNoteJson(fmt::format("process {}", options.pid), "trouble", sentence, clock.Wall());
}

// The quickest look: nobody is stopped.
std::optional<SystemSample> LookBriefly(ProcessInspector& inspector, int pid) {
  InspectOptions inspect;
  inspect.stop = inspect.step_running = inspect.stacks = false;
  auto look = inspector.Inspect(pid, inspect);
  return look.ok() ? std::optional(std::move(*look)) : std::nullopt;
}

// What two sources say of the same threads is of one time where these sleep in all looks of both.
void KeepStill(const std::optional<SystemSample>& before, const SystemSample& look,
               Sightings* threads) {
  std::erase_if(threads->still_threads, [&](int thread) {
    const ThreadFacts* const first = before ? FindThread(*before, thread) : nullptr;
    const ThreadFacts* const last = FindThread(look, thread);
    return first == nullptr || last == nullptr || !IsSameWait(*first, *last);
  });
}

// As FindingText of a scope's.
std::string JoinedText(const Verdict& verdict) {
  std::string text;
  for (const Finding& finding : verdict.findings) {
    if (!finding.of_two_sources) continue;
    text += fmt::format("{}: {} ({})\n", finding.IsBad() ? "HANG" : "perhaps a hang",
                        finding.summary, ConfidenceName(finding.confidence));
    for (const auto* lines : {&finding.lines, &finding.evidence}) {
      for (const std::string& line : *lines) text += "  " + Printable(line) + "\n";
    }
    for (const std::string& doubt : finding.doubts)
      text += "  not certain: " + Printable(doubt) + "\n";
  }
  return text;
}

Verdict JudgeThreads(Clock& clock, const TwoLooks& two) {
  Picture picture;
  picture.threads = ToldSightings(two.judgement, two.looks.back());
  return JudgeLook(clock, std::move(picture), two.looks.front().begin);
}

}  // namespace

std::string LooksJson(Clock& clock, const TwoLooks& two, const WhyProcessOptions& options) {
  const WhyPart part{TargetName(two.looks.back()), two.looks.front().begin, {}, "", ""};
  return WhyVerdictLine(clock, JudgeThreads(clock, two), part) +
         ProcessJson(SceneOf(two, options), clock.Wall(), clock.Monotonic());
}

WhyReport ReportLooks(Clock& clock, const TwoLooks& two, const WhyProcessOptions& options,
                      std::string kept) {
  const Verdict verdict = JudgeThreads(clock, two);
  if (options.json) return {LooksJson(clock, two, options), IsBad(verdict)};
  ProcessScene scene = SceneOf(two, options);
  scene.standing = StandingText(verdict);
  scene.kept = std::move(kept);
  return {ProcessText(scene), IsBad(verdict)};
}

ProcessHangs FindProcessHangs(Clock& clock, ProcessInspector& inspector,
                              const HangQuestion& question) {
  WhyProcessOptions options;
  options.pid = question.pid;
  options.stop = question.step;
  options.observes_retries = question.is_patient;  // who records is kept from it meanwhile
  InspectOptions inspect;
  inspect.long_step_time = 0;  // who records does not wait for that
  inspect.descendants = question.descendants;
  inspect.also = question.also;
  inspect.stop_asleep = false;  // it is followed, and would be seen to move
  inspect.remote_ends = true;   // for a snapshot, which another host may be asked about
  auto two = SampleTwice(clock, inspector, options, inspect);
  if (!two.ok()) return {};
  // Who started the program, and asks here, collects it in a moment.
  std::erase_if(two->judgement.findings,
                [](const ProcessFinding& each) { return each.kind == FindingKind::kZombie; });
  std::string threads =
      CheckKnown(two->looks.back(), two->judgement).ok() ? LooksJson(clock, *two, options) : "";
  Sightings told = ToldSightings(two->judgement, two->looks.back());
  return {std::move(told.findings), std::move(two->judgement.standing), std::move(told.waits),
          std::move(told.still_threads), std::move(threads)};
}

namespace {

using PlainJson = nlohmann::json;

PlainJson PackedWho(const FindingSubject& who) {
  return {who.name,  who.process,   who.thread,  who.does,
          who.where, who.waits_for, who.callers, who.host};
}

FindingSubject UnpackedWho(const PlainJson& json) {
  FindingSubject who;
  json[0].get_to(who.name);
  json[1].get_to(who.process);
  json[2].get_to(who.thread);
  json[3].get_to(who.does);
  json[4].get_to(who.where);
  json[5].get_to(who.waits_for);
  json[6].get_to(who.callers);
  json[7].get_to(who.host);
  return who;
}

PlainJson PackedWaits(const std::vector<Wait>& waits) {
  PlainJson list = PlainJson::array();
  for (const Wait& wait : waits) {
    PlainJson whom = PlainJson::array();
    for (const FindingSubject& each : wait.whom) whom.push_back(PackedWho(each));
    list.push_back({PackedWho(wait.who), std::move(whom), wait.doubt, wait.line, wait.since});
  }
  return list;
}

std::vector<Wait> UnpackedWaits(const PlainJson& list) {
  std::vector<Wait> waits;
  for (const PlainJson& json : list) {
    Wait& wait = waits.emplace_back();
    wait.who = UnpackedWho(json[0]);
    for (const PlainJson& each : json[1]) wait.whom.push_back(UnpackedWho(each));
    json[2].get_to(wait.doubt);
    json[3].get_to(wait.line);
    json[4].get_to(wait.since);
  }
  return waits;
}

// Both ends are the same program.
std::string Packed(const ProcessHangs& hangs) {
  PlainJson findings = PlainJson::array();
  for (const Finding& each : hangs.findings) {
    findings.push_back(PlainJson(FindingObject(each)));
    findings.back()["is_warning"] = each.is_warning;
    findings.back()["is_restless"] = each.is_restless;
  }
  const ProcessStanding& standing = hangs.standing;
  return JsonText(PlainJson{std::move(findings),
                            {standing.moving, standing.tickers, standing.serving, standing.outside,
                             standing.unknown, standing.halted, standing.complete, standing.hidden},
                            hangs.threads,
                            PackedWaits(hangs.waits),
                            hangs.still_threads});
}

ProcessHangs Unpacked(const std::string& bytes) {
  ProcessHangs hangs;
  const PlainJson json = PlainJson::parse(bytes, nullptr, false);
  if (!json.is_array() || json.size() != 5) return hangs;
  for (const PlainJson& each : json[0]) {
    hangs.findings.push_back(ReadFinding(each));
    each["is_warning"].get_to(hangs.findings.back().is_warning);
    each["is_restless"].get_to(hangs.findings.back().is_restless);
  }
  const PlainJson& standing = json[1];
  standing[0].get_to(hangs.standing.moving);
  standing[1].get_to(hangs.standing.tickers);
  standing[2].get_to(hangs.standing.serving);
  standing[3].get_to(hangs.standing.outside);
  standing[4].get_to(hangs.standing.unknown);
  standing[5].get_to(hangs.standing.halted);
  standing[6].get_to(hangs.standing.complete);
  standing[7].get_to(hangs.standing.hidden);
  json[2].get_to(hangs.threads);
  hangs.waits = UnpackedWaits(json[3]);
  json[4].get_to(hangs.still_threads);
  return hangs;
}

// Whether a process beside the program's parent may look at it as well as the parent may.
bool MayLookFromBeside() {
  if (OwnCapabilities().Has(Capability::kSysPtrace)) return true;
  const auto scope = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/yama/ptrace_scope");
  return !scope.ok() || scope.value().starts_with("0");
}

}  // namespace

Result<ProcessHangs> FindProcessHangsBeside(Clock& clock, ProcessInspector& inspector,
                                            const HangQuestion& question) {
  if (!MayLookFromBeside()) return FindProcessHangs(clock, inspector, question);
  const auto bytes = AskSideProcess(
      "thread-reader", {}, [&] { return Packed(FindProcessHangs(clock, inspector, question)); });
  if (!bytes.ok()) return bytes.status();
  return Unpacked(bytes.value());
}

Result<HostLook> OpenHostLook(FileSystem& files, const std::string& path) {
  const std::string of_snapshot = path + "/" + kThreadsName;
  const std::string& file = files.Exists(of_snapshot) ? of_snapshot : path;
  auto text = ReadWholeFile(files, file, kLargestLook);
  if (!text.ok()) return text.status();
  return ReadHostLook(*text, file);
}

Result<WhyReport> AskWhyProcess(Clock& clock, ProcessInspector& inspector,
                                const WhyProcessOptions& options) {
  auto two = SampleKnown(clock, inspector, options);
  if (!two.ok()) return two.status();
  return ReportLooks(clock, *two, options);
}

Result<WhyReport> AskWhyPid(FileSystem& files, Clock& clock, ProcessInspector& inspector,
                            const WhyOptions& scope, const WhyProcessOptions& options) {
  if (!MayHaveScope(files, scope, options.pid)) return AskWhyProcess(clock, inspector, options);
  const std::optional<SystemSample> before = LookBriefly(inspector, options.pid);
  auto part = LookAtScope(files, clock, scope);
  if (!part.ok()) {
    auto without = AskWhyProcess(clock, inspector, options);
    if (!without.ok()) return part.status();
    without->text +=
        NoteText("what it records was not read: " + part.status().message(), clock, options);
    return without;
  }
  auto two = SampleKnown(clock, inspector, options);
  // Its scope was read, so it was no zombie when it was asked about.
  if (two.ok() && HasEnded(two->looks.back())) two = EndedMeanwhile(options.pid);
  Picture picture;
  picture.scope = part->sightings;
  if (two.ok()) {
    picture.threads = ToldSightings(two->judgement, two->looks.back());
    KeepStill(before, two->looks.back(), &picture.threads);
  }
  const Verdict verdict = JudgeLook(clock, std::move(picture), part->begin);
  const std::string not_looked =
      two.ok()
          ? ""
          : NoteText("its threads were not looked at: " + two.status().message(), clock, options);
  if (options.json)
    return WhyReport{WhyVerdictLine(clock, verdict, *part) + part->evidence + not_looked,
                     IsBad(verdict)};
  std::string text = JoinedText(verdict) + part->found + part->evidence + not_looked;
  if (two.ok()) {
    // The scope says the same with better names.
    std::erase_if(two->judgement.findings, [&](const ProcessFinding& finding) {
      return IsToldBy(part->sightings.findings, ToldFinding(finding, two->looks.back()));
    });
    text += ProcessFindingsText(SceneOf(*two, options));
  }
  const std::string standing = StandingText(verdict);
  return WhyReport{(standing.empty() ? "" : standing + "\n") + text, IsBad(verdict)};
}

}  // namespace hangscope

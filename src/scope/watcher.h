// Follows a target over many polls: what each core and task does, since when; and what is wrong.
//
// Pure: it is given looks and the time, and asks for the rarely needed rest through WatchSource.
// The rules are in docs/verdicts.md. Not thread-safe.
#ifndef HANGSCOPE_SCOPE_WATCHER_H
#define HANGSCOPE_SCOPE_WATCHER_H

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/watch.h"
#include "proc/held_up_time.h"
#include "verdict/wait_graph.h"

namespace hangscope {

// What the rings tell of an OS's tasks.
struct TaskNews {
  bool tells_switches = false;          // which task is given a core is recorded
  bool lost = false;                    // records that would be news are not to be had
  std::set<uint32_t> switched_in = {};  // tasks that were given a core since the last time
  // Of tasks that sleep for a set time: for how long, by what earlier sleeps took.
  std::map<uint32_t, TimeNs> sleeps = {};
};

// Somebody else may hold or provide it.
struct SupplierDoubt {
  Confidence limit = Confidence::kPossible;
  std::string why;  // a sentence
};

// The rest of a target, read only when something stands still. Implemented over WatchReader, and by
// a fake.
class WatchSource {
 public:
  virtual ~WatchSource() = default;
  virtual Result<std::vector<ClaimRow>> Claims() = 0;
  virtual Result<CoreDetail> Detail(uint32_t core) = 0;
  // Core `core`'s records so far: a core that records is not silent. Fails where that is not to be
  // had.
  virtual Result<uint64_t> Emitted(uint32_t core) = 0;
  // The first time, since the oldest record there is.
  virtual Result<TaskNews> News() = 0;
  // How much of the time since `since` the target had a processor, as far as is known by now.
  // Nothing: not known.
  virtual std::optional<HeldUpTime::Given> Given(TimeNs since) {
    (void)since;
    return std::nullopt;
  }
  // By core: the core of its node whose fault came first. Nothing, or none that far: not known.
  virtual std::vector<std::optional<uint32_t>> FirstFaults() { return {}; }
  // What lowers a conclusion that rests on knowing all who could deliver `resource`; of a lock
  // whose holder is known nobody else can.
  virtual std::vector<SupplierDoubt> Doubts(uint32_t resource, bool holder_known) {
    (void)resource;
    (void)holder_known;
    return {};
  }
};

struct WatcherOptions {
  TimeNs stall = 5 * kSecond;  // a wait, a silence of this length is looked into
  bool shared_clock = false;   // the target's times can be compared between its cores
  // of the target's clock; 0: not known, and waits are as old as the watcher saw them
  uint64_t clock_hz = 0;
  // Of a device of several memories. Of its OS's tasks only waits are judged: who runs and who does
  // not is a matter of each memory.
  bool is_device = false;
  // Stopped for one look by its debug server: it counts as dead, and goes on after that.
  bool is_held = false;
  bool one_clock = true;  // false: how old waits are is known, and not which came first
  // What evidence calls a subject; empty: by its number.
  std::function<std::string(const SubjectId&)> call = {};
  // Nothing is judged, only what each does: somebody else judges several of these together.
  bool only_follows = false;
};

// A wait of at least the stall time that two judgements saw alike. Subjects, by number.
struct LastingWait {
  uint32_t who = 0;
  uint32_t sequence = 0;
  std::vector<uint32_t> whom;  // who holds or provides it, ascending; never empty
  bool may_be_others = false;  // claims were lost

  bool operator==(const LastingWait&) const = default;
};

class Watcher {
 public:
  explicit Watcher(const WatcherOptions& options) : options_(options) {}

  // Two looks at least are needed before anything counts as standing still.
  void See(const ScopeSample& sample, TimeNs now, WatchSource& source);
  // For what will never change any more (a dump, a dead process): judges at once, from one look;
  // waits count as long as the target's clock says.
  void SeeDead(const ScopeSample& sample, TimeNs now, WatchSource& source);

  // Cores, then tasks; unused ones, too.
  const std::vector<SubjectState>& subjects() const { return subjects_; }
  // New since the last call; each finding comes once. One that ended and came back is a new one,
  // and so is one that was merely possible and is not any more.
  std::vector<ScopeFinding> DrainFindings();
  // All that still hold, as the latest look found them.
  const std::vector<ScopeFinding>& standing() const { return standing_; }
  // That have not ended since; not of all that there are, where there are very many.
  std::vector<LastingWait> LastingWaits() const;

 private:
  // What one look at a subject does not tell.
  struct History {
    bool seen = false;
    TimeNs changed = 0;             // the latest change
    bool changed_at_least = false;  // none was seen
    uint32_t changes = 0;
    TimeNs longest_gap = 0;   // between changes, where it neither waited nor idled
    uint64_t rounds = 0;      // heartbeats, and waits that ended
    uint32_t wait_looks = 0;  // at the same wait
    uint32_t waits_ended = 0;
    TimeNs longest_wait = 0;   // of those that ended
    TimeNs longest_sleep = 0;  // of those that were for time to pass; 0: none ended
    // Of cores.
    std::optional<uint64_t> emitted;  // events, at the latest look at them
    TimeNs emitted_looked = 0;
    TimeNs emitted_since = 0;  // none came since
    std::optional<RingLook> ring;
    TimeNs ring_since = 0;    // it did not change since
    uint32_t ring_looks = 0;  // that found it so
    std::optional<CoreFault> fault;
    bool moved_after_fault = false;
    // Of tasks.
    uint32_t sequence = 0;  // of the record
    bool waited_once = false;
    TimeNs not_run_since = 0;        // ready, unchanged, and not seen to run
    uint32_t ready_looks = 0;        // so many
    TimeNs no_tick = 0;              // meanwhile, between looks
    bool news_lost = false;          // meanwhile: a switch to it may be among that
    std::set<uint32_t> ran_instead;  // tasks, by id
  };
  // How far a supplier had gone when a wait for it was first looked into.
  struct Baseline {
    uint32_t sequence = 0;  // of the wait
    uint64_t rounds = 0;
  };
  // A core of an OS that is dead: nothing of it moves, and time that tasks wait for has passed.
  struct StillCores {
    std::vector<uint32_t> cores;
    std::optional<uint32_t> goes_on;  // another core that runs tasks and is alive
    std::vector<uint32_t> overdue;    // subjects: tasks that should have woken
    Confidence confidence = Confidence::kPossible;
    std::vector<std::string> evidence;
    std::string doubt;
  };
  struct Judgement;  // one call of See, scope/judgement.h
  // What makes the findings of two looks the same one.
  struct Key {
    FindingKind kind = FindingKind::kDead;
    std::vector<SubjectId> subjects;
    // that change where it is another finding: of a wait, a resource, a heartbeat, a type of fault
    std::vector<uint32_t> numbers;
    std::string field;  // kCorrupt

    auto operator<=>(const Key&) const = default;
  };

  void Judge(const ScopeSample& sample, TimeNs now, WatchSource& source, bool dead);
  // scope/watcher.cc: what the look says, and since when.
  void FollowCore(Judgement& look, uint32_t core);
  void FollowTask(Judgement& look, uint32_t index);
  void FollowWait(const Judgement& look, uint32_t subject, const std::optional<WaitState>& wait);
  void FollowRing(const Judgement& look, uint32_t core);
  void FollowEvents(Judgement& look, uint32_t core);
  void FollowReady(const Judgement& look, uint32_t index, bool changed);
  void AskForNews(Judgement& look, bool sleeps);
  bool CountedNoTick(const Judgement& look) const;
  TimeNs GivenSince(const Judgement& look, TimeNs since) const;
  bool LastsForStall(const Judgement& look, TimeNs since) const;
  // scope/still_cores.cc: an OS whose cores are dead.
  void FollowStillCores(Judgement& look);
  bool ShowsStillness(const Judgement& look) const;
  bool IsStill(const Judgement& look, uint32_t core) const;
  StillCores CoresOf(const Judgement& look) const;
  bool MayBeOverdue(const Judgement& look, uint32_t task) const;
  void AddOverdue(const Judgement& look, uint32_t task, bool works, StillCores* still) const;
  std::string PartnerText(const Judgement& look, uint32_t partner) const;
  std::vector<uint32_t> ReadyWithoutCore(const Judgement& look) const;
  std::optional<uint32_t> WorkingTask(const Judgement& look, const StillCores& still) const;
  void SetActivity(const Judgement& look, uint32_t subject, Activity activity, TimeNs since);
  Activity CoreActivity(const Judgement& look, uint32_t core) const;
  // scope/findings.cc: what is wrong.
  void BuildGraph(Judgement& look);
  void SetRole(const Judgement& look, uint32_t subject, WaitNode* node) const;
  bool NeverRuns(const Judgement& look, uint32_t subject) const;
  bool HasStopped(const Judgement& look) const;
  void MarkEdges(Judgement& look);
  void KeepWaits(const Judgement& look);
  std::optional<Confidence> NeverDelivers(const Judgement& look, uint32_t waiter, uint32_t supplier,
                                          const Baseline& baseline) const;
  void FindAll(Judgement& look);
  void FindStuck(Judgement& look, const WaitCause& cause) const;
  void FindFault(Judgement& look, uint32_t core);
  void CountFaults(Judgement& look) const;
  void AddFirstFault(const Judgement& look, uint32_t core, ScopeFinding* finding) const;
  void FindSilence(Judgement& look, uint32_t core) const;
  bool IsStillCore(uint32_t subject) const;
  void FindStillCores(Judgement& look) const;
  void AddHeldUp(const Judgement& look, TimeNs since, ScopeFinding* finding) const;
  void FindStarvedTask(Judgement& look, uint32_t subject) const;
  void FindLowStack(Judgement& look, uint32_t core) const;
  void FindCorruptions(Judgement& look) const;
  ScopeFinding FindingAbout(const Judgement& look, uint32_t subject) const;
  void AddPartners(const Judgement& look, const WaitCause& cause, ScopeFinding* finding) const;
  Confidence PartnerConfidence(const Judgement& look, uint32_t waiter, uint32_t partner) const;
  void AddFirst(const WaitCause& cause, ScopeFinding* finding) const;
  void AddDoubts(const Judgement& look, const WaitCause& cause, ScopeFinding* finding) const;
  bool WaitedForLong(const Judgement& look, const WaitCause& cause) const;
  std::string WaitText(const Judgement& look, uint32_t subject) const;
  std::string Name(const SubjectId& subject) const;
  void AddSupplierDoubts(const Judgement& look, const WaitCause& cause,
                         ScopeFinding* finding) const;
  void Publish(Judgement& look);

  WatcherOptions options_;
  std::vector<SubjectState> subjects_;
  std::vector<History> histories_;
  uint32_t cores_ = 0;
  uint64_t looks_ = 0;
  TimeNs looked_ = 0;  // the look before this one
  TimeNs judged_ = 0;
  TimeNs news_asked_ = 0;
  TaskNews news_;                    // of the latest time
  std::optional<StillCores> still_;  // as of the latest look
  size_t corruptions_ = 0;           // of the latest look
  std::optional<TimeNs> died_;       // the first look at it as a dead one
  std::map<std::pair<uint32_t, uint32_t>, Baseline> baselines_;  // by waiter and supplier
  std::vector<LastingWait> waits_;                               // of the latest judgement
  std::vector<LastingWait> lasting_;                             // of that and the one before
  std::set<Key> suspected_;                                      // what the look before found
  std::vector<ScopeFinding> standing_;
  std::map<Key, size_t> standing_keys_;  // where in standing_
  std::vector<ScopeFinding> fresh_;
};

}  // namespace hangscope

#endif

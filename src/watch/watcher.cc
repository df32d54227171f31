#include "watch/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "verdict/wait_graph.h"

namespace hangscope {
namespace {

constexpr uint32_t kLeastStackFree = 64;
constexpr int kPatience = 3;            // longer than what was usual, by this factor
constexpr int kPatienceUnknown = 10;    // stalls, where nothing is known of what is usual
constexpr uint64_t kManyRounds = 8;
constexpr uint32_t kFewChanges = 2;     // are no rhythm yet
constexpr uint32_t kLeastLooks = 3;     // at a task that never runs

std::string SubjectText(const WatchSubject& subject) {
  return fmt::format("{} {}", subject.kind == WatchSubject::Kind::kCore ? "core" : "task record", subject.index);
}

bool EndsByItself(ResourceKind kind) { return kind == ResourceKind::kTime; }
// Nobody in the program is expected to end it.
bool IsByDesign(ResourceKind kind) {
  return EndsByItself(kind) || kind == ResourceKind::kOutside || kind == ResourceKind::kSuspended;
}

// What the core itself writes; what others ask of it is no sign of life.
bool IsSame(const CoreSample& a, const CoreSample& b) {
  return a.waypoint == b.waypoint && a.heartbeat == b.heartbeat && a.wait_sequence == b.wait_sequence && a.kernel == b.kernel &&
         a.launch == b.launch && a.paused == b.paused && a.fault == b.fault && a.stack_free == b.stack_free;
}

bool IsSameWait(const WaitState& a, const WaitState& b) {
  return a.sequence == b.sequence && a.resource == b.resource && a.kind == b.kind;
}

std::optional<WaitState> WaitOf(const TaskSample& task) {
  const TaskWait& record = task.record;
  if (!task.in_use || task.corrupt || (record.sequence & 1) != 0 || record.state != TaskState::kWaiting) return std::nullopt;
  return WaitState{record.sequence, record.resource, record.kind, record.since};
}

std::string Text(TimeNs time) { return fmt::format("{:.1f} s", Seconds(time)); }

Confidence Lower(Confidence a, Confidence b) { return std::min(a, b); }

// "core 3" or "task record 7", as the reader says where.
std::optional<WatchSubject> SubjectOf(const std::string& where) {
  for (const auto& [prefix, kind] : {std::pair{std::string_view("core "), WatchSubject::Kind::kCore}, std::pair{std::string_view("task record "), WatchSubject::Kind::kTask}}) {
    if (!where.starts_with(prefix)) continue;
    uint32_t index = 0;
    const auto [end, error] = std::from_chars(where.data() + prefix.size(), where.data() + where.size(), index);
    if (error == std::errc() && end == where.data() + where.size()) return WatchSubject{kind, index};
  }
  return std::nullopt;
}

}  // namespace

struct Watcher::Look {
  const WatchSample& sample;
  TimeNs now;
  WatchSource& source;
  bool dead;
  bool first;  // the first look of all
  // Of the target's clock, where it can be compared; and how long ago a time of it was.
  std::optional<uint64_t> target_time;
  std::vector<ClaimRow> claims;
  bool claims_known = true;
  std::vector<WaitNode> nodes = {};
  // Of an edge that never delivers: how sure that is.
  std::map<std::pair<uint32_t, uint32_t>, Confidence> edge_confidence = {};
  std::vector<Finding> findings = {};
  std::vector<std::string> keys = {};
};

void Watcher::See(const WatchSample& sample, TimeNs now, WatchSource& source) { Judge(sample, now, source, false); }
void Watcher::SeeDead(const WatchSample& sample, TimeNs now, WatchSource& source) { Judge(sample, now, source, true); }

std::vector<Finding> Watcher::TakeFindings() { return std::exchange(fresh_, {}); }

void Watcher::Judge(const WatchSample& sample, TimeNs now, WatchSource& source, bool dead) {
  // Nothing grows older once the target is dead.
  if (dead && !died_) died_ = now;
  Look look{sample, dead ? *died_ : now, source, dead, looks_ == 0, {}, {}};
  if (options_.shared_clock && options_.clock_hz != 0) look.target_time = sample.target_time;
  cores_ = static_cast<uint32_t>(sample.cores.size());
  const size_t count = sample.cores.size() + sample.tasks.size();
  subjects_.resize(count);
  histories_.resize(count);
  for (uint32_t core = 0; core < cores_; ++core) FollowCore(look, core);
  for (uint32_t task = 0; task < sample.tasks.size(); ++task) FollowTask(look, task);
  ++looks_;
  BuildGraph(look);
  FindAll(look);
  Publish(look);
}

// A change, when it came, and how long the subject had stood still before.
void Watcher::FollowCore(Look& look, uint32_t core) {
  SubjectWatch& subject = subjects_[core];
  History& history = histories_[core];
  const CoreSample& sample = look.sample.cores[core];
  subject.subject = {WatchSubject::Kind::kCore, core};
  if (sample.corrupt) {
    SetActivity(look, core, Activity::kCorrupt, look.now);
    subject.wait.reset();
    subject.sample = sample;
    return;
  }
  const bool seen = history.seen;
  const bool changed = seen && !IsSame(sample, subject.sample);
  const bool was_still_by_choice = subject.activity == Activity::kWaiting || subject.activity == Activity::kIdle ||
                                   subject.activity == Activity::kPaused || subject.activity == Activity::kEnded ||
                                   subject.activity == Activity::kUnused;
  if (!seen) {
    history.seen = true;
    history.changed = look.now;
    history.changed_at_least = true;
  } else if (changed) {
    if (!history.changed_at_least && !was_still_by_choice) history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
    history.changed = look.now;
    history.changed_at_least = false;
    ++history.changes;
    history.rounds += sample.heartbeat - subject.sample.heartbeat;
    history.moved_after_fault = sample.fault != FaultType::kNone && subject.sample.fault == sample.fault;
    history.emitted.reset();
  }
  if (sample.fault == FaultType::kNone) history.fault.reset();
  FollowWait(look, core, sample.wait);
  subject.sample = sample;
  FollowEvents(look, core);
  const Activity activity = CoreActivity(look, core);
  SetActivity(look, core, activity, activity == Activity::kSilent ? history.changed : look.now);
}

// One wait is what two looks find with the same number; before that it is a suspicion.
void Watcher::FollowWait(Look& look, uint32_t index, const std::optional<WaitState>& wait) {
  SubjectWatch& subject = subjects_[index];
  History& history = histories_[index];
  if (subject.wait && wait && IsSameWait(*subject.wait, *wait)) {
    ++history.wait_looks;
    return;
  }
  if (subject.wait) {
    ++history.waits_ended;
    ++history.rounds;
    history.longest_wait = std::max(history.longest_wait, look.now - subject.since);
  }
  subject.wait = wait;
  history.wait_looks = wait ? 1 : 0;
  if (!wait) return;
  subject.activity = Activity::kUnused;  // so that a new wait after a wait begins anew
}

// Who records events is alive, whatever the mailbox says. Asked only of cores that seem to stand still: it is a
// read for each.
void Watcher::FollowEvents(Look& look, uint32_t core) {
  History& history = histories_[core];
  const SubjectWatch& subject = subjects_[core];
  const bool still = subject.sample.in_use && !subject.wait && subject.sample.launch != LaunchState::kIdle &&
                     subject.sample.launch != LaunchState::kDone && subject.sample.launch != LaunchState::kEnded &&
                     subject.sample.fault == FaultType::kNone && look.now - history.changed >= options_.stall / 4;
  if (!still) return;
  const auto emitted = look.source.Emitted(core);
  if (!emitted.ok()) return;
  if (!history.emitted) {
    history.emitted = emitted.value();
    history.emitted_since = look.now;
  } else if (*history.emitted != emitted.value()) {
    history.emitted = emitted.value();
    history.emitted_since = look.now;
    if (!history.changed_at_least) history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
    history.changed = look.now;
    history.changed_at_least = false;
    ++history.changes;
  }
}

Activity Watcher::CoreActivity(const Look& look, uint32_t core) const {
  const CoreSample& sample = subjects_[core].sample;
  const History& history = histories_[core];
  if (!sample.in_use) return Activity::kUnused;
  if (sample.fault != FaultType::kNone && !history.moved_after_fault) return Activity::kHalted;
  if (sample.paused != PausedState::kNot) return Activity::kPaused;
  if (sample.launch == LaunchState::kDone || sample.launch == LaunchState::kEnded) return Activity::kEnded;
  if (sample.launch == LaunchState::kIdle) return Activity::kIdle;
  if (sample.wait) return IsByDesign(sample.wait->kind) ? Activity::kIdle : Activity::kWaiting;
  // Where an OS runs tasks, they are who stands still; the core does what they let it.
  const bool runs_tasks = core < look.sample.running_tasks.size() && look.sample.running_tasks[core] != 0;
  if (runs_tasks || look.dead || look.now - history.changed < options_.stall) return Activity::kRunning;
  if (history.emitted && look.now - history.emitted_since < options_.stall) return Activity::kRunning;
  return Activity::kSilent;
}

void Watcher::FollowTask(Look& look, uint32_t index) {
  const uint32_t at = cores_ + index;
  SubjectWatch& subject = subjects_[at];
  History& history = histories_[at];
  const TaskSample& sample = look.sample.tasks[index];
  subject.subject = {WatchSubject::Kind::kTask, index};
  if (sample.corrupt) {
    SetActivity(look, at, Activity::kCorrupt, look.now);
    subject.wait.reset();
    return;
  }
  const bool another = subject.task != sample.record.task;
  if (another) history = History{};
  subject.task = sample.record.task;
  const bool seen = history.seen;
  const bool changed = !seen || sample.record.sequence != history.last_sequence;
  if (changed) {
    if (seen && !history.changed_at_least && subject.activity == Activity::kRunning) {
      history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
    }
    if (seen) ++history.changes;
    history.changed = look.now;
    history.changed_at_least = !seen;
  }
  history.seen = true;
  history.last_sequence = sample.record.sequence;
  history.waited_once = history.waited_once || sample.record.sequence > 2;
  const std::optional<WaitState> wait = WaitOf(sample);
  FollowWait(look, at, wait);
  FollowReady(look, index, changed);
  if (!sample.in_use) SetActivity(look, at, Activity::kUnused, look.now);
  else if (!wait) SetActivity(look, at, Activity::kRunning, look.now);
  else SetActivity(look, at, IsByDesign(wait->kind) ? Activity::kIdle : Activity::kWaiting, look.now);
}

// A task that is ready while others run at every look.
void Watcher::FollowReady(Look& look, uint32_t index, bool changed) {
  History& history = histories_[cores_ + index];
  const TaskSample& sample = look.sample.tasks[index];
  const auto& running = look.sample.running_tasks;
  const bool ready = sample.in_use && (sample.record.sequence & 1) == 0 && sample.record.state == TaskState::kReady;
  const bool runs = std::find(running.begin(), running.end(), sample.record.task) != running.end();
  if (!ready || runs || changed) {
    history.ready_looks = 0;
    history.ran_instead.clear();
    // It has not run since this look, whatever its record says.
    if (runs && ready) history.emitted_since = look.now;
    if (changed) history.emitted_since = look.now;
  }
  if (!ready || runs) return;
  ++history.ready_looks;
  for (const uint32_t task : running) {
    if (task != 0) history.ran_instead.insert(task);
  }
}

void Watcher::SetActivity(Look& look, uint32_t index, Activity activity, TimeNs since) {
  SubjectWatch& subject = subjects_[index];
  if (subject.activity == activity && !(look.first && subject.since == 0)) return;
  subject.activity = activity;
  subject.since = since;
  subject.since_at_least = look.first || (activity == Activity::kSilent && histories_[index].changed_at_least);
  // The target's clock knows better when a wait began.
  if (!subject.wait || !look.target_time || *look.target_time < subject.wait->since) return;
  const auto age = static_cast<double>(*look.target_time - subject.wait->since) / static_cast<double>(options_.clock_hz) * 1e9;
  subject.since = look.now - static_cast<TimeNs>(std::min(age, static_cast<double>(std::max<TimeNs>(look.now, 0))));
  subject.since_at_least = false;
}

namespace {

bool IsOldEnough(TimeNs since, TimeNs now, TimeNs stall) { return now - since >= stall; }

}  // namespace

void Watcher::BuildGraph(Look& look) {
  std::unordered_map<uint32_t, uint32_t> records;  // task id: node
  for (uint32_t i = cores_; i < subjects_.size(); ++i) {
    if (subjects_[i].activity != Activity::kUnused) records[subjects_[i].task] = i;
  }
  look.nodes.resize(subjects_.size());
  bool any = false;
  for (uint32_t i = 0; i < subjects_.size(); ++i) {
    const SubjectWatch& subject = subjects_[i];
    const History& history = histories_[i];
    WaitNode& node = look.nodes[i];
    const bool old = look.dead || IsOldEnough(subject.since, look.now, options_.stall);
    switch (subject.activity) {
      case Activity::kUnused:
      case Activity::kCorrupt: node.role = WaitRole::kUnknown; break;
      case Activity::kRunning: node.role = WaitRole::kMoves; break;
      case Activity::kPaused: node.role = WaitRole::kExcused; break;
      case Activity::kHalted: node.role = WaitRole::kHalted; break;
      case Activity::kSilent: node.role = WaitRole::kSilent; break;
      case Activity::kEnded:
        // A core whose program is done may be given the next one.
        node.role = old || subject.sample.launch == LaunchState::kEnded ? WaitRole::kEnded : WaitRole::kMoves;
        break;
      case Activity::kIdle:
        if (subject.wait && subject.sample.launch != LaunchState::kIdle) {
          node.role = EndsByItself(subject.wait->kind) ? WaitRole::kMoves : WaitRole::kExcused;
          if (subject.wait->kind == ResourceKind::kSuspended && old) node.role = WaitRole::kIdle;
        } else {
          node.role = old ? WaitRole::kIdle : WaitRole::kMoves;
        }
        break;
      case Activity::kWaiting: {
        if (!look.dead && (history.wait_looks < 2 || !old)) break;
        any = true;
        node.role = WaitRole::kWaits;
        node.resource = subject.wait->resource;
        node.kind = subject.wait->kind;
        if (i < cores_) break;
        const auto& holder = look.sample.tasks[i - cores_].record.holder;
        if (const auto at = holder ? records.find(*holder) : records.end(); at != records.end()) node.holder = at->second;
        break;
      }
    }
    // Ready, and somebody else runs at each look.
    if (i >= cores_ && subject.activity == Activity::kRunning && history.ready_looks >= kLeastLooks && !history.ran_instead.empty() &&
        IsOldEnough(history.emitted_since, look.now, options_.stall)) {
      node.role = WaitRole::kNeverRuns;
    }
  }
  if (!any) {
    baselines_.clear();
    return;
  }
  auto claims = look.source.Claims();
  look.claims_known = claims.ok();
  if (claims.ok()) look.claims = std::move(claims.value());
  FindSuppliers(look.claims, &look.nodes);
  MarkEdges(look);
}

// Who moves may deliver at any time. But one who went round and round meanwhile, for much longer than
// this wait used to take, does not.
void Watcher::MarkEdges(Look& look) {
  std::map<std::pair<uint32_t, uint32_t>, Baseline> still;
  for (uint32_t i = 0; i < look.nodes.size(); ++i) {
    WaitNode& node = look.nodes[i];
    if (node.role != WaitRole::kWaits) continue;
    const SubjectWatch& waiter = subjects_[i];
    const History& history = histories_[i];
    const TimeNs waited = look.now - waiter.since;
    const bool exclusive = node.kind == ResourceKind::kExclusive || node.holder;
    const bool usual_known = history.waits_ended > 0 || exclusive;
    const TimeNs patience = usual_known ? kPatience * std::max(options_.stall, history.longest_wait) : kPatienceUnknown * options_.stall;
    for (WaitEdge& edge : node.suppliers) {
      const History& supplier = histories_[edge.to];
      const SubjectWatch& who = subjects_[edge.to];
      const auto never = [&](Confidence confidence) {
        edge.never_delivers = true;
        look.edge_confidence[{i, edge.to}] = confidence;
      };
      const WaitRole role = look.nodes[edge.to].role;
      if (exclusive && role == WaitRole::kExcused && who.wait && who.wait->kind == ResourceKind::kOutside) never(Confidence::kPossible);
      if (role != WaitRole::kMoves || edge.to == i) continue;
      if (look.dead) {
        // It ran when all ended: whether it would have delivered, only the wait's age tells.
        if (waited >= options_.stall) never(waited >= patience ? Confidence::kLikely : Confidence::kPossible);
        continue;
      }
      const auto at = baselines_.find({i, edge.to});
      const bool known = at != baselines_.end() && at->second.sequence == waiter.wait->sequence;
      const Baseline baseline = known ? at->second : Baseline{waiter.wait->sequence, supplier.rounds};
      still[{i, edge.to}] = baseline;
      const bool goes_round = supplier.rounds - baseline.rounds >= kManyRounds;
      const bool computes = who.subject.kind == WatchSubject::Kind::kTask && who.activity == Activity::kRunning &&
                            look.now - supplier.changed >= kPatience * std::max(options_.stall, supplier.longest_gap);
      if (waited >= patience && (goes_round || computes)) never(Confidence::kLikely);
    }
  }
  baselines_ = std::move(still);
}

namespace {

// A finding with what all kinds of it share.
struct Draft {
  Finding finding;
  std::string key;
};

void AddToKey(std::string* key, const WatchSubject& subject, uint32_t sequence) {
  *key += fmt::format(" {}{}:{}", subject.kind == WatchSubject::Kind::kCore ? 'c' : 't', subject.index, sequence);
}

// Who began first: by the target's clock where all of them say and it can be compared, else by what the
// watcher saw. Nobody where two are the first.
std::optional<WatchSubject> FirstOf(const std::vector<const SubjectWatch*>& subjects, bool by_target, bool* tied) {
  by_target = by_target && std::all_of(subjects.begin(), subjects.end(), [](const SubjectWatch* s) { return s->wait.has_value(); });
  const SubjectWatch* first = nullptr;
  *tied = false;
  for (const SubjectWatch* subject : subjects) {
    const auto before = [&] { return by_target ? subject->wait->since < first->wait->since : subject->since < first->since; };
    const auto same = [&] { return by_target ? subject->wait->since == first->wait->since : subject->since == first->since; };
    if (first == nullptr || before()) {
      first = subject;
      *tied = false;
    } else if (same()) {
      *tied = true;
    }
  }
  if (first == nullptr || *tied) return std::nullopt;
  return first->subject;
}

}  // namespace

void Watcher::FindAll(Look& look) {
  const auto subject_of = [&](uint32_t node) { return subjects_[node].subject; };
  const auto add = [&](Finding finding, std::string key) {
    finding.time = look.now;
    look.findings.push_back(std::move(finding));
    look.keys.push_back(std::move(key));
  };
  const auto set_since = [&](Finding* finding, const std::vector<uint32_t>& nodes) {
    const auto oldest = std::min_element(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return subjects_[a].since < subjects_[b].since; });
    if (oldest == nodes.end()) return;
    finding->since = subjects_[*oldest].since;
    finding->since_at_least = subjects_[*oldest].since_at_least;
  };
  const auto set_first = [&](Finding* finding, const std::vector<uint32_t>& nodes) {
    std::vector<const SubjectWatch*> all;
    for (const uint32_t node : nodes) all.push_back(&subjects_[node]);
    bool tied = false;
    finding->first = FirstOf(all, options_.shared_clock, &tied);
    if (tied) finding->evidence.push_back("who stopped first is not known: several did between two looks");
  };
  const auto wait_text = [&](uint32_t node) {
    std::string text = fmt::format("{} waits {}{} for {:#x}", SubjectText(subject_of(node)), subjects_[node].since_at_least ? "at least " : "",
                                   Text(look.now - subjects_[node].since), look.nodes[node].resource);
    std::string who;
    for (const WaitEdge& edge : look.nodes[node].suppliers) who += (who.empty() ? "" : ", ") + SubjectText(subject_of(edge.to));
    return who.empty() ? text + ", which nobody is known to hold or provide" : text + ", from " + who;
  };

  std::map<uint32_t, WaitCause> of_node;
  std::vector<WaitCause> causes = FindCauses(look.nodes);
  uint32_t claims_lost = 0;
  for (uint32_t i = 0; i < std::min(look.claims.size(), look.nodes.size()); ++i) claims_lost += look.claims[i].lost != 0;
  const auto doubt = [&](Finding* finding) {
    if (claims_lost != 0) {
      finding->confidence = Lower(finding->confidence, Confidence::kLikely);
      finding->doubts.push_back(fmt::format("{} of the rows of claims ran over: somebody else may hold or provide it", claims_lost));
    }
    if (!look.claims_known) {
      finding->confidence = Lower(finding->confidence, Confidence::kPossible);
      finding->doubts.push_back("what is held and provided could not be read");
    }
  };
  const auto everything_stands = std::none_of(look.nodes.begin(), look.nodes.end(), [](const WaitNode& node) { return node.role == WaitRole::kMoves; });
  // A dead target is seen once: a hand-over may have been under way when it ended.
  const auto doubt_dead = [&](Finding* finding, const std::vector<uint32_t>& nodes) {
    if (!look.dead) return;
    const bool aged = std::all_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return look.now - subjects_[node].since >= options_.stall; });
    const bool held = std::all_of(nodes.begin(), nodes.end(), [&](uint32_t node) {
      return look.nodes[node].role != WaitRole::kWaits || look.nodes[node].kind == ResourceKind::kExclusive || look.nodes[node].holder.has_value();
    });
    if (aged || (held && finding->kind == FindingKind::kDeadlock)) return;
    finding->confidence = Lower(finding->confidence, everything_stands ? Confidence::kLikely : Confidence::kPossible);
    finding->doubts.push_back("the target is dead, and how long it waited is not known: a hand-over may have been under way");
  };

  for (WaitCause& cause : causes) {
    if (cause.kind == WaitCause::Kind::kNode) {
      of_node[cause.members[0]] = std::move(cause);
      continue;
    }
    Finding finding;
    std::string key;
    finding.confidence = Confidence::kCertain;
    finding.resource = cause.resource;
    if (cause.kind == WaitCause::Kind::kCycle) {
      finding.kind = FindingKind::kDeadlock;
      key = "deadlock";
    } else {
      finding.kind = FindingKind::kStarved;
      key = fmt::format("starved {}", cause.resource);
      if (cause.kind == WaitCause::Kind::kNobody) {
        finding.confidence = Confidence::kPossible;
        finding.doubts.push_back("nobody is known to hold or provide it: what ends the wait may lie outside");
      }
    }
    for (const uint32_t member : cause.members) {
      finding.subjects.push_back(subject_of(member));
      finding.evidence.push_back(wait_text(member));
      AddToKey(&key, subject_of(member), subjects_[member].wait->sequence);
      for (const WaitEdge& edge : look.nodes[member].suppliers) {
        if (cause.kind != WaitCause::Kind::kSupplier) break;
        const SubjectWatch& partner = subjects_[edge.to];
        Confidence confidence = Confidence::kCertain;
        if (const auto at = look.edge_confidence.find({member, edge.to}); at != look.edge_confidence.end()) confidence = at->second;
        else if (partner.activity == Activity::kIdle) confidence = partner.wait && look.nodes[member].kind != ResourceKind::kExclusive ? Confidence::kPossible : Confidence::kLikely;
        else if (partner.activity == Activity::kEnded && partner.sample.launch == LaunchState::kDone) confidence = Confidence::kLikely;
        finding.confidence = Lower(finding.confidence, confidence);
      }
    }
    for (const uint32_t partner : cause.partners) {
      finding.partners.push_back(subject_of(partner));
      const bool moves = subjects_[partner].activity == Activity::kRunning || subjects_[partner].activity == Activity::kWaiting;
      finding.evidence.push_back(moves ? fmt::format("{} goes on and does not deliver", SubjectText(subject_of(partner)))
                                       : fmt::format("{} is {}", SubjectText(subject_of(partner)), ActivityName(subjects_[partner].activity)));
    }
    for (const uint32_t victim : cause.victims) finding.victims.push_back(subject_of(victim));
    set_since(&finding, cause.members);
    set_first(&finding, cause.members);
    doubt(&finding);
    doubt_dead(&finding, cause.members);
    if (!look.dead && cause.kind == WaitCause::Kind::kCycle) finding.evidence.push_back("each of these waits is the same in two looks");
    add(std::move(finding), std::move(key));
  }

  for (uint32_t i = 0; i < subjects_.size(); ++i) {
    const SubjectWatch& subject = subjects_[i];
    History& history = histories_[i];
    Finding finding;
    finding.subjects = {subject.subject};
    finding.first = subject.subject;
    finding.since = subject.since;
    finding.since_at_least = subject.since_at_least;
    if (const auto at = of_node.find(i); at != of_node.end()) {
      for (const uint32_t victim : at->second.victims) {
        finding.victims.push_back(subject_of(victim));
        finding.evidence.push_back(wait_text(victim));
      }
    }
    const bool of_core = i < cores_;
    if (of_core && subject.activity != Activity::kCorrupt && subject.activity != Activity::kUnused && subject.sample.fault != FaultType::kNone) {
      if (!history.fault) {
        const auto detail = look.source.Detail(i);
        if (detail.ok()) history.fault = detail.value().fault;
        else finding.doubts.push_back(fmt::format("the details of the fault could not be read: {}", detail.status().message()));
      }
      finding.kind = FindingKind::kFault;
      finding.confidence = Confidence::kCertain;
      if (history.fault) finding.fault = *history.fault;
      if (history.fault && finding.fault.type != subject.sample.fault) {
        finding.doubts.push_back("the details are of another fault than the mailbox says");
      }
      finding.fault.type = subject.sample.fault;
      if (history.moved_after_fault) finding.evidence.push_back("the core went on after it");
      add(std::move(finding), fmt::format("fault {} {}", i, FaultTypeName(subject.sample.fault)));
    } else if (of_core && subject.activity == Activity::kSilent) {
      const TimeNs silence = look.now - history.changed;
      const bool beats = subject.sample.heartbeat != 0;
      const bool rhythm = history.changes >= kFewChanges && history.longest_gap > 0;
      const TimeNs patience = rhythm ? std::max(options_.stall, kPatience * history.longest_gap) : kPatience * options_.stall;
      finding.kind = FindingKind::kSilent;
      finding.confidence = beats && silence >= patience ? Confidence::kLikely : Confidence::kPossible;
      finding.evidence.push_back(fmt::format("{} does not wait, and nothing in its mailbox has changed for {}{}", SubjectText(subject.subject),
                                             history.changed_at_least ? "at least " : "", Text(silence)));
      if (history.emitted) finding.evidence.push_back("it recorded no event meanwhile");
      if (beats && rhythm) finding.evidence.push_back(fmt::format("it used to change every {} at least", Text(history.longest_gap)));
      if (!beats) finding.doubts.push_back("it never had a heartbeat: it may compute");
      else if (silence < patience) finding.doubts.push_back(rhythm ? "it has been still for nearly as long before: it may compute" : "its rhythm is not known yet: it may compute");
      add(std::move(finding), fmt::format("silent {} {} {}", i, subject.sample.heartbeat, subject.sample.wait_sequence));
    } else if (look.nodes[i].role == WaitRole::kNeverRuns) {
      finding.kind = FindingKind::kStarved;
      finding.since = history.emitted_since;
      finding.since_at_least = history.changed_at_least;
      const bool patient = history.ran_instead.size() == 1 || IsOldEnough(history.emitted_since, look.now, kPatience * options_.stall);
      finding.confidence = patient && history.waited_once ? Confidence::kLikely : Confidence::kPossible;
      for (uint32_t other = cores_; other < subjects_.size(); ++other) {
        if (other != i && subjects_[other].activity != Activity::kUnused && history.ran_instead.contains(subjects_[other].task)) {
          finding.partners.push_back(subject_of(other));
        }
      }
      finding.evidence.push_back(fmt::format("{} is ready and was not seen to run in {} looks, over {}", SubjectText(subject.subject), history.ready_looks, Text(look.now - history.emitted_since)));
      if (!history.waited_once) finding.doubts.push_back("it never waited: it may be the idle task");
      if (!patient) finding.doubts.push_back("several tasks ran meanwhile, and looks may have missed it");
      add(std::move(finding), fmt::format("never runs {} {}", i, history.last_sequence));
    }
    if (of_core && subject.sample.in_use && !subject.sample.corrupt && subject.sample.stack_free && *subject.sample.stack_free < kLeastStackFree &&
        subject.sample.fault != FaultType::kStack) {
      Finding low;
      low.kind = FindingKind::kStackLow;
      low.confidence = Confidence::kCertain;
      low.subjects = {subject.subject};
      low.since = look.now;
      low.since_at_least = true;
      low.evidence.push_back(fmt::format("{} bytes of its stack were never used", *subject.sample.stack_free));
      add(std::move(low), fmt::format("stack {}", i));
    }
  }

  for (const Corruption& corruption : look.sample.corruptions) {
    Finding finding;
    finding.kind = FindingKind::kCorrupt;
    finding.confidence = Confidence::kCertain;
    finding.corruption = corruption;
    finding.since = look.now;
    finding.since_at_least = true;
    if (const auto subject = SubjectOf(corruption.where)) finding.subjects = {*subject};
    finding.evidence.push_back(corruption.where + ": " + corruption.what);
    add(std::move(finding), fmt::format("corrupt {} {}", corruption.where, corruption.what.substr(0, corruption.what.find(' '))));
  }
}

// What two looks found counts; what the target says of itself, or will never change, at once.
void Watcher::Publish(Look& look) {
  std::set<std::string> suspected;
  std::vector<Finding> standing;
  std::vector<std::string> keys;
  for (size_t i = 0; i < look.findings.size(); ++i) {
    Finding& finding = look.findings[i];
    const std::string& key = look.keys[i];
    const bool judged = finding.kind == FindingKind::kDeadlock || finding.kind == FindingKind::kStarved;
    suspected.insert(key);
    if (judged && !look.dead && !suspected_.contains(key)) continue;
    const auto before = std::find(standing_keys_.begin(), standing_keys_.end(), key);
    bool fresh = before == standing_keys_.end();
    if (!fresh) {
      const Finding& old = standing_[static_cast<size_t>(before - standing_keys_.begin())];
      fresh = finding.IsBad() && !old.IsBad();
      if (!fresh) finding.time = old.time;
      if (finding.kind == FindingKind::kCorrupt || finding.kind == FindingKind::kStackLow) finding.since = old.since;
    }
    if (fresh) fresh_.push_back(finding);
    standing.push_back(std::move(finding));
    keys.push_back(key);
  }
  suspected_ = std::move(suspected);
  standing_ = std::move(standing);
  standing_keys_ = std::move(keys);
}

}  // namespace hangscope

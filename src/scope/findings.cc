// The judging half of Watcher: docs/verdicts.md has the rules.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "scope/judgement.h"
#include "scope/scope_text.h"
#include "scope/watcher.h"

namespace hangscope {
namespace {

constexpr uint32_t kLeastStackFree = 64;  // bytes; fewer are a warning
constexpr int kPatience = 3;              // longer than what was usual, by this factor
constexpr int kPatienceUnknown = 10;      // stalls, where nothing is known of what is usual
constexpr uint64_t kManyRounds = 8;
constexpr uint32_t kFewChanges = 2;  // are no rhythm yet
constexpr uint32_t kLeastLooks = 3;  // at a task that never runs
constexpr TimeNs kWorthTelling = 100 * kMillisecond;
constexpr size_t kMostLasting = 256;
constexpr size_t kMostWhom = 64;  // of one of these

std::string Text(TimeNs time, bool at_least) {
  return fmt::format("{}{:.1f} s", at_least ? "at least " : "", Seconds(time));
}

}  // namespace

std::string Watcher::Name(const SubjectId& subject) const {
  if (options_.call) return options_.call(subject);
  return subject.kind == SubjectId::Kind::kCore
             ? fmt::format("core {}", subject.index)
             : fmt::format("task {}", subjects_[cores_ + subject.index].task);
}

void Watcher::BuildGraph(Judgement& look) {
  std::unordered_map<uint32_t, uint32_t> records;  // subjects by the task's id
  for (uint32_t i = cores_; i < subjects_.size(); ++i) {
    // An id that is given to a second task is that one's.
    if (subjects_[i].activity == Activity::kEnded)
      records.emplace(subjects_[i].task, i);
    else if (subjects_[i].activity != Activity::kUnused)
      records[subjects_[i].task] = i;
  }
  look.nodes.resize(subjects_.size());
  bool any = false;
  for (uint32_t i = 0; i < subjects_.size(); ++i) {
    WaitNode& node = look.nodes[i];
    SetRole(look, i, &node);
    if (node.role != WaitRole::kWaits) continue;
    any = true;
    node.resource = subjects_[i].wait->resource;
    node.kind = subjects_[i].wait->kind;
    if (i < cores_) continue;
    const auto& holder = look.sample.tasks[i - cores_].record.holder;
    if (const auto at = holder ? records.find(*holder) : records.end(); at != records.end())
      node.holder = at->second;
  }
  if (any) {
    auto claims = look.source.Claims();
    look.claims_known = claims.ok();
    if (claims.ok()) look.claims = std::move(claims.value());
    FindSuppliers(look.claims, &look.nodes);
  }
  MarkEdges(look);
  KeepWaits(look);
}

// What is held and provided was read after the look, so it counts from the next judgement on.
void Watcher::KeepWaits(const Judgement& look) {
  std::vector<LastingWait> waits;
  const bool lost = std::any_of(look.claims.begin(), look.claims.end(),
                                [](const ClaimRow& row) { return row.lost != 0; });
  for (uint32_t i = 0; i < look.nodes.size() && waits.size() < kMostLasting; ++i) {
    const WaitNode& node = look.nodes[i];
    if (node.role != WaitRole::kWaits || node.suppliers.empty() ||
        node.suppliers.size() > kMostWhom || !look.claims_known)
      continue;
    LastingWait& wait = waits.emplace_back();
    wait.who = i;
    wait.sequence = subjects_[i].wait->sequence;
    for (const WaitEdge& edge : node.suppliers) wait.whom.push_back(edge.to);
    wait.may_be_others = lost;
  }
  lasting_ = waits;
  std::erase_if(lasting_, [this](const LastingWait& wait) {
    return std::find(waits_.begin(), waits_.end(), wait) == waits_.end();
  });
  waits_ = std::move(waits);
}

std::vector<LastingWait> Watcher::LastingWaits() const {
  std::vector<LastingWait> lasting = lasting_;
  std::erase_if(lasting, [this](const LastingWait& wait) {
    const auto& now = subjects_[wait.who].wait;
    return !now || now->sequence != wait.sequence;
  });
  return lasting;
}

void Watcher::SetRole(const Judgement& look, uint32_t index, WaitNode* node) const {
  const SubjectState& subject = subjects_[index];
  const bool old = look.dead || look.now - subject.since >= options_.stall;
  switch (subject.activity) {
    case Activity::kUnused:
    case Activity::kCorrupt:
    case Activity::kUnread:
      node->role = WaitRole::kUnknown;
      return;
    case Activity::kRunning:
      node->role = NeverRuns(look, index) ? WaitRole::kNeverRuns : WaitRole::kMoves;
      return;
    case Activity::kPaused:
      node->role = WaitRole::kExcused;
      return;
    case Activity::kHalted:
      node->role = WaitRole::kHalted;
      return;
    case Activity::kSilent:
      node->role = WaitRole::kSilent;
      return;
    case Activity::kEnded:
      // A core whose program is done may be given the next one.
      node->role =
          old || subject.sample.launch == LaunchState::kEnded ? WaitRole::kEnded : WaitRole::kMoves;
      return;
    case Activity::kIdle:
      if (!subject.wait || subject.sample.launch == LaunchState::kIdle ||
          subject.wait->kind == ResourceKind::kSuspended) {
        node->role = old ? WaitRole::kIdle : WaitRole::kMoves;
      } else {
        node->role =
            subject.wait->kind == ResourceKind::kTime ? WaitRole::kMoves : WaitRole::kExcused;
      }
      return;
    case Activity::kWaiting:
      node->role = look.dead || (old && histories_[index].wait_looks >= 2) ? WaitRole::kWaits
                                                                           : WaitRole::kMoves;
      return;
  }
}

// Where every core that runs tasks is halted, silent or paused, that is why a ready task does not
// run.
bool Watcher::NeverRuns(const Judgement& look, uint32_t index) const {
  const History& history = histories_[index];
  const auto& running = look.sample.running_tasks;
  bool any_goes_on = false;
  for (uint32_t core = 0; core < std::min<size_t>(cores_, running.size()); ++core) {
    const Activity activity = subjects_[core].activity;
    // Of a core that is silent perhaps, the surer of the two is told.
    const bool may_go_on = IsStillCore(core) && !still_->doubt.empty() && history.waited_once;
    any_goes_on = any_goes_on ||
                  (running[core] != 0 && activity != Activity::kHalted &&
                   (activity != Activity::kSilent || may_go_on) && activity != Activity::kPaused);
  }
  return any_goes_on && index >= cores_ && !options_.is_device &&
         history.ready_looks >= kLeastLooks && !history.ran_instead.empty() &&
         LastsForStall(look, history.not_run_since);
}

// Each core that runs tasks is halted by a fault, or dead: that is why no task gets on.
bool Watcher::HasStopped(const Judgement& look) const {
  if (still_ && !still_->goes_on && still_->doubt.empty()) return true;
  const auto& running = look.sample.running_tasks;
  bool any = false;
  for (uint32_t core = 0; core < std::min<size_t>(cores_, running.size()); ++core) {
    if (running[core] == 0) continue;
    if (subjects_[core].activity != Activity::kHalted) return false;
    any = true;
  }
  return any;
}

// Who moves may deliver at any time. But one who went round and round meanwhile, for much longer
// than this wait used to take, does not.
void Watcher::MarkEdges(Judgement& look) {
  std::map<std::pair<uint32_t, uint32_t>, Baseline> still;
  for (uint32_t i = 0; i < look.nodes.size(); ++i) {
    for (WaitEdge& edge : look.nodes[i].suppliers) {
      const std::pair key{i, edge.to};
      const auto at = baselines_.find(key);
      const uint32_t sequence = subjects_[i].wait->sequence;
      // fewer than before: they are another owner's
      const uint64_t rounds = histories_[edge.to].rounds;
      const bool known =
          at != baselines_.end() && at->second.sequence == sequence && at->second.rounds <= rounds;
      const Baseline baseline = known ? at->second : Baseline{sequence, rounds};
      still[key] = baseline;
      const auto confidence = NeverDelivers(look, i, edge.to, baseline);
      if (!confidence) continue;
      edge.never_delivers = true;
      look.edge_confidence[key] = *confidence;
    }
  }
  baselines_ = std::move(still);
}

// How sure it is that one who may deliver will not; nothing: it may.
std::optional<Confidence> Watcher::NeverDelivers(const Judgement& look, uint32_t waiter,
                                                 uint32_t supplier,
                                                 const Baseline& baseline) const {
  const WaitNode& node = look.nodes[waiter];
  const History& history = histories_[waiter];
  const History& its = histories_[supplier];
  const SubjectState& who = subjects_[supplier];
  const WaitRole role = look.nodes[supplier].role;
  const TimeNs waited = GivenSince(look, subjects_[waiter].since);
  const bool exclusive = node.kind == ResourceKind::kExclusive || node.holder;
  // Who waits for a device with a lock in its hands keeps others out, perhaps for ever.
  if (exclusive && role == WaitRole::kExcused && who.wait &&
      who.wait->kind == ResourceKind::kOutside)
    return Confidence::kPossible;
  // Whether it would deliver cannot be seen.
  if (who.activity == Activity::kUnread) return Confidence::kPossible;
  if (role != WaitRole::kMoves || supplier == waiter) return std::nullopt;
  const bool usual_known = exclusive || history.waits_ended > 0;
  const TimeNs patience = usual_known ? kPatience * std::max(options_.stall, history.longest_wait)
                                      : kPatienceUnknown * options_.stall;
  if (look.dead) {
    // It ran when all ended: whether it would have delivered, only the wait's age tells.
    if (waited < options_.stall) return std::nullopt;
    return waited >= patience ? Confidence::kLikely : Confidence::kPossible;
  }
  const bool goes_round = its.rounds - baseline.rounds >= kManyRounds;
  const bool computes =
      who.subject.kind == SubjectId::Kind::kTask && who.activity == Activity::kRunning &&
      GivenSince(look, its.changed) >= kPatience * std::max(options_.stall, its.longest_gap);
  if (waited < patience || (!goes_round && !computes)) return std::nullopt;
  return Confidence::kLikely;
}

void Watcher::FindAll(Judgement& look) {
  const bool has_stopped = HasStopped(look);
  const bool any = std::any_of(look.nodes.begin(), look.nodes.end(),
                               [](const WaitNode& node) { return node.role == WaitRole::kWaits; });
  for (const WaitCause& cause : any ? FindCauses(look.nodes) : std::vector<WaitCause>()) {
    const bool is_of_tasks = cause.members[0] >= cores_ && cause.kind != WaitCause::Kind::kCycle;
    if (cause.kind == WaitCause::Kind::kNode)
      look.victims[cause.members[0]] = cause.victims;
    else if (!is_of_tasks || !has_stopped)
      FindStuck(look, cause);
  }
  FindStillCores(look);
  CountFaults(look);
  for (uint32_t i = 0; i < subjects_.size(); ++i) {
    const Activity activity = subjects_[i].activity;
    if (look.nodes[i].role == WaitRole::kNeverRuns && !has_stopped) FindStarvedTask(look, i);
    if (i >= cores_ || activity == Activity::kUnused || activity == Activity::kCorrupt ||
        activity == Activity::kUnread)
      continue;
    if (subjects_[i].sample.fault != FaultType::kNone)
      FindFault(look, i);
    else if (activity == Activity::kSilent && !IsStillCore(i))
      FindSilence(look, i);
    FindLowStack(look, i);
  }
  FindCorruptions(look);
}

// A deadlock, or a wait for somebody who never delivers.
void Watcher::FindStuck(Judgement& look, const WaitCause& cause) const {
  ScopeFinding finding;
  const bool deadlock = cause.kind == WaitCause::Kind::kCycle;
  finding.kind = deadlock ? FindingKind::kDeadlock : FindingKind::kStarved;
  finding.confidence = Confidence::kCertain;
  finding.resource = cause.resource;
  std::vector<uint32_t> numbers = {cause.resource};
  for (const uint32_t member : cause.members) {
    const SubjectState& subject = subjects_[member];
    finding.subjects.push_back(subject.subject);
    finding.repeated_evidence.push_back(WaitText(look, member));
    numbers.push_back(subject.wait->sequence);
  }
  if (deadlock && !look.dead)
    finding.evidence.push_back("each of these waits is the same in two looks");
  for (const uint32_t victim : cause.victims) finding.victims.push_back(subjects_[victim].subject);
  AddPartners(look, cause, &finding);
  AddFirst(cause, &finding);
  AddDoubts(look, cause, &finding);
  look.Add(std::move(finding), std::move(numbers));
}

void Watcher::AddPartners(const Judgement& look, const WaitCause& cause,
                          ScopeFinding* finding) const {
  for (const uint32_t partner : cause.partners) {
    const SubjectState& subject = subjects_[partner];
    finding->partners.push_back(subject.subject);
    if (subject.activity == Activity::kUnread) {
      finding->evidence.push_back(
          fmt::format("the memory of {} cannot be read", Name(subject.subject)));
      continue;
    }
    finding->evidence.push_back(PartnerText(look, partner));
  }
  if (cause.kind != WaitCause::Kind::kSupplier) return;
  for (const uint32_t member : cause.members) {
    for (const WaitEdge& edge : look.nodes[member].suppliers) {
      finding->confidence = std::min(finding->confidence, PartnerConfidence(look, member, edge.to));
    }
  }
}

// What is known of one who does not deliver.
std::string Watcher::PartnerText(const Judgement& look, uint32_t partner) const {
  const SubjectState& subject = subjects_[partner];
  const History& its = histories_[partner];
  const std::string name = Name(subject.subject);
  if (look.nodes[partner].role != WaitRole::kMoves)
    return fmt::format("{} is {}", name, ActivityName(subject.activity));
  if (look.dead) return fmt::format("{} waited for nothing when all ended", name);
  if (subject.subject.kind != SubjectId::Kind::kTask || !LastsForStall(look, its.changed))
    return fmt::format("{} goes on and does not deliver it", name);
  const TimeNs not_run = look.now - its.not_run_since;
  if (its.ready_looks > 1 && not_run >= options_.stall)
    return fmt::format("{} is ready, and did not run for {}", name, Text(not_run, false));
  return fmt::format("{} has not waited for {}, and does not deliver it", name,
                     Text(look.now - its.changed, its.changed_at_least));
}

// That `partner` never delivers what `waiter` waits for.
Confidence Watcher::PartnerConfidence(const Judgement& look, uint32_t waiter,
                                      uint32_t partner) const {
  const SubjectState& subject = subjects_[partner];
  if (const auto at = look.edge_confidence.find({waiter, partner});
      at != look.edge_confidence.end())
    return at->second;
  if (subject.activity == Activity::kEnded && subject.sample.launch == LaunchState::kDone)
    return Confidence::kLikely;
  if (subject.activity != Activity::kIdle) return Confidence::kCertain;
  const bool may_be_resumed = subject.wait && look.nodes[waiter].kind != ResourceKind::kExclusive;
  return may_be_resumed ? Confidence::kPossible : Confidence::kLikely;
}

// By the target's clock where all of them say when and it can be compared, else by what the watcher
// saw.
void Watcher::AddFirst(const WaitCause& cause, ScopeFinding* finding) const {
  std::vector<uint32_t> all = cause.members;
  for (const uint32_t partner : cause.partners) {
    const Activity activity = subjects_[partner].activity;
    if (activity == Activity::kEnded || activity == Activity::kIdle) all.push_back(partner);
  }
  const bool by_target = options_.shared_clock && options_.one_clock &&
                         std::all_of(all.begin(), all.end(),
                                     [&](uint32_t i) { return subjects_[i].wait.has_value(); });
  const auto began = [&](uint32_t i) {
    return by_target ? static_cast<TimeNs>(subjects_[i].wait->since) : subjects_[i].since;
  };
  const auto before = [&](uint32_t a, uint32_t b) { return began(a) < began(b); };
  const uint32_t first = *std::min_element(all.begin(), all.end(), before);
  const SubjectState& waiter = subjects_[*std::min_element(
      cause.members.begin(), cause.members.end(),
      [&](uint32_t a, uint32_t b) { return subjects_[a].since < subjects_[b].since; })];
  finding->since = waiter.since;
  finding->since_at_least = waiter.since_at_least;
  // Ages by clocks of different memories, each as of its own end, have no order.
  const bool has_order = options_.one_clock || !died_;
  if (has_order && std::count_if(all.begin(), all.end(),
                                 [&](uint32_t i) { return began(i) == began(first); }) == 1) {
    finding->first = subjects_[first].subject;
  } else {
    finding->evidence.push_back(
        has_order
            ? "who stopped first is not known: several did at the same time, as far as can be told"
            : "who stopped first is not known: the memories have clocks of their own");
  }
}

void Watcher::AddDoubts(const Judgement& look, const WaitCause& cause,
                        ScopeFinding* finding) const {
  if (cause.kind == WaitCause::Kind::kNobody) {
    finding->Lower(Confidence::kPossible,
                   "nobody is known to hold or provide it: what ends the wait may lie outside");
  }
  const auto lost = std::count_if(look.claims.begin(), look.claims.end(),
                                  [](const ClaimRow& row) { return row.lost != 0; });
  if (lost != 0)
    finding->Lower(
        Confidence::kLikely,
        fmt::format("{} rows of claims ran over: somebody else may hold or provide it", lost));
  AddSupplierDoubts(look, cause, finding);
  if (!look.claims_known)
    finding->Lower(Confidence::kPossible, "what is held and provided could not be read");
  if (!look.dead || (WaitedForLong(look, cause) && !look.sample.ended_by_itself)) return;
  const bool locks = std::all_of(cause.members.begin(), cause.members.end(), [&](uint32_t i) {
    return look.nodes[i].kind == ResourceKind::kExclusive || look.nodes[i].holder;
  });
  if (locks && cause.kind == WaitCause::Kind::kCycle) return;
  if (look.sample.ended_by_itself)
    return finding->Lower(Confidence::kPossible, "the program ended by itself, while it waited");
  const bool nobody_ran =
      std::none_of(look.nodes.begin(), look.nodes.end(),
                   [](const WaitNode& node) { return node.role == WaitRole::kMoves; });
  finding->Lower(
      nobody_ran ? Confidence::kLikely : Confidence::kPossible,
      fmt::format("{}, and for how long it had waited is not known: it may have been in the middle "
                  "of a hand-over",
                  options_.is_held ? "it was looked at only once" : "the target is dead"));
}

// Each once, of however many waits.
void Watcher::AddSupplierDoubts(const Judgement& look, const WaitCause& cause,
                                ScopeFinding* finding) const {
  std::set<uint32_t> resources;
  for (const uint32_t member : cause.members) {
    const WaitNode& node = look.nodes[member];
    if (!resources.insert(node.resource).second) continue;
    const bool exclusive = node.kind == ResourceKind::kExclusive || node.holder;
    const bool holder_known = exclusive && !node.suppliers.empty();
    for (SupplierDoubt& doubt : look.source.Doubts(node.resource, holder_known)) {
      const bool known = std::find(finding->doubts.begin(), finding->doubts.end(), doubt.why) !=
                         finding->doubts.end();
      finding->confidence = std::min(finding->confidence, doubt.limit);
      if (!known) finding->doubts.push_back(std::move(doubt.why));
    }
  }
}

bool Watcher::WaitedForLong(const Judgement& look, const WaitCause& cause) const {
  return std::all_of(cause.members.begin(), cause.members.end(),
                     [&](uint32_t i) { return look.now - subjects_[i].since >= options_.stall; });
}

std::string Watcher::WaitText(const Judgement& look, uint32_t index) const {
  const SubjectState& subject = subjects_[index];
  std::string text = fmt::format("{} waits {} for {:#x}", Name(subject.subject),
                                 Text(look.now - subject.since, subject.since_at_least),
                                 look.nodes[index].resource);
  std::string who;
  for (const WaitEdge& edge : look.nodes[index].suppliers)
    who += (who.empty() ? "" : ", ") + Name(subjects_[edge.to].subject);
  return who.empty() ? text + ", which nobody is known to hold or provide" : text + ", from " + who;
}

// What all findings about one subject have in common.
ScopeFinding Watcher::FindingAbout(const Judgement& look, uint32_t index) const {
  const SubjectState& subject = subjects_[index];
  ScopeFinding finding;
  finding.subjects = {subject.subject};
  finding.first = subject.subject;
  finding.since = subject.since;
  finding.since_at_least = subject.since_at_least;
  const auto at = look.victims.find(index);
  if (at == look.victims.end()) return finding;
  for (const uint32_t victim : at->second) {
    finding.victims.push_back(subjects_[victim].subject);
    finding.repeated_evidence.push_back(WaitText(look, victim));
  }
  return finding;
}

void Watcher::CountFaults(Judgement& look) const {
  bool several = false;
  for (uint32_t core = 0; core < cores_; ++core) {
    const CoreSample& sample = subjects_[core].sample;
    if (sample.in_use && sample.fault != FaultType::kNone)
      several = ++look.faults[sample.node] > 1 || several;
  }
  if (several) look.first_faults = look.source.FirstFaults();
}

// Where several cores of a node have one: each sees only its own.
void Watcher::AddFirstFault(const Judgement& look, uint32_t core, ScopeFinding* finding) const {
  const auto faults = look.faults.find(subjects_[core].sample.node);
  if (faults == look.faults.end() || faults->second < 2) return;
  const auto first = core < look.first_faults.size() ? look.first_faults[core] : std::nullopt;
  if (!first || *first >= cores_) {
    finding->evidence.push_back(
        fmt::format("which of its node's {} faults came first is not known", faults->second));
  } else if (*first == core) {
    finding->evidence.push_back(fmt::format("the first of its node's {} faults", faults->second));
  } else {
    finding->evidence.push_back(fmt::format("the first of its node's {} faults was that of {}",
                                            faults->second, Name(subjects_[*first].subject)));
  }
}

void Watcher::FindFault(Judgement& look, uint32_t core) {
  History& history = histories_[core];
  const FaultType type = subjects_[core].sample.fault;
  ScopeFinding finding = FindingAbout(look, core);
  finding.kind = FindingKind::kFault;
  finding.confidence = Confidence::kCertain;
  if (!history.fault) {
    const auto detail = look.source.Detail(core);
    if (detail.ok())
      history.fault = detail.value().fault;
    else
      finding.doubts.push_back(
          fmt::format("the details of the fault could not be read: {}", detail.status().message()));
  }
  if (history.fault) finding.fault = *history.fault;
  if (history.fault && finding.fault.type != type)
    finding.doubts.push_back("the details are of another fault than the mailbox says");
  finding.fault.type = type;
  AddFirstFault(look, core, &finding);
  const auto& running = look.sample.running_tasks;
  if (core < running.size() && running[core] != 0 && !history.moved_after_fault) {
    const auto task =
        std::find_if(subjects_.begin() + cores_, subjects_.end(),
                     [&](const SubjectState& subject) { return subject.task == running[core]; });
    finding.evidence.push_back(fmt::format(
        "{} had the core",
        task != subjects_.end() ? Name(task->subject) : fmt::format("task {}", running[core])));
  }
  if (history.moved_after_fault) finding.evidence.push_back("the core went on after it");
  look.Add(std::move(finding), {static_cast<uint32_t>(type)});
}

// A long computation looks the same: the core's own rhythm tells, if it has one.
void Watcher::FindSilence(Judgement& look, uint32_t core) const {
  const History& history = histories_[core];
  const CoreSample& sample = subjects_[core].sample;
  const TimeNs silence = GivenSince(look, history.changed);
  const bool rhythm = history.changes >= kFewChanges && history.longest_gap > 0;
  const TimeNs patience = rhythm ? std::max(options_.stall, kPatience * history.longest_gap)
                                 : kPatience * options_.stall;
  ScopeFinding finding = FindingAbout(look, core);
  finding.kind = FindingKind::kSilent;
  finding.confidence = Confidence::kLikely;
  finding.evidence.push_back(fmt::format(
      "{} does not wait, and nothing in its mailbox has changed for {}",
      Name(subjects_[core].subject), Text(look.now - history.changed, history.changed_at_least)));
  AddHeldUp(look, history.changed, &finding);
  if (history.emitted) finding.evidence.push_back("it recorded no event meanwhile");
  if (rhythm)
    finding.evidence.push_back(fmt::format("until then, something changed every {} at least",
                                           Text(history.longest_gap, false)));
  if (sample.heartbeat == 0)
    finding.Lower(Confidence::kPossible, "it never had a heartbeat: it may compute");
  else if (silence < patience)
    finding.Lower(Confidence::kPossible,
                  rhythm ? "it has been still for nearly as long before: it may compute"
                         : "its rhythm is not known yet: it may compute");
  look.Add(std::move(finding), {sample.heartbeat, sample.wait_sequence});
}

// What it was not let go on for is not in the time that counts.
void Watcher::AddHeldUp(const Judgement& look, TimeNs since, ScopeFinding* finding) const {
  const auto given = look.source.Given(since);
  if (look.dead || !given || given->held_up < kWorthTelling) return;
  finding->evidence.push_back(
      fmt::format("not counted: {} of these, in which the process that runs the target had no "
                  "processor or was stopped",
                  Text(given->held_up, false)));
}

void Watcher::FindStarvedTask(Judgement& look, uint32_t index) const {
  const History& history = histories_[index];
  const TimeNs starved = GivenSince(look, history.not_run_since);
  ScopeFinding finding = FindingAbout(look, index);
  finding.kind = FindingKind::kStarved;
  finding.confidence = Confidence::kLikely;
  finding.since = history.not_run_since;
  finding.since_at_least = history.changed_at_least;
  for (uint32_t other = cores_; other < subjects_.size(); ++other) {
    const bool known = other != index && subjects_[other].activity != Activity::kUnused;
    if (known && history.ran_instead.contains(subjects_[other].task))
      finding.partners.push_back(subjects_[other].subject);
  }
  finding.evidence.push_back(fmt::format("{} is ready and did not run in any of {} looks, over {}",
                                         Name(subjects_[index].subject), history.ready_looks,
                                         Text(look.now - history.not_run_since, false)));
  AddHeldUp(look, history.not_run_since, &finding);
  if (!history.waited_once)
    finding.Lower(Confidence::kPossible, "it never waited: it may be the idle task");
  if (!news_.tells_switches) {
    finding.Lower(Confidence::kPossible,
                  "no ring records which task runs: looks may have missed this one");
  } else {
    finding.evidence.push_back("no ring has a switch to it meanwhile");
  }
  if (history.news_lost && history.ran_instead.size() > 1 && starved < kPatience * options_.stall) {
    finding.Lower(Confidence::kPossible,
                  "several tasks ran meanwhile: looks may have missed this one");
  }
  if (2 * history.no_tick > look.now - history.not_run_since) {
    finding.evidence.push_back(
        fmt::format("no tick was counted for {} of these", Text(history.no_tick, false)));
    if (!look.source.Given(history.not_run_since))
      finding.Lower(Confidence::kPossible, "what runs the target may have had no processor");
  }
  look.Add(std::move(finding), {history.sequence});
}

void Watcher::FindLowStack(Judgement& look, uint32_t core) const {
  const CoreSample& sample = subjects_[core].sample;
  if (!sample.stack_free || *sample.stack_free >= kLeastStackFree ||
      sample.fault == FaultType::kStack)
    return;
  ScopeFinding finding;
  finding.kind = FindingKind::kStackLow;
  finding.is_warning = true;
  finding.confidence = Confidence::kCertain;
  finding.subjects = {subjects_[core].subject};
  finding.since = look.now;
  finding.since_at_least = true;
  finding.evidence.push_back(
      fmt::format("{} bytes of its stack were never used", *sample.stack_free));
  look.Add(std::move(finding), {});
}

void Watcher::FindCorruptions(Judgement& look) const {
  for (const Corruption& corruption : look.sample.corruptions) {
    ScopeFinding finding;
    finding.kind = FindingKind::kCorrupt;
    finding.confidence = Confidence::kCertain;
    finding.corruption = corruption;
    finding.since = look.now;
    finding.since_at_least = true;
    if (corruption.part == Corruption::Part::kCore)
      finding.subjects = {{SubjectId::Kind::kCore, corruption.index}};
    if (corruption.part == Corruption::Part::kTaskRecord)
      finding.subjects = {{SubjectId::Kind::kTask, corruption.index}};
    finding.repeated_evidence = {CorruptPart(corruption) + ": " + CorruptField(corruption)};
    // The same word with another value is the same finding.
    look.Add(std::move(finding), {corruption.first});
  }
}

// A judgement on waits counts when the look after it comes to the same, for what is held and
// provided was read after the look. What the target says of itself, or will never change, counts at
// once.
void Watcher::Publish(Judgement& look) {
  std::set<Key> suspected;
  std::vector<ScopeFinding> standing;
  std::map<Key, size_t> keys;
  for (size_t i = 0; i < look.findings.size(); ++i) {
    ScopeFinding& finding = look.findings[i];
    const Key& key = look.keys[i];
    const bool judged =
        finding.kind == FindingKind::kDeadlock || finding.kind == FindingKind::kStarved;
    suspected.insert(key);
    if (judged && !look.dead && !suspected_.contains(key)) continue;
    const auto before = standing_keys_.find(key);
    bool fresh = before == standing_keys_.end();
    if (!fresh) {
      const ScopeFinding& old = standing_[before->second];
      fresh = finding.IsBad() && !old.IsBad();
      if (!fresh) finding.time = old.time;
      if (finding.kind == FindingKind::kCorrupt || finding.kind == FindingKind::kStackLow)
        finding.since = old.since;
    }
    if (fresh) fresh_.push_back(finding);
    keys.emplace(key, standing.size());
    standing.push_back(std::move(finding));
  }
  suspected_ = std::move(suspected);
  standing_ = std::move(standing);
  standing_keys_ = std::move(keys);
}

}  // namespace hangscope

#include "scope/watch_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/utf8.h"
#include "hangscope/abi/watch.h"
#include "scope/scope_text.h"
#include "scope/words/target_words.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using Kind = SubjectId::Kind;

constexpr size_t kDebugValuesInRow = 8;
constexpr size_t kMostDebugValues = 32;  // of a finding
constexpr size_t kMostVictims = 8;
constexpr size_t kMostEvidence = 12;
constexpr TimeNs kSaidAtLeast = 100 * kMillisecond;

enum Column { kWho, kNode, kRole, kActivity, kAt, kWaitsFor, kSince, kKernel, kStack, kColumns };
constexpr const char* kTitles[kColumns] = {"core",      "node",  "role",   "activity", "at",
                                           "waits for", "since", "kernel", "stack"};
// What usually comes.
constexpr size_t kUsual[kColumns] = {4, 0, 0, 8, 4, 10, 8, 0, 0};
constexpr size_t kUsualInLog[kColumns] = {8, 5, 6, 8, 4, 22, 8, 10, 5};  // which goes on for long
constexpr const char* kNothing = "-";
constexpr const char* kWhoWithTasks = "core, task";

std::string Plural(size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Capitals(std::string_view text) {
  std::string capitals(text);
  std::transform(capitals.begin(), capitals.end(), capitals.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return capitals;
}

std::string Names(const std::vector<SubjectId>& subjects, const WatchScene& scene) {
  std::vector<std::string> names;
  for (const SubjectId& subject : subjects) names.push_back(SubjectName(subject, scene));
  const size_t all = names.size();
  names.resize(std::min(all, kMostVictims));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (names.size() < all) text += fmt::format(" and {} more", all - names.size());
  return text;
}

// "cores", "tasks", or both; and how many of them the target has.
std::string NounFor(const std::vector<SubjectId>& subjects) {
  const bool cores = std::any_of(subjects.begin(), subjects.end(),
                                 [](const SubjectId& s) { return s.kind == Kind::kCore; });
  const bool tasks = std::any_of(subjects.begin(), subjects.end(),
                                 [](const SubjectId& s) { return s.kind == Kind::kTask; });
  return cores && tasks ? "cores and tasks" : tasks ? "tasks" : "cores";
}

size_t InUse(const std::vector<SubjectId>& like, const WatchScene& scene) {
  size_t count = 0;
  for (const SubjectState& subject : *scene.subjects) {
    const bool same_kind = std::any_of(like.begin(), like.end(), [&](const SubjectId& s) {
      return s.kind == subject.subject.kind;
    });
    if (same_kind && subject.activity != Activity::kUnused) ++count;
  }
  return count;
}

std::string Duration(const SubjectState& subject, const WatchScene& scene) {
  return (subject.since_at_least ? ">" : "") +
         FormatElapsed(std::max<TimeNs>(0, scene.now - subject.since));
}

std::string WaypointOf(const SubjectState& subject) {
  return subject.subject.kind == Kind::kCore ? WatchNames::Waypoint(subject.sample.waypoint) : "";
}

// Where a line of its own gives the whole name: "core 2" of "core 2 writer (0,0)".
std::string ShortNames(const std::vector<SubjectId>& subjects, const WatchScene& scene) {
  std::vector<std::string> names;
  for (const SubjectId& subject : subjects) {
    const bool is_plain = subject.kind == Kind::kCore && scene.homes == nullptr &&
                          scene.names->Thread(subject.index).empty();
    names.push_back(is_plain ? fmt::format("core {}", subject.index) : SubjectName(subject, scene));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// "held by core 2", "provided by core 2", "core 2 ran instead".
std::string From(const SubjectState& subject, const std::vector<SubjectId>& others,
                 const WatchScene& scene) {
  if (others.empty()) return "";
  const ResourceKind kind = subject.wait ? subject.wait->kind : ResourceKind::kNone;
  const bool is_ready =
      subject.subject.kind == Kind::kTask && subject.activity == Activity::kRunning;
  if (is_ready) return fmt::format(" ({} ran instead)", ShortNames(others, scene));
  const char* how = kind == ResourceKind::kExclusive   ? "held by"
                    : kind == ResourceKind::kSuspended ? "by"
                                                       : "provided by";
  return fmt::format(" ({} {})", how, ShortNames(others, scene));
}

// Where a core is, by its waypoint and, as far as it is known, its stack.
void AddWhere(const SubjectState& subject, const WatchScene& scene, FindingSubject* told) {
  told->at = WaypointOf(subject);
  told->where = SubjectPlace(subject.subject, scene);
  if (subject.subject.kind == Kind::kCore) {
    const uint32_t waypoint = subject.sample.waypoint;
    told->functions = scene.NamesOf(subject.subject, waypoint).WaypointFunctions(waypoint);
  }
  if (scene.stacks == nullptr) return;
  const auto stack = scene.stacks->find(subject.subject);
  if (stack != scene.stacks->end()) NameCaller(stack->second, told);
}

std::string SubjectLine(const SubjectId& who, const std::vector<SubjectId>& others,
                        const WatchScene& scene, size_t name_width) {
  const SubjectState* const subject = scene.Find(who);
  if (subject == nullptr) return SubjectName(who, scene);
  std::string text = fmt::format("{:<{}}  {}{}", SubjectName(who, scene), name_width,
                                 SubjectDoing(*subject, scene), From(*subject, others, scene));
  const std::string place = who.kind != Kind::kCore
                                ? ""
                                : scene.NamesOf(who, subject->sample.waypoint)
                                      .ShortWaypointPlace(subject->sample.waypoint);
  if (!place.empty()) text += "   " + place;
  FindingSubject told;
  AddWhere(*subject, scene, &told);
  if (told.inside.empty() && !told.at.empty()) return text;
  if (told.where.empty()) return text;
  return text + (place.empty() ? "   " : " <- ") + Printable(told.where) +
         CallersText(told.callers);
}

size_t NameWidth(const std::vector<SubjectId>& subjects, const WatchScene& scene) {
  size_t width = 0;
  for (const SubjectId& subject : subjects)
    width = std::max(width, SubjectName(subject, scene).size());
  return width;
}

void AddMembers(const ScopeFinding& finding, const WatchScene& scene,
                std::vector<std::string>* lines) {
  std::vector<SubjectId> all = finding.subjects;
  all.insert(all.end(), finding.partners.begin(), finding.partners.end());
  const size_t width = NameWidth(all, scene);
  const bool cycle = finding.kind == FindingKind::kDeadlock;
  for (size_t i = 0; i < finding.subjects.size(); ++i) {
    std::vector<SubjectId> others = finding.partners;
    if (cycle) others = {finding.subjects[(i + 1) % finding.subjects.size()]};
    lines->push_back(SubjectLine(finding.subjects[i], others, scene, width));
  }
  for (const SubjectId& partner : finding.partners)
    lines->push_back(SubjectLine(partner, {}, scene, width));
}

void AddHistory(const ScopeFinding& finding, const WatchScene& scene, const FindingHistory& history,
                std::vector<std::string>* lines) {
  const bool whose = finding.first || finding.subjects.size() == 1;
  if (!whose) return;
  if (finding.first && finding.subjects.size() > 1)
    lines->push_back(fmt::format("first to stop: {}{}", SubjectName(*finding.first, scene),
                                 history.events.empty() ? "" : ", after " + history.events.back()));
  if (!history.events.empty())
    lines->push_back(fmt::format("its last events: {}", fmt::join(history.events, "; ")));
  const size_t shown = std::min(history.debug.size(), kMostDebugValues);
  if (shown == 0) return;
  lines->push_back("debug ring, the newest first:");
  for (const std::string& row : DebugRingRows(
           {history.debug.begin(), history.debug.begin() + static_cast<ptrdiff_t>(shown)}))
    lines->push_back("  " + row);
  if (shown < history.debug.size())
    lines->push_back(fmt::format("  and {} older ones", history.debug.size() - shown));
}

std::string NodeText(const SubjectState& subject, const WatchScene& scene) {
  if (scene.nodes == nullptr || scene.nodes->size() < 2 ||
      subject.sample.node >= scene.nodes->size())
    return "";
  const NodeSample& node = (*scene.nodes)[subject.sample.node];
  return node.name.empty() ? fmt::format("({},{})", node.x, node.y) : Printable(node.name);
}

// "3", or with the name that a thread has.
std::string Who(const SubjectState& subject, const WatchScene& scene) {
  if (subject.subject.kind == Kind::kTask) return SubjectName(subject.subject, scene);
  const std::string number = std::to_string(scene.NumberOf(subject));
  const std::string thread = scene.NamesOf(subject.subject).Thread(scene.NumberOf(subject));
  return thread.empty() ? number : number + " " + thread;
}

std::string JoinCells(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = cells[i].empty() ? kNothing : cells[i];
    text += text.empty() ? "" : "  ";
    text += fmt::format("{:<{}}", cell, widths[i]);
  }
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

// Who does what, who else waits, and what led up to it; a text a line.
std::vector<std::string> FindingLines(const ScopeFinding& finding, const WatchScene& scene,
                                      const FindingHistory& history) {
  std::vector<std::string> lines;
  if (finding.kind != FindingKind::kCorrupt && finding.kind != FindingKind::kStackLow)
    AddMembers(finding, scene, &lines);
  if (!finding.victims.empty())
    lines.push_back(fmt::format("also waiting for {}: {}",
                                finding.subjects.size() == 1 ? "it" : "these",
                                Names(finding.victims, scene)));
  AddHistory(finding, scene, history, &lines);
  if (!history.words.empty()) lines.push_back("words that it shows:");
  for (const std::string& line : WordLines(history.words)) lines.push_back("  " + line);
  return lines;
}

const char* BusReasonName(uint32_t reason) {
  constexpr const char* kNames[HANGSCOPE_BUS_REASONS] = {"fine",
                                                         "zero length",
                                                         "underflow",
                                                         "overflow",
                                                         "no region",
                                                         "bad coordinates",
                                                         "multicast range",
                                                         "multicast target",
                                                         "misaligned",
                                                         "alignment mismatch",
                                                         "mixed coordinates",
                                                         "inline write unsupported",
                                                         "protected",
                                                         "linked",
                                                         "local overflow",
                                                         "buffer bounds",
                                                         "rights",
                                                         "owner"};
  return reason < HANGSCOPE_BUS_REASONS ? kNames[reason] : "unknown";
}

std::vector<std::pair<std::string, std::string>> FactsOf(const CoreFault& fault,
                                                         const WatchNames& names) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"fault", std::string(FaultTypeName(fault.type))}};
  if (fault.type == FaultType::kBus) facts.emplace_back("reason", BusReasonName(fault.reason));
  if (fault.type == FaultType::kHardware)
    facts.emplace_back("reason", fmt::format("cause {:#x}", fault.reason));
  facts.emplace_back("text", names.Fault(fault));
  if (fault.pc != 0) facts.emplace_back("where", names.Place(fault.pc));
  facts.emplace_back("faults", std::to_string(fault.faults));
  return facts;
}

// Which of a device's memories it is in.
void AddPlace(const SubjectId& subject, const WatchScene& scene, FindingSubject* told) {
  const SubjectHome* const home = scene.HomeOf(subject);
  if (home == nullptr) return;
  told->memory = home->memory;
  const SubjectState* const found = scene.Find(subject);
  if (subject.kind != Kind::kCore || found->sample.node >= scene.nodes->size()) return;
  const NodeSample& node = (*scene.nodes)[found->sample.node];
  if (node.name.empty()) told->node = {node.x, node.y};
}

}  // namespace

const SubjectState* WatchScene::Find(const SubjectId& subject) const {
  // cores come first
  if (subject.kind == Kind::kCore && subject.index < subjects->size() &&
      (*subjects)[subject.index].subject == subject)
    return &(*subjects)[subject.index];
  const auto at = std::find_if(subjects->begin(), subjects->end(),
                               [&](const SubjectState& s) { return s.subject == subject; });
  return at == subjects->end() ? nullptr : &*at;
}

const SubjectHome* WatchScene::HomeOf(const SubjectId& subject) const {
  if (homes == nullptr) return nullptr;
  if (subject.kind == Kind::kCore && subject.index < homes->size()) return &(*homes)[subject.index];
  const SubjectState* const found = Find(subject);
  const auto at = found == nullptr ? homes->size() : static_cast<size_t>(found - subjects->data());
  return at < homes->size() ? &(*homes)[at] : nullptr;
}

const WatchNames& WatchScene::NamesOf(const SubjectId& subject) const {
  const SubjectHome* const home = HomeOf(subject);
  return home == nullptr ? *names : *home->names;
}

const WatchNames& WatchScene::NamesOf(const SubjectId& subject, uint32_t waypoint) const {
  const SubjectHome* const home = HomeOf(subject);
  const bool in_kernel = home != nullptr && home->kernel != nullptr &&
                         !home->kernel->ShortWaypointPlace(waypoint).empty();
  return in_kernel ? *home->kernel : NamesOf(subject);
}

const WatchNames& WatchScene::NamesOf(const SubjectId& subject, const CoreFault& fault) const {
  const SubjectHome* const home = HomeOf(subject);
  const bool in_kernel =
      home != nullptr && home->kernel != nullptr && !home->kernel->Place(fault.pc).empty();
  return in_kernel ? *home->kernel : NamesOf(subject);
}

uint32_t WatchScene::NumberOf(const SubjectState& subject) const {
  if (const SubjectHome* const home = HomeOf(subject.subject)) return home->index;
  return subject.subject.kind == Kind::kCore ? subject.subject.index : subject.task;
}

std::string WatchScene::ResourceOf(const SubjectId& who, uint32_t resource) const {
  const auto at = resources == nullptr ? std::map<uint32_t, ResourceHome>::const_iterator()
                                       : resources->find(resource);
  if (resources == nullptr || at == resources->end()) return NamesOf(who).Resource(resource);
  return at->second.names->LocalResource(at->second.number) + " " + at->second.place;
}

std::string WatchScene::WaitedForBy(const SubjectState& subject) const {
  const WaitState& wait = *subject.wait;
  if (resources != nullptr && resources->contains(wait.resource))
    return ResourceOf(subject.subject, wait.resource);
  return NamesOf(subject.subject).WaitedFor(wait.kind, wait.resource);
}

std::string SubjectDoing(const SubjectState& subject, const WatchScene& scene) {
  const std::string waypoint = WaypointOf(subject);
  const std::string at = waypoint.empty() ? "" : " at " + waypoint;
  if (subject.wait && subject.activity != Activity::kPaused &&
      subject.activity != Activity::kHalted) {
    // Of a dead target the time may be known no further than to the beginning of its latest wait.
    const bool lasted = !scene.is_dead || scene.now - subject.since >= kSaidAtLeast;
    return fmt::format("waits{}{} for {}", lasted ? " " + Duration(subject, scene) : "", at,
                       scene.WaitedForBy(subject));
  }
  switch (subject.activity) {
    case Activity::kRunning:
      return subject.subject.kind == Kind::kTask && !subject.has_core ? "is ready" : "runs" + at;
    case Activity::kIdle:
      return fmt::format("is idle for {}{}", Duration(subject, scene), at);
    case Activity::kPaused:
      return fmt::format("is paused for {}{}", Duration(subject, scene), at);
    case Activity::kHalted:
      return fmt::format("is halted{}", at);
    case Activity::kEnded:
      return "has ended" + at;
    case Activity::kCorrupt:
      return "has a mailbox that cannot be right";
    case Activity::kUnread:
      return "is in memory that cannot be read";
    case Activity::kUnused:
      return "never said anything";
    default:
      return fmt::format("stands still for {}{}", Duration(subject, scene), at);
  }
}

std::string FindingHeadline(const ScopeFinding& finding, const WatchScene& scene) {
  const std::string summary = FindingSummary(finding, scene);
  const std::string_view confidence = ConfidenceName(finding.confidence);
  const std::string where = scene.of_several ? Printable(scene.target) + ": " : "";
  if (finding.confidence == Confidence::kPossible)
    return fmt::format("{}perhaps {} ({})", where, summary, confidence);
  switch (finding.kind) {
    case FindingKind::kDeadlock:
    case FindingKind::kStarved:
    case FindingKind::kSilent:
      return fmt::format("{}HANG: {} ({})", where, summary, confidence);
    case FindingKind::kStackLow:
      return fmt::format("{}WARNING: {}", where, summary);
    default:
      return fmt::format("{}{}: {} ({})", where, Capitals(FindingKindName(finding.kind)), summary,
                         confidence);
  }
}

static_assert(kColumns == kWatchColumns && kStack == static_cast<int>(WatchColumn::kStack));

const char* WatchColumnTitle(WatchColumn column) { return kTitles[static_cast<size_t>(column)]; }

std::vector<std::string> WatchCells(const SubjectState& subject, const WatchScene& scene) {
  std::vector<std::string> cells(kColumns);
  cells[kWho] = Who(subject, scene);
  cells[kActivity] = ActivityName(subject.activity);
  if (subject.wait) cells[kWaitsFor] = scene.WaitedForBy(subject);
  const bool lasts = subject.activity != Activity::kRunning &&
                     subject.activity != Activity::kUnused &&
                     subject.activity != Activity::kCorrupt;
  if (lasts && (!scene.is_dead || scene.now - subject.since >= kSaidAtLeast))
    cells[kSince] = (subject.since_at_least ? ">" : "") +
                    FormatElapsed(std::max<TimeNs>(0, scene.now - subject.since));
  if (subject.subject.kind == Kind::kTask || subject.activity == Activity::kCorrupt) return cells;
  cells[kNode] = NodeText(subject, scene);
  const WatchNames& names = scene.NamesOf(subject.subject);
  cells[kRole] = names.Role(subject.sample.role);
  cells[kAt] = WaypointOf(subject);
  if (subject.sample.kernel != 0) cells[kKernel] = names.ShortKernel(subject.sample.kernel);
  if (subject.sample.stack_free) cells[kStack] = std::to_string(*subject.sample.stack_free);
  return cells;
}

std::string SubjectName(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  const SubjectHome* const home = scene.HomeOf(subject);
  if (subject.kind == Kind::kTask && found == nullptr)
    return fmt::format("task record {}", subject.index);
  if (subject.kind == Kind::kTask)
    return scene.NamesOf(subject).Task(scene.NumberOf(*found)) +
           (home == nullptr ? "" : " " + home->place);
  return scene.NamesOf(subject).Core(home == nullptr ? subject.index : home->index,
                                     found == nullptr ? CoreSample{} : found->sample);
}

std::string SubjectPlace(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  if (found == nullptr || subject.kind != Kind::kCore) return "";
  return scene.NamesOf(subject, found->sample.waypoint).WaypointPlace(found->sample.waypoint);
}

std::string FindingSummary(const ScopeFinding& finding, const WatchScene& scene) {
  const std::string who = Names(finding.subjects, scene);
  const bool one = finding.subjects.size() == 1;
  switch (finding.kind) {
    case FindingKind::kDeadlock:
      if (one) return fmt::format("deadlock, {} waits for itself", who);
      return fmt::format("deadlock, {} of {} {} wait for each other", finding.subjects.size(),
                         InUse(finding.subjects, scene), NounFor(finding.subjects));
    case FindingKind::kStarved: {
      if (finding.resource == 0)
        return fmt::format("starved, {} {} ready and never run{}", who, one ? "is" : "are",
                           one ? "s" : "");
      const std::string what = scene.ResourceOf(finding.subjects[0], finding.resource);
      if (finding.partners.empty())
        return fmt::format("starved, {} wait{} for {}, which nobody {}is known to hold or provide",
                           who, one ? "s" : "", what,
                           scene.is_partly_unread ? "in what can be read " : "");
      return fmt::format("starved, {} wait{} for {}, which never comes from {}", who,
                         one ? "s" : "", what, Names(finding.partners, scene));
    }
    case FindingKind::kSilent:
      return fmt::format("silent, {} stand{} still and wait{} for nothing", who, one ? "s" : "",
                         one ? "s" : "");
    case FindingKind::kFault:
      return fmt::format("{}: {}", who,
                         scene.NamesOf(finding.subjects[0], finding.fault).Fault(finding.fault));
    case FindingKind::kStackLow: {
      const SubjectState* const subject = one ? scene.Find(finding.subjects[0]) : nullptr;
      if (subject == nullptr || !subject->sample.stack_free)
        return fmt::format("{}: little of the stack was ever free", who);
      return fmt::format("{}: only {} of the stack were ever free", who,
                         Plural(*subject->sample.stack_free, "byte"));
    }
    case FindingKind::kCorrupt:
      return fmt::format("{}: {}", Printable(CorruptPart(finding.corruption)),
                         Printable(CorruptField(finding.corruption)));
    default:
      break;
  }
  return finding.summary;
}

std::string WaitLine(const SubjectId& who, const std::vector<SubjectId>& from,
                     const WatchScene& scene) {
  return SubjectLine(who, from, scene, 0);
}

std::string FindingText(const ScopeFinding& finding, const WatchScene& scene,
                        const FindingHistory& history) {
  std::string text = FindingHeadline(finding, scene) + "\n";
  for (const std::string& line : FindingLines(finding, scene, history)) text += "  " + line + "\n";
  const size_t left = kMostEvidence - std::min(kMostEvidence, finding.repeated_evidence.size());
  for (size_t i = 0; i < std::min(left, finding.evidence.size()); ++i)
    text += "  " + Printable(finding.evidence[i]) + "\n";
  for (const std::string& doubt : finding.doubts)
    text += "  not certain: " + Printable(doubt) + "\n";
  return text;
}

FindingSubject ToldSubject(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  FindingSubject told{SubjectName(subject, scene)};
  if (subject.kind == Kind::kCore)
    told.core = found == nullptr ? subject.index : scene.NumberOf(*found);
  else if (found != nullptr)
    told.task = scene.NumberOf(*found);
  AddPlace(subject, scene, &told);
  if (found == nullptr) return told;
  told.does = SubjectDoing(*found, scene);
  AddWhere(*found, scene, &told);
  if (!found->wait) return told;
  told.waits_for = scene.ResourceOf(subject, found->wait->resource);
  told.lasts = std::max<TimeNs>(0, scene.now - found->since);
  return told;
}

Finding ToldFinding(const ScopeFinding& finding, const WatchScene& scene,
                    const FindingHistory& history) {
  Finding told(finding);
  const auto tell = [&](const std::vector<SubjectId>& subjects) {
    std::vector<FindingSubject> list;
    for (const SubjectId& subject : subjects) list.push_back(ToldSubject(subject, scene));
    return list;
  };
  told.subjects = tell(finding.subjects);
  told.partners = tell(finding.partners);
  told.victims = tell(finding.victims);
  told.summary = FindingSummary(finding, scene);
  told.lines = FindingLines(finding, scene, history);
  if (finding.resource != 0)
    told.resource = scene.ResourceOf(finding.subjects[0], finding.resource);
  if (finding.first) told.first = SubjectName(*finding.first, scene);
  told.history = history.events;
  told.words = history.words;
  if (finding.kind == FindingKind::kFault)
    told.facts = FactsOf(finding.fault, scene.NamesOf(finding.subjects[0], finding.fault));
  if (finding.kind == FindingKind::kCorrupt) {
    told.facts = {{"where", CorruptPart(finding.corruption)},
                  {"what", CorruptField(finding.corruption)}};
  }
  return told;
}

std::vector<std::string> DebugRingRows(const std::vector<DebugValue>& values) {
  const bool one_core = std::all_of(values.begin(), values.end(),
                                    [&](const DebugValue& v) { return v.core == values[0].core; });
  std::vector<std::string> rows;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % kDebugValuesInRow == 0) rows.emplace_back();
    std::string& row = rows.back();
    if (!row.empty()) row += " ";
    if (!one_core) row += fmt::format("{}:", values[i].core);
    row += fmt::format("{:08x}", values[i].value);
  }
  if (one_core && !rows.empty()) rows.back() += fmt::format("   (core {})", values[0].core);
  return rows;
}

std::string WatchLegend() {
  return
      R"(activity  running, idle (by its design), waiting, paused, halted (by a fault), silent (stands
          still and waits for nothing), ended, corrupt (its mailbox cannot be right)
at        the waypoint: by convention the last letter is W waits, D is done, R runs
since     of the activity; of one that waits, of this wait; > at least: it was so from the first look
stack     bytes of it that were never used
)";
}

WatchTable::WatchTable(const WatchScene& scene, bool all_columns) : widths_(kColumns) {
  for (const SubjectState& subject : *scene.subjects) {
    has_tasks_ = has_tasks_ || subject.subject.kind == Kind::kTask;
    if (subject.activity == Activity::kUnused && !all_columns) continue;
    const std::vector<std::string> cells = WatchCells(subject, scene);
    for (size_t i = 0; i < kColumns; ++i) widths_[i] = std::max(widths_[i], cells[i].size());
  }
  for (size_t i = 0; i < kColumns; ++i) {
    const bool shown = all_columns || widths_[i] != 0;
    const std::string_view title = i == kWho && has_tasks_ ? kWhoWithTasks : kTitles[i];
    if (shown)
      widths_[i] = std::max({widths_[i], all_columns ? kUsualInLog[i] : kUsual[i], title.size()});
  }
}

std::string WatchTable::Head() const {
  std::vector<std::string> titles(std::begin(kTitles), std::end(kTitles));
  if (has_tasks_) titles[kWho] = kWhoWithTasks;
  return JoinCells(titles, widths_);
}

std::string WatchTable::Line(const SubjectState& subject, const WatchScene& scene) const {
  return JoinCells(WatchCells(subject, scene), widths_);
}

}  // namespace hangscope

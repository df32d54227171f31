#include "scope/watch_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/utf8.h"
#include "scope/scope_text.h"

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
    const bool is_plain = subject.kind == Kind::kCore && scene.names->Thread(subject.index).empty();
    names.push_back(is_plain ? fmt::format("core {}", subject.index) : SubjectName(subject, scene));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// "held by core 2", "provided by core 2".
std::string From(const SubjectState& subject, const std::vector<SubjectId>& others,
                 const WatchScene& scene) {
  if (others.empty()) return "";
  const ResourceKind kind = subject.wait ? subject.wait->kind : ResourceKind::kNone;
  const char* how = kind == ResourceKind::kExclusive   ? "held by"
                    : kind == ResourceKind::kSuspended ? "by"
                                                       : "provided by";
  return fmt::format(" ({} {})", how, ShortNames(others, scene));
}

std::string SubjectLine(const SubjectId& who, const std::vector<SubjectId>& others,
                        const WatchScene& scene, size_t name_width) {
  const SubjectState* const subject = scene.Find(who);
  if (subject == nullptr) return SubjectName(who, scene);
  std::string text = fmt::format("{:<{}}  {}{}", SubjectName(who, scene), name_width,
                                 SubjectDoing(*subject, scene), From(*subject, others, scene));
  const std::string place =
      who.kind == Kind::kCore ? scene.names->ShortWaypointPlace(subject->sample.waypoint) : "";
  return text + (place.empty() ? "" : "   " + place);
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
  return fmt::format("({},{})", node.x, node.y);
}

// "3", or with the name that a thread has.
std::string Who(const SubjectState& subject, const WatchScene& scene) {
  if (subject.subject.kind == Kind::kTask) return scene.names->Task(subject.task);
  const std::string number = std::to_string(subject.subject.index);
  const std::string thread = scene.names->Thread(subject.subject.index);
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

}  // namespace

const SubjectState* WatchScene::Find(const SubjectId& subject) const {
  const auto at = std::find_if(subjects->begin(), subjects->end(),
                               [&](const SubjectState& s) { return s.subject == subject; });
  return at == subjects->end() ? nullptr : &*at;
}

std::string SubjectDoing(const SubjectState& subject, const WatchScene& scene) {
  const std::string waypoint = WaypointOf(subject);
  const std::string at = waypoint.empty() ? "" : " at " + waypoint;
  if (subject.wait && subject.activity != Activity::kPaused &&
      subject.activity != Activity::kHalted) {
    // Of a dead target the time may be known no further than to the beginning of its latest wait.
    const bool lasted = !scene.is_dead || scene.now - subject.since >= kSaidAtLeast;
    return fmt::format("waits{}{} for {}", lasted ? " " + Duration(subject, scene) : "", at,
                       scene.names->WaitedFor(subject.wait->kind, subject.wait->resource));
  }
  switch (subject.activity) {
    case Activity::kRunning:
      return "runs" + at;
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
  if (subject.wait)
    cells[kWaitsFor] = scene.names->WaitedFor(subject.wait->kind, subject.wait->resource);
  const bool lasts = subject.activity != Activity::kRunning &&
                     subject.activity != Activity::kUnused &&
                     subject.activity != Activity::kCorrupt;
  if (lasts && (!scene.is_dead || scene.now - subject.since >= kSaidAtLeast))
    cells[kSince] = (subject.since_at_least ? ">" : "") +
                    FormatElapsed(std::max<TimeNs>(0, scene.now - subject.since));
  if (subject.subject.kind == Kind::kTask || subject.activity == Activity::kCorrupt) return cells;
  cells[kNode] = NodeText(subject, scene);
  cells[kRole] = scene.names->Role(subject.sample.role);
  cells[kAt] = WaypointOf(subject);
  if (subject.sample.kernel != 0) cells[kKernel] = scene.names->ShortKernel(subject.sample.kernel);
  if (subject.sample.stack_free) cells[kStack] = std::to_string(*subject.sample.stack_free);
  return cells;
}

std::string SubjectName(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  if (subject.kind == Kind::kTask)
    return found == nullptr ? fmt::format("task record {}", subject.index)
                            : scene.names->Task(found->task);
  return scene.names->Core(subject.index, found == nullptr ? CoreSample{} : found->sample);
}

std::string SubjectPlace(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  if (found == nullptr || subject.kind != Kind::kCore) return "";
  return scene.names->WaypointPlace(found->sample.waypoint);
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
      const std::string what = scene.names->Resource(finding.resource);
      if (finding.partners.empty())
        return fmt::format("starved, {} wait{} for {}, which nobody provides", who, one ? "s" : "",
                           what);
      return fmt::format("starved, {} wait{} for {}, which never comes from {}", who,
                         one ? "s" : "", what, Names(finding.partners, scene));
    }
    case FindingKind::kSilent:
      return fmt::format("silent, {} stand{} still and wait{} for nothing", who, one ? "s" : "",
                         one ? "s" : "");
    case FindingKind::kFault:
      return fmt::format("{}: {}", who, scene.names->Fault(finding.fault));
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

std::string FindingText(const ScopeFinding& finding, const WatchScene& scene,
                        const FindingHistory& history) {
  std::string text = FindingHeadline(finding, scene) + "\n";
  for (const std::string& line : LinesBelowHeadline(finding, scene, history))
    text += "  " + line + "\n";
  return text;
}

std::vector<std::string> LinesBelowHeadline(const ScopeFinding& finding, const WatchScene& scene,
                                            const FindingHistory& history) {
  std::vector<std::string> lines = FindingLines(finding, scene, history);
  const size_t left = kMostEvidence - std::min(kMostEvidence, finding.repeated_evidence.size());
  for (size_t i = 0; i < std::min(left, finding.evidence.size()); ++i)
    lines.push_back(Printable(finding.evidence[i]));
  for (const std::string& doubt : finding.doubts)
    lines.push_back("not certain: " + Printable(doubt));
  return lines;
}

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
  return lines;
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

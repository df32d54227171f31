#include "report/report_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "device/live_device.h"
#include "report/source_excerpt.h"
#include "scope/scope_text.h"
#include "stats/event_tables.h"
#include "verdict/wait_graph.h"

namespace hangscope {
namespace {

constexpr size_t kMostNodes = 512;  // of the graph
constexpr size_t kMostEdges = 4096;
constexpr size_t kMostRows = 4096;        // of a list
constexpr size_t kMostDebugValues = 256;  // of a ring
constexpr double kLongestTime = 2e18;     // ns
constexpr TimeNs kSaidAtLeast = 100 * kMillisecond;

// What is drawn: one scope, or those of a device as one.
struct Drawn {
  WatchScene scene;
  const Watcher& watcher;
  const ScopeSample& sample;
  WatchSource& source;
  std::function<FindingHistory(const ScopeFinding&)> history;
  std::function<std::vector<ShownWord>()> words;  // all that there are
  // The scope of a subject, and who it is there; null: it cannot be read.
  std::function<std::pair<LiveScope*, SubjectId>(const SubjectId&)> home;
  struct Part {
    LiveScope* scope;
    uint32_t first_core;  // of its cores among all
    std::string place;    // of a device, "(1,0)"; else empty
  };
  std::vector<Part> parts;
};

class ScopeReport {
 public:
  ScopeReport(const Drawn& drawn, const ReportScopeTimes& times, Report* report)
      : drawn_(drawn), scene_(drawn.scene), times_(times), report_(*report) {}

  void Add() {
    AddFindings();
    AddGraph();
    for (const SubjectState& subject : *scene_.subjects) {
      if (subject.subject.kind == SubjectId::Kind::kCore && subject.sample.in_use) AddCore(subject);
    }
    AddDebugRings();
    AddWords();
    for (const Corruption& corruption : drawn_.sample.corruptions) {
      if (report_.warnings.size() < kMostRows)
        report_.warnings.push_back(
            fmt::format("scope: {}: {}", CorruptPart(corruption), CorruptField(corruption)));
    }
  }

 private:
  // From the report's end; nothing: the target's clock tells nothing.
  ReportTime TimeOfCount(LiveScope& scope, uint64_t count) const {
    if (!scope.layout().shared_clock() && !times_.clock) return std::nullopt;
    if (times_.clock && times_.end) {
      const auto& fit = *times_.clock;
      const double ns =
          (static_cast<double>(count) - static_cast<double>(fit.count)) * fit.ns_per_count;
      if (!std::isfinite(ns) || std::abs(ns) > kLongestTime) return std::nullopt;
      return fit.at - *times_.end + static_cast<TimeNs>(ns);
    }
    const uint64_t hz = scope.clock_hz();
    const auto last = scope.sample().target_time;
    if (hz == 0 || !last || count > *last) return std::nullopt;
    const double ns = static_cast<double>(*last - count) * 1e9 / static_cast<double>(hz);
    return ns > kLongestTime ? ReportTime() : -static_cast<TimeNs>(ns);
  }

  // How long before the report's end the target's latest time is; 0 where that is not known, and of
  // several memories.
  TimeNs Lag() const {
    if (drawn_.parts.size() != 1) return 0;
    LiveScope& scope = *drawn_.parts.front().scope;
    const auto last = scope.sample().target_time;
    const ReportTime at = last ? TimeOfCount(scope, *last) : std::nullopt;
    return at && *at < 0 ? -*at : 0;
  }

  ReportTime Since(const SubjectState& subject) const {
    const TimeNs age = std::max<TimeNs>(0, scene_.now - subject.since);
    const bool lasts = subject.activity != Activity::kRunning &&
                       subject.activity != Activity::kUnused &&
                       subject.activity != Activity::kCorrupt;
    // Of a dead target the time may be known no further than to its latest.
    if (!lasts || age + Lag() < kSaidAtLeast) return std::nullopt;
    return -age - Lag();
  }

  void AddFindings() {
    for (const ScopeFinding& finding : drawn_.watcher.standing()) {
      ReportFinding mine{ToldFinding(finding, scene_, drawn_.history(finding)),
                         std::string(FindingKindName(finding.kind))};
      if (mine.evidence.empty() && scene_.is_dead)
        mine.evidence = {"so it stands in what is left of it"};
      // The watcher that followed it while it lived is surer, and says the same of it.
      const auto known = std::find_if(report_.findings.begin(), report_.findings.end(),
                                      [&](const ReportFinding& f) { return f.IsSameAs(mine); });
      if (known == report_.findings.end()) {
        if (report_.findings.size() < kMostRows) report_.findings.push_back(std::move(mine));
        continue;
      }
      if (known->evidence.empty()) known->evidence = mine.evidence;
      if (known->lines.empty()) known->lines = mine.lines;
    }
  }

  // Those that the findings are about first, then all who wait or stand still; the rest only where
  // somebody waits for it.
  std::vector<size_t> ChooseSubjects(const std::vector<WaitNode>& nodes) const {
    const auto& subjects = *scene_.subjects;
    std::vector<size_t> chosen;
    std::set<size_t> seen;
    const auto take = [&](size_t i) {
      if (i < subjects.size() && chosen.size() < kMostNodes && seen.insert(i).second)
        chosen.push_back(i);
    };
    const auto take_subject = [&](const SubjectId& who) {
      const SubjectState* const found = scene_.Find(who);
      if (found != nullptr) take(static_cast<size_t>(found - subjects.data()));
    };
    for (const ScopeFinding& finding : drawn_.watcher.standing()) {
      for (const auto* list : {&finding.subjects, &finding.partners, &finding.victims})
        std::for_each(list->begin(), list->end(), take_subject);
    }
    for (size_t i = 0; i < subjects.size(); ++i) {
      const Activity activity = subjects[i].activity;
      const bool stands = activity == Activity::kWaiting || activity == Activity::kHalted ||
                          activity == Activity::kSilent || activity == Activity::kPaused;
      if (stands) take(i);
    }
    for (size_t i = 0; i < chosen.size() && chosen.size() < kMostNodes; ++i) {
      for (const WaitEdge& edge : nodes[chosen[i]].suppliers) take(edge.to);
    }
    return chosen;
  }

  std::vector<WaitNode> Waits() {
    const auto& subjects = *scene_.subjects;
    const size_t cores = drawn_.sample.cores.size();
    std::map<uint32_t, uint32_t> records;  // by the task's id
    for (uint32_t i = static_cast<uint32_t>(cores); i < subjects.size(); ++i) {
      if (subjects[i].activity != Activity::kUnused) records[subjects[i].task] = i;
    }
    std::vector<WaitNode> nodes(subjects.size());
    for (uint32_t i = 0; i < subjects.size(); ++i) {
      if (!subjects[i].wait ||
          (subjects[i].activity != Activity::kWaiting && subjects[i].activity != Activity::kIdle))
        continue;
      nodes[i].role = WaitRole::kWaits;
      nodes[i].resource = subjects[i].wait->resource;
      nodes[i].kind = subjects[i].wait->kind;
      if (i < cores || i - cores >= drawn_.sample.tasks.size()) continue;
      const auto& holder = drawn_.sample.tasks[i - cores].record.holder;
      if (const auto at = holder ? records.find(*holder) : records.end(); at != records.end())
        nodes[i].holder = at->second;
    }
    auto claims = drawn_.source.Claims();
    if (!claims.ok())
      report_.warnings.push_back("scope: who holds what cannot be read: " +
                                 claims.status().message());
    FindSuppliers(claims.value_or({}), &nodes);
    return nodes;
  }

  void AddGraph() {
    const std::vector<WaitNode> nodes = Waits();
    const auto& subjects = *scene_.subjects;
    std::map<SubjectId, size_t> ids;
    const std::vector<size_t> chosen = ChooseSubjects(nodes);
    for (const size_t i : chosen) {
      ids.emplace(subjects[i].subject, report_.graph.nodes.size());
      report_.graph.nodes.push_back(NodeOf(subjects[i], report_.graph.nodes.size()));
    }
    for (const size_t i : chosen) {
      for (const WaitEdge& edge : nodes[i].suppliers) {
        const auto to = ids.find(subjects[edge.to].subject);
        if (to == ids.end() || report_.graph.edges.size() >= kMostEdges) continue;
        report_.graph.edges.push_back(
            {ids.at(subjects[i].subject), to->second, WaitsFor(subjects[i]), false});
      }
    }
    MarkCycle(ids);
  }

  std::string WaitsFor(const SubjectState& subject) const {
    return subject.wait ? scene_.WaitedForBy(subject) : "";
  }

  ReportNode NodeOf(const SubjectState& subject, size_t id) const {
    ReportNode node;
    node.id = id;
    node.name = SubjectName(subject.subject, scene_);
    node.state = ActivityName(subject.activity);
    node.place = SubjectPlace(subject.subject, scene_);
    node.waits_for = WaitsFor(subject);
    node.since = Since(subject);
    const bool is_task = subject.subject.kind == SubjectId::Kind::kTask;
    node.who = TraceWho{is_task, is_task ? subject.task : subject.subject.index};
    if (const auto [scope, local] = drawn_.home(subject.subject); scope != nullptr)
      node.thread = scope->ThreadOf(local);
    return node;
  }

  // Of the surest deadlock; and who stopped first, whatever it is.
  void MarkCycle(const std::map<SubjectId, size_t>& ids) {
    const ScopeFinding* best = nullptr;
    for (const ScopeFinding& finding : drawn_.watcher.standing()) {
      if (finding.first) {
        if (const auto at = ids.find(*finding.first); at != ids.end())
          report_.graph.nodes[at->second].first = true;
      }
      if (finding.kind == FindingKind::kDeadlock &&
          (best == nullptr || finding.confidence > best->confidence))
        best = &finding;
    }
    if (best == nullptr) return;
    for (const SubjectId& member : best->subjects) {
      if (const auto at = ids.find(member); at != ids.end())
        report_.graph.cycle.push_back(at->second);
    }
    if (report_.graph.cycle.size() != best->subjects.size()) report_.graph.cycle.clear();
  }

  void AddCore(const SubjectState& subject) {
    const CoreSample& sample = subject.sample;
    const std::string who = SubjectName(subject.subject, scene_);
    if (sample.kernel != 0 && report_.kernels.size() < kMostRows)
      report_.kernels.push_back({who, scene_.NamesOf(subject.subject).Kernel(sample.kernel),
                                 std::string(LaunchName(sample.launch))});
    auto detail = drawn_.source.Detail(subject.subject.index);
    if (!detail.ok()) {
      if (sample.fault != FaultType::kNone)
        report_.warnings.push_back(fmt::format("scope: the fault of {} cannot be read: {}", who,
                                               detail.status().message()));
      return;
    }
    const CoreFault& fault = detail->fault;
    if (fault.type != FaultType::kNone && report_.faults.size() < kMostRows)
      AddFault(subject.subject, fault);
    if (detail->stack_bytes > 0 && report_.stacks.size() < kMostRows)
      report_.stacks.push_back({who, detail->stack_bytes, detail->stack_lowest, sample.stack_free});
  }

  void AddFault(const SubjectId& core, const CoreFault& fault) {
    const WatchNames& names = scene_.NamesOf(core, fault);
    const std::string who = SubjectName(core, scene_);
    ReportFault mine;
    mine.who = who;
    mine.text = names.Fault(fault);
    mine.place = names.FaultPlace(fault);
    if (LiveScope* const scope = drawn_.home(core).first; scope != nullptr)
      mine.time = TimeOfCount(*scope, fault.time);
    if (const auto where = names.FaultSource(fault)) mine.source = ReadSourceExcerpt(*where);
    if (fault.type == FaultType::kBus) report_.bus.push_back({who, mine.text, mine.time});
    report_.faults.push_back(std::move(mine));
  }

  // A snapshot has only the scope of the memory, and of words what its findings say.
  void AddWords() {
    report_.words = drawn_.words();
    std::erase_if(report_.words, [](const ShownWord& word) { return !word.value; });
    report_.words_are_of_findings = report_.words.empty();
    std::set<std::pair<std::string, std::string>> known;
    if (report_.words_are_of_findings) {
      for (const ReportFinding& finding : report_.findings) {
        for (const ShownWord& word : finding.words) {
          if (word.value && known.emplace(word.of, word.name).second) report_.words.push_back(word);
        }
      }
    }
    if (report_.words.size() > kMostRows) report_.words.resize(kMostRows);
  }

  void AddDebugRings() {
    for (const Drawn::Part& part : drawn_.parts) AddDebugRings(part);
  }

  void AddDebugRings(const Drawn::Part& part) {
    WatchReader& reader = part.scope->reader();
    const uint32_t nodes = reader.layout().node_count;
    if (reader.layout().debug_slots == 0) return;
    for (uint32_t node = 0; node < nodes && report_.debug.size() < kMostRows; ++node) {
      auto values = reader.ReadDebugRing(node, part.scope->sample());
      if (!values.ok()) {
        report_.warnings.push_back(
            fmt::format("scope: the debug ring of node {} cannot be read: {}", node,
                        values.status().message()));
        continue;
      }
      if (!values->empty()) report_.debug.push_back(DebugRing(part, node, *values));
    }
  }

  ReportDebugRing DebugRing(const Drawn::Part& part, uint32_t node,
                            const std::vector<DebugValue>& values) const {
    ReportDebugRing ring;
    const auto& nodes = part.scope->nodes();
    ring.who = node < nodes.size() && nodes.size() > 1
                   ? fmt::format("node ({},{})", nodes[node].x, nodes[node].y)
               : !part.place.empty() ? "node " + part.place
                                     : fmt::format("node {}", node);
    for (size_t i = 0; i < std::min(values.size(), kMostDebugValues); ++i) {
      ring.values.push_back({values[i].order,
                             SubjectName({SubjectId::Kind::kCore,
                                          part.first_core + static_cast<uint32_t>(values[i].core)},
                                         scene_),
                             fmt::format("{:#010x}", values[i].value)});
    }
    return ring;
  }

  const Drawn& drawn_;
  const WatchScene& scene_;
  const ReportScopeTimes& times_;
  Report& report_;
};

Status AddNumbersOf(ScopeView& view, const WatchNames& names, const std::string& memory,
                    Clock& clock, Report* report) {
  view.StartOver();
  if (Status status = view.SampleOnce(clock); !status.ok()) return status;
  for (NumberTable& table : EventTables(TakeEventStats(view), view.layout(), names)) {
    if (table.rows.size() > kMostRows) table.rows.resize(kMostRows);
    report->numbers.push_back({std::move(table), memory});
  }
  return {};
}

}  // namespace

Status AddEventNumbers(FileSystem& files, Clock& clock, const ScopeSource& source, Report* report) {
  auto view = ScopeView::Open(files, source);
  if (!view.ok()) return view.status();
  const WatchNames names((*view)->catalog(), nullptr, 0);
  return AddNumbersOf(**view, names, "", clock, report);
}

Status AddScopeWatch(FileSystem& files, Clock& clock, const ScopeSource& source,
                     const ReportScopeTimes& times, Report* report) {
  auto view = LiveScope::Open(files, source, WatcherOptions{});
  if (!view.ok()) return view.status();
  const TimeNs now = clock.Monotonic();
  if (Status status = (*view)->PollDead(now); !status.ok()) return status;
  for (const std::string& warning : (*view)->warnings())
    report->warnings.push_back("scope: " + warning);
  LiveScope& scope = **view;
  const Drawn drawn{scope.Scene(now),
                    scope.watcher(),
                    scope.sample(),
                    scope,
                    [&](const ScopeFinding& finding) { return scope.History(finding); },
                    [&] { return scope.Words(true); },
                    [&](const SubjectId& who) { return std::pair(&scope, who); },
                    {{&scope, 0, ""}}};
  ScopeReport(drawn, times, report).Add();
  return {};
}

Status AddDeviceWatch(FileSystem& files, Clock& clock, const DeviceSpec& spec, Report* report) {
  const TimeNs now = clock.Monotonic();
  auto opened = LiveDevice::Open(files, spec, WatcherOptions{}, now);
  if (!opened.ok()) return opened.status();
  LiveDevice& device = **opened;
  device.Poll(now);
  for (const std::string& warning : device.warnings()) report->warnings.push_back(warning);
  Drawn drawn{device.Scene(now),
              device.watcher(),
              device.sample(),
              device.source(),
              [&](const ScopeFinding& finding) { return device.History(finding); },
              [&] { return device.Words(true); },
              [&](const SubjectId& who) { return device.HomeOf(who); },
              {}};
  for (const LiveDevice::Memory& memory : device.Memories()) {
    if (memory.scope != nullptr && memory.why_unread.empty())
      drawn.parts.push_back({memory.scope, memory.first_core, memory.place});
  }
  const ReportScopeTimes times;
  ScopeReport(drawn, times, report).Add();
  for (const LiveDevice::Memory& memory : device.Memories()) {
    if (memory.scope == nullptr || !memory.why_unread.empty()) continue;
    const Status status =
        AddNumbersOf(memory.scope->view(), memory.scope->names(), memory.spec.name, clock, report);
    if (!status.ok())
      report->warnings.push_back(
          fmt::format("scope: the events of {}: {}", memory.spec.name, status.message()));
  }
  return {};
}

}  // namespace hangscope

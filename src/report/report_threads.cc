#include "report/report_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/units.h"
#include "snapshot/finding_reader.h"
#include "verdict/judge_picture.h"

namespace hangscope {
namespace {

using ReadJson = nlohmann::json;

constexpr uint64_t kLargestFile = 64u << 20;
constexpr size_t kMostThreads = 4096;
constexpr size_t kMostFrames = 128;
constexpr size_t kMostThreadNodes = 512;
constexpr size_t kMostThreadEdges = 4096;

// As the graph calls what a thread does for those who wait for it.
std::string StateOf(const std::string& stand, const std::string& state) {
  if (stand == "waits" || stand == "timed" || stand == "outside") return "waiting";
  if (stand == "spins" || stand == "moves") return "running";
  if (stand == "halted" || stand == "ended") return stand;
  return state == "running"                             ? "running"
         : state == "sleeping" || state == "disk sleep" ? "waiting"
                                                        : "";
}

ReportPlace FrameOf(const ReadJson& json) {
  return {TextField(json, "function"), TextField(json, "source"), TextField(json, "module"),
          TextField(json, "pc"), ""};
}

ReportTime SinceOf(const ReadJson& json) {
  const auto age = SecondsField(json, "for_s");
  return age ? ReportTime(-*age) : std::nullopt;
}

class ThreadsReader {
 public:
  explicit ThreadsReader(Report* report) : report_(*report) {}

  void Take(const ReadJson& line) {
    const std::string type = TextField(line, "type");
    if (type == "thread") threads_.push_back(line);
    if (type != "verdict") return;
    for (const ReadJson& finding : ListField(line, "findings"))
      findings_.push_back(ReadFinding(finding));
  }

  void Finish() {
    for (const ReadJson& thread : threads_) AddThread(thread);
    for (const ReportFinding& finding : findings_) AddFinding(finding);
    AddGraph();
  }

 private:
  void AddThread(const ReadJson& json) {
    const auto tid = CountField(json, "tid");
    if (!tid || report_.threads.size() == kMostThreads) return;
    ReportThread thread;
    thread.id = std::to_string(*tid);
    thread.name = TextField(json, "name");
    thread.state = TextField(json, "state");
    thread.wait = TextField(json, "does");
    thread.since = SinceOf(json);
    for (const ReadJson& frame : ListField(json, "stack")) {
      if (thread.frames.size() == kMostFrames) break;
      thread.frames.push_back(FrameOf(frame));
    }
    if (const std::string why = TextField(json, "stack_trouble"); !why.empty())
      thread.frames.push_back({"", "", "", "", why});
    report_.threads.push_back(std::move(thread));
  }

  // The manifest has it without evidence. A circle that the scope tells of, too, is one with that.
  void AddFinding(ReportFinding finding) {
    if (finding.summary.empty()) return;
    if (ReportFinding* const same =
            IsOfCycle(finding) || IsEvidence(finding) ? ScopesDeadlock(finding) : nullptr) {
      Unite(finding, same);
      std::erase_if(report_.findings, [&](const ReportFinding& f) {
        return &f != same && f.kind == "deadlock" && f.IsSameAs(finding);
      });
      return;
    }
    const auto known = std::find_if(report_.findings.begin(), report_.findings.end(),
                                    [&](const ReportFinding& f) { return f.IsSameAs(finding); });
    if (known == report_.findings.end()) {
      if (report_.findings.size() < kMostThreads) report_.findings.push_back(std::move(finding));
    } else if (known->evidence.empty() && known->doubts.empty()) {
      known->evidence = std::move(finding.evidence);
      known->doubts = std::move(finding.doubts);
    }
  }

  // Of the threads that wait in a circle in the graph, which then is the scope's.
  bool IsOfCycle(const ReportFinding& finding) const {
    if (finding.kind != "deadlock" || report_.graph.cycle.empty()) return false;
    std::set<int> cycle, threads;
    for (const size_t id : report_.graph.cycle) cycle.insert(report_.graph.nodes[id].thread);
    for (const FindingSubject& subject : finding.subjects) threads.insert(subject.thread);
    return cycle == threads && cycle.count(0) == 0;
  }

  // The verdict that was taken along says that it is the scope's, which may be damaged now.
  bool IsEvidence(const ReportFinding& finding) const {
    const auto& evidence = report_.evidence;
    return finding.kind == "deadlock" && !finding.lines.empty() &&
           std::all_of(finding.lines.begin(), finding.lines.end(), [&](const std::string& line) {
             return std::find(evidence.begin(), evidence.end(), "  " + line) != evidence.end();
           });
  }

  ReportFinding* ScopesDeadlock(const ReportFinding& of_threads) {
    const auto at = std::find_if(
        report_.findings.begin(), report_.findings.end(),
        [&](const ReportFinding& f) { return f.kind == "deadlock" && !f.IsSameAs(of_threads); });
    return at == report_.findings.end() ? nullptr : &*at;
  }

  // The scope's words stay; what the threads themselves say is a second witness.
  void Unite(const ReportFinding& of_threads, ReportFinding* scopes) {
    for (auto* evidence : {&scopes->evidence, &report_.evidence}) {
      const bool told =
          std::find(evidence->begin(), evidence->end(), kSecondWitness) != evidence->end();
      if (told || (evidence == &report_.evidence && evidence->empty())) continue;
      evidence->push_back(kSecondWitness);
      for (const auto* more : {&of_threads.lines, &of_threads.evidence}) {
        for (const std::string& line : *more) evidence->push_back("  " + line);
      }
    }
  }

  // Those that a finding is about, and all who wait for a thread that is known. Where the graph is
  // the scope's, its nodes say what the system calls them, and only threads that a finding is about
  // are added.
  void AddGraph() {
    const bool of_scope = !report_.graph.nodes.empty();
    for (const ReportNode& node : report_.graph.nodes) {
      if (node.thread > 0) ids_.emplace(static_cast<uint64_t>(node.thread), node.id);
    }
    std::set<uint64_t> of_findings;
    for (const ReportFinding& finding : findings_) {
      for (const auto* list : {&finding.subjects, &finding.partners, &finding.victims}) {
        for (const FindingSubject& subject : *list)
          of_findings.insert(static_cast<uint64_t>(subject.thread));
      }
    }
    for (const bool wanted : {true, false}) {
      for (const ReadJson& thread : threads_) {
        const auto tid = CountField(thread, "tid").value_or(0);
        if (const auto known = ids_.find(tid); known != ids_.end())
          NameAlso(thread, &report_.graph.nodes[known->second]);
        else if ((of_findings.count(tid) != 0) == wanted && (wanted || !of_scope))
          AddNode(thread);
      }
    }
    for (const ReadJson& thread : threads_) AddEdges(thread);
    for (const ReportFinding& finding : findings_) MarkCycle(finding);
  }

  static std::string NameOf(const ReadJson& thread) {
    return fmt::format("{} {}", CountField(thread, "tid").value_or(0), TextField(thread, "name"));
  }

  // Of a core of the scope, what it is to the system, and what that knows of its wait.
  static void NameAlso(const ReadJson& thread, ReportNode* node) {
    if (node->thread == 0 || !node->also.empty()) return;
    node->also = "thread " + NameOf(thread);
    const std::string wait = TextField(ObjectField(thread, "waits_for"), "text");
    if (!wait.empty() && wait != node->waits_for)
      node->waits_for += (node->waits_for.empty() ? "" : "; ") + wait;
  }

  void AddNode(const ReadJson& thread) {
    const auto tid = CountField(thread, "tid");
    if (!tid || report_.graph.nodes.size() == kMostThreadNodes || ids_.count(*tid) != 0) return;
    ReportNode node;
    node.id = report_.graph.nodes.size();
    node.name = NameOf(thread);
    node.state = StateOf(TextField(thread, "stand"), TextField(thread, "state"));
    const ReportPlace place = FrameOf(ObjectField(thread, "where"));
    node.place = place.source.empty() ? place.function
                                      : fmt::format("{} in {}", place.source, place.function);
    node.waits_for = TextField(ObjectField(thread, "waits_for"), "text");
    node.since = SinceOf(thread);
    node.who = TraceWho{true, static_cast<int64_t>(*tid)};
    ids_.emplace(*tid, node.id);
    report_.graph.nodes.push_back(std::move(node));
  }

  void AddEdges(const ReadJson& thread) {
    const ReadJson& wait = ObjectField(thread, "waits_for");
    const auto from = ids_.find(CountField(thread, "tid").value_or(0));
    if (from == ids_.end()) return;
    const std::string label = TextField(wait, "text");
    std::set<uint64_t> whom;
    for (const char* field : {"owner", "thread"}) whom.insert(CountField(wait, field).value_or(0));
    for (const ReadJson& child : ListField(wait, "children"))
      whom.insert(child.is_number_unsigned() ? child.get<uint64_t>() : 0);
    for (const ReadJson& file : ListField(wait, "files")) {
      for (const ReadJson& other : ListField(file, "others"))
        whom.insert(CountField(other, "pid").value_or(0));
    }
    for (const uint64_t tid : whom) {
      const auto to = ids_.find(tid);
      if (to == ids_.end() || report_.graph.edges.size() >= kMostThreadEdges ||
          IsEdge(from->second, to->second))
        continue;
      report_.graph.edges.push_back({from->second, to->second, label, false});
    }
  }

  // The scope may have said it.
  bool IsEdge(size_t from, size_t to) const {
    return std::any_of(report_.graph.edges.begin(), report_.graph.edges.end(),
                       [&](const ReportEdge& each) { return each.from == from && each.to == to; });
  }

  void MarkCycle(const ReportFinding& finding) {
    if (finding.kind != "deadlock" || !report_.graph.cycle.empty()) return;
    std::vector<size_t> cycle;
    for (const FindingSubject& subject : finding.subjects) {
      const auto at = ids_.find(static_cast<uint64_t>(subject.thread));
      if (at == ids_.end()) return;
      cycle.push_back(at->second);
    }
    report_.graph.cycle = std::move(cycle);
  }

  Report& report_;
  std::vector<ReadJson> threads_;
  std::vector<ReportFinding> findings_;
  std::map<uint64_t, size_t> ids_;  // of nodes, by thread
};

}  // namespace

Status AddThreads(FileSystem& files, const std::string& path, Report* report) {
  auto text = ReadWholeFile(files, path, kLargestFile);
  if (!text.ok()) return text.status();
  ThreadsReader reader(report);
  std::istringstream in(*text);
  size_t damaged = 0;
  for (std::string line; std::getline(in, line);) {
    const ReadJson json = ParseForeignJson(line);
    if (json.is_object())
      reader.Take(json);
    else
      ++damaged;
  }
  if (damaged > 0)
    report->warnings.push_back(fmt::format("'{}': {} lines in it are damaged", path, damaged));
  reader.Finish();
  return {};
}

}  // namespace hangscope

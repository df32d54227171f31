#include "report/report_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "snapshot/saved_threads.h"
#include "verdict/judge_picture.h"

namespace hangscope {
namespace {

constexpr size_t kMostThreads = 4096;
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

ReportTime SinceOf(const SavedThread& thread) {
  return thread.lasts ? ReportTime(-*thread.lasts) : std::nullopt;
}

class ThreadsReader {
 public:
  ThreadsReader(SavedThreads saved, Report* report)
      : report_(*report), threads_(std::move(saved.threads)), findings_(std::move(saved.findings)) {
    for (const ReportFinding& finding : findings_) {
      int rank = 0;
      for (const auto* list : {&finding.subjects, &finding.partners, &finding.victims}) {
        for (const FindingSubject& subject : *list)
          rank_.emplace(subject.thread != 0 ? subject.thread : subject.process, rank);
        ++rank;
      }
    }
    // First those that a finding is about, then who would have to act, then their waiters.
    std::stable_sort(threads_.begin(), threads_.end(),
                     [this](const SavedThread& a, const SavedThread& b) {
                       return RankOf(a.tid) < RankOf(b.tid);
                     });
  }

  void Read() {
    for (const SavedThread& thread : threads_) AddThread(thread);
    for (const ReportFinding& finding : findings_) AddFinding(finding);
    AddGraph();
  }

 private:
  static constexpr int kRankOfOthers = 3;

  int RankOf(uint64_t tid) const {
    const auto at = rank_.find(static_cast<int>(tid));
    return at == rank_.end() ? kRankOfOthers : at->second;
  }

  void AddThread(const SavedThread& saved) {
    ReportThread thread;
    thread.id = std::to_string(saved.tid);
    thread.name = saved.name;
    thread.process = saved.process;
    thread.state = saved.state;
    thread.wait = saved.does;
    thread.since = SinceOf(saved);
    thread.in_finding = RankOf(saved.tid) < 2;
    thread.frames = saved.stack;
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
    for (const bool wanted : {true, false}) {
      for (const SavedThread& thread : threads_) {
        if (const auto known = ids_.find(thread.tid); known != ids_.end())
          NameAlso(thread, &report_.graph.nodes[known->second]);
        else if ((RankOf(thread.tid) != kRankOfOthers) == wanted && (wanted || !of_scope))
          AddNode(thread);
      }
    }
    for (const SavedThread& thread : threads_) AddEdges(thread);
    for (const ReportFinding& finding : findings_) MarkCycle(finding);
  }

  static std::string NameOf(const SavedThread& thread) {
    return fmt::format("{} {}", thread.tid, thread.name);
  }

  // Of a core of the scope, what it is to the system, and what that knows of its wait.
  static void NameAlso(const SavedThread& thread, ReportNode* node) {
    if (node->thread == 0 || !node->also.empty()) return;
    node->also = "thread " + NameOf(thread);
    const std::string& wait = thread.waits_for;
    if (!wait.empty() && wait != node->waits_for)
      node->waits_for += (node->waits_for.empty() ? "" : "; ") + wait;
  }

  void AddNode(const SavedThread& thread) {
    if (report_.graph.nodes.size() == kMostThreadNodes || ids_.count(thread.tid) != 0) return;
    ReportNode node;
    node.id = report_.graph.nodes.size();
    node.name = NameOf(thread);
    node.state = StateOf(thread.stand, thread.state);
    const ReportPlace& place = thread.where;
    node.place = place.source.empty() ? place.function
                                      : fmt::format("{} in {}", place.source, place.function);
    node.waits_for = thread.waits_for;
    node.since = SinceOf(thread);
    node.who = TraceWho{true, static_cast<int64_t>(thread.tid)};
    ids_.emplace(thread.tid, node.id);
    report_.graph.nodes.push_back(std::move(node));
  }

  void AddEdges(const SavedThread& thread) {
    const auto from = ids_.find(thread.tid);
    if (from == ids_.end()) return;
    for (const uint64_t tid : thread.by) {
      const auto to = ids_.find(tid);
      if (to == ids_.end() || report_.graph.edges.size() >= kMostThreadEdges ||
          IsEdge(from->second, to->second))
        continue;
      report_.graph.edges.push_back({from->second, to->second, thread.waits_for, false});
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
  std::vector<SavedThread> threads_;
  std::vector<ReportFinding> findings_;
  std::map<int, int> rank_;         // of threads of findings
  std::map<uint64_t, size_t> ids_;  // of nodes, by thread
};

}  // namespace

Status AddThreads(FileSystem& files, const std::string& path, Report* report) {
  auto saved = ReadSavedThreads(files, path);
  if (!saved.ok()) return saved.status();
  if (saved->damaged_lines > 0)
    report->warnings.push_back(
        fmt::format("'{}': {} lines in it are damaged", path, saved->damaged_lines));
  ThreadsReader(std::move(*saved), report).Read();
  return {};
}

void AddThreadLines(const std::string& lines, Report* report) {
  ThreadsReader(ParseSavedThreads(lines), report).Read();
}

}  // namespace hangscope

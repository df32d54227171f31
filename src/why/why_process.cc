#include "why/why_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/capabilities.h"
#include "base/json_text.h"
#include "base/side_process.h"
#include "process/process_json.h"
#include "process/process_text.h"
#include "process/process_verdict.h"
#include "scope/watch_json.h"
#include "target/process_target.h"

namespace hangscope {
namespace {

// Nothing is known of what it waits for, and why is said: then "no hang found" would be a lie.
Status CheckKnown(const SystemSample& look, const ProcessJudgement& judgement) {
  const ProcessFacts& process = look.processes[0];
  if (process.warnings.empty() || !judgement.findings.empty() || process.threads.empty()) return {};
  const auto is_known = [](const ThreadFacts& thread) {
    return thread.wait.kind != WaitKind::kNone || !thread.stack.empty() ||
           thread.state == ThreadState::kRunning;
  };
  if (std::any_of(process.threads.begin(), process.threads.end(), is_known)) return {};
  return Status::Io(process.warnings[0]);
}

struct TwoLooks {
  std::vector<SystemSample> looks;
  ProcessJudgement judgement;
};

bool IsOf(int pid, const SystemSample& look) {
  return !look.processes.empty() && look.processes[0].pid == pid;
}

// The first only sees who sleeps in what, and stops nobody: whoever is stopped and goes on has run.
Result<TwoLooks> SampleTwice(Clock& clock, ProcessInspector& inspector,
                             const WhyProcessOptions& options) {
  TwoLooks two;
  InspectOptions inspect;
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
  if (!second.ok() || !IsOf(options.pid, *second))
    return Status::NotFound(
        fmt::format("process {} has ended while it was looked at", options.pid));
  two.looks.push_back(std::move(*first));
  two.looks.push_back(std::move(*second));
  two.judgement = JudgeProcess(two.looks);
  if (Status status = CheckKnown(two.looks.back(), two.judgement); !status.ok()) return status;
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

void AddNote(const std::string& sentence, Clock& clock, const WhyProcessOptions& options,
             WhyReport* report) {
  if (options.json)
    report->text +=
        WatchNoteJson(fmt::format("process {}", options.pid), "trouble", sentence, clock.Wall());
  else
    report->text += sentence + "\n";
}

}  // namespace

ProcessHangs FindProcessHangs(Clock& clock, ProcessInspector& inspector, int pid) {
  WhyProcessOptions options;
  options.pid = pid;
  options.stop = false;
  auto two = SampleTwice(clock, inspector, options);
  if (!two.ok()) return {};
  // Who started the program, and asks here, collects it in a moment.
  std::erase_if(two->judgement.findings,
                [](const ProcessFinding& each) { return each.kind == FindingKind::kZombie; });
  std::string threads = ProcessJson(SceneOf(*two, options), clock.Wall());
  return {std::move(two->judgement.findings), std::move(threads)};
}

namespace {

using PlainJson = nlohmann::json;

// Both ends are the same program.
std::string Packed(const ProcessHangs& hangs) {
  PlainJson findings = PlainJson::array();
  for (const ProcessFinding& each : hangs.findings) {
    findings.push_back({static_cast<int>(each.kind), static_cast<int>(each.confidence),
                        each.summary, each.evidence, each.doubts, each.is_warning, each.lines,
                        each.threads, each.partners, each.victims});
  }
  return JsonText(PlainJson{std::move(findings), hangs.threads});
}

ProcessHangs Unpacked(const std::string& bytes) {
  ProcessHangs hangs;
  const PlainJson json = PlainJson::parse(bytes, nullptr, false);
  if (!json.is_array() || json.size() != 2) return hangs;
  for (const PlainJson& each : json[0]) {
    ProcessFinding finding;
    finding.kind = static_cast<FindingKind>(each[0].get<int>());
    finding.confidence = static_cast<Confidence>(each[1].get<int>());
    each[2].get_to(finding.summary);
    each[3].get_to(finding.evidence);
    each[4].get_to(finding.doubts);
    each[5].get_to(finding.is_warning);
    each[6].get_to(finding.lines);
    each[7].get_to(finding.threads);
    each[8].get_to(finding.partners);
    each[9].get_to(finding.victims);
    hangs.findings.push_back(std::move(finding));
  }
  json[1].get_to(hangs.threads);
  return hangs;
}

// Whether a process beside the program's parent may look at it as well as the parent may.
bool MayLookFromBeside() {
  if (OwnCapabilities().Has(Capability::kSysPtrace)) return true;
  const auto scope = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/yama/ptrace_scope");
  return !scope.ok() || scope.value().starts_with("0");
}

}  // namespace

Result<ProcessHangs> FindProcessHangsBeside(Clock& clock, ProcessInspector& inspector, int pid) {
  if (!MayLookFromBeside()) return FindProcessHangs(clock, inspector, pid);
  const auto bytes = AskSideProcess(
      "thread-reader", {}, [&] { return Packed(FindProcessHangs(clock, inspector, pid)); });
  if (!bytes.ok()) return bytes.status();
  return Unpacked(bytes.value());
}

Result<WhyReport> AskWhyProcess(Clock& clock, ProcessInspector& inspector,
                                const WhyProcessOptions& options) {
  auto two = SampleTwice(clock, inspector, options);
  if (!two.ok()) return two.status();
  const ProcessScene scene = SceneOf(*two, options);
  return WhyReport{options.json ? ProcessJson(scene, clock.Wall()) : ProcessText(scene),
                   two->judgement.IsBad()};
}

Result<WhyReport> AskWhyPid(FileSystem& files, Clock& clock, ProcessInspector& inspector,
                            const WhyOptions& scope, const WhyProcessOptions& options) {
  if (!MayHaveScope(files, scope, options.pid)) return AskWhyProcess(clock, inspector, options);
  auto report = AskWhy(files, clock, scope);
  if (!report.ok()) {
    auto without = AskWhyProcess(clock, inspector, options);
    if (!without.ok()) return report;
    AddNote("what it records was not read: " + report.status().message(), clock, options,
            &*without);
    return without;
  }
  auto two = SampleTwice(clock, inspector, options);
  if (!two.ok()) {
    AddNote("its threads were not looked at: " + two.status().message(), clock, options, &*report);
    return report;
  }
  const ProcessScene scene = SceneOf(*two, options);
  report->text +=
      options.json ? ProcessFindingsJson(scene, clock.Wall()) : ProcessFindingsText(scene);
  report->is_bad = report->is_bad || two->judgement.IsBad();
  return report;
}

}  // namespace hangscope

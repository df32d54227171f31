#include "process/process_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "process/process_words.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

double Rounded(TimeNs ns) { return static_cast<double>(ns / 1000) / 1e6; }

Json Typed(const char* type, const ProcessScene& scene, TimeNs wall) {
  return {{"type", type},
          {"version", kJsonVersion},
          {"time", FormatWallTime(wall)},
          {"target", fmt::format("process {}", scene.look->processes[0].pid)}};
}

const char* StateName(ThreadState state) {
  switch (state) {
    case ThreadState::kRunning:
      return "running";
    case ThreadState::kSleeping:
      return "sleeping";
    case ThreadState::kDiskSleep:
      return "disk sleep";
    case ThreadState::kStopped:
      return "stopped";
    case ThreadState::kTraced:
      return "traced";
    case ThreadState::kZombie:
      return "zombie";
    case ThreadState::kDead:
      return "dead";
    case ThreadState::kUnknown:
      break;
  }
  return "unknown";
}

std::string Address(uint64_t address) { return fmt::format("{:#x}", address); }

Json FrameObject(const StackFrame& frame) {
  Json json{{"pc", Address(frame.pc)}};
  if (!frame.function.empty()) json["function"] = frame.function;
  if (!frame.source.empty()) json["source"] = frame.source;
  if (!frame.module.empty()) json["module"] = frame.module;
  return json;
}

Json FileObject(const WaitFile& file) {
  Json json{{"fd", file.fd},
            {"name", file.name},
            {"reads", file.wants_read},
            {"others", Json::array()},
            {"others_unknown", file.others_unknown}};
  for (const auto& [pid, fd] : file.others) json["others"].push_back({{"pid", pid}, {"fd", fd}});
  return json;
}

Json WaitObject(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  Json json{{"kind", WaitKindName(wait.kind)}, {"text", WaitedFor(thread, look)}};
  if (wait.address != 0) json["address"] = Address(wait.address);
  if (!wait.variable.empty()) json["variable"] = wait.variable;
  if (wait.owner) json["owner"] = *wait.owner;
  if (wait.owner_died) json["owner_died"] = true;
  if (wait.thread) json["thread"] = *wait.thread;
  if (!wait.children.empty()) json["children"] = wait.children;
  for (const WaitFile& file : wait.files) json["files"].push_back(FileObject(file));
  json["has_timeout"] = wait.has_timeout;
  return json;
}

Json SpinObject(const ThreadFacts::Spin& spin) {
  Json json{{"steps", spin.steps},
            {"period", spin.period},
            {"writes_memory", spin.writes_memory},
            {"calls_kernel", spin.calls_kernel},
            {"polls", Json::array()}};
  for (const uint64_t address : spin.polls) json["polls"].push_back(Address(address));
  if (!spin.polled_variable.empty()) json["variable"] = spin.polled_variable;
  return json;
}

Json ThreadObject(const ThreadFacts& thread, const ProcessScene& scene) {
  Json json{{"pid", thread.pid},
            {"tid", thread.tid},
            {"name", thread.name},
            {"state", StateName(thread.state)}};
  const auto stand = scene.judgement->stands.find(thread.tid);
  if (stand != scene.judgement->stands.end()) json["stand"] = ThreadStandName(stand->second);
  if (thread.since) json["for_s"] = Rounded(std::max<TimeNs>(0, scene.look->end - *thread.since));
  json["does"] = DoesWhat(thread, *scene.look);
  if (const StackFrame* const frame = OwnFrame(thread)) json["where"] = FrameObject(*frame);
  return json;
}

Json ThreadList(const std::vector<int>& tids, const ProcessScene& scene) {
  Json list = Json::array();
  for (const int tid : tids) {
    const ThreadFacts* const thread = FindThread(*scene.look, tid);
    list.push_back(thread == nullptr ? Json{{"tid", tid}} : ThreadObject(*thread, scene));
  }
  return list;
}

std::string FindingLine(const ProcessFinding& finding, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("finding", scene, wall);
  json["kind"] = FindingKindName(finding.kind);
  json["confidence"] = ConfidenceName(finding.confidence);
  json["hang"] = finding.IsBad();
  json["threads"] = ThreadList(finding.threads, scene);
  json["partners"] = finding.partners;
  json["victims"] = finding.victims;
  json["summary"] = finding.summary;
  json["lines"] = finding.lines;
  json["evidence"] = finding.evidence;
  json["doubts"] = finding.doubts;
  return JsonLine(json);
}

std::string ThreadLine(const ThreadFacts& thread, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("thread", scene, wall);
  json.update(ThreadObject(thread, scene));
  if (thread.system_call >= 0)
    json["system_call"] = {{"number", thread.system_call}, {"name", thread.system_call_name}};
  json["cpu_s"] = Rounded(thread.cpu_time);
  if (thread.wait.kind != WaitKind::kNone) json["waits_for"] = WaitObject(thread, *scene.look);
  if (thread.spin) json["spin"] = SpinObject(*thread.spin);
  json["stack"] = Json::array();
  for (const StackFrame& frame : thread.stack) json["stack"].push_back(FrameObject(frame));
  if (!thread.stack_warning.empty()) json["stack_trouble"] = thread.stack_warning;
  return JsonLine(json);
}

std::string ProcessLine(const ProcessFacts& process, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("process", scene, wall);
  json.update({{"pid", process.pid},
               {"parent", process.parent},
               {"name", process.name},
               {"command", process.command},
               {"state", StateName(process.state)}});
  json["threads"] = process.threads.size();
  json["handles_signals"] = process.handles_signals;
  json["troubles"] = process.warnings;
  return JsonLine(json);
}

}  // namespace

std::string ProcessFindingsJson(const ProcessScene& scene, TimeNs wall) {
  std::string text;
  for (const ProcessFinding& finding : scene.judgement->findings)
    text += FindingLine(finding, scene, wall);
  return text;
}

std::string ProcessJson(const ProcessScene& scene, TimeNs wall) {
  Json note = Typed("note", scene, wall);
  note["event"] = scene.judgement->IsBad() ? "bad" : "clean";
  note["text"] = ProcessHead(scene);
  note["longest_stop_s"] = Rounded(scene.look->longest_stop);
  std::string text = JsonLine(note) + ProcessFindingsJson(scene, wall);
  for (const ProcessFacts& process : scene.look->processes) {
    text += ProcessLine(process, scene, wall);
    for (const ThreadFacts& thread : process.threads) text += ThreadLine(thread, scene, wall);
  }
  return text;
}

}  // namespace hangscope

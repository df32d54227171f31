#include "process/process_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "process/process_graph.h"
#include "process/process_words.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

double Rounded(TimeNs ns) { return static_cast<double>(ns / 1000) / 1e6; }

Json Typed(const char* type, const ProcessScene& scene, TimeNs wall) {
  return TypedObject(type, TargetName(*scene.look), wall);
}

std::string Address(uint64_t address) { return fmt::format("{:#x}", address); }

Json FrameObject(const StackFrame& frame) {
  Json json = Json::object();
  if (frame.language != FrameLanguage::kNative)
    json["language"] = FrameLanguageName(frame.language);
  else
    json["pc"] = Address(frame.pc);
  if (!frame.function.empty()) json["function"] = frame.function;
  if (!frame.source.empty()) json["source"] = frame.source;
  if (!frame.module.empty()) json["module"] = frame.module;
  if (frame.of_system) json["of_system"] = true;
  return json;
}

Json HolderObjects(const std::vector<std::pair<int, int>>& holders) {
  Json list = Json::array();
  for (const auto& [pid, fd] : holders) list.push_back({{"pid", IdOnHost(pid)}, {"fd", fd}});
  return list;
}

Json FileObject(const WaitFile& file) {
  Json json{{"fd", file.fd},
            {"kind", FileKindName(file.kind)},
            {"name", file.name},
            {"reads", file.wants_read},
            {"others", HolderObjects(file.others)},
            {"others_unknown", file.others_unknown}};
  if (file.others_hidden) json["others_hidden"] = true;
  if (file.others_unsent) json["others_unsent"] = true;
  if (file.listening) json["listens"] = true;
  if (file.backlog) json["backlog"] = true;
  if (file.queued != 0) json["queued"] = file.queued;
  if (file.outside) json["outside"] = true;
  if (file.is_idle) json["idle"] = true;
  if (file.unaccepted) json["unaccepted"] = true;
  if (file.unread) json["unread"] = true;
  if (file.is_public) json["public"] = true;
  if (file.others_unsure) json["others_unsure"] = true;
  if (file.others_queue) json["others_queue"] = true;
  if (file.signals != 0) json["signals"] = file.signals;
  return json;
}

std::vector<int> OnTheirHost(std::vector<int> ids) {
  for (int& id : ids) id = IdOnHost(id);
  return ids;
}

Json WaitObject(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  Json json{{"kind", WaitKindName(wait.kind)}, {"text", WaitedFor(thread, look)}};
  if (wait.address != 0) json["address"] = Address(wait.address);
  if (!wait.object_type.empty()) json["object"] = wait.object_type;
  if (!wait.variable.empty()) json["variable"] = wait.variable;
  if (wait.shared) json["shared"] = true;
  if (!wait.shared_name.empty()) json["shared_name"] = wait.shared_name;
  if (wait.owner) json["owner"] = IdOnHost(*wait.owner);
  if (wait.owner_died) json["owner_died"] = true;
  if (wait.owner_copied) json["owner_copied"] = true;
  if (wait.owner_by_code) json["owner_by_code"] = true;
  if (!wait.sharers.empty()) json["sharers"] = wait.sharers;
  if (wait.is_public) json["public"] = true;
  if (wait.thread) json["thread"] = IdOnHost(*wait.thread);
  if (!wait.children.empty()) json["children"] = OnTheirHost(wait.children);
  if (wait.signals != 0) json["signals"] = wait.signals;
  if (wait.no_signal_comes) json["no_signal_comes"] = true;
  for (const WaitFile& file : wait.files) json["files"].push_back(FileObject(file));
  json["has_timeout"] = wait.has_timeout;
  if (wait.of_own_call) json["own_call"] = true;
  if (wait.rechecks) json["rechecks"] = true;
  if (wait.given_up_after)
    json["given_up"] = {{"after_s", Rounded(*wait.given_up_after)}, {"by", wait.given_up_by}};
  if (wait.circle_ends_after) json["circle_ends_after_s"] = Rounded(*wait.circle_ends_after);
  return json;
}

Json SpinObject(const ThreadFacts::Spin& spin) {
  Json json{{"steps", spin.steps},
            {"period", spin.period},
            {"writes_memory", spin.writes_memory},
            {"calls_kernel", spin.calls_kernel},
            {"polls", Json::array()}};
  constexpr size_t kMostPolls = 64;
  for (size_t i = 0; i < std::min(spin.polls.size(), kMostPolls); ++i)
    json["polls"].push_back(Address(spin.polls[i]));
  for (const ThreadFacts::Spin::Call& call : spin.calls)
    json["calls"].push_back({{"name", call.name},
                             {"result", call.result},
                             {"ready", call.ready},
                             {"asks", call.wait.kind != WaitKind::kNone}});
  if (!spin.polled_variable.empty()) json["variable"] = spin.polled_variable;
  if (spin.polls_shared) json["polls_shared"] = true;
  if (spin.in_part) json["in_part"] = true;
  if (spin.naps) json["naps"] = true;
  if (!spin.flickers.empty() || spin.flickers_cut) json["changes_and_restores"] = true;
  if (spin.held_with_others) json["held_with_others"] = true;
  return json;
}

Json ThreadObject(const ThreadFacts& thread, const ProcessScene& scene) {
  Json json{{"pid", IdOnHost(thread.pid)},
            {"tid", IdOnHost(thread.tid)},
            {"name", thread.name},
            {"state", ThreadStateName(thread.state)}};
  if (!thread.host.empty()) json["host"] = thread.host;
  const auto stand = scene.judgement->stands.find(thread.tid);
  if (stand != scene.judgement->stands.end()) json["stand"] = ThreadStandName(stand->second);
  if (const auto lasted = HasLasted(thread, *scene.look)) json["for_s"] = Rounded(*lasted);
  json["does"] = DoesWhat(thread, *scene.look);
  if (const StackFrame* const frame = OwnFrame(thread)) json["where"] = FrameObject(*frame);
  return json;
}

Json SessionObject(const SessionFacts& session) {
  return {{"server", session.server},     {"user", session.user},
          {"database", session.database}, {"application", session.application},
          {"state", session.state},       {"statement", session.statement}};
}

Json TaskObject(const TaskFacts& task, const ThreadFacts& thread) {
  Json json{{"name", task.name}};
  if (!task.waits_for.empty()) json["waits_for"] = task.waits_for;
  for (const size_t other : task.tasks) json["tasks"].push_back(thread.tasks[other].name);
  if (task.has_timeout) json["has_timeout"] = true;
  if (task.is_stranded) json["stranded"] = true;
  if (task.is_awaited) json["awaited"] = true;
  json["stack"] = Json::array();
  for (const StackFrame& frame : task.stack) json["stack"].push_back(FrameObject(frame));
  return json;
}

std::string ThreadLine(const ThreadFacts& thread, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("thread", scene, wall);
  json.update(ThreadObject(thread, scene));
  if (thread.system_call >= 0)
    json["system_call"] = {{"number", thread.system_call}, {"name", thread.system_call_name}};
  if (!thread.kernel_function.empty()) json["kernel_function"] = thread.kernel_function;
  if (!thread.kernel_stack.empty()) json["kernel_stack"] = thread.kernel_stack;
  json["cpu_s"] = Rounded(thread.cpu_time);
  if (thread.of_runtime) json["of_runtime"] = true;
  if (thread.stands_by) json["stands_by"] = true;
  if (thread.wait.kind != WaitKind::kNone) json["waits_for"] = WaitObject(thread, *scene.look);
  if (thread.spin) json["spin"] = SpinObject(*thread.spin);
  json["stack"] = Json::array();
  for (const StackFrame& frame : thread.stack) json["stack"].push_back(FrameObject(frame));
  for (const TaskFacts& task : thread.tasks) json["tasks"].push_back(TaskObject(task, thread));
  if (!thread.stack_warning.empty()) json["stack_trouble"] = thread.stack_warning;
  return JsonLine(json);
}

std::string RemoteEndLine(const RemoteEnd& end, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("connection", scene, wall);
  json.update({{"local", end.local},
               {"remote", end.remote},
               {"holders", HolderObjects(end.holders)},
               {"others_unknown", end.others_unknown}});
  return JsonLine(json);
}

std::string ProcessLine(const ProcessFacts& process, const ProcessScene& scene, TimeNs wall) {
  Json json = Typed("process", scene, wall);
  json.update({{"pid", IdOnHost(process.pid)},
               {"parent", IdOnHost(process.parent)},
               {"name", process.name},
               {"command", process.command},
               {"state", ThreadStateName(process.state)}});
  if (!process.host.empty()) json["host"] = process.host;
  json["threads"] = process.threads.size();
  json["handles_signals"] = SignalsFromOutside(process) != 0;
  json["caught_signals"] = process.caught_signals;
  if (process.runtime_signals != 0) json["runtime_signals"] = process.runtime_signals;
  if (!process.shares_memory_with.empty())
    json["shares_memory_with"] = OnTheirHost(process.shares_memory_with);
  if (process.is_hidden) json["hidden"] = true;
  if (process.stop_signal != 0) json["stop_signal"] = process.stop_signal;
  if (process.stopped_in_background) json["in_background"] = true;
  if (process.tracer != 0) {
    json["tracer"] = IdOnHost(process.tracer);
    json["tracer_name"] = process.tracer_name;
  }
  if (!process.frozen_by.empty()) json["frozen_by"] = process.frozen_by;
  if (process.session) json["session"] = SessionObject(*process.session);
  json["troubles"] = process.warnings;
  return JsonLine(json);
}

}  // namespace

std::string ProcessJson(const ProcessScene& scene, TimeNs wall, TimeNs monotonic) {
  Json note = Typed("note", scene, wall);
  note["event"] = "looked";
  note["text"] = ProcessHead(scene);
  note["longest_stop_s"] = Rounded(scene.look->longest_stop);
  note["wall_ns"] = wall;  // as `time`, to the nanosecond
  note["monotonic_ns"] = monotonic;
  note["host"] = scene.look->host;
  note["boot_id"] = scene.look->boot;
  note["asked"] = OnTheirHost(scene.look->asked);
  note["asked_are_all"] = scene.look->asked_are_all;
  std::string text = JsonLine(note);
  for (const ProcessFacts& process : scene.look->processes) {
    text += ProcessLine(process, scene, wall);
    for (const ThreadFacts& thread : process.threads) text += ThreadLine(thread, scene, wall);
  }
  for (const RemoteEnd& end : scene.look->remote_ends) text += RemoteEndLine(end, scene, wall);
  return text;
}

}  // namespace hangscope

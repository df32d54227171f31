#include "process/judged_processes.h"

#include <algorithm>

#include "process/process_standing.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

std::vector<bool> FindStuck(const ProcessGraph& graph) {
  std::vector<bool> stuck(graph.nodes().size(), false);
  for (const WaitCause& cause : FindCauses(graph.waits())) {
    for (const auto* list : {&cause.members, &cause.victims}) {
      for (const uint32_t i : *list) stuck[i] = true;
    }
  }
  return stuck;
}

// The side of a pseudo-terminal of who made it: what comes from there, its children write.
bool IsTerminalOfChildren(const WaitFile& file) {
  return file.name == "/dev/ptmx" || file.name == "/dev/pts/ptmx";
}

}  // namespace

JudgedProcesses::JudgedProcesses(const std::vector<SystemSample>& its_looks)
    : looks(its_looks),
      look(looks.back()),
      graph(looks),
      asked(AskedProcesses(look)),
      stuck(FindStuck(graph)) {}

std::set<int> JudgedProcesses::PidsOf(const std::vector<uint32_t>& nodes) const {
  std::set<int> pids;
  for (const uint32_t i : nodes) pids.insert(node(i).pid);
  return pids;
}

size_t JudgedProcesses::LiveThreads(const std::set<int>& pids) const {
  return static_cast<size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const ProcessNode& node) {
        return node.kind == ProcessNode::Kind::kThread && node.stand != ThreadStand::kEnded &&
               pids.count(node.pid) != 0;
      }));
}

std::set<int> WaitsForProcesses(const ThreadFacts& thread, const SystemSample& look) {
  if (thread.state != ThreadState::kSleeping) return {};
  const ThreadWait& wait = thread.wait;
  std::set<int> pids(wait.children.begin(), wait.children.end());
  for (const WaitFile& file : wait.files) {
    // A shell that reads its terminal, a server that takes connections: it does not wait for these.
    const bool takes_any = file.outside || file.listening || file.is_public;
    if (!IsTerminalOfChildren(file) && takes_any) return {};
    for (const auto& [pid, fd] : file.others) pids.insert(pid);
  }
  if (wait.owner && wait.kind == WaitKind::kFileLock) pids.insert(*wait.owner);
  const ThreadFacts* const owner =
      wait.owner && wait.shared ? FindThread(look, *wait.owner) : nullptr;
  if (owner != nullptr) pids.insert(owner->pid);
  pids.erase(thread.pid);
  return pids;
}

bool IdlesInRuntime(const ThreadFacts& thread) {
  bool in_library = false;
  for (const StackFrame& frame : thread.stack) {
    if (frame.module.starts_with("libc.so")) continue;
    for (const char* name : {"uv__io_poll", "PlatformWorkerThread", "StartIoThreadMain"}) {
      if (frame.function.find(name) != std::string::npos) return true;
    }
    // What a stripped library has below its loop has no name; what the loop calls is none of it.
    if (frame.function == "uv_run" || frame.function == "g_main_loop_run" ||
        frame.function == "g_main_context_iteration")
      return true;
    in_library = frame.module.starts_with("libuv") || frame.module.starts_with("libglib") ||
                 frame.module.starts_with("libzmq");
    if (!in_library && !frame.function.starts_with("uv_")) return frame.function == "worker";
  }
  return in_library;
}

std::tuple<WaitKind, uint64_t, std::string, int> ObjectOf(const ThreadWait& wait) {
  // Each process has it at an address of its own.
  if (!wait.shared_name.empty()) return {wait.kind, 0, wait.shared_name, -1};
  return {wait.kind, wait.address, wait.variable, wait.files.empty() ? -1 : wait.files[0].fd};
}

}  // namespace hangscope

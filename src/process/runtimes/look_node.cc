// ProcessLook's threads of Node.js: where they are in JavaScript, and which of them only serve it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "process/process_look.h"
#include "process/signal_sets.h"
#include "runtime/v8/uv_signals.h"

namespace hangscope {
namespace {

// The functions that V8 has compiled into the program's file: its interpreter, its calls.
constexpr std::string_view kBuiltins = "Builtins_";

bool IsOfNode(const MemoryMapping& mapping) {
  const std::string name = NameOf(mapping.path);
  return name == "node" || name == "nodejs" || name.starts_with("libnode.so");
}

// Code of no file: what V8 has compiled of JavaScript; or one of its builtins.
bool IsOfV8(const StackFrame& frame) {
  return frame.function.starts_with(kBuiltins) || (frame.function.empty() && frame.module.empty());
}

// What leads from JavaScript to the function it called, and says nothing itself.
bool IsFoldedOfV8(const StackFrame& frame) {
  return frame.function.starts_with("v8::internal::") &&
         !frame.function.starts_with("v8::internal::FutexEmulation::");
}

// Threads that Node starts for itself and for libuv, by a function that they are in all their life.
bool ServesNode(const std::vector<StackFrame>& stack) {
  constexpr std::string_view kBegins[] = {
      "node::WorkerThreadsTaskRunner::", "node::(anonymous namespace)::PlatformWorkerThread",
      "node::inspector::"};
  return std::any_of(stack.begin(), stack.end(), [&](const StackFrame& frame) {
    return (frame.function == "worker" && frame.source.starts_with("threadpool.c:")) ||
           std::any_of(std::begin(kBegins), std::end(kBegins),
                       [&](std::string_view begin) { return frame.function.starts_with(begin); });
  });
}

}  // namespace

void ProcessLook::FindNode() {
  const auto node = std::find_if(mappings_.begin(), mappings_.end(), [](const MemoryMapping& m) {
    return m.executable && IsOfNode(m);
  });
  if (node == mappings_.end() || facts_.is_32_bit) return;
  const auto find = [&](std::string_view name) { return walker_->AddressOf(node->begin, name); };
  auto v8 = V8Reader::Open(find, read_memory_);
  if (v8.ok())
    v8_ = std::move(*v8);
  else
    Warn(fmt::format("javascript frames: {}; kill -USR1 {} has Node.js open its inspector",
                     v8.status().message(), pid_));
  // Handlers of JavaScript are in a tree of libuv's. Node's own set a terminal back, start the
  // inspector, or find bounds of WebAssembly.
  constexpr uint64_t kOfNode =
      SignalBit(SIGINT) | SignalBit(SIGTERM) | SignalBit(SIGUSR1) | SignalBit(SIGSEGV);
  const auto tree = find("uv__signal_tree");
  const auto of_program = tree ? SignalsOfLoops(*tree, read_memory_) : std::nullopt;
  if (of_program) facts_.runtime_signals |= kOfNode & ~*of_program;
}

// What the thread has called from JavaScript on, then the frames of JavaScript. What native code
// called to get there says nothing.
void ProcessLook::AddScripts(const Work& work, ThreadFacts* thread) {
  if (!v8_) return;
  thread->stands_by = ServesNode(thread->stack);
  const auto is_builtin = [&](uint64_t pc) {
    const auto function = walker_->FunctionAt(pc);
    return function && function->name.starts_with(kBuiltins);
  };
  const auto is_of_v8 = [&](const StackPlace& place) {
    const MemoryMapping* const mapping = FindMapping(mappings_, place.pc);
    return mapping != nullptr &&
           (mapping->path.empty() || mapping->path.starts_with("[anon") || is_builtin(place.pc));
  };
  const auto place = std::find_if(work.places.begin(), work.places.end(), is_of_v8);
  if (place == work.places.end() || !place->stack_pointer) return;
  const MemoryMapping* const stack = FindMapping(mappings_, *place->stack_pointer);
  if (stack == nullptr) return;
  const std::vector<ScriptFrame> scripts =
      v8_->FramesFrom({place->pc, place->calls, *place->stack_pointer, place->frame_pointer},
                      stack->end, context_.options.most_frames, is_builtin);
  if (scripts.empty()) return;
  std::vector<StackFrame> merged;
  for (const StackFrame& frame : thread->stack) {
    if (IsOfV8(frame)) break;
    if (IsFoldedOfV8(frame)) continue;
    merged.push_back(frame);
    merged.back().of_system = frame.of_system || frame.function.starts_with("v8::");
  }
  for (const ScriptFrame& script : scripts) merged.push_back(V8Reader::Name(script));
  if (merged.size() > context_.options.most_frames) merged.resize(context_.options.most_frames);
  thread->stack = std::move(merged);
  thread->stack_incomplete = false;
  thread->stack_warning.clear();
  const bool is_compiled =
      std::any_of(scripts.begin(), scripts.end(), [](const ScriptFrame& frame) {
        return frame.line == 0 && frame.first_line != 0 && !frame.file.starts_with("node:");
      });
  if (is_compiled)
    thread->stack_warning = "of functions that V8 has compiled, the line is the one they begin in";
}

}  // namespace hangscope

// ProcessLook's shells: where in their scripts they are, and what these open later.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "process/process_look.h"
#include "runtime/bash/bash_script.h"

namespace hangscope {

void ProcessLook::FindShell() {
#if defined(__x86_64__) || defined(__aarch64__)
  if (facts_.is_32_bit) return;
  const auto shell = std::find_if(mappings_.begin(), mappings_.end(), [](const auto& mapping) {
    return mapping.executable && NameOf(mapping.path) == "bash";
  });
  if (shell == mappings_.end()) return;
  auto bash = BashReader::Open(
      [&](std::string_view name) { return walker_->AddressOf(shell->begin, name); }, read_memory_);
  if (!bash.ok()) return Warn("lines of the script: " + bash.status().message());
  shell_frames_ = bash->Frames(context_.options.most_frames);
#endif
}

// What the shell has called, then the frames of its script.
void ProcessLook::AddShellTo(ThreadFacts* thread) const {
  if (thread->tid != pid_ || shell_frames_.empty() || !context_.options.stacks) return;
  std::vector<StackFrame>& stack = thread->stack;
  stack.erase(std::find_if(stack.begin(), stack.end(),
                           [](const StackFrame& frame) { return frame.module == "bash"; }),
              stack.end());
  for (const BashFrame& frame : shell_frames_) stack.push_back(BashReader::Name(frame));
  if (stack.size() > context_.options.most_frames) stack.resize(context_.options.most_frames);
  thread->stack_incomplete = false;
  thread->stack_warning.clear();
}

// Its script opens a file of this name behind the place where it is.
bool ProcessLook::ScriptOpensLater(const WaitFile& wanted) const {
  constexpr size_t kMostScripts = 12;
  if (shell_frames_.empty()) return false;
  std::string waits_at;
  for (const ThreadFacts& thread : facts_.threads) {
    if (thread.wait.kind == WaitKind::kOpen) waits_at = NameOf(thread.wait.files[0].name);
  }
  const std::string name(NameOf(wanted.name));
  for (size_t i = 0; i < std::min(shell_frames_.size(), kMostScripts); ++i) {
    const BashFrame& frame = shell_frames_[i];
    if (frame.line == 0 || frame.script.empty() || frame.script == "-c") continue;
    const std::string path =
        fmt::format("{}/{}/{}", living_, frame.script[0] == '/' ? "root" : "cwd", frame.script);
    const auto identity = context_.proc.Identify(path);
    if (!identity || !identity->is_regular) continue;
    const std::vector<Redirection> later = RedirectionsAfter(
        context_.proc.Read(path).value_or(""), frame.line, frame.function, i == 0 ? waits_at : "");
    if (std::any_of(later.begin(), later.end(), [&](const Redirection& each) {
          return each.name == name && (wanted.wants_read ? each.writes : each.reads);
        }))
      return true;
  }
  return false;
}

}  // namespace hangscope

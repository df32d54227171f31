#include "observe/crash_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file_system.h"
#include "base/signal_text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "process/core_stack.h"

namespace hangscope {
namespace {

constexpr size_t kMostCrashesReported = 3;

// "Crash  crash.c:3  <- main  crash.c:9"
std::string WhereText(const std::vector<std::string>& frames) {
  constexpr size_t kMostFramesTold = 6;
  std::string where = Printable(frames[0]);
  for (size_t i = 1; i < std::min(frames.size(), kMostFramesTold); ++i)
    where += (i == 1 ? "  <- " : " <- ") + Printable(frames[i]);
  return where;
}

std::string WhyNoStack(const Result<CrashStack>& crash) {
  return crash.ok() ? "no stack of the crash: its core dump has none" : crash.status().message();
}

SubjectStack CrashSubject(CrashStack crash, int pid, const std::string& name,
                          const std::string& command) {
  SubjectStack stack;
  stack.thread = crash.thread;
  stack.name = std::to_string(crash.thread);
  stack.process = fmt::format("{} {}", pid, name);
  stack.command = command;
  stack.frames = std::move(crash.frames);
  return stack;
}

}  // namespace

void AddProgramCrash(int pid, const std::vector<std::string>& command, TimeNs started,
                     Verdict* verdict) {
  auto crash = ReadCrashStack(CorePattern(), pid, started);
  if (!crash.ok() || crash->frames.empty()) {
    verdict->evidence.push_back(WhyNoStack(crash));
    return;
  }
  verdict->evidence.push_back(
      fmt::format("thread {} crashed in {}", crash->thread, WhereText(crash->frames)));
  verdict->evidence.push_back("core dump: " + crash->core);
  verdict->stacks.push_back(CrashSubject(std::move(*crash), pid,
                                         command.empty() ? "" : NameOf(command[0]),
                                         fmt::format("{}", fmt::join(command, " "))));
}

std::string CrashNotes::Add(const ProcessCrash& crash, TimeNs started, TimeNs after) {
  if (sentences_.size() == kMostCrashesReported) {
    ++unreported_;
    return {};
  }
  std::string text =
      fmt::format("{}{}{} was killed by {} after {}", crash.pid, crash.name.empty() ? "" : " ",
                  Printable(crash.name), SignalText(crash.signal), FormatElapsed(after));
  const std::string pattern = CorePattern();
  auto stack = ReadCrashStack(pattern, crash.pid, started, crash.folder);
  if (!stack.ok() && crash.wrote_core && !pattern.starts_with('|'))
    stack = Status::NotFound("no stack of the crash: its core dump was not found");
  if (stack.ok() && !stack->frames.empty()) {
    text += fmt::format(", in {}; core dump: {}", WhereText(stack->frames), Printable(stack->core));
    stacks_.push_back(CrashSubject(std::move(*stack), crash.pid, crash.name, crash.command));
  } else {
    text += "; " + WhyNoStack(stack);
  }
  sentences_.push_back(text);
  return text;
}

void CrashNotes::AddTo(Verdict* verdict) const {
  std::vector<std::string>& evidence = verdict->evidence;
  for (const std::string& sentence : sentences_) {
    if (std::find(evidence.begin(), evidence.end(), sentence) == evidence.end())
      evidence.push_back(sentence);
  }
  if (unreported_ > 0) evidence.push_back(fmt::format("{} more processes crashed", unreported_));
  for (const SubjectStack& stack : stacks_) {
    const bool is_there =
        std::any_of(verdict->stacks.begin(), verdict->stacks.end(),
                    [&](const SubjectStack& each) { return each.thread == stack.thread; });
    if (!is_there) verdict->stacks.push_back(stack);
  }
}

}  // namespace hangscope

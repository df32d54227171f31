#include "observe/thread_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_fields.h"
#include "base/json_text.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostStacks = 8;
constexpr size_t kMostFramesOfAStack = 24;

std::string FrameText(const Json& frame) {
  std::string text = TextField(frame, "function");
  if (text.empty()) text = TextField(frame, "pc");
  const std::string source = TextField(frame, "source");
  const std::string at = source.empty() ? TextField(frame, "module") : source;
  return text + (at.empty() ? "" : "  " + at);
}

SubjectStack StackOf(const Json& thread) {
  SubjectStack stack;
  const auto id = IntegerField(thread, "tid").value_or(0);
  stack.thread = static_cast<int>(id);
  stack.name = fmt::format("{} {}", id, TextField(thread, "name"));
  const auto& frames = ListField(thread, "stack");
  for (const Json& frame : frames) {
    if (stack.frames.size() < kMostFramesOfAStack) stack.frames.push_back(FrameText(frame));
  }
  stack.omitted = frames.size() - stack.frames.size();
  return stack;
}

// Whose stacks tell something, each once.
std::vector<int> ThreadsToTell(const Verdict& verdict) {
  std::vector<int> threads;
  for (const Finding& finding : verdict.findings) {
    for (const auto* list : {&finding.subjects, &finding.partners}) {
      for (const FindingSubject& subject : *list) {
        if (subject.thread != 0 &&
            std::find(threads.begin(), threads.end(), subject.thread) == threads.end())
          threads.push_back(subject.thread);
      }
    }
  }
  threads.resize(std::min(threads.size(), kMostStacks));
  return threads;
}

}  // namespace

std::vector<SubjectStack> StacksOf(const Verdict& verdict, const std::string& threads) {
  const std::vector<int> wanted = ThreadsToTell(verdict);
  if (wanted.empty()) return {};
  std::map<int64_t, std::pair<std::string, std::string>> processes;  // name and command
  std::map<int, SubjectStack> found;
  std::istringstream lines(threads);
  for (std::string line; std::getline(lines, line);) {
    const Json json = ParseForeignJson(line);
    const std::string type = TextField(json, "type");
    const int64_t pid = IntegerField(json, "pid").value_or(0);
    if (type == "process") processes[pid] = {TextField(json, "name"), TextField(json, "command")};
    if (type != "thread") continue;
    SubjectStack stack = StackOf(json);
    if (std::find(wanted.begin(), wanted.end(), stack.thread) == wanted.end()) continue;
    stack.process = fmt::format("{} {}", pid, processes[pid].first);
    stack.command = processes[pid].second;
    found[stack.thread] = std::move(stack);
  }
  std::vector<SubjectStack> stacks;
  for (const int thread : wanted) {
    if (const auto at = found.find(thread); at != found.end()) stacks.push_back(at->second);
  }
  return stacks;
}

}  // namespace hangscope

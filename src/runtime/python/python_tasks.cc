#include "runtime/python/python_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/python/python_cancels.h"
#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace task_layout = python_layout;

constexpr size_t kMostTasks = 512;
constexpr size_t kMostTaskFrames = 64;

bool IsOfAsyncio(const PythonCode& code, std::string_view function, std::string_view file) {
  return code.function == function && IsOfAsyncio(code) && code.path.ends_with(file);
}

// "lock" of "Lock".
std::string Lower(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

// Those that wait for themselves, over others or not.
std::set<size_t> InCircles(const std::vector<TaskFacts>& facts) {
  std::set<size_t> found;
  for (size_t start = 0; start < facts.size(); ++start) {
    std::vector<bool> seen(facts.size());
    std::vector<size_t> open = {start};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const size_t next : facts[at].tasks) {
        if (next == start) found.insert(start);
        if (next < facts.size() && !seen[next]) open.push_back(next);
        if (next < facts.size()) seen[next] = true;
      }
    }
  }
  return found;
}

// It cancels what runs inside of it after a time.
bool LimitsTime(std::string_view type) {
  return type.find("imeout") != std::string_view::npos ||
         type.find("CancelScope") != std::string_view::npos;
}

}  // namespace

const PythonCode* PythonTasks::CodeOf(const PythonFrame& frame) {
  auto code = reader_.CodeAt(frame.code);
  return code.ok() ? *code : nullptr;
}

// What a suspended frame awaits lies on top of its values.
uint64_t PythonTasks::AwaitedBy(const PythonFrame& frame) {
  const PythonCode* const code = CodeOf(frame);
  int32_t top = 0;
  constexpr int64_t kMostValues = 4096;
  if (code == nullptr ||
      !reader_.objects().Read(frame.address + task_layout::kFrameTop, &top, sizeof top) ||
      top <= static_cast<int64_t>(code->variables) || top > kMostValues)
    return 0;
  return reader_.objects().Pointer(frame.address + task_layout::kFrameValues +
                                   static_cast<uint64_t>(top - 1) * 8);
}

std::vector<PythonFrame> PythonTasks::FramesOf(uint64_t coroutine) {
  PythonObjects& objects = reader_.objects();
  std::vector<PythonFrame> frames;
  uint64_t at = coroutine;
  while (frames.size() < kMostTaskFrames) {
    if (objects.IsBuiltin(at, "coroutine_wrapper") ||
        objects.IsBuiltin(at, "async_generator_asend"))
      at = objects.Pointer(at + task_layout::kWrapped);
    const std::vector<PythonFrame> found = waits_.values().FrameOf(at);
    if (found.empty()) break;
    frames.push_back(found[0]);
    int8_t state = task_layout::kGeneratorRuns;
    if (!objects.Read(at + task_layout::kGeneratorState, &state, 1) ||
        state != task_layout::kGeneratorSuspended)
      break;
    at = AwaitedBy(found[0]);
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

// The module of tasks is a global of the module that runs loops, and has all tasks in a weak set.
std::vector<PythonTasks::Task> PythonTasks::FindTasks(uint64_t loop,
                                                      const PythonFrame& loop_frame) {
  PythonObjects& objects = reader_.objects();
  std::vector<Task> tasks;
  uint64_t module = 0;
  for (const PythonObjects::Entry& global : waits_.values().Globals(loop_frame)) {
    if (objects.IsBuiltin(global.object, "module") && objects.NameOf(global) == "tasks")
      module = global.object;
  }
  if (loop == 0 || module == 0) return tasks;
  uint64_t all = 0;
  for (const PythonObjects::Entry& item :
       objects.Items(objects.Pointer(module + task_layout::kModuleDict))) {
    if (objects.NameOf(item) == "_all_tasks") all = item.object;
  }
  for (const uint64_t reference : objects.Members(objects.Attribute(all, "data"))) {
    const uint64_t object = objects.Referent(reference);
    int32_t state = -1;
    if (tasks.size() == kMostTasks || objects.TypeName(object) != "_asyncio.Task" ||
        objects.Pointer(object + task_layout::kTaskLoop) != loop ||
        !reader_.objects().Read(object + task_layout::kTaskState, &state, sizeof state) ||
        state != 0)
      continue;
    Task task;
    task.object = object;
    task.frames = FramesOf(objects.Pointer(object + task_layout::kTaskCoroutine));
    for (const PythonFrame& frame : task.frames) {
      for (const char* exit : {"__aexit__", "__exit__"}) {
        for (const uint64_t manager : waits_.values().Entered(frame, exit))
          task.entered.push_back(manager);
      }
    }
    task.kept = waits_.Kept(task.frames, "__aexit__");
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// A plain future: the functions of asyncio that await it say what it is for.
void PythonTasks::ExplainFuture(const std::vector<Task>& tasks, size_t which,
                                std::vector<TaskFacts>* facts) {
  PythonObjects& objects = reader_.objects();
  TaskFacts& told = (*facts)[which];
  told.waits_for = "a future";
  uint64_t self = 0;
  std::string function;
  for (const PythonFrame& frame : tasks[which].frames) {
    const PythonCode* const code = CodeOf(frame);
    if (code == nullptr || !IsOfAsyncio(*code)) break;
    function = code->function;
    if (function == "sleep") break;
    if (const uint64_t its = waits_.values().Self(frame); its != 0) self = its;
  }
  if (function.empty()) return;
  told.waits_for = function == "sleep" ? "time to pass" : function;
  const auto* const type = objects.TypeOf(self);
  if (type == nullptr || function == "sleep") return;
  constexpr std::string_view kSignalled[] = {"Lock",    "Event",     "Condition",
                                             "Queue",   "Semaphore", "BoundedSemaphore",
                                             "Barrier", "LifoQueue", "PriorityQueue"};
  if (std::count(std::begin(kSignalled), std::end(kSignalled), type->ShortName()) == 0) return;
  std::string name = waits_.NameOf(self, tasks[which].frames);
  told.waits_for = fmt::format("{} {}", Lower(type->ShortName()),
                               name.empty() ? fmt::format("at {:#x}", self) : name);
  if (type->ShortName() != "Lock") return;
  std::vector<size_t> holders;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (std::count(tasks[i].kept.begin(), tasks[i].kept.end(), self) != 0) holders.push_back(i);
  }
  if (holders.size() != 1) return;
  told.tasks = holders;
  told.holder = (*facts)[holders[0]].name;
}

void PythonTasks::ExplainTask(const std::vector<Task>& tasks, const Indices& indices, size_t which,
                              std::vector<TaskFacts>* facts) {
  PythonObjects& objects = reader_.objects();
  TaskFacts& told = (*facts)[which];
  const uint64_t future = objects.Pointer(tasks[which].object + task_layout::kTaskWaiter);
  if (future == 0) return;
  if (const auto task = indices.find(future); task != indices.end()) {
    told.tasks = {task->second};
    told.waits_for = fmt::format("the end of task {}", (*facts)[task->second].name);
    return;
  }
  if (objects.TypeName(future) != "_GatheringFuture") return ExplainFuture(tasks, which, facts);
  for (const uint64_t child : objects.Elements(objects.Attribute(future, "_children"))) {
    if (const auto task = indices.find(child); task != indices.end())
      told.tasks.push_back(task->second);
  }
  told.waits_for =
      fmt::format("the end of {} task{}", told.tasks.size(), told.tasks.size() == 1 ? "" : "s");
}

// The tasks that asyncio.wait_for runs, which it cancels after a time; where not `limited_only`,
// those of a group of tasks, too, which end with it.
std::vector<size_t> PythonTasks::CancelledWith(const Task& task, const Indices& indices,
                                               bool limited_only) {
  PythonObjects& objects = reader_.objects();
  std::vector<uint64_t> inner;
  for (const PythonFrame& frame : task.frames) {
    const PythonCode* const code = CodeOf(frame);
    if (code == nullptr || !IsOfAsyncio(*code)) continue;
    if (IsOfAsyncio(*code, "wait_for", "/tasks.py")) {
      for (const PythonObjects::Entry& variable : waits_.values().Variables(frame)) {
        inner.push_back(variable.object);
        if (objects.TypeName(variable.object) != "_GatheringFuture") continue;
        const auto children = objects.Elements(objects.Attribute(variable.object, "_children"));
        inner.insert(inner.end(), children.begin(), children.end());
      }
    } else if (!limited_only && code->function.starts_with("TaskGroup.")) {
      const auto children =
          objects.Members(objects.Attribute(waits_.values().Self(frame), "_tasks"));
      inner.insert(inner.end(), children.begin(), children.end());
    }
  }
  for (const uint64_t manager : task.entered) {
    if (limited_only || objects.TypeName(manager) != "TaskGroup") continue;
    const auto children = objects.Members(objects.Attribute(manager, "_tasks"));
    inner.insert(inner.end(), children.begin(), children.end());
  }
  std::vector<size_t> found;
  for (const uint64_t object : inner) {
    if (const auto index = indices.find(object); index != indices.end())
      found.push_back(index->second);
  }
  return found;
}

// The tasks of asyncio.wait, whose first or last end lets it go on, or those of a group at its end;
// none: it waits for no such, or only for a time.
std::vector<size_t> PythonTasks::WaitedTogether(const Task& task, const Indices& indices) {
  PythonObjects& objects = reader_.objects();
  std::vector<size_t> found;
  for (const PythonFrame& frame : task.frames) {
    const PythonCode* const code = CodeOf(frame);
    if (code == nullptr || !IsOfAsyncio(*code)) break;
    if (IsOfAsyncio(*code, "TaskGroup.__aexit__", "/taskgroups.py")) {
      for (const uint64_t each :
           objects.Members(objects.Attribute(waits_.values().Self(frame), "_tasks"))) {
        if (const auto index = indices.find(each); index != indices.end())
          found.push_back(index->second);
      }
    }
    if (!IsOfAsyncio(*code, "_wait", "/tasks.py")) continue;
    for (const PythonObjects::Entry& variable : waits_.values().Variables(frame)) {
      const std::string name = objects.NameOf(variable);
      if (name == "timeout" && objects.TypeName(variable.object) != "NoneType") return {};
      if (name != "fs") continue;
      for (const uint64_t each : objects.Members(variable.object)) {
        const auto index = indices.find(each);
        if (index == indices.end()) return {};
        found.push_back(index->second);
      }
    }
  }
  return found;
}

// Which may be cancelled. Who waits for one of a circle does nothing until that ends; the others,
// and timers, may cancel what they have. What a timer cancels for sure has a time limit.
std::vector<bool> PythonTasks::FindCancels(uint64_t loop, const std::vector<Task>& tasks,
                                           const Indices& indices, std::vector<TaskFacts>* facts) {
  std::vector<bool> may(tasks.size());
  std::set<size_t> stand = InCircles(*facts);
  if (stand.empty()) return may;
  for (size_t before = 0; before != stand.size();) {
    before = stand.size();
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto stands = [&](size_t other) { return stand.count(other) != 0; };
      const std::vector<size_t>& awaited = (*facts)[i].tasks;
      const std::vector<size_t> together = WaitedTogether(tasks[i], indices);
      if (std::any_of(awaited.begin(), awaited.end(), stands) ||
          (!together.empty() && std::all_of(together.begin(), together.end(), stands)))
        stand.insert(i);
    }
  }
  PythonCancels cancels(reader_, waits_, indices);
  std::set<size_t> surely;
  std::set<size_t> perhaps;
  cancels.FindByTimers(loop, &surely, &perhaps);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (stand.count(i) == 0) perhaps.merge(cancels.HeldBy(tasks[i].frames));
  }
  for (const size_t each : surely) (*facts)[each].has_timeout = true;
  for (const size_t each : perhaps) may[each] = true;
  // What has not been looked at may have any of them.
  if (reader_.objects().HasRefused()) may.assign(tasks.size(), true);
  return may;
}

// The end of one is that of those which it waits for.
void PythonTasks::EndWhatTheyWaitFor(const std::vector<Task>& tasks, const Indices& indices,
                                     const std::vector<TaskFacts>& facts, std::vector<bool>* end) {
  std::vector<size_t> open;
  for (size_t i = 0; i < facts.size(); ++i) {
    if ((*end)[i]) open.push_back(i);
  }
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    std::vector<size_t> inner = CancelledWith(tasks[at], indices, false);
    if (facts[at].holder.empty())
      inner.insert(inner.end(), facts[at].tasks.begin(), facts[at].tasks.end());
    for (const size_t each : inner) {
      if (!(*end)[each]) open.push_back(each);
      (*end)[each] = true;
    }
  }
}

std::vector<TaskFacts> PythonTasks::TasksOf(const std::vector<PythonFrame>& frames,
                                            bool* may_be_cancelled) {
  const auto loop = std::find_if(frames.begin(), frames.end(), [&](const PythonFrame& frame) {
    const PythonCode* const code = CodeOf(frame);
    return code != nullptr && IsOfAsyncio(*code, "BaseEventLoop.run_forever", "/base_events.py");
  });
  if (loop == frames.end()) return {};
  PythonObjects& objects = reader_.objects();
  const uint64_t loop_object = waits_.values().Self(*loop);
  const std::vector<Task> tasks = FindTasks(loop_object, *loop);
  std::vector<TaskFacts> facts(tasks.size());
  Indices indices;
  for (size_t i = 0; i < tasks.size(); ++i) {
    indices[tasks[i].object] = i;
    facts[i].name = objects.ShortText(objects.Pointer(tasks[i].object + task_layout::kTaskName));
    if (facts[i].name.empty()) facts[i].name = fmt::format("at {:#x}", tasks[i].object);
    std::string warning;
    facts[i].stack = reader_.Name(tasks[i].frames, &warning);
    for (const uint64_t manager : tasks[i].entered)
      facts[i].has_timeout = facts[i].has_timeout || LimitsTime(objects.TypeName(manager));
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    ExplainTask(tasks, indices, i, &facts);
    for (const size_t inner : CancelledWith(tasks[i], indices, true))
      facts[inner].has_timeout = true;
  }
  std::vector<bool> may_end = FindCancels(loop_object, tasks, indices, &facts);
  std::vector<bool> end(facts.size());
  for (size_t i = 0; i < facts.size(); ++i) end[i] = facts[i].has_timeout;
  EndWhatTheyWaitFor(tasks, indices, facts, &end);
  EndWhatTheyWaitFor(tasks, indices, facts, &may_end);
  for (size_t i = 0; i < facts.size(); ++i) facts[i].has_timeout = end[i];
  for (const size_t i : InCircles(facts)) *may_be_cancelled = *may_be_cancelled || may_end[i];
  return facts;
}

}  // namespace hangscope

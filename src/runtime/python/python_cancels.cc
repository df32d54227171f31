#include "runtime/python/python_cancels.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace cancel_layout = python_layout;

constexpr size_t kMostTimers = 2048;
// So deep in what a variable stands for: the elements of a list that an object has.
constexpr int kDepth = 2;
constexpr int kCallDepth = 4;  // of partials of methods

}  // namespace

bool IsOfAsyncio(const PythonCode& code) {
  return IsPythonLibrary(code.path) && code.path.find("/asyncio/") != std::string::npos;
}

void PythonCancels::AddAll(std::set<size_t>* found) const {
  for (const auto& [object, index] : tasks_) found->insert(index);
}

// Where there is more than can be looked into, any of them may be in it.
void PythonCancels::Add(uint64_t object, int depth, std::set<size_t>* found) {
  if (object == 0 || object % 8 != 0) return;
  if (const auto task = tasks_.find(object); task != tasks_.end()) {
    found->insert(task->second);
    return;
  }
  if (depth == 0) return;
  if (objects_left_ == 0) return AddAll(found);
  --objects_left_;
  AddContents(object, depth - 1, found);
}

void PythonCancels::AddContents(uint64_t object, int depth, std::set<size_t>* found) {
  PythonObjects& objects = reader_.objects();
  const auto* const type = objects.TypeOf(object);
  if (type == nullptr) return;
  if (type->IsSequence()) {
    for (const uint64_t each : objects.Elements(object)) Add(each, depth, found);
  } else if (type->IsDict()) {
    for (const PythonObjects::Entry& item : objects.Items(object)) {
      Add(item.name, 0, found);
      Add(item.object, depth, found);
    }
  } else if (type->IsHeap()) {
    for (const PythonObjects::Entry& each : objects.Attributes(object))
      Add(each.object, depth, found);
  } else if (const uint64_t referent = objects.Referent(object); referent != 0) {
    Add(referent, depth, found);
  } else {
    for (const uint64_t each : objects.Members(object)) Add(each, depth, found);
  }
}

// Its code names the function of asyncio that gives all tasks.
bool PythonCancels::AsksForAll(const PythonCode& code) {
  const std::vector<uint64_t> names = reader_.objects().Elements(code.attributes);
  return std::any_of(names.begin(), names.end(), [&](uint64_t name) {
    return reader_.objects().ShortText(name) == "all_tasks";
  });
}

void PythonCancels::AddGlobals(uint64_t globals, std::set<size_t>* found) {
  const auto [known, is_new] = of_globals_.try_emplace(globals);
  if (is_new) {
    std::set<size_t> inside;
    for (const PythonObjects::Entry& item : reader_.objects().Items(globals))
      Add(item.object, 1, &inside);
    known->second = std::move(inside);
  }
  found->insert(known->second.begin(), known->second.end());
}

void PythonCancels::AddFunction(uint64_t function, std::set<size_t>* found) {
  PythonObjects& objects = reader_.objects();
  auto code = reader_.CodeAt(objects.Pointer(function + cancel_layout::kFunctionCode));
  if (!code.ok()) return AddAll(found);
  if (IsOfAsyncio(**code)) return;  // which are called with what they work on
  if (AsksForAll(**code)) return AddAll(found);
  for (const uint64_t cell :
       objects.Elements(objects.Pointer(function + cancel_layout::kFunctionClosure))) {
    if (objects.IsBuiltin(cell, "cell"))
      Add(objects.Pointer(cell + cancel_layout::kCellContent), kDepth, found);
  }
  Add(objects.Pointer(function + cancel_layout::kFunctionDefaults), kDepth, found);
  AddGlobals(objects.Pointer(function + cancel_layout::kFunctionGlobals), found);
}

void PythonCancels::AddCallable(uint64_t object, int depth, std::set<size_t>* found) {
  PythonObjects& objects = reader_.objects();
  if (depth == 0) return AddAll(found);
  if (objects.IsBuiltin(object, "function")) return AddFunction(object, found);
  const std::string type = objects.TypeName(object);
  if (type == "method" || type == "builtin_function_or_method") {
    Add(objects.Pointer(object + cancel_layout::kMethodSelf), kDepth, found);
    if (type == "method")
      AddCallable(objects.Pointer(object + cancel_layout::kMethodFunction), depth - 1, found);
  } else if (type == "functools.partial") {
    AddCallable(objects.Pointer(object + cancel_layout::kPartialFunction), depth - 1, found);
    Add(objects.Pointer(object + cancel_layout::kPartialArguments), kDepth, found);
    Add(objects.Pointer(object + cancel_layout::kPartialKeywords), kDepth, found);
  } else {
    Add(object, kDepth, found);
  }
}

void PythonCancels::FindByTimers(uint64_t loop, std::set<size_t>* surely,
                                 std::set<size_t>* perhaps) {
  PythonObjects& objects = reader_.objects();
  const std::vector<uint64_t> timers = objects.Elements(objects.Attribute(loop, "_scheduled"));
  if (timers.empty()) return;
  const auto callback_at = objects.SlotOffset(timers[0], "_callback");
  const auto arguments_at = objects.SlotOffset(timers[0], "_args");
  const auto cancelled_at = objects.SlotOffset(timers[0], "_cancelled");
  if (!callback_at || !arguments_at || !cancelled_at || timers.size() > kMostTimers)
    return AddAll(perhaps);
  const auto* const type = objects.TypeOf(timers[0]);
  for (const uint64_t timer : timers) {
    if (objects.TypeOf(timer) != type) {
      AddAll(perhaps);
      continue;
    }
    if (objects.Integer(objects.Pointer(timer + *cancelled_at)).value_or(0) != 0) continue;
    const uint64_t callback = objects.Pointer(timer + *callback_at);
    const auto task = tasks_.find(objects.SelfOf(callback, "cancel"));
    if (task != tasks_.end()) {
      surely->insert(task->second);
      continue;
    }
    AddCallable(callback, kCallDepth, perhaps);
    Add(objects.Pointer(timer + *arguments_at), kDepth, perhaps);
  }
}

std::set<size_t> PythonCancels::HeldBy(const std::vector<PythonFrame>& frames) {
  std::set<size_t> found;
  for (const PythonFrame& frame : frames) {
    auto code = reader_.CodeAt(frame.code);
    if (!code.ok() || AsksForAll(**code)) {
      AddAll(&found);
      break;
    }
    if (IsOfAsyncio(**code)) continue;
    for (const uint64_t value : waits_.values().UsedLater(frame)) Add(value, kDepth, &found);
    AddGlobals(reader_.objects().Pointer(frame.address + cancel_layout::kFrameGlobals), &found);
  }
  return found;
}

}  // namespace hangscope

#include "runtime/python/python_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace layout = python_layout;

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr size_t kMostFrames = 256;       // of each thread
constexpr size_t kMostAllFrames = 32768;  // that are searched for locks
constexpr size_t kMostUserFrames = 8;     // whose variables may name an object
constexpr size_t kMostGlobals = 512;      // that are looked into

bool EndsWithAny(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return path.ends_with(end); });
}

// Of the standard library, which others wait with.
bool IsOfWaitModule(std::string_view path) {
  return IsPythonLibrary(path) &&
         EndsWithAny(path, {"/threading.py", "/queue.py", "/concurrent/futures/_base.py",
                            "/multiprocessing/synchronize.py", "/multiprocessing/queues.py",
                            "/multiprocessing/pool.py"});
}

// "queue" of "SimpleQueue": what the library's own classes are.
std::string Word(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"Queue", "queue"},         {"LifoQueue", "queue"},
      {"PriorityQueue", "queue"}, {"JoinableQueue", "queue"},
      {"SimpleQueue", "queue"},   {"Event", "event"},
      {"Condition", "condition"}, {"Barrier", "barrier"},
      {"Semaphore", "semaphore"}, {"BoundedSemaphore", "semaphore"},
      {"Future", "future"},       {"ApplyResult", "result"},
      {"MapResult", "result"},    {"Lock", "lock"},
  };
  for (const auto& [name, word] : kWords) {
    if (type == name) return std::string(word);
  }
  return std::string(type);
}

// They call others, rather than wait for something of their own.
bool IsOfNoObject(std::string_view function) {
  return function.starts_with("Pool.") || function == "Thread.run" ||
         function.starts_with("Thread._bootstrap");
}

}  // namespace

bool IsIdleInPool(const std::vector<StackFrame>& frames) {
  constexpr std::string_view kPool = "/multiprocessing/pool.py";
  bool gets = false;
  for (const StackFrame& frame : frames) {
    if (!IsPythonLibrary(frame.module)) return false;
    const bool is_of_queue =
        EndsWithAny(frame.module, {"/multiprocessing/queues.py", "/multiprocessing/connection.py",
                                   "/multiprocessing/synchronize.py"});
    if (!is_of_queue)
      return (gets && frame.function == "worker" && frame.module.ends_with(kPool)) ||
             (gets && frame.function == "_process_worker" &&
              frame.module.ends_with("/concurrent/futures/process.py")) ||
             (!gets && frame.function == "Pool._handle_tasks" && frame.module.ends_with(kPool));
    gets = frame.function == "SimpleQueue.get" || frame.function == "Queue.get";
  }
  return false;
}

const PythonCode* PythonWaits::CodeOf(const PythonFrame& frame) {
  auto code = reader_.CodeAt(frame.code);
  return code.ok() ? *code : nullptr;
}

bool PythonWaits::IsConditionWait(const PythonFrame& frame) {
  const PythonCode* const code = CodeOf(frame);
  return code != nullptr && code->function == "Condition.wait" && IsOfWaitModule(code->path);
}

// The C function that waits has the object on its stack.
uint64_t PythonWaits::FindWaited(uint64_t semaphore, std::string_view stack) {
  constexpr size_t kMostWords = 256;
  const size_t words = std::min(kMostWords, stack.size() / kWord);
  for (size_t i = 0; i < words; ++i) {
    uint64_t object = 0;
    std::memcpy(&object, stack.data() + i * kWord, kWord);
    if (object == 0 || object % kWord != 0 || object == semaphore) continue;
    if (reader_.objects().Pointer(object + layout::kSemaphoreOfObject) != semaphore) continue;
    const std::string type = reader_.objects().TypeName(object);
    for (const char* known :
         {"_thread.lock", "_thread.RLock", "_queue.SimpleQueue", "_multiprocessing.SemLock"}) {
      if (type == known) return object;
    }
  }
  return 0;
}

// Each thread has a lock that is released when it ends.
std::optional<int> PythonWaits::ThreadThatEnds(uint64_t lock) {
  if (!ends_) {
    ends_.emplace();
    for (const PythonThread& thread : reader_.Threads()) {
      const uint64_t reference = reader_.objects().Pointer(thread.state + layout::kThreadEndLock);
      const uint64_t its = reference == 0 ? 0 : reader_.objects().Referent(reference);
      if (its != 0 && thread.tid <= INT_MAX) ends_->emplace(its, static_cast<int>(thread.tid));
    }
  }
  const auto found = ends_->find(lock);
  return found == ends_->end() ? std::nullopt : std::optional(found->second);
}

std::vector<uint64_t> PythonWaits::Kept(const std::vector<PythonFrame>& frames,
                                        std::string_view exit) {
  PythonObjects& objects = reader_.objects();
  std::vector<uint64_t> kept;
  std::set<uint64_t> inside;  // what objects of inner blocks have
  for (const PythonFrame& frame : frames) {
    if (values_.MayRelease(frame)) break;
    const PythonCode* const code = CodeOf(frame);
    // It may take again what it gave back when its block began.
    if (code != nullptr && code->function.ends_with("exit__")) {
      for (const PythonObjects::Entry& attribute : objects.Attributes(values_.Self(frame)))
        inside.insert(attribute.object);
    }
    std::vector<uint64_t> entered = values_.Entered(frame, exit);
    std::reverse(entered.begin(), entered.end());
    for (const uint64_t manager : entered) {
      const auto* const type = objects.TypeOf(manager);
      if (type == nullptr || inside.count(manager) != 0) continue;
      kept.push_back(manager);
      if (!type->IsHeap() || type->name.starts_with('_')) continue;
      for (const PythonObjects::Entry& attribute : objects.Attributes(manager))
        inside.insert(attribute.object);
    }
  }
  return kept;
}

void PythonWaits::AddHeldBy(const PythonThread& thread, const std::vector<PythonFrame>& frames) {
  PythonObjects& objects = reader_.objects();
  std::set<uint64_t> given_back = {0};  // for as long as it waits for a condition
  for (const PythonFrame& frame : frames) {
    if (IsConditionWait(frame)) given_back.insert(objects.Attribute(values_.Self(frame), "_lock"));
  }
  for (uint64_t manager : Kept(frames, "__exit__")) {
    // A condition, or a lock of multiprocessing, has it inside.
    const std::string type = objects.TypeName(manager);
    if (type == "Condition") manager = objects.Attribute(manager, "_lock");
    if (type == "Lock" || type == "RLock") manager = objects.Attribute(manager, "_semlock");
    if (given_back.count(manager) == 0) (*held_)[manager].insert(static_cast<int>(thread.tid));
  }
}

void PythonWaits::FindHeldLocks() {
  held_.emplace();
  size_t all = 0;
  for (const PythonThread& thread : reader_.Threads()) {
    if (thread.tid > INT_MAX || all > kMostAllFrames) continue;
    const std::vector<PythonFrame> frames = reader_.FramesOf(thread, kMostFrames).frames;
    all += frames.size();
    AddHeldBy(thread, frames);
  }
}

void PythonWaits::FindOwner(const std::vector<PythonFrame>& frames, PythonWait* wait) {
  PythonObjects& objects = reader_.objects();
  if (objects.TypeName(wait->object) == "_queue.SimpleQueue") return;
  if (!frames.empty()) {
    if (IsConditionWait(frames[0])) return;
    // The lock of a module that is being imported knows its owner, beside the lock it waits with.
    const PythonCode* const code = CodeOf(frames[0]);
    if (code != nullptr && code->function == "_ModuleLock.acquire" &&
        code->path.starts_with("<frozen importlib")) {
      const uint64_t self = values_.Self(frames[0]);
      const auto owner = objects.Integer(objects.Attribute(self, "owner"));
      wait->owner = owner ? reader_.ThreadOf(static_cast<uint64_t>(*owner)) : std::nullopt;
      wait->type = "import lock";
      wait->name = objects.ShortText(objects.Attribute(self, "name"));
      return;
    }
  }
  if (!held_) FindHeldLocks();
  const auto holders = held_->find(wait->object);
  if (holders == held_->end() || holders->second.size() != 1) return;
  wait->owner = *holders->second.begin();
  wait->owner_by_frames = true;
}

// The outermost of the innermost functions of the library says what it is for: a queue's method.
void PythonWaits::ExplainObject(const std::vector<PythonFrame>& frames, PythonWait* wait) {
  PythonObjects& objects = reader_.objects();
  const auto* const type = objects.TypeOf(wait->object);
  if (wait->type.empty() && type != nullptr) wait->type = Word(type->ShortName());
  wait->is_signal = (!frames.empty() && IsConditionWait(frames[0])) ||
                    (type != nullptr && type->name == "_queue.SimpleQueue");
  if (!wait->name.empty()) return;
  uint64_t of = wait->object;
  for (const PythonFrame& frame : frames) {
    const PythonCode* const code = CodeOf(frame);
    if (code == nullptr || !IsOfWaitModule(code->path) || IsOfNoObject(code->function)) break;
    if (const uint64_t self = values_.Self(frame); self != 0) of = self;
  }
  if (of != wait->object) {
    const auto* const its_type = objects.TypeOf(of);
    const std::string word = Word(its_type == nullptr ? std::string_view() : its_type->ShortName());
    const bool is_lock = word == "lock" || word == "RLock" || word == "semaphore";
    wait->type = wait->is_signal || is_lock ? word : "lock of " + word;
  }
  wait->name = NameOf(of, frames);
  if (wait->name.empty()) wait->name = fmt::format("at {:#x}", of);
}

PythonWait PythonWaits::Explain(uint64_t semaphore, std::string_view stack,
                                const std::vector<PythonFrame>& frames) {
  PythonWait wait;
  wait.object = FindWaited(semaphore, stack);
  if (wait.object == 0) return wait;
  PythonObjects& objects = reader_.objects();
  const std::string type = objects.TypeName(wait.object);
  if (type == "_thread.lock") {
    wait.thread = ThreadThatEnds(wait.object);
    wait.type = wait.thread ? "thread" : "";
    if (wait.thread) return wait;
  }
  if (type == "_thread.RLock")
    wait.owner = reader_.RLockOwner(semaphore, stack);
  else
    FindOwner(frames, &wait);
  ExplainObject(frames, &wait);
  return wait;
}

// A variable of its module, or what one of them has.
std::string PythonWaits::Global(uint64_t object, const PythonFrame& frame) {
  PythonObjects& objects = reader_.objects();
  const std::vector<PythonObjects::Entry> globals = values_.Globals(frame);
  for (const PythonObjects::Entry& global : globals) {
    if (global.object == object) return objects.NameOf(global);
  }
  size_t seen = 0;
  for (const PythonObjects::Entry& global : globals) {
    if (seen++ == kMostGlobals) break;
    const auto* const type = objects.TypeOf(global.object);
    if (type == nullptr) continue;
    if (type->IsSequence()) {
      const std::vector<uint64_t> elements = objects.Elements(global.object);
      const auto at = std::find(elements.begin(), elements.end(), object);
      if (at != elements.end())
        return fmt::format("{}[{}]", objects.NameOf(global), at - elements.begin());
    } else if (type->IsHeap()) {
      for (const PythonObjects::Entry& attribute : objects.Attributes(global.object)) {
        if (attribute.object == object)
          return fmt::format("{}.{}", objects.NameOf(global), objects.NameOf(attribute));
      }
    } else if (type->IsDict()) {
      for (const PythonObjects::Entry& item : objects.Items(global.object)) {
        if (item.object != object) continue;
        const std::string key = objects.NameOf(item);
        return fmt::format("{}[{}]", objects.NameOf(global), key.empty() ? "..." : key);
      }
    }
  }
  return {};
}

// Of what one of its variables stands for.
std::string PythonWaits::Attribute(uint64_t object, const PythonFrame& frame) {
  PythonObjects& objects = reader_.objects();
  for (const PythonObjects::Entry& variable : values_.Variables(frame)) {
    const auto* const type = objects.TypeOf(variable.object);
    if (type == nullptr || !type->IsHeap()) continue;
    for (const PythonObjects::Entry& attribute : objects.Attributes(variable.object)) {
      if (attribute.object == object)
        return fmt::format("{} of {} at {:#x}", objects.NameOf(attribute), type->ShortName(),
                           variable.object);
    }
  }
  return {};
}

std::string PythonWaits::Local(uint64_t object, const PythonFrame& frame) {
  for (const PythonObjects::Entry& variable : values_.Variables(frame)) {
    const std::string name =
        variable.object == object ? reader_.objects().NameOf(variable) : std::string();
    if (!name.empty() && name != "self") return fmt::format("{} at {:#x}", name, object);
  }
  return {};
}

std::string PythonWaits::NameOf(uint64_t object, const std::vector<PythonFrame>& frames) {
  if (const auto known = names_.find(object); known != names_.end()) return known->second;
  std::string name = FindName(object, frames);
  if (!name.empty()) names_[object] = name;
  return name;
}

std::string PythonWaits::FindName(uint64_t object, const std::vector<PythonFrame>& frames) {
  std::vector<PythonFrame> of_user;
  for (const PythonFrame& frame : frames) {
    const PythonCode* const code = CodeOf(frame);
    if (code != nullptr && !IsPythonLibrary(code->path) && of_user.size() < kMostUserFrames)
      of_user.push_back(frame);
  }
  for (const auto& frame : of_user) {
    if (std::string name = Global(object, frame); !name.empty()) return name;
  }
  // What the library has inside of its own objects is named by these.
  if (of_user.empty())
    of_user.assign(frames.begin(),
                   frames.begin() + static_cast<long>(std::min(kMostUserFrames, frames.size())));
  for (const auto find : {&PythonWaits::Attribute, &PythonWaits::Local}) {
    for (const auto& frame : of_user) {
      if (std::string name = (this->*find)(object, frame); !name.empty()) return name;
    }
  }
  for (const auto& frame : frames) {
    if (std::string name = Attribute(object, frame); !name.empty()) return name;
  }
  return {};
}

}  // namespace hangscope

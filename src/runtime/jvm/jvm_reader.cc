#include "runtime/jvm/jvm_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace hangscope {
namespace {

constexpr size_t kMostNamedClasses = 1024;
constexpr uint32_t kBlockedOnEnter = 1025;  // JVMTI's bits: alive, blocked on entering a monitor

// Threads that the library keeps for itself; what else such a one does is a frame of the program.
bool IsHelper(std::string_view class_name) {
  return class_name == "java/lang/ref/Reference$ReferenceHandler" ||
         class_name == "java/lang/ref/Finalizer$FinalizerThread" ||
         class_name == "jdk/internal/misc/InnocuousThread";
}

}  // namespace

Result<std::unique_ptr<JvmReader>> JvmReader::Open(const FindJvmSymbol& find, ReadMemory read) {
  auto memory = std::make_unique<RuntimeMemory>(std::move(read));
  auto layout = ReadJvmLayout(find, memory.get());
  if (!layout.ok()) return layout.status();
  return std::unique_ptr<JvmReader>(new JvmReader(*layout, std::move(memory)));
}

uint64_t JvmReader::ObjectOf(uint64_t monitor) const {
  return objects_.HandleAt(monitor + layout_.monitor_object);
}

// The owner of a monitor is a thread, or a place on the stack of one that had locked the object
// before anybody waited.
int JvmReader::OwnerOf(uint64_t monitor) const {
  const auto owner = memory_->Now<uint64_t>(monitor + layout_.monitor_owner);
  if (const auto thread = stacks_.find(owner); thread != stacks_.end()) return thread->second.tid;
  for (const auto& [address, stack] : stacks_) {
    if (owner >= stack.begin && owner < stack.end) return stack.tid;
  }
  return 0;
}

int JvmReader::ThreadOf(uint64_t thread_object) {
  if (thread_object == 0) return 0;
  const auto thread = stacks_.find(objects_.Value<uint64_t>(thread_object, "eetop"));
  return thread == stacks_.end() ? 0 : thread->second.tid;
}

bool JvmReader::Calls(const JavaThread& thread, std::string_view class_name,
                      std::string_view method) const {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const JavaFrame& frame) {
    return frame.method->name == method && frame.method->holder->name == class_name;
  });
}

JavaWait JvmReader::MonitorWait(uint64_t monitor) {
  JavaWait wait;
  wait.kind = JavaWaitKind::kMonitor;
  wait.type = "monitor";
  wait.object = ObjectOf(monitor);
  wait.owner = OwnerOf(monitor);
  return wait;
}

// A class that a thread initialises is locked by an object of its own, on which others wait. It
// stands in the mirror of the class where that of an array has the class of its elements.
JavaWait JvmReader::InitializerWait(uint64_t lock) {
  if (!initializers_) {
    initializers_.emplace();
    objects_.VisitClasses([&](const JavaClass& of) {
      const bool is_now =
          !of.name.starts_with('[') &&
          memory_->Now<uint8_t>(of.address + layout_.init_state) == layout_.being_initialized;
      if (is_now)
        initializers_->emplace_back(&of, memory_->Now<uint64_t>(of.address + layout_.init_thread));
      return false;
    });
  }
  for (const auto& [of, thread] : *initializers_) {
    if (objects_.Reference(objects_.MirrorOf(*of), "componentType") != lock) continue;
    JavaWait wait;
    wait.kind = JavaWaitKind::kInitializer;
    wait.object = lock;
    wait.type = "initialiser of";
    wait.name = DottedName(of->name);
    const auto owner = stacks_.find(thread);
    wait.owner = owner == stacks_.end() ? 0 : owner->second.tid;
    return wait;
  }
  return {};
}

JavaWait JvmReader::NotifyWait(const JavaThread& thread, uint64_t monitor) {
  const uint64_t object = ObjectOf(monitor);
  if (objects_.ClassOf(object).name == "[I") {
    if (JavaWait wait = InitializerWait(object); wait.kind != JavaWaitKind::kNone) return wait;
  }
  const uint64_t own = objects_.HandleAt(thread.address + layout_.thread_object);
  // It has been notified, and wants the monitor back.
  if (objects_.Value<uint32_t>(own, "threadStatus") == kBlockedOnEnter) return MonitorWait(monitor);
  JavaWait wait;
  wait.object = object;
  const int ends = objects_.IsA(object, "java/lang/Thread") ? ThreadOf(object) : 0;
  // For its own end a thread waits that is to keep the program alive.
  if (ends != 0 && ends != thread.tid && Calls(thread, "java/lang/Thread", "join")) {
    wait.kind = JavaWaitKind::kJoin;
    wait.owner = ends;
    return wait;
  }
  wait.kind = JavaWaitKind::kNotify;
  wait.type = "notify() of";
  return wait;
}

JavaWait JvmReader::ParkWait(const JavaThread& thread, uint64_t blocker) {
  constexpr std::string_view kOwnable = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
  JavaWait wait;
  wait.kind = JavaWaitKind::kParked;
  wait.object = blocker;
  std::vector<std::string> callers;
  for (const JavaFrame& frame : thread.frames) callers.push_back(frame.method->holder->name);
  wait.type = TypeOfParked(objects_.ClassOf(blocker).name, callers);
  if (!objects_.IsA(blocker, kOwnable)) return wait;
  wait.owner = ThreadOf(objects_.Reference(blocker, "exclusiveOwnerThread"));
  const bool has_readers = wait.type == "ReentrantReadWriteLock";
  if (wait.owner == 0 && has_readers) wait.owner = OnlyReaderOf(blocker);
  if (wait.owner != 0)
    wait.kind = JavaWaitKind::kLock;
  else if (has_readers)
    wait.kind = JavaWaitKind::kReaders;
  return wait;
}

// Who made it held for reading, and has not given it back since, is recorded, and how often it has
// it: as often as all do, where it is the only one.
int JvmReader::OnlyReaderOf(uint64_t lock) {
  constexpr uint32_t kHoldsAt = 16;  // of the state's bits, those of readers
  const uint64_t first = objects_.Reference(lock, "firstReader");
  const uint32_t holds = objects_.Value<uint32_t>(lock, "state") >> kHoldsAt;
  const bool is_only =
      first != 0 && holds != 0 && objects_.Value<uint32_t>(lock, "firstReaderHoldCount") == holds;
  return is_only ? ThreadOf(first) : 0;
}

JavaWait JvmReader::WaitNow(const JavaThread& thread) {
  if (const auto pending = memory_->Now<uint64_t>(thread.address + layout_.pending_monitor))
    return MonitorWait(pending);
  if (const auto waiting = memory_->Now<uint64_t>(thread.address + layout_.waiting_monitor))
    return NotifyWait(thread, waiting);
  if (thread.frames.empty() || thread.frames[0].method->name != "park") return {};
  const uint64_t own = objects_.HandleAt(thread.address + layout_.thread_object);
  return ParkWait(thread, objects_.Reference(own, "parkBlocker"));
}

std::optional<JavaThread> JvmReader::ReadThread(uint64_t address, size_t most_frames) {
  const auto stack = stacks_.find(address);
  if (stack == stacks_.end() || stack->second.tid == 0) return std::nullopt;
  JavaThread thread;
  thread.address = address;
  thread.tid = stack->second.tid;
  const uint64_t own = objects_.HandleAt(address + layout_.thread_object);
  thread.name = objects_.StringAt(objects_.Reference(own, "name"), kMostNameOfJavaThread);
  thread.is_daemon = objects_.Value<uint8_t>(own, "daemon") != 0;
  thread.is_blocked =
      memory_->Now<uint32_t>(address + layout_.thread_state) == layout_.state_blocked;
  thread.frames = frames_.Walk(frames_.AnchorAt(address + layout_.thread_anchor),
                               stack->second.begin, stack->second.end, most_frames);
  const bool all_of_library = std::all_of(
      thread.frames.begin(), thread.frames.end(),
      [](const JavaFrame& frame) { return IsOfJavaLibrary(frame.method->holder->name); });
  // What the machine starts for itself has no object of a class of the program, and no frames.
  thread.is_of_machine = thread.is_blocked && all_of_library &&
                         (IsHelper(objects_.ClassOf(own).name) ||
                          (thread.frames.empty() && (thread.is_daemon || own == 0)) ||
                          (thread.frames.empty() && thread.name == "DestroyJavaVM"));
  for (const JavaFrame& frame : thread.frames) {
    if (!IsOfJavaLibrary(frame.method->holder->name)) break;
    thread.idles = thread.idles || IsIdleInJava(frame.method->holder->name, frame.method->name);
  }
  return thread;
}

std::vector<JavaThread> JvmReader::Threads(size_t most, size_t most_frames, std::string* warning) {
  const auto list = memory_->Now<uint64_t>(layout_.thread_list_at);
  const size_t count = memory_->Now<uint32_t>(list + layout_.list_length);
  const auto begin = memory_->Now<uint64_t>(list + layout_.list_threads);
  std::vector<uint64_t> addresses(count <= kMostJavaThreads ? count : 0);
  if (list == 0 || count > kMostJavaThreads ||
      (count > 0 && !memory_->ReadInto(begin, addresses.data(), addresses.size() * kBytesOfWord))) {
    *warning = "the list of its threads cannot be read";
    return {};
  }
  if (addresses.size() > most) {
    *warning = fmt::format("only the first {} threads are looked at", most);
    addresses.resize(most);
  }
  stacks_.clear();
  for (const uint64_t address : addresses) {
    if (address == 0) continue;
    const auto base = memory_->Now<uint64_t>(address + layout_.thread_stack_base);
    const auto size = memory_->Now<uint64_t>(address + layout_.thread_stack_size);
    const auto os_thread = memory_->Now<uint64_t>(address + layout_.thread_os_thread);
    const auto tid = os_thread == 0 ? 0 : memory_->Now<int32_t>(os_thread + layout_.os_thread_id);
    if (size <= base && tid > 0) stacks_[address] = {base - size, base, tid};
  }
  std::vector<JavaThread> threads;
  for (const uint64_t address : addresses) {
    if (auto thread = ReadThread(address, most_frames)) threads.push_back(std::move(*thread));
  }
  initializers_.reset();
  for (JavaThread& thread : threads) {
    if (!thread.is_blocked) continue;
    thread.wait = WaitNow(thread);
    const uint64_t own = objects_.HandleAt(thread.address + layout_.thread_object);
    thread.idles = thread.idles || (thread.wait.object != 0 && thread.wait.object == own &&
                                    Calls(thread, "java/lang/Thread", "join"));
  }
  NameLocks(&threads);
  for (JavaThread& thread : threads) {
    for (const JavaFrame& frame : thread.frames) thread.stack.push_back(Name(frame));
  }
  return threads;
}

// By the fields that lead to them: static ones of the classes whose methods are on the stacks, and
// those of the objects whose interpreted methods are. The object that is waited for may be within
// one of java.util.concurrent.
void JvmReader::NameLocks(std::vector<JavaThread>* threads) {
  std::map<uint64_t, std::string> names;  // of objects that are waited for
  for (const JavaThread& thread : *threads) {
    if (thread.wait.object != 0 && thread.wait.name.empty()) names[thread.wait.object];
  }
  if (names.empty()) return;
  const auto found = [&](uint64_t object, const JavaClass& of, const JavaField& field) {
    if (object == 0) return;
    const auto give_name = [&](uint64_t each) {
      const auto name = names.find(each);
      if (each != 0 && name != names.end() && name->second.empty())
        name->second = SimpleName(of.name) + "." + field.name;
    };
    give_name(object);
    const JavaClass& its_class = objects_.ClassOf(object);
    if (!its_class.name.starts_with(kJavaConcurrent)) return;
    for (const JavaField& part : objects_.FieldsOf(its_class)) {
      if (!part.is_static && part.IsReference())
        give_name(objects_.ReferenceAt(object + part.offset));
    }
  };
  std::set<std::pair<uint64_t, uint64_t>> seen;  // classes, and objects of theirs
  const auto look = [&](const JavaClass& of, uint64_t holder) {
    if (!seen.emplace(of.address, holder).second || seen.size() > kMostNamedClasses) return;
    const uint64_t base = holder == 0 ? objects_.MirrorOf(of) : holder;
    for (const JavaField& field : objects_.FieldsOf(of)) {
      if (base != 0 && field.is_static == (holder == 0) && field.IsReference())
        found(objects_.ReferenceAt(base + field.offset), of, field);
    }
  };
  for (const JavaThread& thread : *threads) {
    for (const JavaFrame& frame : thread.frames) {
      const JavaClass& of = *frame.method->holder;
      if (IsOfJavaLibrary(of.name)) continue;
      look(of, 0);
      if (frame.this_object != 0 && objects_.IsA(frame.this_object, of.name))
        look(of, frame.this_object);
    }
  }
  for (JavaThread& thread : *threads) {
    JavaWait& wait = thread.wait;
    if (wait.object == 0 || !wait.name.empty()) continue;
    wait.name = names[wait.object];
    const bool is_monitor =
        wait.kind == JavaWaitKind::kMonitor || wait.kind == JavaWaitKind::kNotify;
    if (!is_monitor || !wait.name.empty()) continue;
    const JavaClass& of = objects_.ClassOf(wait.object);
    if (of.name == "java/lang/Class") {
      const JavaClass& shown =
          objects_.ClassAt(memory_->Now<uint64_t>(wait.object + layout_.mirror_klass));
      if (shown.is_known) wait.name = DottedName(shown.name) + ".class";
    } else if (of.is_known) {
      wait.type += wait.kind == JavaWaitKind::kMonitor ? " of a " : " a ";
      wait.type += DottedName(of.name);
    }
  }
}

StackFrame JvmReader::Name(const JavaFrame& frame) {
  StackFrame named;
  named.language = FrameLanguage::kJava;
  named.function = SimpleName(frame.method->holder->name) + "." + frame.method->name;
  named.module = DottedName(frame.method->holder->name);
  named.of_system = IsOfJavaLibrary(frame.method->holder->name);
  const int line = frames_.LineOf(frame);
  if (line > 0 && !frame.method->file.empty())
    named.source = fmt::format("{}:{}", frame.method->file, line);
  else
    named.source = frame.method->file;
  return named;
}

// A hook that the library has made itself wakes nobody: that of java.util.logging flushes.
bool JvmReader::HandlesSignals() {
  constexpr size_t kMostHooks = 4096;
  constexpr std::string_view kOfLogging = "java/util/logging/LogManager$Cleaner";
  if (objects_.FindClass("sun/misc/Signal").is_known) return true;
  const uint64_t hooks =
      objects_.StaticReference(objects_.FindClass("java/lang/ApplicationShutdownHooks"), "hooks");
  if (hooks == 0) return false;
  // A java.util.IdentityHashMap: behind each key is its value.
  const auto entries = objects_.ElementsOf(objects_.Reference(hooks, "table"), 2 * kMostHooks);
  uint32_t of_library = 0;
  for (size_t i = 0; i < entries.size(); i += 2) {
    if (objects_.ClassOf(entries[i]).name == kOfLogging) ++of_library;
  }
  return objects_.Value<uint32_t>(hooks, "size") != of_library;
}

}  // namespace hangscope

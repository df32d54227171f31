#include "runtime/jvm/jvm_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/jvm/jvm_objects.h"

namespace hangscope {
namespace {

constexpr size_t kMostFrames = 1024;
constexpr size_t kMostObjects = 1024;  // of one thread
constexpr std::string_view kReadWrite = "ReentrantReadWriteLock$";

// Behind `mark`; empty: it is not there.
std::string_view Behind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

std::optional<uint64_t> NumberAtBegin(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  uint64_t number = 0;
  const auto end =
      std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
  return end.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// "java/util/TimerThread" of "java.util.TimerThread"
std::string Slashed(std::string_view class_name) {
  std::string slashed(class_name);
  std::replace(slashed.begin(), slashed.end(), '.', '/');
  return slashed;
}

// Threads that the machine keeps for itself, by the names that it gives them.
bool IsHelperByName(std::string_view name) {
  constexpr std::string_view kNames[] = {"Reference Handler",
                                         "Finalizer",
                                         "Signal Dispatcher",
                                         "Service Thread",
                                         "Attach Listener",
                                         "Notification Thread",
                                         "Common-Cleaner",
                                         "Monitor Deflation Thread",
                                         "Sweeper thread",
                                         "DestroyJavaVM",
                                         "Surrogate Locker Thread (Concurrent GC)"};
  return name.find("CompilerThread") != std::string_view::npos ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool HasLock(const std::vector<uint64_t>& list, uint64_t object) {
  return std::find(list.begin(), list.end(), object) != list.end();
}

}  // namespace

PrintedJavaThreads::PrintedJavaThreads(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with('"')) {
      ReadHead(line);
    } else if (!line.empty() && !std::isspace(static_cast<unsigned char>(line[0]))) {
      in_thread_ = false;  // the deadlocks that the machine has found, and the like
    } else if (in_thread_ && line.starts_with("\tat ")) {
      ReadFrame(line.substr(4));
    } else if (in_thread_ && line.starts_with("\t- ")) {
      ReadObject(line.substr(3));
    } else if (in_thread_) {
      ReadState(line);
    }
  }
  for (Printed& printed : printed_) printed.waits_on = printed.thread.wait.object;
  for (Printed& printed : printed_) Judge(&printed);
}

// A name may have quotes and all else in it; what follows it has none.
void PrintedJavaThreads::ReadHead(std::string_view line) {
  in_thread_ = in_ownable_ = false;
  const size_t end = line.rfind('"');
  const auto number = NumberAtBegin(Behind(line.substr(end), " nid="));
  if (end == 0 || !number || *number == 0 || *number > INT32_MAX) return;
  if (printed_.size() == kMostJavaThreads) return;
  in_thread_ = true;
  JavaThread& thread = printed_.emplace_back().thread;
  thread.tid = static_cast<int>(*number);
  thread.name = line.substr(1, std::min(end - 1, kMostNameOfJavaThread));
  thread.is_daemon = line.substr(end).find(" daemon ") != std::string_view::npos;
  // Those that never run Java have no number of it.
  thread.is_of_machine = line.substr(end).find(" #") == std::string_view::npos ||
                         (thread.is_daemon && IsHelperByName(thread.name)) ||
                         thread.name == "DestroyJavaVM";
}

void PrintedJavaThreads::ReadState(std::string_view line) {
  if (Behind(line, "Locked ownable synchronizers:").data() != nullptr) in_ownable_ = true;
  const std::string_view state = Behind(line, "java.lang.Thread.State: ");
  printed_.back().is_timed = printed_.back().is_timed || state.starts_with("TIMED_WAITING");
  if (state.starts_with("BLOCKED") || state.starts_with("WAITING") ||
      state.starts_with("TIMED_WAITING"))
    printed_.back().thread.is_blocked = true;
}

// "java.lang.Thread.join(java.base@17.0.21/Thread.java:1313)"
void PrintedJavaThreads::ReadFrame(std::string_view text) {
  Printed& printed = printed_.back();
  const size_t open = text.find('(');
  const size_t dot = text.substr(0, open).rfind('.');
  if (open == std::string_view::npos || dot == std::string_view::npos ||
      printed.thread.stack.size() == kMostFrames)
    return;
  std::string_view source = text.substr(open + 1);
  source = source.substr(0, source.find(')'));
  if (const size_t module = source.find('/'); module != std::string_view::npos)
    source.remove_prefix(module + 1);
  // One that is made for a lambda has an address behind its name.
  std::string_view class_name = text.substr(0, dot);
  if (const size_t slash = class_name.find('/'); slash != std::string_view::npos)
    class_name = class_name.substr(0, slash);
  const std::string slashed = Slashed(class_name);
  const std::string_view method = text.substr(dot + 1, open - dot - 1);
  StackFrame frame;
  frame.language = FrameLanguage::kJava;
  frame.function = SimpleName(slashed) + "." + std::string(method);
  frame.module = class_name;
  frame.of_system = IsOfJavaLibrary(slashed);
  if (source.find(".java") != std::string_view::npos || source.find(':') != std::string_view::npos)
    frame.source = source;
  const bool in_library_so_far =
      std::all_of(printed.callers.begin(), printed.callers.end(),
                  [](const std::string& each) { return IsOfJavaLibrary(each); });
  printed.thread.idles =
      printed.thread.idles || (in_library_so_far && IsIdleInJava(slashed, method));
  if (method == "<clinit>") printed.initializes.push_back(slashed);
  printed.thread.stack.push_back(std::move(frame));
  printed.callers.push_back(slashed);
}

void PrintedJavaThreads::ReadInitializer(std::string_view class_name) {
  JavaWait& wait = printed_.back().thread.wait;
  wait.kind = JavaWaitKind::kInitializer;
  wait.name = class_name;
  wait.object = std::hash<std::string_view>()(class_name) | 1;  // nobody prints where it is
}

// "waiting to lock <0x000000069ed480d0> (a Account)"; of a list of locks, from the "<" on
void PrintedJavaThreads::ReadObject(std::string_view text) {
  Printed& printed = printed_.back();
  JavaWait& wait = printed.thread.wait;
  constexpr std::string_view kInitializer = "waiting on the Class initialization monitor for ";
  if (text.starts_with(kInitializer) && wait.object == 0)
    return ReadInitializer(text.substr(kInitializer.size()));
  const auto object = NumberAtBegin(Behind(text, "<"));
  if (!object || *object == 0) return;
  std::string_view its_class = Behind(text, "(a ");
  its_class = its_class.substr(0, its_class.find(')'));
  if (in_ownable_) {
    if (printed.ownable.size() < kMostObjects) printed.ownable.push_back(*object);
    return;
  }
  if (text.starts_with("locked ")) {
    if (printed.locked.size() < kMostObjects) printed.locked.push_back(*object);
    return;
  }
  // The first is what it waits for; what else there is belongs to its callers.
  if (wait.object != 0) return;
  const bool enters =
      text.starts_with("waiting to lock ") || text.starts_with("waiting to re-lock ");
  if (enters)
    wait.kind = JavaWaitKind::kMonitor;
  else if (text.starts_with("parking to wait for "))
    wait.kind = JavaWaitKind::kParked;
  else if (text.starts_with("waiting on "))
    wait.kind = JavaWaitKind::kNotify;
  else
    return;
  wait.object = *object;
  printed.object_class = Slashed(its_class);
}

void PrintedJavaThreads::NameWait(const Printed& printed, JavaWait* wait) {
  const bool joins = std::find(printed.callers.begin(), printed.callers.end(),
                               "java/lang/Thread") != printed.callers.end() &&
                     printed.object_class == "java/lang/Thread";
  switch (wait->kind) {
    case JavaWaitKind::kMonitor:
      wait->type = "monitor of a";
      break;
    case JavaWaitKind::kNotify:
      wait->type = joins ? "the end of a" : "notify() of a";
      break;
    case JavaWaitKind::kInitializer:
      wait->type = "initialiser of";
      return;
    default:
      wait->type = TypeOfParked(printed.object_class, printed.callers);
      return;
  }
  if (printed.object_class.empty())
    wait->type += "n object";
  else
    wait->type += " " + DottedName(printed.object_class);
}

// Whom it waits for, now that all of them are read. Who waits for a time is not told by what: that
// may be over when its process is looked at.
void PrintedJavaThreads::Judge(Printed* printed) const {
  JavaWait wait = std::exchange(printed->thread.wait, {});
  if (!printed->thread.is_blocked && wait.kind != JavaWaitKind::kInitializer) return;
  if (wait.kind == JavaWaitKind::kNone || printed->is_timed) return;
  printed->thread.is_blocked = true;
  NameWait(*printed, &wait);
  const auto has_it = [&](const Printed& other) {
    switch (wait.kind) {
      // Who waits to be notified has left the monitor, although its callers have it "locked".
      case JavaWaitKind::kMonitor:
        return HasLock(other.locked, wait.object) && other.waits_on != wait.object;
      case JavaWaitKind::kInitializer:
        return std::find(other.initializes.begin(), other.initializes.end(), Slashed(wait.name)) !=
               other.initializes.end();
      case JavaWaitKind::kParked:
        return HasLock(other.ownable, wait.object);
      default:
        return false;
    }
  };
  const auto owner = std::find_if(printed_.begin(), printed_.end(), [&](const Printed& other) {
    return other.thread.tid != printed->thread.tid && has_it(other);
  });
  if (owner != printed_.end()) wait.owner = owner->thread.tid;
  if (wait.kind == JavaWaitKind::kParked && wait.owner != 0)
    wait.kind = JavaWaitKind::kLock;
  else if (wait.kind == JavaWaitKind::kParked &&
           SimpleName(printed->object_class).starts_with(kReadWrite))
    wait.kind = JavaWaitKind::kReaders;
  printed->thread.wait = std::move(wait);
}

std::vector<JavaThread> PrintedJavaThreads::Threads(size_t most, size_t most_frames,
                                                    std::string* warning) {
  std::vector<JavaThread> threads;
  if (printed_.empty()) *warning = "its machine printed none";
  for (const Printed& printed : printed_) {
    if (threads.size() == most) {
      *warning = fmt::format("only the first {} threads are looked at", most);
      break;
    }
    threads.push_back(printed.thread);
    if (threads.back().stack.size() > most_frames) threads.back().stack.resize(most_frames);
  }
  return threads;
}

}  // namespace hangscope

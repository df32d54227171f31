// ProcessLook's goroutines: where those of a program of Go stand, what they wait for, and which of
// them has the lock that another wants.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "process/locks/held_objects.h"
#include "process/process_look.h"
#include "runtime/go/go_layout.h"
#include "runtime/go/go_reach.h"
#include "runtime/go/go_symbols.h"

namespace hangscope {
namespace {

constexpr size_t kMostGoroutines = 1000;  // that are looked at
constexpr size_t kMostReached = 1 << 17;  // of those that may have what others wait for
constexpr size_t kMostStack = 64 << 10;   // copied of each
constexpr size_t kMostCalls = 400;        // whose code is read for what they hold, of all
constexpr size_t kMostOfOne = 24;
constexpr size_t kFramePointer = 6;  // by DWARF's numbers
constexpr const char* kSystemCall = "the end of a system call, or of C code";

// What a wait ends by itself, or by what is outside the program.
bool EndsByItself(const std::string& reason) {
  return reason == "sleep" || reason == "IO wait" || reason.starts_with("GC ") ||
         reason == "force gc (idle)" || reason == "finalizer wait";
}

// By the first part of the path of its package: what it takes it gives back.
bool IsOfStandardLibrary(std::string_view function) {
  constexpr std::string_view kFirstParts[] = {
      "archive", "bufio",   "bytes",    "compress", "container", "context", "crypto", "database",
      "debug",   "embed",   "encoding", "errors",   "expvar",    "flag",    "fmt",    "go",
      "hash",    "html",    "image",    "index",    "internal",  "io",      "log",    "math",
      "mime",    "net",     "os",       "path",     "plugin",    "reflect", "regexp", "runtime",
      "sort",    "strconv", "strings",  "sync",     "syscall",   "testing", "text",   "time",
      "type",    "unicode", "unsafe",   "vendor"};
  const std::string_view first = function.substr(0, function.find_first_of("./"));
  return std::find(std::begin(kFirstParts), std::end(kFirstParts), first) != std::end(kFirstParts);
}

std::vector<std::string> FunctionsOf(const std::vector<StackFrame>& stack) {
  std::vector<std::string> functions;
  for (const StackFrame& frame : stack) functions.push_back(frame.function);
  return functions;
}

// "main.init" and "main.init.0" have run before main.main, which runtime.main calls once. What is
// behind the package's name has a point in a method, "main.(*pool).run", and in a closure,
// "main.run.func1".
GoFunctionKind KindOfFunction(std::string_view function) {
  constexpr std::string_view kSetsUp = "main.init", kClosure = "func";
  if (function == "runtime.main" ||
      (function.starts_with(kSetsUp) &&
       function.find_first_not_of(".0123456789", kSetsUp.size()) == std::string_view::npos))
    return GoFunctionKind::kOver;
  function = function.substr(0, function.find('['));
  function.remove_prefix(std::min(function.size(), function.rfind('/') + 1));
  function.remove_prefix(std::min(function.size(), function.find('.')) + 1);
  const size_t point = function.find('.');
  return point == std::string_view::npos || function.substr(point + 1).starts_with(kClosure)
             ? GoFunctionKind::kPlain
             : GoFunctionKind::kMethod;
}

// The program's main one, one that answers a request, or runs a test.
bool IsAwaited(const std::vector<StackFrame>& stack) {
  return HasFunction(stack, "runtime.main") || HasFunction(stack, "net/http.(*conn).serve") ||
         HasFunction(stack, "testing.tRunner");
}

// "goroutines 18, 19 and 20".
std::string NamesOf(const std::vector<uint64_t>& ids) {
  constexpr size_t kMost = 3;
  if (ids.empty()) return {};
  std::string names = ids.size() == 1 ? "goroutine" : "goroutines";
  const size_t told = ids.size() > kMost + 1 ? kMost : ids.size();
  for (size_t i = 0; i < told; ++i)
    names += fmt::format("{} {}", i == 0 ? "" : i + 1 == ids.size() ? " and" : ",", ids[i]);
  return told == ids.size() ? names : fmt::format("{} and {} more", names, ids.size() - told);
}

}  // namespace

// The runtime is a part of the program's file, and its linker has put its version at the beginning
// of its data, where another linker may have put those of C before them: debug/buildinfo of its
// library finds it so. To look for the symbols of every program would take much longer.
void ProcessLook::FindGo() {
#if defined(__x86_64__)
  constexpr uint64_t kMostOfData = 1 << 20, kMost = 64 << 10;
  const auto program = context_.proc.Link(fmt::format("{}/exe", living_));
  if (!program || facts_.is_32_bit) return;
  for (const MemoryMapping& mapping : mappings_) {
    if (mapping.path != *program || mapping.executable) continue;
    const uint64_t bytes = std::min(mapping.writable ? kMostOfData : kMost, mapping.size_bytes());
    const auto version =
        GoVersionIn(memory_.ReadUpTo(mapping.begin, static_cast<size_t>(bytes)), read_memory_);
    if (version) return OpenGo(mapping, *version);
  }
#endif
}

void ProcessLook::OpenGo(const MemoryMapping& data, const std::string& version) {
  if (GoReader::Knows(version) && !walker_->KnowsLines(data.begin)) TellOfGo(data);
  auto go = GoReader::Open(
      version, [&](std::string_view name) { return walker_->AddressOf(data.begin, name); },
      read_memory_);
  if (go.ok())
    go_ = std::make_unique<GoReader>(std::move(*go));
  else
    Warn("goroutines: " + go.status().message());
}

// Without debug information, and perhaps symbols, there are still the tables of its runtime.
void ProcessLook::TellOfGo(const MemoryMapping& data) {
  std::vector<GoSymbols::Range> ranges;
  for (const MemoryMapping& mapping : mappings_) {
    if (mapping.path == data.path && !mapping.executable)
      ranges.push_back({mapping.begin, mapping.end});
  }
  auto found = GoSymbols::Read(ranges, read_memory_);
  if (!found.ok()) return Warn("the program has no symbols: " + found.status().message());
  const auto symbols = std::make_shared<GoSymbols>(std::move(*found));
  StackWalker::CodeNames names;
  for (GoSymbols::Symbol& each : symbols->TakeFunctions())
    names.functions.push_back({each.address, each.bytes, std::move(each.name)});
  for (const GoSymbols::Symbol& each : symbols->variables())
    names.variables.push_back({each.address, each.bytes, each.name});
  names.frames_at = [symbols](uint64_t pc) { return symbols->At(pc); };
  walker_->Tell(data.begin, std::move(names));
}

bool ProcessLook::IsOfGoRuntime(uint64_t pc) {
  const auto function = walker_->FunctionAt(pc);
  return function && function->name.starts_with("runtime.") && function->name != "runtime.main";
}

// Empty where it has gone on. The stack of one that is at the same place again and again, and was
// elsewhere when the stack was read, would tell of calls that it is not in: so it is read within a
// moment in which it stood there before and after.
StackWalk ProcessLook::WalkGoroutine(const Goroutine& goroutine, std::string* stack) {
  constexpr int kTries = 8;
  ThreadImage image;
  image.tid = living_;
  image.registers.pc = goroutine.pc;
  image.registers.values[ThreadRegisters::kStackPointer] = goroutine.stack_pointer;
  image.registers.values[kFramePointer] = goroutine.frame_pointer;
  image.stack_begin = goroutine.stack_pointer;
  if (goroutine.stack_end <= goroutine.stack_pointer)
    return walker_->Walk(image, context_.options.most_frames);
  for (int tries = 0; tries < kTries && go_->StandsAsBefore(goroutine); ++tries) {
    const TimeNs begin = context_.clock.Monotonic();
    image.stack = *stack = memory_.ReadUpTo(
        image.stack_begin,
        std::min<uint64_t>(goroutine.stack_end - goroutine.stack_pointer, kMostStack));
    if (go_->StandsAsBefore(goroutine) && context_.clock.Monotonic() - begin < kMillisecond)
      return walker_->Walk(image, context_.options.most_frames);
  }
  return {};
}

// `stack`: what it was when the calls were read from it, from `stack_begin` on.
std::vector<uint64_t> ProcessLook::HeldByGoroutine(const std::vector<StackPlace>& places,
                                                   uint64_t stack_begin, const std::string& stack,
                                                   size_t* calls) {
  HeldByCalls held;
  const ReadMemory read = [&](uint64_t address, void* into, size_t bytes) {
    if (address < stack_begin || address - stack_begin >= stack.size())
      return read_memory_(address, into, bytes);
    if (bytes > stack.size() - (address - stack_begin)) return false;
    std::memcpy(into, stack.data() + (address - stack_begin), bytes);
    return true;
  };
  for (size_t i = 1; i < std::min(places.size(), kMostOfOne); ++i) {
    const StackPlace& place = places[i];
    const auto function = walker_->FunctionAt(place.pc);
    if (function && IsOfStandardLibrary(function->name)) continue;
    // What it may have given back, its callers do not hold.
    if (!function || !place.calls || !place.stack_pointer || *calls == kMostCalls) break;
    ++*calls;
    CallPlace call{function->begin, function->bytes, place.pc + 1, *place.stack_pointer,
                   place.registers};
    call.convention = CallConvention::kGo;
    held.Add(HeldObjects(
        call, read, [this](uint64_t target) { return LockCallAt(target); },
        [this](uint64_t target) { return GivesOfOthersAt(target, 0); }));
  }
  return held.objects();
}

// Whether the function may give back what its caller has taken.
LockCall ProcessLook::GivesOfOthersAt(uint64_t target, int depth) {
  constexpr size_t kMostFunctions = 1024;
  constexpr int kDeepest = 4;
  const auto known = calls_by_code_.find(target);
  if (known != calls_by_code_.end()) return known->second;
  if (calls_by_code_.size() >= kMostFunctions || depth >= kDeepest) return LockCall::kNone;
  calls_by_code_[target] = LockCall::kNone;  // while it is looked at
  const auto function = walker_->FunctionAt(target);
  if (!function || function->begin != target || IsOfStandardLibrary(function->name))
    return LockCall::kNone;
  return calls_by_code_[target] = GivesOfOthersInGo(
             target, function->bytes, read_memory_,
             [this](uint64_t other) { return LockCallAt(other); },
             [this, depth](uint64_t other) { return GivesOfOthersAt(other, depth + 1); });
}

std::vector<Goroutine> ProcessLook::ReadGoroutines(std::string* warning) {
  return go_->Goroutines(
      kMostGoroutines, [this](uint64_t pc) { return IsOfGoRuntime(pc); }, warning);
}

void ProcessLook::AddGoroutines() {
  if (!go_ || facts_.threads.empty()) return;  // all have ended meanwhile
  std::string warning;
  goroutines_ = ReadGoroutines(&warning);
  std::vector<TaskFacts> tasks;
  std::vector<GoObject> objects;
  std::vector<std::vector<StackPlace>> places;
  std::vector<std::string> stacks;
  for (const Goroutine& goroutine : goroutines_) {
    TaskFacts& task = tasks.emplace_back();
    GoObject& object = objects.emplace_back();
    places.emplace_back();
    stacks.emplace_back();
    task.is_goroutine = true;
    task.name = fmt::format("goroutine {}", goroutine.id);
    task.waits_for = goroutine.in_system_call ? kSystemCall : goroutine.reason;
    task.has_timeout = goroutine.in_system_call || EndsByItself(goroutine.reason);
    if (goroutine.pc == 0) continue;
    if (context_.IsLate()) {
      warning = "the time for looking at goroutines was up";
      break;
    }
    StackWalk walk = WalkGoroutine(goroutine, &stacks.back());
    task.stack = std::move(walk.frames);
    object = ObjectOfSemaphore(goroutine.semaphore, FunctionsOf(task.stack));
    if (object.address != 0) {
      const std::string name = walker_->Variable(object.address);
      task.waits_for = fmt::format("{} {}", object.type,
                                   name.empty() ? fmt::format("at {:#x}", object.address) : name);
    }
    places.back() = std::move(walk.places);
  }
  std::map<uint64_t, std::set<size_t>> holders;  // by object
  size_t calls = 0;
  // Those first that want a lock themselves: of a circle all do.
  for (const bool wants : {true, false}) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (objects[i].has_holder != wants) continue;
      for (const uint64_t held :
           HeldByGoroutine(places[i], goroutines_[i].stack_pointer, stacks[i], &calls))
        holders[held].insert(i);
    }
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto who = holders.find(objects[i].address);
    if (!objects[i].has_holder || who == holders.end()) continue;
    // Several read, and all of them would have to give it back.
    const bool is_own = who->second.count(i) != 0;
    if (!is_own && who->second.size() != 1) continue;
    const size_t holder = is_own ? i : *who->second.begin();
    tasks[i].tasks = {holder};
    tasks[i].holder = is_own ? "itself" : tasks[holder].name;
  }
  facts_.threads[0].tasks = std::move(tasks);
  if (!warning.empty()) Warn("goroutines: " + warning);
}

// They were read one after the other: only those that still wait as they did waited at one time.
void ProcessLook::VerifyGoroutines() {
  if (goroutines_.empty()) return;
  std::string trouble;
  std::vector<Goroutine> all = go_->Goroutines(
      kMostReached, [](uint64_t) { return false; }, &trouble);
  if (trouble.empty()) AddStranded(all);
  std::map<uint64_t, Goroutine> now;
  for (Goroutine& each : all) now.emplace(each.id, std::move(each));
  std::vector<TaskFacts>& tasks = facts_.threads[0].tasks;
  for (size_t i = 0; i < std::min(tasks.size(), goroutines_.size()); ++i) {
    const auto at = now.find(goroutines_[i].id);
    if (at != now.end() && at->second == goroutines_[i]) continue;
    tasks[i].tasks.clear();
    tasks[i].holder.clear();
    tasks[i].is_stranded = tasks[i].is_awaited = false;
  }
}

// Who waits for what only such can come to that wait for ever themselves.
void ProcessLook::AddStranded(const std::vector<Goroutine>& all) {
  constexpr TimeNs kLongest = 400 * kMillisecond;
  std::vector<TaskFacts>& tasks = facts_.threads[0].tasks;
  const auto waits = [](const TaskFacts& task) {
    return !task.has_timeout && !task.waits_for.empty();
  };
  if (go_->heap() == 0 || go_->module() == 0 || tasks.size() != goroutines_.size() ||
      std::none_of(tasks.begin(), tasks.end(), waits))
    return;
  GoReachInput input;
  input.goroutines = all;
  // What somebody who runs has in registers only, is known while all registers are.
  for (const Goroutine& each : all) {
    if (each.runs && !each.in_system_call && stopped_registers_.count(each.tid) == 0) return;
  }
  for (const auto& [tid, values] : stopped_registers_)
    input.registers.insert(input.registers.end(), values.begin(), values.end());
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].tasks.size() == 1)
      input.held_by[goroutines_[i].id] = goroutines_[tasks[i].tasks[0]].id;
  }
  input.semaphores = go_->semaphores();
  input.semaphores_end = input.semaphores + go_layout::kSemaphoreLines * go_layout::kBytesOfLine;
  input.own_variable = [this](uint64_t address) -> std::optional<uint64_t> {
    const std::string name = walker_->Variable(address);
    if (!name.starts_with("main.")) return std::nullopt;
    const size_t offset = name.find('+');
    return address - (offset == std::string::npos ? 0 : std::stoull(name.substr(offset + 1)));
  };
  input.kind_of = [this](uint64_t function) {
    const auto found = walker_->FunctionAt(function);
    return found ? KindOfFunction(found->name) : GoFunctionKind::kMethod;
  };
  const TimeNs end = context_.clock.Monotonic() + kLongest;
  input.is_late = [&] { return context_.IsLate() || context_.clock.Monotonic() > end; };
  auto reach = GoReach::Read(go_->heap(), go_->module(), read_memory_);
  auto stranded = reach.ok() ? reach->Stranded(input) : Result<StrandedGoroutines>(reach.status());
  if (!stranded.ok()) {
    Warn("goroutines that wait for ever: " + stranded.status().message());
    return;
  }
  // One that has moved meanwhile takes back what is said of all.
  for (const Goroutine& each : all) {
    if (stranded->count(each.id) != 0 && !go_->StandsAsBefore(each)) return;
  }
  std::map<uint64_t, size_t> by_id;
  for (size_t i = 0; i < goroutines_.size(); ++i) by_id[goroutines_[i].id] = i;
  for (const auto& [id, others] : *stranded) {
    const auto at = by_id.find(id);
    if (at == by_id.end()) continue;
    TaskFacts& task = tasks[at->second];
    task.is_stranded = true;
    task.is_awaited = IsAwaited(task.stack);
    if (!task.tasks.empty()) continue;
    for (const uint64_t other : others) {
      if (by_id.count(other) != 0) task.tasks.push_back(by_id[other]);
    }
    task.known_to = NamesOf(others);
  }
}

}  // namespace hangscope

// ProcessLook's threads of Java: where they stand, what they wait for, and who has it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "process/process_look.h"
#include "process/signal_sets.h"
#include "runtime/jvm/jvm_print.h"
#include "runtime/jvm/jvm_reader.h"

namespace hangscope {
namespace {

constexpr size_t kMostLookedAt = 4096;   // threads of Java
constexpr uint64_t kTriesOfRecheck = 2;  // between two looks

bool IsOfMachine(const StackFrame& frame) { return frame.module.starts_with("libjvm.so"); }

// Threads that the machine starts for itself, which never run Java, by the names it gives them.
bool IsNameOfMachine(std::string_view name) {
  constexpr std::string_view kBegins[] = {
      "VM Thread",       "VM Periodic Tas", "GC Thread", "G1 ",           "ParGC",
      "Concurrent Mark", "Shenandoah",      "ZDirector", "ZDriver",       "ZStat",
      "ZUncommitter",    "ZUnmapper",       "ZWorker",   "RuntimeWorker", "XWorker"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

WaitKind KindOf(JavaWaitKind kind) {
  switch (kind) {
    case JavaWaitKind::kMonitor:
    case JavaWaitKind::kLock:
    case JavaWaitKind::kInitializer:
      return WaitKind::kMutex;
    case JavaWaitKind::kReaders:
      return WaitKind::kRwLock;
    case JavaWaitKind::kNotify:
    case JavaWaitKind::kParked:
      return WaitKind::kCondition;
    case JavaWaitKind::kJoin:
      return WaitKind::kJoin;
    case JavaWaitKind::kNone:
      break;
  }
  return WaitKind::kNone;
}

// Whether Thread.interrupt() ends it: not where it wants a monitor, or a lock as lock() does.
bool MayBeInterrupted(const JavaThread& java, const std::vector<StackFrame>& stack) {
  if (java.wait.kind == JavaWaitKind::kJoin) return true;
  const bool is_lock =
      java.wait.kind == JavaWaitKind::kLock || java.wait.kind == JavaWaitKind::kReaders;
  return is_lock && LocksInterruptibly(stack);
}

// Entering a monitor has no time limit, whatever the thread naps for meanwhile.
bool MayRecheck(JavaWaitKind kind) { return kind == JavaWaitKind::kMonitor; }

// It has no work, and ends after a while without any, as pools do with workers that they may spare.
// What has a time to come is waited for by timers, and by who runs delayed tasks.
bool EndsWithoutWork(const JavaThread& java) {
  return java.idles &&
         std::none_of(java.stack.begin(), java.stack.end(), [](const StackFrame& frame) {
           return frame.function.find("TimerThread") != std::string::npos ||
                  frame.function.find("DelayedWorkQueue") != std::string::npos;
         });
}

}  // namespace

void ProcessLook::FindJava() {
#if defined(__x86_64__)
  const auto machine =
      std::find_if(mappings_.begin(), mappings_.end(), [](const MemoryMapping& mapping) {
        return mapping.executable && mapping.path.ends_with("/libjvm.so");
      });
  is_java_ = machine != mappings_.end();
  if (!is_java_ || facts_.is_32_bit) return;
  auto java = JvmReader::Open(
      [&](std::string_view name) { return walker_->AddressOf(machine->begin, name); },
      read_memory_);
  if (java.ok()) {
    java_ = std::move(*java);
    return;
  }
  facts_.has_unread_java = true;
  const auto printed = context_.options.java_threads.find(pid_);
  if (printed != context_.options.java_threads.end()) {
    java_ = std::make_unique<PrintedJavaThreads>(printed->second);
    return Warn("java threads: as its machine printed them when it was asked (--ask)");
  }
  Warn(fmt::format("java threads: {}; hangscope why --ask {} asks the machine for them",
                   java.status().message(), pid_));
#endif
}

// What the thread has called from Java on, then the frames of Java. What the machine called to get
// there says nothing.
std::vector<StackFrame> ProcessLook::MergeJava(const JavaThread& java,
                                               const ThreadFacts& thread) const {
  if (java.stack.empty()) return thread.stack;
  std::vector<StackFrame> merged;
  for (const StackFrame& frame : thread.stack) {
    if (IsOfMachine(frame) || (frame.module.empty() && frame.function.empty())) break;
    merged.push_back(frame);
  }
  merged.insert(merged.end(), java.stack.begin(), java.stack.end());
  if (merged.size() > context_.options.most_frames) merged.resize(context_.options.most_frames);
  return merged;
}

void ProcessLook::AddJavaThread(const JavaThread& java, size_t i) {
  const Work& work = work_[i];
  ThreadFacts& thread = facts_.threads[i];
  if (!java.name.empty()) thread.name = java.name;
  thread.stack = MergeJava(java, thread);
  if (!java.stack.empty()) {
    thread.stack_incomplete = false;
    thread.stack_warning.clear();
  }
  thread.of_runtime = java.is_of_machine;
  thread.stands_by = java.idles || java.is_daemon;
  if (thread.state != ThreadState::kSleeping || work.meaning.kind != WaitKind::kFutex) return;
  ThreadWait wait;
  wait.has_timeout = thread.wait.has_timeout;
  wait.timeout = thread.wait.timeout;
  // Without a wait of Java it is in the machine, or in the lock of a library.
  if (java.wait.kind == JavaWaitKind::kNone) {
    if (java.is_blocked) thread.wait = wait;
    return;
  }
  if (EndsWithoutWork(java)) {
    wait.has_timeout = false;
    wait.timeout.reset();
  }
  wait.kind = KindOf(java.wait.kind);
  wait.address = java.wait.object;
  wait.object_type = java.wait.type;
  wait.variable = java.wait.name;
  wait.may_be_interrupted = MayBeInterrupted(java, thread.stack);
  if (MayRecheck(java.wait.kind)) {
    wait.rechecks = wait.has_timeout;
    wait.has_timeout = false;
    wait.timeout.reset();
    if (wait.rechecks) thread.since.reset();
  }
  const auto other = java.wait.owner == 0 ? std::nullopt : OuterThread(java.wait.owner, false);
  if (wait.kind == WaitKind::kJoin)
    wait.thread = other;
  else if (!wait.has_timeout)
    wait.owner = other;
  thread.wait = std::move(wait);
}

void ProcessLook::AddJava() {
  if (!java_ || facts_.threads.empty()) return;
  std::string warning;
  std::map<int, size_t> indexes;
  for (size_t i = 0; i < facts_.threads.size(); ++i) indexes[facts_.threads[i].tid] = i;
  for (JavaThread& java : java_->Threads(kMostLookedAt, context_.options.most_frames, &warning)) {
    const auto outer = outer_ids_.find(java.tid);
    const auto at = outer == outer_ids_.end() ? indexes.end() : indexes.find(outer->second);
    if (at == indexes.end()) continue;
    AddJavaThread(java, at->second);
    java_threads_.emplace(at->second, std::move(java));
  }
  for (size_t i = 0; i < facts_.threads.size(); ++i) {
    ThreadFacts& thread = facts_.threads[i];
    if (java_threads_.count(i) != 0) continue;
    // The program's first thread waits for the one that ends the machine when all others have
    // ended.
    const auto ends = thread.wait.kind == WaitKind::kJoin && thread.wait.thread
                          ? indexes.find(*thread.wait.thread)
                          : indexes.end();
    thread.of_runtime = thread.tid == pid_
                            ? ends != indexes.end() && facts_.threads[ends->second].of_runtime
                            : IsNameOfMachine(thread.name);
  }
  // Those that end the program run its hooks.
  constexpr uint64_t kOfEnds = SignalBit(SIGHUP) | SignalBit(SIGINT) | SignalBit(SIGTERM);
  // Who closes a socket or a channel takes those out of their system calls who use it.
  const uint64_t to_interrupt = SignalBit(SIGRTMAX - 2);
  facts_.runtime_signals = SignalBit(SIGQUIT) | SignalBit(SIGUSR2) | SignalBit(SIGPIPE) |
                           SignalBit(SIGXFSZ) | to_interrupt;
  if (!java_->HandlesSignals()) facts_.runtime_signals |= kOfEnds;
  if (!warning.empty()) Warn("java threads: " + warning);
}

// Who wants a monitor looks from time to time whether it is free, and waits on.
bool ProcessLook::WaitsAgainInJava(const Work& work, size_t i) {
  ThreadFacts& thread = facts_.threads[i];
  const auto java = java_threads_.find(i);
  if (!thread.wait.rechecks || java == java_threads_.end()) return false;
  constexpr int kTries = 4;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) context_.clock.Sleep(kMillisecond / 2);
    const auto now = ReadThread(context_.proc, pid_, work.raw.tid);
    if (!now) return false;
    if (!now->IsBlocked()) continue;
    const JavaWait wait = java_->WaitNow(java->second);
    if (now->call->number != work.raw.call->number ||
        now->call->stack_pointer != work.raw.call->stack_pointer ||
        now->status.voluntary_switches - work.raw.status.voluntary_switches > kTriesOfRecheck ||
        wait.kind != java->second.wait.kind || wait.owner != java->second.wait.owner ||
        wait.object != java->second.wait.object)
      return false;
    thread.voluntary_switches = now->status.voluntary_switches;
    thread.involuntary_switches = now->status.involuntary_switches;
    thread.cpu_time = now->run_time.ran;
    return true;
  }
  return false;
}

}  // namespace hangscope

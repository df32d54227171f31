#include "process/process_look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>

#include "base/file_system.h"
#include "proc/system_call_32.h"
#include "process/process_graph.h"
#include "process/signal_sets.h"
#include "runtime/python/python_signals.h"

namespace hangscope {
namespace {

constexpr size_t kMostThreads = 16384;
constexpr size_t kStackBytes = 64 << 10;  // copied of each
constexpr uint64_t kBelowStack = 256;     // leaf functions use so much below the stack pointer

// A handler that runs, or a signalfd that becomes ready, ends these.
bool SignalsEnd(WaitKind kind) {
  return kind == WaitKind::kRead || kind == WaitKind::kWrite || kind == WaitKind::kPoll ||
         kind == WaitKind::kAccept || kind == WaitKind::kConnect || kind == WaitKind::kSignal ||
         kind == WaitKind::kSemaphore || kind == WaitKind::kFutex || kind == WaitKind::kFileLock;
}

// The user who, beside root, may look at a process of `user`; -1: nobody. Where that is the one who
// asks here, and no security module refuses it, the process lets nobody look (prctl, not dumpable).
int WhoElseMayLook(const ProcFolder& proc, int user) {
  const auto scope = proc.Read("sys/kernel/yama/ptrace_scope");
  const bool yama_refuses = scope && !scope->starts_with('0');
  return user == static_cast<int>(geteuid()) && !yama_refuses ? -1 : user;
}

// As a child of vfork that has become no other program yet.
bool HaveOneMemory(int one, int other) { return syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0; }

// Those that functions are in, and the rest of their files. Stacks and heaps come and go.
std::vector<MemoryMapping> CodeMappings(const std::vector<MemoryMapping>& all) {
  std::set<std::string> files;
  for (const MemoryMapping& mapping : all) {
    if (mapping.executable && !mapping.path.empty()) files.insert(mapping.path);
  }
  std::vector<MemoryMapping> code;
  std::copy_if(all.begin(), all.end(), std::back_inserter(code), [&](const MemoryMapping& mapping) {
    return mapping.executable || files.count(mapping.path) != 0;
  });
  return code;
}

// Where the variables of a file are: those that begin as zeros lie behind the others, in memory of
// no file.
std::vector<MemoryRange> DataOf(const std::string& path,
                                const std::vector<MemoryMapping>& mappings) {
  std::vector<MemoryRange> data;
  for (const MemoryMapping& mapping : mappings) {
    const bool follows =
        mapping.path.empty() && !data.empty() && data.back().second == mapping.begin;
    if (!mapping.writable || !mapping.readable || (mapping.path != path && !follows)) continue;
    if (!data.empty() && data.back().second == mapping.begin)
      data.back().second = mapping.end;
    else
      data.emplace_back(mapping.begin, mapping.end);
  }
  return data;
}

// Whatever is sent, but SIGKILL, neither ends a wait for a signal nor the process.
bool LetsNoSignalIn(const TaskStatus& status) {
  constexpr uint64_t kDoNothing =
      SignalBit(SIGCHLD) | SignalBit(SIGURG) | SignalBit(SIGWINCH) | SignalBit(SIGCONT);
  constexpr uint64_t kStop =
      SignalBit(SIGSTOP) | SignalBit(SIGTSTP) | SignalBit(SIGTTIN) | SignalBit(SIGTTOU);
  const uint64_t without = ((kDoNothing | kStop) & ~status.caught_signals) | status.ignored_signals;
  return (~status.blocked_signals & ~without & ~kLibrarySignals & ~SignalBit(SIGKILL)) == 0;
}

bool IsThisProgram(const ProcFolder& proc, int pid) {
  const auto own = proc.Link("self/exe");
  return pid != 0 && own && proc.Link(fmt::format("{}/exe", pid)) == own;
}

}  // namespace

std::string WhatGrantsLooking(const Capabilities& own, bool is_root, int user) {
  if (own.Has(Capability::kSysPtrace))
    return "hangscope has CAP_SYS_PTRACE here, so a security module refuses it, or the process is "
           "of an outer user namespace: look at it from there";
  if (is_root)
    return "hangscope is root without CAP_SYS_PTRACE, which a container or a sandbox keeps; "
           "'docker run --cap-add SYS_PTRACE' grants it";
  return "run hangscope as root" +
         (user > 0 ? fmt::format(", or as user {} with kernel.yama.ptrace_scope=0", user) : "");
}

void ProcessTree::Read() {
  if (read_) return;
  read_ = true;
  for (const int process : proc_.Processes()) {
    auto stat = proc_.Stat(process);
    if (!stat) continue;
    if (stat->stack_begin != 0) by_stack_[stat->stack_begin].push_back(process);
    children_[stat->parent].push_back(std::move(*stat));
  }
}

const std::vector<TaskStat>& ProcessTree::Children(int pid) {
  Read();
  return children_[pid];
}

std::vector<int> ProcessTree::WhoSharesMemory(int pid, uint64_t stack_begin) {
  Read();
  std::vector<int> sharers;
  const auto alike = by_stack_.find(stack_begin);
  if (alike == by_stack_.end()) return sharers;
  std::copy_if(alike->second.begin(), alike->second.end(), std::back_inserter(sharers),
               [&](int other) { return other != pid && HaveOneMemory(pid, other); });
  return sharers;
}

std::vector<int> ProcessTree::WhoBeganAlike(int pid, uint64_t stack_begin) {
  Read();
  std::vector<int> alike;
  const auto known = by_stack_.find(stack_begin);
  if (known == by_stack_.end()) return alike;
  std::copy_if(known->second.begin(), known->second.end(), std::back_inserter(alike),
               [pid](int other) { return other != pid; });
  return alike;
}

std::vector<int> ProcessTree::Descendants(int pid) {
  Read();
  std::vector<int> all;
  std::vector<int> open = {pid};
  while (!open.empty()) {
    const int parent = open.back();
    open.pop_back();
    for (const TaskStat& child : children_[parent]) {
      all.push_back(child.id);
      open.push_back(child.id);
    }
  }
  return all;
}

Result<StackWalker*> WalkerCache::Get(const InspectionContext& context, int pid,
                                      const std::vector<MemoryMapping>& mappings) {
  const std::vector<MemoryMapping> code = CodeMappings(mappings);
  std::string key;
  for (const MemoryMapping& mapping : code)
    key += fmt::format("{:x}-{:x} {:x} {} {}\n", mapping.begin, mapping.end, mapping.file_offset,
                       mapping.inode, mapping.path);
  Entry& entry = entries_[pid];
  if (entry.walker != nullptr && entry.code == key) return entry.walker.get();
  auto walker = context.kept != nullptr
                    ? StackWalker::OpenKept(*context.kept, code)
                    : StackWalker::Open(context.proc_root, pid, code,
                                        [memory = ProcessMemory(pid)](uint64_t address, void* into,
                                                                      size_t bytes) {
                                          return memory.ReadInto(address, into, bytes);
                                        });
  if (!walker.ok()) return walker.status();
  entry = {key, std::move(*walker)};
  return entry.walker.get();
}

ProcessLook::ProcessLook(InspectionContext& context, WalkerCache& walkers, int pid)
    : context_(context),
      walkers_(walkers),
      pid_(pid),
      living_(pid),
      memory_(context.MemoryOf(pid)) {
  read_memory_ = [this](uint64_t address, void* into, size_t bytes) {
    return memory_.ReadInto(address, into, bytes);
  };
  facts_.pid = pid;
}

void ProcessLook::Warn(std::string sentence) {
  if (std::find(facts_.warnings.begin(), facts_.warnings.end(), sentence) == facts_.warnings.end())
    facts_.warnings.push_back(std::move(sentence));
}

bool ProcessLook::Read() {
  const auto stat = context_.proc.Stat(pid_);
  if (!stat) return false;
  facts_.name = stat->name;
  facts_.parent = stat->parent;
  facts_.state = stat->state;
  if (stat->state == ThreadState::kStopped) facts_.stop_signal = stat->wait_status;
  facts_.stopped_in_background = stat->terminal != 0 && stat->foreground != stat->group;
  facts_.command = context_.proc.CommandLine(pid_);
  facts_.shares_memory_with = context_.tree.WhoSharesMemory(pid_, stat->stack_begin);
  leads_to_.insert(facts_.shares_memory_with.begin(), facts_.shares_memory_with.end());
  if (stat->kernel_thread)
    Warn(fmt::format("process {} ({}) is a thread of the kernel, which has no program to look at",
                     pid_, facts_.name));
  const std::vector<int> tids = context_.proc.Threads(pid_);
  for (const int tid : tids) {
    if (work_.size() >= kMostThreads) break;
    // One that ends between the listing and this is no loss.
    if (auto raw = ReadThread(context_.proc, pid_, tid)) StoreThread(std::move(*raw));
  }
  // A handler that nobody lets run ends nothing, as that of the signal whose handler hangs.
  facts_.caught_signals &= ~blocked_by_all_;
  if (tids.size() > kMostThreads)
    Warn(fmt::format("only {} of {} threads are looked at", kMostThreads, tids.size()));
  if (context_.kept != nullptr) facts_.warnings = context_.kept->warnings;
  FindLivingThread();
  SayWhatCannotBeSeen();
  return true;
}

void ProcessLook::StoreThread(RawThread raw) {
  ThreadFacts thread;
  thread.pid = pid_;
  thread.tid = raw.tid;
  thread.name = raw.stat.name;
  thread.state = raw.stat.state;
  // Another hangscope looks at it, for a moment: that says nothing about the program.
  if (thread.state == ThreadState::kTraced && IsThisProgram(context_.proc, raw.status.tracer))
    thread.state = ThreadState::kUnknown;
  thread.cpu = raw.stat.cpu;
  thread.cpu_time = raw.run_time.ran;
  thread.voluntary_switches = raw.status.voluntary_switches;
  thread.involuntary_switches = raw.status.involuntary_switches;
  if (raw.last_ran) thread.since = context_.scheduler.Monotonic(raw.stat.cpu, *raw.last_ran);
  const bool lives = raw.stat.state != ThreadState::kZombie && raw.stat.state != ThreadState::kDead;
  if (raw.tid == pid_) facts_.caught_signals = raw.status.caught_signals & ~kLibrarySignals;
  if (lives) blocked_by_all_ &= raw.status.blocked_signals;
  const int inner = raw.status.inner_id > 0 ? raw.status.inner_id : raw.tid;
  outer_ids_[inner] = raw.tid;
  has_own_ids_ = has_own_ids_ || inner != raw.tid;
  facts_.threads.push_back(std::move(thread));
  Work work;
  work.raw = std::move(raw);
  work_.push_back(std::move(work));
}

// Memory, mappings and descriptors are those of a thread; a main thread that has ended has let go
// of them.
void ProcessLook::FindLivingThread() {
  if (facts_.state != ThreadState::kZombie) return;
  const auto lives = [](const ThreadFacts& thread) {
    return thread.state != ThreadState::kZombie && thread.state != ThreadState::kDead;
  };
  const auto found = std::find_if(facts_.threads.begin(), facts_.threads.end(), lives);
  if (found == facts_.threads.end()) return;
  living_ = found->tid;
  memory_ = context_.MemoryOf(living_);
}

void ProcessLook::SayWhatCannotBeSeen() {
  if (facts_.state == ThreadState::kZombie && work_.size() <= 1) {
    Warn(fmt::format("process {} has ended, and its parent {} has not collected it", pid_,
                     facts_.parent));
    return;
  }
  for (const Work& work : work_) {
    const bool denied = work.raw.call_error == EPERM || work.raw.call_error == EACCES;
    facts_.is_hidden = facts_.is_hidden || denied;
    if (denied)
      Warn(fmt::format("what the threads of process {} wait for may not be looked at: {}; {}", pid_,
                       ErrorText(work.raw.call_error),
                       WhatGrantsLooking(OwnCapabilities(), geteuid() == 0,
                                         WhoElseMayLook(context_.proc, work.raw.status.user))));
    if (work.raw.status.tracer == 0) continue;
    facts_.tracer = work.raw.status.tracer;
    const auto tracer = context_.proc.Stat(facts_.tracer);
    facts_.tracer_name = tracer ? tracer->name : "";
    Warn(fmt::format("process {} is traced by process {}{}, so its threads cannot be stopped", pid_,
                     facts_.tracer, tracer ? fmt::format(" ({})", tracer->name) : ""));
  }
  char ident[5] = {};
  if (const auto maps = context_.proc.Read(fmt::format("{}/maps", living_))) {
    mappings_ = ParseMemoryMappings(*maps);
    const bool readable =
        !mappings_.empty() && memory_.ReadInto(mappings_.front().begin, ident, sizeof ident);
    if (readable && std::string_view(ident, 5) ==
                        "\x7f"
                        "ELF\x01") {
#if defined(__x86_64__)
      facts_.is_32_bit = true;
#else
      facts_.is_hidden = facts_.is_32_bit = true;
      Warn(fmt::format("process {} is a 32-bit program, whose system calls are not understood",
                       pid_));
#endif
    }
    if (mappings_.empty()) return;
    auto walker = context_.options.stacks ? walkers_.Get(context_, living_, mappings_)
                                          : Result<StackWalker*>(nullptr);
    if (walker.ok())
      walker_ = *walker;
    else
      walker_trouble_ = walker.status().message();
    if (walker_ != nullptr) FindPython();
    if (walker_ != nullptr && !python_) FindGo();
    if (walker_ != nullptr) FindJava();
    if (walker_ != nullptr) FindNode();
    if (walker_ != nullptr) FindRuby();
    if (walker_ != nullptr) FindShell();
    if (walker_ != nullptr) FindPostgres();
    FindRank();
  }
}

// In the program's file or in a library of its own.
void ProcessLook::FindPython() {
  const auto is_interpreter = [](const MemoryMapping& mapping) {
    const std::string name = NameOf(mapping.path);
    return name.starts_with("python3") || name.starts_with("libpython3");
  };
  std::string why_not;
  for (const MemoryMapping& mapping : mappings_) {
    if (!mapping.executable || !is_interpreter(mapping)) continue;
    python_module_ = NameOf(mapping.path);
    const auto find = [&](std::string_view name) {
      return walker_->AddressOf(mapping.begin, name);
    };
    const bool is_interrupted = (facts_.caught_signals & SignalBit(SIGINT)) != 0;
    if (is_interrupted && OnlyInterrupts(find, read_memory_, DataOf(mapping.path, mappings_)))
      facts_.runtime_signals |= SignalBit(SIGINT);
    auto python = PythonReader::Open(python_module_, find, read_memory_);
    if (python.ok()) {
      python_ = std::make_unique<PythonReader>(std::move(*python));
      python_waits_ = std::make_unique<PythonWaits>(*python_);
      python_tasks_ = std::make_unique<PythonTasks>(*python_, *python_waits_);
      return;
    }
    why_not = python.status().message();
  }
  if (!why_not.empty()) Warn("python frames: " + why_not);
}

void ProcessLook::Explain() {
  for (size_t i = 0; i < work_.size(); ++i) ExplainThread(i);
  AddGoroutines();
  AddJava();
  AddRuby();
  if (!walker_trouble_.empty()) Warn(walker_trouble_);
}

void ProcessLook::ExplainThread(size_t i) {
  Work& work = work_[i];
  ThreadFacts& thread = facts_.threads[i];
  // A thread of the kernel is in no call, and has no program counter.
  if (!work.raw.call || (work.raw.call->pc == 0 && !work.raw.call->running)) return;
  if (work.raw.call->running) return FollowKept(&work, &thread);
  const TaskSystemCall call = ExplainCall(&work, &thread);
  thread.stack_pointer = call.stack_pointer;
  if (IsAnsweredByASupervisor(work.raw)) {
    work.meaning = {};
    work.meaning.kind = WaitKind::kSupervisor;
  }
  if (walker_ != nullptr && !context_.IsLate()) {
    StackWalk walk = walker_->Walk(ImageOf(work.raw), context_.options.most_frames);
    work.wants_registers = walk.wants_registers;
    StoreWalk(std::move(walk), &work, &thread);
  } else if (context_.options.stacks) {
    thread.stack_warning = walker_ == nullptr ? walker_trouble_ : "the time for looking was up";
  }
  if (!context_.IsLate()) work.python = PythonFramesOf(work.raw, call.stack_pointer);
  ExplainWait(work, &thread);
  if (!context_.IsLate()) AddLanguages(&work, &thread);
}

// The registers of a live thread that runs are known only once it was stopped.
void ProcessLook::FollowKept(Work* work, ThreadFacts* thread) {
  if (context_.kept == nullptr || walker_ == nullptr) return;
  const auto registers = context_.kept->registers.find(work->raw.tid);
  if (registers == context_.kept->registers.end()) return;
  const ThreadImage image = ImageOf(work->raw.tid, registers->second);
  StoreWalk(walker_->Walk(image, context_.options.most_frames), work, thread);
  work->python = PythonFramesOf(work->raw, image.registers.stack_pointer());
  AddLanguages(work, thread);
}

TaskSystemCall ProcessLook::ExplainCall(Work* work, ThreadFacts* thread) const {
  const TaskSystemCall& raw = *work->raw.call;
  NativeCall native{raw, false};
  if (facts_.is_32_bit && raw.number >= 0)
    native = NativeCallOf32(raw, read_memory_);
  else
    native.call.number = SystemCallAskedFor(raw.number, raw.pc, read_memory_);
  work->call = native.call;
  thread->system_call = native.call.number >= 0 ? native.call.number : raw.number;
  if (native.call.number >= 0)
    thread->system_call_name = SystemCallName(native.call.number);
  else if (raw.number >= 0)
    thread->system_call_name = fmt::format("system call {} of 32-bit programs", raw.number);
  if (!work->raw.IsBlocked()) return native.call;
  if (native.call.number < 0 && raw.number >= 0)
    work->meaning.kind = WaitKind::kOther;
  else
    work->meaning = ExplainSystemCall(native.call, read_memory_);
  if (native.has_short_times) work->meaning.timeout.reset();
  for (FutexWord& word : work->meaning.futexes) word.is_32_bit = facts_.is_32_bit;
  return native.call;
}

// Its call waits for the process that a filter of seccomp asks: a sandbox, a container engine.
// Which one that is nobody can see, and the call itself has not begun.
bool ProcessLook::IsAnsweredByASupervisor(const RawThread& raw) const {
  if (!raw.status.has_call_filter || !raw.IsBlocked()) return false;
  const std::string where = KernelFunctionOf(raw.tid);
  return where.starts_with("seccomp_do_user_notification") || where.starts_with("__seccomp_filter");
}

// That it sleeps in; empty: the kernel does not say.
std::string ProcessLook::KernelFunctionOf(int tid) const {
  const std::string where =
      context_.proc.Read(fmt::format("{}/task/{}/wchan", pid_, tid)).value_or("");
  return where == "0" ? "" : where;
}

ThreadImage ProcessLook::ImageOf(const RawThread& raw) const {
  ThreadImage image;
  image.tid = raw.tid;
  image.registers.pc = raw.call->pc;
  image.is_32_bit = facts_.is_32_bit;
  constexpr size_t kStackPointerOf32 = 4;
  image.registers.values[facts_.is_32_bit ? kStackPointerOf32 : ThreadRegisters::kStackPointer] =
      raw.call->stack_pointer;
  if (context_.kept != nullptr && context_.kept->registers.count(raw.tid) != 0)
    image.registers = context_.kept->registers.at(raw.tid);
  image.stack_begin = raw.call->stack_pointer;
  image.stack = StackBytes(image.stack_begin);
  return image;
}

ThreadImage ProcessLook::ImageOf(int tid, const ThreadRegisters& registers) const {
  ThreadImage image;
  image.tid = tid;
  image.registers = registers;
  image.stack_begin = registers.stack_pointer() - kBelowStack;
  image.stack = StackBytes(image.stack_begin);
  return image;
}

std::string ProcessLook::StackBytes(uint64_t from) const {
  const MemoryMapping* const mapping = FindMapping(mappings_, from);
  if (mapping == nullptr) return {};
  return memory_.ReadUpTo(
      from, static_cast<size_t>(std::min<uint64_t>(kStackBytes, mapping->end - from)));
}

void ProcessLook::StoreWalk(StackWalk walk, Work* work, ThreadFacts* thread) {
  work->places = std::move(walk.places);
  thread->stack = std::move(walk.frames);
  thread->stack_incomplete = !walk.complete;
  thread->stack_warning = std::move(walk.warning);
}

PythonFrames ProcessLook::PythonFramesOf(const RawThread& raw, uint64_t stack_pointer) {
  const MemoryMapping* const stack = FindMapping(mappings_, stack_pointer);
  if (!python_ || stack == nullptr) return {};
  return python_->FramesOf(raw.status.inner_id > 0 ? raw.status.inner_id : raw.tid, stack_pointer,
                           stack->end, context_.options.most_frames);
}

// What the names of C functions tell is known by then.
void ProcessLook::AddLanguages(Work* work, ThreadFacts* thread) {
  AddPython(work, thread);
  AddScripts(*work, thread);
  AddRubyTo(work, thread);
  AddShellTo(thread);
}

void ProcessLook::AddPython(Work* work, ThreadFacts* thread) {
  if (!python_) return;
  PythonFrames python = std::move(work->python);
  const std::vector<StackFrame> named = python_->Name(python.frames, &python.warning);
  if (thread->state == ThreadState::kSleeping)
    thread->tasks = python_tasks_->TasksOf(python.frames, &thread->wait.may_be_interrupted);
  thread->stands_by = IsIdleInPool(named);
  thread->stack = MergeStacks(thread->stack, python.frames, named, python_module_);
  if (thread->stack.size() > context_.options.most_frames)
    thread->stack.resize(context_.options.most_frames);
  if (!python.warning.empty()) {
    thread->stack_incomplete = true;
    thread->stack_warning = "python frames: " + python.warning;
  }
  work->python = std::move(python);
}

void ProcessLook::ExplainWait(const Work& work, ThreadFacts* thread) {
  if (thread->state == ThreadState::kDiskSleep) {
    thread->kernel_function = KernelFunctionOf(thread->tid);
    // Only root may read it.
    const auto stack = context_.proc.Read(fmt::format("{}/task/{}/stack", pid_, thread->tid));
    if (stack) thread->kernel_stack = ParseKernelStack(*stack);
  }
  if (WaitsForMount(work)) return ExplainMount(work, thread);
  ThreadWait wait;
  wait.kind = work.meaning.kind;
  wait.has_timeout = work.meaning.has_timeout;
  wait.timeout = work.meaning.timeout;
  thread->wait = std::move(wait);
  if (ExplainPostgres(work, thread)) return;
  switch (work.meaning.kind) {
    case WaitKind::kFutex:
      ExplainFutexWait(work, thread);
      break;
    case WaitKind::kChild:
      ExplainChildWait(work.meaning, &thread->wait);
      // No signal wakes a caller of vfork, but who does is known.
      if (work.meaning.children == ChildChoice::kOfVfork && !thread->wait.children.empty())
        thread->state = ThreadState::kSleeping;
      break;
    case WaitKind::kRead:
    case WaitKind::kWrite:
    case WaitKind::kPoll:
    case WaitKind::kAccept:
    case WaitKind::kConnect:
    case WaitKind::kFileLock:
      ExplainFiles(work.meaning, &thread->wait);
      ExplainLastCall(work, thread);
      ExplainOwnCall(thread);
      ExplainTransferOfCurl(thread);
      break;
    case WaitKind::kSignal:
      thread->wait.signals =
          work.meaning.signals &
          (work.meaning.needs_handlers ? facts_.caught_signals & ~work.raw.status.blocked_signals
                                       : ~kLibrarySignals);
      // What sigtimedwait takes is blocked; and of those of the C library the kernel tells nothing.
      thread->wait.no_signal_comes = work.meaning.needs_handlers && thread->wait.signals == 0 &&
                                     LetsNoSignalIn(work.raw.status);
      break;
    case WaitKind::kOther:
      ExplainOpen(thread->tid, work.call, &thread->wait);
      if (work.meaning.moves) ExplainTransfer(work, &thread->wait);
      break;
    case WaitKind::kNone:
      ExplainFault(work, &thread->wait);
      break;
    case WaitKind::kTime:
      if (!ExplainRanks(work, thread)) ExplainSqlite(work, &thread->wait);
      break;
    default:
      break;
  }
  AddChildrenThatEnd(&thread->wait);
}

// For an answer of the process that serves a file system: whatever asks that for anything, even
// for the kind of a file, waits as well.
bool ProcessLook::WaitsForMount(const Work& work) const {
  const WaitKind kind = work.meaning.kind;
  const bool may = kind == WaitKind::kOther || kind == WaitKind::kRead || kind == WaitKind::kWrite;
  if (!may || !work.raw.IsBlocked()) return false;
  const std::string where = KernelFunctionOf(work.raw.tid);
  return where.starts_with("request_wait_answer") || where.starts_with("__fuse_");
}

void ProcessLook::ExplainMount(const Work& work, ThreadFacts* thread) {
  const auto& a = work.call.arguments;
  const bool is_of_descriptor = IsFileWait(work.meaning.kind);
  int fd = is_of_descriptor ? static_cast<int>(a[0]) : -1;
  std::string path;
  for (size_t i = 0; i < 2 && path.empty() && !is_of_descriptor; ++i) {
    const std::string bytes = memory_.ReadUpTo(a[i], PATH_MAX);
    path = bytes.substr(0, bytes.find('\0'));
    if (i == 1 && !path.starts_with('/') && static_cast<int>(a[0]) >= 0) {
      fd = static_cast<int>(a[0]);  // of the folder that the path begins in
      path.clear();
    }
  }
  ThreadWait& wait = thread->wait;
  wait = {};
  wait.kind = WaitKind::kRead;
  wait.files = {context_.files.DescribeMount(living_, fd, path)};
  for (const auto& [process, descriptor] : wait.files[0].others) leads_to_.insert(process);
  // A signal may not wake it, but who does is known.
  if (!wait.files[0].others.empty()) thread->state = ThreadState::kSleeping;
}

// A child that ends or stops raises SIGCHLD: that ends the wait, or the handler does. What the
// handler does for others is up to those who judge: these want to know who its children are.
void ProcessLook::AddChildrenThatEnd(ThreadWait* wait) {
  // Python's handlers may signal a condition, too.
  const bool ends = SignalsEnd(wait->kind) || (python_ && wait->kind == WaitKind::kCondition);
  if (!ends && wait->kind != WaitKind::kChild && !python_) return;
  uint64_t heard = wait->kind == WaitKind::kSignal ? wait->signals : facts_.caught_signals;
  for (const WaitFile& file : wait->files) heard |= file.signals;
  if ((heard & SignalBit(SIGCHLD)) == 0) return;
  for (const TaskStat& child : context_.tree.Children(pid_)) {
    if (child.state == ThreadState::kZombie) continue;
    if (ends) wait->children.push_back(child.id);
    leads_to_.insert(child.id);
  }
}

std::string ProcessLook::VariableName(uint64_t address) {
  if (walker_ != nullptr) {
    if (std::string name = walker_->Variable(address); !name.empty()) return name;
  }
  if (const auto thread = ThreadWithStackAt(address))
    return fmt::format("on the stack of thread {}", *thread);
  const MemoryMapping* const mapping = FindMapping(mappings_, address);
  // The name of memory without a file, or of a file that has gone, says nothing.
  const bool has_no_name =
      mapping != nullptr && mapping->shared && mapping->path.ends_with(" (deleted)");
  return walker_ != nullptr && has_no_name ? walker_->PointerTo(mapping->begin, address) : "";
}

std::optional<int> ProcessLook::ThreadWithStackAt(uint64_t address) const {
  const MemoryMapping* const stack = FindMapping(mappings_, address);
  std::optional<int> thread;
  uint64_t nearest = 0;
  for (const Work& work : work_) {
    const uint64_t top = work.raw.call ? work.raw.call->stack_pointer : 0;
    if (stack == nullptr || top < stack->begin || top > address || top < nearest) continue;
    nearest = top;
    thread = work.raw.tid;
  }
  return thread;
}

// Whether a thread's number in memory that several processes share may be one of another namespace:
// of an inner one, or of an outer one, from which who has no parent here may have the memory.
bool ProcessLook::MayBeOfElsewhere(const MemoryMapping& mapping) {
  if (context_.kept != nullptr) return true;
  const bool is_inner = !context_.proc.IsInFirstPidNamespace().value_or(true);
  const auto space = context_.proc.Link(fmt::format("{}/ns/pid", pid_));
  bool all_seen = false;
  std::vector<int> sharers =
      context_.files.ProcessesThatMap(mapping.device, mapping.inode, &all_seen);
  sharers.push_back(pid_);
  return std::any_of(sharers.begin(), sharers.end(), [&](int pid) {
    const auto stat = context_.proc.Stat(pid);
    return (is_inner && stat && stat->parent == 0) ||
           context_.proc.Link(fmt::format("{}/ns/pid", pid)) != space;
  });
}

void ProcessLook::ExplainFutexWait(const Work& work, ThreadFacts* thread) {
  // Of several, the first stands for all: whichever is woken ends the wait.
  if (work.meaning.futexes.empty()) return;
  ThreadWait& wait = thread->wait;
  const FutexWord& word = work.meaning.futexes.front();
  const MemoryMapping* const mapping = FindMapping(mappings_, word.address);
  // Of which memory is shared, a core dump says nothing; and it has one process alone.
  const bool in_shared_memory =
      mapping != nullptr && (mapping->shared || (context_.kept != nullptr && !word.is_private));
  wait.shared = !word.is_private && in_shared_memory;
  // In a namespace of processes the word has a number of there, which may be anybody's of it.
  const bool is_of_elsewhere = in_shared_memory && MayBeOfElsewhere(*mapping);
  const bool may_be_anybody = in_shared_memory && (has_own_ids_ || is_of_elsewhere);
  const auto is_thread = [&](int inner) {
    return may_be_anybody || OuterThread(inner, in_shared_memory).has_value();
  };
  const FutexMeaning meaning =
      ExplainFutexWord(word, work.meaning.futex_use, thread->stack, read_memory_, is_thread);
  wait.kind = meaning.kind;
  wait.address = meaning.object;
  wait.variable = VariableName(meaning.object);
  if (meaning.owner) {
    wait.owner = OuterThread(*meaning.owner, in_shared_memory);
    if (is_of_elsewhere && outer_ids_.count(*meaning.owner) == 0) wait.owner.reset();
    if (!wait.owner && !may_be_anybody) wait.owner = *meaning.owner;
  }
  wait.owner_died = meaning.owner_died;
  if (meaning.owner && wait.owner_died && mapping != nullptr && !in_shared_memory)
    FindOwnerElsewhere(*meaning.owner, &wait);
  if (!wait.shared && wait.owner && !wait.owner_died && !wait.owner_copied &&
      outer_ids_.count(*meaning.owner) == 0)
    LeadToProcessOf(*wait.owner);
  if (!meaning.owner && InterruptedItself(thread->stack)) wait.owner = thread->tid;
  if (meaning.joined) wait.thread = OuterThread(*meaning.joined, false);
  if (wait.kind == WaitKind::kFutex && !wait.shared) FindJoinedOfMusl(thread);
  if (python_ && wait.kind == WaitKind::kSemaphore) ExplainPythonLock(work, &wait);
  if (python_ && wait.kind == WaitKind::kCondition && wait.address == python_->GlobalLock())
    ExplainInterpreterLock(&wait);
  if (wait.shared) ExplainSharedWord({meaning.object, word.expected, false}, &wait);
}

// Who waits for a thread's end there waits for a word that lies above that one's stack.
void ProcessLook::FindJoinedOfMusl(ThreadFacts* thread) const {
  constexpr size_t kInnermost = 6;
  const std::vector<StackFrame>& stack = thread->stack;
  const bool joins = std::any_of(
      stack.begin(), stack.begin() + static_cast<long>(std::min(stack.size(), kInnermost)),
      [](const StackFrame& frame) {
        return frame.function.find("pthread_join") != std::string::npos ||
               frame.function.find("pthread_timedjoin") != std::string::npos;
      });
  const auto joined = joins ? ThreadWithStackAt(thread->wait.address) : std::nullopt;
  if (!joined || *joined == thread->tid) return;
  thread->wait.kind = WaitKind::kJoin;
  thread->wait.thread = joined;
  thread->wait.variable.clear();
}

// All locks of Python are semaphores, and its objects say what they are for. What signals an event
// or fills a queue is a condition to those who judge.
void ProcessLook::ExplainPythonLock(const Work& work, ThreadWait* wait) {
  const uint64_t stack_pointer = work.raw.call->stack_pointer;
  const PythonWait python =
      python_waits_->Explain(wait->address, StackBytes(stack_pointer), work.python.frames);
  if (python.object == 0) return;
  const auto owner = python.owner ? OuterThread(*python.owner, false) : std::nullopt;
  const auto ends = python.thread ? OuterThread(*python.thread, false) : std::nullopt;
  wait->object_type = python.type;
  if (!python.name.empty()) wait->variable = python.name;
  if (ends) {
    wait->kind = WaitKind::kJoin;
    wait->thread = ends;
  } else if (owner) {
    wait->kind = WaitKind::kMutex;
    wait->owner = owner;
    wait->owner_by_code = python.owner_by_frames;
  } else if (python.is_signal && !wait->shared) {
    wait->kind = WaitKind::kCondition;
  }
}

// Who wants the interpreter wakes every few milliseconds to ask for it.
void ProcessLook::ExplainInterpreterLock(ThreadWait* wait) {
  const auto holder = python_->GlobalLockOwner();
  const auto owner = holder ? OuterThread(*holder, false) : std::nullopt;
  if (!owner) return;
  wait->kind = WaitKind::kMutex;
  wait->owner = owner;
  wait->object_type = "GIL";
  wait->variable = "of " + python_module_;
}

// A futex in a mapping that other processes have, too, is the same for whoever maps the same place
// of the same file.
void ProcessLook::ExplainSharedWord(const FutexWord& word, ThreadWait* wait) {
  const MemoryMapping* const mapping = FindMapping(mappings_, word.address);
  if (mapping == nullptr) return;
  wait->shared_name = fmt::format(
      "{}+{:#x}", mapping->path.empty() ? fmt::format("inode {}", mapping->inode) : mapping->path,
      word.address - mapping->begin + mapping->file_offset);
  if (wait->owner && !wait->owner_died) {
    return LeadToProcessOf(*wait->owner);
  }
  // Nobody holds a condition or a semaphore: whoever shares it may be the one to wake.
  bool all_seen = false;
  const std::set<int> sharers = context_.files.ProcessesThatShare(pid_, *mapping, &all_seen);
  leads_to_.insert(sharers.begin(), sharers.end());
  if (!all_seen) return;
  wait->sharers.assign(sharers.begin(), sharers.end());
  const auto name = context_.files.NameOfMapped(living_, *mapping);
  wait->is_public = name.has_value();
  if (!name || name->empty()) return;
  wait->shared_name = *name + wait->shared_name.substr(wait->shared_name.rfind('+'));
  if (wait->variable.starts_with('*')) wait->variable.clear();  // the file's own says more
}

void ProcessLook::LeadToProcessOf(int thread) {
  const auto status = context_.proc.Read(fmt::format("{}/status", thread));
  const auto parsed = status ? ParseTaskStatus(*status) : std::nullopt;
  if (parsed && parsed->process > 0) leads_to_.insert(parsed->process);
}

// The living thread of another process that this one's namespace calls `inner`; nothing: none.
std::optional<int> ProcessLook::ThreadOfOthers(int inner) const {
  if (!has_own_ids_) {
    const auto stat = context_.proc.Stat(inner);
    const bool lives =
        stat && stat->state != ThreadState::kZombie && stat->state != ThreadState::kDead;
    return lives ? std::optional<int>(inner) : std::nullopt;
  }
  const auto space = context_.proc.Link(fmt::format("{}/ns/pid", pid_));
  for (const int pid : context_.proc.Processes()) {
    const bool is_near = pid == facts_.parent ||
                         (space && context_.proc.Link(fmt::format("{}/ns/pid", pid)) == space);
    if (pid == pid_ || !is_near) continue;
    for (const int tid : context_.proc.Threads(pid)) {
      const auto status = context_.proc.Read(fmt::format("{}/task/{}/status", pid, tid));
      const auto parsed = status ? ParseTaskStatus(*status) : std::nullopt;
      if (parsed && (parsed->inner_id > 0 ? parsed->inner_id : tid) == inner) return tid;
    }
  }
  return std::nullopt;
}

// A word of private memory names an owner that is no thread of this process. Where no thread has
// the number, it ended. One that has it may share the memory, as after clone(CLONE_VM); or fork()
// copied the lock: a thread older than this process was never one of its own, as no two threads
// that live at one time have the same number. A younger one was given the number of one that ended.
void ProcessLook::FindOwnerElsewhere(int inner, ThreadWait* wait) {
  if (context_.kept != nullptr) {  // nobody else is known: most likely fork() was called there
    wait->owner_copied = inner == facts_.parent;
    wait->owner_died = !wait->owner_copied;
    return;
  }
  const auto other = ThreadOfOthers(inner);
  if (!other) return;
  const long differs = syscall(SYS_kcmp, *other, pid_, KCMP_VM, 0, 0);
  if (differs <= 0) {  // the same memory, or that may not be asked
    wait->owner = differs == 0 ? other : std::nullopt;
    wait->owner_died = false;
    wait->shared = differs < 0;
    return;
  }
  const auto its = context_.proc.Stat(*other);
  const auto own = context_.proc.Stat(pid_);
  if (!its || !own || its->start_ticks > own->start_ticks) return;
  wait->owner = other;
  wait->owner_died = false;
  wait->owner_copied = true;
}

// The thread that the process calls `inner`; nothing where there is none. What a word that is
// shared with other processes names may be a thread of any of them; any other word, a thread of
// those that have the same memory.
std::optional<int> ProcessLook::OuterThread(int inner, bool shared) const {
  const auto own = outer_ids_.find(inner);
  if (own != outer_ids_.end()) {
    const auto is_gone = [&](const ThreadFacts& thread) {
      return thread.tid == own->second && thread.state == ThreadState::kZombie;
    };
    if (std::any_of(facts_.threads.begin(), facts_.threads.end(), is_gone)) return std::nullopt;
    // It may have ended since the list was read.
    if (context_.proc.Read(fmt::format("{}/task/{}/stat", pid_, own->second))) return own->second;
    return std::nullopt;
  }
  if (has_own_ids_) return std::nullopt;
  if (!shared) {
    for (const int sharer : facts_.shares_memory_with) {
      const std::vector<int> its = context_.proc.Threads(sharer);
      if (std::count(its.begin(), its.end(), inner) != 0) return inner;
    }
    return std::nullopt;
  }
  const auto stat = context_.proc.Stat(inner);
  return stat && stat->state != ThreadState::kZombie && stat->state != ThreadState::kDead
             ? std::optional<int>(inner)
             : std::nullopt;
}

void ProcessLook::ExplainChildWait(const CallMeaning& meaning, ThreadWait* wait) {
  int wanted = meaning.child;
  if (meaning.children == ChildChoice::kDescriptor)
    wanted = context_.files.ProcessBehind(living_, meaning.child);
  if (meaning.children == ChildChoice::kGroup && wanted == 0) {
    const auto own = context_.proc.Stat(pid_);
    wanted = own ? own->group : 0;
  }
  for (const TaskStat& child : context_.tree.Children(pid_)) {
    const bool fits = meaning.children == ChildChoice::kAny       ? true
                      : meaning.children == ChildChoice::kGroup   ? child.group == wanted
                      : meaning.children == ChildChoice::kOfVfork ? HaveOneMemory(pid_, child.id)
                                                                  : child.id == wanted;
    if (!fits) continue;
    wait->children.push_back(child.id);
    leads_to_.insert(child.id);
  }
}

void ProcessLook::ExplainFiles(const CallMeaning& meaning, ThreadWait* wait) {
  for (const CallMeaning::File& file : meaning.files)
    wait->files.push_back(meaning.is_queue
                              ? context_.files.DescribeQueue(living_, file.fd, file.wants_read)
                              : context_.files.Describe(living_, file.fd, file.wants_read));
  if (const auto& object = meaning.system_v) {
    wait->files.push_back(
        object->is_queue
            ? DescribeMessageQueue(context_.proc, living_, object->id,
                                   meaning.kind == WaitKind::kRead)
            : DescribeSemaphores(context_.proc, living_, object->id, object->semaphores));
  }
  if (wait->files.size() == 1 && wait->files[0].kind == FileKind::kRing && !wait->files[0].is_idle)
    ExplainRing(wait->files[0].fd, wait);
  if (meaning.epoll >= 0) {
    for (const int fd : context_.files.EpollFiles(living_, meaning.epoll))
      wait->files.push_back(context_.files.Describe(living_, fd, true));
    if (wait->files.empty())
      wait->files.push_back(context_.files.Describe(living_, meaning.epoll, true));
  }
  if (meaning.kind == WaitKind::kConnect)
    context_.files.DescribeBacklog(living_, meaning.address, &wait->files.front());
  // One that waits for the outside is no part of a hang anyway.
  const bool one_socket = (meaning.kind == WaitKind::kRead || meaning.kind == WaitKind::kWrite ||
                           meaning.kind == WaitKind::kConnect) &&
                          wait->files.size() == 1 && wait->files[0].kind == FileKind::kSocket &&
                          !wait->files[0].outside;
  if (one_socket && !wait->has_timeout) {
    wait->timeout = OpenFiles::SocketTimeout(pid_, wait->files[0].fd, wait->files[0].wants_read);
    wait->has_timeout = wait->timeout.has_value();
  }
  const bool one_terminal = meaning.kind == WaitKind::kRead && wait->files.size() == 1 &&
                            wait->files[0].kind == FileKind::kTerminal;
  if (one_terminal && !wait->has_timeout) {
    wait->timeout = OpenFiles::TerminalTimeout(pid_, wait->files[0].fd);
    wait->has_timeout = wait->timeout.has_value();
  }
  if (meaning.files_cut)
    Warn(fmt::format(
        "a thread of process {} waits on so many files that only {} of them are looked at", pid_,
        meaning.files.size()));
  if (meaning.kind == WaitKind::kFileLock && !meaning.files.empty()) {
    const int holder = context_.files.DescribeLock(living_, &wait->files.front());
    if (holder > 0) {
      wait->owner = holder;
      leads_to_.insert(holder);
    }
  }
  for (const WaitFile& file : wait->files) {
    for (const auto& [process, fd] : file.others) leads_to_.insert(process);
  }
}

std::set<int> ProcessLook::LeadsTo() const {
  std::set<int> others = leads_to_;
  others.erase(pid_);
  return others;
}

// What runs has no registers to be read otherwise. What sleeps has nothing to gain from a stop
// unless its stack could not be followed to the program; and loses the time since when it sleeps,
// which the stop ends.
bool ProcessLook::WantsStop(const Work& work) const {
  // Registers of 32-bit programs are others. A machine of Java has signals and stops of its own.
  if (!context_.options.stop || is_java_ || walker_ == nullptr || pid_ == getpid() ||
      facts_.is_32_bit || work.raw.status.tracer != 0 || !work.raw.call)
    return false;
  if (work.raw.stat.state == ThreadState::kRunning || work.raw.call->running) return true;
  return context_.options.stop_asleep && work.raw.stat.state == ThreadState::kSleeping &&
         work.wants_registers && StopIsHarmlessIn(work.raw.call->number);
}

void ProcessLook::Stop() {
  for (size_t i = 0; i < work_.size() && !context_.IsLate(); ++i) {
    const std::vector<int>& nappers = context_.options.nappers;
    if (WantsStop(work_[i]))
      StopThread(&work_[i], &facts_.threads[i]);
    else if (!is_java_ && std::count(nappers.begin(), nappers.end(), work_[i].raw.tid) != 0)
      FollowNap(work_[i], &facts_.threads[i]);
  }
}

void ProcessLook::StopThread(Work* work, ThreadFacts* thread) {
  ThreadImage image;
  int interrupted = -1;
  {
    auto stop = ThreadStop::Stop(context_.clock, work->raw.tid, kLongestWaitForStop);
    auto registers = stop.ok() ? (*stop)->Registers() : Result<ThreadRegisters>(stop.status());
    if (!registers.ok()) {
      thread->stack_warning = registers.status().message();
      return;
    }
    image = ImageOf(work->raw.tid, *registers);
    if (go_) {
      for (const auto& value : registers->values)
        stopped_registers_[work->raw.tid].push_back(value.value_or(0));
    }
    interrupted = (*stop)->interrupted_call();
    work->python = PythonFramesOf(work->raw, image.registers.stack_pointer());
    work->ruby = RubySitesOf(work->raw.tid);
    context_.longest_stop = std::max(context_.longest_stop, (*stop)->longest_hold());
  }
  StoreWalk(walker_->Walk(image, context_.options.most_frames), work, thread);
  const bool was_blocked = work->raw.IsBlocked();
  if (!was_blocked) {
    if (ExplainRanks(*work, thread)) return AddLanguages(work, thread);
    StepThread(interrupted >= 0, image.registers.stack_pointer(), thread);
    AddLanguages(work, thread);
    return;
  }
  work->was_stopped = true;
  const bool still = interrupted == work->raw.call->number &&
                     image.registers.pc == work->raw.call->pc &&
                     image.registers.stack_pointer() == work->raw.call->stack_pointer;
  if (still)
    ExplainWait(*work, thread);
  else
    thread->wait = {};
  AddLanguages(work, thread);
}

void ProcessLook::Verify() {
  VerifyGoroutines();
  facts_.frozen_by = context_.freezer.WhatHolds(pid_);
  const bool is_frozen = !facts_.frozen_by.empty();
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    ThreadFacts& thread = facts_.threads[i];
    if (is_frozen && thread.state != ThreadState::kZombie && thread.state != ThreadState::kDead) {
      thread.state = ThreadState::kFrozen;
      thread.wait = {};
      continue;
    }
    if (!work.raw.IsBlocked() || work.was_stopped || StoodStill(context_.proc, work.raw) ||
        WaitsAgainInJava(work, i) || NapsAgain(work, &thread))
      continue;
    thread.wait = {};
    thread.wakes_nobody = false;
    thread.state = ThreadState::kRunning;
    thread.since.reset();
    thread.stack.clear();
    thread.stack_warning = "it went on while it was looked at";
  }
}

}  // namespace hangscope

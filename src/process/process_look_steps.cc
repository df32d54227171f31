// ProcessLook's threads that run: whether they go in circles, or nap and look again.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/build_features.h"
#include "base/file_system.h"
#include "process/process_graph.h"
#include "process/process_look.h"
#include "process/signal_sets.h"
#include "process/step_helper.h"

namespace hangscope {
namespace {

constexpr size_t kMostPolls = 1024;
constexpr size_t kMostNamed = 64;  // of them

// Descriptors that a call which waits for several has found ready. Its memory is as it left it.
std::vector<int> ReadyOf(const StepCall& call, const ReadMemory& read) {
  std::vector<int> ready;
  constexpr size_t kMost = 64;
  const auto& a = call.arguments;
  bool is_poll = call.number == SYS_ppoll;
#if defined(__x86_64__)
  is_poll = is_poll || call.number == SYS_poll;
#endif
  if (!is_poll || call.result <= 0) return ready;
  std::vector<pollfd> files(std::min<uint64_t>(a[1], kMost));
  if (!read(a[0], files.data(), files.size() * sizeof(pollfd))) return ready;
  for (const pollfd& file : files) {
    if (file.fd >= 0 && file.revents != 0) ready.push_back(file.fd);
  }
  return ready;
}

bool IsEpoll(int number) {
#if defined(__x86_64__)
  if (number == SYS_epoll_wait) return true;
#endif
  return number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

// What it tells can change only by what the process itself does.
bool AsksForItself(int number) {
  switch (number) {
    case SYS_sched_yield:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_fcntl:
    case SYS_futex:  // its word is among those that are polled
      return true;
    default:
      return false;
  }
}

// Requests of io_uring, or of aio.
bool IsOfRequests(const MemoryMapping& mapping) {
  return mapping.path.find("[io_uring]") != std::string::npos || mapping.path == "/[aio]";
}

// Memory that the kernel or a device writes to: a ring of packets, registers.
bool IsOfKernel(const MemoryMapping& mapping) {
  const bool is_device = mapping.path.starts_with("/dev/") &&
                         !mapping.path.starts_with("/dev/shm/") &&
                         !mapping.path.starts_with("/dev/zero");
  return is_device || mapping.path.starts_with("socket:") ||
         mapping.path.starts_with("anon_inode:");
}

// Whoever knows the name may open it at any time, and write to it.
bool MayBeOpenedByName(const MemoryMapping& mapping) {
  return mapping.path.starts_with('/') && !mapping.path.ends_with(" (deleted)");
}

bool IsOfSystem(const MemoryMapping& mapping) {
  return mapping.path.starts_with("/usr/") || mapping.path.starts_with("/lib");
}

// C leaves such names to its library, of which a static program has a part.
bool IsOfLibraryInProgram(const std::string& variable) {
  return variable.starts_with("__") || variable.starts_with("_dl_");
}

std::string BaseOf(const std::string& variable) { return variable.substr(0, variable.find('+')); }

}  // namespace

// What runs may go in circles. It does where it is in the same state again, memory included: then
// nothing but what others do to the memory and to the files that it reads, or a signal, ends that.
void ProcessLook::StepThread(bool was_in_call, uint64_t stack_pointer, ThreadFacts* thread) {
  if (!context_.options.step_running || context_.stepped >= context_.options.most_stepped) return;
  ++context_.stepped;
  stepped_[thread->tid] = ToStep(thread->tid, stack_pointer);
  StepTimes times;
  times.usual = context_.options.step_time;
  times.longest = std::max<TimeNs>(0, context_.options.long_step_time - context_.stepped_long);
  const TimeNs begin = context_.clock.Monotonic();
  const auto stepped = StepInHelper(context_.clock, {stepped_[thread->tid]}, times);
  const TimeNs took = context_.clock.Monotonic() - begin;
  context_.deadline += took;
  if (!stepped.ok()) {
    if (!was_in_call) Warn(stepped.status().message());  // else it may have fallen asleep
    return;
  }
  const SteppedLoop& loop = stepped.value().front();
  context_.longest_stop = std::max(context_.longest_stop, loop.held);
  if (took > times.usual) context_.stepped_long += took;
  StoreSpin(loop, thread);
}

SteppedThread ProcessLook::ToStep(int tid, uint64_t stack_pointer) const {
  SteppedThread thread{tid, read_memory_, &mappings_, {}, {}};
  if (const MemoryMapping* const stack = FindMapping(mappings_, stack_pointer))
    thread.stack = {stack->begin, stack->end};
  for (const MemoryMapping& mapping : mappings_) {
    if (mapping.path == "[vdso]") thread.clock_code = {mapping.begin, mapping.end};
  }
  return thread;
}

std::vector<SteppedThread> ProcessLook::Spinners() const {
  std::vector<SteppedThread> spinners;
  for (const ThreadFacts& thread : facts_.threads) {
    const auto stepped = stepped_.find(thread.tid);
    if (thread.spin && thread.spin->period > 0 && !thread.spin->writes_memory &&
        !thread.spin->naps && stepped != stepped_.end())
      spinners.push_back(stepped->second);
  }
  return spinners;
}

void ProcessLook::StoreTogether(int tid, const SteppedLoop& loop) {
  const auto thread = std::find_if(facts_.threads.begin(), facts_.threads.end(),
                                   [&](const ThreadFacts& each) { return each.tid == tid; });
  if (thread == facts_.threads.end()) return;
  StoreSpin(loop, &*thread);
  thread->spin->held_with_others = true;
}

void ProcessLook::StoreSpin(const SteppedLoop& loop, ThreadFacts* thread) {
  ThreadFacts::Spin spin;
  spin.steps = loop.steps;
  spin.period = loop.period;
  spin.begin = loop.access.begin;
  spin.end = loop.access.end;
  spin.calls_kernel = loop.access.calls_kernel;
  spin.reads_clock = loop.access.reads_clock;
  spin.writes_memory = loop.changes_memory;
  spin.in_part = loop.in_part;
  const MemoryMapping* const code = FindMapping(mappings_, loop.access.begin);
  spin.of_anonymous_code = code != nullptr && code->path.empty();
  if (loop.access.understood) CollectPolls(loop.access, loop.stack_pointer, &spin);
  // What the kernel changes by itself, as a clock.
  const auto is_of_kernel = [&loop](const StepRange& range) {
    const StepRange& words = loop.kernel_words;
    return range.address < words.address + words.bytes &&
           words.address < range.address + range.bytes;
  };
  spin.reads_clock = spin.reads_clock ||
                     std::any_of(loop.access.reads.begin(), loop.access.reads.end(), is_of_kernel);
  if (loop.period > 0) {
    CollectFlickers(loop, &spin);
    CollectWriters(&spin);
    for (const SteppedLoop::Call& each : loop.calls) CollectCall(each.call, &spin);
    ThreadWait handler;
    handler.kind = WaitKind::kRead;
    AddChildrenThatEnd(&handler);
    spin.others.insert(spin.others.end(), handler.children.begin(), handler.children.end());
  }
  // What goes on for ever and waits for nothing computes, or naps by design; unless others wait for
  // a lock that it has, and never gives back.
  if (spin.in_part && spin.polls.empty() && !AsksKernel(spin) && !HasWhatOthersWant(thread->tid))
    spin.period = 0;
  if (!HANGSCOPE_HAS_CAPSTONE && spin.period > 0) {
    Warn(fmt::format(
        "what thread {} ({}) polls is not known: this hangscope was built without capstone",
        thread->tid, thread->name));
  }
  thread->spin = std::move(spin);
}

bool ProcessLook::HasWhatOthersWant(int tid) const {
  return std::any_of(facts_.threads.begin(), facts_.threads.end(), [tid](const ThreadFacts& each) {
    const bool is_lock = each.wait.kind == WaitKind::kMutex || each.wait.kind == WaitKind::kRwLock;
    return each.tid != tid && is_lock && each.wait.owner == tid && !each.wait.owner_copied;
  });
}

// In the innermost function that is none of the C library's it looks, and that is called again and
// again only with what it has found.
std::optional<NapPlace> ProcessLook::NapPlaceOf(const Work& work, const ThreadFacts& thread) const {
  const auto is_of_library = [](const StackFrame& frame) {
    return frame.module.starts_with("libc.so") || frame.module.starts_with("libpthread");
  };
  const std::vector<StackPlace>& places = work.places;
  NapPlace nap;
  nap.pc = nap.back = work.raw.call->pc;
  nap.stack_pointer = nap.stack_pointer_back = work.raw.call->stack_pointer;
  for (const StackPlace& place : places) {
    const auto frame = std::find_if(thread.stack.begin(), thread.stack.end(),
                                    [&](const StackFrame& each) { return each.pc == place.pc; });
    if (frame == thread.stack.end() || !place.stack_pointer) return std::nullopt;
    if (is_of_library(*frame)) continue;
    if (&place == &places[0]) return nap;
    nap.back = place.pc + 1;  // `pc` is in the call
    nap.stack_pointer_back = *place.stack_pointer;
    return nap;
  }
  return std::nullopt;
}

void ProcessLook::FollowNap(const Work& work, ThreadFacts* thread) {
  if (!thread->wait.has_timeout || facts_.is_32_bit || !work.raw.IsBlocked() ||
      work.raw.status.tracer != 0 || !StopIsHarmlessIn(work.raw.call->number) ||
      context_.followed >= context_.options.most_stepped)
    return;
  StepTimes times;
  times.usual = context_.options.step_time;
  times.nap = NapPlaceOf(work, *thread);
  times.longest_nap = context_.options.longest_nap;
  if (!times.nap) return;
  ++context_.followed;
  const auto stepped =
      StepInHelper(context_.clock, {ToStep(thread->tid, thread->stack_pointer)}, times);
  if (!stepped.ok()) return;  // it did not come to its next nap in time
  SteppedLoop loop = stepped.value().front();
  context_.longest_stop = std::max(context_.longest_stop, loop.held);
  Napper napper{thread->tid, *times.nap, {}, loop.found, 0};
  for (const StepRange& range : loop.access.reads) napper.polls.push_back(range.address);
  const WaitKind kind = thread->wait.kind;
  if (kind == WaitKind::kMutex || kind == WaitKind::kRwLock || kind == WaitKind::kSemaphore)
    loop.access.reads.push_back({thread->wait.address, 4});  // the call itself looks there
  StoreSpin(loop, thread);
  thread->spin->naps = true;
  // An interpreter looks at much that is its own, whatever its program does.
  constexpr size_t kMostOfProgram = 16;
  if (python_ || thread->spin->polls.size() > kMostOfProgram) thread->spin->period = 0;
  if (thread->spin->period == 0) return;
  nappers_.push_back(std::move(napper));
}

// How often it has given up the CPU, where it is in the nap in which it was followed.
std::optional<uint64_t> ProcessLook::SwitchesInNap(const Napper& napper) const {
  const auto now = ReadThread(context_.proc, pid_, napper.tid);
  const bool naps = now && now->IsBlocked() && now->call->pc == napper.place.pc &&
                    now->call->stack_pointer == napper.place.stack_pointer;
  return naps ? std::optional(now->status.voluntary_switches) : std::nullopt;
}

bool ProcessLook::BeginOfNaps() {
  return std::all_of(nappers_.begin(), nappers_.end(), [&](Napper& napper) {
    const auto switches = SwitchesInNap(napper);
    napper.switches = switches.value_or(0);
    return switches.has_value();
  });
}

// Whoever has the locks of files that it asks for has had them all the time.
bool ProcessLook::IsStillRefused(int tid) {
  const auto thread = std::find_if(facts_.threads.begin(), facts_.threads.end(),
                                   [&](const ThreadFacts& each) { return each.tid == tid; });
  if (thread == facts_.threads.end() || !thread->spin) return false;
  const auto& calls = thread->spin->calls;
  return std::all_of(calls.begin(), calls.end(), [&](const ThreadFacts::Spin::Call& call) {
    return call.wait.kind != WaitKind::kFileLock || call.wait.files.empty() ||
           context_.files.LocksAreAsBefore(living_, call.wait.files[0].fd);
  });
}

bool ProcessLook::EndOfNaps() {
  const auto value = [&](uint64_t part) {
    uint32_t now = 0;
    return memory_.ReadInto(part, &now, sizeof now) ? std::optional(now) : std::nullopt;
  };
  const auto is_same = [&](const Napper& napper) {
    return HashOfParts(napper.polls, value) == napper.found;
  };
  const auto still_naps = [&](const Napper& napper) {
    return SwitchesInNap(napper) == napper.switches;
  };
  const auto is_refused = [&](const Napper& napper) { return IsStillRefused(napper.tid); };
  return std::all_of(nappers_.begin(), nappers_.end(), is_same) &&
         std::all_of(nappers_.begin(), nappers_.end(), is_refused) &&
         std::all_of(nappers_.begin(), nappers_.end(), still_naps);
}

void ProcessLook::ForgetNaps() {
  for (ThreadFacts& thread : facts_.threads) {
    if (thread.spin && thread.spin->naps) thread.spin.reset();
  }
}

// Of a private mapping, what the process has not written is what others write to its file. Nobody
// writes to that of a program that runs.
bool ProcessLook::IsOfDataFile(const MemoryMapping& mapping) const {
  return mapping.path.starts_with('/') &&
         std::none_of(mappings_.begin(), mappings_.end(), [&](const MemoryMapping& other) {
           return other.executable && other.path == mapping.path;
         });
}

// What it reads outside of its own stack: others may change that.
void ProcessLook::CollectPolls(const LoopAccess& access, uint64_t stack_pointer,
                               ThreadFacts::Spin* spin) {
  const MemoryMapping* const stack = FindMapping(mappings_, stack_pointer);
  std::set<const MemoryMapping*> shared;
  for (const LoopAccess::Range& range : access.reads) {
    const MemoryMapping* const mapping = FindMapping(mappings_, range.address);
    // The kernel writes the time there.
    if (mapping != nullptr && mapping->path.starts_with("[vvar")) spin->reads_clock = true;
    const bool is_constant = mapping != nullptr && !mapping->writable && !mapping->shared &&
                             (IsOfSystem(*mapping) || !IsOfDataFile(*mapping));
    if (is_constant || (stack != nullptr && mapping == stack)) continue;
    if (spin->polls.size() < kMostPolls)
      spin->polls.push_back(range.address);
    else
      spin->polls_cut = true;
    if (mapping != nullptr && (mapping->shared || IsOfDataFile(*mapping))) shared.insert(mapping);
  }
  NamePolls(spin);
  // Of what was given to the kernel to be done it may write the result anywhere.
  const bool kernel_writes = std::any_of(mappings_.begin(), mappings_.end(), IsOfRequests);
  spin->polls_shared = !shared.empty() || (kernel_writes && !spin->polls.empty());
  std::set<int> sharers;
  spin->sharers_known =
      !kernel_writes && std::none_of(shared.begin(), shared.end(), [](const MemoryMapping* each) {
        return MayBeOpenedByName(*each) || IsOfKernel(*each);
      });
  for (const MemoryMapping* mapping : shared) {
    bool all_known = false;
    sharers.merge(context_.files.ProcessesThatShare(pid_, *mapping, &all_known));
    spin->sharers_known = spin->sharers_known && all_known;
  }
  sharers.erase(pid_);
  leads_to_.insert(sharers.begin(), sharers.end());
  spin->sharers.assign(sharers.begin(), sharers.end());
}

// The program, and what it has loaded that is not the system's.
bool ProcessLook::RunsAWritingProgram(int pid) {
  const auto maps = context_.proc.Read(fmt::format("{}/maps", pid));
  const auto program = context_.proc.Link(fmt::format("{}/exe", pid));
  const auto own = context_.proc.Link("self/exe");
  if (!maps || !program || !own || NameOf(*program) == NameOf(*own)) return false;
  std::set<std::string> asked;
  for (const MemoryMapping& mapping : ParseMemoryMappings(*maps)) {
    const bool is_program = mapping.path == *program;
    if (!mapping.executable || mapping.inode == 0 || !mapping.path.starts_with('/') ||
        (IsOfSystem(mapping) && !is_program) || !asked.insert(mapping.path).second)
      continue;
    const std::string path =
        is_program ? fmt::format("{}/exe", pid) : fmt::format("{}/root{}", pid, mapping.path);
    if (context_.writing_programs.Has(context_.proc.Path(path),
                                      fmt::format("{} {}", mapping.device, mapping.inode)))
      return true;
  }
  return false;
}

// A system call that writes to the memory of another process leaves no trace in that. Who makes it
// must know where to write: as a copy of the process does, or who was started by it and told.
void ProcessLook::CollectWriters(ThreadFacts::Spin* spin) {
  constexpr size_t kMost = 64;
  const auto stat = context_.proc.Stat(pid_);
  if (!stat || context_.kept != nullptr || spin->polls.empty()) return;
  std::set<int> writers;
  for (const int pid : context_.files.ProcessesWithMemoryOpen(pid_)) writers.insert(pid);
  const auto program = context_.proc.Link(fmt::format("{}/exe", pid_));
  std::vector<int> others = context_.tree.Descendants(pid_);
  for (const int pid : context_.tree.WhoBeganAlike(pid_, stat->stack_begin)) {
    if (std::count(facts_.shares_memory_with.begin(), facts_.shares_memory_with.end(), pid) != 0 ||
        context_.proc.Link(fmt::format("{}/exe", pid)) != program)
      continue;
    others.push_back(pid);
    if (spin->relatives.size() < kMost) spin->relatives.push_back(pid);
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  others.resize(std::min(others.size(), kMost));
  for (const int pid : others) {
    if (RunsAWritingProgram(pid)) writers.insert(pid);
  }
  writers.erase(pid_);
  spin->others.insert(spin->others.end(), writers.begin(), writers.end());
  leads_to_.insert(writers.begin(), writers.end());
  if (stat->parent > 1 && RunsAWritingProgram(stat->parent)) writers.insert(stat->parent);
  spin->writers.assign(writers.begin(), writers.end());
}

// One that is all of a variable rather than a part of one; a part where there is nothing else. What
// a library of the system has beside that is its own: a setting, a table.
void ProcessLook::NamePolls(ThreadFacts::Spin* spin) {
  constexpr size_t kFew = 4;
  std::string part;
  bool is_of_one = true;
  if (python_) return;  // its names are the interpreter's
  for (size_t i = 0; i < std::min(spin->polls.size(), kMostNamed); ++i) {
    const uint64_t address = spin->polls[i];
    if (spin->polls.size() > 1 && walker_ != nullptr && walker_->IsOfSystemLibrary(address))
      continue;
    const std::string name = VariableName(address);
    if (spin->polls.size() > 1 && IsOfLibraryInProgram(name)) continue;
    if (!name.empty() && name.find('+') == std::string::npos) {
      spin->polled_variable = name;
      return;
    }
    if (part.empty()) part = name;
    is_of_one = is_of_one && !name.empty() && BaseOf(name) == BaseOf(part);
  }
  if (spin->polls.size() <= kFew)
    spin->polled_variable = part;
  else if (is_of_one)
    spin->polled_variable = BaseOf(part);
}

void ProcessLook::CollectFlickers(const SteppedLoop& loop, ThreadFacts::Spin* spin) {
  const MemoryMapping* const stack = FindMapping(mappings_, loop.stack_pointer);
  std::copy_if(
      loop.flickers.begin(), loop.flickers.end(), std::back_inserter(spin->flickers),
      [&](uint64_t word) { return stack == nullptr || FindMapping(mappings_, word) != stack; });
  spin->flickers_cut = loop.flickers_cut;
}

// Nobody else's descriptor leads to it. Of groups, and where numbers are others inside, it is not
// known who that is.
WaitFile ProcessLook::EndOfProcess(int pid) {
  WaitFile end;
  end.kind = FileKind::kProcess;
  if (pid > 0 && !has_own_ids_) {
    end.others = {{pid, -1}};
    leads_to_.insert(pid);
  }
  return end;
}

// As of a thread that sleeps in it.
void ProcessLook::CollectCall(const StepCall& call, ThreadFacts::Spin* spin) {
  ThreadFacts::Spin::Call told;
  told.name = SystemCallName(call.number);
  told.result = call.result;
  const TaskSystemCall asked = {false, call.number, call.arguments, 0, 0};
  CallMeaning meaning = ExplainSystemCall(asked, read_memory_);
  if (call.number == SYS_ioctl) {  // how much there is to be read
    meaning.kind = WaitKind::kRead;
    meaning.files = {{static_cast<int>(call.arguments[0]), true}};
  }
  if (call.number == SYS_kill || call.number == SYS_tgkill) {  // whether it is there
    meaning.kind = WaitKind::kRead;
    told.wait.files = {EndOfProcess(static_cast<int>(call.arguments[0]))};
  }
  const bool sets_lock = call.number == SYS_fcntl && call.arguments[1] != F_GETFL &&
                         call.arguments[1] != F_GETFD;  // of what a step may ask for
  if (sets_lock) {
    meaning.kind = WaitKind::kFileLock;
    meaning.files = {{static_cast<int>(call.arguments[0]), true}};
  }
  told.wait.kind = AsksForItself(call.number) && !sets_lock ? WaitKind::kNone : meaning.kind;
  told.wait.has_timeout = true;
  switch (told.wait.kind) {
    case WaitKind::kChild:
      ExplainChildWait(meaning, &told.wait);
      break;
    case WaitKind::kRead:
    case WaitKind::kWrite:
    case WaitKind::kPoll:
    case WaitKind::kAccept:
      ExplainFiles(meaning, &told.wait);
      if (told.wait.kind == WaitKind::kRead && call.result == 0) ExplainEnd(&told.wait);
      break;
    case WaitKind::kFileLock:
      ExplainRefusedLock(meaning, call.number == SYS_flock, &told.wait);
      break;
    default:
      break;
  }
  told.ready = IsEpoll(call.number) && call.result > 0 ? ReadyOfEpoll(call, meaning.epoll)
                                                       : ReadyOf(call, read_memory_);
  for (const int fd : told.ready) {
    const WaitFile readers = context_.files.Describe(living_, fd, false);
    if (readers.kind != FileKind::kPipe) continue;
    for (const auto& [pid, its_fd] : readers.others) {
      if (pid == pid_) continue;
      spin->others.push_back(pid);
      leads_to_.insert(pid);
    }
  }
  const auto known = std::find_if(spin->calls.begin(), spin->calls.end(), [&](const auto& each) {
    const auto fd = [](const auto& of) { return of.wait.files.empty() ? -1 : of.wait.files[0].fd; };
    return each.name == told.name && each.result == told.result && fd(each) == fd(told) &&
           each.ready == told.ready;
  });
  if (known == spin->calls.end()) spin->calls.push_back(std::move(told));
}

void ProcessLook::ExplainEnd(ThreadWait* wait) {
  for (WaitFile& file : wait->files) {
    context_.files.DescribeEnd(living_, &file);
    for (const auto& [process, fd] : file.others) leads_to_.insert(process);
  }
}

// Who has it may give it back.
void ProcessLook::ExplainRefusedLock(const CallMeaning& meaning, bool of_flock, ThreadWait* wait) {
  wait->files.push_back(context_.files.Describe(living_, meaning.files[0].fd, true));
  WaitFile& file = wait->files.back();
  file.others.clear();
  context_.files.DescribeRefusedLock(living_, of_flock, &file);
  if (has_own_ids_ && !of_flock) file.others_unknown = true;
  for (const auto& [process, fd] : file.others) leads_to_.insert(process);
}

// The kernel tells what the program has stored beside each file, which is most often its number.
std::vector<int> ProcessLook::ReadyOfEpoll(const StepCall& call, int epoll) const {
  std::vector<int> ready;
  constexpr int64_t kMost = 64;
  std::vector<epoll_event> events(static_cast<size_t>(std::min(call.result, kMost)));
  if (!read_memory_(call.arguments[1], events.data(), events.size() * sizeof(epoll_event)))
    return ready;
  for (const epoll_event& event : events) {
    const int fd = context_.files.EpollFileOf(living_, epoll, event.data.u64);
    if (fd >= 0) ready.push_back(fd);
  }
  return ready;
}

// Who woke from a wait for a set time and is in the same one again naps: it is seen to have moved
// by its switches, and where it naps stays true. Between two naps it runs for a moment.
bool ProcessLook::NapsAgain(const Work& work, ThreadFacts* thread) {
  constexpr int kTries = 40;           // on a busy machine it has to wait for its turn
  constexpr uint64_t kOneObject = 64;  // the parts of a condition variable
  if (!thread->wait.has_timeout || facts_.is_32_bit) return false;
  const TaskSystemCall& before = *work.raw.call;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) context_.clock.Sleep(kMillisecond / 2);
    const auto now = ReadThread(context_.proc, pid_, work.raw.tid);
    if (!now) return false;
    if (!now->IsBlocked()) continue;
    TaskSystemCall call = *now->call;
    call.number = SystemCallAskedFor(call.number, call.pc, read_memory_);
    const uint64_t apart = std::max(call.arguments[0], before.arguments[0]) -
                           std::min(call.arguments[0], before.arguments[0]);
    if (call.number != before.number || call.pc != before.pc ||
        call.stack_pointer != before.stack_pointer ||
        apart > (before.number == SYS_futex ? kOneObject : 0) ||
        !ExplainSystemCall(call, read_memory_).has_timeout)
      return false;
    thread->naps_again = true;
    thread->voluntary_switches = now->status.voluntary_switches;
    thread->involuntary_switches = now->status.involuntary_switches;
    thread->cpu_time = now->run_time.ran;
    thread->since.reset();
    return true;
  }
  return false;
}

}  // namespace hangscope

// Who holds the locks that do not record it: ProcessLook's part.
#include <elf.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "process/locks/harmless_code.h"
#include "process/locks/held_objects.h"
#include "process/process_graph.h"
#include "process/process_look.h"
#include "process/signal_sets.h"

namespace hangscope {
namespace {

constexpr size_t kMostCalls = 128;  // that are looked at, of all threads
constexpr size_t kMostOfThread = 12;
constexpr size_t kMostCalled = 256;  // functions whose code is followed for what they do
constexpr int kDeepestCalled = 3;    // one called by another

bool LacksHolder(const ThreadWait& wait) {
  return !wait.owner && !wait.shared && wait.address != 0 &&
         (wait.kind == WaitKind::kRwLock || wait.kind == WaitKind::kFutex ||
          wait.kind == WaitKind::kMutex || wait.kind == WaitKind::kSemaphore);
}

// What a library waits for in memory of its own, for an object that its caller names.
enum class LibraryWait { kNone, kMutex, kCondition, kBarrier };

LibraryWait LibraryWaitOf(const std::string& function) {
  if (function.find("pthread_mutex_lock") != std::string::npos) return LibraryWait::kMutex;
  if (function.starts_with("pthread_cond_") || function.starts_with("__pthread_cond_"))
    return LibraryWait::kCondition;
  return function.starts_with("std::barrier<") ? LibraryWait::kBarrier : LibraryWait::kNone;
}

enum class Library { kNone, kC, kNumbers };

// What is in it wakes threads under a few names only, or not at all.
Library LibraryOf(const MemoryMapping* mapping) {
  if (mapping == nullptr) return Library::kNone;
  const std::string name = mapping->path.substr(mapping->path.rfind('/') + 1);
  const auto is = [&](std::string_view begin) {
    return name.starts_with(begin) && (name[begin.size()] == '.' || name[begin.size()] == '-');
  };
  if (is("libm") || name == "[vdso]") return Library::kNumbers;
  return is("libc") || is("libpthread") || is("librt") || is("libstdc++") ? Library::kC
                                                                          : Library::kNone;
}

// Nothing: it is no call, or where its stack is is not known.
std::optional<CallPlace> CallOf(const StackPlace& place, const StackWalker::Function& function) {
  if (!place.calls || !place.stack_pointer) return std::nullopt;
  return CallPlace{function.begin, function.bytes, place.pc + 1, *place.stack_pointer,
                   place.registers};
}

// Of what a stub of the linker calls, which was never called, so that the loader has not looked for
// it yet; empty: it is no such stub.
std::string NameOfLateStub(uint64_t stub, const std::vector<MemoryMapping>& mappings,
                           const ReadMemory& read) {
  constexpr size_t kMostEntries = 64;
  constexpr size_t kLongestName = 64;
  uint8_t code[16] = {};
  const MemoryMapping* const mapping = FindMapping(mappings, stub);
  const bool is_late = mapping != nullptr && read(stub, code, sizeof code) && code[0] == 0xff &&
                       code[1] == 0x25 && code[6] == 0x68 && code[11] == 0xe9;
  if (!is_late) return "";
  uint32_t number = 0;
  std::memcpy(&number, code + 7, sizeof number);
  const auto file = std::find_if(mappings.begin(), mappings.end(), [&](const auto& each) {
    return each.path == mapping->path && each.file_offset == 0;
  });
  Elf64_Ehdr head;
  if (file == mappings.end() || !read(file->begin, &head, sizeof head) ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > kMostEntries)
    return "";
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  if (!read(file->begin + head.e_phoff, parts.data(), parts.size() * sizeof parts[0])) return "";
  const uint64_t moved = head.e_type == ET_DYN ? file->begin : 0;
  uint64_t calls = 0, symbols = 0, names = 0;
  for (const Elf64_Phdr& part : parts) {
    for (size_t i = 0; part.p_type == PT_DYNAMIC && i < kMostEntries; ++i) {
      Elf64_Dyn entry = {};
      if (!read(moved + part.p_vaddr + i * sizeof entry, &entry, sizeof entry) ||
          entry.d_tag == DT_NULL)
        break;
      // The loader adds to these where it put the file.
      const uint64_t at = entry.d_un.d_ptr < moved ? entry.d_un.d_ptr + moved : entry.d_un.d_ptr;
      if (entry.d_tag == DT_JMPREL) calls = at;
      if (entry.d_tag == DT_SYMTAB) symbols = at;
      if (entry.d_tag == DT_STRTAB) names = at;
    }
  }
  Elf64_Rela call = {};
  Elf64_Sym symbol = {};
  if (calls == 0 || symbols == 0 || names == 0 ||
      !read(calls + number * sizeof call, &call, sizeof call) ||
      !read(symbols + ELF64_R_SYM(call.r_info) * sizeof symbol, &symbol, sizeof symbol))
    return "";
  std::string name;
  for (char next = 0; name.size() < kLongestName; name += next) {
    if (!read(names + symbol.st_name + name.size(), &next, 1) || next == '\0') break;
  }
  return name;
}

}  // namespace

void ProcessLook::FindHolders() {
  if (walker_ == nullptr || facts_.is_32_bit) return;
  for (size_t i = 0; i < work_.size(); ++i) FindObjectOfCall(work_[i], &facts_.threads[i]);
  FindWhoWakesNobody();
  std::map<uint64_t, std::vector<size_t>> waiters;  // by object
  for (size_t i = 0; i < facts_.threads.size(); ++i) {
    const ThreadWait& wait = facts_.threads[i].wait;
    if (LacksHolder(wait)) waiters[wait.address].push_back(i);
  }
  if (waiters.empty()) return;
  std::map<uint64_t, std::set<int>> holders;
  size_t calls = 0;
  // Those first that wait themselves: who waits in a circle is one of them.
  std::vector<size_t> order(work_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return LacksHolder(facts_.threads[i].wait); });
  for (const size_t i : order) {
    if (calls > kMostCalls || context_.IsLate()) return;  // others may hold them, too
    for (const uint64_t object : HeldByThread(work_[i], &calls)) {
      if (waiters.count(object) != 0) holders[object].insert(facts_.threads[i].tid);
    }
  }
  for (const auto& [object, who] : holders) {
    if (who.size() != 1) continue;  // several read, and all of them would have to give it back
    for (const size_t waiter : waiters[object]) {
      facts_.threads[waiter].wait.owner = *who.begin();
      facts_.threads[waiter].wait.owner_by_code = true;
    }
  }
}

// The word that a thread waits for may lie elsewhere than the object: that is the first argument of
// the program's call.
void ProcessLook::FindObjectOfCall(const Work& work, ThreadFacts* thread) {
  const ThreadWait& wait = thread->wait;
  const bool may = wait.kind == WaitKind::kFutex || wait.kind == WaitKind::kMutex;
  if (!may || wait.owner || wait.owner_died || work.places.empty()) return;
  auto inner = walker_->FunctionAt(work.places[0].pc);
  for (size_t i = 1; i < std::min(work.places.size(), kMostOfThread); ++i) {
    auto function = walker_->FunctionAt(work.places[i].pc);
    const LibraryWait what = inner ? LibraryWaitOf(inner->name) : LibraryWait::kNone;
    const bool is_last = function && LibraryWaitOf(function->name) != what;
    if (what != LibraryWait::kNone && is_last) {
      const auto call = CallOf(work.places[i], *function);
      const auto object = call ? FirstArgument(*call, read_memory_) : std::nullopt;
      if (!object) return;
      if (what == LibraryWait::kMutex) return FindRefusedMutex(*object, &thread->wait);
      // musl's waiters have a word each, on their own stacks, below the frame of the caller.
      const bool is_own =
          wait.address >= thread->stack_pointer && wait.address < call->stack_pointer;
      if (what == LibraryWait::kCondition && !is_own) return;
      thread->wait.kind =
          what == LibraryWait::kCondition ? WaitKind::kCondition : WaitKind::kBarrier;
      thread->wait.address = *object;
      thread->wait.variable = VariableName(*object);
      return;
    }
    inner = std::move(function);
  }
}

// The kernel refuses a mutex with priority inheritance whose owner waits for who wants it; glibc
// then waits for a word of its own stack, for ever.
void ProcessLook::FindRefusedMutex(uint64_t mutex, ThreadWait* wait) {
  const auto owner = OwnerOfPriorityMutex(mutex, read_memory_);
  const auto outer = owner ? OuterThread(*owner, false) : std::nullopt;
  if (!outer) return;
  wait->kind = WaitKind::kMutex;
  wait->address = mutex;
  wait->variable = VariableName(mutex);
  wait->owner = outer;
}

std::vector<uint64_t> ProcessLook::HeldByThread(const Work& work, size_t* calls) {
  HeldByCalls held;
  for (size_t i = 1; i < std::min(work.places.size(), kMostOfThread); ++i) {
    const auto function = walker_->FunctionAt(work.places[i].pc);
    const auto call = function ? CallOf(work.places[i], *function) : std::nullopt;
    if (!call) continue;
    // Whoever runs the function of a once_flag is the one for whom others wait there.
    if (RunsOnce(work, i - 1)) {
      auto flag = FirstArgument(*call, read_memory_);
      if (!flag) flag = FlagOfOnce(work.places[i - 1]);
      if (flag) held.Add({{*flag}, {}, false});
    }
    if (LockCallOf(function->name) != LockCall::kNone || function->name.starts_with("_")) continue;
    ++*calls;
    held.Add(HeldObjects(
        *call, read_memory_, [this](uint64_t target) { return LockCallAt(target); },
        [this](uint64_t target) { return LockCallByCodeAt(target, 0); }));
  }
  return held.objects();
}

// Whether the place is in pthread_once, called from there on, and does not wait for another one.
bool ProcessLook::RunsOnce(const Work& work, size_t at) const {
  if (at == 0) return false;
  const auto function = walker_->FunctionAt(work.places[at].pc);
  if (!function || function->name.find("pthread_once") == std::string::npos) return false;
  const auto inner = walker_->FunctionAt(work.places[at - 1].pc);
  return !inner || (inner->name.find("futex") == std::string::npos &&
                    inner->name.find("wait") == std::string::npos &&
                    inner->name.find("pthread_once") == std::string::npos);
}

// pthread_once keeps, for the case that its thread is cancelled, a function of its library and,
// right behind that, the flag for it.
std::optional<uint64_t> ProcessLook::FlagOfOnce(const StackPlace& place) const {
  constexpr size_t kMostWords = 12;
  std::array<uint64_t, kMostWords> words = {};
  const MemoryMapping* const library = FindMapping(mappings_, place.pc);
  if (library == nullptr || !place.stack_pointer ||
      !read_memory_(*place.stack_pointer, words.data(), sizeof words))
    return std::nullopt;
  const auto function = std::find_if(words.begin(), words.end() - 1, [&](uint64_t word) {
    return library->begin <= word && word < library->end;
  });
  return function == words.end() - 1 ? std::nullopt : std::optional(*(function + 1));
}

// The program, or a library that is none of the system's, has the name of the function that makes
// them.
bool ProcessLook::MayHaveStreamsOfItsOwn() const {
  constexpr size_t kMostBytes = 4 << 20;  // the names come early in a file
  constexpr std::string_view kMakesStreams = "fopencookie";
  return std::any_of(mappings_.begin(), mappings_.end(), [&](const MemoryMapping& mapping) {
    if (mapping.path.empty() || mapping.file_offset != 0 || mapping.path[0] != '/' ||
        walker_->IsOfSystemLibrary(mapping.begin))
      return false;
    const std::string bytes = memory_.ReadUpTo(
        mapping.begin, static_cast<size_t>(std::min<uint64_t>(kMostBytes, mapping.size_bytes())));
    return bytes.find(kMakesStreams) != std::string::npos;
  });
}

// Only where others wait for what any thread of the process may give.
void ProcessLook::FindWhoWakesNobody() {
  constexpr size_t kMostNappers = 16;
  const auto waits = [](const ThreadFacts& thread) {
    const WaitKind kind = thread.wait.kind;
    return thread.state == ThreadState::kSleeping && !thread.wait.has_timeout &&
           (kind == WaitKind::kCondition || kind == WaitKind::kSemaphore ||
            kind == WaitKind::kBarrier || kind == WaitKind::kFutex || IsFileWait(kind));
  };
  // A handler of a fault may do anything, and so may a stream whose writing is the program's own.
  constexpr uint64_t kFaults = SignalBit(SIGSEGV) | SignalBit(SIGFPE) | SignalBit(SIGILL) |
                               SignalBit(SIGBUS) | SignalBit(SIGTRAP) | SignalBit(SIGSYS) |
                               SignalBit(SIGABRT);
  if (context_.kept != nullptr || (facts_.caught_signals & kFaults) != 0 ||
      std::none_of(facts_.threads.begin(), facts_.threads.end(), waits) ||
      (!python_ && MayHaveStreamsOfItsOwn()))
    return;
  size_t nappers = 0;
  std::vector<ThreadFacts*> of_streams;
  for (size_t i = 0; i < work_.size() && !context_.IsLate(); ++i) {
    ThreadFacts& thread = facts_.threads[i];
    const WaitKind kind = thread.wait.kind;
    const bool serves = kind == WaitKind::kAccept || kind == WaitKind::kSignal;
    const bool may_go_on = thread.wait.has_timeout || serves;
    if (thread.state != ThreadState::kSleeping || !may_go_on) continue;
    if (++nappers > kMostNappers) break;
    if (python_)
      FollowNapOfPython(work_[i], &thread);
    else if (FollowNapOfCode(work_[i], &thread))
      of_streams.push_back(&thread);
    // Beside a main thread that serves, threads without work wait to be woken.
    thread.wakes_nobody = thread.wakes_nobody && (!serves || thread.tid != pid_);
  }
  if (of_streams.empty()) return;
  const auto descriptors = DescriptorsOfStreams();
  for (ThreadFacts* const thread : of_streams) {
    if (descriptors)
      thread->uses_descriptors->insert(descriptors->begin(), descriptors->end());
    else
      thread->uses_descriptors.reset();
  }
}

// True: it uses the C library's streams, too, whose descriptors are to be added.
bool ProcessLook::FollowNapOfCode(const Work& work, ThreadFacts* thread) {
  UsedFiles files;
  const CodeEffect effect = EffectOnOthers(work, &files);
  thread->wakes_nobody = effect != CodeEffect::kUnknown;
  thread->uses_no_files = effect == CodeEffect::kNone;
  if (effect != CodeEffect::kSomeFiles) return false;
  thread->opens_files = files.opens;
  thread->uses_descriptors = std::move(files.descriptors);
  return files.streams;
}

// All that are open: glibc has them in a list (libio/bits/types/struct_FILE.h, 64-bit). Nothing: it
// is not known.
std::optional<std::set<int>> ProcessLook::DescriptorsOfStreams() {
  constexpr uint64_t kNextAt = 104, kDescriptorAt = 112;
  constexpr size_t kMostStreams = 1024;
  const auto library =
      std::find_if(mappings_.begin(), mappings_.end(), [](const MemoryMapping& mapping) {
        return mapping.path.substr(mapping.path.rfind('/') + 1).starts_with("libc.so.");
      });
  const auto list = library == mappings_.end() ? std::nullopt
                                               : walker_->AddressOf(library->begin, "_IO_list_all");
  uint64_t stream = 0;
  if (!list || !read_memory_(*list, &stream, sizeof stream)) return std::nullopt;
  std::set<int> descriptors;
  for (size_t i = 0; stream != 0; ++i) {
    int32_t descriptor = -1;
    if (i == kMostStreams ||
        !read_memory_(stream + kDescriptorAt, &descriptor, sizeof descriptor) ||
        !read_memory_(stream + kNextAt, &stream, sizeof stream))
      return std::nullopt;
    if (descriptor >= 0) descriptors.insert(descriptor);
  }
  return descriptors;
}

// From the program's function that called the nap, or the wait, on. To whom the outermost of the
// program's own functions returns, and what is done at a thread's end, is not known.
CodeEffect ProcessLook::EffectOnOthers(const Work& work, UsedFiles* files) {
  std::vector<CallPlace> calls;
  bool gives_file = false;
  for (size_t i = 1; i < work.places.size(); ++i) {
    const uint64_t pc = work.places[i].pc;
    const bool is_of_library = walker_->IsOfSystemLibrary(pc);
    if (calls.empty() && is_of_library) continue;
    const auto function = walker_->FunctionAt(pc);
    const auto call = function && !is_of_library ? CallOf(work.places[i], *function) : std::nullopt;
    if (!call) break;
    if (calls.empty()) {
      const uint64_t inner = work.places[i - 1].pc;
      const auto nap = walker_->FunctionAt(inner);
      if (!nap || LibraryOf(FindMapping(mappings_, inner)) != Library::kC)
        return CodeEffect::kUnknown;
      const CalledCode code = CalledCodeOf(nap->name);
      gives_file = code == CalledCode::kGivesFile;
      if (code != CalledCode::kHarmless && !gives_file) return CodeEffect::kUnknown;
    }
    calls.push_back(*call);
  }
  const auto target = [this](uint64_t address) -> CodeTarget {
    const Library library = LibraryOf(FindMapping(mappings_, address));
    if (library == Library::kNumbers) return {CalledCode::kHarmless, 0, 0};
    const auto function = walker_->FunctionAt(address);
    if (!function || function->begin != address)
      return {CalledCodeOf(NameOfLateStub(address, mappings_, read_memory_)), 0, 0};
    if (library == Library::kC) return {CalledCodeOf(function->name), 0, 0};
    if (walker_->IsOfSystemLibrary(address)) return {};
    return {CalledCode::kFollowed, function->begin, function->bytes};
  };
  const auto is_constant = [this](uint64_t address) {
    const MemoryMapping* const mapping = FindMapping(mappings_, address);
    return mapping != nullptr && !mapping->writable;
  };
  return EffectOfCode(calls, gives_file, read_memory_, target, is_constant, files);
}

LockCall ProcessLook::LockCallByCodeAt(uint64_t target, int depth) {
  const auto known = calls_by_code_.find(target);
  if (known != calls_by_code_.end()) return known->second;
  if (calls_by_code_.size() >= kMostCalled || depth >= kDeepestCalled) return LockCall::kNone;
  LockCall& call = calls_by_code_[target] = LockCall::kNone;
  const auto function = walker_->FunctionAt(target);
  if (!function || function->begin != target) return call;
  return call = LockCallByCode(
             target, function->bytes, read_memory_,
             [this](uint64_t other) { return LockCallAt(other); },
             [this, depth](uint64_t other) { return LockCallByCodeAt(other, depth + 1); });
}

LockCall ProcessLook::LockCallAt(uint64_t target) {
  const auto known = lock_calls_.find(target);
  if (known != lock_calls_.end()) return known->second;
  const auto function = walker_->FunctionAt(target);
  const bool is_its_begin = function && function->begin == target;
  return lock_calls_[target] = is_its_begin ? LockCallOf(function->name) : LockCall::kNone;
}

}  // namespace hangscope

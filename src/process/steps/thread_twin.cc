// The twin itself: a process without memory of its own, its pages, and the calls made for it.
#include "process/steps/thread_twin.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "proc/proc_folder.h"

namespace hangscope {
namespace {

constexpr uint64_t kSpare = 16 * kMomentPageBytes;  // behind the stub: where the clock's code waits
constexpr uint64_t kStubRoom = 64 * kMomentPageBytes;
constexpr uint64_t kEndOfUser = 0x7ffffffff000;  // of 47 bits, less a page
constexpr int kFileInTwin = 0;

#if defined(__aarch64__)
constexpr uint32_t kStub[] = {0xd4000001, 0xd4200000};  // svc #0; brk #0
constexpr uint64_t kCallBytes = 4;
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
constexpr int kVectors = NT_PRFPREG;
#else
constexpr uint8_t kStub[] = {0x0f, 0x05, 0xcc};  // syscall; int3
constexpr uint64_t kCallBytes = 2;
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
constexpr int kVectors = NT_X86_XSTATE;
constexpr uint64_t kTrapFlag = 0x10100;  // and the one of resuming
#endif

bool IsClockCode(const MemoryMapping& mapping) {
  return mapping.path.starts_with("[vvar") || mapping.path == "[vdso]";
}

bool Overlaps(const std::vector<MemoryMapping>& mappings, uint64_t begin, uint64_t end) {
  return std::any_of(mappings.begin(), mappings.end(), [&](const MemoryMapping& mapping) {
    return mapping.begin < end && begin < mapping.end;
  });
}

// Where neither of the two has anything. 0: nowhere.
uint64_t FindRoom(const std::vector<MemoryMapping>& one, const std::vector<MemoryMapping>& other) {
  constexpr uint64_t kApart = 0x10000000;
  for (uint64_t at = kApart; at + kStubRoom < kEndOfUser / 2; at += kApart) {
    if (!Overlaps(one, at, at + kStubRoom) && !Overlaps(other, at, at + kStubRoom)) return at;
  }
  return 0;
}

// No system call is made but by the stub.
bool AllowOnlyStub(uint64_t stub) {
  const uint64_t behind = stub + kCallBytes;
  const auto load = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const auto unless = [](uint64_t value, uint8_t skip) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(value), 0, skip);
  };
  constexpr size_t kPointer = offsetof(seccomp_data, instruction_pointer);
  sock_filter filter[] = {load(offsetof(seccomp_data, arch)),
                          unless(kMachine, 5),
                          load(kPointer),
                          unless(behind & 0xffffffff, 3),
                          load(kPointer + 4),
                          unless(behind >> 32, 1),
                          sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                          sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const sock_fprog program = {std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The kernel writes to this library's area for restartable sequences whenever the process comes
// back from it, and that memory will not be there.
void EndRestartableSequences() {
  constexpr uint32_t kBytesRegistered = 32;
  char* const area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  if (__rseq_size != 0)
    syscall(SYS_rseq, area, kBytesRegistered, 1 /* RSEQ_FLAG_UNREGISTER */, RSEQ_SIG);
}

// In the new process, which has all of this one's memory still. Never returns.
[[noreturn]] void BeTwin(uint64_t stub, int file) {
  constexpr int kRights = PROT_READ | PROT_EXEC;
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  // Not by mmap(), which sanitizers have their own of: nothing here may be where this is.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 &&
      dup2(file, kFileInTwin) == kFileInTwin &&
      syscall(SYS_close_range, kFileInTwin + 1, ~0u, 0) == 0 &&
      syscall(SYS_mmap, stub, kMomentPageBytes, kRights, kKind, -1, 0) == static_cast<long>(stub)) {
    prctl(PR_SET_NAME, "twin");
    EndRestartableSequences();
    if (AllowOnlyStub(stub)) {
#if defined(__aarch64__)
      asm volatile("brk #0");
#else
      asm volatile("int3");
#endif
    }
  }
  // Where the filter is there already, this ends it as well.
  _exit(1);
}

bool ReadFault(pid_t pid, uint64_t* address) {
  siginfo_t info = {};
  if (ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) != 0) return false;
  *address = reinterpret_cast<uint64_t>(info.si_addr);
  return info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
}

bool SetGeneral(pid_t pid, user_regs_struct raw) {
#if !defined(__aarch64__)
  raw.orig_rax = static_cast<unsigned long long>(-1);  // it is in no call that would be made again
#endif
  iovec part = {&raw, sizeof raw};
  return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &part) == 0;
}

bool GetGeneral(pid_t pid, user_regs_struct* raw) {
  iovec part = {raw, sizeof *raw};
  return ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &part) == 0;
}

}  // namespace

Result<std::unique_ptr<ThreadTwin>> ThreadTwin::Make(Clock& clock,
                                                     const std::vector<MemoryMapping>& mappings,
                                                     const ReadMemory& source) {
  std::unique_ptr<ThreadTwin> twin(new ThreadTwin(clock, mappings, source));
  if (const Status status = twin->Begin(); !status.ok()) return status;
  return twin;
}

Status ThreadTwin::Begin() {
  file_ = memfd_create("hangscope twin", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, kFileBytes) != 0)
    return Status::FromErrno(errno, "make", "memory for a thread's twin");
  void* const arena = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (arena == MAP_FAILED) return Status::FromErrno(errno, "map", "memory for a thread's twin");
  arena_ = static_cast<uint8_t*>(arena);
  const auto text = ProcFolder("/proc").Read("self/maps");
  const std::vector<MemoryMapping> own = ParseMemoryMappings(text.value_or(""));
  stub_ = FindRoom(mappings_, own);
  if (stub_ == 0) return Status::Io("there is no room in memory beside a thread's twin");
  pid_ = fork();
  if (pid_ == 0) BeTwin(stub_, file_);
  if (pid_ < 0) return Status::FromErrno(errno, "start", "a thread's twin");
  int status = 0;
  is_alive_ = true;
  long stub = 0;
  std::memcpy(&stub, kStub, sizeof kStub);
  if (!WaitForStop(&status) || WSTOPSIG(status) != SIGTRAP ||
      ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL) != 0 ||
      ptrace(PTRACE_POKETEXT, pid_, stub_, stub) != 0)
    return Status::Io("a thread's twin did not begin");
  return MakeRoom(stub_);
}

ThreadTwin::~ThreadTwin() {
  if (pid_ > 0 && is_alive_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }
  if (arena_ != nullptr) munmap(arena_, kFileBytes);
  if (file_ >= 0) close(file_);
}

bool ThreadTwin::WaitForStop(int* status) {
  pid_t got = 0;
  do {
    got = waitpid(pid_, status, __WALL);
  } while (got < 0 && errno == EINTR);
  is_alive_ = got == pid_ && WIFSTOPPED(*status);
  return is_alive_;
}

// Nothing of this process is left in it but the stub, and the kernel's clock where the thread has
// it.
Status ThreadTwin::MakeRoom(uint64_t stub) {
  const uint64_t spare = stub + kSpare;
  const bool has_clock = MoveClockCode(spare);
  Call(SYS_munmap, {0, stub});
  Call(SYS_munmap, {stub + kMomentPageBytes, spare - stub - kMomentPageBytes});
  Call(SYS_munmap, {stub + kStubRoom, kEndOfUser - stub - kStubRoom});
  if (has_clock) {
    uint64_t from = spare;
    for (const MemoryMapping& mapping : mappings_) {
      if (!IsClockCode(mapping)) continue;
      const uint64_t bytes = mapping.size_bytes();
      Call(SYS_mremap, {from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, mapping.begin});
      from += bytes;
    }
  }
  Call(SYS_munmap, {spare, stub + kStubRoom - spare});
  return is_alive_ ? Status() : Status::Io("a thread's twin did not get its memory");
}

// To behind `spare`, in their order. False: it stays, as the thread's is another.
bool ThreadTwin::MoveClockCode(uint64_t spare) {
  const auto text = ProcFolder("/proc").Read(std::to_string(pid_) + "/maps");
  const std::vector<MemoryMapping> own = ParseMemoryMappings(text.value_or(""));
  std::vector<MemoryMapping> from, to;
  std::copy_if(own.begin(), own.end(), std::back_inserter(from), IsClockCode);
  std::copy_if(mappings_.begin(), mappings_.end(), std::back_inserter(to), IsClockCode);
  const bool are_alike = std::equal(
      from.begin(), from.end(), to.begin(), to.end(), [](const auto& one, const auto& other) {
        return one.path == other.path && one.size_bytes() == other.size_bytes();
      });
  if (!are_alike) return false;
  for (const MemoryMapping& mapping : from) {
    const uint64_t bytes = mapping.size_bytes();
    if (spare + bytes > stub_ + kStubRoom ||
        Call(SYS_mremap, {mapping.begin, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, spare}) !=
            static_cast<int64_t>(spare))
      return false;
    spare += bytes;
  }
  return true;
}

// Has it make a system call. Its registers are as before then.
int64_t ThreadTwin::Call(int64_t number, const std::vector<uint64_t>& arguments) {
  user_regs_struct before = {};
  if (!is_alive_ || !GetGeneral(pid_, &before)) return -ESRCH;
  user_regs_struct raw = before;
  std::array<uint64_t, 6> a = {};
  std::copy(arguments.begin(), arguments.end(), a.begin());
#if defined(__aarch64__)
  raw.pc = stub_;
  raw.regs[8] = static_cast<uint64_t>(number);
  std::copy(a.begin(), a.end(), std::begin(raw.regs));
#else
  raw.rip = stub_;
  raw.rax = static_cast<unsigned long long>(number);
  raw.rdi = a[0];
  raw.rsi = a[1];
  raw.rdx = a[2];
  raw.r10 = a[3];
  raw.r8 = a[4];
  raw.r9 = a[5];
#endif
  if (!SetGeneral(pid_, raw) || ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0) return -ESRCH;
  int status = 0;
  // Whatever is sent to all of this terminal is not for it.
  while (WaitForStop(&status) && WSTOPSIG(status) != SIGTRAP) {
    if (WSTOPSIG(status) == SIGSEGV || ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0)
      return -EFAULT;
  }
  if (!is_alive_ || !GetGeneral(pid_, &raw) || !SetGeneral(pid_, before)) return -ESRCH;
#if defined(__aarch64__)
  return static_cast<int64_t>(raw.regs[0]);
#else
  return static_cast<int64_t>(raw.rax);
#endif
}

bool ThreadTwin::BeAt(const ThreadMoment& moment) {
  moment_ = &moment;
  next_call_ = 0;
  wants_calls_ = false;
  late_.clear();
  // What has been read of others is that of an earlier moment.
  for (auto& [address, page] : pages_) {
    if (!page.is_constant && !Fill(address, &page)) return false;
  }
  if (!is_alive_ || !SetGeneral(pid_, moment.general)) return false;
#if defined(__aarch64__)
  uint64_t pointer = moment.thread_pointer;
  iovec thread = {&pointer, sizeof pointer};
  if (ptrace(PTRACE_SETREGSET, pid_, NT_ARM_TLS, &thread) != 0) return false;
#endif
  std::string vectors = moment.vectors;
  iovec part = {vectors.data(), vectors.size()};
  return ptrace(PTRACE_SETREGSET, pid_, kVectors, &part) == 0;
}

// What the page held at the moment; or now.
bool ThreadTwin::Fill(uint64_t page, Page* into) {
  uint8_t* const bytes = arena_ + into->slot * kMomentPageBytes;
  const auto copied = moment_->pages.find(page);
  if (copied != moment_->pages.end()) {
    std::memcpy(bytes, copied->second.data(), kMomentPageBytes);
    return true;
  }
  if (!source_(page, bytes, kMomentPageBytes)) return false;
  if (!into->is_constant) late_.insert(page);
  return true;
}

const ThreadTwin::Page* ThreadTwin::PageAt(uint64_t page) {
  const auto known = pages_.find(page);
  if (known != pages_.end()) return &known->second;
  const MemoryMapping* const mapping = FindMapping(mappings_, page);
  if (mapping == nullptr || !mapping->readable || IsClockCode(*mapping) ||
      pages_.size() >= kMostPages || moment_ == nullptr)
    return nullptr;
  Page made;
  made.slot = pages_.size();
  made.is_constant = !mapping->writable && !mapping->shared;
  if (!Fill(page, &made)) return nullptr;
  const uint64_t rights =
      PROT_READ | (mapping->writable ? PROT_WRITE : 0) | (mapping->executable ? PROT_EXEC : 0);
  const uint64_t offset = made.slot * kMomentPageBytes;
  if (Call(SYS_mmap, {page, kMomentPageBytes, rights, MAP_SHARED | MAP_FIXED, kFileInTwin,
                      offset}) != static_cast<int64_t>(page))
    return nullptr;
  return &(pages_[page] = made);
}

bool ThreadTwin::Read(uint64_t address, void* into, size_t bytes) {
  auto* to = static_cast<uint8_t*>(into);
  while (bytes > 0) {
    const uint64_t page = address / kMomentPageBytes * kMomentPageBytes;
    const uint64_t offset = address - page;
    const size_t piece = std::min<size_t>(bytes, kMomentPageBytes - offset);
    if (const Page* const known = PageAt(page))
      std::memcpy(to, arena_ + known->slot * kMomentPageBytes + offset, piece);
    else if (!source_(address, to, piece))
      return false;
    address += piece;
    to += piece;
    bytes -= piece;
  }
  return true;
}

void ThreadTwin::Put(uint64_t address, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const uint64_t page = (address + done) / kMomentPageBytes * kMomentPageBytes;
    const uint64_t offset = address + done - page;
    const size_t piece = std::min<size_t>(bytes.size() - done, kMomentPageBytes - offset);
    if (const Page* const known = PageAt(page))
      std::memcpy(arena_ + known->slot * kMomentPageBytes + offset, bytes.data() + done, piece);
    done += piece;
  }
}

bool ThreadTwin::ReadState(StepState* state) const {
  ThreadMoment now;
  if (!GetGeneral(pid_, &now.general)) return false;
  *state = now.State();
  return true;
}

bool ThreadTwin::StepOnce() {
  constexpr int kMostFaults = 8;  // of one instruction
  int faults = 0;
  while (is_alive_ && ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) == 0) {
    int status = 0;
    if (!WaitForStop(&status)) return false;
    const int signal = WSTOPSIG(status);
    if (signal == SIGTRAP) return true;
    uint64_t address = 0;
    // Other signals are not for it.
    if (signal == SIGSEGV && (++faults > kMostFaults || !ReadFault(pid_, &address) ||
                              pages_.count(address / kMomentPageBytes * kMomentPageBytes) != 0 ||
                              PageAt(address / kMomentPageBytes * kMomentPageBytes) == nullptr))
      return false;
    if (signal == SIGBUS || signal == SIGILL || signal == SIGFPE) return false;
  }
  return false;
}

std::string ThreadTwin::VectorRegisters() const {
  std::string bytes(moment_->vectors.size(), '\0');
  iovec part = {bytes.data(), bytes.size()};
  if (ptrace(PTRACE_GETREGSET, pid_, kVectors, &part) != 0) return {};
  bytes.resize(part.iov_len);
  return bytes;
}

// The next one that asks the same, in their order, which begins anew after the last: the kernel is
// taken to tell the same of it each time. Null: there is none.
const NotedCall* ThreadTwin::NextLike(const StepCall& call) {
  const std::vector<NotedCall>& calls = moment_->calls;
  for (size_t tries = 0; tries < calls.size(); ++tries) {
    const NotedCall& noted = calls[next_call_ % calls.size()];
    ++next_call_;
    if (noted.call.number == call.number && noted.call.arguments == call.arguments) return &noted;
  }
  return nullptr;
}

// It stands before the instruction that makes it.
bool ThreadTwin::Answer(StepCall* call) {
  user_regs_struct raw = {};
  if (!GetGeneral(pid_, &raw)) return false;
  if (call->number == SYS_sched_yield) {
    call->result = 0;
  } else {
    const NotedCall* const noted = NextLike(*call);
    wants_calls_ = noted == nullptr && !moment_->ends_in_call;
    if (noted == nullptr) return false;
    call->result = noted->call.result;
    for (const auto& [address, bytes] : noted->memory) Put(address, bytes);
  }
#if defined(__aarch64__)
  raw.regs[0] = static_cast<uint64_t>(call->result);
  raw.pc += kCallBytes;
#else
  raw.rax = static_cast<unsigned long long>(call->result);
  raw.rip += kCallBytes;
  raw.rcx = raw.rip;
  raw.r11 = raw.eflags & ~kTrapFlag;
#endif
  return SetGeneral(pid_, raw);
}

}  // namespace hangscope

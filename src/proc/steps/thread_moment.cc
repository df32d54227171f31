// ThreadStop's moments: what a thread is while it is held, and which calls it makes afterwards.
#include "proc/steps/thread_moment.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "proc/proc_folder.h"
#include "proc/steps/step_calls.h"
#include "proc/thread_stop.h"

namespace hangscope {
namespace {

// linux/ptrace.h, which does not go with sys/ptrace.h; since Linux 5.13
constexpr int kGetRseqConfiguration = 0x420f;
struct RseqConfiguration {
  uint64_t address;
  uint32_t bytes, signature, flags, pad;
};
constexpr size_t kMostVectorBytes = 16384;
constexpr int kCallStop = SIGTRAP | 0x80;

#if defined(__aarch64__)
constexpr uint64_t kStepFlags = 1u << 21;  // PSTATE.SS
constexpr int kVectorSet = NT_PRFPREG;
#else
constexpr uint64_t kStepFlags = 0x10100;  // trap and resume: of stepping, not of the program
constexpr int kVectorSet = NT_X86_XSTATE;
#endif

bool Sleeps(int tid) {
  const auto stat = ProcFolder("/proc").Stat(tid);
  return stat && (stat->state == ThreadState::kSleeping || stat->state == ThreadState::kDiskSleep);
}

std::string Copy(const StepRange& range, const ReadMemory& read) {
  constexpr uint64_t kMost = 1 << 16;
  std::string bytes(std::min(range.bytes, kMost), '\0');
  return read(range.address, bytes.data(), bytes.size()) ? bytes : std::string();
}

}  // namespace

PagesInMemory::PagesInMemory(int pid)
    : file_(open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

PagesInMemory::~PagesInMemory() {
  if (file_ >= 0) close(file_);
}

// Documentation/admin-guide/mm/pagemap.rst: a word for each page of the machine's, whose bit 63
// says that it is there.
bool PagesInMemory::Has(uint64_t address) const {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t entry = 0;
  return file_ >= 0 &&
         pread(file_, &entry, sizeof entry, static_cast<off_t>(address / bytes * sizeof entry)) ==
             sizeof entry &&
         (entry >> 63) != 0;
}

StepState ThreadMoment::State() const {
  StepState state;
#if defined(__aarch64__)
  std::copy(std::begin(general.regs), std::end(general.regs), state.general.begin());
  state.general[31] = general.sp;
  state.pc = general.pc;
  state.flags = general.pstate & ~kStepFlags;
#else
  const std::array<uint64_t, 16> values = {general.rax, general.rdx, general.rcx, general.rbx,
                                           general.rsi, general.rdi, general.rbp, general.rsp,
                                           general.r8,  general.r9,  general.r10, general.r11,
                                           general.r12, general.r13, general.r14, general.r15};
  std::copy(values.begin(), values.end(), state.general.begin());
  state.pc = general.rip;
  state.flags = general.eflags & ~kStepFlags;
  state.segments = {general.fs_base, general.gs_base};
#endif
  return state;
}

StepCall ThreadMoment::AskedCall() const {
  StepCall call;
#if defined(__aarch64__)
  call.number = static_cast<int>(general.regs[8]);
  std::copy_n(std::begin(general.regs), call.arguments.size(), call.arguments.begin());
#else
  call.number = static_cast<int>(general.orig_rax);
  call.arguments = {general.rdi, general.rsi, general.rdx, general.r10, general.r8, general.r9};
#endif
  return call;
}

// In as few goes as the kernel allows.
void ThreadMoment::CopyPages(int tid, const std::vector<uint64_t>& addresses) {
  constexpr size_t kMostAtOnce = 256;
  for (size_t begin = 0; begin < addresses.size();) {
    const size_t count = std::min(kMostAtOnce, addresses.size() - begin);
    std::string read(count * kMomentPageBytes, '\0');
    const iovec local = {read.data(), read.size()};
    std::vector<iovec> remote;
    for (size_t i = 0; i < count; ++i)
      remote.push_back({reinterpret_cast<void*>(addresses[begin + i]), kMomentPageBytes});
    const ssize_t got = process_vm_readv(tid, &local, 1, remote.data(), count, 0);
    const size_t whole = got > 0 ? static_cast<size_t>(got) / kMomentPageBytes : 0;
    for (size_t i = 0; i < whole; ++i)
      pages[addresses[begin + i]] = read.substr(i * kMomentPageBytes, kMomentPageBytes);
    begin += whole < count ? whole + 1 : count;
  }
}

bool ThreadStop::CopyRegisters(ThreadMoment* moment) const {
  iovec part = {&moment->general, sizeof moment->general};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &part) != 0 ||
      part.iov_len != sizeof moment->general)
    return false;
#if defined(__aarch64__)
  part = {&moment->thread_pointer, sizeof moment->thread_pointer};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_ARM_TLS, &part) != 0) return false;
#endif
  return true;
}

// For restartable sequences; none where the thread has registered none, or the kernel does not say.
StepRange ThreadStop::KernelWords() const {
  RseqConfiguration area = {};
  const long bytes =
      ptrace(static_cast<__ptrace_request>(kGetRseqConfiguration), tid_, sizeof area, &area);
  if (bytes < static_cast<long>(sizeof area) || area.address == 0) return {};
  return {area.address, area.bytes};
}

bool ThreadStop::CopyMoment(const std::vector<uint64_t>& pages, ThreadMoment* moment) const {
  if (!CopyRegisters(moment)) return false;
  moment->kernel_words = KernelWords();
  moment->vectors.resize(kMostVectorBytes);
  iovec part = {moment->vectors.data(), moment->vectors.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, kVectorSet, &part) != 0) return false;
  moment->vectors.resize(part.iov_len);
  moment->CopyPages(tid_, pages);
  return true;
}

// To the next begin or end of a system call. Asked again after each wait, `may_wait` says whether
// to wait on.
bool ThreadStop::GoToCall(const std::function<bool(TimeNs since)>& may_wait) {
  if (!is_stopped_ || signal_ != 0) return false;
  Released();
  if (ptrace(PTRACE_SYSCALL, tid_, nullptr, nullptr) != 0) return false;
  is_stopped_ = false;
  const TimeNs begin = clock_.Monotonic();
  int status = 0;
  for (;;) {
    const TimeNs before = clock_.Monotonic();
    const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got < 0 || (got == 0 && !may_wait(begin))) return false;
    if (got == tid_) {
      held_since_ = before;
      break;
    }
  }
  if (!WIFSTOPPED(status)) return false;
  is_stopped_ = true;
  if (WSTOPSIG(status) == kCallStop) return true;
  signal_ = SignalOf(status);
  return false;
}

bool ThreadStop::FinishCall(TimeNs until) {
  constexpr TimeNs kBetweenLooks = 50'000;
  if (ptrace(PTRACE_SETOPTIONS, tid_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return false;
  for (int stops = 0; stops < 2; ++stops) {  // on its way in again, and on its way out
    is_in_call_ = true;                      // a stop now would disturb that
    const bool has_come = GoToCall([&](TimeNs) {
      if (clock_.Monotonic() > until) return false;
      clock_.Sleep(kBetweenLooks);
      return true;
    });
    if (has_come || is_stopped_) is_in_call_ = false;
    if (!has_come) return false;
  }
  return true;
}

void ThreadStop::NoteCalls(size_t most, TimeNs until, const ReadMemory& read,
                           ThreadMoment* moment) {
  constexpr TimeNs kQuick = kMillisecond;
  if (ptrace(PTRACE_SETOPTIONS, tid_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return;
  const auto may_wait = [&](TimeNs since) {
    const TimeNs now = clock_.Monotonic();
    if (now > until || (is_in_call_ && now > since + kQuick && Sleeps(tid_))) return false;
    Pause();
    return true;
  };
  while (moment->calls.size() < most) {
    ThreadMoment at;
    if (!GoToCall(may_wait) || !CopyRegisters(&at)) return;
    NotedCall noted;
    noted.call = at.AskedCall();
    moment->ends_in_call = UseOf(noted.call, read) == CallUse::kNever;
    if (moment->ends_in_call) return;
    is_in_call_ = true;
    const bool has_come = GoToCall(may_wait);
    moment->ends_in_call = !has_come && !is_stopped_;
    // The kernel goes on with the others where a stop has interrupted them.
    is_in_call_ = moment->ends_in_call && !StopIsHarmlessIn(noted.call.number);
    if (!has_come || !CopyRegisters(&at)) return;
    noted.call.result = static_cast<int64_t>(at.State().general[0]);
    for (const StepRange& range : MemoryOf(noted.call))
      noted.memory.emplace_back(range.address, Copy(range, read));
    moment->calls.push_back(std::move(noted));
  }
}

}  // namespace hangscope

#include "decode/system_call.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace hangscope {
namespace {

constexpr size_t kMostFiles = 64;      // that are taken of one poll; more are cut, and that is said
constexpr size_t kMostFutexes = 128;   // as the kernel allows (FUTEX_WAITV_MAX)
constexpr int kMostDescriptors = 1 << 16;

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

constexpr std::pair<int, const char*> kNames[] = {
    {SYS_read, "read"}, {SYS_write, "write"}, {SYS_readv, "readv"}, {SYS_writev, "writev"},
    {SYS_pread64, "pread64"}, {SYS_pwrite64, "pwrite64"}, {SYS_ppoll, "ppoll"}, {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"}, {SYS_epoll_pwait2, "epoll_pwait2"}, {SYS_futex, "futex"},
    {SYS_futex_waitv, "futex_waitv"}, {SYS_nanosleep, "nanosleep"}, {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_wait4, "wait4"}, {SYS_waitid, "waitid"}, {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"}, {SYS_accept, "accept"}, {SYS_accept4, "accept4"}, {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"}, {SYS_recvmsg, "recvmsg"}, {SYS_recvmmsg, "recvmmsg"}, {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"}, {SYS_sendmmsg, "sendmmsg"}, {SYS_flock, "flock"}, {SYS_fcntl, "fcntl"},
    {SYS_msgrcv, "msgrcv"}, {SYS_msgsnd, "msgsnd"}, {SYS_semop, "semop"}, {SYS_semtimedop, "semtimedop"},
    {SYS_mq_timedreceive, "mq_timedreceive"}, {SYS_mq_timedsend, "mq_timedsend"}, {SYS_io_getevents, "io_getevents"},
    {SYS_splice, "splice"}, {SYS_tee, "tee"}, {SYS_sendfile, "sendfile"}, {SYS_copy_file_range, "copy_file_range"},
    {SYS_fsync, "fsync"}, {SYS_fdatasync, "fdatasync"}, {SYS_openat, "openat"}, {SYS_close, "close"}, {SYS_ioctl, "ioctl"},
    {SYS_sched_yield, "sched_yield"}, {SYS_restart_syscall, "restart_syscall"}, {SYS_exit, "exit"},
    {SYS_exit_group, "exit_group"}, {SYS_execve, "execve"}, {SYS_clone, "clone"}, {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"}, {SYS_ptrace, "ptrace"}, {SYS_getrandom, "getrandom"}, {SYS_kill, "kill"}, {SYS_tgkill, "tgkill"},
    {425, "io_uring_setup"}, {426, "io_uring_enter"}, {435, "clone3"},
#if defined(__x86_64__)
    {SYS_poll, "poll"}, {SYS_select, "select"}, {SYS_epoll_wait, "epoll_wait"}, {SYS_pause, "pause"},
    {SYS_open, "open"}, {SYS_vfork, "vfork"}, {SYS_fork, "fork"},
#endif
};

std::optional<TimeNs> ReadTime(const ReadMemory& read, uint64_t address) {
  int64_t time[2];
  if (address == 0 || !read(address, time, sizeof time)) return std::nullopt;
  if (time[0] < 0 || time[0] > INT64_MAX / kSecond - 1 || time[1] < 0 || time[1] >= kSecond) return std::nullopt;
  return time[0] * kSecond + time[1];
}

// `address` of the time is 0 where it waits for ever.
void TakeTimeout(CallMeaning* meaning, uint64_t address, const ReadMemory& read) {
  meaning->has_timeout = address != 0;
  meaning->timeout = ReadTime(read, address);
}

// poll's and epoll's: negative waits for ever.
void TakeMilliseconds(CallMeaning* meaning, uint64_t argument) {
  const int milliseconds = static_cast<int>(argument);
  meaning->has_timeout = milliseconds >= 0;
  if (meaning->has_timeout) meaning->timeout = milliseconds * kMillisecond;
}

void AddFile(CallMeaning* meaning, int fd, bool wants_read) {
  if (meaning->files.size() < kMostFiles) meaning->files.push_back({fd, wants_read});
  else meaning->files_cut = true;
}

CallMeaning OneFile(WaitKind kind, uint64_t fd) {
  CallMeaning meaning;
  meaning.kind = kind;
  AddFile(&meaning, static_cast<int>(fd), kind != WaitKind::kWrite);
  return meaning;
}

void TakePollFiles(CallMeaning* meaning, uint64_t address, uint64_t count, const ReadMemory& read) {
  for (uint64_t i = 0; i < count && meaning->files.size() < kMostFiles; ++i) {
    pollfd file = {};
    if (!read(address + i * sizeof file, &file, sizeof file)) break;
    // Without events it is only told of errors and the other end's closing, as a reader is.
    if (file.fd >= 0) AddFile(meaning, file.fd, (file.events & POLLIN) != 0 || (file.events & POLLOUT) == 0);
  }
  meaning->files_cut = meaning->files_cut || count > kMostFiles;
}

void TakeSelectFiles(CallMeaning* meaning, uint64_t set, int count, bool wants_read, const ReadMemory& read) {
  constexpr int kBits = 64;
  for (int word = 0; set != 0 && word * kBits < std::min(count, kMostDescriptors); ++word) {
    uint64_t bits = 0;
    if (!read(set + static_cast<uint64_t>(word) * sizeof bits, &bits, sizeof bits)) return;
    for (int bit = 0; bit < kBits && word * kBits + bit < count; ++bit) {
      if ((bits >> bit & 1) != 0) AddFile(meaning, word * kBits + bit, wants_read);
    }
  }
}

CallMeaning ExplainFutex(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning;
  const auto& a = call.arguments;
  const int operation = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
  meaning.futexes.push_back({a[0], static_cast<uint32_t>(a[2]), (a[1] & FUTEX_PRIVATE_FLAG) != 0});
  switch (operation) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
      meaning.kind = WaitKind::kFutex;
      meaning.futex_use = FutexUse::kWait;
      meaning.has_timeout = a[3] != 0;
      // The others are given an instant.
      if (operation == FUTEX_WAIT) meaning.timeout = ReadTime(read, a[3]);
      return meaning;
    case FUTEX_LOCK_PI:
    case 13:  // FUTEX_LOCK_PI2
      meaning.kind = WaitKind::kFutex;
      meaning.futex_use = FutexUse::kPriority;
      meaning.has_timeout = a[3] != 0;
      return meaning;
    default:
      meaning.futexes.clear();
      meaning.kind = WaitKind::kOther;
      return meaning;
  }
}

CallMeaning ExplainFutexes(const TaskSystemCall& call, const ReadMemory& read) {
  struct Waiter {  // struct futex_waitv
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
  };
  CallMeaning meaning;
  meaning.kind = WaitKind::kFutex;
  meaning.futex_use = FutexUse::kWait;
  for (uint64_t i = 0; i < std::min<uint64_t>(call.arguments[1], kMostFutexes); ++i) {
    Waiter waiter = {};
    if (!read(call.arguments[0] + i * sizeof waiter, &waiter, sizeof waiter)) break;
    meaning.futexes.push_back({waiter.address, static_cast<uint32_t>(waiter.value), (waiter.flags & FUTEX_PRIVATE_FLAG) != 0});
  }
  meaning.has_timeout = call.arguments[3] != 0;
  return meaning;
}

CallMeaning ExplainWait4(const TaskSystemCall& call) {
  CallMeaning meaning;
  meaning.kind = WaitKind::kChild;
  const int who = static_cast<int>(call.arguments[0]);
  meaning.children = who > 0 ? ChildChoice::kProcess : who == -1 ? ChildChoice::kAny : ChildChoice::kGroup;
  if (who > INT_MIN) meaning.child = who < -1 ? -who : std::max(who, 0);
  return meaning;
}

CallMeaning ExplainWaitid(const TaskSystemCall& call) {
  constexpr int kDescriptor = 3;  // P_PIDFD
  CallMeaning meaning;
  meaning.kind = WaitKind::kChild;
  meaning.child = static_cast<int>(call.arguments[1]);
  switch (static_cast<int>(call.arguments[0])) {
    case P_PID: meaning.children = ChildChoice::kProcess; break;
    case P_PGID: meaning.children = ChildChoice::kGroup; break;
    case kDescriptor: meaning.children = ChildChoice::kDescriptor; break;
    default: meaning.child = 0;
  }
  return meaning;
}

CallMeaning Other(WaitKind kind = WaitKind::kOther) {
  CallMeaning meaning;
  meaning.kind = kind;
  return meaning;
}

CallMeaning ExplainPolls(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning = Other(WaitKind::kPoll);
  const auto& a = call.arguments;
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_poll:
      TakePollFiles(&meaning, a[0], a[1], read);
      TakeMilliseconds(&meaning, a[2]);
      break;
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      meaning.epoll = static_cast<int>(a[0]);
      TakeMilliseconds(&meaning, a[3]);
      break;
    case SYS_epoll_pwait2:
      meaning.epoll = static_cast<int>(a[0]);
      TakeTimeout(&meaning, a[3], read);
      break;
    case SYS_ppoll:
      TakePollFiles(&meaning, a[0], a[1], read);
      TakeTimeout(&meaning, a[2], read);
      break;
    default:  // select and pselect6
      TakeSelectFiles(&meaning, a[1], static_cast<int>(a[0]), true, read);
      TakeSelectFiles(&meaning, a[2], static_cast<int>(a[0]), false, read);
      meaning.has_timeout = a[4] != 0;
      // select counts microseconds in it.
      if (call.number == SYS_pselect6) meaning.timeout = ReadTime(read, a[4]);
  }
  // To wait for nothing is to sleep.
  const bool nothing = meaning.files.empty() && meaning.epoll < 0;
  if (nothing && meaning.has_timeout) meaning.kind = WaitKind::kTime;
  if (nothing && !meaning.has_timeout) meaning.kind = WaitKind::kSignal;
  return meaning;
}

CallMeaning ExplainFcntl(const TaskSystemCall& call) {
  constexpr uint64_t kSetLockWait = 7;       // F_SETLKW
  constexpr uint64_t kSetOpenLockWait = 38;  // F_OFD_SETLKW
  const uint64_t command = call.arguments[1];
  if (command != kSetLockWait && command != kSetOpenLockWait) return Other();
  return OneFile(WaitKind::kFileLock, call.arguments[0]);
}

CallMeaning ExplainSleep(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning = Other(WaitKind::kTime);
  meaning.has_timeout = true;
  if (call.number == SYS_nanosleep) meaning.timeout = ReadTime(read, call.arguments[0]);
  constexpr uint64_t kAbsolute = 1;  // TIMER_ABSTIME
  if (call.number == SYS_clock_nanosleep && (call.arguments[1] & kAbsolute) == 0) meaning.timeout = ReadTime(read, call.arguments[2]);
  return meaning;
}

}  // namespace

std::string SystemCallName(int number) {
  for (const auto& [known, name] : kNames) {
    if (known == number) return name;
  }
  return fmt::format("system call {}", number);
}

int SystemCallAskedFor(int number, uint64_t pc, const ReadMemory& read) {
  if (number != SYS_restart_syscall) return number;
#if defined(__x86_64__)
  uint8_t code[7];  // mov $NUMBER, %eax; syscall
  if (pc < sizeof code || !read(pc - sizeof code, code, sizeof code)) return number;
  if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05) return number;
  int asked = 0;
  std::memcpy(&asked, code + 1, sizeof asked);
  return asked;
#else
  uint32_t code[2];  // mov x8, #NUMBER; svc #0
  if (pc < sizeof code || !read(pc - sizeof code, code, sizeof code)) return number;
  if ((code[0] & 0xffe0001f) != 0xd2800008 || code[1] != 0xd4000001) return number;
  return static_cast<int>(code[0] >> 5 & 0xffff);
#endif
}

CallMeaning ExplainSystemCall(const TaskSystemCall& call, const ReadMemory& read) {
  const auto& a = call.arguments;
  if (call.running || call.number < 0) return Other(WaitKind::kNone);
  switch (call.number) {
    case SYS_futex: return ExplainFutex(call, read);
    case SYS_futex_waitv: return ExplainFutexes(call, read);
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_mq_timedreceive: return OneFile(WaitKind::kRead, a[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_mq_timedsend:
    case SYS_connect: return OneFile(WaitKind::kWrite, a[0]);
    case SYS_accept:
    case SYS_accept4: return OneFile(WaitKind::kAccept, a[0]);
    case SYS_flock: return OneFile(WaitKind::kFileLock, a[0]);
    case SYS_fcntl: return ExplainFcntl(call);
#if defined(__x86_64__)
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return ExplainPolls(call, read);
    case SYS_wait4: return ExplainWait4(call);
    case SYS_waitid: return ExplainWaitid(call);
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return ExplainSleep(call, read);
#if defined(__x86_64__)
    case SYS_pause:
#endif
    case SYS_rt_sigsuspend: return Other(WaitKind::kSignal);
    case SYS_rt_sigtimedwait: {
      CallMeaning meaning = Other(WaitKind::kSignal);
      TakeTimeout(&meaning, a[2], read);
      return meaning;
    }
    case SYS_semtimedop: {
      CallMeaning meaning = Other();
      TakeTimeout(&meaning, a[3], read);
      return meaning;
    }
    default: return Other();
  }
}

}  // namespace hangscope

#include "proc/steps/step_calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "proc/poll_calls.h"

namespace hangscope {
namespace {

constexpr uint64_t kSetOpenLock = 37;  // F_OFD_SETLK

int FutexOperation(const StepCall& call) {
  return static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
}

bool IsZeroTime(uint64_t address, const ReadMemory& read) {
  timespec time = {};
  return read(address, &time, sizeof time) && time.tv_sec == 0 && time.tv_nsec == 0;
}

bool Has(uint64_t flags, int flag) { return (flags & static_cast<uint64_t>(flag)) != 0; }

// A lock of a file, or its end, without waiting for it.
bool SetsLock(const StepCall& call) {
  return call.number == SYS_fcntl &&
         (call.arguments[1] == F_SETLK || call.arguments[1] == kSetOpenLock);
}

bool TakesLock(uint64_t address, const ReadMemory& read) {
  struct flock lock = {};
  return read(address, &lock, sizeof lock) && lock.l_type != F_UNLCK;
}

enum class Family { kOther, kReads, kWrites, kPolls, kChildren, kFutex };

Family FamilyOf(int number) {
  if (IsPollCall(number)) return Family::kPolls;
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_mq_timedreceive:
    case SYS_msgrcv:
      return Family::kReads;
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_mq_timedsend:
      return Family::kWrites;
    case SYS_wait4:
    case SYS_waitid:
      return Family::kChildren;
    case SYS_futex:
      return Family::kFutex;
    default:
      return Family::kOther;
  }
}

CallUse UseOfFutex(const StepCall& call) {
  switch (FutexOperation(call)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      return CallUse::kAsks;
    default:
      return CallUse::kNever;
  }
}

CallUse UseOfOther(const StepCall& call, const ReadMemory& read) {
  const auto& a = call.arguments;
  const auto asks_if = [](bool condition) { return condition ? CallUse::kAsks : CallUse::kNever; };
  switch (call.number) {
    case SYS_sched_yield:
      return CallUse::kYields;
    case SYS_nanosleep:
      return IsZeroTime(a[0], read) ? CallUse::kYields : CallUse::kNever;
    case SYS_clock_nanosleep:
      return a[1] == 0 && IsZeroTime(a[2], read) ? CallUse::kYields : CallUse::kNever;
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_getcpu:
    case SYS_times:
    case SYS_getrusage:
#if defined(__x86_64__)
    case SYS_time:
#endif
      return CallUse::kClock;
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
      return CallUse::kAsks;
    case SYS_kill:
    case SYS_tkill:
      return asks_if(a[1] == 0);  // whether it is there
    case SYS_tgkill:
      return asks_if(a[2] == 0);
    case SYS_ioctl:
      return asks_if(a[1] == FIONREAD);
    case SYS_fcntl:
      return asks_if(a[1] == F_GETFL || a[1] == F_GETFD ||
                     (SetsLock(call) && TakesLock(a[2], read)));
    case SYS_flock:
      return asks_if(Has(a[1], LOCK_NB) && !Has(a[1], LOCK_UN));
    default:
      return CallUse::kNever;
  }
}

// It did not do what it was asked for. EINTR and what the kernel makes of it are signals'.
bool Failed(int64_t result) { return result < 0 && result != -EINTR && result > -512; }

}  // namespace

StepCall CallAt(const StepState& state) {
  const auto& g = state.general;
#if defined(__aarch64__)
  return {static_cast<int>(g[8]), {g[0], g[1], g[2], g[3], g[4], g[5]}, 0};
#else
  return {static_cast<int>(g[0]), {g[5], g[4], g[1], g[10], g[8], g[9]}, 0};
#endif
}

CallUse UseOf(const StepCall& call, const ReadMemory& read) {
  switch (FamilyOf(call.number)) {
    case Family::kReads:
    case Family::kWrites:
    case Family::kPolls:
      return CallUse::kAsks;
    case Family::kChildren:  // who has none is told so at once
      return CallUse::kAsks;
    case Family::kFutex:
      return UseOfFutex(call);
    case Family::kOther:
      break;
  }
  return UseOfOther(call, read);
}

bool ChangedNothing(const StepCall& call) {
  switch (FamilyOf(call.number)) {
    case Family::kReads: {
      const bool peeks = call.number == SYS_recvfrom && Has(call.arguments[3], MSG_PEEK);
      return Failed(call.result) || call.result == 0 || (peeks && call.result > 0);
    }
    case Family::kWrites:
      return Failed(call.result);
    case Family::kFutex: {
      const int operation = FutexOperation(call);
      const bool wakes = operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET;
      return wakes ? call.result == 0 : call.result == -EAGAIN;
    }
    case Family::kChildren:
      return Failed(call.result) || call.result == 0;
    case Family::kPolls:
    case Family::kOther:
      break;
  }
  if (call.number == SYS_flock || SetsLock(call)) return Failed(call.result);
  return Failed(call.result) || call.result >= 0;
}

std::vector<StepRange> MemoryOf(const StepCall& call) {
  const auto& a = call.arguments;
  std::vector<StepRange> ranges;
  const auto add = [&](uint64_t address, uint64_t bytes) {
    if (address != 0 && bytes != 0) ranges.push_back({address, bytes});
  };
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_poll:
      add(a[0], a[1] * sizeof(pollfd));
      break;
    case SYS_select:
#endif
    case SYS_pselect6: {
      constexpr uint64_t kBits = 64;
      for (const size_t set : {1, 2, 3}) add(a[set], (a[0] + kBits - 1) / kBits * sizeof(uint64_t));
      add(a[4], sizeof(timespec));
      break;
    }
    case SYS_ppoll:
      add(a[0], a[1] * sizeof(pollfd));
      add(a[2], sizeof(timespec));
      break;
#if defined(__x86_64__)
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      add(a[1], a[2] * sizeof(epoll_event));
      break;
    case SYS_wait4:
      add(a[1], sizeof(int));
      add(a[3], sizeof(rusage));
      break;
    case SYS_waitid:
      add(a[2], sizeof(siginfo_t));
      add(a[4], sizeof(rusage));
      break;
    case SYS_futex:
      add(a[0], sizeof(uint32_t));
      break;
    case SYS_ioctl:
      add(a[2], sizeof(int));
      break;
    case SYS_fcntl:
      if (SetsLock(call)) add(a[2], sizeof(struct flock));
      break;
    case SYS_recvfrom:
      if (Has(a[3], MSG_PEEK)) add(a[1], a[2]);
      break;
    default:
      break;
  }
  return ranges;
}

}  // namespace hangscope

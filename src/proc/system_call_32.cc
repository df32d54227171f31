#include "proc/system_call_32.h"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace hangscope {

#if defined(__x86_64__)
namespace {

// Whether the times that it points to are of 32 bits; of those with 64 there are newer numbers.
enum class Times { kNone, kShort, kLong };

struct Known {
  int number;
  int native;
  Times times = Times::kNone;
};

// Those that wait, and whose arguments stand in the same order. Of others the name alone would
// follow.
constexpr Known kKnown[] = {
    {3, SYS_read},
    {4, SYS_write},
    {5, SYS_open},
    {7, SYS_wait4},  // waitpid
    {29, SYS_pause},
    {114, SYS_wait4},
    {120, SYS_clone},
    {142, SYS_select},
    {143, SYS_flock},
    {145, SYS_readv},
    {146, SYS_writev},
    {55, SYS_fcntl},
    {158, SYS_sched_yield},
    {162, SYS_nanosleep, Times::kShort},
    {168, SYS_poll},
    {177, SYS_rt_sigtimedwait, Times::kShort},
    {179, SYS_rt_sigsuspend},
    {180, SYS_pread64},
    {181, SYS_pwrite64},
    {190, SYS_vfork},
    {221, SYS_fcntl},
    {240, SYS_futex, Times::kShort},
    {256, SYS_epoll_wait},
    {267, SYS_clock_nanosleep, Times::kShort},
    {279, SYS_mq_timedsend},
    {280, SYS_mq_timedreceive},
    {284, SYS_waitid},
    {295, SYS_openat},
    {308, SYS_pselect6, Times::kShort},
    {309, SYS_ppoll, Times::kShort},
    {319, SYS_epoll_pwait},
    {337, SYS_recvmmsg},
    {345, SYS_sendmmsg},
    {362, SYS_connect},
    {364, SYS_accept4},
    {369, SYS_sendto},
    {370, SYS_sendmsg},
    {371, SYS_recvfrom},
    {372, SYS_recvmsg},
    {400, SYS_msgsnd},
    {401, SYS_msgrcv},
    {407, SYS_clock_nanosleep, Times::kLong},
    {413, SYS_pselect6, Times::kLong},
    {414, SYS_ppoll, Times::kLong},
    {417, SYS_recvmmsg},
    {418, SYS_mq_timedsend},
    {419, SYS_mq_timedreceive},
    {420, SYS_semtimedop, Times::kLong},
    {421, SYS_rt_sigtimedwait, Times::kLong},
    {422, SYS_futex, Times::kLong},
};

constexpr int kFirstCommonNumber = 424;
constexpr int kSocketCall = 102;
constexpr int kFcntl = 55;
constexpr int kFcntl64 = 221;

// By the first argument of socketcall; the others stand in memory. 0: it does not wait.
constexpr int kOfSockets[] = {
    0, 0, 0,           SYS_connect,  0,           SYS_accept,   0,
    0, 0, SYS_sendto,  SYS_recvfrom, SYS_sendto,  SYS_recvfrom, 0,
    0, 0, SYS_sendmsg, SYS_recvmsg,  SYS_accept4, SYS_recvmmsg, SYS_sendmmsg};

TaskSystemCall OfSocket(const TaskSystemCall& call, const ReadMemory& read) {
  TaskSystemCall native = call;
  native.number = -1;
  uint32_t arguments[6] = {};
  // Of the least: three.
  if (call.arguments[0] >= std::size(kOfSockets) ||
      (!read(call.arguments[1], arguments, sizeof arguments) &&
       !read(call.arguments[1], arguments, 3 * sizeof arguments[0])))
    return native;
  if (const int number = kOfSockets[call.arguments[0]]; number != 0) native.number = number;
  std::copy(std::begin(arguments), std::end(arguments), native.arguments.begin());
  return native;
}

// Of their three commands that wait for a lock: with 32-bit positions, with 64-bit ones, and that
// of an open file description.
void MakeNativeCommand(TaskSystemCall* native) {
  constexpr uint64_t kSetLock64Wait = 14;
  constexpr uint64_t kSetLockWait = 7;
  if (native->arguments[1] == kSetLock64Wait) native->arguments[1] = kSetLockWait;
}

}  // namespace

NativeCall NativeCallOf32(const TaskSystemCall& call, const ReadMemory& read) {
  NativeCall native;
  native.call = call;
  native.call.number = -1;
  if (call.number == kSocketCall) {
    native.call = OfSocket(call, read);
    return native;
  }
  if (call.number >= kFirstCommonNumber) {
    native.call.number = call.number;
    return native;
  }
  const auto known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                  [&](const Known& each) { return each.number == call.number; });
  if (known == std::end(kKnown)) return native;
  native.call.number = known->native;
  native.has_short_times = known->times == Times::kShort;
  if (call.number == kFcntl || call.number == kFcntl64) MakeNativeCommand(&native.call);
  return native;
}

#else

NativeCall NativeCallOf32(const TaskSystemCall& call, const ReadMemory&) {
  NativeCall native;
  native.call = call;
  native.call.number = -1;
  return native;
}

#endif

}  // namespace hangscope

// The texts of Linux's /proc folder, taken apart; proc(5) describes them. Pure: nothing is read
// here, and whatever does not look as expected is nothing, not a guess.
#ifndef HANGSCOPE_PROC_PROC_TEXT_H
#define HANGSCOPE_PROC_PROC_TEXT_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/process.h"

namespace hangscope {

// /proc/PID/stat and /proc/PID/task/TID/stat.
struct TaskStat {
  int id = 0;
  std::string name;
  ThreadState state = ThreadState::kUnknown;
  int parent = 0;
  int group = 0;       // process group
  int terminal = 0;    // its controlling terminal's device; 0: none
  int foreground = 0;  // the process group in the foreground of that
  bool kernel_thread = false;
  int cpu = -1;  // that it ran on last
  // in clock ticks (sysconf): its own, and of children it waited for, in user and in system mode
  uint64_t cpu_ticks = 0;
  uint64_t start_ticks = 0;  // in clock ticks since the machine's start: when it was created
  // of a zombie, as wait(2) tells it; of one that is stopped, the signal; 0 also where this user
  // may not see it
  int wait_status = 0;
  // Where its stack was put when its program began: the same for all who share one memory, and for
  // copies that fork made. 0: none, or this user may not see it.
  uint64_t stack_begin = 0;
};
std::optional<TaskStat> ParseTaskStat(std::string_view text);

// /proc/PID/status, as far as stat does not say it.
struct TaskStatus {
  int process = 0;  // that the thread belongs to
  int tracer = 0;   // process id of its debugger; 0: none
  // bit N-1 stands for signal N: the thread blocks it, the process ignores it, has a handler for it
  uint64_t blocked_signals = 0;
  uint64_t ignored_signals = 0;
  uint64_t caught_signals = 0;
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
  int user = -1;  // effective
  // of the thread, as it is called inside its own pid namespace; 0: not known
  int inner_id = 0;
  bool has_call_filter = false;  // seccomp's
};
std::optional<TaskStatus> ParseTaskStatus(std::string_view text);

// /proc/PID/task/TID/syscall.
struct TaskSystemCall {
  bool running = false;  // on a CPU, or wants to be: the kernel says no more
  int number = -1;       // -1: it sleeps, but not in a system call
  std::array<uint64_t, 6> arguments = {};
  uint64_t stack_pointer = 0;
  uint64_t pc = 0;
};
bool operator==(const TaskSystemCall& a, const TaskSystemCall& b);
std::optional<TaskSystemCall> ParseTaskSystemCall(std::string_view text);

// /proc/PID/task/TID/sched: "se.exec_start", in nanoseconds of the clock of the CPU that it ran on
// last.
std::optional<TimeNs> ParseLastRan(std::string_view text);
// /proc/PID/task/TID/schedstat: time on a CPU, time it wanted one.
struct TaskRunTime {
  TimeNs ran = 0;
  TimeNs wanted = 0;
};
std::optional<TaskRunTime> ParseTaskRunTime(std::string_view text);

// A line of /proc/PID/maps.
struct MemoryMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t file_offset = 0;
  std::string device;  // "fe:00"
  uint64_t inode = 0;  // 0: of no file
  std::string path;    // or "[stack]", "[vdso]"; empty: none

  uint64_t size_bytes() const { return end - begin; }
};
// as the kernel lists them, ascending
std::vector<MemoryMapping> ParseMemoryMappings(std::string_view text);
// The mapping that `address` is in; null: none. `mappings` ascend.
const MemoryMapping* FindMapping(const std::vector<MemoryMapping>& mappings, uint64_t address);

// A line of /proc/locks.
struct FileLockLine {
  uint64_t number = 0;  // of the lock; who waits for it has the same one
  bool waits = false;   // wants it, rather than holds it
  bool flock = false;   // else fcntl's
  // Else a process has it. An open file description is had by all who inherited it, also when the
  // process that took the lock, which `pid` names, has ended.
  bool of_description = false;
  bool write = false;
  int pid = 0;         // -1: not told
  std::string device;  // "fe:00"
  uint64_t inode = 0;
  uint64_t first = 0, last = UINT64_MAX;  // of its bytes
};
std::vector<FileLockLine> ParseFileLocks(std::string_view text);

// What an epoll descriptor waits for: the file that had the number `fd` then.
struct EpollFile {
  int fd = -1;
  uint64_t inode = 0;  // 0: not known
  uint64_t data = 0;   // what the program has stored beside it
};

// What an io_uring has been given, and what it still waits for.
struct RingCounts {
  uint64_t inode = 0;              // all descriptors and mappings of it have that one
  uint64_t entries = 0;            // places for requests
  uint64_t taken = 0;              // requests that the kernel has taken so far
  uint64_t offered = 0;            // that the program has put there so far
  uint64_t completed = 0;          // completions so far
  bool is_whole = false;           // `polled` are all that wait for a file to become ready
  std::vector<int> polled;         // their operations (IORING_OP_...)
  bool has_kernel_thread = false;  // that takes requests
};

// /proc/PID/fdinfo/N.
struct DescriptorInfo {
  bool is_read = false;  // else nothing of this is known
  uint64_t flags = 0;    // as open(2) takes them
  std::vector<EpollFile> epoll_files;
  std::optional<int> process;        // of a pidfd: which; -1: it has ended
  std::optional<uint64_t> event;     // of an eventfd: its number, which all descriptors of it have
  bool notifies = false;             // of an inotify: it watches a file that is still there
  bool is_unarmed = false;           // of a timerfd: it will not expire
  uint64_t signals = 0;              // of a signalfd: which ones it tells of; bit N-1: signal N
  uint64_t descriptors_to_take = 0;  // of a unix socket: sent to it, and not received yet
  std::optional<uint64_t> fuse;      // of /dev/fuse: its connection, a minor device number
  std::optional<int> terminal;       // of a pseudo-terminal's master: the number of its slave
  std::optional<RingCounts> ring;    // of an io_uring
  std::vector<FileLockLine> locks;   // that are held by its open file description, or its process
};
DescriptorInfo ParseDescriptorInfo(std::string_view text);

// A line of /proc/PID/mountinfo.
struct MountLine {
  std::string device;  // "fe:00", as in maps
  uint64_t minor = 0;
  std::string point;  // where, as the process sees it
  std::string type;   // "ext4", "fuse.sshfs"
};
std::vector<MountLine> ParseMounts(std::string_view text);

// /proc/PID/task/TID/stack: the functions of the kernel, innermost first, without those in which
// every system call begins; "nfs_wait_bit_killable [sunrpc]" is a module's.
std::vector<std::string> ParseKernelStack(std::string_view text);

// A line of /proc/net/tcp or tcp6.
struct TcpLine {
  std::string local;  // as the kernel writes it: "0100007F:1F90"
  std::string remote;
  bool listening = false;
  bool connected = false;  // also where the other end writes no more
  uint64_t inode = 0;      // 0: nobody has accepted it yet, or everybody has closed it
  uint32_t received = 0;   // bytes that nobody has read; listening: connections not accepted yet
};
std::vector<TcpLine> ParseTcpTable(std::string_view text);
// "127.0.0.1:8080", "[::1]:8080"; the text itself where it is no such address.
std::string TcpAddressName(std::string_view address);
// Whether an address of this machine's loopback: the other end is here, too.
bool IsLoopback(std::string_view address);

}  // namespace hangscope

#endif

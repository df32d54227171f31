#include "process/system_call.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "proc/poll_calls.h"

namespace hangscope {
namespace {

constexpr size_t kMostFutexes = 128;  // as the kernel allows (FUTEX_WAITV_MAX)

#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

// All that Linux 6.1 has. From 424 on a number means the same everywhere, and headers may be older.
constexpr std::pair<int, const char*> kNames[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_close, "close"},
    {SYS_fstat, "fstat"},
    {SYS_lseek, "lseek"},
    {SYS_mmap, "mmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_munmap, "munmap"},
    {SYS_brk, "brk"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_rt_sigprocmask, "rt_sigprocmask"},
    {SYS_rt_sigreturn, "rt_sigreturn"},
    {SYS_ioctl, "ioctl"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_mremap, "mremap"},
    {SYS_msync, "msync"},
    {SYS_mincore, "mincore"},
    {SYS_madvise, "madvise"},
    {SYS_shmget, "shmget"},
    {SYS_shmat, "shmat"},
    {SYS_shmctl, "shmctl"},
    {SYS_dup, "dup"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_getitimer, "getitimer"},
    {SYS_setitimer, "setitimer"},
    {SYS_getpid, "getpid"},
    {SYS_sendfile, "sendfile"},
    {SYS_socket, "socket"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_sendto, "sendto"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_shutdown, "shutdown"},
    {SYS_bind, "bind"},
    {SYS_listen, "listen"},
    {SYS_getsockname, "getsockname"},
    {SYS_getpeername, "getpeername"},
    {SYS_socketpair, "socketpair"},
    {SYS_setsockopt, "setsockopt"},
    {SYS_getsockopt, "getsockopt"},
    {SYS_clone, "clone"},
    {SYS_execve, "execve"},
    {SYS_exit, "exit"},
    {SYS_wait4, "wait4"},
    {SYS_kill, "kill"},
    {SYS_uname, "uname"},
    {SYS_semget, "semget"},
    {SYS_semop, "semop"},
    {SYS_semctl, "semctl"},
    {SYS_shmdt, "shmdt"},
    {SYS_msgget, "msgget"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgctl, "msgctl"},
    {SYS_fcntl, "fcntl"},
    {SYS_flock, "flock"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_truncate, "truncate"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_getcwd, "getcwd"},
    {SYS_chdir, "chdir"},
    {SYS_fchdir, "fchdir"},
    {SYS_fchmod, "fchmod"},
    {SYS_fchown, "fchown"},
    {SYS_umask, "umask"},
    {SYS_gettimeofday, "gettimeofday"},
    {SYS_getrlimit, "getrlimit"},
    {SYS_getrusage, "getrusage"},
    {SYS_sysinfo, "sysinfo"},
    {SYS_times, "times"},
    {SYS_ptrace, "ptrace"},
    {SYS_getuid, "getuid"},
    {SYS_syslog, "syslog"},
    {SYS_getgid, "getgid"},
    {SYS_setuid, "setuid"},
    {SYS_setgid, "setgid"},
    {SYS_geteuid, "geteuid"},
    {SYS_getegid, "getegid"},
    {SYS_setpgid, "setpgid"},
    {SYS_getppid, "getppid"},
    {SYS_setsid, "setsid"},
    {SYS_setreuid, "setreuid"},
    {SYS_setregid, "setregid"},
    {SYS_getgroups, "getgroups"},
    {SYS_setgroups, "setgroups"},
    {SYS_setresuid, "setresuid"},
    {SYS_getresuid, "getresuid"},
    {SYS_setresgid, "setresgid"},
    {SYS_getresgid, "getresgid"},
    {SYS_getpgid, "getpgid"},
    {SYS_setfsuid, "setfsuid"},
    {SYS_setfsgid, "setfsgid"},
    {SYS_getsid, "getsid"},
    {SYS_capget, "capget"},
    {SYS_capset, "capset"},
    {SYS_rt_sigpending, "rt_sigpending"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_sigaltstack, "sigaltstack"},
    {SYS_personality, "personality"},
    {SYS_statfs, "statfs"},
    {SYS_fstatfs, "fstatfs"},
    {SYS_getpriority, "getpriority"},
    {SYS_setpriority, "setpriority"},
    {SYS_sched_setparam, "sched_setparam"},
    {SYS_sched_getparam, "sched_getparam"},
    {SYS_sched_setscheduler, "sched_setscheduler"},
    {SYS_sched_getscheduler, "sched_getscheduler"},
    {SYS_sched_get_priority_max, "sched_get_priority_max"},
    {SYS_sched_get_priority_min, "sched_get_priority_min"},
    {SYS_sched_rr_get_interval, "sched_rr_get_interval"},
    {SYS_mlock, "mlock"},
    {SYS_munlock, "munlock"},
    {SYS_mlockall, "mlockall"},
    {SYS_munlockall, "munlockall"},
    {SYS_vhangup, "vhangup"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_prctl, "prctl"},
    {SYS_adjtimex, "adjtimex"},
    {SYS_setrlimit, "setrlimit"},
    {SYS_chroot, "chroot"},
    {SYS_sync, "sync"},
    {SYS_acct, "acct"},
    {SYS_settimeofday, "settimeofday"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_swapon, "swapon"},
    {SYS_swapoff, "swapoff"},
    {SYS_reboot, "reboot"},
    {SYS_sethostname, "sethostname"},
    {SYS_setdomainname, "setdomainname"},
    {SYS_init_module, "init_module"},
    {SYS_delete_module, "delete_module"},
    {SYS_quotactl, "quotactl"},
    {SYS_nfsservctl, "nfsservctl"},
    {SYS_gettid, "gettid"},
    {SYS_readahead, "readahead"},
    {SYS_setxattr, "setxattr"},
    {SYS_lsetxattr, "lsetxattr"},
    {SYS_fsetxattr, "fsetxattr"},
    {SYS_getxattr, "getxattr"},
    {SYS_lgetxattr, "lgetxattr"},
    {SYS_fgetxattr, "fgetxattr"},
    {SYS_listxattr, "listxattr"},
    {SYS_llistxattr, "llistxattr"},
    {SYS_flistxattr, "flistxattr"},
    {SYS_removexattr, "removexattr"},
    {SYS_lremovexattr, "lremovexattr"},
    {SYS_fremovexattr, "fremovexattr"},
    {SYS_tkill, "tkill"},
    {SYS_futex, "futex"},
    {SYS_sched_setaffinity, "sched_setaffinity"},
    {SYS_sched_getaffinity, "sched_getaffinity"},
    {SYS_io_setup, "io_setup"},
    {SYS_io_destroy, "io_destroy"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_submit, "io_submit"},
    {SYS_io_cancel, "io_cancel"},
    {SYS_lookup_dcookie, "lookup_dcookie"},
    {SYS_remap_file_pages, "remap_file_pages"},
    {SYS_getdents64, "getdents64"},
    {SYS_set_tid_address, "set_tid_address"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_fadvise64, "fadvise64"},
    {SYS_timer_create, "timer_create"},
    {SYS_timer_settime, "timer_settime"},
    {SYS_timer_gettime, "timer_gettime"},
    {SYS_timer_getoverrun, "timer_getoverrun"},
    {SYS_timer_delete, "timer_delete"},
    {SYS_clock_settime, "clock_settime"},
    {SYS_clock_gettime, "clock_gettime"},
    {SYS_clock_getres, "clock_getres"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_exit_group, "exit_group"},
    {SYS_epoll_ctl, "epoll_ctl"},
    {SYS_tgkill, "tgkill"},
    {SYS_mbind, "mbind"},
    {SYS_set_mempolicy, "set_mempolicy"},
    {SYS_get_mempolicy, "get_mempolicy"},
    {SYS_mq_open, "mq_open"},
    {SYS_mq_unlink, "mq_unlink"},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_mq_notify, "mq_notify"},
    {SYS_mq_getsetattr, "mq_getsetattr"},
    {SYS_kexec_load, "kexec_load"},
    {SYS_waitid, "waitid"},
    {SYS_add_key, "add_key"},
    {SYS_request_key, "request_key"},
    {SYS_keyctl, "keyctl"},
    {SYS_ioprio_set, "ioprio_set"},
    {SYS_ioprio_get, "ioprio_get"},
    {SYS_inotify_add_watch, "inotify_add_watch"},
    {SYS_inotify_rm_watch, "inotify_rm_watch"},
    {SYS_migrate_pages, "migrate_pages"},
    {SYS_openat, "openat"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_mknodat, "mknodat"},
    {SYS_fchownat, "fchownat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat, "renameat"},
    {SYS_linkat, "linkat"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_readlinkat, "readlinkat"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_faccessat, "faccessat"},
    {SYS_pselect6, "pselect6"},
    {SYS_ppoll, "ppoll"},
    {SYS_unshare, "unshare"},
    {SYS_set_robust_list, "set_robust_list"},
    {SYS_get_robust_list, "get_robust_list"},
    {SYS_splice, "splice"},
    {SYS_tee, "tee"},
    {SYS_sync_file_range, "sync_file_range"},
    {SYS_vmsplice, "vmsplice"},
    {SYS_move_pages, "move_pages"},
    {SYS_utimensat, "utimensat"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_timerfd_create, "timerfd_create"},
    {SYS_fallocate, "fallocate"},
    {SYS_timerfd_settime, "timerfd_settime"},
    {SYS_timerfd_gettime, "timerfd_gettime"},
    {SYS_accept4, "accept4"},
    {SYS_signalfd4, "signalfd4"},
    {SYS_eventfd2, "eventfd2"},
    {SYS_epoll_create1, "epoll_create1"},
    {SYS_dup3, "dup3"},
    {SYS_pipe2, "pipe2"},
    {SYS_inotify_init1, "inotify_init1"},
    {SYS_preadv, "preadv"},
    {SYS_pwritev, "pwritev"},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_fanotify_init, "fanotify_init"},
    {SYS_fanotify_mark, "fanotify_mark"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_name_to_handle_at, "name_to_handle_at"},
    {SYS_open_by_handle_at, "open_by_handle_at"},
    {SYS_clock_adjtime, "clock_adjtime"},
    {SYS_syncfs, "syncfs"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_setns, "setns"},
    {SYS_getcpu, "getcpu"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_kcmp, "kcmp"},
    {SYS_finit_module, "finit_module"},
    {SYS_sched_setattr, "sched_setattr"},
    {SYS_sched_getattr, "sched_getattr"},
    {SYS_renameat2, "renameat2"},
    {SYS_seccomp, "seccomp"},
    {SYS_getrandom, "getrandom"},
    {SYS_memfd_create, "memfd_create"},
    {SYS_kexec_file_load, "kexec_file_load"},
    {SYS_bpf, "bpf"},
    {SYS_execveat, "execveat"},
    {SYS_userfaultfd, "userfaultfd"},
    {SYS_membarrier, "membarrier"},
    {SYS_mlock2, "mlock2"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_preadv2, "preadv2"},
    {SYS_pwritev2, "pwritev2"},
    {SYS_pkey_mprotect, "pkey_mprotect"},
    {SYS_pkey_alloc, "pkey_alloc"},
    {SYS_pkey_free, "pkey_free"},
    {SYS_statx, "statx"},
    {SYS_io_pgetevents, "io_pgetevents"},
    {SYS_rseq, "rseq"},
    {424, "pidfd_send_signal"},
    {425, "io_uring_setup"},
    {426, "io_uring_enter"},
    {427, "io_uring_register"},
    {428, "open_tree"},
    {429, "move_mount"},
    {430, "fsopen"},
    {431, "fsconfig"},
    {432, "fsmount"},
    {433, "fspick"},
    {434, "pidfd_open"},
    {435, "clone3"},
    {436, "close_range"},
    {437, "openat2"},
    {438, "pidfd_getfd"},
    {439, "faccessat2"},
    {440, "process_madvise"},
    {441, "epoll_pwait2"},
    {442, "mount_setattr"},
    {443, "quotactl_fd"},
    {444, "landlock_create_ruleset"},
    {445, "landlock_add_rule"},
    {446, "landlock_restrict_self"},
    {447, "memfd_secret"},
    {448, "process_mrelease"},
    {449, "futex_waitv"},
    {450, "set_mempolicy_home_node"},
#if defined(__x86_64__)
    {SYS_stat, "stat"},
    {SYS_lstat, "lstat"},
    {SYS_open, "open"},
    {SYS_poll, "poll"},
    {SYS_access, "access"},
    {SYS_pipe, "pipe"},
    {SYS_select, "select"},
    {SYS_dup2, "dup2"},
    {SYS_pause, "pause"},
    {SYS_alarm, "alarm"},
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_getdents, "getdents"},
    {SYS_rename, "rename"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_creat, "creat"},
    {SYS_link, "link"},
    {SYS_unlink, "unlink"},
    {SYS_symlink, "symlink"},
    {SYS_readlink, "readlink"},
    {SYS_chmod, "chmod"},
    {SYS_chown, "chown"},
    {SYS_lchown, "lchown"},
    {SYS_getpgrp, "getpgrp"},
    {SYS_utime, "utime"},
    {SYS_mknod, "mknod"},
    {SYS_uselib, "uselib"},
    {SYS_ustat, "ustat"},
    {SYS_sysfs, "sysfs"},
    {SYS_modify_ldt, "modify_ldt"},
    {SYS__sysctl, "_sysctl"},
    {SYS_arch_prctl, "arch_prctl"},
    {SYS_iopl, "iopl"},
    {SYS_ioperm, "ioperm"},
    {SYS_create_module, "create_module"},
    {SYS_get_kernel_syms, "get_kernel_syms"},
    {SYS_query_module, "query_module"},
    {SYS_getpmsg, "getpmsg"},
    {SYS_putpmsg, "putpmsg"},
    {SYS_afs_syscall, "afs_syscall"},
    {SYS_tuxcall, "tuxcall"},
    {SYS_security, "security"},
    {SYS_time, "time"},
    {SYS_set_thread_area, "set_thread_area"},
    {SYS_get_thread_area, "get_thread_area"},
    {SYS_epoll_create, "epoll_create"},
    {SYS_epoll_ctl_old, "epoll_ctl_old"},
    {SYS_epoll_wait_old, "epoll_wait_old"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_utimes, "utimes"},
    {SYS_vserver, "vserver"},
    {SYS_inotify_init, "inotify_init"},
    {SYS_futimesat, "futimesat"},
    {SYS_signalfd, "signalfd"},
    {SYS_eventfd, "eventfd"},
#endif
};

std::optional<TimeNs> ReadTime(const ReadMemory& read, uint64_t address) {
  int64_t time[2];
  if (address == 0 || !read(address, time, sizeof time)) return std::nullopt;
  if (time[0] < 0 || time[0] > INT64_MAX / kSecond - 1 || time[1] < 0 || time[1] >= kSecond)
    return std::nullopt;
  return time[0] * kSecond + time[1];
}

// `address` of the time is 0 where it waits for ever.
void ReadTimeout(CallMeaning* meaning, uint64_t address, const ReadMemory& read) {
  meaning->has_timeout = address != 0;
  meaning->timeout = ReadTime(read, address);
}

// poll's and epoll's: negative waits for ever.
void SetMilliseconds(CallMeaning* meaning, uint64_t argument) {
  const int milliseconds = static_cast<int>(argument);
  meaning->has_timeout = milliseconds >= 0;
  if (meaning->has_timeout) meaning->timeout = milliseconds * kMillisecond;
}

CallMeaning OneFile(WaitKind kind, uint64_t fd) {
  CallMeaning meaning;
  meaning.kind = kind;
  const bool wants_read = kind != WaitKind::kWrite && kind != WaitKind::kConnect;
  meaning.files.push_back({static_cast<int>(fd), wants_read});
  return meaning;
}

CallMeaning ExplainConnect(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning = OneFile(WaitKind::kConnect, call.arguments[0]);
  std::string address(std::min<uint64_t>(call.arguments[2], sizeof(sockaddr_storage)), '\0');
  if (address.size() < sizeof(sa_family_t) ||
      !read(call.arguments[1], address.data(), address.size()))
    return meaning;
  sa_family_t family = 0;
  std::memcpy(&family, address.data(), sizeof family);
  // The kernel gives up an address of the Internet that does not answer.
  meaning.has_timeout = family == AF_INET || family == AF_INET6;
  meaning.address = std::move(address);
  return meaning;
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
    meaning.futexes.push_back({waiter.address, static_cast<uint32_t>(waiter.value),
                               (waiter.flags & FUTEX_PRIVATE_FLAG) != 0});
  }
  meaning.has_timeout = call.arguments[3] != 0;
  return meaning;
}

CallMeaning ExplainWait4(const TaskSystemCall& call) {
  CallMeaning meaning;
  meaning.kind = WaitKind::kChild;
  const int who = static_cast<int>(call.arguments[0]);
  meaning.children = who > 0     ? ChildChoice::kProcess
                     : who == -1 ? ChildChoice::kAny
                                 : ChildChoice::kGroup;
  if (who > INT_MIN) meaning.child = who < -1 ? -who : std::max(who, 0);
  return meaning;
}

CallMeaning ExplainWaitid(const TaskSystemCall& call) {
  constexpr int kDescriptor = 3;  // P_PIDFD
  CallMeaning meaning;
  meaning.kind = WaitKind::kChild;
  meaning.child = static_cast<int>(call.arguments[1]);
  switch (static_cast<int>(call.arguments[0])) {
    case P_PID:
      meaning.children = ChildChoice::kProcess;
      break;
    case P_PGID:
      meaning.children = ChildChoice::kGroup;
      break;
    case kDescriptor:
      meaning.children = ChildChoice::kDescriptor;
      break;
    default:
      meaning.child = 0;
  }
  return meaning;
}

CallMeaning Other(WaitKind kind = WaitKind::kOther) {
  CallMeaning meaning;
  meaning.kind = kind;
  return meaning;
}

// Of one of these signals.
CallMeaning WaitForHandlers(uint64_t signals) {
  CallMeaning meaning = Other(WaitKind::kSignal);
  meaning.signals = signals;
  meaning.needs_handlers = true;
  return meaning;
}

CallMeaning ExplainTransfer(const TaskSystemCall& call) {
  CallMeaning meaning = Other();
  const auto fd = [&](size_t at) { return static_cast<int>(call.arguments[at]); };
  switch (call.number) {
    case SYS_splice:
      meaning.moves = {fd(0), fd(2)};
      break;
    case SYS_tee:
      meaning.moves = {fd(0), fd(1)};
      break;
    case SYS_sendfile:
      meaning.moves = {fd(1), fd(0)};
      break;
    default:  // vmsplice goes either way, as its pipe's end tells
      meaning.moves = {fd(0), fd(0)};
  }
  return meaning;
}

CallMeaning WaitForVforked() {
  CallMeaning meaning;
  meaning.kind = WaitKind::kChild;
  meaning.children = ChildChoice::kOfVfork;
  return meaning;
}

CallMeaning ExplainClone(const TaskSystemCall& call, const ReadMemory& read) {
  uint64_t flags = call.arguments[0];  // of clone3: where they are
  if (call.number == SYS_clone3 && !read(flags, &flags, sizeof flags))
    return Other(WaitKind::kOther);
  return (flags & CLONE_VFORK) != 0 ? WaitForVforked() : Other(WaitKind::kOther);
}

CallMeaning ExplainPolls(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning = Other(WaitKind::kPoll);
  const auto& a = call.arguments;
  if (IsEpollCall(call.number)) meaning.epoll = static_cast<int>(a[0]);
  const PolledFiles polled = ReadPolledFiles(call, read);
  for (const PolledFiles::File& file : polled.files)
    meaning.files.push_back({file.fd, file.wants_read});
  meaning.files_cut = polled.cut;
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_poll:
      SetMilliseconds(&meaning, a[2]);
      break;
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      SetMilliseconds(&meaning, a[3]);
      break;
    case SYS_epoll_pwait2:
      ReadTimeout(&meaning, a[3], read);
      break;
    case SYS_ppoll:
      ReadTimeout(&meaning, a[2], read);
      break;
    default:  // select and pselect6
      meaning.has_timeout = a[4] != 0;
      // select counts microseconds in it.
      if (call.number == SYS_pselect6) meaning.timeout = ReadTime(read, a[4]);
  }
  // To wait for nothing is to sleep.
  const bool nothing = meaning.files.empty() && meaning.epoll < 0;
  if (nothing && meaning.has_timeout) meaning.kind = WaitKind::kTime;
  if (nothing && !meaning.has_timeout) return WaitForHandlers(~uint64_t{0});
  return meaning;
}

CallMeaning ExplainFcntl(const TaskSystemCall& call) {
  constexpr uint64_t kSetLockWait = 7;       // F_SETLKW
  constexpr uint64_t kSetOpenLockWait = 38;  // F_OFD_SETLKW
  const uint64_t command = call.arguments[1];
  if (command != kSetLockWait && command != kSetOpenLockWait) return Other();
  return OneFile(WaitKind::kFileLock, call.arguments[0]);
}

// Of POSIX: given an instant.
CallMeaning ExplainQueue(const TaskSystemCall& call) {
  CallMeaning meaning = OneFile(
      call.number == SYS_mq_timedreceive ? WaitKind::kRead : WaitKind::kWrite, call.arguments[0]);
  meaning.is_queue = true;
  meaning.has_timeout = call.arguments[4] != 0;
  return meaning;
}

// Of a ring that has a descriptor. A timeout is among what its last arguments point to, if the
// flags say that they do.
CallMeaning ExplainRing(const TaskSystemCall& call, const ReadMemory& read) {
  constexpr uint64_t kGetEvents = 1;        // IORING_ENTER_GETEVENTS
  constexpr uint64_t kExtended = 1 << 3;    // IORING_ENTER_EXT_ARG
  constexpr uint64_t kRegistered = 1 << 4;  // IORING_ENTER_REGISTERED_RING
  constexpr uint64_t kTimeAt = 16;          // in struct io_uring_getevents_arg
  const uint64_t flags = call.arguments[3];
  if ((flags & kGetEvents) == 0 || (flags & kRegistered) != 0) return Other();
  CallMeaning meaning = OneFile(WaitKind::kRead, call.arguments[0]);
  uint64_t time = 0;
  if ((flags & kExtended) != 0 && read(call.arguments[4] + kTimeAt, &time, sizeof time))
    ReadTimeout(&meaning, time, read);
  return meaning;
}

CallMeaning ExplainSystemVQueue(const TaskSystemCall& call) {
  CallMeaning meaning = Other(call.number == SYS_msgrcv ? WaitKind::kRead : WaitKind::kWrite);
  meaning.system_v = CallMeaning::SystemV{static_cast<int>(call.arguments[0]), true, {}};
  return meaning;
}

// Who waits until one is zero does not wait to take one.
CallMeaning ExplainSemaphores(const TaskSystemCall& call, const ReadMemory& read) {
  constexpr uint64_t kMostOperations = 500;  // SEMOPM
  struct Operation {                         // struct sembuf
    uint16_t number;
    int16_t change;
    int16_t flags;
  };
  CallMeaning meaning = Other();
  if (call.number == SYS_semtimedop) ReadTimeout(&meaning, call.arguments[3], read);
  CallMeaning::SystemV set{static_cast<int>(call.arguments[0]), false, {}};
  for (uint64_t i = 0; i < std::min(call.arguments[2], kMostOperations); ++i) {
    Operation operation = {};
    if (!read(call.arguments[1] + i * sizeof operation, &operation, sizeof operation) ||
        operation.change == 0)
      return meaning;
    if (operation.change < 0) set.semaphores.push_back({operation.number, -operation.change});
  }
  if (set.semaphores.empty()) return meaning;
  meaning.kind = WaitKind::kRead;
  meaning.system_v = std::move(set);
  return meaning;
}

CallMeaning ExplainSleep(const TaskSystemCall& call, const ReadMemory& read) {
  CallMeaning meaning = Other(WaitKind::kTime);
  meaning.has_timeout = true;
  if (call.number == SYS_nanosleep) meaning.timeout = ReadTime(read, call.arguments[0]);
  constexpr uint64_t kAbsolute = 1;  // TIMER_ABSTIME
  if (call.number == SYS_clock_nanosleep && (call.arguments[1] & kAbsolute) == 0)
    meaning.timeout = ReadTime(read, call.arguments[2]);
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
  if (IsPollCall(call.number)) return ExplainPolls(call, read);
  switch (call.number) {
    case SYS_futex:
      return ExplainFutex(call, read);
    case SYS_futex_waitv:
      return ExplainFutexes(call, read);
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      return OneFile(WaitKind::kRead, a[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      return OneFile(WaitKind::kWrite, a[0]);
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return ExplainQueue(call);
    case SYS_io_uring_enter:
      return ExplainRing(call, read);
    case SYS_connect:
      return ExplainConnect(call, read);
    case SYS_accept:
    case SYS_accept4:
      return OneFile(WaitKind::kAccept, a[0]);
    case SYS_flock:
      return OneFile(WaitKind::kFileLock, a[0]);
    case SYS_fcntl:
      return ExplainFcntl(call);
    case SYS_wait4:
      return ExplainWait4(call);
    case SYS_waitid:
      return ExplainWaitid(call);
#if defined(__x86_64__)
    case SYS_vfork:
      return WaitForVforked();
#endif
    case SYS_clone:
    case SYS_clone3:
      return ExplainClone(call, read);
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return ExplainSleep(call, read);
#if defined(__x86_64__)
    case SYS_pause:
      return WaitForHandlers(~uint64_t{0});
#endif
    case SYS_rt_sigsuspend: {
      uint64_t blocked = 0;
      return WaitForHandlers(read(a[0], &blocked, sizeof blocked) ? ~blocked : 0);
    }
    case SYS_rt_sigtimedwait: {
      CallMeaning meaning = Other(WaitKind::kSignal);
      if (!read(a[0], &meaning.signals, sizeof meaning.signals)) meaning.signals = 0;
      ReadTimeout(&meaning, a[2], read);
      return meaning;
    }
    case SYS_semop:
    case SYS_semtimedop:
      return ExplainSemaphores(call, read);
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_sendfile:
      return ExplainTransfer(call);
    case SYS_msgrcv:
    case SYS_msgsnd:
      return ExplainSystemVQueue(call);
    default:
      return Other();
  }
}

}  // namespace hangscope

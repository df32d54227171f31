#include "capture/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace hangscope {
namespace {

constexpr int kPipeBytes = 1 << 20;  // fewer wake-ups than the default 64 KiB

// What /proc/PID/stat tells of a process.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  TimeNs cpu_time = 0;  // its own and that of children it waited for
};

std::optional<ProcessEntry> ReadStat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessEntry entry;
  entry.pid = pid;
  std::string skipped;
  fields >> entry.state >> entry.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;  // pgrp ... cmajflt
  int64_t ticks = 0;
  for (int i = 0; i < 4; ++i) {  // utime stime cutime cstime
    int64_t value = 0;
    fields >> value;
    ticks += value;
  }
  if (!fields) return std::nullopt;
  entry.cpu_time = ticks * (kSecond / sysconf(_SC_CLK_TCK));
  return entry;
}

// All processes that descend from `root`, parents before children.
std::vector<ProcessEntry> Descendants(pid_t root) {
  std::multimap<pid_t, ProcessEntry> by_parent;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return {};
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    if (auto stat = ReadStat(pid)) by_parent.emplace(stat->parent, *stat);
  }
  closedir(proc);
  std::vector<ProcessEntry> found;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [from, to] = by_parent.equal_range(parent);
    for (auto at = from; at != to; ++at) {
      found.push_back(at->second);
      open.push_back(at->first == at->second.pid ? 0 : at->second.pid);
    }
  }
  return found;
}

struct CurrentCall {
  int64_t number = -1;    // -1: it runs, or may not be asked
  uint64_t argument = 0;  // the first
};

// The system call that a thread waits in (Linux proc(5), /proc/PID/syscall).
CurrentCall CallOf(const std::string& folder) {
  std::ifstream file(folder + "/syscall");
  CurrentCall call;
  std::string argument;
  file >> call.number >> argument;
  if (!file) return {};
  call.argument = strtoull(argument.c_str(), nullptr, 16);
  return call;
}

bool IsTimedSleep(const CurrentCall& call) {
  return call.number == SYS_nanosleep || call.number == SYS_clock_nanosleep;
}

bool IsWaitForDescriptors(const CurrentCall& call) {
#ifdef SYS_poll
  if (call.number == SYS_poll || call.number == SYS_select || call.number == SYS_epoll_wait) return true;
#endif
  return call.number == SYS_ppoll || call.number == SYS_pselect6 || call.number == SYS_epoll_pwait;
}

// A read of descriptor 0, or a wait for several while that is a terminal.
bool WaitsForInput(pid_t pid, const CurrentCall& call) {
  if (call.number == SYS_read) return call.argument == STDIN_FILENO;
  if (!IsWaitForDescriptors(call)) return false;
  char target[64] = {};
  const ssize_t length = readlink(fmt::format("/proc/{}/fd/0", pid).c_str(), target, sizeof target - 1);
  return length > 0 && (strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0);
}

std::vector<std::string> ThreadFolders(pid_t pid) {
  std::vector<std::string> folders;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  DIR* stream = opendir(tasks.c_str());
  if (stream == nullptr) return folders;
  while (const dirent* entry = readdir(stream)) {
    if (entry->d_name[0] != '.') folders.push_back(tasks + "/" + entry->d_name);
  }
  closedir(stream);
  return folders;
}

std::string SyscallName(int64_t number) {
  struct Name {
    int64_t number;
    const char* name;
  };
  static constexpr std::array kNames = {
      Name{SYS_futex, "futex"},           Name{SYS_read, "read"},
      Name{SYS_write, "write"},           Name{SYS_ppoll, "poll"},
      Name{SYS_pselect6, "select"},       Name{SYS_epoll_pwait, "epoll_wait"},
      Name{SYS_wait4, "wait4"},           Name{SYS_waitid, "waitid"},
      Name{SYS_recvfrom, "recv"},         Name{SYS_recvmsg, "recvmsg"},
      Name{SYS_accept, "accept"},         Name{SYS_accept4, "accept"},
      Name{SYS_nanosleep, "nanosleep"},   Name{SYS_clock_nanosleep, "clock_nanosleep"},
      Name{SYS_rt_sigsuspend, "sigsuspend"}, Name{SYS_rt_sigtimedwait, "sigwait"},
#ifdef SYS_poll
      Name{SYS_poll, "poll"},             Name{SYS_select, "select"},
      Name{SYS_epoll_wait, "epoll_wait"}, Name{SYS_pause, "pause"},
#endif
  };
  for (const Name& known : kNames) {
    if (known.number == number) return known.name;
  }
  return {};
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "create", "a pipe");
    read_end = ends[0];
    write_end = ends[1];
    (void)fcntl(read_end, F_SETPIPE_SZ, kPipeBytes);  // the default will do, too
    return {};
  }
  void Close() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
    read_end = write_end = -1;
  }
};

class PosixChild final : public ChildProcess {
 public:
  PosixChild(pid_t pid, int out, int err, bool has_terminal)
      : pid_(pid), stdout_(out), stderr_(err), has_terminal_(has_terminal) {}
  ~PosixChild() override { TakeTerminalBack(); }

  pid_t pid() const override { return pid_; }
  int stdout_fd() const override { return stdout_; }
  int stderr_fd() const override { return stderr_; }

  std::optional<ChildExit> Poll() override {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) break;
      if (pid != pid_) continue;  // an orphan of the child
      if (WIFSTOPPED(status)) {
        FollowStop();
        continue;
      }
      exit_ = ChildExit{WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                        WIFSIGNALED(status) ? WTERMSIG(status) : 0};
      TakeTerminalBack();
    }
    return exit_;
  }

  void Signal(int signal_number) override { kill(-pid_, signal_number); }

  void SignalDescendants(int signal_number) override {
    for (const ProcessEntry& process : Descendants(getpid())) kill(process.pid, signal_number);
  }

  ChildActivity Activity() override {
    ChildActivity activity;
    std::map<pid_t, TimeNs> now;
    for (const ProcessEntry& process : Descendants(getpid())) {
      now[process.pid] = process.cpu_time;
      const auto before = cpu_of_.find(process.pid);
      cpu_time_ += std::max<TimeNs>(0, process.cpu_time - (before != cpu_of_.end() ? before->second : 0));
      if (process.state == 'Z') continue;
      ++activity.processes;
      if (process.state == 'T' || process.state == 't') activity.stopped = true;
      const CurrentCall call = CallOf(fmt::format("/proc/{}", process.pid));
      if (WaitsForInput(process.pid, call)) activity.waits_for_input = true;
      if (call.number >= 0 && call.number != SYS_wait4 && call.number != SYS_waitid) {
        activity.waits_in = SyscallName(call.number);
      }
      for (const std::string& thread : ThreadFolders(process.pid)) {
        if (IsTimedSleep(CallOf(thread))) activity.timed_sleep = true;
      }
    }
    cpu_of_ = std::move(now);
    activity.cpu_time = cpu_time_;
    return activity;
  }

 private:
  // Job control: Ctrl-Z stopped the child's group, which has the terminal. Stop
  // too, so that the shell comes back, and let both go on together.
  void FollowStop() {
    if (!has_terminal_) return;
    tcsetpgrp(STDIN_FILENO, getpgrp());
    raise(SIGSTOP);
    tcsetpgrp(STDIN_FILENO, pid_);
    kill(-pid_, SIGCONT);
  }
  void TakeTerminalBack() {
    if (!has_terminal_) return;
    has_terminal_ = false;
    tcsetpgrp(STDIN_FILENO, getpgrp());  // SIGTTOU is blocked (session)
  }

  const pid_t pid_;
  const int stdout_;
  const int stderr_;
  bool has_terminal_;
  std::optional<ChildExit> exit_;
  std::map<pid_t, TimeNs> cpu_of_;  // of each process, as of the last look
  TimeNs cpu_time_ = 0;
};

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Become(const ChildOptions& options, char** arguments, const Pipe& out,
                         const Pipe& err, const Pipe& failure, bool has_terminal) {
  setpgid(0, 0);
  if (has_terminal) tcsetpgrp(STDIN_FILENO, getpid());
  if (options.capture_stdout) dup2(out.write_end, STDOUT_FILENO);
  if (options.capture_stderr) dup2(err.write_end, STDERR_FILENO);
  // hangscope ignores SIGPIPE for itself only.
  signal(SIGPIPE, options.ignores_sigpipe ? SIG_IGN : SIG_DFL);
  sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr);
  execvp(arguments[0], arguments);
  const int error = errno;
  (void)!write(failure.write_end, &error, sizeof error);
  _exit(127);
}

}  // namespace

Status CheckProgram(const std::string& program) {
  std::vector<std::string> candidates = {program};
  if (program.find('/') == std::string::npos) {
    const char* path = getenv("PATH");
    candidates.clear();
    std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      candidates.push_back((folder.empty() ? "." : folder) + "/" + program);
    }
  }
  int error = ENOENT;
  for (const std::string& candidate : candidates) {
    struct stat info {};
    if (stat(candidate.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode) && access(candidate.c_str(), X_OK) == 0) return {};
    error = EACCES;
  }
  return Status::FromErrno(error, "start", program);
}

Result<std::unique_ptr<ChildProcess>> StartChild(const ChildOptions& options) {
  Pipe out;
  Pipe err;
  Pipe failure;
  Status status = failure.Open();
  if (status.ok() && options.capture_stdout) status = out.Open();
  if (status.ok() && options.capture_stderr) status = err.Open();
  if (!status.ok()) return status;

  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<char*> arguments;
  for (const std::string& word : options.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Not in a pipeline, whose other end would lose the terminal.
  const bool has_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 &&
                            tcgetpgrp(STDIN_FILENO) == getpgrp();

  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    out.Close();
    err.Close();
    failure.Close();
    return Status::FromErrno(error, "start", options.command[0]);
  }
  if (pid == 0) Become(options, arguments.data(), out, err, failure, has_terminal);

  setpgid(pid, pid);  // whoever is first
  if (has_terminal) tcsetpgrp(STDIN_FILENO, pid);
  for (Pipe* pipe : {&out, &err, &failure}) {
    if (pipe->write_end >= 0) close(pipe->write_end);
    pipe->write_end = -1;
  }
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(failure.read_end, &error, sizeof error);  // ends when exec closes it
  } while (got < 0 && errno == EINTR);
  failure.Close();
  if (got == sizeof error) {
    waitpid(pid, nullptr, 0);
    if (has_terminal) tcsetpgrp(STDIN_FILENO, getpgrp());
    out.Close();
    err.Close();
    return Status::FromErrno(error, "start", options.command[0]);
  }
  return std::unique_ptr<ChildProcess>(
      std::make_unique<PosixChild>(pid, out.read_end, err.read_end, has_terminal));
}

}  // namespace hangscope

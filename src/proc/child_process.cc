#include "proc/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "proc/freezer.h"
#include "proc/proc_folder.h"
#include "proc/pseudo_terminal.h"
#include "proc/terminal_stops.h"

namespace hangscope {
namespace {

constexpr int kPipeBytes = 1 << 20;  // fewer wake-ups than the default 64 KiB

// A small file of /proc; empty if whom it tells of is gone, which may happen between
// opening and reading it (and makes a stream throw).
std::string ReadProcFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char buffer[4096];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  close(fd);
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : std::string();
}

struct CurrentCall {
  int64_t number = -1;    // -1: it runs, or may not be asked
  uint64_t argument = 0;  // the first
};

// The system call that a thread waits in (Linux proc(5), /proc/PID/syscall).
CurrentCall CallOf(const std::string& folder) {
  std::istringstream file(ReadProcFile(folder + "/syscall"));
  CurrentCall call;
  std::string argument;
  file >> call.number >> argument;
  if (!file) return {};
  call.argument = strtoull(argument.c_str(), nullptr, 16);
  return call;
}

bool IsRunnable(const std::string& folder) {
  const auto stat = ParseTaskStat(ReadProcFile(folder + "/stat"));
  return stat && stat->state == ThreadState::kRunning;
}

bool IsTimedSleep(const CurrentCall& call) {
  return call.number == SYS_nanosleep || call.number == SYS_clock_nanosleep;
}

bool IsWaitForDescriptors(const CurrentCall& call) {
#ifdef SYS_poll
  if (call.number == SYS_poll || call.number == SYS_select || call.number == SYS_epoll_wait)
    return true;
#endif
  return call.number == SYS_ppoll || call.number == SYS_pselect6 || call.number == SYS_epoll_pwait;
}

std::string LinkOfInput(pid_t pid) {
  char target[64] = {};
  const ssize_t length =
      readlink(fmt::format("/proc/{}/fd/0", pid).c_str(), target, sizeof target - 1);
  return length > 0 ? target : "";
}

// A read of descriptor 0, or a wait for several while that is a terminal.
bool ReadsInput(pid_t pid, const CurrentCall& call) {
  if (call.number == SYS_read) return call.argument == STDIN_FILENO;
  if (!IsWaitForDescriptors(call)) return false;
  const std::string target = LinkOfInput(pid);
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

bool HasWriteEnd(pid_t pid, const std::string& pipe) {
  const ProcFolder proc("/proc");
  int error = 0;
  for (const DescriptorLink& link : proc.Descriptors(pid, &error)) {
    if (link.target != pipe) continue;
    const auto info = proc.Read(fmt::format("{}/fdinfo/{}", pid, link.fd));
    if (info && (ParseDescriptorInfo(*info).flags & O_ACCMODE) != O_RDONLY) return true;
  }
  return false;
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
      Name{SYS_futex, "futex"},
      Name{SYS_read, "read"},
      Name{SYS_write, "write"},
      Name{SYS_ppoll, "poll"},
      Name{SYS_pselect6, "select"},
      Name{SYS_epoll_pwait, "epoll_wait"},
      Name{SYS_wait4, "wait4"},
      Name{SYS_waitid, "waitid"},
      Name{SYS_recvfrom, "recv"},
      Name{SYS_recvmsg, "recvmsg"},
      Name{SYS_accept, "accept"},
      Name{SYS_accept4, "accept"},
      Name{SYS_nanosleep, "nanosleep"},
      Name{SYS_clock_nanosleep, "clock_nanosleep"},
      Name{SYS_rt_sigsuspend, "sigsuspend"},
      Name{SYS_rt_sigtimedwait, "sigwait"},
#ifdef SYS_poll
      Name{SYS_poll, "poll"},
      Name{SYS_select, "select"},
      Name{SYS_epoll_wait, "epoll_wait"},
      Name{SYS_pause, "pause"},
#endif
  };
  for (const Name& known : kNames) {
    if (known.number == number) return known.name;
  }
  return {};
}

// Or the two ends of a pseudo terminal.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Status Open(bool pty = false) {
    if (pty) return OpenTerminal();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "create", "a pipe");
    read_end = ends[0];
    write_end = ends[1];
    (void)fcntl(read_end, F_SETPIPE_SZ, kPipeBytes);  // the default will do, too
    return {};
  }
  Status OpenTerminal() {
    PseudoTerminal terminal;
    Status status = terminal.Open();
    read_end = terminal.leader;
    write_end = terminal.follower;
    return status;
  }
  void Close() {
    if (read_end >= 0) close(read_end);
    CloseWriteEnd();
    read_end = -1;
  }
  void CloseWriteEnd() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

// Between this process and its child.
struct Pipes {
  std::vector<Pipe> streams;  // those of the ChildOptions
  Pipe failure;               // why exec failed, an errno
  // ends when the child may become the program; where it is to wait for that
  Pipe hold;

  Status Open(const ChildOptions& options) {
    Status status = failure.Open();
    if (status.ok() && options.before_exec) status = hold.Open();
    for (const CapturedStream& stream : options.streams) {
      if (!status.ok()) break;
      status = streams.emplace_back().Open(stream.pty);
    }
    return status;
  }
  void Close() {
    for (Pipe& pipe : streams) pipe.Close();
    failure.Close();
    hold.Close();
  }
  void CloseWriteEnds() {
    for (Pipe& pipe : streams) pipe.CloseWriteEnd();
    failure.CloseWriteEnd();
  }
};

// Whether the process ignores the signal or has a handler for it.
bool HandlesSignal(pid_t pid, int signal_number) {
  std::istringstream file(ReadProcFile(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigIgn:") && !line.starts_with("SigCgt:")) continue;
    if ((strtoull(line.c_str() + 7, nullptr, 16) >> (signal_number - 1) & 1) != 0) return true;
  }
  return false;
}

bool EndsJobs(int signal_number) { return signal_number == SIGHUP || signal_number == SIGTERM; }

// What Ctrl-Z does to a child that is the first of its session: nothing, since the
// kernel lets SIGTSTP stop nobody who has no shell. Here we are the shell.
void Suspend(pid_t child, int pty) {
  if (tcgetpgrp(pty) == child && !HandlesSignal(child, SIGTSTP)) kill(-child, SIGSTOP);
}

// What /proc/PID/fd says of the other ends of `streams`: a pipe is the same file at both.
std::vector<std::string> LinksOf(const std::vector<int>& streams) {
  std::vector<std::string> links;
  for (const int fd : streams) {
    char name[64] = {};
    if (ptsname_r(fd, name, sizeof name) != 0)
      (void)!readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name, sizeof name - 1);
    links.emplace_back(name);
  }
  return links;
}

// What becomes of our terminal while the child runs.
enum class TerminalUse {
  kNone,    // there is none
  kShared,  // the child is in our group, in the foreground or not
  kRelayed  // the child has its own; what is typed at ours goes there
};

bool HasTerminal() {
  const int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// Stops this process as `signal_number` does, which is blocked, and was perhaps sent to it, too.
// Comes back when it goes on; at once where there is no shell that would let it.
void StopAs(int signal_number) {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, signal_number);
  kill(getpid(), signal_number);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class PosixChild final : public ChildProcess {
 public:
  // `pty`: the child's own terminal, -1 if it has none; owned.
  // `mask_before`: of the signals that this thread had blocked before it started the child.
  PosixChild(pid_t pid, std::vector<int> streams, std::function<bool(pid_t)> is_ours,
             TerminalUse terminal_use, int pty, const sigset_t& mask_before,
             std::unique_ptr<CrashListener> crashes)
      : pid_(pid),
        streams_(std::move(streams)),
        outputs_(LinksOf(streams_)),
        is_ours_(std::move(is_ours)),
        terminal_use_(terminal_use),
        pty_(pty),
        mask_before_(mask_before),
        crashes_(std::move(crashes)) {
    if (terminal_use == TerminalUse::kRelayed) {
      keys_.emplace(STDIN_FILENO, fcntl(pty, F_DUPFD_CLOEXEC, 0),
                    [pid, pty] { Suspend(pid, pty); });
    }
  }
  ~PosixChild() override {
    ReclaimAfterEnd();
    if (exit_) waitpid(pid_, nullptr, WNOHANG);
    if (pty_ >= 0) close(pty_);
  }

  pid_t pid() const override { return pid_; }
  const std::vector<int>& stream_fds() const override { return streams_; }
  void FollowTerminalSize() override {
    if (pty_ < 0 || !hangscope::FollowTerminalSize(pty_)) return;
    // The kernel tells those who have it as their controlling terminal.
    if (terminal_use_ != TerminalUse::kRelayed) Signal(SIGWINCH, SignalSource::kProcess);
  }

  // The child itself is not collected before this object ends: as long as it is a zombie, nobody
  // else gets the number that signals are sent to.
  std::optional<ChildExit> Poll() override {
    siginfo_t info = {};
    while (!exit_ && waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0) {
      const pid_t pid = std::exchange(info.si_pid, 0);
      if (pid == pid_ && info.si_code != CLD_STOPPED) {
        const bool by_itself = info.si_code == CLD_EXITED;
        exit_ = ChildExit{by_itself ? info.si_status : 0, by_itself ? 0 : info.si_status};
        ReclaimAfterEnd();
        break;
      }
      int status = 0;
      if (waitpid(pid, &status, WNOHANG | WUNTRACED) != pid_) continue;  // an orphan of the child
      if (WIFSTOPPED(status)) FollowStop(WSTOPSIG(status));
    }
    return exit_;
  }

  int crash_fd() const override { return crashes_ == nullptr ? -1 : crashes_->fd(); }
  std::vector<ProcessCrash> DrainCrashes() override {
    if (crashes_ == nullptr || !sees_processes_) return {};
    std::vector<ProcessCrash> crashes =
        crashes_->Drain([this](int pid) { return DescendsFromUs(pid); });
    std::erase_if(crashes, [this](const ProcessCrash& crash) {
      return crash.pid == pid_ || (is_ours_ && is_ours_(crash.pid));
    });
    return crashes;
  }

  void Signal(int signal_number, SignalSource source) override {
    const bool shares_group = terminal_use_ == TerminalUse::kShared;
    if (!exit_ && !shares_group) {
      SendToGroup(signal_number);
      return;
    }
    if (!exit_ && !sees_processes_ && source != SignalSource::kTerminal) {
      kill(pid_, signal_number);
      if (EndsJobs(signal_number)) kill(pid_, SIGCONT);
      return;
    }
    for (const TaskStat& process : TheirDescendants()) {
      const bool in_our_group = process.group == getpgrp();
      // The child may have made a group of its own (timeout does): without us, that would be ours.
      const bool is_childs = in_our_group || process.group == pid_;
      if ((exit_ || is_childs) && !(in_our_group && source == SignalSource::kTerminal))
        SendTo(process, signal_number);
    }
  }

  void SignalDescendants(int signal_number) override {
    for (const TaskStat& process : TheirDescendants()) SendTo(process, signal_number);
  }

  ChildActivity Activity() override {
    ChildActivity activity;
    std::map<pid_t, TimeNs> now;
    const std::vector<TaskStat> all = TheirDescendants();
    const ProcFolder proc("/proc");
    Freezer freezer(proc);
    for (const TaskStat& process : all) {
      // The child, once it has ended, hides orphans that end later from Poll.
      if (exit_ && process.state == ThreadState::kZombie && process.parent == getpid() &&
          process.id != pid_)
        waitpid(process.id, nullptr, WNOHANG);
      const auto used = static_cast<TimeNs>(process.cpu_ticks) * (kSecond / sysconf(_SC_CLK_TCK));
      now[process.id] = used;
      const auto before = cpu_of_.find(process.id);
      cpu_time_ += std::max<TimeNs>(0, used - (before != cpu_of_.end() ? before->second : 0));
      if (process.state == ThreadState::kZombie) continue;
      ++activity.processes;
      activity.ids.push_back(process.id);
      if (process.state == ThreadState::kStopped || process.state == ThreadState::kTraced ||
          freezer.Holds(process.id))
        activity.stopped = true;
      const CurrentCall call = CallOf(fmt::format("/proc/{}", process.id));
      if (call.number >= 0 && call.number != SYS_wait4 && call.number != SYS_waitid) {
        activity.waits_in = SyscallName(call.number);
      }
      for (const std::string& thread : ThreadFolders(process.id)) {
        if (IsTimedSleep(CallOf(thread))) activity.timed_sleep = true;
        if (!activity.runnable && IsRunnable(thread)) activity.runnable = true;
      }
      if (exit_ && HoldsOutput(process.id))
        activity.holds_output.push_back(fmt::format("{} (process {})", process.name, process.id));
    }
    cpu_of_ = std::move(now);
    activity.cpu_time = cpu_time_;
    // It is a zombie, at least.
    activity.known = std::any_of(all.begin(), all.end(),
                                 [this](const TaskStat& process) { return process.id == pid_; });
    return activity;
  }

  bool WaitsForInput(const std::vector<int>& processes) override {
    std::set<std::string> inputs;  // that one of them reads
    for (const int pid : processes) {
      if (ReadsInput(pid, CallOf(fmt::format("/proc/{}", pid)))) inputs.insert(LinkOfInput(pid));
    }
    // A pipe that one of them writes is how they work together, and no user's input.
    return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
      return std::none_of(processes.begin(), processes.end(),
                          [&](int pid) { return HasWriteEnd(pid, input); });
    });
  }

 private:
  // All but what hangscope started for itself.
  std::vector<TaskStat> TheirDescendants() const {
    return sees_processes_ ? Descendants(getpid(), is_ours_) : std::vector<TaskStat>();
  }

  // And not from what hangscope started for itself.
  bool DescendsFromUs(pid_t pid) const {
    const ProcFolder proc("/proc");
    while (pid > 1 && pid != getpid()) {
      if (is_ours_ && is_ours_(pid)) return false;
      const auto stat = proc.Stat(pid);
      pid = stat ? stat->parent : 0;
    }
    return pid == getpid();
  }

  bool HoldsOutput(pid_t pid) const {
    int error = 0;
    const std::vector<DescriptorLink> links = ProcFolder("/proc").Descriptors(pid, &error);
    return std::any_of(links.begin(), links.end(), [this](const DescriptorLink& link) {
      return std::find(outputs_.begin(), outputs_.end(), link.target) != outputs_.end();
    });
  }

  // As a shell ends its jobs.
  void SendToGroup(int signal_number) const {
    kill(-pid_, signal_number);
    if (EndsJobs(signal_number)) kill(-pid_, SIGCONT);
  }
  // Its parent may have collected it since it was listed: not to whom the number was given then.
  static void SendTo(const TaskStat& process, int signal_number) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, process.id, 0));
    if (fd < 0) {
      if (errno != ESRCH) kill(process.id, signal_number);  // a sandbox without pidfds
      return;
    }
    const auto now = ProcFolder("/proc").Stat(process.id);
    if (now && (now->parent == process.parent || now->parent == getpid())) {
      syscall(SYS_pidfd_send_signal, fd, signal_number, nullptr, 0);
      if (EndsJobs(signal_number)) syscall(SYS_pidfd_send_signal, fd, SIGCONT, nullptr, 0);
    }
    close(fd);
  }

  // Job control: Ctrl-Z stopped the child's group, which has the terminal. Stop
  // too, so that the shell comes back, and let both go on together. Our whole group
  // stops, as it would have without us: make may be in it. (Not SIGSTOP: where there
  // is no shell to come back, the kernel ignores SIGTSTP.)
  // Of a group that we share with the child the kernel has stopped whoever wanted to be.
  void FollowStop(int signal_number) {
    if (terminal_use_ == TerminalUse::kNone) return;
    if (terminal_use_ == TerminalUse::kShared) {
      if (signal_number == SIGSTOP) return;  // meant for the child alone
      const bool from_terminal = signal_number == SIGTTIN || signal_number == SIGTTOU;
      StopAs(from_terminal ? signal_number : SIGTSTP);
      return;
    }
    keys_->Pause();
    kill(0, SIGTSTP);
    keys_->Resume();
    kill(-pid_, SIGCONT);
  }
  void ReclaimAfterEnd() {
    keys_.reset();
    if (terminal_use_ == TerminalUse::kShared) HeedStops();
    terminal_use_ = TerminalUse::kNone;
  }
  // From now on Ctrl-Z is for us alone. What came earlier and did not stop the child is forgotten.
  void HeedStops() {
    const sigset_t stops = TerminalStops();
    const timespec now = {0, 0};
    while (sigtimedwait(&stops, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  const pid_t pid_;
  const std::vector<int> streams_;
  const std::vector<std::string> outputs_;  // what the links of the child's ends of these say
  const std::function<bool(pid_t)> is_ours_;
  TerminalUse terminal_use_;
  const int pty_;
  const sigset_t mask_before_;
  const std::unique_ptr<CrashListener> crashes_;
  std::optional<KeyRelay> keys_;
  std::optional<ChildExit> exit_;
  const bool sees_processes_ = ProcFolder("/proc").WhyBlind().empty();
  std::map<pid_t, TimeNs> cpu_of_;  // of each process, as of the last look
  TimeNs cpu_time_ = 0;
};

// The same file under a number that no stream of the child will take.
int MoveAway(int fd, const std::vector<CapturedStream>& streams) {
  const auto is_taken = [&streams](int number) {
    return std::any_of(streams.begin(), streams.end(),
                       [number](const CapturedStream& s) { return s.child_fd == number; });
  };
  while (fd >= 0 && (fd <= STDERR_FILENO || is_taken(fd))) fd = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
  return fd;
}

// Until hangscope closes its end, be it by its death.
void WaitUntilReleased(Pipe& hold) {
  if (hold.read_end < 0) return;
  hold.CloseWriteEnd();
  char byte = 0;
  while (read(hold.read_end, &byte, 1) < 0 && errno == EINTR) {
  }
}

bool PlaceStream(const CapturedStream& stream, int write_end, TerminalUse terminal_use) {
  if (dup2(write_end, stream.child_fd) < 0) return false;
  if (!stream.pty) return true;
  dup2(write_end, STDERR_FILENO);
  if (terminal_use != TerminalUse::kRelayed) return true;
  dup2(write_end, STDIN_FILENO);
  ioctl(write_end, TIOCSCTTY, 0);
  return true;
}

// What a service manager tells the process that it started, by its number: sd_watchdog_enabled(3),
// sd_listen_fds(3). The child takes our place.
class ServiceEnvironment {
 public:
  ServiceEnvironment() {
    const std::string mine = fmt::to_string(getpid());
    for (char** entry = environ; *entry != nullptr; ++entry) {
      variables_.push_back(*entry);
      for (OfProcess& of : of_process_) {
        if (of.name + mine == *entry) of.place = variables_.size() - 1;
      }
    }
    variables_.push_back(nullptr);
    for (OfProcess& of : of_process_) {
      if (of.place) of.name.copy(of.text.data(), of.name.size());
    }
  }

  // In the child: only async-signal-safe calls.
  char** Name(pid_t pid) {
    for (OfProcess& of : of_process_) {
      if (!of.place) continue;
      char* const end =
          std::to_chars(&of.text[of.name.size()], of.text.data() + of.text.size() - 1, pid).ptr;
      *end = '\0';
      variables_[*of.place] = of.text.data();
    }
    return variables_.data();
  }

 private:
  struct OfProcess {
    std::string name;
    std::optional<size_t> place = {};  // among the variables; nothing: it is not there, or not ours
    std::array<char, 40> text = {};
  };
  std::array<OfProcess, 2> of_process_ = {{{"WATCHDOG_PID="}, {"LISTEN_PID="}}};
  std::vector<char*> variables_;
};

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Become(const ChildOptions& options, char** arguments,
                         ServiceEnvironment& environment, Pipes& pipes, TerminalUse terminal_use) {
  if (terminal_use == TerminalUse::kRelayed) {
    setsid();  // or it could not have a terminal of its own
  } else if (terminal_use != TerminalUse::kShared) {
    setpgid(0, 0);
  }
  WaitUntilReleased(pipes.hold);
  const int failure = MoveAway(pipes.failure.write_end, options.streams);
  for (Pipe& pipe : pipes.streams) pipe.write_end = MoveAway(pipe.write_end, options.streams);
  bool placed = true;
  for (size_t i = 0; i < pipes.streams.size() && placed; ++i) {
    placed = PlaceStream(options.streams[i], pipes.streams[i].write_end, terminal_use);
  }
  options.signals.Restore();
  if (placed) execvpe(arguments[0], arguments, environment.Name(getpid()));
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

// Why exec failed, or 0 once the child runs the program.
int WaitForExec(const Pipe& failure) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(failure.read_end, &error, sizeof error);  // ends when exec closes it
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

TerminalUse UseOfTerminal(bool pty) {
  // Not in a pipeline, whose other end would lose the terminal.
  const bool ours = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 &&
                    tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (pty && ours) return TerminalUse::kRelayed;
  return HasTerminal() ? TerminalUse::kShared : TerminalUse::kNone;
}

}  // namespace

std::vector<TaskStat> Descendants(pid_t root, const std::function<bool(pid_t)>& leave_out) {
  const ProcFolder proc("/proc");
  std::multimap<pid_t, TaskStat> by_parent;
  for (const int pid : proc.Processes()) {
    if (auto stat = proc.Stat(pid)) by_parent.emplace(stat->parent, std::move(*stat));
  }
  std::vector<TaskStat> found;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [from, to] = by_parent.equal_range(parent);
    for (auto at = from; at != to; ++at) {
      if (leave_out && leave_out(at->second.id)) continue;
      found.push_back(at->second);
      open.push_back(at->first == at->second.id ? 0 : at->second.id);
    }
  }
  return found;
}

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
  Pipes pipes;
  if (Status status = pipes.Open(options); !status.ok()) {
    pipes.Close();
    return status;
  }
  std::vector<int> streams;
  for (const Pipe& pipe : pipes.streams) streams.push_back(pipe.read_end);
  if (options.before_start) options.before_start(streams);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::unique_ptr<CrashListener> crashes = CrashListener::Open();
  std::vector<char*> arguments;
  for (const std::string& word : options.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto pty = std::find_if(options.streams.begin(), options.streams.end(),
                                [](const CapturedStream& s) { return s.pty; });
  const TerminalUse terminal_use = UseOfTerminal(pty != options.streams.end());
  sigset_t mask_before;
  const sigset_t stops = TerminalStops();
  pthread_sigmask(SIG_BLOCK, terminal_use == TerminalUse::kShared ? &stops : nullptr, &mask_before);

  ServiceEnvironment environment;
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
    pipes.Close();
    return Status::FromErrno(error, "start", options.command[0]);
  }
  if (pid == 0) Become(options, arguments.data(), environment, pipes, terminal_use);

  if (terminal_use == TerminalUse::kNone) setpgid(pid, pid);  // whoever is first
  pipes.CloseWriteEnds();
  if (options.before_exec) options.before_exec(pid);
  pipes.hold.Close();
  if (const int error = WaitForExec(pipes.failure); error != 0) {
    waitpid(pid, nullptr, 0);
    pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
    pipes.Close();
    return Status::FromErrno(error, "start", options.command[0]);
  }
  pipes.failure.Close();
  const int terminal =
      pty == options.streams.end()
          ? -1
          : fcntl(streams[static_cast<size_t>(pty - options.streams.begin())], F_DUPFD_CLOEXEC, 0);
  return std::unique_ptr<ChildProcess>(
      std::make_unique<PosixChild>(pid, std::move(streams), options.is_ours, terminal_use, terminal,
                                   mask_before, std::move(crashes)));
}

}  // namespace hangscope

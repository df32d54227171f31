#include "target/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/signal_text.h"
#include "base/utf8.h"

extern char** environ;

namespace hangscope {
namespace {

constexpr size_t kMostSaid = 4096;
constexpr size_t kMostOfLastWords = 200;
constexpr TimeNs kTimeToEnd = kSecond;
constexpr TimeNs kTimeToDie = 100 * kMillisecond;  // for its last words, when its output has ended

// Above the standard descriptors: the child's are made of these.
void MoveUp(int* fd) {
  if (*fd < 0 || *fd > STDERR_FILENO) return;
  const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(*fd);
  *fd = moved;
}

// Two ends each, ours first.
struct Ends {
  int input[2] = {-1, -1};  // a socket: writing to one whose reader is gone need not raise SIGPIPE
  int output[2] = {-1, -1};
  int errors[2] = {-1, -1};

  Status Open() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0)
      return Status::FromErrno(errno, "create", "a socket");
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
      return Status::FromErrno(errno, "create", "a pipe");
    for (int* pair : {input, output, errors}) {
      MoveUp(&pair[0]);
      MoveUp(&pair[1]);
    }
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    return {};
  }
  void CloseTheirs() { Close({&input[1], &output[1], &errors[1]}); }
  void CloseAll() { Close({&input[0], &output[0], &errors[0], &input[1], &output[1], &errors[1]}); }
  static void Close(std::initializer_list<int*> fds) {
    for (int* fd : fds) {
      if (*fd >= 0) close(*fd);
      *fd = -1;
    }
  }
};

// In a group of its own, without our signals' masks and with their default actions. Returns an
// errno.
int Spawn(const std::string& command, const Ends& ends, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends.input[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends.output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends.errors[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string text = command;
  char shell[] = "sh";
  char option[] = "-c";
  char* words[] = {shell, option, text.data(), nullptr};
  const int error = posix_spawn(pid, "/bin/sh", &actions, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<std::unique_ptr<HelperProcess>> HelperProcess::Start(const std::string& command) {
  Ends ends;
  pid_t pid = 0;
  Status status = ends.Open();
  if (status.ok()) {
    if (const int error = Spawn(command, ends, &pid); error != 0)
      status = Status::FromErrno(error, "start", command);
  }
  if (!status.ok()) {
    ends.CloseAll();
    return status;
  }
  ends.CloseTheirs();
  return std::unique_ptr<HelperProcess>(
      new HelperProcess(pid, ends.input[0], ends.output[0], ends.errors[0]));
}

HelperProcess::HelperProcess(pid_t pid, int out, int in, int errors)
    : DescriptorChannel(out, in), pid_(pid) {
  aside_ = errors;
}

HelperProcess::~HelperProcess() {
  CloseOut();
  SystemClock clock;
  (void)HasEnded(clock.Monotonic() + kTimeToEnd);
  KillAndReap();
  if (aside_ >= 0) close(aside_);
}

void HelperProcess::DrainAside() {
  char bytes[4096];
  const ssize_t got = read(aside_, bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    close(aside_);
    aside_ = -1;
    return;
  }
  said_.append(bytes, static_cast<size_t>(got));
  if (said_.size() > kMostSaid) said_.erase(0, said_.size() - kMostSaid);
}

// Left unreaped: its number, and so its group's, stays ours until KillAndReap. Where somebody else
// in this program reaps all children, it is gone.
bool HelperProcess::HasEnded(TimeNs deadline) {
  SystemClock clock;
  while (!reaped_) {
    if (aside_ >= 0) DrainAside();
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      reaped_ = true;
      return true;
    }
    if (info.si_pid != 0) return true;
    if (clock.Monotonic() >= deadline) return false;
    clock.Sleep(kMillisecond);
  }
  return true;
}

void HelperProcess::KillAndReap() {
  if (reaped_) return;
  kill(-pid_, SIGKILL);
  int status = 0;
  pid_t got = 0;
  while ((got = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  if (got == pid_) status_ = status;
  reaped_ = true;
}

std::string HelperProcess::LastWords() {
  SystemClock clock;
  const bool by_itself = HasEnded(clock.Monotonic() + kTimeToDie);
  KillAndReap();
  while (aside_ >= 0) {  // what is still in the pipe
    const size_t before = said_.size();
    DrainAside();
    if (said_.size() == before || said_.size() == kMostSaid) break;
  }
  std::string how;
  if (by_itself && status_ && WIFEXITED(*status_))
    how = fmt::format("it ended with status {}", WEXITSTATUS(*status_));
  if (by_itself && status_ && WIFSIGNALED(*status_))
    how = SignalText(WTERMSIG(*status_)) + " ended it";
  std::string_view last = said_;
  while (!last.empty() && (last.back() == '\n' || last.back() == '\r')) last.remove_suffix(1);
  last.remove_prefix(std::min(last.size(), last.rfind('\n') + 1));  // npos + 1 is 0
  if (!last.empty())
    how +=
        fmt::format("{}it said '{}'", how.empty() ? "" : "; ", Printable(last, kMostOfLastWords));
  return how.empty() ? "" : fmt::format(" ({})", how);
}

}  // namespace hangscope

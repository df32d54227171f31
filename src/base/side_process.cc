#include "base/side_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/resource_limits.h"
#include "base/signal_text.h"

namespace hangscope {
namespace {

constexpr unsigned kAlarmSeconds = 2 + static_cast<unsigned>(SideProcess::kLongestAnswer / kSecond);

constexpr int kLongestEndMs = 1000;

std::mutex of_pids;
std::set<pid_t> pids;
// Those that were killed and are to be collected, with their descriptors.
std::vector<std::pair<pid_t, int>> ended;

// Whether there is nothing more to collect; who collects all children may have done it.
bool IsCollected(int pidfd) {
  siginfo_t end{};
  return waitid(P_PIDFD, static_cast<id_t>(pidfd), &end, WEXITED | WNOHANG) != 0 || end.si_pid != 0;
}

void CollectEnded() {
  const std::lock_guard lock(of_pids);
  std::erase_if(ended, [](const auto& each) {
    if (!IsCollected(each.second)) return false;
    close(each.second);
    pids.erase(each.first);
    return true;
  });
}

bool ReadAll(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(fd, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool WriteMessage(int fd, std::string_view bytes) {
  return WriteAll(fd, BytesOf(uint64_t{bytes.size()})) && WriteAll(fd, bytes);
}

bool ReadMessage(int fd, std::string* bytes) {
  uint64_t size = 0;
  if (!ReadAll(fd, reinterpret_cast<char*>(&size), sizeof size)) return false;
  if (size > SideProcess::kMostAnswerBytes) return false;
  bytes->resize(size);
  return ReadAll(fd, bytes->data(), size);
}

// Standard error stays: sanitizers report there.
void CloseAllBut(std::vector<int> kept) {
  kept.push_back(STDERR_FILENO);
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int fd : kept) {
    if (static_cast<unsigned>(fd) > first)
      (void)close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = std::max(first, static_cast<unsigned>(fd) + 1);
  }
  (void)close_range(first, ~0u, 0);
}

// In a group of its own: no Ctrl-C is meant for it. Not in a session of its own: Linux shares the
// CPUs out among sessions, and beside one whose threads wake each other all the time another one
// may get nothing for half a minute. It ends with its socket, and by an alarm where nobody is left
// to kill it.
[[noreturn]] void Serve(const std::string& name, int socket, std::vector<int> files,
                        const SideProcess::Work& work) {
  (void)setpgid(0, 0);
  prctl(PR_SET_NAME, name.c_str());
  files.push_back(socket);
  CloseAllBut(std::move(files));
  for (const int number : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  LimitAddresses();
  std::string request;
  while (ReadMessage(socket, &request)) {
    alarm(kAlarmSeconds);
    if (!WriteMessage(socket, work(request))) break;
    alarm(0);
  }
  _exit(0);
}

}  // namespace

Result<std::unique_ptr<SideProcess>> SideProcess::Start(const std::string& name,
                                                        const std::vector<int>& files, Work work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::FromErrno(errno, "make", "a socket");
  const pid_t pid = fork();
  if (pid == 0) Serve(name, ends[1], files, work);
  const int pidfd = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const int error = errno;
  close(ends[1]);
  if (pidfd < 0) {  // without a descriptor for it, it ends with its socket
    close(ends[0]);
    return Status::FromErrno(error, "start", name);
  }
  return std::unique_ptr<SideProcess>(new SideProcess(pid, pidfd, ends[0]));
}

SideProcess::SideProcess(pid_t pid, int pidfd, int socket)
    : pid_(pid), pidfd_(pidfd), socket_(socket) {
  const timeval limit = {static_cast<time_t>(kLongestAnswer / kSecond), 0};
  (void)setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const std::lock_guard lock(of_pids);
  pids.insert(pid_);
}

SideProcess::~SideProcess() {
  End();
  close(socket_);
}

// By its descriptor: who collects all children of this process may have collected it before. To end
// it needs a CPU, which a busy machine may not give it for long: it is collected with a later one
// then, or by init.
void SideProcess::End() {
  if (pid_ <= 0) return;
  (void)syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0);
  pollfd end = {pidfd_, POLLIN, 0};
  (void)poll(&end, 1, kLongestEndMs);
  {
    const std::lock_guard lock(of_pids);
    ended.emplace_back(std::exchange(pid_, 0), std::exchange(pidfd_, -1));
  }
  CollectEnded();
}

Status SideProcess::WhatBefell() {
  pollfd ends = {pidfd_, POLLIN, 0};
  if (poll(&ends, 1, 100) == 0)
    return Status::Io(fmt::format("it took longer than {} s", kLongestAnswer / kSecond));
  siginfo_t end{};
  const bool known = waitid(P_PIDFD, static_cast<id_t>(pidfd_), &end, WEXITED | WNOWAIT) == 0;
  if (!known || end.si_code == CLD_EXITED) return Status::Io("its reader ended");
  return Status::Io("its reader was ended by " + SignalText(end.si_status));
}

Result<std::string> SideProcess::Ask(std::string_view request) {
  if (!status_.ok()) return status_;
  std::string answer;
  if (WriteMessage(socket_, request) && ReadMessage(socket_, &answer)) return answer;
  status_ = WhatBefell();
  End();
  return status_;
}

bool SideProcess::Is(pid_t pid) {
  const std::lock_guard lock(of_pids);
  return pids.count(pid) != 0;
}

Result<std::string> AskSideProcess(const std::string& name, const std::vector<int>& files,
                                   const std::function<std::string()>& work) {
  auto side = SideProcess::Start(name, files, [&](std::string_view) { return work(); });
  if (!side.ok()) return side.status();
  return (*side)->Ask({});
}

}  // namespace hangscope

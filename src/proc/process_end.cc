#include "proc/process_end.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "proc/proc_folder.h"

namespace hangscope {
namespace {

// From Linux's pidfd.h, which Debian 12's is too old for: what PIDFD_GET_INFO is asked for and
// answers.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup;
  uint32_t ids[11];  // pid, tgid, ppid, and users and groups
  int32_t exit_code;
};
constexpr uint64_t kInfoExit = 1u << 3;
static_assert(sizeof(PidfdInfo) == 64, "the first version of it");

std::optional<int> CodeFromPidfd(int fd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (ioctl(fd, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & kInfoExit) == 0)
    return std::nullopt;
  return info.exit_code;
}

// Of a process that nobody has waited for yet.
std::optional<int> CodeFromStat(int pid) {
  const auto stat = ProcFolder("/proc").Stat(pid);
  return stat && stat->state == ThreadState::kZombie ? std::optional(stat->wait_status)
                                                     : std::nullopt;
}

}  // namespace

std::unique_ptr<ProcessEnd> ProcessEnd::Watch(int pid) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // close-on-exec by itself
  if (fd < 0) return nullptr;
  return std::unique_ptr<ProcessEnd>(new ProcessEnd(pid, fd));
}

ProcessEnd::~ProcessEnd() { close(fd_); }

bool ProcessEnd::HasEnded() {
  pollfd readable{fd_, POLLIN, 0};
  return poll(&readable, 1, 0) == 1;
}

ProcessEnd::How ProcessEnd::how() {
  std::optional<int> code = CodeFromPidfd(fd_);
  if (!code) code = CodeFromStat(pid_);
  if (!code) return {};
  if (WIFSIGNALED(*code)) return {true, 0, WTERMSIG(*code)};
  return {true, WEXITSTATUS(*code), 0};
}

Status ProcessEnd::Signal(int number) {
  if (syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0) == 0) return {};
  return Status::Io(
      fmt::format("cannot send signal {} to process {}: {}", number, pid_, ErrorText(errno)));
}

}  // namespace hangscope

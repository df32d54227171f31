#include "proc/pseudo_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace hangscope {
namespace {

// Nothing tells a process that it came to the foreground.
constexpr int kForegroundPollMs = 100;
constexpr winsize kUsualSize = {24, 80, 0, 0};

bool OwnTerminalSize(winsize* size) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (ioctl(fd, TIOCGWINSZ, size) == 0) return true;
  }
  return false;
}

void SetModesOf(int follower) {
  termios modes{};
  if (tcgetattr(STDIN_FILENO, &modes) != 0 && tcgetattr(follower, &modes) != 0) return;
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  tcsetattr(follower, TCSANOW, &modes);
}

}  // namespace

Status PseudoTerminal::Open() {
  leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64] = {};
  if (leader < 0 || grantpt(leader) != 0 || unlockpt(leader) != 0 ||
      ptsname_r(leader, name, sizeof name) != 0) {
    return Status::FromErrno(errno, "create", "a pseudo terminal");
  }
  follower = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (follower < 0) return Status::FromErrno(errno, "open", name);
  SetModesOf(follower);
  if (!FollowTerminalSize(leader)) ioctl(leader, TIOCSWINSZ, &kUsualSize);
  return {};
}

bool FollowTerminalSize(int leader) {
  winsize size{};
  return OwnTerminalSize(&size) && ioctl(leader, TIOCSWINSZ, &size) == 0;
}

KeyRelay::KeyRelay(int terminal, int leader, std::function<void()> suspend)
    : terminal_(terminal),
      leader_(leader),
      suspend_(std::move(suspend)),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  tcgetattr(terminal_, &modes_);
  ClaimIfOurs();  // before anything that the child prints can be seen and answered
  thread_ = std::thread([this] { Run(); });
}

KeyRelay::~KeyRelay() {
  Pause();
  const uint64_t one = 1;
  (void)!write(stop_event_, &one, sizeof one);
  thread_.join();
  close(stop_event_);
  close(leader_);
}

void KeyRelay::Pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
  if (raw_ && tcgetpgrp(terminal_) == getpgrp()) SetModes(false);
  raw_ = false;
}

void KeyRelay::Resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
}

// Keys come one by one and unprocessed; output is processed as before.
void KeyRelay::SetModes(bool raw) {
  termios modes = modes_;
  if (raw) {
    modes.c_iflag &=
        ~static_cast<tcflag_t>(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
  }
  tcsetattr(terminal_, TCSANOW, &modes);
}

bool KeyRelay::ClaimIfOurs() {
  const std::lock_guard lock(mutex_);
  const bool ours = !paused_ && tcgetpgrp(terminal_) == getpgrp();
  if (ours && !raw_) SetModes(true);
  raw_ = ours;
  return ours;
}

void KeyRelay::Run() {
  // Should the terminal be lost between look and read: an error instead of a stop.
  sigset_t background_read;
  sigemptyset(&background_read);
  sigaddset(&background_read, SIGTTIN);
  pthread_sigmask(SIG_BLOCK, &background_read, nullptr);
  for (;;) {
    const bool ours = ClaimIfOurs();
    pollfd events[2] = {{stop_event_, POLLIN, 0}, {ours ? terminal_ : -1, POLLIN, 0}};
    poll(events, 2, kForegroundPollMs);
    if (events[0].revents != 0) return;
    if (events[1].revents != 0 && !Forward()) return;
  }
}

// False at the end: the terminal hung up, the child's is gone, or the relay is to stop.
bool KeyRelay::Forward() {
  std::array<char, 1024> keys;
  ssize_t left = read(terminal_, keys.data(), keys.size());
  // Not ours since we looked, or hung up: then it has no foreground.
  if (left < 0 && errno == EIO) return tcgetpgrp(terminal_) > 0;
  if (left < 0) return errno == EINTR || errno == EAGAIN;
  if (left == 0) return false;
  const bool suspends = HasSuspendKey({keys.data(), static_cast<size_t>(left)});
  // A child that does not read fills its terminal's buffer.
  for (const char* at = keys.data(); left > 0;) {
    pollfd events[2] = {{stop_event_, POLLIN, 0}, {leader_, POLLOUT, 0}};
    poll(events, 2, -1);
    if (events[0].revents != 0) return false;
    const ssize_t written = write(leader_, at, static_cast<size_t>(left));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) at += written, left -= written;
  }
  if (suspends) suspend_();
  return true;
}

// The modes of the leader are those that the child set for its end.
bool KeyRelay::HasSuspendKey(std::string_view keys) const {
  termios modes{};
  if (tcgetattr(leader_, &modes) != 0 || (modes.c_lflag & ISIG) == 0) return false;
  return keys.find(static_cast<char>(modes.c_cc[VSUSP])) != std::string_view::npos;
}

}  // namespace hangscope

#include "apart.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "options.h"

namespace hangscope::cli {
namespace {

// The first byte on the pipe: a report that is clean or bad, or the code of a Status; then the text.
constexpr char kClean = 'c';
constexpr char kBad = 'b';

std::string Packed(const Result<WhyReport>& report) {
  if (report.ok()) return (report->is_bad ? kBad : kClean) + report->text;
  return static_cast<char>('0' + static_cast<int>(report.status().code())) + report.status().message();
}

Result<WhyReport> Unpacked(const std::string& bytes) {
  if (bytes.empty()) return Status::Io("the process that looks was killed; what it looked at may have been, too");
  const std::string text = bytes.substr(1);
  if (bytes[0] == kClean || bytes[0] == kBad) return WhyReport{text, bytes[0] == kBad};
  switch (static_cast<Status::Code>(bytes[0] - '0')) {
    case Status::Code::kUsage: return Status::Usage(text);
    case Status::Code::kCorrupt: return Status::Corrupt(text);
    case Status::Code::kNotFound: return Status::NotFound(text);
    case Status::Code::kBusy: return Status::Busy(text);
    default: return Status::Io(text);
  }
}

// Signals of the terminal go to its process group, which this leaves; what is sent to it by name waits.
void Seclude() {
  setpgid(0, 0);
  sigset_t deferred;
  sigemptyset(&deferred);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGALRM, SIGUSR1, SIGUSR2}) sigaddset(&deferred, signal);
  sigprocmask(SIG_BLOCK, &deferred, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::string ReadAll(int fd) {
  std::string bytes;
  char piece[1 << 16];
  for (;;) {
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(piece, static_cast<size_t>(got));
  }
}

}  // namespace

Result<WhyReport> AskApart(const std::function<Result<WhyReport>()>& ask) {
  int ends[2];
  if (pipe(ends) != 0) return Status::FromErrno(errno, "open a pipe to", "the process that looks");
  const pid_t child = fork();
  if (child < 0) return Status::FromErrno(errno, "start", "the process that looks");
  if (child == 0) {
    Seclude();
    close(ends[0]);
    (void)WriteAll(ends[1], Packed(ask()));
    _exit(0);
  }
  close(ends[1]);
  const std::string bytes = ReadAll(ends[0]);
  close(ends[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return Unpacked(bytes);
}

}  // namespace hangscope::cli

#include "piped_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/clock.h"
#include "base/units.h"
#include "options.h"

namespace hangscope::cli {
namespace {

constexpr TimeNs kNoWordFor = kSecond;
constexpr TimeNs kBetweenLines = 500 * kMillisecond;
constexpr TimeNs kWriterMayTake = 10 * kSecond;  // to end, after Ctrl-C
constexpr char kClearLine[] = "\r\033[K";

volatile sig_atomic_t interrupts = 0;

// Ctrl-C is for the writer, too, which has its end to write: so it does not end this process.
class InterruptCounter {
 public:
  InterruptCounter() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupts = interrupts + 1; };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptCounter() { sigaction(SIGINT, &before_, nullptr); }
  InterruptCounter(const InterruptCounter&) = delete;
  InterruptCounter& operator=(const InterruptCounter&) = delete;

 private:
  struct sigaction before_ {};
};

// Whether to go on reading; shows how much there is.
class PipeProgress {
 public:
  explicit PipeProgress(std::string name)
      : name_(std::move(name)), start_(clock_.Monotonic()), wanted_(isatty(STDERR_FILENO) != 0) {}
  ~PipeProgress() {
    if (shown_ > 0) WriteAll(STDERR_FILENO, kClearLine);
  }
  PipeProgress(const PipeProgress&) = delete;
  PipeProgress& operator=(const PipeProgress&) = delete;

  bool GoOn(uint64_t bytes) {
    const TimeNs now = clock_.Monotonic();
    if (interrupts > 0 && interrupted_ == 0) interrupted_ = now;
    if (interrupts > 1 || (interrupted_ > 0 && now - interrupted_ > kWriterMayTake)) return false;
    if (!wanted_ || now - start_ < kNoWordFor || now - shown_ < kBetweenLines) return true;
    shown_ = now;
    WriteAll(STDERR_FILENO,
             fmt::format("{}reading {}: {} so far; {}", kClearLine, name_, FormatSize(bytes),
                         interrupted_ > 0 ? "waiting for its end, Ctrl-C ends it now"
                                          : "its end or Ctrl-C ends it"));
    return true;
  }

 private:
  SystemClock clock_;
  const std::string name_;
  const TimeNs start_;
  const bool wanted_;
  TimeNs shown_ = 0;
  TimeNs interrupted_ = 0;
};

bool IsPipe(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool NamesPipe(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

// How to get at what is in it, on one line.
Status Compressed(const std::string& target, const std::string& program) {
  const bool is_pipe = target == "-" || NamesPipe(target);
  return Status::Usage(
      fmt::format("'{}' is compressed with {}, which hangscope does not read: {}", target, program,
                  is_pipe ? fmt::format("put '{} -d' before it", program)
                          : fmt::format("'{} -dc {} | hangscope why -' does", program, target)));
}

}  // namespace

PipedInput::~PipedInput() {
  if (owns_) close(fd_);
}

Status PipedInput::ReadPipe(int fd, const std::string& name) {
  const InterruptCounter counter;
  PipeProgress progress(name);
  const char* folder = getenv("TMPDIR");
  SpoolOptions options;
  options.name = name;
  if (folder != nullptr && *folder != '\0') options.folder = folder;
  options.go_on = [&](uint64_t bytes) { return progress.GoOn(bytes); };
  Status status;
  fd_ = SpoolPipe(fd, options, &status);
  owns_ = fd_ >= 0;
  return status;
}

Status PipedInput::Read(const std::string& target) {
  if (target == "-" && isatty(STDIN_FILENO) != 0)
    return Status::Usage(
        "'-' is standard input, which is a terminal; for example "
        "'perf record -o - COMMAND | hangscope why -'");
  const bool is_input = target == "-";
  if (is_input && !IsPipe(STDIN_FILENO)) {
    fd_ = STDIN_FILENO;
  } else if (is_input || NamesPipe(target)) {
    const int fd = is_input ? STDIN_FILENO : open(target.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Status::FromErrno(errno, "open", target);
    const Status status = ReadPipe(fd, is_input ? "standard input" : target);
    if (!is_input) close(fd);
    if (!status.ok()) return status;
  }
  target_ = target;
  if (fd_ >= 0) with_it_ = std::make_unique<FilesWithOneMore>(PosixFileSystem(), target, fd_);
  const std::string program = CompressorOf(files(), target);
  return program.empty() ? Status() : Compressed(target, program);
}

Status PipedInput::WhyNot(const Status& status) const {
  if (with_it_ == nullptr || status.code() != Status::Code::kNotFound) return status;
  return Status::NotFound(fmt::format(
      "what came through '{}' is no perf.data, or has no records; give anything else as a file",
      target_));
}

}  // namespace hangscope::cli

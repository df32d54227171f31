#include "session/drain.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

#include "decode/trace_line.h"

namespace hangscope {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;
constexpr size_t kLongestHiddenLine = 4096;

void AddOne(int event) {
  const uint64_t one = 1;
  (void)!write(event, &one, sizeof one);
}

}  // namespace

Drain::Drain(int input_fd, bool owns_input, RingStore* ring, Clock* clock,
             const PassthroughOptions& out, int done_event)
    : input_(input_fd), owns_input_(owns_input), ring_(ring), clock_(clock), out_(out),
      done_event_(done_event),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // A pipe that polls as writable has room for one page at least (pipe(7)).
  struct stat info {};
  const bool pipe = out.fd >= 0 && fstat(out.fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
  piece_bytes_ = pipe ? PIPE_BUF : kBufferBytes;
}

Drain::~Drain() {
  Stop();
  if (thread_.joinable()) thread_.join();
  if (owns_input_) close(input_);
  close(stop_event_);
}

void Drain::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Drain::Stop() { AddOne(stop_event_); }

// False when there is nothing to read and the drain was told to stop.
bool Drain::WaitForInput() {
  pollfd events[2] = {{input_, POLLIN, 0}, {stop_event_, POLLIN, 0}};
  for (;;) {
    if (poll(events, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return true;  // let read tell
    }
    if (events[0].revents != 0) return true;
    if (events[1].revents != 0) return false;
  }
}

void Drain::Run() {
  std::vector<char> buffer(kBufferBytes);
  while (WaitForInput()) {
    const ssize_t got = read(input_, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    const TimeNs now = clock_->Monotonic();
    ring_->Append(bytes, now);
    total_.fetch_add(bytes.size(), std::memory_order_relaxed);
    last_byte_.store(now, std::memory_order_relaxed);
    if (out_.fd >= 0) PassOn(bytes);
  }
  if (!partial_line_.empty()) WriteOut(partial_line_);
  ring_->Finish();
  ended_.store(true, std::memory_order_release);
  AddOne(done_event_);
}

void Drain::PassOn(std::string_view bytes) {
  if (passthrough_closed_.load(std::memory_order_relaxed)) return;
  if (out_.hide_traces) {
    PassOnWithoutTraces(bytes);
  } else {
    WriteOut(bytes);
  }
}

// A terminal shows what the program says, not a hundred megabytes a second of
// where it is. A line that is still open is shown only once it cannot be a trace's.
void Drain::PassOnWithoutTraces(std::string_view bytes) {
  std::string shown;
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const bool whole = newline != std::string_view::npos;
    partial_line_.append(bytes.substr(0, whole ? newline : bytes.size()));
    bytes.remove_prefix(whole ? newline + 1 : bytes.size());
    const TraceLine line = ParseTraceLine(partial_line_);
    const bool trace = line.kind != TraceLine::Kind::kOther;
    if (whole) {
      if (trace) {
        hid_trace_.store(true, std::memory_order_relaxed);
      } else {
        shown += partial_line_ + '\n';
      }
      partial_line_.clear();
      continue;
    }
    // A prompt without a newline must appear; the beginning of a trace line must
    // not: those begin with a digit, a blank or one of a few words.
    const char first = partial_line_[0];
    const bool may_be_trace = partial_line_.size() < kLongestHiddenLine &&
                              (std::string_view("TcSLPI- 0123456789").find(first) != std::string_view::npos) &&
                              hid_trace_.load(std::memory_order_relaxed);
    if (!may_be_trace) {
      shown += partial_line_;
      partial_line_.clear();
    }
  }
  if (!shown.empty()) WriteOut(shown);
}

// False when the passthrough is over: told to stop while the reader does not read.
bool Drain::WaitForReader() {
  pollfd events[2] = {{out_.fd, POLLOUT, 0}, {stop_event_, POLLIN, 0}};
  if (poll(events, 1, 0) == 1) return true;
  blocked_.store(true, std::memory_order_relaxed);
  for (;;) {
    const int ready = poll(events, 2, -1);
    if (ready < 0 && errno == EINTR) continue;
    blocked_.store(false, std::memory_order_relaxed);
    return ready < 0 || events[0].revents != 0;
  }
}

void Drain::WriteOut(std::string_view bytes) {
  constexpr std::string_view kClearLine = "\r\033[K";
  if (out_.live_line != nullptr && out_.live_line->exchange(false)) {
    (void)!write(out_.fd, kClearLine.data(), kClearLine.size());
  }
  while (!bytes.empty() && !passthrough_closed_.load(std::memory_order_relaxed)) {
    if (!WaitForReader()) {
      passthrough_closed_.store(true, std::memory_order_relaxed);
      return;
    }
    const ssize_t written = write(out_.fd, bytes.data(), std::min(bytes.size(), piece_bytes_));
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      passthrough_closed_.store(true, std::memory_order_relaxed);  // EPIPE, a full disk, ...
    }
  }
}

}  // namespace hangscope

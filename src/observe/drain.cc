#include "observe/drain.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/thread_name.h"
#include "observe/narrator.h"
#include "stream/trace_line.h"

namespace hangscope {
namespace {

constexpr size_t kPassBytes = 64 * 1024;
constexpr size_t kLongestHiddenLine = 4096;
constexpr TimeNs kForever = 3600 * kSecond;
// The most that a stream waits for the disk, once for each quarter of its memory:
// a disk that takes bytes at all is given the time for it, and no producer of less
// than a gigabyte a second notices.
constexpr TimeNs kLongestWait = 5 * kMillisecond;
constexpr TimeNs kMostPatience = 5 * kMillisecond;
constexpr double kPressed = 0.5;                   // of the memory waits: no time for compression
constexpr TimeNs kDiskPause = 100 * kMillisecond;  // before a disk that refuses is asked again
constexpr int kLastTries = 10;                     // once the stream has ended
// After a small read: bytes gather in the pipe, and the producer is woken less often.
constexpr TimeNs kGather = kMillisecond;
constexpr int kRoomyPipe = 1 << 20;

void AddOne(int event) {
  const uint64_t one = 1;
  (void)!write(event, &one, sizeof one);
}

}  // namespace

Drain::Drain(int input_fd, bool owns_input, RingStore* ring, std::unique_ptr<StagingBuffer> stage,
             Clock* clock, const PassthroughOptions& out, bool lossless, int done_event)
    : input_(input_fd),
      owns_input_(owns_input),
      ring_(ring),
      stage_(std::move(stage)),
      clock_(clock),
      out_(out),
      lossless_(lossless),
      done_event_(done_event),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // A pipe that polls as writable has room for one page at least (pipe(7)).
  struct stat info {};
  const bool pipe =
      out.fd >= 0 && fstat(out.fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
  piece_bytes_ = pipe ? PIPE_BUF : kPassBytes;
  if (const int capacity = fcntl(input_fd, F_GETPIPE_SZ); capacity >= kRoomyPipe)
    little_bytes_ = capacity / 8;
}

Drain::~Drain() {
  Stop();
  for (std::thread* thread : {&reader_, &writer_, &passer_}) {
    if (thread->joinable()) thread->join();
  }
  if (owns_input_) close(input_);
  close(stop_event_);
}

void Drain::Start() {
  // A stream that is taken over has a past. The threads that begin below see the store.
  total_.store(stage_->head(), std::memory_order_relaxed);
  if (out_.fd >= 0) passer_ = std::thread([this] { PassAllOn(); });
  reader_ = std::thread([this] { Read(); });
  writer_ = std::thread([this] { WriteRing(); });  // joins the passer, so it is the last
}

void Drain::Stop() { AddOne(stop_event_); }

void Drain::CatchUp(TimeNs longest) const {
  const TimeNs deadline = clock_->Monotonic() + longest;
  int in_pipe = 0;
  const bool is_pipe = !ended() && fcntl(input_, F_GETPIPE_SZ) > 0;
  if (!is_pipe || ioctl(input_, FIONREAD, &in_pipe) != 0) in_pipe = 0;
  const uint64_t target = stage_->head() + static_cast<uint64_t>(in_pipe);
  while (ring_->head() < target && !ended() && !DiskFails() && clock_->Monotonic() < deadline) {
    clock_->Sleep(kMillisecond / 4);
  }
}

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

void Drain::Read() {
  NameThread("hs-read");
  while (WaitForInput() && MakeRoom()) {
    const TimeNs now = clock_->Monotonic();
    const ssize_t got = stage_->Fill(input_, now);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && (errno == ENOMEM || errno == ENOSPC)) {
      // No memory for the stage to grow: go on in what it has.
      stage_->DropOldest();
      clock_->Sleep(kGather);
      continue;
    }
    if (got <= 0) break;
    total_.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    last_byte_.store(now, std::memory_order_relaxed);
    KeepClose(got);
    Pause(got, now);
  }
  // if anybody waits still, it is not for the program
  blocked_.store(true, std::memory_order_relaxed);
  stage_->Close();
}

// False if there will never be room: nobody is left who would make it.
bool Drain::MakeRoom() {
  StagingBuffer::Room room = stage_->WaitForRoom(DiskFails() ? 0 : kLongestWait);
  if (room == StagingBuffer::Room::kLater && lossless_ && !DiskFails()) {
    blocked_.store(true, std::memory_order_relaxed);
    pollfd stop = {stop_event_, POLLIN, 0};
    do {
      room = stage_->WaitForRoom(kDiskPause);
    } while (room == StagingBuffer::Room::kLater && !DiskFails() && poll(&stop, 1, 0) == 0);
    blocked_.store(false, std::memory_order_relaxed);
  }
  if (room == StagingBuffer::Room::kLater) stage_->DropOldest();
  return room != StagingBuffer::Room::kNever;
}

// A reader that runs ahead as far as the memory goes makes every copy of a byte slow:
// none is in the processor's cache any more. So it lets the writer catch up, as long
// as that costs a nanosecond a byte, which no producer of less than a gigabyte a second
// notices. A disk slower than the stream uses the patience up; then the memory fills.
void Drain::KeepClose(ssize_t got) {
  patience_ = std::min<TimeNs>(patience_ + got, kMostPatience);
  const TimeNs before = clock_->Monotonic();
  if (patience_ > 0) stage_->LetRingCatchUp(patience_);
  patience_ -= clock_->Monotonic() - before;
}

// A producer that writes a line at a time would wake us for each.
void Drain::Pause(ssize_t got, TimeNs now) {
  const bool busy = now - previous_read_ < 2 * kGather;
  previous_read_ = now;
  if (!busy || static_cast<size_t>(got) >= little_bytes_) return;
  clock_->Sleep(kGather);
}

void Drain::WriteRing() {
  NameThread("hs-write");
  constexpr auto kMe = StagingBuffer::Consumer::kRing;
  int tries_left = kLastTries;
  while (!stage_->ended(kMe)) {
    const auto piece = stage_->Next(kMe, kForever);
    if (!piece) continue;
    const uint64_t head = ring_->head();
    if (piece->offset > head)
      ring_->Lose(piece->offset - head, DiskFails() ? ring_->last_error() : 0);
    ring_->SetPressed(stage_->backlog() > kPressed);
    const size_t taken = ring_->Append({piece->data, piece->size}, piece->time);
    stage_->Advance(kMe, piece->offset + taken);
    disk_fails_.store(taken == 0, std::memory_order_relaxed);
    if (taken != 0) continue;
    if (stage_->WaitForEnd(kDiskPause) && --tries_left == 0) GiveUpOnDisk();
  }
  ring_->Finish();
  if (passer_.joinable()) passer_.join();
  ended_.store(true, std::memory_order_release);
  AddOne(done_event_);
}

// The stream has ended and the disk refuses still: what waits in memory is lost.
void Drain::GiveUpOnDisk() {
  const uint64_t end = stage_->head();
  ring_->Lose(end - ring_->head(), ring_->last_error());
  stage_->Advance(StagingBuffer::Consumer::kRing, end);
}

uint64_t Drain::not_passed_on() const {
  const uint64_t gone_at = gone_at_.load(std::memory_order_relaxed);
  const uint64_t total = total_bytes();
  return not_passed_on_.load(std::memory_order_relaxed) + (gone_at < total ? total - gone_at : 0);
}

void Drain::PassAllOn() {
  NameThread("hs-pass");
  constexpr auto kMe = StagingBuffer::Consumer::kPassthrough;
  std::string piece;
  uint64_t at = 0;
  bool first = true;
  while (!passthrough_closed_ && !stage_->ended(kMe)) {
    const auto next = stage_->CopyNext(kMe, kForever, kPassBytes, &piece);
    if (!next) continue;
    if (!first && next->offset > at)
      not_passed_on_.fetch_add(next->offset - at, std::memory_order_relaxed);
    first = false;
    PassOn(piece);
    at = next->offset + piece.size();
    stage_->Advance(kMe, at);
  }
  if (!partial_line_.empty() && !passthrough_closed_) WriteOut(partial_line_);
  if (passthrough_closed_) gone_at_.store(at, std::memory_order_relaxed);  // nobody reads the rest
  stage_->Leave(kMe);
}

void Drain::PassOn(std::string_view bytes) {
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
        hid_trace_ = true;
      } else {
        shown += partial_line_ + '\n';
      }
      partial_line_.clear();
      continue;
    }
    // A prompt without a newline must appear; the beginning of a trace line must
    // not: those begin with a digit, a blank or one of a few words.
    const char first = partial_line_[0];
    const bool may_be_trace =
        partial_line_.size() < kLongestHiddenLine &&
        (std::string_view("TcSLPI- 0123456789").find(first) != std::string_view::npos) &&
        hid_trace_;
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
  for (;;) {
    const int ready = poll(events, 2, -1);
    if (ready < 0 && errno == EINTR) continue;
    return ready < 0 || events[0].revents != 0;
  }
}

void Drain::WriteOut(std::string_view bytes) {
  if (out_.live_line != nullptr && out_.live_line->exchange(false, std::memory_order_acquire)) {
    (void)!write(out_.fd, kClearLine.data(), kClearLine.size());
  }
  while (!bytes.empty() && !passthrough_closed_) {
    if (!WaitForReader()) {
      passthrough_closed_ = true;
      return;
    }
    const ssize_t written = write(out_.fd, bytes.data(), std::min(bytes.size(), piece_bytes_));
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      passthrough_closed_ = true;  // EPIPE, a full disk, ...
      passthrough_error_.store(errno, std::memory_order_relaxed);
      not_passed_on_.fetch_add(bytes.size(), std::memory_order_relaxed);
    }
  }
}

}  // namespace hangscope

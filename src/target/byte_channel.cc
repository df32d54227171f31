#include "target/byte_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace hangscope {
namespace {

constexpr size_t kMostAtOnce = 64u << 10;

// How long poll may wait, rounded up; 0: the deadline is here.
int MillisecondsUntil(TimeNs deadline) {
  SystemClock clock;
  const TimeNs left = deadline - clock.Monotonic();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<TimeNs>(left / kMillisecond + 1, INT_MAX));
}

}  // namespace

DescriptorChannel::DescriptorChannel(int out, int in) : out_(out), in_(in) {}

DescriptorChannel::~DescriptorChannel() {
  CloseOut();
  close(in_);
}

void DescriptorChannel::CloseOut() {
  if (out_ >= 0 && out_ != in_) close(out_);
  out_ = -1;
}

bool DescriptorChannel::Await(int fd, short events, TimeNs deadline) {
  for (;;) {
    pollfd waits[2] = {{fd, events, 0}, {aside_, POLLIN, 0}};
    const int left = MillisecondsUntil(deadline);
    const int ready = poll(waits, aside_ >= 0 ? 2 : 1, left);
    if (ready < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (ready > 0 && waits[1].revents != 0) DrainAside();
    // an error, too: the call that follows finds out
    if (ready > 0 && waits[0].revents != 0) return true;
    if (left == 0) return false;
  }
}

ByteChannel::Outcome DescriptorChannel::Send(std::string_view bytes, TimeNs deadline) {
  while (!bytes.empty()) {
    if (out_ < 0) return Outcome::kClosed;
    const ssize_t sent = send(out_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (sent < 0 && errno != EINTR && errno != EAGAIN) {
      return Outcome::kClosed;
    } else if (!Await(out_, POLLOUT, deadline)) {
      return Outcome::kLate;
    }
  }
  return Outcome::kDone;
}

ByteChannel::Outcome DescriptorChannel::Receive(std::string* bytes, TimeNs deadline) {
  for (;;) {
    if (!Await(in_, POLLIN, deadline)) return Outcome::kLate;
    bytes->resize(kMostAtOnce);
    const ssize_t got = read(in_, bytes->data(), bytes->size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Outcome::kClosed;
    bytes->resize(static_cast<size_t>(got));
    return Outcome::kDone;
  }
}

}  // namespace hangscope

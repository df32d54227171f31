// Bytes to and from somebody who may be slow, gone or hostile: a debug server, a helper. Behind an
// interface, so that a test or a fuzzer plays the other side.
#ifndef HANGSCOPE_TARGET_BYTE_CHANNEL_H
#define HANGSCOPE_TARGET_BYTE_CHANNEL_H

#include <string>
#include <string_view>

#include "base/clock.h"

namespace hangscope {

// One thread. `deadline` is of the monotonic clock: no call takes longer.
class ByteChannel {
 public:
  enum class Outcome { kDone, kLate, kClosed };

  virtual ~ByteChannel() = default;
  // All of `bytes`.
  virtual Outcome Send(std::string_view bytes, TimeNs deadline) = 0;
  // Replaces `bytes` by what has come: 1 byte to 64 KiB.
  virtual Outcome Receive(std::string* bytes, TimeNs deadline) = 0;
};

// Over descriptors, which it owns: a socket that is both, or a socket and a pipe. SIGPIPE never
// comes of it.
class DescriptorChannel : public ByteChannel {
 public:
  // `out` is a socket. `in` may be the same.
  DescriptorChannel(int out, int in);
  ~DescriptorChannel() override;
  DescriptorChannel(const DescriptorChannel&) = delete;
  DescriptorChannel& operator=(const DescriptorChannel&) = delete;

  Outcome Send(std::string_view bytes, TimeNs deadline) override;
  Outcome Receive(std::string* bytes, TimeNs deadline) override;
  // Nothing more is sent: the other side reads the end.
  void CloseOut();

 protected:
  // Waits until `fd` has one of `events`; false: the deadline came. `aside` is a descriptor that is
  // to be emptied by DrainAside meanwhile, -1: none.
  bool Await(int fd, short events, TimeNs deadline);
  virtual void DrainAside() {}

  int aside_ = -1;

 private:
  int out_;
  const int in_;
};

// A ByteChannel byte by byte.
class ByteReader {
 public:
  explicit ByteReader(ByteChannel& channel) : channel_(channel) {}

  ByteChannel::Outcome Next(char* byte, TimeNs deadline) {
    if (taken_ == received_.size()) {
      taken_ = 0;
      received_.clear();
      const ByteChannel::Outcome outcome = channel_.Receive(&received_, deadline);
      if (outcome != ByteChannel::Outcome::kDone) {
        received_.clear();
        return outcome;
      }
    }
    *byte = received_[taken_++];
    return ByteChannel::Outcome::kDone;
  }
  // What has come and was not asked for.
  size_t left() const { return received_.size() - taken_; }

 private:
  ByteChannel& channel_;
  std::string received_;
  size_t taken_ = 0;
};

}  // namespace hangscope

#endif

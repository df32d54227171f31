// The other side of a ByteChannel, played from a script: what it says whatever it is asked.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_CHANNEL_H
#define HANGSCOPE_TESTS_FAKES_FAKE_CHANNEL_H

#include <string>
#include <vector>

#include "target/byte_channel.h"

namespace hangscope {

class FakeChannel final : public ByteChannel {
 public:
  // Says turns[0] at once and the next one after each request (one byte is none: an
  // acknowledgement), in pieces of so many bytes; when all is said it is closed, or silent.
  explicit FakeChannel(std::vector<std::string> turns, size_t piece = 4096,
                       Outcome end = Outcome::kClosed)
      : turns_(std::move(turns)), piece_(piece), end_(end) {}

  Outcome Send(std::string_view bytes, TimeNs) override {
    sent_bytes += bytes.size();
    sent = bytes;
    if (bytes.size() > 1) ++sends_;
    return Outcome::kDone;
  }
  Outcome Receive(std::string* bytes, TimeNs) override {
    while (turn_ < turns_.size() && taken_ == turns_[turn_].size() && turn_ < sends_) {
      ++turn_;
      taken_ = 0;
    }
    if (turn_ >= turns_.size()) return end_;
    if (taken_ == turns_[turn_].size()) return turn_ + 1 < turns_.size() ? Outcome::kLate : end_;
    *bytes = turns_[turn_].substr(taken_, piece_);
    taken_ += bytes->size();
    return Outcome::kDone;
  }

  std::string sent;  // the latest
  uint64_t sent_bytes = 0;

 private:
  const std::vector<std::string> turns_;
  const size_t piece_;
  const Outcome end_;
  size_t turn_ = 0;
  size_t taken_ = 0;  // of the turn
  size_t sends_ = 0;
};

}  // namespace hangscope

#endif

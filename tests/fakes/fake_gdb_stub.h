// A debug server in a test: it answers each request as its script says, at its own pace, over a
// FakeClock.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_GDB_STUB_H
#define HANGSCOPE_TESTS_FAKES_FAKE_GDB_STUB_H

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_clock.h"
#include "target/byte_channel.h"
#include "target/gdb_packet.h"

namespace hangscope {

// What the packets that were asked with contained, in order; outlives the stub.
using GdbRequests = std::shared_ptr<std::vector<std::string>>;

class FakeGdbStub final : public ByteChannel {
 public:
  // The packets, framed, that follow a request.
  using Answer = std::function<std::string(const std::string& request)>;

  FakeGdbStub(FakeClock& clock, std::string at_once, Answer answer, GdbRequests requests)
      : clock_(clock),
        answer_(std::move(answer)),
        requests_(std::move(requests)),
        pending_(std::move(at_once)) {}

  void SetBytesPerSecond(TimeNs rate) { time_per_byte_ = kSecond / rate; }

  Outcome Send(std::string_view bytes, TimeNs) override {
    if (bytes.starts_with('$')) {
      const std::string request(bytes.substr(1, bytes.size() - 4));
      requests_->push_back(request);
      pending_ += "+" + answer_(request);
    }
    return Outcome::kDone;
  }
  Outcome Receive(std::string* bytes, TimeNs deadline) override {
    if (pending_.empty()) return Outcome::kLate;
    const size_t count = std::min<size_t>(pending_.size(), time_per_byte_ > 0 ? 1 : 4096);
    clock_.Sleep(time_per_byte_ * static_cast<TimeNs>(count));
    if (clock_.Monotonic() > deadline) return Outcome::kLate;
    *bytes = pending_.substr(0, count);
    pending_.erase(0, count);
    return Outcome::kDone;
  }

 private:
  FakeClock& clock_;
  const Answer answer_;
  const GdbRequests requests_;
  std::string pending_;
  TimeNs time_per_byte_ = 0;
};

}  // namespace hangscope

#endif

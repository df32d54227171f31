// A target over time: what is a hang, and what only looks like one.
#include <gtest/gtest.h>

#include <map>

#include "watch/watcher.h"

namespace hangscope {
namespace {

constexpr TimeNs kStall = kSecond;
constexpr TimeNs kPoll = 100 * kMillisecond;

// Cores and tasks that a test moves by hand; looked at each kPoll.
class WatcherTest : public ::testing::Test, public WatchSource {
 protected:
  Result<std::vector<ClaimRow>> Claims() override { return claims_; }
  Result<CoreDetail> Detail(uint32_t core) override {
    CoreDetail detail;
    detail.fault.type = sample_.cores[core].fault;
    return detail;
  }
  Result<uint64_t> Emitted(uint32_t core) override { return emitted_[core]; }

  void Cores(uint32_t count) {
    sample_.cores.resize(count);
    for (CoreSample& core : sample_.cores) {
      core.in_use = true;
      core.heartbeat = 1;
    }
    claims_.resize(count + sample_.tasks.size());
  }
  CoreSample& core(uint32_t index) { return sample_.cores[index]; }
  void Wait(uint32_t index, uint32_t resource, ResourceKind kind = ResourceKind::kNone) {
    CoreSample& c = core(index);
    c.wait_sequence = (c.wait_sequence + 1) | 1;
    c.wait = WaitState{c.wait_sequence, resource, kind, static_cast<uint64_t>(now_)};
  }
  void WaitDone(uint32_t index) {
    core(index).wait_sequence = (core(index).wait_sequence + 1) & ~1u;
    core(index).wait.reset();
  }
  void Beat(uint32_t index) { ++core(index).heartbeat; }
  void Look() {
    watcher_.See(sample_, now_, *this);
    for (Finding& finding : watcher_.TakeFindings()) found_.push_back(std::move(finding));
    now_ += kPoll;
  }
  // `each` before each look.
  template <typename Each>
  void Run(TimeNs time, Each each) {
    for (const TimeNs end = now_ + time; now_ < end;) {
      each();
      Look();
    }
  }
  void Run(TimeNs time) {
    Run(time, [] {});
  }
  std::vector<Finding> Bad() const {
    std::vector<Finding> bad;
    for (const Finding& finding : found_) {
      if (finding.IsBad()) bad.push_back(finding);
    }
    return bad;
  }
  static WatchSubject Core(uint32_t index) { return {WatchSubject::Kind::kCore, index}; }
  static WatchSubject Task(uint32_t index) { return {WatchSubject::Kind::kTask, index}; }

  WatcherOptions options_{kStall};
  Watcher watcher_{options_};
  WatchSample sample_;
  std::vector<ClaimRow> claims_;
  std::map<uint32_t, uint64_t> emitted_;
  std::vector<Finding> found_;
  TimeNs now_ = 100 * kSecond;
};

TEST_F(WatcherTest, TwoCoresThatHoldWhatTheOtherWantsAreADeadlockForCertain) {
  Cores(3);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Look();
  Wait(1, 10);
  Run(2 * kStall, [&] { Beat(2); });
  const auto bad = Bad();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(bad[0].confidence, Confidence::kCertain);
  EXPECT_EQ(bad[0].subjects, (std::vector<WatchSubject>{Core(0), Core(1)}));
  EXPECT_EQ(bad[0].first, Core(0));
}

TEST_F(WatcherTest, HandOversBetweenPollsAreNoDeadlock) {
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Run(10 * kStall, [&] {
    for (const uint32_t i : {0u, 1u}) {
      WaitDone(i);
      Wait(i, i == 0 ? 20 : 10);
    }
  });
  EXPECT_TRUE(Bad().empty());
}

}  // namespace
}  // namespace hangscope

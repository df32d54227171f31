// A target that a test moves by hand, so that it reads as a story.
#ifndef HANGSCOPE_TESTS_UNIT_SCOPE_WATCHER_STORY_H
#define HANGSCOPE_TESTS_UNIT_SCOPE_WATCHER_STORY_H

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "scope/watcher.h"

namespace hangscope {

constexpr TimeNs kStall = kSecond;
constexpr TimeNs kInterval = 100 * kMillisecond;

// Cores and tasks that a test moves by hand; looked at each kInterval.
class WatcherTest : public ::testing::Test, public WatchSource {
 protected:
  Result<std::vector<ClaimRow>> Claims() override {
    ++claims_read_;
    return claims_;
  }
  Result<CoreDetail> Detail(uint32_t core) override {
    CoreDetail detail;
    detail.fault.type = sample_.cores[core].fault;
    return detail;
  }
  std::vector<std::optional<uint32_t>> FirstFaults() override {
    return std::vector(sample_.cores.size(), first_fault_);
  }
  Result<uint64_t> Emitted(uint32_t core) override { return emitted_[core]; }
  Result<TaskNews> News() override {
    ++news_asked_;
    return news_;
  }

  std::optional<HeldUpTime::Given> Given(TimeNs since) override {
    if (held_up_.empty()) return std::nullopt;
    TimeNs time = 0;
    for (const TimeNs at : held_up_) time += at >= since ? kInterval : 0;
    return HeldUpTime::Given{std::max<TimeNs>(now_ - since - time, 0), time};
  }

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
  void Sample() {
    watcher_.See(sample_, now_, *this);
    for (ScopeFinding& finding : watcher_.DrainFindings()) found_.push_back(std::move(finding));
    now_ += kInterval;
  }
  // `each` before each look.
  template <typename Each>
  void Run(TimeNs time, Each each) {
    for (const TimeNs end = now_ + time; now_ < end;) {
      each();
      Sample();
    }
  }
  void Run(TimeNs time) {
    Run(time, [] {});
  }
  std::vector<ScopeFinding> Bad() const {
    std::vector<ScopeFinding> bad;
    for (const ScopeFinding& finding : found_) {
      if (finding.IsBad()) bad.push_back(finding);
    }
    return bad;
  }
  static SubjectId Core(uint32_t index) { return {SubjectId::Kind::kCore, index}; }
  static SubjectId Task(uint32_t index) { return {SubjectId::Kind::kTask, index}; }

  WatcherOptions options_{kStall};
  Watcher watcher_{options_};
  ScopeSample sample_;
  std::vector<ClaimRow> claims_;
  int claims_read_ = 0;
  std::optional<uint32_t> first_fault_;  // of the node that all are of
  std::map<uint32_t, uint64_t> emitted_;
  TaskNews news_{.tells_switches = true};
  int news_asked_ = 0;
  std::vector<TimeNs> held_up_;  // looks before which it was; none: not known
  std::vector<ScopeFinding> found_;
  TimeNs now_ = 100 * kSecond;
};

}  // namespace hangscope

#endif

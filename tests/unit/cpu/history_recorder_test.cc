// With a child that really runs, on a kernel that permits it.
#include "cpu/history_recorder.h"

#include <gmock/gmock.h>

#include <thread>

#include "perf/thread_history.h"
#include "recorded_child.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;

class HistoryRecorderTest : public RecordedChildTest {
 protected:
  void SetUp() override {
    RecordedChildTest::SetUp();
    if (IsSkipped()) return;
    history_ = StartHistoryRecorder(clock_, 0);
    if (history_ == nullptr)
      GTEST_SKIP() << "this kernel, or this user's rights, permit no history";
  }

  // Follows the child until what it says of its thread number `index` has `text`; what it says
  // then.
  std::string LineOf(int index, const std::string& text) {
    std::string line;
    for (const TimeNs begun = clock_.Monotonic(); clock_.Monotonic() - begun < 20 * kSecond;) {
      history_->Follow({child_});
      Finding finding;
      FindingSubject subject;
      subject.thread = counts_->tids[index];
      finding.subjects = {subject};
      ThreadHistory(history_->Take()).AddTo(&finding);
      line = finding.lines.empty() ? "" : finding.lines.back();
      if (line.find(text) != std::string::npos) break;
      usleep(5'000);
    }
    return line;
  }

  std::unique_ptr<HistoryRecorder> history_;
};

TEST_F(HistoryRecorderTest, ThreadsThatItFindsRanAndWereWoken) {
  Fork([](ChildCounts& counts) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) _exit(1);
    prctl(PR_SET_NAME, "waker");
    counts.tids[0] = Tid();
    std::thread sleeper([&] {
      prctl(PR_SET_NAME, "sleeper");
      counts.tids[1] = Tid();
      char byte;
      while (read(pipe_ends[0], &byte, 1) == 1) continue;
    });
    for (;;) {
      usleep(10'000);
      (void)!write(pipe_ends[1], "x", 1);
    }
  });
  Go();
  const std::string by = ", woken by " + std::to_string(child_) + " waker";
  const std::string line = LineOf(1, by);
  EXPECT_THAT(line, HasSubstr(by));
  EXPECT_THAT(line, HasSubstr(" sleeper  ran last "));
}

TEST_F(HistoryRecorderTest, OfAThreadThatHasACpuForItselfNothingIsSaid) {
  Fork([](ChildCounts& counts) {
    for (volatile int64_t& calls = counts.calls;;) calls = calls + 1;
  });
  counts_->tids[0] = child_;
  Go();
  const volatile int64_t& calls = counts_->calls;
  while (calls == 0) usleep(1'000);
  for (int i = 0; i < 5; ++i) {
    const std::string line = LineOf(0, "");
    EXPECT_EQ(line.find("did not run"), std::string::npos) << line;
  }
}

// What the kernel writes costs the program: threads that switch all the time are left out.
TEST_F(HistoryRecorderTest, ThreadsThatSwitchAllTheTimeAreNotRecordedAllTheTime) {
  Fork([](ChildCounts& counts) {
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) _exit(1);
    counts.tids[0] = Tid();
    std::thread answers([&] {
      char byte;
      while (read(there[0], &byte, 1) == 1) (void)!write(back[1], &byte, 1);
    });
    for (char byte = 'x';;) {
      (void)!write(there[1], &byte, 1);
      (void)!read(back[0], &byte, 1);
    }
  });
  Go();
  EXPECT_THAT(LineOf(0, "switched too often"), HasSubstr(" is not recorded since "));
}

}  // namespace
}  // namespace hangscope

// The scope beside a program's streams: what counts as progress in it.
#include "observe/scope_watch.h"

#include <gtest/gtest.h>

#include "fakes/borrowed_target.h"
#include "fakes/fake_file_system.h"
#include "fakes/watch_image.h"

namespace hangscope {
namespace {

constexpr TimeNs kStall = kSecond;

// A core with an OS of two tasks: the first sleeps for a while, the second is the idle task.
class ScopeWatchTest : public ::testing::Test {
 protected:
  ScopeWatchTest() {
    image_.TaskWaits(0, 1, HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);
    image_.TaskIsReady(1, 2);
    image_.PutRunning(0, 2);
    image_.PutEmitted(0, 40);
  }
  template <typename Each>
  void Run(TimeNs time, Each each) {
    for (const TimeNs end = now_ + time; now_ < end; now_ += 50 * kMillisecond) {
      each();
      watch_.Sample(now_);
    }
  }
  void Run(TimeNs time) {
    Run(time, [] {});
  }
  std::string progresses() const {
    const std::vector<std::string>& moving = watch_.sightings().moving;
    return moving.empty() ? "" : moving.front();
  }

  WatchImage image_{{.cores = 1, .tasks = 2}};
  FakeFileSystem files_;
  ScopeWatch watch_{files_, SourceOf(image_.target), kStall};
  TimeNs now_ = 100 * kSecond;
};

TEST_F(ScopeWatchTest, ATaskThatIsReadyIsNoProgress) {
  Run(3 * kStall);
  EXPECT_EQ(progresses(), "");
}

TEST_F(ScopeWatchTest, ATasksRecordThatMovesIsProgressForTheStallTime) {
  Run(kStall);
  image_.TaskIsReady(0, 1);
  Run(kStall / 2);
  EXPECT_EQ(progresses(), "task 1");
  Run(kStall);
  EXPECT_EQ(progresses(), "");
}

TEST_F(ScopeWatchTest, ARingThatMovesIsProgress) {
  uint32_t emitted = 40;
  Run(3 * kStall, [&] { image_.PutEmitted(0, ++emitted); });
  EXPECT_EQ(progresses(), "core 0");
  Run(2 * kStall);
  EXPECT_EQ(progresses(), "");
}

TEST_F(ScopeWatchTest, ATickIsNoProgress) {
  uint32_t ticks = 0;
  Run(3 * kStall, [&] { image_.PutRing(0, offsetof(hangscope_ring, ticks), ++ticks); });
  EXPECT_EQ(progresses(), "");
}

// The memory that an earlier run left, before a simulator has it.
TEST_F(ScopeWatchTest, AFileThatNobodyMapsAndInWhichNothingMovesSaysNothing) {
  image_.target.state = Life::kUnknown;
  image_.Put(0, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  Run(3 * kStall);
  EXPECT_TRUE(watch_.sightings().findings.empty());
  image_.TaskIsReady(0, 1);
  Run(kStall);
  EXPECT_EQ(watch_.sightings().findings.size(), 1u);
}

// A slow start: an emulator that boots, a program on a busy machine.
TEST_F(ScopeWatchTest, AScopeIsFoundBeforeItsProgramHasRunTwiceAsLongAsItTookToCome) {
  const std::string there = std::exchange(image_.target.memory, "");
  Run(20 * kSecond);
  EXPECT_EQ(watch_.sightings().as_of, 0);
  image_.target.memory = there;
  image_.Put(0, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  Run(20 * kSecond);
  EXPECT_EQ(watch_.sightings().findings.size(), 1u);
}

TEST_F(ScopeWatchTest, AHeartbeatIsProgress) {
  uint32_t beats = 0;
  Run(3 * kStall, [&] { image_.Put(0, offsetof(hangscope_mailbox, heartbeat), ++beats); });
  EXPECT_EQ(progresses(), "core 0");
}

}  // namespace
}  // namespace hangscope

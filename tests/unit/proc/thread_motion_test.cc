#include "proc/thread_motion.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hangscope {
namespace {

// A /proc with process 7, whose threads a test writes down.
class ThreadMotionTest : public ::testing::Test {
 protected:
  ThreadMotionTest()
      : root_(std::filesystem::temp_directory_path() /
              ("hangscope-motion-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_ / "7/task");
  }
  ~ThreadMotionTest() override { std::filesystem::remove_all(root_); }

  void Put(int thread, const std::string& run_time, char state = 'S') {
    const auto folder = root_ / "7/task" / std::to_string(thread);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "schedstat") << run_time << "\n";
    std::ofstream(folder / "stat")
        << thread << " (x) " << state << " 1 7 7 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 9\n";
  }
  void End(int thread) { std::filesystem::remove_all(root_ / "7/task" / std::to_string(thread)); }
  void Sample(TimeNs seconds) { motion_.Sample(seconds * kSecond, {7}); }

  const std::filesystem::path root_;
  ProcFolder proc_{root_.string()};
  ThreadMotion motion_{proc_};
};

TEST_F(ThreadMotionTest, WhoIsNotRunStandsStillSinceTheFirstSample) {
  Put(7, "100 5 3");
  Put(8, "100 5 3");
  Sample(10);
  Put(8, "100 5 4");  // once, for no time
  Sample(11);
  Sample(15);
  EXPECT_EQ(motion_.StillSince(7), 10 * kSecond);
  EXPECT_EQ(motion_.StillSince(8), 11 * kSecond);
  EXPECT_EQ(motion_.StillFor(5 * kSecond), std::set<int>{7});
  EXPECT_EQ(motion_.StillFor(4 * kSecond), (std::set<int>{7, 8}));
}

TEST_F(ThreadMotionTest, WhoIsGivenNoProcessorDoesNotStandStill) {
  Put(7, "100 5 3", 'R');
  Sample(10);
  Sample(20);
  EXPECT_TRUE(motion_.StillFor(1).empty());
}

TEST_F(ThreadMotionTest, WhereTheSchedulerKeepsNoStatisticsTicksTell) {
  Put(7, "");
  std::filesystem::remove(root_ / "7/task/7/schedstat");
  Sample(10);
  Sample(12);
  EXPECT_EQ(motion_.StillFor(2 * kSecond), std::set<int>{7});
}

TEST_F(ThreadMotionTest, TimeInWhichNobodyLookedCountsForNobody) {
  Put(7, "100 5 3");
  Sample(10);
  motion_.Interrupted(60 * kSecond);
  Sample(61);
  EXPECT_EQ(motion_.StillSince(7), 60 * kSecond);
}

TEST_F(ThreadMotionTest, WhoStoodStillBeforeAndDidNotRunMeanwhileHasNotMoved) {
  Put(7, "100 5 3");
  Put(8, "100 5 3");
  Sample(10);
  Sample(14);
  Put(8, "100 5 4");
  motion_.Interrupted(60 * kSecond);
  Sample(61);
  EXPECT_EQ(motion_.StillFor(5 * kSecond), std::set<int>{7});
  EXPECT_EQ(motion_.StillSince(7), 56 * kSecond);
  EXPECT_EQ(motion_.StillSince(8), 61 * kSecond);
}

TEST_F(ThreadMotionTest, AThreadThatEndedIsForgottenAndItsNumberIsAnothers) {
  Put(7, "100 5 3");
  Sample(10);
  End(7);
  Sample(11);
  EXPECT_TRUE(motion_.still_since().empty());
  Put(7, "100 5 3");
  Sample(12);
  EXPECT_EQ(motion_.StillSince(7), 12 * kSecond);
}

}  // namespace
}  // namespace hangscope

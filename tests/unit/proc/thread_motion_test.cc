#include "proc/thread_motion.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
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
  void PutWait(int thread, const std::string& call) {
    std::ofstream(root_ / "7/task" / std::to_string(thread) / "syscall") << call << "\n";
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

constexpr char kWaits[] = "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe10 0x7fbb20";

// Thread 7 has stood still since 10 s when a hang is reported, at 14 s.
class ThreadMotionInHangTest : public ThreadMotionTest {
 protected:
  ThreadMotionInHangTest() {
    Put(7, "1000000 5 3");
    PutWait(7, kWaits);
    Sample(10);
    Sample(14);
    motion_.KeepWaits(true);
  }
  TimeNs SinceAt(TimeNs seconds) {
    Sample(seconds);
    return motion_.StillSince(7) / kSecond;
  }
};

TEST_F(ThreadMotionInHangTest, WhoRunsHasMovedWhereNobodyMayAttach) {
  Put(7, "1100000 5 4");
  EXPECT_EQ(SinceAt(15), 15);
  EXPECT_EQ(motion_.disturbances(), 0u);
}

TEST_F(ThreadMotionInHangTest, AnAttachToWhomItEntersTheSameWaitAgainIsNoMotion) {
  motion_.NoteAttach();
  Put(7, "1100000 5 5");
  EXPECT_EQ(SinceAt(15), 10);
  EXPECT_FALSE(motion_.IsDisturbed());
  EXPECT_EQ(motion_.disturbances(), 1u);
  EXPECT_EQ(SinceAt(16), 10);
  Put(7, "1200000 5 6");
  EXPECT_EQ(SinceAt(17), 17) << "by itself, for nobody may attach any more";
}

TEST_F(ThreadMotionInHangTest, AfterAnAttachTheKernelMayGoOnWithACallAsRestart) {
  motion_.NoteAttach();
  Put(7, "1100000 5 5");
  PutWait(7,
          std::to_string(SYS_restart_syscall) + " 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe10 0x7fbb20");
  EXPECT_EQ(SinceAt(15), 10);
}

TEST_F(ThreadMotionInHangTest, AnotherWaitIsMotionAlsoBesideAnAttach) {
  for (const char* const other : {"202 0x66d0 0x80 0x2 0x0 0x0 0x0 0x7ffe10 0x7fbb20",
                                  "0 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe10 0x7fbb20",
                                  "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe50 0x7fbb20", "running"}) {
    PutWait(7, kWaits);
    Put(7, "1000000 5 3");
    Sample(20);
    Sample(21);
    motion_.NoteAttach();
    Put(7, "1100000 5 5");
    PutWait(7, other);
    EXPECT_EQ(SinceAt(22), 22) << other;
  }
}

TEST_F(ThreadMotionInHangTest, WhoComputesBeforeItWaitsAgainHasMoved) {
  motion_.NoteAttach();
  Put(7, "51000000 5 5");
  EXPECT_EQ(SinceAt(15), 15);
}

TEST_F(ThreadMotionInHangTest, WhomADebuggerHoldsAndLetsGoHasNotMoved) {
  Put(7, "1100000 5 4", 't');
  EXPECT_EQ(SinceAt(15), 10);
  EXPECT_TRUE(motion_.IsDisturbed());
  EXPECT_EQ(SinceAt(30), 10);
  Put(7, "1100000 9 5", 'R');
  EXPECT_EQ(SinceAt(31), 10) << "it was let go just now";
  Put(7, "1200000 9 5");
  EXPECT_EQ(SinceAt(32), 10);
  EXPECT_FALSE(motion_.IsDisturbed());
}

TEST_F(ThreadMotionInHangTest, WhoGoesOnOnceItIsLetGoHasMoved) {
  Put(7, "1100000 5 4", 't');
  EXPECT_EQ(SinceAt(15), 10);
  Put(7, "1100000 9 5", 'R');
  EXPECT_EQ(SinceAt(16), 10);
  EXPECT_EQ(SinceAt(17), 17);
}

TEST_F(ThreadMotionInHangTest, TimeInADebuggersHandIsNoneInWhichItStoodStillByItself) {
  EXPECT_EQ(motion_.StillTime(7, 15 * kSecond), 5 * kSecond);
  Put(7, "1100000 5 4", 't');
  Sample(15);
  Sample(30);
  EXPECT_EQ(motion_.StillTime(7, 31 * kSecond), 5 * kSecond);
  Put(7, "1200000 9 5");
  Sample(32);
  Sample(34);
  EXPECT_EQ(motion_.StillFor(6 * kSecond), std::set<int>{7});
  EXPECT_EQ(motion_.StillFor(7 * kSecond), std::set<int>{});
  Put(7, "9900000 9 6");
  Sample(35);
  Sample(45);
  EXPECT_EQ(motion_.StillTime(7, 45 * kSecond), 10 * kSecond) << "of what was before, nothing";
  EXPECT_EQ(motion_.StillTime(8, 45 * kSecond), 0);
}

// It may have been about to go on.
TEST_F(ThreadMotionInHangTest, WhoRanWhenADebuggerTookItDoesNotStandStill) {
  Put(8, "100 5 3", 'R');
  Sample(15);
  Put(8, "100 5 4", 't');
  Sample(16);
  Sample(30);
  EXPECT_EQ(motion_.StillSince(8), 30 * kSecond);
}

TEST_F(ThreadMotionInHangTest, OnceTheHangIsOverEachMotionCounts) {
  motion_.KeepWaits(false);
  motion_.NoteAttach();
  Put(7, "1100000 5 5");
  EXPECT_EQ(SinceAt(15), 15);
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

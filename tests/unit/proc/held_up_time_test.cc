#include "proc/held_up_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hangscope {
namespace {

// A /proc with process 7, whose threads a test writes down. Times in milliseconds.
class HeldUpTimeTest : public ::testing::Test {
 protected:
  HeldUpTimeTest()
      : root_(std::filesystem::temp_directory_path() /
              ("hangscope-held-up-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_ / "7/task");
  }
  ~HeldUpTimeTest() override { std::filesystem::remove_all(root_); }

  void Put(int thread, TimeNs ran, TimeNs wanted, char state = 'S') {
    const auto folder = root_ / "7/task" / std::to_string(thread);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "schedstat")
        << ran * kMillisecond << " " << wanted * kMillisecond << " 3\n";
    std::ofstream(folder / "stat")
        << thread << " (x) " << state << " 1 7 7 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 9\n";
  }
  void Sample(TimeNs at) { held_up_.Sample(at * kMillisecond); }
  TimeNs Since(TimeNs since) {
    const auto given = held_up_.Since(since * kMillisecond);
    return given ? given->held_up / kMillisecond : -1;
  }

  const std::filesystem::path root_;
  HeldUpTime held_up_{ProcFolder(root_.string()), 7};
};

TEST_F(HeldUpTimeTest, WhoSleepsOrRunsIsNotHeldUp) {
  Put(7, 100, 0);
  Put(8, 100, 5);
  Sample(1000);
  Put(8, 600, 5, 'R');
  Sample(2000);
  EXPECT_EQ(Since(0), 0);
}

TEST_F(HeldUpTimeTest, WhatAThreadWantedOfAProcessorCountsFromTheSampleBefore) {
  Put(7, 100, 10);
  Sample(1000);
  Put(7, 200, 210);
  Sample(2000);
  Sample(3000);
  Put(7, 300, 260);
  Sample(4000);
  EXPECT_EQ(Since(0), 250);
  EXPECT_EQ(Since(1500), 250);
  EXPECT_EQ(Since(2000), 50);
  EXPECT_EQ(Since(3999), 50);
  EXPECT_EQ(Since(4000), 0);
}

// The kernel's figure grows only at the end of such a wait, and then by more than the interval.
TEST_F(HeldUpTimeTest, WhoWantsAProcessorAllTheTimeIsHeldUpAllTheTime) {
  Put(7, 100, 10, 'R');
  Sample(1000);
  Sample(2000);
  EXPECT_EQ(Since(0), 1000);
  Put(7, 101, 1510, 'R');
  Sample(2500);
  EXPECT_EQ(Since(0), 1500);
}

TEST_F(HeldUpTimeTest, WhoIsStoppedIsHeldUp) {
  Put(7, 100, 10, 'T');
  Sample(1000);
  Sample(2000);
  Put(7, 100, 10, 't');
  Sample(3000);
  EXPECT_EQ(Since(0), 2000);
}

// So that what was true of it at one look does not become false at the next.
TEST_F(HeldUpTimeTest, TheTimeThatWasGivenNeverFalls) {
  Put(7, 100, 0);
  Sample(1000);
  TimeNs before = 0;
  for (int i = 1; i < 20; ++i) {
    const TimeNs wanted = i / 3 * 250;  // it grows at the end of a wait, by all of it
    Put(7, 100 + i / 3, wanted, 'R');
    Sample(1000 + 100 * i);
    const TimeNs given = held_up_.Since(1000 * kMillisecond)->time;
    EXPECT_GE(given, before);
    before = given;
  }
  EXPECT_LT(before, 500 * kMillisecond);
}

TEST_F(HeldUpTimeTest, TheLeaderAndOneOfItsThreadsCount) {
  for (const int thread : {7, 8, 9}) Put(thread, 100, 0);
  Sample(1000);
  Put(7, 200, 100);
  Put(8, 200, 200);
  Put(9, 200, 300);
  Sample(2000);
  EXPECT_EQ(Since(0), 400);
  Put(7, 300, 900);
  Put(9, 300, 1200);
  Sample(3000);
  EXPECT_EQ(Since(0), 1400);
}

TEST_F(HeldUpTimeTest, OfVeryManyThreadsAndOfNobodyItIsNotKnown) {
  Sample(1000);
  EXPECT_EQ(Since(0), -1);
  Put(7, 100, 0);
  Sample(2000);
  EXPECT_EQ(Since(0), 0);
  for (int thread = 8; thread < 200; ++thread) Put(thread, 1, 1);
  Sample(3000);
  EXPECT_EQ(Since(0), -1);
}

}  // namespace
}  // namespace hangscope

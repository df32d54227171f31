// A target over its lives: what is written over, started again, or no more than a file.
#include "scope/watched_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakes/borrowed_target.h"
#include "fakes/fake_file_system.h"
#include "fakes/watch_image.h"

namespace hangscope {
namespace {

class WatchedTargetTest : public ::testing::Test {
 protected:
  void Open() {
    auto opened = WatchedTarget::Open(files_, SourceOf(image_.target), {kStallTime}, now_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    target_ = std::move(*opened);
  }
  template <typename Each>
  void Run(TimeNs time, Each each) {
    for (const TimeNs end = now_ + time; now_ < end; now_ += 50 * kMillisecond) {
      each();
      target_->Poll(now_);
      for (ScopeFinding& finding : target_->DrainFindings()) found_.push_back(std::move(finding));
      for (auto& note : target_->DrainNotes()) notes_.push_back(note.event);
    }
  }
  void Beat() { image_.Put(0, kHeartbeatAt, ++beats_); }
  void Run(TimeNs time) {
    Run(time, [this] { Beat(); });
  }

  static constexpr TimeNs kStallTime = kSecond;
  static constexpr size_t kHeartbeatAt = offsetof(hangscope_mailbox, heartbeat);
  WatchImage image_{{.cores = 2}};
  FakeFileSystem files_;
  std::unique_ptr<WatchedTarget> target_;
  uint32_t beats_ = 0;
  std::vector<ScopeFinding> found_;
  std::vector<std::string> notes_;
  TimeNs now_ = 100 * kSecond;
};

TEST_F(WatchedTargetTest, AHeaderThatIsWrittenOverIsCorruptAndWatchingGoesOn) {
  const std::string sound = image_.target.memory;
  for (const size_t at : {size_t{0}, offsetof(hangscope_header, core_count)}) {
    image_.target.memory = sound;
    found_.clear();
    Open();
    Run(kStallTime);
    image_.PutHeaderWord(at, 0x77777777);
    Run(5 * kStallTime);
    EXPECT_TRUE(target_->is_watched());
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].kind, FindingKind::kCorrupt);
    EXPECT_EQ(found_[0].corruption.part, Corruption::Part::kHeader);
    EXPECT_EQ(found_[0].corruption.field, at == 0 ? "magic" : "core_count");
    EXPECT_EQ(found_[0].corruption.value, "0x77777777");
    // What hangs then is found by the header as it was.
    Run(5 * kStallTime, [] {});
    ASSERT_EQ(found_.size(), 2u);
    EXPECT_EQ(found_[1].kind, FindingKind::kSilent);
  }
}

TEST_F(WatchedTargetTest, AHeaderThatIsMadeAnewIsNotCorrupt) {
  Open();
  Run(kStallTime);
  const uint32_t check =
      Load32(image_.target.memory.data() + offsetof(hangscope_header, check), ByteOrder::kLittle);
  image_.PutHeaderWord(offsetof(hangscope_header, check), 0);
  Run(kStallTime / 2);
  image_.PutHeaderWord(offsetof(hangscope_header, check), check);
  Run(2 * kStallTime);
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatchedTargetTest, MemoryThatIsClearedIsGone) {
  Open();
  Run(kStallTime);
  image_.target.memory.assign(image_.target.memory.size(), '\0');
  Run(3 * kStallTime, [] {});
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDead);
  EXPECT_TRUE(target_->is_over());
}

// On a busy machine to open it may take seconds.
TEST_F(WatchedTargetTest, AProcessThatIsKilledWhileItIsOpenedIsDead) {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  Beat();
  ScopeSource source = SourceOf(image_.target);
  source.target = "pid:" + std::to_string(pid);
  source.open = [pid, open = source.open] {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return open();
  };
  auto opened = WatchedTarget::Open(files_, source, {kStallTime}, now_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  target_ = std::move(*opened);
  Run(100 * kMillisecond);
  EXPECT_TRUE(target_->is_over());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDead);
}

// What its end interrupted is no hang.
TEST_F(WatchedTargetTest, AFileThatNobodyMapsAndInWhichNothingMovesIsADump) {
  image_.target.state = Life::kUnknown;
  image_.Put(0, kHeartbeatAt, 7);
  image_.Put(1, kHeartbeatAt, 7);
  Open();
  Run(5 * kStallTime, [] {});
  EXPECT_TRUE(target_->is_over());
  EXPECT_EQ(notes_, (std::vector<std::string>{"dump"}));
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatchedTargetTest, WhatADumpSaysForCertainIsToldOnce) {
  image_.target.state = Life::kUnknown;
  image_.Put(0, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  Open();
  Run(5 * kStallTime, [] {});
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kFault);
}

TEST_F(WatchedTargetTest, AFileInWhichSomethingMovedIsNoDump) {
  image_.target.state = Life::kUnknown;
  Open();
  Run(kStallTime / 2);
  Run(5 * kStallTime, [] {});
  EXPECT_TRUE(target_->is_watched());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kSilent);
}

TEST_F(WatchedTargetTest, ARestartLoopIsOneFinding) {
  Open();
  int look = 0;
  Run(10 * kStallTime, [&] {
    if (++look % 5 == 0) beats_ = 0;
    Beat();
  });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDead);
  EXPECT_EQ(found_[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(found_[0].summary.starts_with("it starts again and again, at least 4 times in "))
      << found_[0].summary;
  // 39 starts: each of the first three, then 8, 16 and 32.
  EXPECT_EQ(notes_.size(), 6u);
  EXPECT_TRUE(target_->is_watched());
}

// Neither beats nor waits: its rings alone begin anew, here that of its last core.
TEST_F(WatchedTargetTest, ARestartLoopOfAProgramThatOnlyRecordsIsFound) {
  Open();
  uint32_t records = 0;
  int look = 0;
  Run(20 * kStallTime, [&] {
    records = ++look % 13 == 0 ? 1 : records + 5;
    image_.PutEmitted(1, records);
  });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_THAT(found_[0].summary, testing::StartsWith("it starts again and again, at least 4 "));
}

TEST_F(WatchedTargetTest, RecordingIsNoRestart) {
  Open();
  uint32_t records = 0;
  Run(5 * kStallTime, [&] { image_.PutEmitted(0, records += 100); });
  EXPECT_TRUE(notes_.empty());
}

TEST_F(WatchedTargetTest, StartsThatAreFarApartAreNoLoop) {
  Open();
  for (int start = 0; start < 6; ++start) {
    Run(4 * kStallTime);
    beats_ = 0;
  }
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(notes_.size(), 5u);
}

}  // namespace
}  // namespace hangscope

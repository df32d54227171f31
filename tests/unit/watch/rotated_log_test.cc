// A log of bounded size.
#include "watch/rotated_log.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_file_system.h"

namespace hangscope {
namespace {

class RotatedLogTest : public ::testing::Test {
 protected:
  void Open(uint64_t size_bytes, int keep, bool append = false) {
    log_ = std::make_unique<RotatedLog>(
        files_, RotatedLogOptions{"watch.log", size_bytes, keep, append}, [this] { return head_; },
        [](uint64_t lines) { return "lost " + std::to_string(lines) + "\n"; });
    const Status status = log_->Open();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void Write(const std::string& lines) {
    const Status status = log_->Write(lines);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  FakeFileSystem files_;
  std::string head_ = "head\n";
  std::unique_ptr<RotatedLog> log_;
};

TEST_F(RotatedLogTest, EachFileBeginsWithTheHeadAndTheOldestIsLost) {
  Open(20, 3);
  for (int i = 0; i < 8; ++i) Write("line " + std::to_string(i) + "\n");  // two fit behind the head
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nline 6\nline 7\n");
  EXPECT_EQ(files_.BytesOf("watch.log.1"), "head\nline 4\nline 5\n");
  EXPECT_EQ(files_.BytesOf("watch.log.2"), "head\nline 2\nline 3\n");
  EXPECT_FALSE(files_.Exists("watch.log.3"));
}

TEST_F(RotatedLogTest, AtNoInstantDoesItTakeMoreThanItsBound) {
  files_.watched = "watch.log";
  Open(100, 4);
  for (int i = 0; i < 1000; ++i) Write(std::string(static_cast<size_t>(i % 60 + 1), 'x') + "\n");
  EXPECT_LE(files_.peak, 400u);
  EXPECT_GE(files_.peak, 300u);  // it uses what it may
}

TEST_F(RotatedLogTest, WhatIsNoLogOfItsKindIsNotWrittenOver) {
  ASSERT_TRUE(WriteWholeFile(files_, "watch.log.1", "head\nan older one\n").ok());
  ASSERT_TRUE(WriteWholeFile(files_, "watch.log.2", "of logrotate").ok());
  for (const bool append : {false, true}) {
    RotatedLog log(
        files_, RotatedLogOptions{"watch.log", 100, 3, append, {"tail", "head"}},
        [this] { return head_; }, [](uint64_t) { return ""; });
    EXPECT_NE(log.Open().message().find("'watch.log.2' is no log"), std::string::npos);
    EXPECT_TRUE(files_.Exists("watch.log.1"));
    EXPECT_EQ(files_.BytesOf("watch.log.2"), "of logrotate");
  }
  ASSERT_TRUE(files_.Remove("watch.log.2").ok());
  Open(100, 3);
  EXPECT_FALSE(files_.Exists("watch.log.1"));
}

TEST_F(RotatedLogTest, OneFileAloneBeginsAnew) {
  Open(20, 1);
  for (int i = 0; i < 3; ++i) Write("line " + std::to_string(i) + "\n");
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nline 2\n");
  EXPECT_FALSE(files_.Exists("watch.log.1"));
}

TEST_F(RotatedLogTest, WithoutAppendItBeginsAnewAndWithItGoesOn) {
  Open(100, 2);
  Write("first\n");
  head_ = "second head\n";
  Open(100, 2, true);
  Write("second\n");
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nfirst\nsecond head\nsecond\n");
  Open(100, 2);
  EXPECT_EQ(files_.BytesOf("watch.log"), "second head\n");
}

TEST_F(RotatedLogTest, AppendToAFullFileRotatesFirst) {
  Open(20, 2);
  Write("line 0\nline 1\n");
  Open(20, 2, true);
  Write("line 2\n");
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nline 2\n");
  EXPECT_EQ(files_.BytesOf("watch.log.1"), "head\nline 0\nline 1\n");
}

TEST_F(RotatedLogTest, WhatCouldNotBeWrittenIsCountedAndSaidWhenThereIsRoomAgain) {
  Open(100, 2);
  Write("before\n");
  files_.write_error = ENOSPC;
  EXPECT_FALSE(log_->Write("a\nb\n").ok());
  EXPECT_FALSE(log_->Write("c\n").ok());
  files_.write_error = 0;
  Write("after\n");
  Write("later\n");
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nbefore\nlost 3\nafter\nlater\n");
  EXPECT_EQ(log_->lost_lines(), 3u);
}

TEST_F(RotatedLogTest, ADiskThatFillsUpInTheMiddleOfALineLeavesWholeLines) {
  Open(100, 2);
  Write("before\n");
  files_.capacity = files_.Used() + 3;
  EXPECT_FALSE(log_->Write("a longer line\n").ok());
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nbefore\n");
}

TEST_F(RotatedLogTest, LinesThatNeverFitAreRefused) {
  Open(20, 2);
  EXPECT_FALSE(log_->Write(std::string(30, 'x') + "\n").ok());
  Write("fits\n");
  EXPECT_EQ(files_.BytesOf("watch.log"), "head\nlost 1\nfits\n");
}

}  // namespace
}  // namespace hangscope

// The stage between a real pipe and two consumers. That it survives a kill at any
// instant is tested with real processes (tests/system/test_crash.py).
#include "ring/staging_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace hangscope {
namespace {

constexpr TimeNs kSoon = kMillisecond;
constexpr TimeNs kLong = 60 * kSecond;
constexpr uint64_t kRoomy = 8u << 20;
constexpr auto kRing = StagingBuffer::Consumer::kRing;
constexpr auto kOut = StagingBuffer::Consumer::kPassthrough;

class StageTest : public ::testing::Test {
 protected:
  StageTest() {
    EXPECT_EQ(pipe(pipe_), 0);
    EXPECT_GT(fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20), 0);
  }
  ~StageTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  void Create(bool passthrough, uint64_t memory = StagingBuffer::kSmallest) {
    auto stage = StagingBuffer::Create(memory, passthrough);
    ASSERT_TRUE(stage.ok()) << stage.status().message();
    stage_ = std::move(*stage);
  }
  // What a successor makes of it, when the ring has everything before `ring_head`.
  void Attach(uint64_t ring_head) {
    const int fd = dup(stage_->fd());
    stage_.reset();
    auto stage = StagingBuffer::Attach(fd, ring_head);
    ASSERT_TRUE(stage.ok()) << stage.status().message();
    stage_ = std::move(*stage);
  }
  // Bytes that tell their offset, through the pipe into the stage.
  void Write(uint64_t count) {
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) bytes += ByteAt(written_ + i);
    ASSERT_EQ(write(pipe_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(count));
    for (uint64_t filled = 0; filled < count;) {
      ASSERT_EQ(stage_->WaitForRoom(0), StagingBuffer::Room::kNow) << "at " << written_ + filled;
      const ssize_t got = stage_->Fill(pipe_[0], 7);
      ASSERT_GT(got, 0);
      filled += static_cast<uint64_t>(got);
    }
    written_ += count;
  }
  static char ByteAt(uint64_t offset) { return static_cast<char>(offset % 251); }

  // Takes everything that is there; returns the offsets where bytes were missing.
  std::vector<std::pair<uint64_t, uint64_t>> DrainAll(StagingBuffer::Consumer consumer,
                                                      uint64_t from) {
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
    uint64_t at = from;
    while (const auto piece = stage_->Next(consumer, kSoon)) {
      if (piece->offset != at) gaps.emplace_back(at, piece->offset);
      for (size_t i = 0; i < piece->size; ++i) {
        EXPECT_EQ(piece->data[i], ByteAt(piece->offset + i));
        if (piece->data[i] != ByteAt(piece->offset + i)) return gaps;
      }
      at = piece->offset + piece->size;
      stage_->Advance(consumer, at);
    }
    EXPECT_EQ(at, written_);
    return gaps;
  }

  double SecondsToCatchUp(TimeNs longest) {
    const auto begin = std::chrono::steady_clock::now();
    stage_->LetRingCatchUp(longest);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  int pipe_[2] = {-1, -1};
  std::unique_ptr<StagingBuffer> stage_;
  uint64_t written_ = 0;
};

TEST_F(StageTest, BytesComeOutAsTheyWentIn) {
  Create(false);
  for (const uint64_t count : {1u, 10u, 300'000u, 5u, 700'000u}) {
    Write(count);
    EXPECT_TRUE(DrainAll(kRing, written_ - count).empty());
  }
  EXPECT_EQ(stage_->backlog(), 0);
}

TEST_F(StageTest, IsFullWhenItsMemoryIs) {
  Create(false);
  for (int i = 0; i < 4; ++i) Write(256 * 1024);
  EXPECT_EQ(stage_->WaitForRoom(0), StagingBuffer::Room::kLater);
  EXPECT_EQ(stage_->backlog(), 1);
}

TEST_F(StageTest, DropsTheOldestAndTheWriterFindsTheGap) {
  Create(false);
  for (int i = 0; i < 4; ++i) Write(256 * 1024);
  stage_->DropOldest();
  Write(1000);
  const auto gaps = DrainAll(kRing, 0);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0], (std::pair<uint64_t, uint64_t>(0, 256 * 1024)));
}

TEST_F(StageTest, NeverDropsWhatTheWriterLooksAt) {
  Create(false);
  for (int i = 0; i < 4; ++i) Write(256 * 1024);
  const auto piece = stage_->Next(kRing, kSoon);
  ASSERT_TRUE(piece);
  stage_->DropOldest();
  Write(256 * 1024);
  EXPECT_EQ(piece->data[0], ByteAt(0));
  stage_->Advance(kRing, piece->offset + piece->size);
  EXPECT_EQ(DrainAll(kRing, piece->size).size(), 1u);
}

TEST_F(StageTest, PassthroughIsDroppedBeforeTheRecording) {
  Create(true);
  for (int i = 0; i < 4; ++i) {
    Write(256 * 1024);
    EXPECT_TRUE(DrainAll(kRing, written_ - 256 * 1024).empty());
  }
  EXPECT_EQ(stage_->WaitForRoom(0), StagingBuffer::Room::kLater);  // nobody passes on
  stage_->DropOldest();
  Write(100);
  EXPECT_TRUE(DrainAll(kRing, written_ - 100).empty());
  std::string copy;
  const auto next = stage_->CopyNext(kOut, kSoon, 64, &copy);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->offset, 4u * 256 * 1024);
  EXPECT_EQ(copy.size(), 64u);
}

TEST_F(StageTest, SuccessorGoesOnBehindWhatTheRingHolds) {
  Create(true);
  Write(300'000);
  Attach(123'456);
  EXPECT_TRUE(DrainAll(kRing, 123'456).empty());
  EXPECT_TRUE(DrainAll(kOut, 0).empty());
  Write(500);
  EXPECT_TRUE(DrainAll(kRing, 300'000).empty());
}

TEST_F(StageTest, EndsForEachConsumerOnceItHasEverything) {
  Create(true);
  Write(10);
  stage_->Close();
  EXPECT_FALSE(stage_->ended(kRing));
  DrainAll(kRing, 0);
  EXPECT_TRUE(stage_->ended(kRing));
  EXPECT_FALSE(stage_->ended(kOut));
  stage_->Leave(kOut);
  EXPECT_TRUE(stage_->ended(kOut));
}

TEST_F(StageTest, ReaderThatIsAheadALittleWaitsForNobody) {
  Create(false, kRoomy);
  Write(512u << 10);
  EXPECT_LT(SecondsToCatchUp(kLong), 30);
}

TEST_F(StageTest, ReaderThatIsFarAheadWaitsUntilTheWriterIsClose) {
  Create(false, kRoomy);
  for (int i = 0; i < 8; ++i) Write(256u << 10);
  double waited = kLong;
  std::thread reader([&] { waited = SecondsToCatchUp(kLong); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // else it may not have to wait
  for (uint64_t at = 256u << 10; at <= 2u << 20; at += 256u << 10) stage_->Advance(kRing, at);
  reader.join();
  EXPECT_LT(waited, 30) << "nobody woke it";
}

TEST_F(StageTest, ReaderWaitsNoLongerThanItMayForAWriterThatDoesNotWrite) {
  Create(false, kRoomy);
  for (int i = 0; i < 8; ++i) Write(256u << 10);
  const double waited = SecondsToCatchUp(20 * kMillisecond);
  EXPECT_GE(waited, 0.02);
  EXPECT_LT(waited, 30);
}

TEST_F(StageTest, ReaderDoesNotWaitForAWriterThatHasLeft) {
  Create(false, kRoomy);
  for (int i = 0; i < 8; ++i) Write(256u << 10);
  stage_->Leave(kRing);
  EXPECT_LT(SecondsToCatchUp(kLong), 30);
}

TEST_F(StageTest, ForeignMemoryIsRefused) {
  const int fd = memfd_create("not-a-stage", 0);
  EXPECT_FALSE(StagingBuffer::Attach(fd, 0).ok());
}

}  // namespace
}  // namespace hangscope

// Mailboxes, claims, details and debug rings as they lie in memory: of either byte order and word size, while the
// target writes, and with every word damaged in turn.
#include <gtest/gtest.h>

#include <array>

#include "decode/watch_reader.h"
#include "fakes/watch_image.h"

namespace hangscope {
namespace {

#define MAILBOX(field) offsetof(hangscope_mailbox, field)

class WatchReaderTest : public ::testing::Test {
 protected:
  void Make(const WatchImageOptions& options = {}) { image_.emplace(options); }
  void Open() {
    auto scope = ScopeReader::Open(image_->target, 0);
    ASSERT_TRUE(scope.ok()) << scope.status().message();
    scope_.emplace(std::move(*scope));
    auto reader = WatchReader::Open(*scope_);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    reader_.emplace(std::move(*reader));
  }
  const WatchSample& Poll() {
    const Status status = reader_->Poll(&sample_);
    EXPECT_TRUE(status.ok()) << status.message();
    return sample_;
  }
  Status WhyNot() {
    auto scope = ScopeReader::Open(image_->target, 0);
    if (!scope.ok()) return scope.status();
    return WatchReader::Open(*scope).status();
  }

  std::optional<WatchImage> image_;
  std::optional<ScopeReader> scope_;
  std::optional<WatchReader> reader_;
  WatchSample sample_;
};

TEST_F(WatchReaderTest, ReadsEachWordOfAMailboxInEitherByteOrderAndWordSize) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    for (const uint32_t word_bytes : {4u, 8u}) {
      WatchImageOptions options;
      options.order = order;
      options.word_bytes = word_bytes;
      options.nodes = 3;
      Make(options);
      image_->Put(1, MAILBOX(waypoint), 0x57425243);  // "CRBW"
      image_->Put(1, MAILBOX(heartbeat), 77);
      image_->Wait(1, 0x80001234, HANGSCOPE_RESOURCE_CHANNEL, 0x1'8000'0005);
      image_->Put(1, MAILBOX(kernel), 9);
      image_->Put(1, MAILBOX(launch), HANGSCOPE_LAUNCH_RUNNING);
      image_->Put(1, MAILBOX(pause), 1);
      image_->Put(1, MAILBOX(paused), HANGSCOPE_PAUSED_BY_CODE);
      image_->Put(1, MAILBOX(fault), HANGSCOPE_FAULT_BUS);
      image_->Put(1, MAILBOX(node), order == ByteOrder::kLittle ? 0x0004'0002u : 0x0002'0004u);
      Open();
      const CoreSample& core = Poll().cores[1];
      EXPECT_TRUE(core.in_use);
      EXPECT_FALSE(core.corrupt) << (sample_.corruptions.empty() ? "" : sample_.corruptions[0].what);
      EXPECT_EQ(core.waypoint, 0x57425243u);
      EXPECT_EQ(core.heartbeat, 77u);
      ASSERT_TRUE(core.wait);
      EXPECT_EQ(core.wait->resource, 0x80001234u);
      EXPECT_EQ(core.wait->kind, ResourceKind::kChannel);
      EXPECT_EQ(core.wait->sequence, 1u);
      EXPECT_EQ(core.wait->since, 0x1'8000'0005u);
      EXPECT_EQ(core.kernel, 9u);
      EXPECT_EQ(core.launch, LaunchState::kRunning);
      EXPECT_TRUE(core.pause_asked);
      EXPECT_EQ(core.paused, PausedState::kByCode);
      EXPECT_EQ(core.fault, FaultType::kBus);
      EXPECT_FALSE(core.stack_free);
      EXPECT_EQ(core.node, 2);
      EXPECT_EQ(core.role, 4);
      EXPECT_FALSE(sample_.cores[0].in_use);
      EXPECT_TRUE(sample_.corruptions.empty());
    }
  }
}

TEST_F(WatchReaderTest, ReadsAllMailboxesAtOnceAndAllTaskRecordsAtOnce) {
  WatchImageOptions options;
  options.cores = 1024;
  Make(options);
  Open();
  const uint64_t reads = reader_->reads();
  const uint64_t bytes = reader_->bytes_read();
  Poll();
  EXPECT_EQ(reader_->reads() - reads, 1u);
  EXPECT_EQ(reader_->bytes_read() - bytes, 1024u * 64);
}

struct Damage {
  const char* field;
  size_t at;
  uint32_t value;
  bool is_wrong;
};

TEST_F(WatchReaderTest, ReportsEachWordThatCannotBeRightByCoreFieldAndValue) {
  const Damage damages[] = {
      {"waypoint", MAILBOX(waypoint), 0x07000001, true},
      {"waypoint", MAILBOX(waypoint), 0x41004141, true},   // a zero in the middle
      {"waypoint", MAILBOX(waypoint), 0x0000417f, true},   // DEL
      {"waypoint", MAILBOX(waypoint), 0x80414141, true},
      {"waypoint", MAILBOX(waypoint), 0x7e7e207e, false},
      {"waypoint", MAILBOX(waypoint), 0x00000041, false},
      {"heartbeat", MAILBOX(heartbeat), 0xdeadbeef, false},
      {"wait_sequence", MAILBOX(wait_sequence), 0xdeadbeee, false},
      {"wait_resource", MAILBOX(wait_resource), 0xdeadbeef, false},  // it does not wait
      {"wait_kind", MAILBOX(wait_kind), 6, true},
      {"wait_kind", MAILBOX(wait_kind), 5, false},
      {"wait_since", MAILBOX(wait_since), 0xdeadbeef, false},
      {"kernel", MAILBOX(kernel), 0xdeadbeef, false},
      {"launch", MAILBOX(launch), 5, true},
      {"launch", MAILBOX(launch), 4, false},
      {"pause", MAILBOX(pause), 2, true},
      {"resumes", MAILBOX(resumes), 0xdeadbeef, false},
      {"paused", MAILBOX(paused), 3, true},
      {"paused", MAILBOX(paused), 2, false},
      {"fault", MAILBOX(fault), 8, true},
      {"fault", MAILBOX(fault), 7, false},
      {"stack_free", MAILBOX(stack_free), 4097, true},
      {"stack_free", MAILBOX(stack_free), 4096, false},
      {"node", MAILBOX(node), 0x00010001, true},
      {"guard", MAILBOX(guard), 0, true},
      {"guard", MAILBOX(guard), HANGSCOPE_MAILBOX_GUARD ^ 3, true},  // another core's
  };
  for (const Damage& damage : damages) {
    Make();
    for (uint32_t core = 0; core < 4; ++core) {
      image_->Put(core, MAILBOX(heartbeat), 5);
      image_->PutDetail(core, offsetof(hangscope_detail, stack_bytes), 4096);
    }
    image_->Put(2, damage.at, damage.value);
    Open();
    const WatchSample& sample = Poll();
    EXPECT_EQ(sample.cores[2].corrupt, damage.is_wrong) << damage.field << " " << damage.value;
    ASSERT_EQ(sample.corruptions.size(), damage.is_wrong ? 1u : 0u) << damage.field << " " << damage.value;
    for (const uint32_t other : {0u, 1u, 3u}) EXPECT_TRUE(sample.cores[other].in_use && !sample.cores[other].corrupt) << other;
    if (!damage.is_wrong) continue;
    EXPECT_EQ(sample.corruptions[0].where, "core 2");
    EXPECT_TRUE(sample.corruptions[0].what.starts_with(damage.field)) << sample.corruptions[0].what;
  }
}

TEST_F(WatchReaderTest, SaysInOneSentenceWhatIsWrong) {
  Make();
  image_->Put(3, MAILBOX(waypoint), 0x07000001);
  Open();
  ASSERT_EQ(Poll().corruptions.size(), 1u);
  EXPECT_EQ(sample_.corruptions[0].where, "core 3");
  EXPECT_EQ(sample_.corruptions[0].what, "waypoint 0x07000001: four printable characters are possible");
}

TEST_F(WatchReaderTest, FindsAWaitDamagedOnlyWhileTheCoreWaits) {
  Make();
  image_->Wait(0, 0x1000, 0, 5'000'000'000);
  Open();
  EXPECT_FALSE(Poll().cores[0].corrupt);
  image_->Put(0, MAILBOX(wait_epoch), 77);
  EXPECT_TRUE(Poll().cores[0].corrupt);
  ASSERT_EQ(sample_.corruptions.size(), 1u);
  EXPECT_TRUE(sample_.corruptions[0].what.starts_with("wait_epoch 0x0000004d")) << sample_.corruptions[0].what;
  image_->WaitDone(0);
  EXPECT_FALSE(Poll().cores[0].corrupt);
  image_->Wait(0, 0, 0, 1);
  EXPECT_TRUE(Poll().cores[0].corrupt) << "it waits for nothing";
}

TEST_F(WatchReaderTest, TakesAMailboxThatIsBeingMadeForUnused) {
  Make();
  for (size_t at = 0; at < sizeof(hangscope_mailbox); at += 4) image_->Put(1, at, 0);
  Open();
  EXPECT_FALSE(Poll().cores[1].in_use);
  EXPECT_TRUE(sample_.corruptions.empty());
  image_->Put(1, MAILBOX(stack_free), HANGSCOPE_NOT_KNOWN);
  EXPECT_FALSE(Poll().cores[1].corrupt);
  image_->Put(1, MAILBOX(heartbeat), 1);  // which nobody says who has no mailbox
  EXPECT_TRUE(Poll().cores[1].corrupt);
}

// The read found half of a new mailbox; a moment later it is whole.
TEST_F(WatchReaderTest, LooksAgainBeforeItCallsAnythingCorrupt) {
  Make();
  image_->Put(1, MAILBOX(heartbeat), 3);
  image_->Put(1, MAILBOX(guard), 0);
  Open();
  int reads = 0;
  image_->target.before_read = [&](uint64_t) {
    if (++reads == 3) image_->Put(1, MAILBOX(guard), HANGSCOPE_MAILBOX_GUARD ^ 1);
  };
  EXPECT_FALSE(Poll().cores[1].corrupt);
  EXPECT_TRUE(Poll().cores[1].in_use);
  EXPECT_TRUE(sample_.corruptions.empty());
}

}  // namespace
}  // namespace hangscope

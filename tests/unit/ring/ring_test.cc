// The ring store and the block reader together, on a disk in memory: what was
// appended is compared byte for byte with what is read back.
#include <gtest/gtest.h>
#include <zstd.h>

#include <limits>
#include <random>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/block_reader.h"
#include "ring/ring_files.h"
#include "ring/ring_store.h"

namespace hangscope {
namespace {

// The producer of these tests: every 8 bytes hold their own offset.
std::string OffsetBytes(uint64_t begin, uint64_t count) {
  std::string bytes;
  bytes.reserve(count + 8);
  for (uint64_t word = begin / 8; bytes.size() < count + 8; ++word) {
    const uint64_t value = word * 8;
    bytes.append(reinterpret_cast<const char*>(&value), 8);
  }
  return bytes.substr(begin % 8, count);
}

// What is tried at every byte needs no sanitizer, which makes it take minutes: there at every so
// many bytes.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kStride = 53;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 13;
#else
constexpr uint64_t kStride = 1;
#endif

struct ReadBack {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;
  uint32_t damaged = 0;  // entries of the index
  std::vector<Loss> losses;
};

class RingFixture {
 protected:
  static constexpr const char* kPrefix = "dir/ring";

  explicit RingFixture(Compress compress) : compress_(compress) { disk_.watched = kPrefix; }

  void Create(const char* size, const char* keep) {
    auto plan = PlanRing(size, keep, NameOf(kPrefix).size(), compress_);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan_ = *plan;
    auto store = RingStore::Create(disk_, clock_, kPrefix, "stdout", plan_, 7);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(*store);
  }
  Status TryCreate() {
    store_.reset();
    auto plan = PlanRing("64K", "1", NameOf(kPrefix).size(), compress_);
    return RingStore::Create(disk_, clock_, kPrefix, "stdout", *plan, 8).status();
  }
  void Produce(uint64_t count) {
    const size_t taken = store_->Append(OffsetBytes(produced_, count), clock_.Monotonic());
    if (taken < count) store_->Lose(count - taken, store_->last_error());
    produced_ += count;
  }
  // Reads everything and checks each byte against its offset.
  ReadBack ReadAll(const std::string& prefix = kPrefix, size_t limit = 1u << 20) {
    ReadBack result;
    auto reader = BlockReader::Open(disk_, prefix);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    if (!reader.ok()) return result;
    result.begin = reader->position();
    for (;;) {
      const auto event = reader->Next(limit);
      if (event == BlockReader::Event::kEnd) break;
      if (event == BlockReader::Event::kLoss) {
        result.losses.push_back(reader->loss());
        continue;
      }
      const std::string expected = OffsetBytes(reader->block_offset(), reader->block().size());
      EXPECT_EQ(reader->block(), expected) << "at " << reader->block_offset();
      result.bytes += reader->block().size();
    }
    result.end = reader->position();
    result.damaged = reader->damaged_segments();
    return result;
  }

  // What a killed recorder left behind, gone on with.
  void Resume() {
    store_.reset();
    auto store = RingStore::Resume(disk_, clock_, kPrefix);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(*store);
  }

  const Compress compress_;
  FakeFileSystem disk_;
  FakeClock clock_;
  RingGeometry plan_;
  std::unique_ptr<RingStore> store_;
  uint64_t produced_ = 0;
};

// What holds for plain and compressed rings alike.
class RingTest : public RingFixture, public ::testing::TestWithParam<Compress> {
 protected:
  RingTest() : RingFixture(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(, RingTest, ::testing::Values(Compress::kNone, Compress::kZstd),
                         [](const auto& instance) {
                           return instance.param == Compress::kNone ? "plain" : "zstd";
                         });

class PlainRingTest : public RingFixture, public ::testing::Test {
 protected:
  PlainRingTest() : RingFixture(Compress::kNone) {}
};

TEST_P(RingTest, ShortStreamComesBackWhole) {
  Create("64K", "1");
  Produce(1000);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.begin, 0u);
  EXPECT_EQ(back.end, 1000u);
  EXPECT_EQ(back.bytes, 1000u);
  EXPECT_TRUE(back.losses.empty());
}

TEST_F(PlainRingTest, AStampBeforeAllTimeDoesNotKeepTheNextOnesOut) {
  Create("1M", "1");
  Produce(1'000);
  std::string& index = disk_.BytesOf("dir/ring.index");
  IndexHeader header;
  std::memcpy(&header, index.data(), sizeof header);
  const size_t at = StampsAt(header.segment_count, header.stamps_per_segment, 0);
  IndexStamp stamp{0, std::numeric_limits<TimeNs>::min()};
  std::memcpy(index.data() + at, &stamp, sizeof stamp);
  Resume();
  clock_.Advance(100 * kSecond);
  Produce(1'000);
  std::memcpy(&stamp, disk_.BytesOf("dir/ring.index").data() + at, sizeof stamp);
  EXPECT_EQ(stamp.time, clock_.Monotonic());
}

TEST_P(RingTest, WallClockThatIsSetBackChangesNothing) {
  const auto recorded = [&](TimeNs jump, TimeNs between) {
    FakeFileSystem disk;
    FakeClock clock;
    auto plan = PlanRing("1M", "1", NameOf(kPrefix).size(), compress_);
    auto created = RingStore::Create(disk, clock, kPrefix, "stdout", *plan, 8);
    auto store = std::move(*created);
    for (uint64_t i = 0; i < 20; ++i) {
      if (i == 10) clock.JumpWall(jump);
      EXPECT_EQ(store->Append(OffsetBytes(i * 1000, 1000), clock.Monotonic()), 1000u);
      clock.Advance(between);
    }
    store.reset();
    return disk.BytesOf("dir/ring.index");
  };
  const std::string index = recorded(0, kSecond);
  EXPECT_TRUE(recorded(-7200 * kSecond, kSecond) == index);
  EXPECT_TRUE(recorded(7200 * kSecond, kSecond) == index);
  EXPECT_FALSE(recorded(0, 2 * kSecond) == index) << "no time is in it";
}

TEST_F(PlainRingTest, SegmentsHoldStreamBytesAndNothingElse) {
  Create("64K", "1");
  Produce(1000);
  EXPECT_EQ(disk_.BytesOf("dir/ring.0"), OffsetBytes(0, 1000));
  EXPECT_EQ(disk_.BytesOf("dir/ring.current"), "ring.0");
}

// The bound holds at every instant (the disk watches every write), and at least
// 95 % of it is history once the ring has been full, whatever the chunks.
TEST_P(RingTest, BoundAndHistoryForAnyChunk) {
  for (const uint64_t chunk : {1u, 7u, 100u, 4096u, 65536u, 1048576u}) {
    for (const auto& [size, keep] :
         {std::pair("64K", "1"), {"64K", "3"}, {"1M", "1"}, {"700000", "3"}}) {
      SCOPED_TRACE(std::to_string(chunk) + " bytes at a time into " + size + " x " + keep);
      // Small ones fill the larger rings no differently, in hundreds of times as many steps.
      if (chunk < 4096 && (std::string(size) != "64K" || (chunk < 100 && std::string(keep) != "1")))
        continue;
      store_.reset();
      disk_.Clear();
      produced_ = 0;
      Create(size, keep);
      while (produced_ < 2 * plan_.bound_bytes + 12345) Produce(chunk);
      EXPECT_LE(disk_.peak, plan_.bound_bytes);
      // From here on each state is a full one.
      for (int i = 0; i < 40; ++i) {
        Produce(chunk);
        const RingFill fill = store_->fill();
        EXPECT_GE(fill.history_bytes * 100, plan_.bound_bytes * 95) << "after " << produced_;
      }
      const ReadBack back = ReadAll();
      EXPECT_EQ(back.end, produced_);
      EXPECT_EQ(back.bytes, store_->fill().history_bytes);
      EXPECT_TRUE(back.losses.empty());
      EXPECT_LE(disk_.peak, plan_.bound_bytes);
    }
  }
}

TEST_P(RingTest, RandomChunksAndReadSizes) {
  Create("96K", "1");
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Produce(1 + random() % (random() % 4 == 0 ? 50'000 : 300));
    const ReadBack back = ReadAll(kPrefix, 1 + random() % 5000);
    ASSERT_EQ(back.end, produced_);
    ASSERT_TRUE(back.losses.empty());
  }
  EXPECT_LE(disk_.peak, plan_.bound_bytes);
}

// A disk that fills before the ring does: the oldest gives way to the newest.
TEST_P(RingTest, FullDiskKeepsTheNewest) {
  Create("256K", "1");
  Produce(90'000);
  disk_.capacity = disk_.Used() + 1000;
  for (int i = 0; i < 40; ++i) Produce(5'000);
  EXPECT_EQ(store_->fill().lost_bytes, 0u);
  const ReadBack full = ReadAll();
  EXPECT_EQ(full.end, produced_);
  EXPECT_GT(full.begin, 0u);
  EXPECT_GE(full.bytes, 40'000u);
  EXPECT_TRUE(full.losses.empty());
  disk_.capacity = 1u << 30;
  clock_.Advance(2 * kSecond);
  for (int i = 0; i < 400; ++i) Produce(5'000);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.end, produced_);
  EXPECT_GE(back.bytes * 100, plan_.bound_bytes * 95);
  EXPECT_TRUE(back.losses.empty());
  EXPECT_LE(disk_.peak, plan_.bound_bytes);
}

// A snapshot holds all there is, so that nothing can give way.
TEST_P(RingTest, DiskThatRefusesLosesCountsAndGoesOn) {
  Create("256K", "1");
  Produce(90'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/snap").ok());
  ASSERT_TRUE(store_->Freeze("dir/snap").ok());
  disk_.capacity = disk_.Used();
  for (int i = 0; i < 40; ++i) Produce(5'000);
  const RingFill full = store_->fill();
  EXPECT_EQ(full.total_bytes, 290'000u);
  EXPECT_GT(full.lost_bytes, 140'000u);
  EXPECT_EQ(full.lost_errno, ENOSPC);
  disk_.capacity = 1u << 30;
  clock_.Advance(2 * kSecond);
  Produce(5'000);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.end, produced_);
  uint64_t missing = 0;
  for (const Loss& loss : back.losses) {
    EXPECT_EQ(loss.reason, LossReason::kNotWritten);
    missing += loss.bytes();
  }
  EXPECT_EQ(missing, full.lost_bytes);
  EXPECT_EQ(back.bytes + full.lost_bytes + back.begin, produced_);
}

TEST_P(RingTest, ReadOnlyDiskLosesCountsAndResumes) {
  Create("256K", "1");
  Produce(30'000);
  disk_.write_error = EROFS;
  for (int i = 0; i < 10; ++i) Produce(1'000);
  const RingFill meanwhile = store_->fill();
  EXPECT_TRUE(meanwhile.failing);
  EXPECT_EQ(meanwhile.lost_errno, EROFS);
  EXPECT_EQ(meanwhile.lost_bytes, 10'000u);
  disk_.write_error = 0;
  Produce(30'000);
  EXPECT_FALSE(store_->fill().failing);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.end, produced_);
  EXPECT_EQ(back.bytes, 60'000u);
  uint64_t missing = 0;
  for (const Loss& loss : back.losses) missing += loss.bytes();
  EXPECT_EQ(missing, 10'000u);
}

TEST_P(RingTest, VanishedFolderComesBack) {
  Create("64K", "1");
  Produce(20'000);
  disk_.Clear();
  for (int i = 0; i < 30; ++i) Produce(1'000);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.end, produced_);
  EXPECT_GT(back.bytes, 10'000u);
  EXPECT_EQ(store_->fill().lost_errno, ENOENT);
  EXPECT_GT(store_->fill().lost_bytes, 0u);
}

TEST_P(RingTest, LossAtTheVeryEndIsTold) {
  Create("256K", "1");
  Produce(1000);
  store_->Lose(500, EIO);
  const ReadBack back = ReadAll();
  ASSERT_EQ(back.losses.size(), 1u);
  EXPECT_EQ(back.losses[0].begin, 1000u);
  EXPECT_EQ(back.losses[0].end, 1500u);
  EXPECT_EQ(store_->fill().lost_errno, EIO);
}

TEST_P(RingTest, FrozenWindowStaysWhileTheRingGoesOn) {
  Create("64K", "2");
  Produce(200'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/snap").ok());
  ASSERT_TRUE(store_->Freeze("dir/snap").ok());
  const uint64_t frozen_at = produced_;
  const ReadBack before = ReadAll("dir/snap/stdout");
  EXPECT_EQ(before.end, frozen_at);
  EXPECT_GE(before.bytes * 100, plan_.bound_bytes * 95);
  for (int i = 0; i < 100; ++i) Produce(4000);
  const ReadBack after = ReadAll("dir/snap/stdout");
  EXPECT_EQ(after.begin, before.begin);
  EXPECT_EQ(after.end, frozen_at);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(ReadAll().end, produced_);
  EXPECT_LE(disk_.peak, plan_.bound_bytes);
}

TEST_P(RingTest, FreezeWithoutHardLinksCopies) {
  disk_.has_hard_links = false;
  Create("64K", "1");
  Produce(100'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/snap").ok());
  ASSERT_TRUE(store_->Freeze("dir/snap").ok());
  Produce(100'000);
  EXPECT_EQ(ReadAll("dir/snap/stdout").end, 100'000u);
}

TEST_F(PlainRingTest, FreezeOnAFullDiskLinksTheSegmentThatIsBeingFilled) {
  Create("1M", "1");
  Produce(20'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/snap").ok());
  disk_.capacity = disk_.Used() + plan_.index_bytes() + 500;  // no room for a copy
  ASSERT_TRUE(store_->Freeze("dir/snap").ok());
  disk_.capacity = UINT64_MAX;
  Produce(1'000);
  EXPECT_EQ(ReadAll("dir/snap/stdout").bytes, 20'000u);
  EXPECT_EQ(ReadAll().bytes, 21'000u);
}

TEST_P(RingTest, RingGoesOnWithItsHistoryAfterAFreeze) {
  Create("64K", "4");
  Produce(500'000);
  const uint64_t begin = ReadAll().begin;
  ASSERT_TRUE(disk_.MakeFolders("dir/snap").ok());
  ASSERT_TRUE(store_->Freeze("dir/snap").ok());
  EXPECT_EQ(ReadAll().begin, begin);
}

TEST_P(RingTest, ManySnapshotsInARowCostNoHistory) {
  Create("64K", "4");
  Produce(500'000);
  for (int i = 0; i < 200; ++i) {
    const std::string folder = "dir/snap" + std::to_string(i);
    ASSERT_TRUE(disk_.MakeFolders(folder).ok());
    ASSERT_TRUE(store_->Freeze(folder).ok());
    const ReadBack pinned = ReadAll(folder + "/stdout");
    EXPECT_EQ(pinned.end, produced_);
    ASSERT_TRUE(disk_.RemoveFolder(folder).ok());
    Produce(100);
    EXPECT_GE(ReadAll().bytes * 100, plan_.bound_bytes * 95) << i;
  }
  EXPECT_LE(disk_.peak, plan_.bound_bytes);
}

TEST_P(RingTest, EarlierRunsFilesAreGone) {
  Create("1M", "1");
  Produce(plan_.bound_bytes);
  store_.reset();
  ASSERT_TRUE(WriteWholeFile(disk_, "dir/ring.snapshot", "of tee").ok());
  for (const char* name : {"dir/ringer.1", "dir/ring.77", "dir/ring.07", "dir/ring.txt"})
    ASSERT_TRUE(WriteWholeFile(disk_, name, "mine").ok());
  Create("64K", "1");
  produced_ = 0;
  Produce(10);
  EXPECT_FALSE(disk_.Exists("dir/ring.20"));
  EXPECT_FALSE(disk_.Exists("dir/ring.20.zst"));
  EXPECT_FALSE(disk_.Exists("dir/ring.snapshot"));
  // The ring never had these.
  for (const char* name : {"dir/ringer.1", "dir/ring.77", "dir/ring.07", "dir/ring.txt"})
    EXPECT_TRUE(disk_.Exists(name)) << name;
  EXPECT_EQ(ReadAll().bytes, 10u);
}

TEST_P(RingTest, NamesThatOthersHaveTakenAreRefusedAndLeftAsTheyAre) {
  for (const char* name : {"dir/ring.0", "dir/ring.31", "dir/ring.3.zst", "dir/ring.tail",
                           "dir/ring.next", "dir/ring.current", "dir/ring.snapshot"}) {
    ASSERT_TRUE(WriteWholeFile(disk_, name, "mine").ok());
    const Status status = TryCreate();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_EQ(disk_.BytesOf(name), "mine");
    EXPECT_FALSE(disk_.Exists("dir/ring.index"));
    ASSERT_TRUE(disk_.Remove(name).ok());
  }
  EXPECT_TRUE(TryCreate().ok());
}

TEST_P(RingTest, AnIndexThatIsNoneOrAnotherUsersIsRefused) {
  ASSERT_TRUE(WriteWholeFile(disk_, "dir/ring.index", "a list of books").ok());
  EXPECT_NE(TryCreate().message().find("'dir/ring.index' is not the index"), std::string::npos);
  EXPECT_EQ(disk_.BytesOf("dir/ring.index"), "a list of books");
  ASSERT_TRUE(disk_.Remove("dir/ring.index").ok());
  Create("64K", "1");
  Produce(10);
  store_.reset();
  const auto before = disk_.Save();
  ASSERT_TRUE(disk_.Link("dir/ring.index", "elsewhere").ok());
  EXPECT_NE(TryCreate().message().find("this user"), std::string::npos);
  ASSERT_TRUE(disk_.Remove("elsewhere").ok());
  disk_.GiveAway("dir/ring.index");
  EXPECT_NE(TryCreate().message().find("this user"), std::string::npos);
  EXPECT_EQ(disk_.Save(), before);
}

TEST_P(RingTest, OnlyARingThatNobodyRecordsIntoIsRemoved) {
  Create("64K", "1");
  Produce(plan_.bound_bytes);
  ASSERT_TRUE(WriteWholeFile(disk_, "dir/ring.txt", "mine").ok());
  EXPECT_EQ(RemoveRing(disk_, kPrefix).code(), Status::Code::kBusy);
  store_.reset();
  EXPECT_TRUE(RemoveRing(disk_, kPrefix).ok());
  EXPECT_EQ(disk_.List("dir"), std::vector<std::string>{"ring.txt"});
}

TEST_P(RingTest, SecondRecorderOfTheSameRingIsRefused) {
  Create("64K", "1");
  const auto second = RingStore::Create(disk_, clock_, kPrefix, "stdout", plan_, 8);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Status::Code::kBusy);
  EXPECT_NE(second.status().message().find("--prefix"), std::string::npos);
}

TEST_P(RingTest, StampsTellWhenABytesArrived) {
  Create("1M", "1");
  for (int second = 0; second < 50; ++second) {
    Produce(1000);
    clock_.Advance(kSecond);
  }
  auto reader = BlockReader::Open(disk_, kPrefix);
  ASSERT_TRUE(reader.ok());
  const TimeNs start = reader->header().start_monotonic;
  for (const uint64_t at : {0u, 1000u, 25'500u, 49'999u}) {
    const auto time = reader->TimeOf(at);
    ASSERT_TRUE(time.has_value());
    EXPECT_LE(*time, start + static_cast<TimeNs>(at / 1000) * kSecond);
    EXPECT_GE(*time, start + static_cast<TimeNs>(at / 1000) * kSecond - 8 * kSecond) << at;
  }
}

TEST_P(RingTest, ReaderThatIsLappedLosesNothingSilently) {
  Create("64K", "1");
  Produce(60'000);
  auto reader = BlockReader::Open(disk_, kPrefix);
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->Next(1000), BlockReader::Event::kBlock);
  uint64_t seen = reader->block().size();
  uint64_t lost = 0;
  Produce(900'000);  // laps the reader more than twice
  for (;;) {
    const auto event = reader->Next(1000);
    if (event == BlockReader::Event::kEnd) break;
    if (event == BlockReader::Event::kLoss) {
      lost += reader->loss().bytes();
      continue;
    }
    EXPECT_EQ(reader->block(), OffsetBytes(reader->block_offset(), reader->block().size()));
    seen += reader->block().size();
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(seen + lost, produced_);
}

TEST_P(RingTest, DamagedIndexIsRefusedOrCounted) {
  Create("64K", "1");
  Produce(50'000);
  std::string& index = disk_.BytesOf("dir/ring.index");
  const std::string good = index;
  std::mt19937 random(2);
  int refused = 0;
  for (size_t at = 0; at < SlotAt(plan_.segment_count); ++at) {
    index = good;
    index[at] = static_cast<char>(index[at] ^ (1 << random() % 8));
    auto reader = BlockReader::Open(disk_, kPrefix);
    if (!reader.ok()) {
      ++refused;
      EXPECT_FALSE(reader.status().message().empty());
      continue;
    }
    uint64_t accounted = reader->position();
    for (;;) {
      const auto event = reader->Next();
      if (event == BlockReader::Event::kEnd) break;
      if (event == BlockReader::Event::kLoss) accounted += reader->loss().bytes();
      if (event == BlockReader::Event::kBlock) {
        ASSERT_EQ(reader->block(), OffsetBytes(reader->block_offset(), reader->block().size()));
        accounted += reader->block().size();
      }
    }
    EXPECT_LE(accounted, 50'000u);
  }
  EXPECT_EQ(refused, 128);  // each bit of the header counts
}

// A check is no proof: the numbers behind it are looked at before memory is asked for.
TEST_P(RingTest, ImpossibleHeaderIsRefusedByReaderAndSuccessor) {
  Create("64K", "1");
  Produce(50'000);
  store_.reset();
  IndexHeader good;
  std::string& index = disk_.BytesOf("dir/ring.index");
  std::memcpy(&good, index.data(), sizeof good);
  std::vector<IndexHeader> bad(6, good);
  bad[0].segment_count = UINT32_MAX;
  bad[1].segment_count = 0;
  bad[2].stamps_per_segment = UINT32_MAX;
  bad[3].segment_bytes = uint64_t{1} << 62;
  bad[4].segment_bytes = bad[4].bound_bytes = uint64_t{1} << 63;
  bad[5].stamps_per_segment = 0;  // each stamp would double the interval
  for (IndexHeader& header : bad) {
    header.check = CheckOf(header);
    std::memcpy(index.data(), &header, sizeof header);
    EXPECT_EQ(BlockReader::Open(disk_, kPrefix).status().code(), Status::Code::kCorrupt);
    EXPECT_EQ(RingStore::Resume(disk_, clock_, kPrefix).status().code(), Status::Code::kCorrupt);
  }
}

// Somebody follows a ring when the next recorder takes its place, with more segments.
TEST_P(RingTest, ReaderLeftBehindByAnotherRecordingEnds) {
  Create("64K", "1");
  Produce(50'000);
  auto reader = BlockReader::Open(disk_, kPrefix);
  ASSERT_TRUE(reader.ok());
  store_.reset();
  Create("64M", "1");
  Produce(1'000);
  EXPECT_EQ(reader->Refresh().code(), Status::Code::kNotFound);
  uint64_t at = reader->position();
  while (reader->Next() != BlockReader::Event::kEnd) {
    EXPECT_GT(reader->position(), at);
    at = reader->position();
  }
  EXPECT_EQ(at, 50'000u);
}

TEST_F(PlainRingTest, TruncatedOrMissingSegmentIsALoss) {
  Create("64K", "1");
  Produce(50'000);
  disk_.BytesOf("dir/ring.3").resize(100);
  ASSERT_TRUE(disk_.Remove("dir/ring.5").ok());
  const ReadBack back = ReadAll();
  uint64_t lost = 0;
  for (const Loss& loss : back.losses) {
    EXPECT_EQ(loss.reason, LossReason::kUnreadable);
    lost += loss.bytes();
  }
  EXPECT_EQ(back.losses.size(), 2u);
  EXPECT_EQ(back.bytes + lost, 50'000u);
}

// The recorder is killed after any number of bytes that it wrote, whatever it was
// doing: what is left is read without repair, every byte is right, and a successor
// goes on behind the last one.
TEST_P(RingTest, TornWriteAtEveryByte) {
  Create("64K", "1");
  while (produced_ < 90'000) Produce(997);
  const FakeFileSystem::Files before = disk_.Save();
  const uint64_t produced_before = produced_;
  const auto go_on = [&] {
    for (int i = 0; i < 7; ++i) Produce(i % 3 == 0 ? 1'100 : 77);
  };
  disk_.CrashAfter(UINT64_MAX);
  go_on();
  const uint64_t whole = disk_.written_since();
  ASSERT_GT(whole, 3'000u);
  const uint64_t produced_whole = produced_;
  uint64_t newest = 0;
  int damaged_index = 0;
  for (uint64_t i = 0; i <= 2 * whole + 1; i += kStride) {
    const uint64_t cut = i % (whole + 1);
    disk_.atomic_bytes = i == cut ? 64 : 8;
    if (cut < kStride) newest = 0;
    SCOPED_TRACE("killed after " + std::to_string(cut) + " of " + std::to_string(whole) + " bytes");
    disk_.Restore(before);
    Resume();
    produced_ = produced_before;
    disk_.CrashAfter(cut);
    go_on();
    store_.reset();
    disk_.CrashAfter(UINT64_MAX);
    const ReadBack left = ReadAll();
    ASSERT_FALSE(::testing::Test::HasFailure());
    ASSERT_LE(left.end, produced_whole);
    if (left.damaged == 0) {
      ASSERT_GE(left.end, produced_before);
      ASSERT_EQ(left.bytes, left.end - left.begin);
      ASSERT_GE(left.end, newest) << "less than with an earlier cut";
      newest = left.end;
    } else {
      // Only if bytes that are written at once are torn; then one segment is gone.
      ASSERT_LT(disk_.atomic_bytes, 64u);
      ASSERT_EQ(left.damaged, 1u);
      ++damaged_index;
      continue;
    }
    Resume();
    ASSERT_GE(store_->head(), left.end);  // more: a frame whose slot was not yet written
    produced_ = store_->head();
    Produce(3'000);
    const ReadBack all = ReadAll();
    ASSERT_FALSE(::testing::Test::HasFailure());
    ASSERT_EQ(all.end, produced_);
    ASSERT_TRUE(all.losses.empty());
    store_.reset();
  }
  EXPECT_GT(damaged_index, 100 / static_cast<int>(kStride));
}

class ZstdRingTest : public RingFixture, public ::testing::Test {
 protected:
  ZstdRingTest() : RingFixture(Compress::kZstd) {}

  // What `zstdcat` prints of a file, or nothing if it is not valid zstd.
  static std::optional<std::string> Decompress(const std::string& file) {
    static std::string room(4u << 20, '\0');
    const size_t got = ZSTD_decompress(room.data(), room.size(), file.data(), file.size());
    if (ZSTD_isError(got) != 0) return std::nullopt;
    return room.substr(0, got);
  }
};

// A loss behind a tail that the disk does not take: the header tells of bytes behind it.
TEST_F(ZstdRingTest, TailBeforeALossThatWasNotFlushedIsGoneOnWith) {
  Create("1M", "1");
  Produce(1'000);
  disk_.capacity = disk_.Used();  // what is there may change, and no segment is made
  store_->Lose(100, ENOSPC);
  produced_ += 100;
  Resume();
  EXPECT_EQ(store_->head(), 1'100u);
  disk_.capacity = UINT64_MAX;
  Produce(500);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.end, 1'600u);
  EXPECT_EQ(back.bytes, 1'500u);
  ASSERT_EQ(back.losses.size(), 1u);
  EXPECT_EQ(back.losses[0].begin, 1'000u);
  EXPECT_EQ(back.losses[0].end, 1'100u);
  EXPECT_EQ(store_->fill().lost_bytes, 100u);
}

// The same where the ring was deleted under its recorder, which made a new index for the tail.
TEST_F(ZstdRingTest, TailOfARingThatWasReinstatedIsGoneOnWith) {
  Create("1M", "1");
  Produce(1'000);
  disk_.Clear();
  disk_.capacity = plan_.index_bytes() + plan_.block_bytes;
  const uint64_t taken = store_->Append(OffsetBytes(1'000, plan_.block_bytes), clock_.Monotonic());
  EXPECT_EQ(taken, plan_.block_bytes - 1'000);
  produced_ = plan_.block_bytes;
  Resume();
  EXPECT_EQ(store_->head(), produced_);
  disk_.capacity = UINT64_MAX;
  Produce(500);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.bytes, plan_.block_bytes + 500);
  EXPECT_TRUE(back.losses.empty());
  EXPECT_EQ(store_->fill().lost_bytes, 0u);
}

TEST_F(ZstdRingTest, SegmentsAreValidZstdAtEveryInstant) {
  Create("64K", "1");
  uint64_t looks = 0;
  disk_.after_write = [&] {
    for (const std::string& name : disk_.List("dir")) {
      if (!name.ends_with(".zst")) continue;
      ++looks;
      ASSERT_TRUE(Decompress(disk_.BytesOf("dir/" + name))) << name << " after " << produced_;
    }
  };
  for (int i = 0; i < 100; i += kStride == 1 ? 1 : 5)
    Produce(1 + static_cast<uint64_t>(i) * 37 % 3000);
  disk_.after_write = nullptr;
  EXPECT_GT(looks, 1000u / (kStride * kStride));
}

// The folder vanishes while the tail, which cannot be made a frame, has a loss behind it.
TEST_F(ZstdRingTest, TailAndTheLossBehindItSurviveAVanishedFolder) {
  Create("64K", "1");
  Produce(1000);
  disk_.write_error = EIO;
  store_->Lose(500, EIO);
  disk_.write_error = 0;
  disk_.Clear();
  disk_.capacity = plan_.index_bytes() + plan_.block_bytes;  // and no segment
  EXPECT_EQ(store_->Append("next", clock_.Monotonic()), 0u);
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.bytes, 1000u);
  EXPECT_EQ(back.end, 1500u);
  ASSERT_EQ(back.losses.size(), 1u);
  EXPECT_EQ(back.losses[0].begin, 1000u);
}

TEST_F(ZstdRingTest, FramesAndTailTogetherAreTheStream) {
  Create("64K", "16");
  Produce(100'000);
  std::string all;
  for (uint32_t k = 0; disk_.Exists(SegmentPath(kPrefix, k, Encoding::kZstd)); ++k) {
    all += *Decompress(disk_.BytesOf(SegmentPath(kPrefix, k, Encoding::kZstd)));
  }
  all += disk_.BytesOf("dir/ring.tail").substr(0, 100'000 - all.size());
  EXPECT_EQ(all, OffsetBytes(0, 100'000));
}

TEST_F(ZstdRingTest, AnyDamagedByteOfASegmentIsALossOrNothing) {
  Create("64K", "1");
  Produce(6'000);
  store_->Finish();
  std::string& segment = disk_.BytesOf("dir/ring.0.zst");
  const std::string good = segment;
  uint64_t damaged = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    segment = good;
    segment[at] = static_cast<char>(segment[at] ^ 0x10);
    const ReadBack back = ReadAll();
    uint64_t lost = 0;
    for (const Loss& loss : back.losses) lost += loss.bytes();
    ASSERT_EQ(back.bytes + lost, 6'000u) << at;
    damaged += lost > 0;
  }
  EXPECT_GT(damaged, good.size() / 2);
}

TEST(FrameDecoder, TakesNoMemoryForAFrameThatContradictsItsHead) {
  FrameEncoder encoder;
  const std::string framed(encoder.Encode(7, 0, "twelve bytes"));
  const auto head = ParseFrameHead(framed, 0, 7);
  ASSERT_TRUE(head.has_value());
  const std::string frame = framed.substr(head->frame_at);
  FrameDecoder decoder;
  std::string block;
  for (const std::string& bad : {frame, std::string(100, '\0'), std::string()}) {
    EXPECT_FALSE(decoder.Decode(bad, 64u << 20, &block));
    EXPECT_LT(block.capacity(), 1u << 20);
  }
  EXPECT_TRUE(decoder.Decode(frame, 12, &block));
  EXPECT_EQ(block, "twelve bytes");
}

TEST_F(ZstdRingTest, BlocksOfAnotherRunAreNotTakenForThisOnes) {
  Create("64K", "1");
  Produce(6'000);
  const std::string earlier = disk_.BytesOf("dir/ring.0.zst");
  store_.reset();
  auto store = RingStore::Create(disk_, clock_, kPrefix, "stdout", plan_, 8);
  ASSERT_TRUE(store.ok());
  store_ = std::move(*store);
  produced_ = 0;
  Produce(6'000);
  disk_.BytesOf("dir/ring.0.zst") = earlier;  // as a disk may after a power cut
  const ReadBack back = ReadAll();
  uint64_t lost = 0;
  for (const Loss& loss : back.losses) lost += loss.bytes();
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(back.bytes + lost, 6'000u);
}

TEST_F(ZstdRingTest, AutoFallsBackToPlainUnderPressureAndReturns) {
  plan_ = *PlanRing("8M", "1", 4, Compress::kAuto);
  ASSERT_EQ(plan_.compress, Compress::kAuto);
  store_ = std::move(*RingStore::Create(disk_, clock_, kPrefix, "stdout", plan_, 7));
  const auto produce = [&] {
    for (int i = 0; i < 40; ++i) Produce(10'000);
  };
  produce();
  EXPECT_FALSE(store_->fill().gave_up_compression);
  store_->SetPressed(true);
  produce();
  EXPECT_TRUE(store_->fill().gave_up_compression);
  EXPECT_TRUE(disk_.Exists("dir/ring.1"));
  store_->SetPressed(false);
  produce();
  EXPECT_TRUE(disk_.Exists("dir/ring.3.zst"));
  const ReadBack back = ReadAll();
  EXPECT_EQ(back.bytes, produced_);
  EXPECT_TRUE(back.losses.empty());
}

TEST_P(RingTest, SnapshotSinceTheLastSharesNoByteWithIt) {
  Create("64K", "2");
  Produce(100'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/one").ok());
  ASSERT_TRUE(store_->Freeze("dir/one").ok());
  const ReadBack one = ReadAll("dir/one/stdout");
  Produce(30'000);
  ASSERT_TRUE(disk_.MakeFolders("dir/two").ok());
  ASSERT_TRUE(store_->Freeze("dir/two", one.end).ok());
  const ReadBack two = ReadAll("dir/two/stdout");
  EXPECT_EQ(two.begin, one.end);
  EXPECT_EQ(two.bytes, 30'000u);
  EXPECT_EQ(two.end, produced_);
}

TEST(PlanRing, RefusesNonsense) {
  const struct {
    const char* size;
    const char* keep;
    const char* reason;
  } kCases[] = {
      {"500M", "0", "at least one"},
      {"500M", "-1", "at least one"},
      {"500M", "1.5", "whole number"},
      {"500M", "x", "whole number"},
      {"1K", "3", "smallest is 64 KiB"},
      {"1000000T", "1000000", "larger than any disk"},
      {"129T", "1", "larger than any disk"},
      {"0", "3", "holds nothing"},
      {"500M", "99999999999999999999", "whole number"},
  };
  for (const auto& c : kCases) {
    const auto plan = PlanRing(c.size, c.keep, 10);
    ASSERT_FALSE(plan.ok()) << c.size << " x " << c.keep;
    EXPECT_NE(plan.status().message().find(c.reason), std::string::npos) << plan.status().message();
    EXPECT_NE(plan.status().message().find("for example"), std::string::npos);
  }
}

TEST(PlanRing, FitsTheBoundFromTheSmallestToTheLargest) {
  for (uint64_t size = kSmallestRing; size <= uint64_t{1} << 47; size = size * 17 / 10 + 3) {
    const auto plan = PlanRing(std::to_string(size), "1", 40);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(plan->index_bytes() + plan->segment_count * plan->segment_bytes + 2 * 40, size);
    EXPECT_GE(plan->segment_count, 32u);
    EXPECT_LE(plan->segment_count, kMostSegments);
    EXPECT_GE(plan->segment_count * plan->segment_bytes - plan->reserve_bytes, size / 100 * 95)
        << size;
  }
}

}  // namespace
}  // namespace hangscope

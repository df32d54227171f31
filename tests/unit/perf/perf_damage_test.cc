// Behind a damage the records that are whole are read, and what was skipped is told; nothing is
// taken for a record that is none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "fakes/fake_file_system.h"
#include "fakes/tick_image.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kTickBytes = 56;

class PerfDamageTest : public ::testing::Test {
 protected:
  PerfDamageTest() { EXPECT_EQ(TickImage::Tick(0).size(), kTickBytes); }
  void AddTicks(int count) {
    for (int i = 0; i < count; ++i) image_.records.push_back(TickImage::Tick(i));
  }
  std::vector<int> Ticks(const std::string& bytes) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", bytes).ok());
    auto file = PerfFile::Open(files_, "perf.data");
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return {-3};
    file_ = std::move(*file);
    return TickImage::TicksOf(*file_);
  }
  const std::vector<std::string>& Warnings() { return file_->facts().warnings; }
  static std::vector<int> UpToBut(int end, const std::set<int>& without) {
    std::vector<int> counts;
    for (int i = 0; i < end; ++i) {
      if (!without.contains(i)) counts.push_back(i);
    }
    return counts;
  }
  // Where the record `number` begins.
  static uint64_t At(uint64_t begin, int number) {
    return begin + kTickBytes * static_cast<uint64_t>(number);
  }
  static void SetSize(std::string* bytes, uint64_t record, uint16_t size) {
    std::memcpy(bytes->data() + record + 6, &size, sizeof size);
  }

  TickImage image_;
  FakeFileSystem files_;
  std::unique_ptr<PerfFile> file_;
};

TEST_F(PerfDamageTest, GoesOnBehindARecordWithoutAHeader) {
  AddTicks(20);
  uint64_t begin = 0;
  std::string bytes = image_.File(&begin);
  std::memset(bytes.data() + At(begin, 7), 0, 8);
  EXPECT_EQ(Ticks(bytes), UpToBut(20, {7}));
  EXPECT_THAT(
      Warnings(),
      ElementsAre(fmt::format(
          "at offset {} is no record: 56 bytes are skipped, up to offset {}, where records go on",
          At(begin, 7), At(begin, 8))));
}

TEST_F(PerfDamageTest, FindsTheRecordsThatAWrongSizeSwallowed) {
  AddTicks(600);
  uint64_t begin = 0;
  for (const uint16_t size :
       {uint16_t{0}, uint16_t{7}, uint16_t{48}, uint16_t{64}, uint16_t{0x2038}, uint16_t{0xfff8}}) {
    std::string bytes = image_.File(&begin);
    SetSize(&bytes, At(begin, 7), size);
    EXPECT_EQ(Ticks(bytes), UpToBut(600, {7})) << size;
    EXPECT_THAT(Warnings(), testing::Contains(HasSubstr("bytes are skipped"))) << size;
  }
}

TEST_F(PerfDamageTest, GoesOnInAStream) {
  AddTicks(20);
  std::string bytes = image_.Pipe();
  const uint64_t begin = bytes.size() - 20 * kTickBytes;
  std::memset(bytes.data() + At(begin, 7), 0xee, 2 * kTickBytes);
  EXPECT_EQ(Ticks(bytes), UpToBut(20, {7, 8}));
}

TEST_F(PerfDamageTest, GoesOnBehindBytesThatAreNoMultipleOfAWord) {
  AddTicks(20);
  image_.records[7] = "someone wrote into it";
  EXPECT_EQ(Ticks(image_.File()), UpToBut(20, {7}));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("21 bytes are skipped")));
}

TEST_F(PerfDamageTest, ReadsTheLastRecordsBehindADamage) {
  for (const int after : {1, 2, 3}) {
    image_.records.clear();
    AddTicks(10 + after);
    uint64_t begin = 0;
    std::string bytes = image_.File(&begin);
    std::memset(bytes.data() + At(begin, 9), 0, 8);
    EXPECT_EQ(Ticks(bytes), UpToBut(10 + after, {9})) << after;
  }
}

TEST_F(PerfDamageTest, FindsWhatAWrongSizeOfATraceSwallowed) {
  AddTicks(20);
  const auto auxtrace = [](uint64_t said) {
    return PerfRecordOf(kPerfAuxtrace,
                        PerfWord(said) + PerfWord(0) + PerfWord(5) + PerfBytes(3u, 44, 6, 0u)) +
           std::string(64, 'x');
  };
  for (const uint64_t said :
       {uint64_t{0}, uint64_t{8}, uint64_t{72}, uint64_t{500}, uint64_t{1} << 40, ~uint64_t{0}}) {
    image_.records[7] = auxtrace(said);
    EXPECT_EQ(Ticks(image_.File()), UpToBut(20, {7})) << said;
    EXPECT_THAT(Warnings(), testing::Contains(HasSubstr("skipped"))) << said;
  }
  image_.records[7] = auxtrace(64);
  EXPECT_EQ(Ticks(image_.File()), UpToBut(20, {7}));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(PerfDamageTest, SumsUpManyDamages) {
  AddTicks(200);
  uint64_t begin = 0;
  std::string bytes = image_.File(&begin);
  std::set<int> damaged;
  for (int i = 5; i < 200; i += 10) {
    std::memset(bytes.data() + At(begin, i), 0, 8);
    damaged.insert(i);
  }
  EXPECT_EQ(Ticks(bytes), UpToBut(200, damaged));
  ASSERT_EQ(Warnings().size(), 11u);
  EXPECT_EQ(Warnings().back(), "20 places in all are damaged: 1120 bytes are skipped");
}

// Wherever and whatever it is: what is lost is what was damaged, and at most a few records behind
// that; and nothing comes twice, or out of nowhere.
TEST_F(PerfDamageTest, LosesLittleMoreThanWhatWasDamaged) {
  constexpr int kTicks = 400;
  constexpr int kMostLostBehind = 3;
  AddTicks(kTicks);
  std::mt19937 random(7);
#ifdef __SANITIZE_THREAD__
  constexpr int kRounds = 50;
#else
  constexpr int kRounds = 1000;
#endif
  for (int round = 0; round < kRounds; ++round) {
    uint64_t begin = 0;
    const std::string whole = image_.File(&begin);
    std::string bytes = whole;
    const int places = 1 + static_cast<int>(random() % 5);
    for (int i = 0; i < places; ++i) {
      const uint64_t at = begin + random() % (kTicks * kTickBytes);
      const uint64_t length =
          std::min<uint64_t>(1 + random() % 200, begin + kTicks * kTickBytes - at);
      for (uint64_t k = 0; k < length; ++k)
        bytes[at + k] = random() % 3 == 0 ? '\0' : static_cast<char>(random());
    }
    std::set<int> intact;
    for (int i = 0; i < kTicks; ++i) {
      if (whole.compare(At(begin, i), kTickBytes, bytes, At(begin, i), kTickBytes) == 0)
        intact.insert(i);
    }
    const std::vector<int> read = Ticks(bytes);
    std::vector<int> from_nowhere;
    int last = -1;
    std::set<int> missing = intact;
    for (const int tick : read) {
      if (missing.erase(tick) == 0) {
        from_nowhere.push_back(tick);
        continue;
      }
      ASSERT_GT(tick, last) << round;
      last = tick;
    }
    ASSERT_LE(missing.size(), static_cast<size_t>(places * kMostLostBehind)) << round;
    // Of a damaged record the header may be whole.
    ASSERT_LE(from_nowhere.size(), static_cast<size_t>(kTicks) - intact.size()) << round;
  }
}

TEST_F(PerfDamageTest, FindsNoRecordInRandomBytes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 4; ++round) {
    std::string bytes(1 << 20, '\0');
    for (size_t i = 0; i < bytes.size(); i += 8) {
      // Small numbers are what headers are made of.
      const uint64_t word = round % 2 == 0 ? random() : random() & 0x00ff'00ff'0000'00ff;
      std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    bytes.replace(0, 8, std::string(8, '\xff'));
    image_.records = {bytes};
    image_.features.clear();
    EXPECT_THAT(Ticks(image_.File()), IsEmpty()) << round;
    EXPECT_THAT(Warnings(), testing::Contains(HasSubstr("is no record"))) << round;
  }
}

TEST_F(PerfDamageTest, PassesOverTheRecordsOfSimpleperf) {
  AddTicks(10);
  image_.records[2] = PerfRecordOf(32769, std::string(40, 's'));
  // Of 65536 bytes and more the upper half of the size is in the type.
  image_.records[5] = PerfBytes(uint32_t{32771} | 0x10000, uint16_t{0}, uint16_t{16}) +
                      std::string(0x10000 + 8, 'l');
  image_.records[7] = PerfBytes(uint32_t{32772} | 0x20000, uint16_t{0}, uint16_t{0}) +
                      std::string(0x20000 - 8, 'm');
  EXPECT_EQ(Ticks(image_.File()), UpToBut(10, {2, 5, 7}));
  EXPECT_THAT(Warnings(), IsEmpty());
}

// As simpleperf wrote them: perf has these bytes behind the record.
TEST_F(PerfDamageTest, ReadsFormatsThatAreInTheirRecord) {
  const std::string formats = PerfTracingData("made", {kTickFormat});
  std::string body = PerfBytes(static_cast<uint32_t>(formats.size())) + formats;
  body.resize((body.size() + 7) / 8 * 8);
  AddTicks(5);
  image_.records.insert(image_.records.begin(), PerfRecordOf(kPerfHeaderTracingData, body));
  image_.features.clear();
  EXPECT_EQ(Ticks(image_.File()), UpToBut(5, {}));
  EXPECT_EQ(file_->events()[0].format, kTickFormat);
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(PerfDamageTest, CallsOnlyWhatIsCompressedSo) {
  AddTicks(1);
  for (const uint32_t how : {0u, 1u}) {
    image_.features[kPerfFeatureCompressed] = PerfBytes(1u, how, 1u, 1u, 0u);
    EXPECT_EQ(Ticks(image_.File()), UpToBut(1, {}));
    EXPECT_EQ(file_->facts().compressed, how == 1) << how;
  }
}

}  // namespace
}  // namespace hangscope

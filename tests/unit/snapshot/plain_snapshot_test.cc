// P.snapshot, written in the background from a snapshot that may go away meanwhile.
#include "snapshot/plain_snapshot.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/ring_store.h"

namespace hangscope {
namespace {

class PlainSnapshotTest : public ::testing::Test {
 protected:
  static constexpr const char* kFolder = "dir/x.snapshot-0001";
  static constexpr const char* kPlain = "dir/x.snapshot";

  // A snapshot of several segments.
  void SetUp() override {
    auto plan = PlanRing("1M", "1", 1, Compress::kNone);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    auto ring = RingStore::Create(disk_, clock_, "dir/x", "stdin", *plan, 7);
    ASSERT_TRUE(ring.ok()) << ring.status().message();
    for (int i = 0; i < 10; ++i) {
      const std::string bytes(50'000, static_cast<char>('a' + i));
      ASSERT_EQ((*ring)->Append(bytes, clock_.Monotonic()), bytes.size());
      history_ += bytes;
    }
    ASSERT_TRUE((*ring)->Freeze(kFolder).ok());
  }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::string history_;
};

TEST_F(PlainSnapshotTest, HasTheWholeHistory) {
  PlainSnapshot plain(disk_, kPlain, 1u << 20);
  plain.Write(std::string(kFolder) + "/stdin");
  plain.Finish();
  EXPECT_TRUE(plain.status().ok()) << plain.status().message();
  EXPECT_EQ(disk_.BytesOf(kPlain), history_);
}

TEST_F(PlainSnapshotTest, BeginsWithAWholeLineWhereThereAreLines) {
  auto plan = PlanRing("1M", "1", 1, Compress::kNone);
  auto ring = std::move(*RingStore::Create(disk_, clock_, "dir/lines", "stdin", *plan, 7));
  for (int i = 0; i < 10'000; ++i) ring->Append("a line\n", clock_.Monotonic());
  ASSERT_TRUE(ring->Freeze("dir/lines.snapshot-0001").ok());
  PlainSnapshot plain(disk_, kPlain, 7 * 100 + 3);
  plain.Write("dir/lines.snapshot-0001/stdin");
  plain.Finish();
  const std::string bytes = disk_.BytesOf(kPlain);
  EXPECT_EQ(bytes.size(), 700u);
  EXPECT_EQ(bytes.substr(0, 8), "a line\na");

  PlainSnapshot cut(disk_, kPlain, 333);
  cut.Write(std::string(kFolder) + "/stdin");
  cut.Finish();
  EXPECT_EQ(disk_.BytesOf(kPlain).size(), 333u);
}

TEST_F(PlainSnapshotTest, OfASnapshotThatIsPushedOutMeanwhileThereIsNone) {
  // After the first block it moves out of the way, as a newer one makes it.
  disk_.after_write = [this] {
    disk_.after_write = nullptr;
    (void)disk_.Rename(kFolder, std::string(kFolder) + ".partial").ok();
  };
  PlainSnapshot plain(disk_, kPlain, 1u << 20);
  plain.Write(std::string(kFolder) + "/stdin");
  plain.Finish();
  EXPECT_TRUE(plain.status().ok()) << plain.status().message();
  EXPECT_FALSE(disk_.Exists(kPlain));
  EXPECT_FALSE(disk_.Exists(std::string(kPlain) + "~"));
}

}  // namespace
}  // namespace hangscope

// The ends of real traces get their verdicts: tests/data/README.md.
#include <gtest/gtest.h>
#include <zstd.h>

#include <fstream>
#include <iterator>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/ring_store.h"
#include "stream/stream_analyst.h"

namespace hangscope {
namespace {

std::string ReadSample(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/" + name + ".log.zst", std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(file)), {});
  std::string text(64 << 20, '\0');
  const size_t size = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  EXPECT_FALSE(ZSTD_isError(size)) << name;
  text.resize(ZSTD_isError(size) ? 0 : size);
  return text;
}

class SamplesTest : public ::testing::Test {
 protected:
  using Motion = CoreFinding::Motion;

  void Load(const std::string& name) {
    auto plan = PlanRing("16M", "1", 10);
    auto store = RingStore::Create(disk_, clock_, "dir/" + name, "stdout", *plan, 7);
    (*store)->Append(ReadSample(name), clock_.Monotonic());
    auto reader = BlockReader::Open(disk_, "dir/" + name);
    ASSERT_TRUE(reader.ok());
    analyst_ = std::make_unique<StreamAnalyst>(std::move(*reader), nullptr, nullptr, 10 * kSecond);
    analyst_->Sample(clock_.Monotonic());
    proofs_ = analyst_->Prove(0, [] { return false; });
  }
  const CoreFinding& Core(const std::string& name) {
    for (const CoreTrack& track : analyst_->cores()) {
      if (track.name == name) return track.finding;
    }
    ADD_FAILURE() << "no core " << name;
    return analyst_->cores().front().finding;
  }
  std::string FunctionOf(const std::string& core) {
    return analyst_->code().PlaceOf(Core(core).loop.at(0)).function;
  }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::unique_ptr<StreamAnalyst> analyst_;
  std::vector<CoreProof> proofs_;
};

TEST_F(SamplesTest, GvsocHang) {
  Load("gvsoc-hang");
  EXPECT_EQ(analyst_->format(), TraceFormat::kGvsoc);
  const CoreFinding& core = Core("/soc/host");
  EXPECT_EQ(core.motion, Motion::kSpinning);
  EXPECT_EQ(core.basis, LoopBasis::kValues);
  EXPECT_EQ(core.loop, (std::vector<uint64_t>{0x80000108, 0x8000010a}));
  EXPECT_EQ(core.polls, std::vector<uint64_t>{0x8000b210});
  EXPECT_EQ(FunctionOf("/soc/host"), "cb_wait_front");
  EXPECT_GT(proofs_[0].rounds, 1000u);
  proofs_[0].looping = true;
  const auto ways = analyst_->FindWays(proofs_, [] { return false; });
  EXPECT_EQ(ways.at(0).cycle, 281566u) << "of the first step of the loop";
}

TEST_F(SamplesTest, GvsocProgress) {
  Load("gvsoc-progress");
  EXPECT_TRUE(analyst_->is_trace());
  EXPECT_FALSE(Core("/soc/host").IsLoop());
}

TEST_F(SamplesTest, QemuHangIsOnlyRepeatingWithoutAnElf) {
  Load("qemu-exec-3hart-hang");
  EXPECT_EQ(analyst_->format(), TraceFormat::kQemuExec);
  for (const char* hart : {"hart 0", "hart 1", "hart 2"})
    EXPECT_EQ(Core(hart).motion, Motion::kRepeating) << hart;
  EXPECT_EQ(FunctionOf("hart 0"), "cb_wait_front");
  EXPECT_EQ(FunctionOf("hart 1"), "noc_wait");
}

TEST_F(SamplesTest, QemuProgress) {
  Load("qemu-exec-3hart-progress");
  for (const char* hart : {"hart 0", "hart 1", "hart 2"})
    EXPECT_NE(Core(hart).motion, Motion::kSpinning) << hart;
}

TEST_F(SamplesTest, SpikeHang) {
  Load("spike-3hart-hang");
  EXPECT_EQ(analyst_->format(), TraceFormat::kSpike);
  EXPECT_EQ(Core("hart 0").loop, (std::vector<uint64_t>{0x80000104, 0x80000106}));
  for (const char* hart : {"hart 1", "hart 2"}) {
    EXPECT_EQ(Core(hart).motion, Motion::kSpinning) << hart;
    EXPECT_EQ(Core(hart).loop, (std::vector<uint64_t>{0x8000011c, 0x8000011e, 0x80000120}));
  }
}

TEST_F(SamplesTest, SpikeProgress) {
  Load("spike-3hart-progress");
  for (const char* hart : {"hart 0", "hart 1", "hart 2"}) EXPECT_FALSE(Core(hart).IsLoop()) << hart;
}

}  // namespace
}  // namespace hangscope

#include "stream/loop_proof.h"

#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/ring_store.h"

namespace hangscope {
namespace {

// Harts fall asleep at the start; long after that hart 0 begins to spin.
class SearchForSilentTest : public ::testing::Test {
 protected:
  SearchForSilentTest() {
    auto plan = PlanRing("64M", "1", 10);
    store_ = std::move(*RingStore::Create(disk_, clock_, "dir/trace", "stderr", *plan, 7));
    Print("Trace 3: 0x7f [0/80000020/0/0] park\n", 1);
    Print("Trace 1: 0x7f [0/80000010/0/0] boot\n", 9 << 20);
    sampled_ = size_;
    Print("Trace 1: 0x7f [0/80000010/0/0] boot\n", 1 << 20);
    Print("Trace 1: 0x7f [0/80000020/0/0] park\n", 1);
    Print("Trace 2: 0x7f [0/80000020/0/0] park\n", 1);
    Print("Trace 0: 0x7f [0/80000200/0/0] main\n", 20 << 20);
    Print("Trace 0: 0x7f [0/80000100/0/0] take\n", 2 << 20);
  }
  void Print(const std::string& line, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += line;
    store_->Append(text, clock_.Monotonic());
    size_ += text.size();
  }
  // What samples say of hart 0 and hart 1; nobody has heard of the others.
  std::vector<CoreProof> Prove(uint64_t search_bytes) {
    CoreFinding spins;
    spins.motion = CoreFinding::Motion::kSpinning;
    spins.loop = {0x80000100};
    spins.loop_places = {0x80000100};
    CoreFinding boots;
    boots.motion = CoreFinding::Motion::kMoving;
    boots.steps = 100;
    boots.last = {.pc = 0x80000010, .offset = sampled_};
    auto reader = BlockReader::Open(disk_, "dir/trace");
    ProgramCode code(nullptr);
    CoreNames cores;
    for (const char* line :
         {"Trace 0: 0x7f [0/80000200/0/0] main", "Trace 1: 0x7f [0/80000010/0/0] boot"})
      cores.Number(ParseTraceLine(line));
    return ProveLoops(
        *reader,
        [&cores](StepSource::Sink sink) {
          return std::make_unique<StepReader>(&cores, StepReader::Learn::kListings,
                                              std::move(sink));
        },
        {&spins, &boots}, code, UINT64_MAX, [] { return false; }, search_bytes);
  }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::unique_ptr<RingStore> store_;
  uint64_t size_ = 0;
  uint64_t sampled_ = 0;
};

TEST_F(SearchForSilentTest, WhatACoreDidLastIsSoughtFromItsLatestSampleOn) {
  const auto proofs = Prove(4 << 20);
  ASSERT_EQ(proofs.size(), 4u);
  EXPECT_EQ(proofs[0].last->pc, 0x80000100u);
  EXPECT_FALSE(proofs[0].at_least);
  ASSERT_TRUE(proofs[1].last);
  EXPECT_EQ(proofs[1].last->pc, 0x80000020u);
  EXPECT_EQ(proofs[1].lead_in.back().pc, 0x80000020u);
  for (const size_t unheard : {2, 3}) {
    ASSERT_TRUE(proofs[unheard].last);
    EXPECT_EQ(proofs[unheard].last->pc, 0x80000020u);
  }
}

TEST_F(SearchForSilentTest, IsBounded) { EXPECT_EQ(Prove(512 << 10)[1].last->pc, 0x80000010u); }

}  // namespace
}  // namespace hangscope

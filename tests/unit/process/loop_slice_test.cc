// What decides on the way round a loop, told from the steps of a thread that has nobody had to
// hang: code that is written down by hand.
#include "process/steps/loop_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/build_features.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kCode = 0x401000;
constexpr uint64_t kClock = 0x7fff1000;
constexpr uint64_t kFlag = 0x404000;
constexpr uint64_t kStack = 0x7ffe0000;
constexpr size_t kRax = 0, kRcx = 2, kRdi = 5, kRsp = 7, kRbx = 3;

#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)

// Instructions at kCode, and the states before them as the test tells them.
class Told {
 public:
  explicit Told(std::string code) : code_(std::move(code)) {
    state_.general[kRdi] = kFlag;
    state_.general[kRsp] = kStack;
  }
  Told& At(uint64_t offset) {
    state_.pc = kCode + offset;
    states_.push_back(state_);
    return *this;
  }
  Told& AtClock() {
    state_.pc = kClock;
    states_.push_back(state_);
    return *this;
  }
  uint64_t& Register(size_t number) { return state_.general[number]; }
  void Stores(uint64_t word, uint64_t before, uint64_t after) {
    stores_.push_back({states_.size() - 1, word, before, after});
  }
  LoopSlice Slice() {
    StepExaminer examiner(read_);
    return SliceLoop(states_, 0, stores_, {kClock, kClock + 0x1000}, false, examiner);
  }
  std::optional<size_t> Steady() {
    StepExaminer examiner(read_);
    LoopSlice slice;
    return FindSteadyRound(states_, stores_, {kClock, kClock + 0x1000}, examiner, &slice);
  }

 private:
  bool Read(uint64_t address, void* into, size_t bytes) const {
    if (address == kClock && bytes == 1) {
      std::memcpy(into, "\xc3", 1);  // ret
      return true;
    }
    if (address < kCode || address + bytes > kCode + code_.size()) return false;
    std::memcpy(into, code_.data() + (address - kCode), bytes);
    return true;
  }

  const std::string code_;
  const ReadMemory read_ = [this](uint64_t address, void* into, size_t bytes) {
    return Read(address, into, bytes);
  };
  StepState state_;
  std::vector<StepState> states_;
  std::vector<LoopStore> stores_;
};

// mov eax, [rdi]; inc rcx; test eax, eax; je back
const std::string kCountsBeside("\x8b\x07\x48\xff\xc1\x85\xc0\x74\xf7", 9);
// inc rcx; cmp rcx, rbx; jne back
const std::string kCountsTo("\x48\xff\xc1\x48\x39\xd9\x75\xf8", 8);

TEST(LoopSlice, ACounterThatNobodyAsksAboutDecidesNothing) {
  Told told(kCountsBeside);
  told.At(0).At(2);
  ++told.Register(kRcx);
  told.At(5).At(7).At(0);
  const LoopSlice slice = told.Slice();
  EXPECT_TRUE(slice.closes);
  EXPECT_THAT(slice.polls, ElementsAre(kFlag));
  EXPECT_THAT(slice.changed, IsEmpty());
}

TEST(LoopSlice, ACounterThatIsComparedDecides) {
  Told told(kCountsTo);
  told.At(0);
  ++told.Register(kRcx);
  told.At(3).At(6).At(0);
  EXPECT_FALSE(told.Slice().closes);
}

TEST(LoopSlice, WhatIsPolledMustBeAsItWas) {
  Told told(kCountsBeside);
  told.At(0);
  told.Stores(kFlag, 0, 1);
  told.At(2).At(5).At(7).At(0);
  EXPECT_FALSE(told.Slice().closes);
}

TEST(LoopSlice, WhatItStoresElsewhereIsTold) {
  Told told(kCountsBeside);
  told.At(0);
  told.Stores(kFlag + 64, 5, 6);
  told.At(2).At(5).At(7).At(0);
  const LoopSlice slice = told.Slice();
  EXPECT_TRUE(slice.closes);
  EXPECT_THAT(slice.changed, ElementsAre(kFlag + 64));
}

// pxor xmm0, xmm0; movaps [rdi+16], xmm0; cmp dword [rdi+16], 0; je back
TEST(LoopSlice, WhatAVectorClearsDecidesNothing) {
  const std::string rest("\x0f\x29\x47\x10\x83\x7f\x10\x00\x74\xf2", 10);
  Told told(std::string("\x66\x0f\xef\xc0", 4) + rest);
  told.At(0).At(4).At(8).At(12).At(0);
  const LoopSlice slice = told.Slice();
  EXPECT_TRUE(slice.closes);
  EXPECT_THAT(slice.polls, IsEmpty()) << "it is what the round itself has stored";
  // What a vector has held before is not known.
  Told kept(std::string("\x90\x90\x90\x90", 4) + rest);
  kept.At(0).At(1).At(2).At(3).At(4).At(8).At(12).At(0);
  EXPECT_FALSE(kept.Slice().closes);
}

// mov edi, ebp; mov esi, ebp; call clock; mov eax, [rbx]; test eax, eax; je back, where the clock
// leaves its time in rdx.
TEST(LoopSlice, ATimeThatNobodyAsksAboutDecidesNothing) {
  for (const bool asks : {false, true}) {
    // cmp rdx, rbp; jg out, in the second case
    std::string code("\x89\xef\x89\xee\xe8\x00\x00\x00\x00", 9);
    code += asks ? std::string("\x48\x39\xea\x7f\x00", 5) : std::string("\x90\x90\x90\x90\x90", 5);
    code += std::string("\x8b\x03\x85\xc0\x74\xec", 6);
    Told told(code);
    told.Register(kRbx) = kFlag;
    told.At(0).At(2).At(4);
    told.Register(kRsp) -= 8;
    told.AtClock();
    told.Register(kRsp) += 8;
    told.Register(kRax) = 0;
    told.Register(1) = 77;  // rdx
    told.At(9);
    if (asks)
      told.At(12);
    else
      told.At(10).At(11).At(12).At(13);
    told.At(14).At(16).At(18).At(0);
    EXPECT_EQ(told.Slice().closes, !asks);
  }
}

TEST(LoopSlice, TheRoundOfACircleIsFoundThoughItCounts) {
  // mov rbx, [rbx]; inc rcx; test rbx, rbx; jne back: three nodes that lead back into themselves
  Told told(std::string("\x48\x8b\x1b\x48\xff\xc1\x48\x85\xdb\x75\xf5", 11));
  constexpr uint64_t kNode = 0x500000;
  for (int i = 0; i < 7; ++i) {
    told.Register(kRbx) = kNode + static_cast<uint64_t>(i % 3) * 64;
    told.At(0);
    told.Register(kRbx) = kNode + static_cast<uint64_t>((i + 1) % 3) * 64;
    told.At(3);
    ++told.Register(kRcx);
    told.At(6).At(9);
  }
  told.Register(kRbx) = kNode + 64;
  told.At(0);
  EXPECT_EQ(told.Steady(), std::optional<size_t>(16u));
}

TEST(LoopSlice, NoRoundOfAWalkIsSteady) {
  Told told(std::string("\x48\x8b\x1b\x48\xff\xc1\x48\x85\xdb\x75\xf5", 11));
  for (uint64_t i = 0; i < 7; ++i) {
    told.Register(kRbx) = 0x500000 + i * 64;
    told.At(0);
    told.Register(kRbx) += 64;
    told.At(3);
    ++told.Register(kRcx);
    told.At(6).At(9);
  }
  told.At(0);
  EXPECT_EQ(told.Steady(), std::nullopt);
}

#endif

}  // namespace
}  // namespace hangscope

#include "stream/step_reader.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

class StepReaderTest : public ::testing::Test {
 protected:
  void Read(std::string_view text, size_t chunk = 1000) {
    StepReader reader(&names_, StepReader::Learn::kAll,
                      [this](uint32_t core, const Step& step) { steps_.emplace_back(core, step); });
    for (size_t at = 0; at < text.size(); at += chunk) reader.Feed(text.substr(at, chunk), at);
    reader.Flush();
    code_ = reader.code();
    is_trace_ = reader.IsTrace();
  }
  std::vector<uint64_t> Pcs(const std::string& core) const {
    std::vector<uint64_t> pcs;
    for (const auto& [number, step] : steps_) {
      if (names_.name(number) == core) pcs.push_back(step.pc);
    }
    return pcs;
  }

  CoreNames names_;
  std::vector<std::pair<uint32_t, Step>> steps_;
  std::unordered_map<uint64_t, TracedCode> code_;
  bool is_trace_ = false;
};

constexpr char kSpike[] =
    "core   0: 0x80000010 (0x00072783) lw      a5, 0(a4)\n"
    "core   1: 0x80000020 (0x00028023) sb      zero, 0(t0)\n"
    "core   0: 3 0x80000010 (0x00072783) x15 0x00000000 mem 0x8000b210\n"
    "core   1: 3 0x80000020 (0x00028023) mem 0x8000019c 0x00\n"
    "core   0: 0x80000014 (0xfe078ee3) beqz    a5, pc - 4\n"
    "core   0: 3 0x80000014 (0xfe078ee3)\n";

TEST_F(StepReaderTest, AnnouncementAndCommitAreOneStep) {
  for (const size_t chunk : {1u, 2u, 7u, 50u, 1000u}) {
    steps_.clear();
    Read(kSpike, chunk);
    EXPECT_EQ(Pcs("hart 0"), (std::vector<uint64_t>{0x80000010, 0x80000014}));
    EXPECT_EQ(Pcs("hart 1"), (std::vector<uint64_t>{0x80000020}));
    for (const auto& [core, step] : steps_) EXPECT_TRUE(step.has_values);
  }
  EXPECT_EQ(code_.at(0x80000010).addresses, std::vector<uint64_t>{0x8000b210});
}

TEST_F(StepReaderTest, AHartIsKnownByItsNumberAndACoreWithAPathByThatAlone) {
  Read(kSpike);
  ASSERT_EQ(names_.size(), 2u);
  EXPECT_EQ(names_.hart(1), 1u);
  EXPECT_EQ(names_.hart(names_.Number("/soc/host")), std::nullopt);
}

TEST_F(StepReaderTest, CommitsAloneAreSteps) {
  Read("core   0: 3 0x80000010 (0x0001)\ncore   0: 3 0x80000010 (0x0001)\n");
  EXPECT_EQ(steps_.size(), 2u);
}

TEST_F(StepReaderTest, OneInstructionLoopIsAStepARound) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += "core   0: 0x80000010 (0x0000a001) c.j     pc + 0\ncore   0: 3 0x80000010 (0xa001)\n";
  Read(text);
  EXPECT_EQ(steps_.size(), 5u);
}

TEST_F(StepReaderTest, RegistersBelongToTheStepBeforeOrToTheHartTheyName) {
  // Two harts' lines and dumps interleave.
  Read(
      "Trace 0: 0x7f [0/80000000/0/0] a\nTrace 1: 0x7f [0/80000100/0/0] b\n"
      " pc       80000000\n mhartid  00000000\n x1/ra    00000001 x2/sp 00000000\n"
      " pc       80000100\n mhartid  00000001\n x1/ra    00000002 x2/sp 00000000\n"
      "Trace 0: 0x7f [0/80000000/0/0] a\n mhartid  00000000\n x1/ra    00000001 x2/sp 00000000\n"
      "Trace 1: 0x7f [0/80000100/0/0] b\n mhartid  00000001\n x1/ra    00000003 x2/sp 00000000\n");
  std::vector<uint64_t> zero;
  std::vector<uint64_t> one;
  for (const auto& [core, step] : steps_)
    (names_.name(core) == "hart 0" ? zero : one).push_back(step.values);
  ASSERT_EQ(zero.size(), 2u);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(zero[0], zero[1]);
  EXPECT_NE(one[0], one[1]);
}

TEST_F(StepReaderTest, DumpThatTheEndCutsTellsNothing) {
  Read(
      "Trace 0: 0x7f [0/80000000/0/0] a\n x1/ra    00000001 x2/sp 00000000\n"
      "Trace 0: 0x7f [0/80000004/0/0] a\n x1/ra    00000001 x2/sp 00000000\n");
  ASSERT_EQ(steps_.size(), 2u);
  EXPECT_TRUE(steps_[0].second.has_values);
  EXPECT_FALSE(steps_[1].second.has_values);
}

TEST_F(StepReaderTest, OnlyRiscvListingsAreCode) {
  const std::string line = "0x80000008:  00000517          auipc   a0,0x0\n";
  const std::string steps = "Trace 0: 0x7f [0/80000000/0/0] a\n";
  Read(steps + "----------------\nIN: f\n" + line);  // as QEMU for Arm prints
  EXPECT_EQ(code_.count(0x80000008), 0u);
  Read(steps + "----------------\nIN: f\nPriv: 3; Virt: 0\n" + line);
  EXPECT_EQ(code_.count(0x80000008), 1u);
}

TEST_F(StepReaderTest, SixteenDigitsAre64Bits) {
  for (const char* line :
       {"Trace 0: 0x7f [0/0000000080000000/0/0] a\n", "core   0: 3 0x0000000080000010 (0x0001)\n",
        "5: 5: [/s/insn] f:1 M 0000000080000108 c.ld a5, 0(a4)\n"}) {
    StepReader reader(&names_, StepReader::Learn::kAll, [](uint32_t, const Step&) {});
    reader.Feed(line, 0);
    EXPECT_TRUE(reader.wide()) << line;
  }
  StepReader narrow(&names_, StepReader::Learn::kAll, [](uint32_t, const Step&) {});
  narrow.Feed("Trace 0: 0x7f [00000000/80000000/0/0] a\n", 0);
  EXPECT_FALSE(narrow.wide());
}

TEST_F(StepReaderTest, BlockThatWasStoppedDidNotRun) {
  Read(
      "Trace 0: 0x7f [0/80000000/0/0] a\nTrace 0: 0x7f [0/80000010/0/0] a\n"
      "Stopped execution of TB chain before 0x7f [80000010] a\nTrace 0: 0x7f [0/80000020/0/0] "
      "handler\n");
  EXPECT_EQ(Pcs("hart 0"), (std::vector<uint64_t>{0x80000000, 0x80000020}));
}

TEST_F(StepReaderTest, LineCutByAGapIsDropped) {
  StepReader reader(&names_, StepReader::Learn::kListings,
                    [this](uint32_t core, const Step& step) { steps_.emplace_back(core, step); });
  reader.Feed("80000036 (0x1) x\ncore   0: 3 0x80000010 (0x0001)\ncore   0: 3 0x8000", 500);
  reader.Feed("0012 (0x0001)\ncore   0: 3 0x80000014 (0x0001)\n", 1000);
  reader.Flush();
  EXPECT_EQ(Pcs("hart 0"), (std::vector<uint64_t>{0x80000010, 0x80000014}));
}

TEST_F(StepReaderTest, LogIsNoTrace) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "[  12.345] booting step " + std::to_string(i) + "\n pc 80000000\n";
  Read(text);
  EXPECT_FALSE(is_trace_);
  EXPECT_TRUE(steps_.empty());
}

TEST_F(StepReaderTest, EndlessLineIsSkippedAndTheNextOneRead) {
  Read(std::string(3'000'000, 'x') + "\ncore   0: 3 0x80000010 (0x0001)\n", 4096);
  EXPECT_EQ(steps_.size(), 1u);
}

TEST_F(StepReaderTest, CoresFromDamagedLinesAreBounded) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += "core   " + std::to_string(i) + ": 3 0x80000010 (0x0001)\n";
  Read(text);
  EXPECT_LE(names_.size(), 4096u);
}

}  // namespace
}  // namespace hangscope

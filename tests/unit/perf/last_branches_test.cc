// Where the threads that a finding blames went last, by their hardware traces.
#include "perf/traces/last_branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "fakes/etm_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "fakes/small_elf.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr uint64_t kRaw = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW

class LastBranchesTest : public ::testing::Test {
 protected:
  LastBranchesTest() {
    story_.AuxtraceInfo(EtmV4Info(2));
    std::string name = testing::TempDir() + "branches-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LastBranchesTest() override { std::filesystem::remove_all(folder_); }

  // `tid` ran on `cpu` meanwhile, and its tracer wrote `bytes`.
  void Ran(TimeNs from, TimeNs to, int cpu, int tid, const std::string& bytes) {
    uint64_t& at = written_[cpu];
    story_.Switch(from, cpu, 0, 0, tid);
    story_.TraceStart(from, cpu, tid);
    story_.Switch(to, cpu, tid, 1, 0);
    story_.Aux(to, cpu, tid, at, bytes.size(), kRaw);
    story_.Auxtrace(cpu, at, bytes);
    at += bytes.size();
  }
  void MapProgram(int tid) {
    SmallElf elf;
    elf.build_id = std::string(20, 'b');
    elf.segments = {
        {kA64Base, std::string(reinterpret_cast<const char*>(kA64Code), sizeof kA64Code)}};
    elf.functions = {{"main", kA64Base}, {"leaf", kA64Base + 0x18}};
    const std::string path = folder_ + "/program";
    const std::string file = elf.File();
    std::ofstream(path, std::ios::binary) << file;
    story_.image.records.push_back(PerfRecordOf(
        PERF_RECORD_MMAP2,
        PerfIds(tid, tid) + PerfWord(kA64Base) + PerfWord(sizeof kA64Code) +
            PerfWord(file.find(elf.segments[0].second)) +
            PerfBytes(uint8_t{20}, uint8_t{0}, uint16_t{0}) + std::string(20, 'b') +
            PerfBytes(uint32_t{5}, uint32_t{2}) + PerfText(path) + std::string(32, '\0'),
        PERF_RECORD_MISC_MMAP_BUILD_ID));
  }
  void Blame(int tid) {
    Finding finding;
    finding.subjects.push_back({std::to_string(tid) + " worker"});
    finding.subjects.back().thread = tid;
    findings_.push_back(finding);
  }
  Status Add(const LastBranchLimits& limits = {}) {
    EXPECT_TRUE(WriteWholeFile(disk_, "perf.data", story_.image.File()).ok());
    return AddLastBranches(disk_, clock_, "perf.data", limits, &findings_);
  }

  std::string folder_;
  std::map<int, uint64_t> written_;
  PerfStory story_;
  FakeFileSystem disk_;
  FakeClock clock_;
  std::vector<Finding> findings_;
};

TEST_F(LastBranchesTest, TellsWhereABlamedThreadWentLastAndHowOften) {
  MapProgram(7);
  Ran(10, 20, 1, 7, A64Run());
  Ran(30, 40, 1, 8, A64Run());  // another thread's, on the same CPU
  Blame(7);
  ASSERT_TRUE(Add().ok());
  EXPECT_THAT(findings_[0].lines,
              ElementsAre("7 worker  last branches, by the trace of CPU 1, the newest last:",
                          "  main+0xc -> leaf+0x0", "  leaf+0x0 -> main+0x10",
                          "  main+0x14 -> main+0x14", "  main+0x14 -> (not in the trace)"));
  ASSERT_EQ(findings_[0].traces.size(), 1u);
  const FindingTrace trace = findings_[0].traces[0];
  EXPECT_EQ(trace.cpu, 1);
  EXPECT_EQ(trace.branches.back().from, kA64Base + 0x14);
  findings_ = {};
  LastBranchLimits limits;
  limits.branches = 5;
  Blame(7);
  ASSERT_TRUE(Add(limits).ok());
  EXPECT_EQ(findings_[0].lines[1], "  main+0x8 -> main+0x4  (2 times)");
}

TEST_F(LastBranchesTest, TellsTheSpanOfTheCpuThatItRanLastOn) {
  MapProgram(7);
  Ran(30, 40, 0, 7, A64Run());
  Ran(10, 20, 1, 7, A64Run());
  Blame(7);
  ASSERT_TRUE(Add().ok());
  EXPECT_EQ(findings_[0].traces[0].cpu, 0);
}

TEST_F(LastBranchesTest, SaysWhyThereAreNone) {
  Ran(10, 20, 0, 7, A64Run());  // whose code is not known
  Ran(10, 20, 1, 8, A64Run());
  story_.Switch(50, 0, 0, 0, 8);  // and what it did there was not traced
  story_.Switch(60, 0, 8, 1, 0);
  Blame(7);
  Blame(8);
  Blame(9);
  ASSERT_TRUE(Add().ok());
  EXPECT_THAT(findings_[0].traces[0].why_none, HasSubstr("no branch could be followed"));
  EXPECT_THAT(findings_[0].lines[0],
              StartsWith("7 worker  last branches: none, no branch could be followed"));
  EXPECT_EQ(findings_[1].traces[0].why_none,
            "the snapshot has no trace of it on CPU 0, where it ran last");
  EXPECT_EQ(findings_[2].traces[0].why_none, "the snapshot has no record of it");
}

TEST_F(LastBranchesTest, TakesNoOlderRunForTheLastOne) {
  MapProgram(7);
  Ran(10, 20, 0, 7, A64Run());
  story_.Switch(50, 0, 0, 0, 7);
  story_.Switch(60, 0, 7, 1, 0);
  Blame(7);
  ASSERT_TRUE(Add().ok());
  EXPECT_EQ(findings_[0].traces[0].why_none,
            "the newest trace of it on CPU 0 is older than its last run there");
}

TEST_F(LastBranchesTest, DecodesTheNewestBytesOnly) {
  MapProgram(7);
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += A64Run();
  Ran(10, 20, 0, 7, bytes);
  Blame(7);
  LastBranchLimits limits;
  limits.bytes = 2 * A64Run().size();
  ASSERT_TRUE(Add(limits).ok());
  ASSERT_EQ(findings_[0].traces[0].branches.size(), 4u);
  findings_[0] = {};
  limits.bytes = 4;  // without a synchronisation
  Blame(7);
  ASSERT_TRUE(Add(limits).ok());
  EXPECT_THAT(findings_[1].traces[0].why_none, HasSubstr("in 4 B of its trace"));
}

TEST_F(LastBranchesTest, EndsWhereItTakesTooLong) {
  MapProgram(7);
  Ran(10, 20, 0, 7, A64Run());
  Blame(7);
  LastBranchLimits limits;
  limits.time = -1;
  ASSERT_TRUE(Add(limits).ok());
  EXPECT_THAT(findings_[0].traces[0].branches, IsEmpty());
  EXPECT_THAT(findings_[0].traces[0].why_none, HasSubstr("were not decoded"));
}

TEST_F(LastBranchesTest, SaysNothingOfARecordingWithoutATracer) {
  PerfStory story;
  story.Switch(10, 0, 7, 1, 8);
  story_ = story;
  Blame(7);
  ASSERT_TRUE(Add().ok());
  EXPECT_THAT(findings_[0].lines, IsEmpty());
  findings_.clear();
  ASSERT_TRUE(disk_.Remove("perf.data").ok());
  EXPECT_TRUE(AddLastBranches(disk_, clock_, "perf.data", {}, &findings_).ok()) << "none is asked";
}

// simpleperf's recording of a board, without the program: the bytes alone name no branch.
TEST_F(LastBranchesTest, ReadsARecordedTrace) {
  Blame(17235);
  ASSERT_TRUE(
      AddLastBranches(PosixFileSystem(), clock_, TEST_DATA "/perf/etm.data", {}, &findings_).ok());
  ASSERT_EQ(findings_[0].traces.size(), 1u);
  EXPECT_EQ(findings_[0].traces[0].cpu, 7);
  EXPECT_THAT(findings_[0].traces[0].why_none, HasSubstr("in 144 B of its trace"));
}

}  // namespace
}  // namespace hangscope

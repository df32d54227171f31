// perf.data files, as perf itself reads them.
#include "perf/perf_file_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "perf/perf_file.h"
#include "perf/perf_side_band.h"

namespace hangscope {
namespace {

std::string Said(const std::string& command) {
  std::string said;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char bytes[4096];
  while (const size_t got = fread(bytes, 1, sizeof bytes, pipe)) said.append(bytes, got);
  pclose(pipe);
  return said;
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++count;
  return count;
}

class PerfFileWriterTest : public ::testing::Test {
 protected:
  PerfFileWriterTest() {
    char name[] = "/tmp/hangscope-perf-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~PerfFileWriterTest() override { (void)PosixFileSystem().RemoveFolder(folder_).ok(); }

  std::string Path() const { return folder_ + "/cpu.perf.data"; }
  void Write(const CpuCapture& capture) {
    PerfFileOrigin origin = ThisMachine();
    origin.command = {"fw", "-x"};
    auto written = WritePerfFile(PosixFileSystem(), Path(), capture, origin);
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_EQ(*written, ReadWholeFile(PosixFileSystem(), Path())->size());
  }
  std::string Script(const std::string& options = "") {
    return Said("perf script -f -i " + Path() + " " + options);
  }
  static bool HasPerf() { return system("perf --version >/dev/null 2>&1") == 0; }

  FakeCpus cpus_;
  std::string folder_;
};

// PERF_RECORD_AUXTRACE_INFO of the simplest tracer that perf knows, Intel's branch trace store.
std::string BranchTraceInfo() {
  const uint64_t words[] = {70 | uint64_t{8 + 8 + 6 * 8} << 48, 2, 7, 0, 1, 0, 1, 1};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

#define NEED_PERF() \
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed (package linux-perf)"

TEST_F(PerfFileWriterTest, PerfPrintsEachRecordWithItsFieldsAndNames) {
  NEED_PERF();
  cpus_.Named(1, 4711, "server").Named(2, 4712, "worker");
  for (int i = 0; i < 50; ++i) {
    cpus_.Switch(0, 1000 + i * 1000, 4711, 4712).Call(1, 1500 + i * 1000, 4712, 39, 0xabc0 + i);
  }
  Write(cpus_.Take(100'000));
  const std::string said = Script();
  EXPECT_EQ(Count(said, "sched:sched_switch"), 50u) << said;
  EXPECT_EQ(Count(said, "raw_syscalls:sys_enter"), 50u);
  EXPECT_NE(said.find("server  4711 [000]     0.000001:"), std::string::npos) << said;
  EXPECT_NE(said.find("prev_pid=4711 ==> next_pid=4712"), std::string::npos);
  EXPECT_NE(said.find("worker  4712 [001]"), std::string::npos);
  EXPECT_NE(said.find("NR 39 (abc7)"), std::string::npos);
}

TEST_F(PerfFileWriterTest, PerfReadsWhereItIsFrom) {
  NEED_PERF();
  Write(cpus_.Switch(0, 1000, 1, 2).Take(2000));
  const std::string said = Script("--header-only");
  const PerfFileOrigin origin = ThisMachine();
  EXPECT_NE(said.find("# hostname : " + origin.host), std::string::npos) << said;
  EXPECT_NE(said.find("# os release : " + origin.release), std::string::npos);
  EXPECT_NE(said.find("# arch : " + origin.architecture), std::string::npos);
  EXPECT_NE(said.find("# cmdline : fw -x"), std::string::npos);
  EXPECT_NE(said.find("name = sched:sched_switch, , id = { 101 }"), std::string::npos);
}

TEST_F(PerfFileWriterTest, WhatWasLostIsInTheFile) {
  NEED_PERF();
  Write(cpus_.Switch(0, 1000, 1, 2).Lost(0, 7).Take(2000));
  EXPECT_NE(Script("--show-lost-events").find("PERF_RECORD_LOST lost 7"), std::string::npos)
      << Script("--show-lost-events");
}

// Of which it does not know what hangscope reads of them.
TEST_F(PerfFileWriterTest, PerfPassesOverWhatTheFileSaysOfItsRingsAndOfWhomItIs) {
  NEED_PERF();
  CpuCapture capture = cpus_.Named(1, 4711, "server").Switch(0, 1000, 4711, 2).Take(2000);
  capture.whole_machine = true;
  RecordedRings rings;
  rings.window = {1, 2000};
  rings.process = 4711;
  rings.rings = {{0, 1, 1, 2000}};
  ASSERT_TRUE(WritePerfFile(PosixFileSystem(), Path(), capture, ThisMachine(), &rings).ok());
  EXPECT_EQ(Count(Script(), "sched:sched_switch"), 1u) << Script();
  EXPECT_EQ(Count(Script(), "server  4711"), 1u) << Script();
  const std::string dump = Said("perf report -D -i " + Path());
  EXPECT_EQ(Count(dump, "PERF_RECORD_THREAD_MAP nr: 1"), 1u) << dump;
  EXPECT_EQ(Count(dump, "rror"), 0u) << dump;
  auto file = PerfFile::Open(PosixFileSystem(), Path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE((*file)->facts().rings);
  EXPECT_EQ((*file)->facts().rings->process, 4711);
  EXPECT_EQ((*file)->facts().rings->rings.at(0).until, 2000);
}

// Whose the loss is is told by the event that it is said to be of.
TEST_F(PerfFileWriterTest, LossesAreOfAnEventWhoseRingLostThem) {
  CpuCapture capture = cpus_.Switch(0, 1000, 1, 2).Lost(0, 7).Take(2000);
  capture.side_band_lost = 5;
  Write(capture);
  auto file = PerfFile::Open(PosixFileSystem(), Path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<std::pair<uint64_t, uint64_t>> told;  // of which event, how many
  ASSERT_TRUE((*file)
                  ->ForEach([&](const PerfRecord& record) {
                    if (const auto lost = ParsePerfLost(record))
                      told.emplace_back(record.id, *lost);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(told, (std::vector<std::pair<uint64_t, uint64_t>>{{FakeCpus::kSideBandId, 5},
                                                              {FakeCpus::kSwitchId, 7}}));
}

// tracefs may be unreadable; perf refuses a file with a tracepoint that it knows nothing of.
TEST_F(PerfFileWriterTest, TracepointOfUnknownFormatIsNoReasonToRefuseTheFile) {
  NEED_PERF();
  cpus_.Switch(0, 1000, 1, 2).Call(0, 2000, 1, 39, 0);
  CpuCapture capture = cpus_.Take(3000);
  capture.events[1].format.clear();
  Write(capture);
  EXPECT_EQ(Count(Script(), "sched:sched_switch"), 1u) << Script();
  EXPECT_EQ(Count(Script(), "raw_syscalls:sys_enter"), 1u) << Script();
}

TEST_F(PerfFileWriterTest, PerfFindsHardwareTracesAndGoesOnBehindThem) {
  NEED_PERF();
  CpuCapture capture = cpus_.Switch(0, 1000, 1, 2).Take(2000);
  capture.side_band = BranchTraceInfo();
  AuxRing aux;
  aux.cpu = 3;
  aux.head = 5000;
  aux.bytes = std::string(64, 'x');
  capture.aux = {aux, aux};
  capture.aux[1].bytes = std::string(128, 'y');
  Write(capture);
  const std::string said = Said("perf report -D -f -i " + Path());
  EXPECT_NE(
      said.find("PERF_RECORD_AUXTRACE size: 0x40  offset: 0x1348  ref: 0  idx: 0  tid: -1  cpu: 3"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("PERF_RECORD_AUXTRACE size: 0x80"), std::string::npos) << said;
  EXPECT_EQ(Count(Script("--itrace=e"), "sched:sched_switch"), 1u) << Script("--itrace=e");
}

TEST(PerfFileWriterDiskTest, FullDiskIsTold) {
  FakeFileSystem disk;
  disk.capacity = 300;
  FakeCpus cpus;
  const auto written = WritePerfFile(disk, "x", cpus.Switch(0, 1, 2, 3).Take(4), {});
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.status().message().find("No space left"), std::string::npos)
      << written.status().message();
}

}  // namespace
}  // namespace hangscope

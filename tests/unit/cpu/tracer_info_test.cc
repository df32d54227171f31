// What is written of a tracer, as the decoders and perf read it.
#include "cpu/tracer_info.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <cstdio>

#include "fakes/etm_bytes.h"
#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_tracer_sysfs.h"
#include "hwtrace/auxtrace_info.h"
#include "perf/perf_file_writer.h"

namespace hangscope {
namespace {

class TracerInfoTest : public testing::Test {
 protected:
  TracerInfoTest() { AddTracers(&files_); }

  std::string Record(const std::string& pmu, uint32_t type, uint64_t config,
                     const std::vector<int>& cpus = {0, 1}) {
    perf_event_attr attr{};
    attr.type = type;
    attr.config = config;
    auto info = TracerInfo::Read(files_, "/pmus/" + pmu, *TracerKindOf(pmu), attr, cpus);
    EXPECT_TRUE(info.ok()) << info.status().message();
    if (!info.ok()) return "";
    info->SetTime({2, 5, uint64_t{0} - 1000});
    info->SetSwitches(ReportedSwitches::kRecords);
    return info->Record();
  }
  static AuxTraceInfo Parsed(const std::string& record) {
    auto info = ParseAuxTraceInfo(std::string_view(record).substr(8));
    EXPECT_TRUE(info.ok()) << info.status().message();
    return info.ok() ? *info : AuxTraceInfo();
  }
  // What perf report -D says of a file with the record and a trace of CPU 1; the test is skipped
  // where there is no perf.
  static std::string PerfSays(uint32_t type, const std::string& record, const std::string& trace) {
    char name[] = "/tmp/hangscope-tracer-XXXXXX";
    const std::string folder = mkdtemp(name);
    FakeCpus cpus;
    CpuCapture capture = cpus.Switch(0, 1000, 1, 2).Run(0, 1100, 2, false).Take(2000);
    capture.side_band = record + capture.side_band;
    capture.events[1].attr.context_switch = 1;
    capture.events.push_back(capture.events[0]);
    capture.events[2].name = "tracer//";
    capture.events[2].ids = {103};
    capture.events[2].attr.type = type;
    AuxRing aux;
    aux.cpu = 1;
    aux.bytes = trace;
    aux.head = trace.size();
    capture.aux = {aux};
    EXPECT_TRUE(
        WritePerfFile(PosixFileSystem(), folder + "/perf.data", capture, ThisMachine()).ok());
    FILE* const pipe = popen(("perf report -D -f -i " + folder + "/perf.data 2>&1").c_str(), "r");
    std::string said;
    char bytes[4096];
    while (const size_t got = fread(bytes, 1, sizeof bytes, pipe)) said.append(bytes, got);
    pclose(pipe);
    (void)PosixFileSystem().RemoveFolder(folder).ok();
    return said;
  }
  static bool HasPerf() { return system("perf --version >/dev/null 2>&1") == 0; }

  FakeFileSystem files_;
};

TEST_F(TracerInfoTest, DescribesEtmV4AsItsDecoderWantsIt) {
  // Branch broadcast, cycles, context, virtual context, time stamps, return stack.
  const AuxTraceInfo info = Parsed(
      Record("cs_etm", 8, uint64_t{1} << 8 | 1u << 12 | 1u << 14 | 1u << 15 | 1u << 28 | 1u << 29));
  EXPECT_EQ(info.kind, TracerKind::kCoreSight);
  ASSERT_EQ(info.cpus.size(), 2u);
  EXPECT_EQ(info.cpus[1].kind, EtmKind::kEtmV4);
  EXPECT_EQ(info.cpus[1].cpu, 1);
  EXPECT_EQ(info.cpus[1].trace_id, 0x12);
  EXPECT_EQ(info.cpus[1].control, 0x98d8u);
  EXPECT_EQ(info.cpus[1].id0, 0x28000ea1u);
  EXPECT_EQ(info.cpus[1].id1, 0x4100f422u);
  EXPECT_EQ(info.cpus[1].id2, 0x20001088u);
  EXPECT_EQ(Parsed(Record("cs_etm", 8, 1u << 14)).cpus[0].control, 1u << 6);
}

// As perf writes it of the same registers.
TEST_F(TracerInfoTest, WritesTheWordsThatPerfWrites) {
  std::string expected = EtmV4Info(2);
  expected[3 * 8] = 1;  // a snapshot
  EXPECT_EQ(Record("cs_etm", 8, 1u << 14).substr(8), expected);
}

TEST_F(TracerInfoTest, KnowsEteAndTheOldOnes) {
  PutSysfs(&files_, "/pmus/cs_etm/cpu0/mgmt/trcdevarch", "0x47705a13");
  PutSysfs(&files_, "/pmus/cs_etm/cpu2/mgmt/etmccer", "0x34c01ac2");
  PutSysfs(&files_, "/pmus/cs_etm/cpu2/mgmt/etmidr", "0x411cf312");
  const AuxTraceInfo info = Parsed(Record("cs_etm", 8, 1u << 12, {0, 2}));
  ASSERT_EQ(info.cpus.size(), 2u);
  EXPECT_EQ(info.cpus[0].kind, EtmKind::kEte);
  EXPECT_EQ(info.cpus[0].architecture, 0x47705a13u);
  EXPECT_EQ(info.cpus[1].kind, EtmKind::kPtm);
  EXPECT_EQ(info.cpus[1].control, 1u << 12);
  EXPECT_EQ(info.cpus[1].code_extension, 0x34c01ac2u);
  EXPECT_EQ(info.cpus[1].trace_id, 0x14);
}

TEST_F(TracerInfoTest, SaysWhichRegisterIsMissing) {
  EXPECT_TRUE(files_.Remove("/pmus/cs_etm/cpu1/trcidr/trcidr2").ok());
  const auto info = TracerInfo::Read(files_, "/pmus/cs_etm", TracerKind::kCoreSight, {}, {0, 1});
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.status().message(),
            "the kernel does not say how the trace of CPU 1 is decoded: cannot read "
            "'/pmus/cs_etm/cpu1/trcidr/trcidr2'");
}

TEST_F(TracerInfoTest, TakesOnlyIdsThatThereCanBe) {
  auto info = TracerInfo::Read(files_, "/pmus/cs_etm", TracerKind::kCoreSight, {}, {0, 1});
  ASSERT_TRUE(info.ok());
  // with its sink, of the minor version 1
  info->StoreHardwareId(1, 0x6f | uint64_t{0x55} << 8 | uint64_t{1} << 56);
  for (const uint64_t wrong :
       {uint64_t{0}, uint64_t{0x70}, uint64_t{0xff}, uint64_t{0x20} | uint64_t{1} << 60})
    info->StoreHardwareId(0, wrong);
  info->StoreHardwareId(9, 0x20);
  const AuxTraceInfo parsed = Parsed(info->Record());
  EXPECT_EQ(parsed.cpus[0].trace_id, 0x10);
  EXPECT_EQ(parsed.cpus[1].trace_id, 0x6f);
}

TEST_F(TracerInfoTest, DescribesIntelPtWithItsClock) {
  const std::string record = Record("intel_pt", 9, 0x2401);
  const AuxTraceInfo info = Parsed(record);
  EXPECT_EQ(info.kind, TracerKind::kIntelPt);
  ASSERT_TRUE(info.intel_pt.time);
  EXPECT_EQ(PerfTimeOfCount(*info.intel_pt.time, 4000), 4000 * 5 / 4 - 1000);
  EXPECT_TRUE(info.intel_pt.snapshot);
  EXPECT_EQ(info.intel_pt.mtc_frequency_bits, 0xfu << 14);
  EXPECT_EQ(info.intel_pt.tsc_per_crystal, 166u);
  EXPECT_EQ(info.intel_pt.crystal, 2u);
}

TEST_F(TracerInfoTest, IsReadByPerf) {
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed (package linux-perf)";
  const std::string pt = PerfSays(
      9, Record("intel_pt", 9, 0x2401),
      std::string("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x23", 18));
  for (const char* line :
       {"PERF_RECORD_AUXTRACE_INFO type: 1", "PMU Type            9", "Time Shift          2",
        "Time Muliplier      5", "Cap Time Zero       1", "TSC bit             0x400",
        "NoRETComp bit       0x800", "Have sched_switch   2", "Snapshot mode       1",
        "Per-cpu maps        1", "MTC bit             0x200", "MTC freq bits       0x3c000",
        "TSC:CTC numerator   166", "TSC:CTC denominator 2", "CYC bit             0x2",
        "Max non-turbo ratio 36", "PSBEND"}) {
    EXPECT_NE(pt.find(line), std::string::npos) << line << " is not in:\n" << pt;
  }
  const std::string spe = PerfSays(14, Record("arm_spe_0", 14, 1), std::string(64, '\0'));
  for (const char* line :
       {"PERF_RECORD_AUXTRACE_INFO type: 4", "PMU Type           14", "ARM SPE data: size"})
    EXPECT_NE(spe.find(line), std::string::npos) << line << " is not in:\n" << spe;
  const std::string etm = PerfSays(8, Record("cs_etm", 8, 1u << 14), Framed(0x12, A64Run()));
  for (const char* line :
       {"PERF_RECORD_AUXTRACE_INFO type: 3", "TRCCONFIGR", "TRCTRACEIDR", "I_ADDR_CTXT_L_64IS0"})
    EXPECT_NE(etm.find(line), std::string::npos) << line << " is not in:\n" << etm;
}

}  // namespace
}  // namespace hangscope

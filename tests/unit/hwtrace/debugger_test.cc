// A debugger's snapshot: its devices, its buffers in their three forms, its memory as code, and
// what of it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/debugger_folder.h"
#include "fakes/fake_file_system.h"
#include "hwtrace/debugger_traces.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DebuggerSnapshotTest : public ::testing::Test {
 protected:
  DebuggerSnapshot Read() {
    auto snapshot = ReadDebuggerSnapshot(disk_, folder_.WriteTo(disk_));
    EXPECT_TRUE(snapshot.ok()) << snapshot.status().message();
    return snapshot.value_or({});
  }
  std::string Refusal() {
    auto snapshot = ReadDebuggerSnapshot(disk_, folder_.WriteTo(disk_));
    EXPECT_FALSE(snapshot.ok());
    return snapshot.status().message();
  }
  DebuggerTraces Decode(bool with_code = true) {
    return DecodeDebuggerSnapshot(disk_, Read(), {}, with_code);
  }

  DebuggerFolder folder_;
  FakeFileSystem disk_;
};

TEST_F(DebuggerSnapshotTest, SaysWhichTraceUnitTracesWhichCore) {
  const DebuggerSnapshot snapshot = Read();
  ASSERT_EQ(snapshot.cores.size(), 2u);
  EXPECT_EQ(snapshot.cores[1].name, "cpu_1");
  EXPECT_EQ(snapshot.cores[1].type, "Cortex-A53");
  ASSERT_EQ(snapshot.cores[0].dumps.size(), 1u);
  EXPECT_EQ(snapshot.cores[0].dumps[0].address, kA64Base);
  EXPECT_EQ(snapshot.cores[0].dumps[0].bytes, sizeof kA64Code);
  ASSERT_EQ(snapshot.sources.size(), 2u);
  ASSERT_TRUE(snapshot.sources[1].etm.has_value());
  const EtmSetting& etm = *snapshot.sources[1].etm;
  EXPECT_EQ(etm.kind, EtmKind::kEtmV4);
  EXPECT_EQ(etm.trace_id, 0x11);
  EXPECT_EQ(etm.control, 0x40u);
  EXPECT_EQ(etm.id0, 0x28000ea1u);
  EXPECT_EQ(etm.id1, 0x4100f422u);
  EXPECT_EQ(etm.id2, 0x20001088u);
  EXPECT_EQ(snapshot.sources[1].core, 1u);
  ASSERT_EQ(snapshot.buffers.size(), 1u);
  EXPECT_EQ(snapshot.buffers[0].name, "ETB_0");
  EXPECT_EQ(snapshot.buffers[0].format, SnapshotBuffer::Format::kFrames);
  EXPECT_THAT(snapshot.buffers[0].sources, ElementsAre(0u, 1u));
  EXPECT_THAT(snapshot.warnings, IsEmpty());
}

TEST_F(DebuggerSnapshotTest, KnowsEarlyTraceUnitsAndEte) {
  folder_.files["etm_0.ini"] =
      "[device]\nname=ETM_0\nclass=trace_source\ntype=PFT1.1\n[regs]\nETMCR(id:0x0)=0x400\n"
      "ETMTRACEIDR(id:0x80)=2\nETMIDR=0x411CF312\nETMCCER=0x34C01AC2\n";
  folder_.files["etm_1.ini"] =
      "[device]\nname=ETM_1\nclass=trace_source\ntype=ETE\n[regs]\nTRCCONFIGR=0x8001\n"
      "TRCTRACEIDR=1\nTRCIDR0=0x2881cea1\nTRCIDR2=0xd0001088\nTRCDEVARCH=0x47715a13\n";
  const DebuggerSnapshot snapshot = Read();
  EXPECT_EQ(snapshot.sources[0].etm->kind, EtmKind::kPtm);
  EXPECT_EQ(snapshot.sources[0].etm->trace_id, 2);
  EXPECT_EQ(snapshot.sources[0].etm->code_extension, 0x34c01ac2u);
  EXPECT_EQ(snapshot.sources[1].etm->kind, EtmKind::kEte);
  EXPECT_EQ(snapshot.sources[1].etm->architecture, 0x47715a13u);
}

TEST_F(DebuggerSnapshotTest, FollowsEachCoreThroughItsMemory) {
  const DebuggerTraces all = Decode();
  ASSERT_EQ(all.traces.size(), 2u) << ::testing::PrintToString(all.warnings);
  for (const SourceTrace& trace : all.traces) {
    EXPECT_EQ(trace.summary.instructions, 12u);
    EXPECT_EQ(trace.summary.branches, 6u);
    EXPECT_EQ(trace.summary.atoms, 7u);
    EXPECT_EQ(trace.bytes, Framed(0x10, A64Run()).size() / 16 * 14);
    EXPECT_EQ(trace.summary.last_branches.back().from, kA64Base + 0x14);
  }
  EXPECT_THAT(all.warnings, IsEmpty());
  EXPECT_FALSE(Decode(false).traces[0].summary.instructions_known);
}

// A board's cores share a memory, of which a debugger takes what one of them sees.
TEST_F(DebuggerSnapshotTest, TakesTheMemoryOfAnotherCoreWhereACoreHasNone) {
  folder_.files["cpu_1.ini"] = "[device]\nname=cpu_1\nclass=core\ntype=Cortex-A53\n";
  EXPECT_EQ(Decode().traces[1].summary.instructions, 12u);
}

// Each of two cores sees memory of its own at the same address.
TEST_F(DebuggerSnapshotTest, TakesACoresOwnMemoryFirst) {
  folder_.files["code.bin"] = std::string(sizeof kA64Code, '\0');
  folder_.files["own.bin"] = DebuggerFolder().files.at("code.bin");
  folder_.Replace("cpu_1.ini", "code.bin", "own.bin");
  const DebuggerTraces all = Decode();
  EXPECT_NE(all.traces[0].summary.branches, 6u);
  EXPECT_EQ(all.traces[1].summary.branches, 6u);
}

TEST_F(DebuggerSnapshotTest, TakesAPartOfAFileAndTheFirstDumpOfAnAddress) {
  const std::string code = folder_.files["code.bin"];
  folder_.files["code.bin"] = "xyz" + code;
  folder_.files["cpu_0.ini"] =
      "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A53\n"
      "[dump1]\nfile=code.bin\naddress=0x400008\noffset=11\nlength=8\n"
      "[dump2]\nfile=code.bin\naddress=0x400000\noffset=3\n"
      "[dump3]\nfile=trace.ini\naddress=0x400000\n";
  folder_.files["cpu_1.ini"] = "[device]\nname=cpu_1\nclass=core\n";
  EXPECT_EQ(Decode().traces[0].summary.branches, 6u);
}

TEST_F(DebuggerSnapshotTest, ReadsWhatOneUnitWroteWithoutFrames) {
  folder_.Replace("trace.ini", "format=coresight", "format=source_data");
  folder_.Replace("trace.ini", "ETM_1=ETB_0\n", "");
  folder_.Replace("etm_0.ini", "0x10", "0x0");
  folder_.files["cstrace.bin"] = A64Run();
  const DebuggerTraces all = Decode();
  ASSERT_EQ(all.traces.size(), 1u) << ::testing::PrintToString(all.warnings);
  EXPECT_EQ(all.traces[0].summary.branches, 6u);
  EXPECT_EQ(all.traces[0].bytes, A64Run().size());
}

// A port's stream begins anywhere, has synchronisations between frames, and a probe's own bytes
// behind each 504 of it.
std::string PortOf(const std::string& frames) {
  const std::string sync("\xff\xff\xff\x7f");
  std::string port = "rest" + sync;
  for (size_t at = 0; at < frames.size(); at += 16)
    port += frames.substr(at, 16) + sync + (at % 48 == 0 ? sync : "");
  port += "cut" + sync;
  std::string blocks;
  for (size_t at = 0; at < port.size(); at += 504)
    blocks += port.substr(at, 504) + (port.size() - at >= 504 ? "footer__" : "");
  return blocks;
}

TEST_F(DebuggerSnapshotTest, TakesFramesOutOfAPortsStream) {
  std::string run;
  while (run.size() < 1000) run += A64Run();
  const std::string frames = Framed(0x10, run);
  EXPECT_EQ(DstreamFrames(PortOf(frames)), frames);
  EXPECT_EQ(DstreamFrames(frames), "") << "no synchronisation";
  EXPECT_EQ(DstreamFrames(""), "");
  folder_.Replace("trace.ini", "format=coresight", "format=dstream_coresight");
  folder_.files["cstrace.bin"] = PortOf(Framed(0x10, A64Run()));
  EXPECT_EQ(Decode().traces.at(0).summary.branches, 6u);
}

TEST_F(DebuggerSnapshotTest, SaysWhyASourceIsNotDecoded) {
  folder_.Replace("etm_0.ini", "ETM4.2", "STM");
  folder_.Replace("etm_1.ini", "TRCIDR0", "TRCIDR9");
  const DebuggerTraces all = Decode();
  EXPECT_THAT(all.traces, IsEmpty());
  EXPECT_THAT(all.warnings,
              ElementsAre(HasSubstr("STM ETM_0: it traces no instructions"),
                          HasSubstr("ETM4.2 ETM_1: the snapshot has no TRCIDR0 of it")));
}

TEST_F(DebuggerSnapshotTest, ReadsNothingOutsideOfItsFolder) {
  folder_.Replace("cpu_0.ini", "file=code.bin", "file=a/../../etc/passwd");
  folder_.Replace("snapshot.ini", "device1=cpu_1.ini", "device1=/etc/hostname");
  EXPECT_THAT(Read().warnings, ElementsAre(HasSubstr("[dump1] says no file in the folder"),
                                           HasSubstr("lies outside of the snapshot")));
  folder_.Replace("trace.ini", "file=cstrace.bin", "file=../cstrace.bin");
  EXPECT_THAT(Refusal(), HasSubstr("names no buffer"));
  folder_.Replace("snapshot.ini", "metadata=trace.ini", "metadata=../trace.ini");
  EXPECT_THAT(Refusal(), HasSubstr("outside of the snapshot"));
}

TEST_F(DebuggerSnapshotTest, GoesOnWithoutWhatIsMissing) {
  folder_.files.erase("cpu_1.ini");
  folder_.files.erase("code.bin");
  folder_.Replace("trace.ini", "buffers=buffer0", "buffers=buffer0,buffer7");
  const DebuggerSnapshot snapshot = Read();
  EXPECT_EQ(snapshot.cores.size(), 1u);
  EXPECT_THAT(snapshot.warnings, AllOf(Contains(HasSubstr("cpu_1.ini")),
                                       Contains(HasSubstr("[buffer7] has no file"))));
  const DebuggerTraces all = DecodeDebuggerSnapshot(disk_, snapshot, {}, true);
  EXPECT_EQ(all.traces.size(), 2u);
  EXPECT_THAT(all.warnings, Contains(HasSubstr("code is missing")));
}

TEST_F(DebuggerSnapshotTest, IsRefusedWithASentence) {
  folder_.Replace("snapshot.ini", "version=1.0", "version=2.0");
  EXPECT_THAT(Refusal(), HasSubstr("of version 2.0, and this hangscope reads version 1"));
  folder_.files["snapshot.ini"] = "[snapshot]\nversion=1\n";
  EXPECT_THAT(Refusal(), HasSubstr("names no [trace] metadata"));
}

}  // namespace
}  // namespace hangscope

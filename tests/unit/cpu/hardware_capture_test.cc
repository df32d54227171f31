// Hardware traces all the way: two CPUs' trace units write into one sink, which goes into the AUX
// ring of the one that stops last; the rings are read, captured, written as perf.data, read again,
// decoded.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cpu/aux_ring.h"
#include "fakes/etm_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "fakes/simulated_sink.h"
#include "hwtrace/instruction_trace.h"
#include "model/perf_format.h"
#include "perf/perf_file.h"
#include "perf/perf_file_writer.h"
#include "snapshot/ring_histories.h"
#include "why/why_perf.h"

namespace hangscope {
namespace {

class HardwareCaptureTest : public ::testing::Test {
 protected:
  void Trace(size_t cpu, const std::string& bytes) {
    for (const char byte : bytes)
      sink_.Write(cpu, clock_.Monotonic(), static_cast<unsigned char>(byte));
    last_ = cpu;
  }
  // The program leaves the CPU, or the tracer is stopped.
  void Drain() { sink_.Drain(areas_[last_]); }

  // What both rings have; the tracers are off for 3 ms.
  CpuCapture Capture() {
    cpus_.Named(clock_.Monotonic(), FakeCpus::kPid, "spinner");
    CpuCapture capture = cpus_.Take(clock_.Monotonic());
    const std::string info = EtmV4Info(2);
    perf_event_header header{};
    header.type = kPerfAuxtraceInfo;
    header.size = static_cast<uint16_t>(sizeof header + info.size());
    capture.side_band.append(reinterpret_cast<const char*>(&header), sizeof header);
    capture.side_band += info;
    const TimeSpan blind{clock_.Monotonic(), clock_.Monotonic() + 3 * kMillisecond};
    Drain();
    clock_.Advance(3 * kMillisecond);
    for (AuxReader& reader : readers_)
      capture.aux.push_back(reader.Take(false, blind.from, blind).ring);
    return capture;
  }
  std::unique_ptr<PerfFile> Written(const CpuCapture& capture) {
    auto written = WritePerfFile(files_, "perf.data", capture, ThisMachine());
    EXPECT_TRUE(written.ok()) << written.status().message();
    auto file = PerfFile::Open(files_, "perf.data");
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : nullptr;
  }
  static TraceSummary Decode(PerfFile& file, size_t trace) {
    const AuxTrace& aux = file.aux()[trace];
    auto decoder = OpenInstructionTrace(file.facts().auxtrace_info, aux.cpu);
    EXPECT_TRUE(decoder.ok()) << decoder.status().message();
    auto bytes = file.ReadAux(aux, 0, aux.bytes);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return (*decoder)->Decode(*bytes, {});
  }

  FakeClock clock_;
  FakeFileSystem files_;
  FakeCpus cpus_;
  SimulatedSink sink_{320, true};
  size_t last_ = 0;  // who traced last
  std::vector<SimulatedAux> areas_ = {{4096, AuxHeadKind::kCountsAll},
                                      {4096, AuxHeadKind::kWithinArea}};
  std::vector<AuxReader> readers_ = {{areas_[0].area(), 0, -1}, {areas_[1].area(), 1, -1}};
};

TEST_F(HardwareCaptureTest, ComesOutOfTheFileAsItWasTraced) {
  Trace(0, Framed(0x10, A64Run()));
  Drain();
  Trace(1, Framed(0x12, A64Run() + A64Run()));
  const auto file = Written(Capture());
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(file->aux().size(), 2u);
  const TraceSummary one = Decode(*file, 0);
  EXPECT_EQ(one.atoms, 7u);
  ASSERT_EQ(one.bytes_of_cpu.size(), 1u);
  EXPECT_EQ(one.bytes_of_cpu.begin()->first, 0);
  const TraceSummary two = Decode(*file, 1);
  EXPECT_EQ(two.atoms, 14u);
  EXPECT_EQ(two.synchronisations, 2u);
  ASSERT_EQ(two.bytes_of_cpu.size(), 1u);
  EXPECT_EQ(two.bytes_of_cpu.begin()->first, 1);
}

TEST_F(HardwareCaptureTest, ShowsWhatASharedSinkLost) {
  // Eight runs are 384 bytes, more than the sink holds: the first CPU's first one is gone, and two
  // of three frames of its second.
  for (int i = 0; i < 4; ++i) Trace(0, Framed(0x10, A64Run()));
  for (int i = 0; i < 4; ++i) Trace(1, Framed(0x12, A64Run()));
  const auto file = Written(Capture());
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(file->aux().size(), 1u);
  EXPECT_EQ(file->aux()[0].cpu, 1);
  EXPECT_EQ(file->aux()[0].bytes, 320u);
  const TraceSummary cut = Decode(*file, 0);
  EXPECT_EQ(cut.atoms, 6u * 7);
  EXPECT_EQ(cut.bytes_of_cpu, (std::map<int, uint64_t>{{0, 7 * 14}, {1, 12 * 14}}));
  ASSERT_FALSE(cut.discontinuities.empty());
  EXPECT_EQ(cut.discontinuities[0].reason, DiscontinuityReason::kBegin);
}

TEST_F(HardwareCaptureTest, TellsInTheWindowThatNothingWasTracedWhileItWasCopied) {
  Trace(0, Framed(0x10, A64Run()));
  const CpuCapture capture = Capture();
  WindowInput input;
  AddCpuRings(capture, {}, 0, &input);
  WindowRequest request;
  request.policy = WindowPolicy::kEverything;
  request.trigger = clock_.Monotonic();
  const Window window = FindWindow(input, request);
  bool told = false;
  for (const Gap& gap : window.gaps)
    told = told || (gap.reason == GapReason::kBlind && gap.time == capture.aux[0].blind);
  EXPECT_TRUE(told) << window.gaps.size() << " gaps";
}

TEST_F(HardwareCaptureTest, IsToldByWhy) {
  Trace(0, Framed(0x10, A64Run()));
  ASSERT_NE(Written(Capture()), nullptr);
  WhyPerfOptions options;
  options.path = "perf.data";
  options.json = true;
  auto report = AskWhyPerf(files_, clock_, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  uint64_t atoms = 0;
  std::istringstream lines(report->text);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains("atoms")) atoms += object["atoms"].get<uint64_t>();
  }
  EXPECT_EQ(atoms, 7u) << report->text;
}

}  // namespace
}  // namespace hangscope

// The hardware traces of a perf.data as rows: spans, what was in them, branches, functions, losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "fakes/etm_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "fakes/small_elf.h"
#include "report/read_report.h"
#include "report/report_data.h"
#include "trace/trace_of_hardware.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr uint64_t kRaw = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW

class HardwareTraceTest : public ::testing::Test {
 protected:
  HardwareTraceTest() {
    story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, EtmV4Info(2)));
    std::string name = testing::TempDir() + "traced-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~HardwareTraceTest() override { std::filesystem::remove_all(folder_); }

  // The tracer of `cpu` wrote `bytes` while thread 7 ran there from `from` to `to`.
  void Span(TimeNs from, TimeNs to, int cpu, const std::string& bytes, uint64_t flags = kRaw) {
    uint64_t& at = written_[cpu];
    story_.TraceStart(from, cpu, 7);
    story_.Aux(to, cpu, 7, at, bytes.size(), flags);
    story_.image.records.push_back(
        PerfRecordOf(kPerfAuxtrace, PerfWord(bytes.size()) + PerfWord(at) + PerfWord(0) +
                                        PerfBytes(static_cast<uint32_t>(cpu), 7, cpu, 0u)) +
        bytes);
    at += bytes.size();
  }
  // The program that runs, at this path below the test's folder; recorded as at `recorded`, and
  // with its build id.
  void MapProgram(const std::string& name = "program", const std::string& recorded = "") {
    SmallElf elf;
    elf.build_id = std::string(20, 'b');
    elf.segments = {
        {kA64Base, std::string(reinterpret_cast<const char*>(kA64Code), sizeof kA64Code)}};
    elf.functions = {{"main", kA64Base}, {"leaf", kA64Base + 0x18}};
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const std::string file = elf.File();
    std::ofstream(path, std::ios::binary) << file;
    const uint64_t offset = file.find(elf.segments[0].second);
    story_.image.records.push_back(
        PerfRecordOf(PERF_RECORD_MMAP2,
                     PerfIds(7, 7) + PerfWord(kA64Base) + PerfWord(sizeof kA64Code) +
                         PerfWord(offset) + PerfBytes(uint8_t{20}, uint8_t{0}, uint16_t{0}) +
                         std::string(20, 'b') + PerfBytes(uint32_t{5}, uint32_t{2}) +
                         PerfText(recorded.empty() ? path : recorded) + std::string(32, '\0'),
                     PERF_RECORD_MISC_MMAP_BUILD_ID));
  }
  std::unique_ptr<TraceSource> Open(TraceRequest request = {}) {
    request.source.target = "perf.data";
    EXPECT_TRUE(WriteWholeFile(disk_, "perf.data", story_.image.File()).ok());
    auto opened = OpenTraceSource(disk_, clock_, request);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  // What happens on the row so called: "10 trace_span 7 task7", "loss 30".
  static std::vector<std::string> Row(TraceSource& source, const std::string& name) {
    std::vector<std::string> row;
    TraceItem item;
    while (source.Next(&item).value_or(false)) {
      const auto* event = std::get_if<TraceEvent>(&item);
      const size_t track = event ? event->track : std::get<TraceLoss>(item).track;
      if (source.head().tracks[track].name != name) continue;
      if (event == nullptr) {
        row.push_back("loss " + std::to_string(std::get<TraceLoss>(item).time.to));
        continue;
      }
      const std::string& kind = source.head().kinds[event->kind].name;
      row.push_back(std::to_string(event->time) + " " + kind +
                    (event->what.empty() ? "" : " " + event->what));
    }
    return row;
  }

  std::string folder_;
  std::map<int, uint64_t> written_;
  PerfStory story_;
  FakeFileSystem disk_;
  FakeClock clock_;
};

TEST_F(HardwareTraceTest, DrawsEachSpanOfARingWithWhatIsInIt) {
  story_.Comm(7, "task7");
  Span(10, 20, 1, A64Run());
  Span(30, 40, 1, A64Run());
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  std::vector<std::string> names;
  for (const TraceTrack& track : source->head().tracks) names.push_back(track.name);
  EXPECT_THAT(names, ::testing::Contains("CPU 1 trace"));
  EXPECT_THAT(Row(*source, "CPU 1 trace"),
              ElementsAre("10 trace_span 7 task7", "20 trace_span_end", "30 trace_span 7 task7",
                          "40 trace_span_end"));
}

TEST_F(HardwareTraceTest, SaysOfASpanWhatWasDecoded) {
  Span(10, 20, 0, A64Run());
  const auto source = Open();
  TraceItem item;
  while (source->Next(&item).value_or(false)) {
    const auto* event = std::get_if<TraceEvent>(&item);
    if (event == nullptr || source->head().kinds[event->kind].name != "trace_span") continue;
    EXPECT_EQ(event->values[1].bits, 7u);
    EXPECT_EQ(event->values[2].bits, A64Run().size());
    EXPECT_EQ(event->values[4].bits, 7u) << "atoms";
    return;
  }
  FAIL() << "no span";
}

TEST_F(HardwareTraceTest, DrawsBranchesAndTheFunctionsThatTheyLeadThrough) {
  MapProgram();
  Span(10, 20, 0, A64Run());
  EXPECT_THAT(Row(*Open(), "CPU 0 trace"),
              ElementsAre("10 trace_span 7", "10 branch", "10 traced_function_enter main",
                          "10 branch", "10 branch", "10 branch", "10 traced_function_enter leaf",
                          "10 branch", "10 traced_function_leave", "10 branch", "10 branch",
                          "10 traced_function_leave", "20 trace_span_end"));
}

TEST_F(HardwareTraceTest, FollowsBranchesThroughTheBinariesThatWereNamed) {
  MapProgram("copies/program", "/board/bin/program");
  Span(10, 20, 0, A64Run());
  EXPECT_THAT(Row(*Open(), "CPU 0 trace"), ElementsAre("10 trace_span 7", "20 trace_span_end"));
  TraceRequest request;
  request.code.binaries = folder_ + "/copies";
  EXPECT_THAT(Row(*Open(request), "CPU 0 trace"),
              IsSupersetOf({"10 traced_function_enter main", "10 traced_function_enter leaf"}));
}

TEST_F(HardwareTraceTest, DrawsOnThePageTheFunctionsOfBinariesThatWereNamed) {
  MapProgram("copies/program", "/board/bin/program");
  Span(10, 20, 0, A64Run());
  ASSERT_TRUE(WriteWholeFile(disk_, "perf.data", story_.image.File()).ok());
  ReportOptions options;
  options.source.target = "perf.data";
  const auto page = [&] {
    auto report = ReadReport(disk_, clock_, options);
    return report.ok() ? ReportDataJson(*report) : report.status().message();
  };
  EXPECT_THAT(page(), Not(HasSubstr("leaf")));
  options.code.binaries = folder_ + "/copies";
  EXPECT_THAT(page(), HasSubstr("leaf"));
}

TEST_F(HardwareTraceTest, KeepsTheNewestBranchesThatAreWanted) {
  MapProgram();
  Span(10, 20, 0, A64Run());
  Span(30, 40, 0, A64Run());
  TraceRequest request;
  request.branches = 2;
  const std::vector<std::string> row = Row(*Open(request), "CPU 0 trace");
  EXPECT_EQ(std::count(row.begin(), row.end(), "30 branch"), 2);
  EXPECT_EQ(std::count(row.begin(), row.end(), "10 branch"), 0);
  request.streams = false;
  EXPECT_EQ(Row(*Open(request), "CPU 0 trace").size(), 4u) << "spans alone";
}

TEST_F(HardwareTraceTest, TellsWhatTheTracerCouldNotKeep) {
  EtmBytes trace;
  trace.bytes = A64Run();
  trace.Overflow().bytes += A64Run();
  Span(10, 20, 0, trace.bytes);
  Span(30, 40, 0, A64Run(), kRaw | PERF_AUX_FLAG_TRUNCATED);
  const std::vector<std::string> row = Row(*Open(), "CPU 0 trace");
  EXPECT_EQ(std::count(row.begin(), row.end(), "loss 20"), 1);
  EXPECT_EQ(std::count(row.begin(), row.end(), "loss 40"), 1);
}

TEST_F(HardwareTraceTest, DrawsThePiecesThatSamplesHave) {
  PerfEvent event;
  event.name = "cycles:u";
  event.attr = story_.image.events[0].attr;
  event.attr.type = PERF_TYPE_HARDWARE;
  event.attr.sample_type &= ~uint64_t{PERF_SAMPLE_RAW};
  event.attr.sample_type |= PERF_SAMPLE_AUX;
  event.ids = {9};
  story_.image.events.push_back(event);
  const std::string bytes = Framed(0x10, A64Run());
  for (const TimeNs time : {10, 20})
    story_.image.records.push_back(
        PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(9) + PerfIds(7, 7) + PerfBytes(time) +
                                             PerfBytes(0, 0) + PerfWord(bytes.size()) + bytes));
  EXPECT_THAT(Row(*Open(), "CPU 0 trace"),
              ElementsAre("10 trace_span 7, of a sample", "10 trace_span_end",
                          "20 trace_span 7, of a sample", "20 trace_span_end"));
}

// The carrier's span has the bytes of both.
TEST_F(HardwareTraceTest, DrawsARowForEachCpuThatHasBytesInAnothersSpan) {
  MapProgram();
  story_.TraceStart(5, 1, 8, 7);
  story_.Switch(5, 1, 0, 0, 8);
  story_.Switch(15, 1, 8, 1, 0);
  story_.Switch(10, 0, 0, 0, 7);
  Span(10, 20, 0, Framed(0x12, A64Run()) + Framed(0x10, A64Run()), 0);
  story_.Switch(20, 0, 7, 1, 0);
  EXPECT_THAT(Row(*Open(), "CPU 0 trace"),
              IsSupersetOf({"10 trace_span 7 task7", "10 traced_function_enter leaf"}));
  const std::vector<std::string> other = Row(*Open(), "CPU 1 trace");
  EXPECT_THAT(other, IsSupersetOf({"5 trace_span 8 task8", "15 trace_span_end"}));
  EXPECT_EQ(std::count_if(other.begin(), other.end(),
                          [](const std::string& line) { return line.ends_with(" branch"); }),
            7);
}

// Its code is not that of the program whose thread drained the sink.
TEST_F(HardwareTraceTest, FollowsNoOtherProgramsCodeOfACpuInASharedSink) {
  MapProgram();
  story_.TraceStart(5, 1, 8);
  story_.Switch(5, 1, 0, 0, 8);
  story_.Switch(15, 1, 8, 1, 0);
  story_.Switch(10, 0, 0, 0, 7);
  Span(10, 20, 0, Framed(0x12, A64Run()) + Framed(0x10, A64Run()), 0);
  story_.Switch(20, 0, 7, 1, 0);
  EXPECT_THAT(Row(*Open(), "CPU 0 trace"), Contains("10 traced_function_enter leaf"));
  for (const std::string& line : Row(*Open(), "CPU 1 trace"))
    EXPECT_FALSE(line.ends_with(" branch") || line.find("function") != std::string::npos) << line;
}

TEST_F(HardwareTraceTest, IsNoneWhereThereIsNoTrace) {
  PerfStory story;
  story.Switch(10, 0, 7, 1, 8);
  EXPECT_TRUE(WriteWholeFile(disk_, "plain", story.image.File()).ok());
  const auto opened = OpenHardwareTrace(disk_, "plain", {});
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.value(), nullptr);
}

}  // namespace
}  // namespace hangscope

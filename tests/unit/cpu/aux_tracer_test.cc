// Hardware traces from the tracer's events to the file: a kernel with a tracer is played, as the
// machines that tests run on have none.
#include "cpu/aux_tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fakes/etm_bytes.h"
#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_tracer.h"
#include "fakes/fake_tracer_sysfs.h"
#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"
#include "perf/perf_file.h"
#include "perf/perf_file_writer.h"
#include "snapshot/ring_histories.h"
#include "why/why_perf.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kArea = 64u << 10;
constexpr size_t kRunBytes = 48;  // of a framed A64Run
constexpr size_t kFramedTwoRuns = 96;
constexpr size_t kTwoRunsBytes = kFramedTwoRuns / 16 * 14;

class AuxTracerTest : public testing::Test {
 protected:
  AuxTracerTest() { AddTracers(&files_); }

  void Kernel(AuxHeadKind kind, uint64_t sink_bytes = 1 << 20, size_t cpus = 2) {
    kernel_ = std::make_unique<FakeTracerKernel>(clock_, cpus, kind, sink_bytes);
  }
  // A tracer that may not be had.
  std::string WhyNot(const std::string& event) {
    auto tracer = Opened(event);
    EXPECT_FALSE(tracer.ok()) << event;
    return tracer.ok() ? "" : tracer.status().message();
  }
  void Open(const std::string& event) {
    auto tracer = Opened(event);
    ASSERT_TRUE(tracer.ok()) << tracer.status().message();
    tracer_ = std::move(*tracer);
  }
  void OpenAndAttach(const std::string& event, pid_t tid = FakeTracerKernel::kProcess) {
    Open(event);
    if (tracer_ == nullptr) return;
    const Status status = tracer_->Attach(tid);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // `tid` runs for 2 ms and leaves its CPU.
  void RunOnce(size_t cpu, pid_t tid, const std::string& bytes, uint64_t flags = 0) {
    kernel_->Run(cpu, tid);
    clock_.Advance(kMillisecond);
    kernel_->Trace(cpu, bytes);
    clock_.Advance(kMillisecond);
    kernel_->Leave(cpu, flags);
  }
  // A run of 4711, and two of a thread that it made, which goes on.
  void TraceTwoAtOnce() {
    kernel_->Run(0, 4711);
    clock_.Advance(kMillisecond);
    kernel_->Trace(0, Framed(0x10, A64Run()));
    kernel_->Run(1, 4712, 4711);
    kernel_->Trace(1, Framed(0x12, A64Run() + A64Run()));
    clock_.Advance(kMillisecond);
  }
  static WindowInput InputOf(const CpuCapture& capture) {
    WindowInput input;
    AddCpuRings(capture, {}, 0, &input);
    return input;
  }
  CpuCapture Take() {
    FakeCpus cpus;
    cpus.Named(clock_.Monotonic(), FakeTracerKernel::kProcess, "spinner");
    CpuCapture capture = cpus.Take(clock_.Monotonic());
    tracer_->Take(&capture);
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
    return decoder.ok() && bytes.ok() ? (*decoder)->Decode(*bytes, {}) : TraceSummary();
  }
  // What why tells of the file, of one type.
  std::vector<nlohmann::json> Reported(const std::string& type) {
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = true;
    auto report = AskWhyPerf(files_, clock_, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    std::vector<nlohmann::json> told;
    std::istringstream lines(report.ok() ? report->text : "");
    for (std::string line; std::getline(lines, line);) {
      auto object = nlohmann::json::parse(line);
      if (object["type"] == type) told.push_back(object);
    }
    return told;
  }

  FakeClock clock_;
  FakeFileSystem files_;
  AuxTracerOptions options_{"/pmus", {0, 1}, kArea, false, {}, {}};
  std::unique_ptr<FakeTracerKernel> kernel_;
  std::unique_ptr<AuxTracer> tracer_;
  std::vector<std::string> warnings_;

 private:
  Result<std::unique_ptr<AuxTracer>> Opened(const std::string& event) {
    PerfSources sources;
    sources.pmus = "/pmus";
    auto specs = PerfEventFinder(files_, sources).Find(event);
    if (!specs.ok()) return specs.status();
    return AuxTracer::Open(files_, *kernel_, clock_, specs->front(), options_, &warnings_);
  }
};

// Two CPUs into one sink, all the way into the file and out of it. Whoever stops last has all.
TEST_F(AuxTracerTest, TracesTwoCpusThroughOneSinkIntoTheFile) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  EXPECT_THAT(warnings_, IsEmpty());
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  tracer_->Tick();
  TraceTwoAtOnce();
  const CpuCapture capture = Take();  // while both run
  EXPECT_EQ(kernel_->running_stops, 2);
  ASSERT_EQ(capture.aux.size(), 2u);
  ASSERT_EQ(capture.aux[0].spans.size(), 1u);
  EXPECT_EQ(capture.aux[0].spans[0].task, 4711);
  EXPECT_EQ(capture.aux[0].spans[0].time.to - capture.aux[0].spans[0].time.from, 2 * kMillisecond);
  ASSERT_EQ(capture.aux[1].spans.size(), 1u);
  EXPECT_EQ(capture.aux[1].spans[0].task, 4712);
  const auto file = Written(capture);
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(file->aux().size(), 2u);
  const TraceSummary one = Decode(*file, 0);
  EXPECT_EQ(one.atoms, 7u);
  EXPECT_EQ(one.bytes_of_cpu, (std::map<int, uint64_t>{{0, kRunBytes / 16 * 14}}));
  const TraceSummary two = Decode(*file, 1);
  EXPECT_EQ(two.atoms, 3 * 7u);
  EXPECT_EQ(two.bytes_of_cpu, (std::map<int, uint64_t>{{0, 3 * 14}, {1, kTwoRunsBytes}}));
  // As why tells it: whose each piece is, and what is in it.
  const auto spans = Reported("trace_span");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["thread"], 4711);
  EXPECT_EQ(spans[0]["atoms"], 7);
  EXPECT_EQ(spans[0]["held_bytes"], kRunBytes);
  EXPECT_TRUE(spans[0]["bytes_of_cpu"].empty()) << "all of it is its own";
  EXPECT_EQ(spans[1]["thread"], 4712);
  EXPECT_EQ(spans[1]["atoms"], 21);
  ASSERT_EQ(spans[1]["bytes_of_cpu"].size(), 2u);
  EXPECT_EQ(spans[1]["bytes_of_cpu"][0]["cpu"], 0);
  EXPECT_EQ(spans[1]["bytes_of_cpu"][0]["bytes"], 3 * 14);
  EXPECT_EQ(spans[1]["bytes_of_cpu"][1]["bytes"], kTwoRunsBytes);
}

TEST_F(AuxTracerTest, TracesOnlyTheCodeThatAFilterNames) {
  Kernel(AuxHeadKind::kWithinArea);
  PutSysfs(&files_, "/pmus/intel_pt/nr_addr_filters", "2");
  options_.filter = "filter 0x1000/0x20 @ /bin/x, start 0x40@/bin/y";
  OpenAndAttach("intel_pt//u");
  EXPECT_THAT(kernel_->filters, ElementsAre("filter 0x1000/0x20@/bin/x,start 0x40@/bin/y",
                                            "filter 0x1000/0x20@/bin/x,start 0x40@/bin/y"))
      << "of each CPU's event";
  options_.whole_machine = true;
  EXPECT_THAT(WhyNot("intel_pt//u"), HasSubstr("leave -a out"));
  options_.filter = "filter 0xffffffff81000000/0x1000";
  OpenAndAttach("intel_pt//", -1);
  EXPECT_EQ(kernel_->filters.back(), "filter 0xffffffff81000000/0x1000");
}

TEST_F(AuxTracerTest, SaysWhyAFilterCannotBe) {
  Kernel(AuxHeadKind::kWithinArea);
  options_.filter = "filter 0x1000/0x20 @ /bin/x";
  EXPECT_EQ(WhyNot("intel_pt//u"),
            "it cannot filter by address: '/pmus/intel_pt/nr_addr_filters' does not exist");
  PutSysfs(&files_, "/pmus/intel_pt/nr_addr_filters", "0");
  EXPECT_THAT(WhyNot("intel_pt//u"), HasSubstr("nr_addr_filters' is 0"));
  PutSysfs(&files_, "/pmus/intel_pt/nr_addr_filters", "1");
  options_.filter += ",stop 0x2000 @ /bin/x";
  EXPECT_EQ(WhyNot("intel_pt//u"), "2 address filters were asked for, and it has 1");
  for (const char* wrong : {"main @ /bin/x", "filter 0x10 @ /bin/x", "start 0x10/0x20 @ /bin/x",
                            "filter @ /bin/x", "filter", ","}) {
    options_.filter = wrong;
    EXPECT_THAT(WhyNot("intel_pt//u"), HasSubstr("is no address filter")) << wrong;
  }
  options_.filter = "filter main";
  EXPECT_THAT(WhyNot("intel_pt//u"), HasSubstr("which file has 'main'"));
  options_.filter = "filter 0x1000/0x20 @ /bin/x";
  Open("intel_pt//u");
  kernel_->filter_error = EOPNOTSUPP;
  EXPECT_THAT(tracer_->Attach(FakeTracerKernel::kProcess).message(),
              HasSubstr("does not take the address filter 'filter 0x1000/0x20@/bin/x'"));
}

extern "C" {
[[gnu::used, gnu::noinline]] int FilteredByAddress(int number) { return number + 1; }
}

// Of this test's own program.
TEST_F(AuxTracerTest, FindsTheFunctionThatAFilterNames) {
  Kernel(AuxHeadKind::kWithinArea);
  PutSysfs(&files_, "/pmus/intel_pt/nr_addr_filters", "2");
  options_.filter = "filter FilteredByAddress @ /proc/self/exe";
  OpenAndAttach("intel_pt//u");
  ASSERT_EQ(kernel_->filters.size(), 2u);
  EXPECT_THAT(kernel_->filters[0],
              testing::MatchesRegex("filter 0x[0-9a-f]+/0x[1-9a-f][0-9a-f]*@/proc/self/exe"));
  options_.filter = "filter no_such_function @ /proc/self/exe";
  EXPECT_THAT(WhyNot("intel_pt//u"), HasSubstr("has no function 'no_such_function'"));
}

// What one of them wrote is its own ring's, whoever got it.
TEST_F(AuxTracerTest, GivesEachCpuItsBytesOfTheSharedSink) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  TraceTwoAtOnce();
  const WindowInput input = InputOf(Take());
  ASSERT_EQ(input.sinks.size(), 1u);
  std::map<int64_t, uint64_t> bytes;
  for (const RingHistory& ring : input.rings) {
    if (ring.ring.what != "trace") continue;
    EXPECT_EQ(ring.sink, 0u);
    EXPECT_EQ(ring.head, 2 * kRunBytes + kFramedTwoRuns) << "of all that came out of the sink";
    for (const HeldSpan& span : ring.held)
      bytes[ring.ring.number] += span.end_offset - span.begin_offset - span.others_bytes;
  }
  EXPECT_EQ(bytes, (std::map<int64_t, uint64_t>{{0, kRunBytes + 3 * 14}, {1, kTwoRunsBytes}}));
}

// The sink holds the newest 64 bytes.
TEST_F(AuxTracerTest, DeclaresWhatWasOverwrittenInTheSharedSink) {
  Kernel(AuxHeadKind::kCountsAll, 64);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  const TimeNs from = clock_.Monotonic();
  TraceTwoAtOnce();
  kernel_->Leave(0);
  const TimeNs left = clock_.Monotonic();
  clock_.Advance(kMillisecond);
  kernel_->Trace(1, Framed(0x12, A64Run()).substr(0, 16));
  kernel_->Leave(1);
  const TimeNs stopped = clock_.Monotonic();
  clock_.Advance(kMillisecond);
  const WindowInput input = InputOf(Take());
  WindowRequest request;
  request.policy = WindowPolicy::kLastTime;
  request.trigger = clock_.Monotonic();
  request.length = kSecond;
  const Window window = FindWindow(input, request);
  std::map<int64_t, TimeSpan> lost;
  for (const Gap& gap : window.gaps) {
    if (window.rings[gap.ring].ring.what != "trace" || gap.reason != GapReason::kSharedSink)
      continue;
    lost[window.rings[gap.ring].ring.number] = gap.time;
  }
  // CPU 0's bytes are all gone; CPU 1's newest are there, since when nothing says.
  ASSERT_TRUE(lost.contains(1)) << window.gaps.size();
  EXPECT_LE(lost[1].from, from);
  EXPECT_EQ(lost[1].to, stopped);
  ASSERT_TRUE(lost.contains(0));
  EXPECT_GE(lost[0].to, left);
}

// Also in the next snapshot, of what came since.
TEST_F(AuxTracerTest, CountsTheSharedSinksBytesOnFromSnapshotToSnapshot) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  TraceTwoAtOnce();
  const WindowInput first = InputOf(Take());
  const TimeNs trigger = clock_.Monotonic();
  std::string much;
  while (much.size() < kArea - 64) much += Framed(0x12, A64Run());
  kernel_->Trace(1, much);
  clock_.Advance(kMillisecond);
  const WindowInput second = InputOf(Take());
  WindowRequest request;
  request.policy = WindowPolicy::kSinceLast;
  request.trigger = clock_.Monotonic();
  request.last_trigger = trigger;
  for (const RingHistory& ring : first.rings) request.last_heads.push_back(ring.head);
  ASSERT_EQ(first.rings.size(), second.rings.size());
  const Window window = FindWindow(second, request);
  for (const RingCoverage& ring : window.rings) {
    if (ring.ring.what == "trace") {
      EXPECT_EQ(ring.bytes_inside, ring.ring.number == 0 ? 0 : much.size());
    }
  }
}

TEST_F(AuxTracerTest, WritesWhatPerfReads) {
  if (system("perf --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "perf is not installed (package linux-perf)";
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  RunOnce(0, 4711, Framed(0x10, A64Run() + A64Run()));
  RunOnce(1, 4711, Framed(0x12, A64Run()));
  const CpuCapture capture = Take();
  const std::string path = testing::TempDir() + "aux_tracer_test.perf.data";
  ASSERT_TRUE(WritePerfFile(PosixFileSystem(), path, capture, ThisMachine()).ok());
  FILE* const pipe = popen(("perf report -D -f -i " + path + " 2>&1").c_str(), "r");
  std::string said;
  char bytes[4096];
  while (const size_t got = fread(bytes, 1, sizeof bytes, pipe)) said.append(bytes, got);
  pclose(pipe);
  (void)PosixFileSystem().Remove(path).ok();
  const auto count = [&](const std::string& what) {
    size_t found = 0;
    for (size_t at = said.find(what); at != std::string::npos; at = said.find(what, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("PERF_RECORD_AUX offset: "), 3u) << said;
  EXPECT_EQ(count("PERF_RECORD_ITRACE_START pid: 4711 tid: 4711"), 2u);
  EXPECT_EQ(count("PERF_RECORD_AUXTRACE size: "), 2u);
  EXPECT_EQ(count("I_ASYNC : Alignment Synchronisation"), 4u) << "a run each";
  EXPECT_EQ(count("I_ATOM_F1 : Atom format 1"), 4 * 7u);
}

TEST_F(AuxTracerTest, OpensEventsAsTheKernelWantsThem) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  ASSERT_EQ(kernel_->opened.size(), 4u) << "an owner of the rings on each CPU, and the thread's";
  EXPECT_EQ(kernel_->opened[0].inherit, 0u);
  const perf_event_attr& attr = kernel_->opened[3];
  EXPECT_EQ(attr.inherit, 1u) << "threads that it makes are traced";
  EXPECT_EQ(attr.context_switch, 1u);
  EXPECT_EQ(attr.write_backward, 0u) << "the kernel wants one direction for both";
  EXPECT_EQ(attr.disabled, 1u);
  EXPECT_EQ(attr.exclude_kernel, 1u);
  EXPECT_EQ(attr.config2, 0x1a2b3c4du);
  EXPECT_EQ(attr.clockid, CLOCK_MONOTONIC);
  EXPECT_EQ(tracer_->event().ids.size(), 2u);
  tracer_->DetachAll();
  EXPECT_THAT(tracer_->event().ids, IsEmpty());
  EXPECT_EQ(kernel_->open_events(), 2u);
}

// More than three times the area; each head kind.
TEST_F(AuxTracerTest, KeepsTheNewestOfWhatWentRound) {
  for (const char* event : {"cs_etm/@tmc_etr0/u", "intel_pt//u", "arm_spe//u"}) {
    tracer_.reset();
    Kernel(*event == 'c' ? AuxHeadKind::kCountsAll : AuxHeadKind::kWithinArea);
    kernel_->tells_whole_area = *event == 'i';
    if (*event == 'a') options_.cpus = {1};
    OpenAndAttach(event);
    ASSERT_NE(tracer_, nullptr) << event;
    ASSERT_TRUE(tracer_->Attach(4712).ok());
    std::string all;
    for (int i = 0; all.size() < 200'000; ++i) {
      std::string bytes;
      for (int k = 0; k < 1000 + i; ++k)
        bytes.push_back(static_cast<char>(1 + (all.size() + k * 31 + k / 255) % 255));
      all += bytes;
      RunOnce(1, 4711 + i % 2, bytes);
      if (i % 40 == 39) tracer_->Tick();
    }
    const AuxRing ring = Take().aux.back();
    EXPECT_EQ(ring.bytes.size(), kArea);
    EXPECT_EQ(ring.bytes, all.substr(all.size() - kArea)) << event;
    EXPECT_GE(ring.head, 200'000u);
    EXPECT_TRUE(ring.lost_before);
    ASSERT_GT(ring.spans.size(), 40u) << event;
    EXPECT_EQ(ring.spans.back().end_offset, ring.head);
    for (size_t i = 1; i < ring.spans.size(); ++i) {
      ASSERT_EQ(ring.spans[i].begin_offset, ring.spans[i - 1].end_offset) << event << " " << i;
      ASSERT_NE(ring.spans[i].task, ring.spans[i - 1].task);
      ASSERT_EQ(ring.spans[i].time.to - ring.spans[i].time.from, 2 * kMillisecond) << event;
    }
  }
}

TEST_F(AuxTracerTest, GoesOnBehindASnapshot) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  const CpuCapture first = Take();
  RunOnce(0, 4711, Framed(0x10, A64Run() + A64Run()));
  const CpuCapture second = Take();
  EXPECT_EQ(kernel_->untraced_bytes, 0u) << "it was switched on again";
  EXPECT_EQ(first.aux[0].head, kRunBytes);
  EXPECT_EQ(second.aux[0].head - first.aux[0].head,
            second.aux[0].spans[1].end_offset - second.aux[0].spans[1].begin_offset);
  EXPECT_EQ(second.aux[0].bytes.substr(0, first.aux[0].bytes.size()), first.aux[0].bytes);
  EXPECT_EQ(Written(second)->aux()[0].bytes, second.aux[0].bytes.size());
  uint64_t atoms = 0;
  for (const auto& span : Reported("trace_span")) atoms += span["atoms"].get<uint64_t>();
  EXPECT_EQ(atoms, 3 * 7u);
}

// Also into the window; and where it cannot be switched on again, the blind time goes on.
TEST_F(AuxTracerTest, TellsForHowLongItWasStopped) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  const TimeNs from = clock_.Monotonic();
  kernel_->starts = false;
  (void)Take();
  clock_.Advance(5 * kMillisecond);
  kernel_->starts = true;
  const CpuCapture capture = Take();
  EXPECT_EQ(capture.aux[0].blind, (TimeSpan{from, from + 5 * kMillisecond}));
  WindowInput input;
  AddCpuRings(capture, {}, 0, &input);
  bool told = false;
  for (const RingHistory& ring : input.rings) {
    for (const KnownLoss& loss : ring.losses)
      told = told || (loss.reason == GapReason::kBlind && loss.time == capture.aux[0].blind);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(Take().aux[0].blind.from, clock_.Monotonic());
}

TEST_F(AuxTracerTest, TellsWhatTheTracerLost) {
  Kernel(AuxHeadKind::kCountsAll);
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(0, 4711, Framed(0x10, A64Run()));
  const TimeNs before = clock_.Monotonic();
  RunOnce(0, 4711, Framed(0x10, A64Run()), PERF_AUX_FLAG_TRUNCATED);
  const CpuCapture capture = Take();
  ASSERT_EQ(capture.aux[0].losses.size(), 1u);
  EXPECT_EQ(capture.aux[0].losses[0].time, (TimeSpan{before, before + 2 * kMillisecond}));
  WindowInput input;
  AddCpuRings(capture, {}, 0, &input);
  size_t losses = 0;
  for (const RingHistory& ring : input.rings) {
    losses += ring.losses.size();
    if (ring.ring == RingName{RingKind::kCpu, 0, "trace"}) {
      ASSERT_EQ(ring.held.size(), 2u);
      EXPECT_EQ(ring.held[1].task, 4711);
    }
  }
  EXPECT_EQ(losses, 1u);
  ASSERT_NE(Written(capture), nullptr);
  const auto spans = Reported("trace_span");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[1]["flags"], "truncated, snapshot");
}

// The ring beside the area was full: whose the bytes are is not known then, but that records are
// missing.
TEST_F(AuxTracerTest, GivesBytesToNobodyWhoseRecordsAreLost) {
  Kernel(AuxHeadKind::kWithinArea);
  kernel_->tells_whole_area = true;
  OpenAndAttach("intel_pt//u");
  for (int i = 0; i < 4000; ++i) RunOnce(0, 4711, "0123456789");
  tracer_->Tick();
  RunOnce(0, 4711, "ABCDEFGHIJ");
  RunOnce(0, 4711, "abcdefghij");
  const AuxRing ring = Take().aux[0];
  EXPECT_EQ(ring.head, 40'020u);
  EXPECT_THAT(ring.bytes, testing::EndsWith("ABCDEFGHIJabcdefghij"));
  ASSERT_EQ(ring.losses.size(), 1u);
  uint64_t owned = 0;
  for (const AuxSpan& span : ring.spans) owned += span.end_offset - span.begin_offset;
  EXPECT_LT(owned, 30'000u);
  EXPECT_EQ(ring.spans.back().begin_offset, 40'010u) << "and what came behind has an owner again";
}

// A piece of more than the area: where the newest ends is known, and that what was there before is
// gone.
TEST_F(AuxTracerTest, DoesNotGiveAThreadWhatAnotherWroteOver) {
  Kernel(AuxHeadKind::kWithinArea);
  kernel_->tells_whole_area = true;
  OpenAndAttach("intel_pt//u");
  RunOnce(0, 4711, std::string(1000, 'a'));
  tracer_->Tick();
  RunOnce(0, 4711, std::string(kArea + 500, 'b'));
  RunOnce(0, 4711, std::string(100, 'c'));
  const AuxRing ring = Take().aux[0];
  EXPECT_EQ(ring.head, kArea + 1600);
  EXPECT_THAT(ring.spans, IsEmpty());
  EXPECT_EQ(ring.bytes, std::string(kArea - 100, 'b') + std::string(100, 'c'));
}

TEST_F(AuxTracerTest, TakesTheTraceIdsThatTheKernelGave) {
  Kernel(AuxHeadKind::kCountsAll);
  kernel_->tells_hardware_ids = true;
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  RunOnce(1, 4711, Framed(0x32, A64Run()));
  const auto file = Written(Take());
  ASSERT_NE(file, nullptr);
  const auto info = ParseAuxTraceInfo(file->facts().auxtrace_info);
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ(info->cpus[0].trace_id, 0x10) << "nothing was traced there";
  EXPECT_EQ(info->cpus[1].trace_id, 0x32);
  ASSERT_EQ(file->aux().size(), 1u);
  EXPECT_EQ(Decode(*file, 0).bytes_of_cpu.begin()->first, 1);
}

TEST_F(AuxTracerTest, LeavesOutCpusWithoutTheTracer) {
  Kernel(AuxHeadKind::kWithinArea, 1 << 20, 4);
  options_.cpus = {0, 1, 2, 3};
  kernel_->open_errors[3] = ENODEV;
  OpenAndAttach("arm_spe//u");
  EXPECT_THAT(
      warnings_,
      ElementsAre("'arm_spe_0//u' does not trace on CPU 0: they have no such tracer",
                  "'arm_spe_0//u' does not trace on CPU 3: the kernel finds no tracer there"));
  EXPECT_EQ(Take().aux.size(), 2u);
  options_.cpus = {0};
  EXPECT_EQ(WhyNot("arm_spe//u"), "no CPU that is online has this tracer");
}

TEST_F(AuxTracerTest, SaysWhyItIsRefused) {
  Kernel(AuxHeadKind::kCountsAll);
  kernel_->open_errors[0] = EBUSY;
  EXPECT_EQ(WhyNot("cs_etm/@tmc_etr0/u"), "somebody else has the hardware");
  kernel_->open_errors.clear();
  kernel_->kernel_is_forbidden = true;
  Open("cs_etm/@tmc_etr0/");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(
      warnings_[0],
      HasSubstr(
          "'cs_etm/@tmc_etr0/' is traced outside of the kernel only: kernel.perf_event_paranoid"));
  EXPECT_EQ(kernel_->opened.back().exclude_kernel, 1u);
  kernel_->thread_errors = {{5, ESRCH}, {6, EBUSY}};
  EXPECT_EQ(tracer_->Attach(5).code(), Status::Code::kNotFound);
  EXPECT_EQ(tracer_->Attach(6).message(), "somebody else has the hardware");
  EXPECT_TRUE(tracer_->Attach(7).ok());
  EXPECT_EQ(WhyNot("intel_bts//"),
            "hangscope records cs_etm, intel_pt and arm_spe; 'perf record -S' may record this");
}

TEST_F(AuxTracerTest, TakesAsMuchMemoryAsMayBeLocked) {
  Kernel(AuxHeadKind::kCountsAll);
  options_.trace_bytes = 4u << 20;
  kernel_->lockable_bytes = 1500u << 10;
  OpenAndAttach("cs_etm/@tmc_etr0/u");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0],
              HasSubstr("'cs_etm/@tmc_etr0/u' has 512 KiB a CPU in place of 4.00 MiB: no more may "
                        "be locked in memory; as root, 'sysctl kernel.perf_event_mlock_kb="));
  EXPECT_EQ(Take().aux[1].capacity_bytes, 512u << 10);
  tracer_.reset();
  kernel_->lockable_bytes = 100u << 10;
  EXPECT_EQ(WhyNot("cs_etm/@tmc_etr0/u"),
            "cannot map the areas that the tracer writes into, of 2 CPUs: Operation not permitted; "
            "'sysctl kernel.perf_event_mlock_kb' says how much may be locked");
}

TEST_F(AuxTracerTest, SaysWhichSinksThereAre) {
  Kernel(AuxHeadKind::kCountsAll);
  Open("cs_etm//u");
  EXPECT_THAT(warnings_, ElementsAre("'cs_etm//u' names no sink, so the kernel chooses one of "
                                     "tmc_etf0, tmc_etr0; 'cs_etm/@tmc_etf0/' names one"));
  EXPECT_EQ(WhyNot("cs_etm/@tmc/u"),
            "'cs_etm' has no sink 'tmc': its sinks are tmc_etf0, tmc_etr0");
}

// Where everybody is recorded, the owner of the rings traces, as the kernel does not mix its events
// with threads'.
TEST_F(AuxTracerTest, TracesTheWholeMachine) {
  Kernel(AuxHeadKind::kCountsAll);
  options_.whole_machine = true;
  OpenAndAttach("cs_etm/@tmc_etr0/", -1);
  EXPECT_EQ(kernel_->open_events(), 2u);
  RunOnce(1, 99, Framed(0x12, A64Run()));
  const CpuCapture capture = Take();
  EXPECT_EQ(capture.aux[1].head, kRunBytes);
  ASSERT_EQ(capture.aux[1].spans.size(), 1u);
  EXPECT_FALSE(capture.aux[1].spans[0].task) << "others ran there, too";
}

}  // namespace
}  // namespace hangscope

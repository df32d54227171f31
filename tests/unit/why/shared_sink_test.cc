// What hangscope why tells of traces of CPUs that share a sink: the drivers give all of it to the
// CPU that stops last, in frames with trace ids, and what was overwritten begins with a barrier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fakes/etm_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/frame_bytes.h"
#include "fakes/perf_story.h"
#include "why/why_perf.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Json = nlohmann::json;

constexpr TimeNs kBegin = kSecond;

// Thread 100 + N runs on CPU N.
class SharedSinkTest : public ::testing::Test {
 protected:
  // As perf records it: the tracer's event, and switches of its threads.
  SharedSinkTest() {
    PerfEvent& tracer = story_.image.events[0];
    tracer.name = "cs_etm//u";
    tracer.attr.type = 8;
    tracer.attr.context_switch = 1;
    story_.image.features[kPerfFeatureEventDescription] = story_.image.EventNames();
    story_.AuxtraceInfo(EtmV4Info(6));
  }

  static uint8_t IdOf(int cpu) { return static_cast<uint8_t>(0x10 + 2 * cpu); }
  // Microseconds of the story.
  static TimeNs At(int us) { return kBegin + us * TimeNs{1000}; }
  void Run(int cpu, int from, int to) {
    story_.Comes(At(from), cpu, 100 + cpu);
    story_.Leaves(At(to), cpu, 100 + cpu);
  }
  // `carrier` stops last, and gets what the sink holds: bytes of each CPU's id, mixed.
  void Drain(int carrier, int at, const std::vector<std::pair<int, size_t>>& bytes,
             const std::string& begin = "", uint64_t flags = 0) {
    FrameBytes frames;
    for (const auto& [cpu, count] : bytes) frames.Put(IdOf(cpu), std::string(count, 'x'));
    DrainBytes(carrier, at, begin + frames.Take(), flags);
  }
  void DrainBytes(int carrier, int at, const std::string& sink, uint64_t flags = 0) {
    uint64_t& offset = offsets_[carrier];
    story_.Aux(At(at), carrier, 100 + carrier, offset, sink.size(), flags);
    story_.Auxtrace(carrier, offset, sink);
    offset += sink.size();
  }
  WhyReport Ask(bool json = false) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", story_.image.File()).ok());
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = json;
    auto report = AskWhyPerf(files_, clock_, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.value_or({});
  }
  std::vector<Json> Objects(const std::string& type) {
    std::vector<Json> objects;
    std::istringstream lines(Ask(true).text);
    for (std::string line; std::getline(lines, line);) {
      auto object = Json::parse(line);
      if (object["type"] == type) objects.push_back(std::move(object));
    }
    return objects;
  }
  Json WindowObject() { return Objects("window").at(0); }
  // By thread: whether each of its runs in the window is covered.
  std::map<int, bool> Continuous() {
    std::map<int, bool> continuous;
    const Json window = WindowObject();
    for (const auto& thread : window["threads"])
      continuous[thread["thread"].get<int>()] = thread["continuous"].get<bool>();
    return continuous;
  }

  FakeClock clock_;
  FakeFileSystem files_;
  PerfStory story_;
  std::map<int, uint64_t> offsets_;
};

// Six threads at once on six CPUs.
TEST_F(SharedSinkTest, TellsWhoHasHowMuchAndWhoseIsLost) {
  Run(0, 0, 500);
  Run(1, 1, 510);
  Run(2, 2, 520);
  Run(3, 3, 530);
  Run(4, 4, 505);
  Run(5, 5, 550);
  Drain(5, 551, {{0, 500}, {1, 40}, {0, 50}, {2, 30}, {3, 20}, {5, 28}}, kFrameBarrier);
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans[0]["sink_overwritten"]);
  std::map<int, uint64_t> bytes;
  for (const auto& share : spans[0]["bytes_of_cpu"]) {
    const int cpu = share["cpu"];
    bytes[cpu] = share["bytes"];
    EXPECT_EQ(share["threads"], Json::array({100 + cpu}));
    if (share["bytes"] != 0) {
      EXPECT_EQ(share["trace_id"], IdOf(cpu));
    }
  }
  EXPECT_EQ(bytes, (std::map<int, uint64_t>{{0, 550}, {1, 40}, {2, 30}, {3, 20}, {4, 0}, {5, 28}}));
  EXPECT_THAT(Ask().text, AllOf(HasSubstr("  shared sink overwritten  "),
                                HasSubstr("  of CPU 0       100 "), HasSubstr("550 B  newest\n"),
                                HasSubstr("  of CPU 4       104 "), HasSubstr("0 B  all lost\n")));
  // Since CPU 0's thread left nothing was overwritten, as its last byte is still there. But of CPU
  // 4's, nobody knows that it wrote nothing behind that.
  EXPECT_EQ(WindowObject()["from_ns"], At(505));
  std::map<int, std::pair<TimeNs, TimeNs>> lost;
  const Json window = WindowObject();
  for (const auto& loss : window["lost_before"]) {
    EXPECT_EQ(loss["why"], "shared sink overwritten");
    EXPECT_EQ(loss["thread"], 100 + loss["ring"]["number"].get<int>());
    lost[loss["ring"]["number"]] = {loss["from_ns"], loss["to_ns"]};
  }
  EXPECT_EQ(lost, (std::map<int, std::pair<TimeNs, TimeNs>>{{0, {At(0), At(500)}},
                                                            {1, {At(1), At(500)}},
                                                            {2, {At(2), At(500)}},
                                                            {3, {At(3), At(500)}},
                                                            {4, {At(4), At(505)}},
                                                            {5, {At(5), At(500)}}}));
  EXPECT_THAT(Ask().text,
              HasSubstr("lost before the window: CPU 4 cs_etm -0.000547 to -0.000046 s, "
                        "thread 104: shared sink overwritten\n"));
  EXPECT_EQ(Continuous(),
            (std::map<int, bool>{{101, true}, {102, true}, {103, true}, {105, true}}));
}

TEST_F(SharedSinkTest, CoversEverybodyWhereNothingWasOverwritten) {
  for (int cpu = 0; cpu < 6; ++cpu) Run(cpu, cpu, 500 + cpu);
  Drain(5, 506, {{0, 100}, {1, 40}, {2, 30}, {3, 20}, {4, 10}, {5, 28}});
  const auto window = WindowObject();
  EXPECT_EQ(window["from_ns"], At(0));
  EXPECT_TRUE(window["from_the_start"]);
  EXPECT_TRUE(window["gaps"].empty()) << window.dump();
  EXPECT_TRUE(window["lost_before"].empty()) << window.dump();
  for (const auto& [thread, continuous] : Continuous()) EXPECT_TRUE(continuous) << thread;
  EXPECT_EQ(Continuous().size(), 6u);
  EXPECT_THAT(Ask().text, Not(HasSubstr("overwritten")));
}

// Its own period before was whole: what was destroyed later is a gap, and whose it is.
TEST_F(SharedSinkTest, DeclaresTheGapThatNeighboursMade) {
  Run(0, 0, 100);
  Run(1, 10, 110);
  Drain(1, 111, {{0, 100}, {1, 40}});
  Run(1, 200, 300);
  Run(0, 210, 500);
  Drain(0, 501, {{0, 200}}, kFrameBarrier);
  const auto window = WindowObject();
  EXPECT_EQ(window["from_ns"], At(0));
  ASSERT_EQ(window["gaps"].size(), 2u) << window.dump();
  for (const auto& gap : window["gaps"]) EXPECT_EQ(gap["why"], "shared sink overwritten");
  EXPECT_EQ(window["gaps"][0]["ring"]["number"], 1);
  EXPECT_EQ(window["gaps"][0]["thread"], 101);
  EXPECT_EQ(window["gaps"][0]["from_ns"], At(200));
  EXPECT_EQ(window["gaps"][0]["to_ns"], At(300));
  EXPECT_EQ(window["gaps"][1]["thread"], 100);
  EXPECT_EQ(window["gaps"][1]["to_ns"], At(500)) << "since when its bytes are there, nothing says";
  EXPECT_EQ(Continuous(), (std::map<int, bool>{{100, false}, {101, false}}));
  EXPECT_THAT(Ask().text, HasSubstr("thread 101"));
}

TEST_F(SharedSinkTest, ClaimsNothingOfADrainWhoseRecordIsMissing) {
  Run(0, 0, 100);
  Run(1, 10, 110);
  Drain(1, 111, {{0, 100}, {1, 40}});
  Run(1, 120, 150);
  offsets_[1] += 64;  // its drain
  Run(0, 200, 300);
  Run(1, 210, 310);
  Drain(1, 311, {{0, 100}, {1, 40}});
  EXPECT_EQ(Continuous(), (std::map<int, bool>{{100, true}, {101, false}}));
  const auto gaps = WindowObject()["gaps"];
  ASSERT_FALSE(gaps.empty());
  for (const auto& gap : gaps) EXPECT_EQ(gap["why"], "unreadable") << gaps.dump();
}

// Who ran when is not known for certain: then nothing says since when the newest bytes are there.
TEST_F(SharedSinkTest, BelievesNoSwitchesOfWhichSomeAreLost) {
  Run(0, 0, 100);
  Run(1, 10, 510);
  story_.Lost(At(200), 0, 3);
  Drain(1, 511, {{0, 100}, {1, 40}}, kFrameBarrier);
  EXPECT_EQ(WindowObject()["from_ns"], At(510)) << "and not where CPU 0's thread left";
}

// Since Linux 6.2 the kernel gives the ids; what AUXTRACE_INFO says, perf made up before.
TEST_F(SharedSinkTest, TakesTheIdsThatTheKernelGave) {
  story_.HardwareId(At(0), 0, 100, 0x31);
  story_.HardwareId(At(0), 1, 101, 0x10);  // by AUXTRACE_INFO that of CPU 0
  Run(0, 0, 100);
  Run(1, 10, 110);
  FrameBytes frames;
  frames.Put(0x31, A64Run()).Put(0x10, A64Run() + A64Run()).Put(0x12, "of nobody");
  DrainBytes(1, 111, frames.Take());
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 1u);
  const auto& shares = spans[0]["bytes_of_cpu"];
  ASSERT_EQ(shares.size(), 3u) << shares.dump();
  EXPECT_TRUE(shares[0]["cpu"].is_null());
  EXPECT_EQ(shares[0]["trace_id"], 0x12);
  EXPECT_EQ(shares[1]["cpu"], 0);
  EXPECT_EQ(shares[1]["bytes"], A64Run().size());
  EXPECT_EQ(shares[2]["cpu"], 1);
  EXPECT_EQ(shares[2]["bytes"], 2 * A64Run().size());
  EXPECT_EQ(spans[0]["atoms"], 3 * 7) << "they are decoded by these ids, too";
  EXPECT_EQ(Continuous(), (std::map<int, bool>{{100, true}, {101, true}}));
}

// Since Linux 6.12 each sink has its own ids, and the kernel says which sink it is.
TEST_F(SharedSinkTest, TellsEqualIdsOfDifferentSinksApart) {
  const auto id = [](uint64_t sink, uint64_t trace_id) {
    return uint64_t{1} << 56 | sink << 8 | trace_id;
  };
  for (int cpu = 0; cpu < 4; ++cpu)
    story_.HardwareId(At(0), cpu, 100 + cpu, id(cpu / 2 + 7, 0x20 + cpu % 2));
  for (int cpu = 0; cpu < 4; ++cpu) Run(cpu, cpu, 100 + 10 * cpu);
  for (const int carrier : {1, 3}) {
    FrameBytes frames;
    frames.Put(0x20, A64Run()).Put(0x21, A64Run());
    DrainBytes(carrier, 101 + 10 * carrier, frames.Take());
  }
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto& shares = spans[i]["bytes_of_cpu"];
    ASSERT_EQ(shares.size(), 2u) << shares.dump();
    EXPECT_EQ(shares[0]["cpu"], 2 * i);
    EXPECT_EQ(shares[1]["cpu"], 2 * i + 1);
    EXPECT_EQ(spans[i]["atoms"], 2 * 7);
  }
  EXPECT_EQ(Continuous(),
            (std::map<int, bool>{{100, true}, {101, true}, {102, true}, {103, true}}));
}

}  // namespace
}  // namespace hangscope

// The data of a report: what a snapshot says, whatever it looks like.
#include "report/report_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "observe/report_writer.h"
#include "report/read_report.h"
#include "report/report_timeline.h"
#include "ring/ring_store.h"
#include "snapshot/manifest_writer.h"

namespace hangscope {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | static_cast<uint32_t>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits);
  }
  return bytes;
}

template <typename T>
std::vector<T> Column(const json& columns, const char* name) {
  const std::string bytes = Decoded(columns.at(name).get<std::string>());
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_EQ(values.size(), columns.at("n").get<size_t>()) << name;
  return values;
}

TEST(Base64, IsThatOfRfc4648) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kPairs) EXPECT_EQ(Base64(bytes), text);
  EXPECT_EQ(Base64(std::string("\xff\xfe\xfd\0", 4)), "//79AA==");
}

TEST(ReportData, CanStandInAPage) {
  Report report;
  report.title = "</script><b>\xff\x1b[31m";
  report.streams.push_back({"stdout", 3, {{0, std::nullopt, "", "</script>"}}, {}});
  const std::string text = ReportDataJson(report);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const json data = json::parse(text);
  EXPECT_EQ(data["title"], "</script><b>\xef\xbf\xbd\x1b[31m");
  EXPECT_EQ(data["streams"][0]["lines"][0]["text"], "</script>");
}

// A trace of one core and one task, told by hand.
class Timeline : public ::testing::Test {
 protected:
  Timeline() {
    head.tracks.push_back({{RingKind::kCore, 3, ""}, "core 3"});
    TraceEventKind push;
    push.name = "push";
    push.category = "sync";
    push.format = "block %u";
    push.fields = {{"block"}};
    head.kinds.push_back(push);
    Window window;
    window.rings.push_back({});
    window.rings[0].ring = {RingKind::kCore, 3, ""};
    window.rings[0].covered = {{900, 1000}};
    window.rings[0].stale = {{{100, 200}, 700, 1}};
    head.window = window;
  }
  ReportTimeline& Make(const TimelineLimits& limits) {
    timeline.emplace(head, 1000, limits);
    EXPECT_TRUE(timeline->Define({1, 0, TimelineRow::kCore, "core 3", 0, {}}).ok());
    EXPECT_TRUE(timeline->Define({2, 1, TimelineRow::kTask, "task 7", {}, 7}).ok());
    EXPECT_TRUE(timeline->Define({3, 1, TimelineRow::kCounter, "fill", {}, {}}).ok());
    return *timeline;
  }
  void Push(TimeNs time, uint64_t block) {
    TraceEvent event;
    event.values = {{block}};
    EXPECT_TRUE(timeline->Instant(1, time, event, head.kinds[0]).ok());
  }
  json Data() {
    timeline->Finish(end, &report);
    return json::parse(ReportDataJson(report));
  }

  TraceHead head;
  TraceEnd end;
  std::optional<ReportTimeline> timeline;
  Report report;
};

TEST_F(Timeline, HasSpansAndEventsInColumnsFromTheEnd) {
  ReportTimeline& sink = Make({});
  EXPECT_TRUE(sink.Begin(1, 900, SliceState::kRunning, "task 7", {}).ok());
  EXPECT_TRUE(sink.Begin(1, 920, SliceState::kFunction, "cb_push",
                         {{"function", "cb_push"}, {"source", ""}, {"at", "cb.c:41"}})
                  .ok());
  Push(930, 5);
  EXPECT_TRUE(sink.Begin(2, 935, SliceState::kWaiting, "cb3", {}).ok());
  EXPECT_TRUE(sink.End(1, 950).ok());
  EXPECT_TRUE(sink.End(1, 1000).ok());
  EXPECT_TRUE(sink.Gap(1, {940, 945}, {"overwritten", "12 records"}).ok());
  end.time = 1000;  // what is open is closed there
  const json data = Data();
  const json& core = data["tracks"][0];
  EXPECT_EQ(core["kind"], "core");
  EXPECT_EQ(data["tracks"][1]["kind"], "task");
  EXPECT_EQ(data["tracks"][1]["parent"], 0);
  EXPECT_EQ(data["tracks"].size(), 2u) << "counters are no tracks";
  EXPECT_THAT(Column<double>(core["spans"], "from"), ElementsAre(-100, -80));
  EXPECT_THAT(Column<double>(core["spans"], "to"), ElementsAre(0, -50));
  EXPECT_THAT(Column<uint8_t>(core["spans"], "state"), ElementsAre(0, 6));
  EXPECT_THAT(Column<uint8_t>(core["spans"], "depth"), ElementsAre(0, 1));
  const auto texts = Column<uint32_t>(core["spans"], "text");
  EXPECT_EQ(data["strings"][texts[1]], "cb_push (at cb.c:41)");
  EXPECT_THAT(Column<double>(data["tracks"][1]["spans"], "to"), ElementsAre(0));
  EXPECT_THAT(Column<double>(core["events"], "time"), ElementsAre(-70));
  EXPECT_EQ(data["strings"][Column<uint32_t>(core["events"], "text")[0]], "block 5");
  EXPECT_EQ(data["kinds"][0]["name"], "push");
  EXPECT_EQ(core["covered"], json::parse("[[-100,0]]"));
  EXPECT_EQ(core["stale"], json::parse("[[-900,-800]]"));
  EXPECT_EQ(core["gaps"],
            json::parse(R"([{"from":-60,"to":-55,"why":"overwritten","amount":"12 records"}])"));
}

TEST_F(Timeline, KeepsTheNewestAndCountsTheRest) {
  ReportTimeline& sink = Make({100, 10, 2000});
  for (uint64_t i = 0; i < 10'000; ++i) {
    const auto time = static_cast<TimeNs>(i);
    EXPECT_TRUE(sink.Begin(1, time, SliceState::kRunning, "run " + std::to_string(i), {}).ok());
    Push(time, i);
    EXPECT_TRUE(sink.End(1, time).ok());
  }
  const json data = Data();
  const json& core = data["tracks"][0];
  EXPECT_EQ(core["events"]["n"], 100);
  EXPECT_EQ(core["events"]["omitted"], 9900);
  EXPECT_EQ(Column<double>(core["events"], "time").front(), 9900.0 - 1000);
  EXPECT_EQ(data["strings"][Column<uint32_t>(core["events"], "text").back()], "block 9999");
  EXPECT_EQ(core["spans"]["n"], 10);
  EXPECT_EQ(Column<double>(core["spans"], "to").back(), 9999.0 - 1000);
  EXPECT_EQ(data["strings"].size(), 110u) << "texts of what is left out are not in it";
  EXPECT_THAT(report.lost, Contains(HasSubstr("9 900 older events")));
  EXPECT_THAT(report.lost, Contains(HasSubstr("9 990 older spans")));
}

TEST_F(Timeline, HasCountersInTheRowOfTheirCore) {
  ReportTimeline& sink = Make({3, 10, 2000});
  EXPECT_TRUE(sink.Define({4, 99, TimelineRow::kCounter, "of nobody", {}, {}}).ok());
  for (const auto& [time, value] : {std::pair{900, 1}, {910, 1}, {920, 8}, {930, 7}, {940, 9}}) {
    EXPECT_TRUE(sink.Count(3, time, static_cast<uint64_t>(value)).ok());
    EXPECT_TRUE(sink.Count(4, time, 5).ok());
  }
  const json data = Data();
  EXPECT_EQ(data["tracks"].size(), 2u);
  ASSERT_EQ(data["tracks"][0]["counters"].size(), 1u);
  const json& fill = data["tracks"][0]["counters"][0];
  EXPECT_EQ(fill["name"], "fill");
  EXPECT_EQ(fill["omitted"], 1) << "the oldest of four changes: the same again is none";
  EXPECT_THAT(Column<double>(fill, "time"), ElementsAre(-80, -70, -60));
  EXPECT_THAT(Column<double>(fill, "value"), ElementsAre(8, 7, 9));
}

TEST_F(Timeline, HasTheNewestFlowsByTheirEnds) {
  ReportTimeline& sink = Make({10, 2, 2000});
  EXPECT_TRUE(sink.Flow(1, 1, 900, 2, 905, "wakes old", true).ok());
  EXPECT_TRUE(sink.Flow(2, 1, 980, 2, 990, "waited for: cb3", false).ok());
  EXPECT_TRUE(sink.Flow(3, 2, 950, 1, 960, "wakes core 3", true).ok());
  EXPECT_TRUE(sink.Flow(4, 77, 950, 1, 960, "from nowhere", false).ok());
  const json data = Data();
  const json& flows = data["flows"];
  EXPECT_EQ(flows["omitted"], 1);
  EXPECT_THAT(Column<double>(flows, "to_time"), ElementsAre(-40, -10));
  EXPECT_THAT(Column<double>(flows, "from_time"), ElementsAre(-50, -20));
  EXPECT_THAT(Column<uint32_t>(flows, "from_track"), ElementsAre(1, 0));
  EXPECT_THAT(Column<uint32_t>(flows, "to_track"), ElementsAre(0, 1));
  const auto texts = Column<uint32_t>(flows, "text");
  EXPECT_EQ(data["strings"][texts[0]], "wakes core 3");
  EXPECT_THAT(data["strings"], ::testing::Not(Contains("wakes old")));
}

// A thread that waits for nobody that is known, and two that it met.
class Woken : public Timeline {
 protected:
  Woken() {
    ReportTimeline& sink = Make({});
    EXPECT_TRUE(sink.Define({4, 0, TimelineRow::kTask, "thread 8 waker", {}, 8}).ok());
    ReportNode node;
    node.name = "7 sleeper";
    node.state = "waiting";
    node.who = TraceWho{true, 7};
    report.graph.nodes.push_back(node);
    end.standings.push_back({{true, 7}, Activity::kWaiting, 960, "futex", {}, "", ""});
    end.standings.push_back({{true, 8}, Activity::kRunning, {}, "", {}, "", ""});
  }
  void Wake(TimelineTrackId by, TimeNs time) {
    EXPECT_TRUE(timeline->Flow(1, by, time, 2, time, "wakes task 7", true).ok());
  }
};

TEST_F(Woken, IsJoinedToWhoeverWokeItLast) {
  Wake(4, 900);
  Wake(4, 950);
  // nobody woke it by that
  EXPECT_TRUE(timeline->Flow(2, 1, 1000, 2, 1000, "waited for: futex", false).ok());
  const json graph = Data()["graph"];
  ASSERT_EQ(graph["nodes"].size(), 2u);
  EXPECT_EQ(graph["nodes"][1],
            json::parse(R"({"id":1,"name":"thread 8 waker","state":"running"})"));
  EXPECT_EQ(graph["edges"],
            json::parse(R"([{"from":0,"to":1,"kind":"wakes","label":"5e-05 ms before the end"}])"));
}

TEST_F(Woken, IsNotWhereItIsKnownForWhomItWaits) {
  Wake(4, 950);
  report.graph.edges.push_back({0, 0, "lock", false});
  EXPECT_EQ(Data()["graph"]["edges"].size(), 1u);
}

TEST_F(Woken, IsNotByAnInterrupt) {
  Wake(4, 900);
  Wake(1, 950);  // on the core, where no task ran
  EXPECT_FALSE(Data()["graph"].contains("edges"));
}

TEST_F(Timeline, HasEachTextOnce) {
  Make({});
  for (int i = 0; i < 1000; ++i) Push(i, 5);
  EXPECT_EQ(Data()["strings"], json::parse(R"(["block 5"])"));
}

TEST_F(Timeline, SaysHowEverybodyStoodAtTheEnd) {
  Make({});
  end.standings.push_back(
      {{false, 3}, Activity::kWaiting, 940, "cb3 of (1,2)", {}, "CRBW, dataflow.c:88", ""});
  end.standings.push_back({{true, 7}, Activity::kCorrupt, {}, "", {}, "", ""});
  end.standings.push_back({{true, 99}, Activity::kRunning, {}, "", {}, "", ""});
  ReportNode node;
  node.first = true;
  node.who = TraceWho{false, 3};
  report.graph.nodes.push_back(node);
  const json data = Data();
  EXPECT_EQ(data["tracks"][0]["state"], "waiting");
  EXPECT_EQ(data["tracks"][0]["what"], "waits for cb3 of (1,2)");
  EXPECT_EQ(data["tracks"][0]["since"], -60);
  EXPECT_EQ(data["tracks"][0]["first"], true);
  EXPECT_EQ(data["graph"]["nodes"][0]["name"], "core 3");
  EXPECT_FALSE(data["tracks"][1].contains("state"));
  EXPECT_EQ(data["tracks"][1]["what"], "its mailbox cannot be right");
}

class OfSnapshot : public ::testing::Test {
 protected:
  static constexpr char kFolder[] = "trace/fw.snapshot-0001";

  OfSnapshot() {
    EXPECT_TRUE(files.MakeFolders(kFolder).ok());
    manifest.start = clock.Monotonic();
    auto geometry = PlanRing("256K", "1", 8);
    EXPECT_TRUE(geometry.ok());
    auto ring = RingStore::Create(files, clock, "trace/fw.stdout", "stdout", *geometry, 1);
    EXPECT_TRUE(ring.ok());
    ring_ = std::move(*ring);
    manifest.command = {"/opt/fw", "--fast"};
    manifest.verdict.state = State::kLooping;
    manifest.verdict.confidence = Confidence::kLikely;
    manifest.verdict.summary = "looping, the only core seen spins";
    manifest.verdict.doubts = {"the address that is polled is not known"};
    CoreVerdict core;
    core.name = "hart 0";
    core.state = State::kLooping;
    core.loop =
        Loop{{{0x80000408, "spin", "loop.c:7"}}, LoopBasis::kBody, 12, false, 0, false, {}, false};
    manifest.verdict.cores.push_back(core);
  }
  void Print(const std::string& text) {
    clock.Advance(kSecond);
    EXPECT_EQ(ring_->Append(text, clock.Monotonic()), text.size());
  }
  void Take() {
    clock.Advance(kSecond);
    manifest.time = manifest.trigger.time = clock.Monotonic();
    manifest.wall = clock.Wall();
    manifest.verdict.time = manifest.time;
    manifest.trigger.name = "hang";
    manifest.streams = {{"stdout", 0, 10, 0, 0, {}}};
    EXPECT_TRUE(ring_->Freeze(kFolder).ok());
    Write("manifest.json", ManifestJson(manifest));
  }
  void Write(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(WriteWholeFile(files, std::string(kFolder) + "/" + name, bytes).ok());
  }
  Result<Report> Read() {
    ReportOptions options;
    options.source.target = kFolder;
    return ReadReport(files, clock, options);
  }
  json Data() {
    auto report = Read();
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? json::parse(ReportDataJson(*report)) : json();
  }
  std::string& BytesOf(const std::string& name) {
    return files.BytesOf(std::string(kFolder) + "/" + name);
  }

  FakeFileSystem files;
  FakeClock clock;
  Manifest manifest;

 private:
  std::unique_ptr<RingStore> ring_;
};

TEST_F(OfSnapshot, HasTheVerdictTheRunAndTheLastLines) {
  Print("boot\n");
  Print("ready\nhalf");
  Take();
  const json data = Data();
  EXPECT_EQ(data["version"], 1);
  EXPECT_EQ(data["title"], "fw");
  EXPECT_EQ(data["headline"], "looping, the only core seen spins");
  EXPECT_EQ(data["state"], "looping");
  EXPECT_EQ(data["confidence"], "likely");
  EXPECT_EQ(data["hang"], true);
  EXPECT_THAT(data["doubts"], ElementsAre("the address that is polled is not known"));
  EXPECT_EQ(data["run"][0], json::parse(R"(["command","/opt/fw --fast"])"));
  EXPECT_EQ(data["trigger"], json::parse(R"({"time":0,"text":"hang"})"));
  EXPECT_EQ(data["loops"][0]["places"][0]["function"], "spin");
  EXPECT_FALSE(data.contains("troubles")) << data["troubles"];
  const json& lines = data["streams"][0]["lines"];
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["text"], "boot");
  EXPECT_EQ(lines[1]["offset"], 5);
  EXPECT_EQ(lines[2]["text"], "half");
  EXPECT_EQ(lines[2]["offset"], 11);
  EXPECT_NEAR(lines[0]["time"].get<double>(), -2e9, 1e6);
  EXPECT_NEAR(lines[1]["time"].get<double>(), -1e9, 1e6);
}

TEST_F(OfSnapshot, HasWhatWasPrintedLast) {
  manifest.verdict.last_output = {{"stdout", {"ready", "Go on? "}, true, false, 0}};
  Take();
  const json data = Data();
  EXPECT_EQ(data["last_output"],
            json::parse(R"([{"stream":"stdout","lines":["ready","Go on? "],"unfinished":true}])"));
}

TEST_F(OfSnapshot, TakesColoursOutOfTheLines) {
  Print("\x1b[31mred\x1b[0m\n");
  Take();
  EXPECT_EQ(Data()["streams"][0]["lines"][0]["text"], "red");
}

TEST_F(OfSnapshot, ShowsOnlyTheEndOfALongStream) {
  for (int i = 0; i < 5000; ++i) Print("line " + std::to_string(i) + "\n");
  Take();
  const json lines = Data()["streams"][0]["lines"];
  EXPECT_EQ(lines.size(), 2000u);
  EXPECT_EQ(lines.front()["text"], "line 3000");
  EXPECT_EQ(lines.back()["text"], "line 4999");
}

TEST_F(OfSnapshot, SaysOfANewerManifestWhatMayBeMissingAndShowsTheRest) {
  Print("boot\n");
  Take();
  json newer = json::parse(BytesOf("manifest.json"));
  newer["version"] = 3;
  newer["verdict"]["state"] = "bewitched";
  newer["streams"].push_back({{"name", "../../etc/passwd"}});
  newer["streams"].push_back(7);
  newer["window"] = {{"from_ns", 1e300}, {"to_ns", "soon"}};
  Write("manifest.json", newer.dump());
  const json data = Data();
  EXPECT_EQ(data["state"], "bewitched");
  EXPECT_EQ(data["streams"].size(), 1u);
  EXPECT_THAT(data["troubles"].dump(),
              HasSubstr("of version 3, and this hangscope knows version 2"));
  EXPECT_THAT(data["troubles"].dump(), HasSubstr("'../../etc/passwd', which is no name of one"));
  EXPECT_THAT(data["troubles"].dump(), HasSubstr("window whose times cannot be right"));
}

TEST_F(OfSnapshot, ShowsTheStreamsWhereTheManifestIsGone) {
  Print("boot\n");
  Take();
  Write("manifest.json", "{\"verdict\": ");
  json data = Data();
  EXPECT_EQ(data["streams"][0]["lines"][0]["text"], "boot");
  EXPECT_THAT(data["troubles"].dump(), HasSubstr("manifest.json' is no JSON object"));
  EXPECT_THAT(data["headline"].get<std::string>(), HasSubstr("no verdict was taken along"));
  EXPECT_TRUE(files.Remove(std::string(kFolder) + "/manifest.json").ok());
  data = Data();
  EXPECT_EQ(data["streams"][0]["lines"][0]["text"], "boot");
}

TEST_F(OfSnapshot, NamesEachPartThatCannotBeRead) {
  Print("boot\n");
  Take();
  Write("stdout.index", "no index");
  Write("scope.bin", std::string(5000, '\x55'));
  Write("cpu.perf.data", "PERFILE2 and no more");
  const json data = Data();
  EXPECT_EQ(data["headline"], "looping, the only core seen spins");
  const std::string warnings = data["troubles"].dump();
  EXPECT_THAT(warnings, HasSubstr("stdout.index"));
  EXPECT_THAT(warnings, HasSubstr("scope.bin"));
  EXPECT_THAT(warnings, HasSubstr("cpu.perf.data"));
}

TEST_F(OfSnapshot, FailsWhereNothingCanBeRead) {
  Write("manifest.json", "[]");
  auto report = Read();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("manifest.json"));
}

TEST_F(OfSnapshot, SurvivesAManifestOfWhichAnyByteIsWrong) {
  Print("boot\n");
  manifest.window = Window();
  manifest.window->time = {1, clock.Monotonic()};
  manifest.window->rings.push_back({});
  manifest.window->gaps.push_back({0, 7, {2, 3}, GapReason::kTorn, 1, AmountUnit::kRecords});
  manifest.scope.image = "scope.bin";
  manifest.scope.clocks = {{0, 5, 6, 1.5, 1}};
  manifest.scope.cores.resize(1);
  manifest.scope.cores[0].in_use = true;
  Take();
  const std::string whole = BytesOf("manifest.json");
  ASSERT_THAT(Data()["lost"].dump(), HasSubstr("torn"));
  std::mt19937 random(3);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = "\"{}[],:0179-eE.\\nfalse\xff"[random() % 22];
    if (i % 10 == 0) bytes.resize(random() % bytes.size());
    BytesOf("manifest.json") = bytes;
    auto report = Read();
    if (!report.ok()) continue;
    ++read;
    ASSERT_TRUE(json::accept(ReportDataJson(*report))) << bytes;
  }
  EXPECT_GT(read, 2900) << "the streams are there in any case";
}

TEST_F(OfSnapshot, GetsItsPageFromAThreadOfItsOwn) {
  Print("boot\n");
  Take();
  ReportWriter writer(files);
  writer.Write(kFolder);
  writer.Finish();
  EXPECT_THAT(writer.DrainWarnings(), IsEmpty());
  EXPECT_THAT(BytesOf("report.html"), HasSubstr("looping, the only core seen spins"));
  for (const std::string& name : files.List("trace"))
    EXPECT_FALSE(name.ends_with(".partial")) << name;
}

TEST_F(OfSnapshot, SaysWhyItsPageCouldNotBeWritten) {
  Print("boot\n");
  Take();
  ReportWriter writer(files);
  files.write_error = ENOSPC;
  writer.Write(kFolder);
  writer.Finish();
  EXPECT_THAT(writer.DrainWarnings(),
              ElementsAre(AllOf(HasSubstr("trace/fw.snapshot-0001/report.html'"),
                                HasSubstr("No space left"))));
  EXPECT_FALSE(files.Exists(std::string(kFolder) + "/report.html"));
  EXPECT_THAT(writer.DrainWarnings(), IsEmpty());
  // One that is gone meanwhile is missed by nobody.
  EXPECT_TRUE(files.RemoveFolder(kFolder).ok());
  writer.Write(kFolder);
  writer.Finish();
  EXPECT_THAT(writer.DrainWarnings(), IsEmpty());
}

}  // namespace
}  // namespace hangscope

// What people, machines and CI get to read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "observe/narrator.h"
#include "ring/history.h"
#include "ring/ring_store.h"
#include "snapshot/snapshots.h"
#include "verdict/json.h"
#include "verdict/junit.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr TimeNs kStart = 1000 * kSecond;

Verdict Hang() {
  Verdict verdict;
  verdict.state = State::kLooping;
  verdict.confidence = Confidence::kLikely;
  verdict.time = kStart + 41 * kSecond;
  verdict.since = kStart + 10 * kSecond;
  verdict.summary = "looping, 1 of 2 cores spin";
  verdict.doubts = {"hart 0: the address that is polled is not known"};
  CoreVerdict core;
  core.name = "hart 0";
  core.stream = "stdout";
  core.state = State::kLooping;
  core.since = verdict.since;
  core.place = {0x80000808, "cb_reserve_back", "cb.c:8"};
  core.loop = Loop{};
  core.loop->places = {core.place, {0x8000080c, "poll", "cb.c:9"}};
  core.loop->rounds = 1234567;
  core.loop->basis = LoopBasis::kBody;
  verdict.cores.push_back(core);
  core.name = "hart 1";
  core.state = State::kSilent;
  core.asleep = true;
  core.loop.reset();
  verdict.cores.push_back(core);
  return verdict;
}

TEST(VerdictText, IsFoundInAReport) {
  Manifest manifest;
  manifest.start = kStart;
  manifest.verdict = Hang();
  manifest.command = {"fw"};
  EXPECT_EQ(VerdictInReport(ReportText(manifest)), VerdictText(Hang(), kStart, ""));
}

TEST(VerdictText, NamesTheLoop) {
  const std::string text = VerdictText(Hang(), kStart, "trace/fw.snapshot-0001/");
  EXPECT_EQ(text,
            "hangscope: HANG after 41.0 s: looping, 1 of 2 cores spin (likely)\n"
            "  hart 0  spins 31.0 s, 1 234 567 times round 2 places (0x80000808..0x8000080c)  "
            "cb_reserve_back  cb.c:8  through poll\n"
            "  hart 1  sleeps (wfi) since 31.0 s  cb_reserve_back  cb.c:8\n"
            "  first to stop: hart 0, 10.0 s after the start\n"
            "  not certain: hart 0: the address that is polled is not known\n"
            "  snapshot: trace/fw.snapshot-0001/\n");
}

Verdict HangWithOutput() {
  Verdict verdict = Hang();
  verdict.last_output = {
      {"stdout", {"ready", "block \033[2J4711 sent"}, false, false, kStart + 10 * kSecond},
      {"stderr", {"warning"}, false, false, kStart + 9 * kSecond},
      {"trace", {"in between"}, false, true, kStart + 40 * kSecond}};
  return verdict;
}

TEST(VerdictText, SaysWhatWasPrintedLast) {
  const auto line = [](const Verdict& verdict) {
    const std::string text = VerdictText(verdict, kStart, "");
    const size_t at = text.find("  last output: ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  Verdict verdict = HangWithOutput();
  EXPECT_EQ(line(verdict), "  last output: \"block \\x1b[2J4711 sent\"  (stdout, 31.0 s ago)");
  verdict.last_output[1].time = kStart + 11 * kSecond;
  verdict.last_output[1].unfinished = true;
  EXPECT_EQ(line(verdict),
            "  last output: \"warning\"  (stderr, 30.0 s ago, without an end of line)");
  verdict.last_output[0].lines.clear();
  verdict.last_output[1].lines.clear();
  EXPECT_EQ(line(verdict), "  last output: \"in between\"  (trace, 1.0 s ago)");
  verdict.last_output[2].lines.clear();
  EXPECT_EQ(line(verdict), "");
}

TEST(VerdictText, AReportHasTheLastLinesOfEachStream) {
  Manifest manifest;
  manifest.start = kStart;
  manifest.verdict = HangWithOutput();
  const std::string text = ReportText(manifest);
  EXPECT_NE(text.find("\n\nprinted last (stdout, 31.0 s ago):\n  ready\n  block \\x1b[2J4711 sent\n"
                      "\nprinted last (stderr, 32.0 s ago):\n  warning\n"),
            std::string::npos)
      << text;
}

TEST(VerdictJson, HasWhatWasPrintedLast) {
  Verdict verdict = HangWithOutput();
  verdict.last_output[1].lines.clear();
  verdict.last_output[2].unfinished = true;
  const Json json = Json::parse(VerdictJson(verdict, "", kStart, 0));
  EXPECT_EQ(
      json["last_output"],
      Json::parse(R"([{"stream":"stdout","lines":["ready","block \u001b[2J4711 sent"],"age_s":31.0},
                            {"stream":"trace","lines":["in between"],"unfinished":true,"age_s":1.0}])"));
  EXPECT_FALSE(Json::parse(VerdictJson(Hang(), "", kStart, 0)).contains("last_output"));
}

TEST(VerdictText, SaysAtLeastWhereTheStartIsOverwritten) {
  Verdict verdict = Hang();
  verdict.cores[0].since_at_least = verdict.cores[0].loop->at_least = true;
  const std::string text = VerdictText(verdict, kStart, "");
  EXPECT_NE(text.find("spins at least 31.0 s, at least 1 234 567 times"), std::string::npos)
      << text;
}

TEST(VerdictText, SaysSinceWhenInSimulatedTime) {
  Verdict verdict = Hang();
  verdict.cores[0].since_cycle = 284564;
  EXPECT_NE(VerdictText(verdict, kStart, "").find("spins 31.0 s, since cycle 284 564, 1 234 567"),
            std::string::npos);
  const Json json = Json::parse(VerdictJson(verdict, "", kStart, 0));
  EXPECT_EQ(json["cores"][0]["since_cycle"], 284564);
  verdict.cores[0].loop.reset();
  verdict.cores[0].state = State::kSilent;
  EXPECT_NE(VerdictText(verdict, kStart, "").find("silent since 31.0 s, cycle 284 564,"),
            std::string::npos);
}

TEST(VerdictText, WhatNobodyCouldLookIntoOnlyRepeats) {
  Verdict verdict = Hang();
  verdict.cores[0].loop->basis = LoopBasis::kPlaces;
  EXPECT_NE(VerdictText(verdict, kStart, "").find("hart 0  repeats 31.0 s"), std::string::npos);
}

Verdict LogHang() {
  Verdict verdict = Hang();
  verdict.cores.resize(1);
  CoreVerdict& core = verdict.cores[0];
  core.name = "stdout";
  core.place = {};
  core.place.text = "wait \033[2Jfor link";
  core.loop->places = {core.place, core.place, core.place};
  core.loop->places[1].text = "no link, retry <n>";
  core.loop->basis = LoopBasis::kLines;
  return verdict;
}

TEST(VerdictText, QuotesLogLinesAndEscapesThem) {
  const std::string text = VerdictText(LogHang(), kStart, "");
  EXPECT_NE(text.find("  stdout  repeats 31.0 s, 1 234 567 times round 3 lines  "
                      "\"wait \\x1b[2Jfor link\", \"no link, retry <n>\"\n"),
            std::string::npos)
      << text;
  Heartbeat beat;
  beat.verdict = LogHang();
  beat.now = kStart + 41 * kSecond;
  EXPECT_NE(HeartbeatText(beat).find("stdout repeats 31.0 s \"wait \\x1b[2Jfor link\""),
            std::string::npos)
      << HeartbeatText(beat);
}

TEST(VerdictText, NamesFromTheTargetAreEscaped) {
  Verdict verdict = Hang();
  verdict.cores[0].name = "/soc/\033[31mhost";
  verdict.cores[0].place.function = "wait\a";
  verdict.cores[0].loop->places[1].function = "poll\r";
  verdict.doubts = {verdict.cores[0].name + ": prints nothing any more"};
  const std::string text = VerdictText(verdict, kStart, "");
  EXPECT_EQ(std::count_if(text.begin(), text.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }),
            0)
      << text;
}

TEST(ValidUtf8, ReplacesWhatStrictReadersRefuse) {
  EXPECT_EQ(ValidUtf8("caf\xc3\xa9 \xf0\x9f\x99\x82\n"), "caf\xc3\xa9 \xf0\x9f\x99\x82\n");
  EXPECT_EQ(ValidUtf8("a\xff"), "a\xef\xbf\xbd");
  // Overlong, half of a pair, beyond the last character: a mark for each byte.
  for (const char* bad : {"\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf"})
    EXPECT_EQ(ValidUtf8(bad), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  for (const char* bad : {"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80"})
    EXPECT_EQ(ValidUtf8(bad).size(), 12u);
  for (const char* good :
       {"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(ValidUtf8(good), good);
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\n\t\r\x1b\x7f"), "a\\n\\t\\r\\x1b\\x7f");
  EXPECT_EQ(Printable("caf\xc3\xa9 \xc2\x9b \xe2\x80\xae \xff"),
            "caf\xc3\xa9 \\xc2\\x9b \\xe2\\x80\\xae \\xff");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("ab\xc3\xa9", 3), "ab...");
}

TEST(VerdictJson, PlaceOfALogLineIsItsText) {
  const Json json = Json::parse(VerdictJson(LogHang(), "", kStart, 0));
  EXPECT_EQ(json["cores"][0]["text"], "wait \033[2Jfor link");
  EXPECT_FALSE(json["cores"][0].contains("pc"));
  EXPECT_EQ(json["cores"][0]["loop"]["places"][1],
            Json::parse(R"({"text": "no link, retry <n>"})"));
  EXPECT_EQ(json["cores"][0]["loop"]["basis"], "lines");
}

TEST(VerdictJson, HasTheDocumentedFields) {
  const Json json = Json::parse(VerdictJson(Hang(), "", kStart, 0));
  EXPECT_EQ(json["type"], "verdict");
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(json["state"], "looping");
  EXPECT_EQ(json["confidence"], "likely");
  EXPECT_EQ(json["hang"], true);
  EXPECT_EQ(json["for_s"], 31.0);
  EXPECT_EQ(json["cores"][0]["state"], "looping");
  EXPECT_EQ(json["cores"][0]["loop"]["rounds"], 1234567);
  EXPECT_EQ(json["cores"][0]["loop"]["places"][1]["pc"], "0x8000080c");
  EXPECT_EQ(json["cores"][1]["asleep"], true);
}

TEST(VerdictJson, NamesThatAreNoUtf8DoNotBreakIt) {
  Verdict verdict = Hang();
  verdict.cores[0].place.function = "\xff\xfe";
  EXPECT_NO_THROW({ const Json json = Json::parse(VerdictJson(verdict, "", kStart, 0)); });
}

TEST(HeartbeatText, TellsLifeAlsoWhenNothingArrives) {
  Heartbeat beat;
  beat.elapsed = 15 * kSecond;
  StreamPulse pulse;
  pulse.name = "stdout";
  pulse.bound_bytes = 1572864000;
  beat.streams.push_back(pulse);
  beat.child_cpu = 0.98;
  EXPECT_EQ(HeartbeatText(beat),
            "15.0 s  stdout 0 B, nothing yet, ring 0 % of 1.46 GiB  child 98 % CPU  progressing");
  beat.streams[0].total_bytes = 1 << 20;
  beat.streams[0].last_byte_age = 7 * kSecond;
  beat.streams[0].lost_bytes = 2048;
  const std::string text = HeartbeatText(beat);
  EXPECT_NE(text.find("last byte 7.0 s ago"), std::string::npos);
  EXPECT_NE(text.find("LOST 2.00 KiB"), std::string::npos);
}

TEST(HeartbeatText, SaysWhoIsWaitedForOnceTheProgramHasEnded) {
  Heartbeat beat;
  beat.elapsed = 15 * kSecond;
  beat.verdict.summary = "silent";
  EXPECT_FALSE(Json::parse(HeartbeatJson(beat, 0)).contains("waits_for_output"));
  beat.waits_for_output = "the program ended with status 3; waiting for \x1bsleep (process 42)";
  EXPECT_EQ(LiveHeartbeatText(beat),
            "15.0 s  the program ended with status 3; waiting for \\x1bsleep (process 42)");
  EXPECT_EQ(Json::parse(HeartbeatJson(beat, 0))["waits_for_output"], beat.waits_for_output);
}

TEST(Junit, HangIsAFailureAndACrashAnError) {
  JunitCase result;
  result.name = "qemu <fw> & \"more\"";
  result.failure = "hang: looping";
  result.report = "a\x01<b>";
  const std::string xml = JunitXml(result);
  EXPECT_NE(xml.find("failures=\"1\" errors=\"0\""), std::string::npos);
  EXPECT_NE(xml.find("name=\"qemu &lt;fw&gt; &amp; &quot;more&quot;\""), std::string::npos);
  EXPECT_NE(xml.find(">a?&lt;b&gt;</failure>"), std::string::npos);
  result.name = "caf\xc3\xa9 \xff\xe2\x82";
  EXPECT_NE(JunitXml(result).find("name=\"caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
            std::string::npos);
  // A surrogate, an overlong slash, U+FFFE, U+FFFF: no XML has any.
  result.name = "\xed\xa0\x80 \xc0\xaf \xe0\x80\xaf \xef\xbf\xbe \xef\xbf\xbf";
  for (const char* bad : {"\xed\xa0", "\xc0\xaf", "\x80\xaf", "\xef\xbf\xbe", "\xef\xbf\xbf"})
    EXPECT_EQ(JunitXml(result).find(bad), std::string::npos) << bad;
  result.failure.clear();
  result.error = "killed by signal 11";
  EXPECT_NE(JunitXml(result).find("failures=\"0\" errors=\"1\""), std::string::npos);
  result.error.clear();
  EXPECT_EQ(JunitXml(result).find("<failure"), std::string::npos);
}

TEST(Junit, TheEndOfTheOutputFollowsTheFailure) {
  JunitCase result;
  result.failure = "hang: silent";
  result.out = "a <b>\x1b[0m\xc2\x9b\t\r\n\tcaf\xc3\xa9\r";
  EXPECT_NE(JunitXml(result).find("</failure>\n    <system-out>a &lt;b&gt;\\x1b[0m\\xc2\\x9b\t\n"
                                  "\tcaf\xc3\xa9\\r</system-out>\n  </testcase>"),
            std::string::npos);
  EXPECT_EQ(JunitXml(result).find("system-err"), std::string::npos);
  result.err = "]]> &";
  EXPECT_NE(JunitXml(result).find("</system-out>\n    <system-err>]]&gt; &amp;</system-err>\n"),
            std::string::npos);
}

TEST(Junit, HeadlineNamesTheFirstSubject) {
  Verdict verdict;
  verdict.state = State::kSilent;
  verdict.summary = "silent";
  EXPECT_EQ(HeadlineWithSubject(verdict), "silent");
  for (const auto& [name, since] : {std::pair("hart 0", TimeNs{9}), {"hart 1", 5}, {"hart 2", 1}}) {
    CoreVerdict core;
    core.name = name;
    core.since = since;
    core.state = since == 1 ? State::kProgressing : State::kLooping;
    core.place = {0x80, "cb_wait_front", "cb.c:8"};
    verdict.cores.push_back(core);
  }
  EXPECT_EQ(HeadlineWithSubject(verdict), "silent: hart 1  cb_wait_front  cb.c:8");
  verdict.findings.emplace_back();
  verdict.by_finding = true;
  EXPECT_EQ(HeadlineWithSubject(verdict), "silent");
  verdict.findings[0].lines = {
      "19772 \x1b"
      "abba  waits for mutex b",
      "19773 abba"};
  EXPECT_EQ(HeadlineWithSubject(verdict), "silent: 19772 \\x1babba  waits for mutex b");
}

TEST(Narrator, LiveLineIsRewrittenAndMadeRoomFor) {
  std::string screen;
  NarratorOptions options;
  options.write = [&](std::string_view text) { screen += text; };
  options.columns = [] { return 40; };
  options.live = true;
  Narrator narrator(options, kStart);
  narrator.Beat({});
  EXPECT_TRUE(screen.starts_with("\r\033[Khangscope: 0.0 s"));
  EXPECT_EQ(screen.find('\n'), std::string::npos);
  EXPECT_LT(screen.size(), 40u + 4);
  screen.clear();
  narrator.Note("hello", 0);
  EXPECT_EQ(screen, "\r\033[Khangscope: hello\n");
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    auto plan = PlanRing("64K", "1", 10);
    auto store = RingStore::Create(disk_, clock_, "dir/fw.stdout", "stdout", *plan, 7);
    store_ = std::move(*store);
    store_->Append("one\ntwo\n", clock_.Monotonic());
  }
  std::string Take(Snapshots* snapshots) {
    Manifest manifest;
    manifest.trigger.name = "test";
    auto folder = snapshots->Take({store_.get()}, &manifest);
    return folder.ok() ? *folder : "failed: " + folder.status().message();
  }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::unique_ptr<RingStore> store_;
};

TEST_F(SnapshotTest, IsCompleteWithManifestStreamsAndReport) {
  Snapshots snapshots(disk_, "dir/fw", 2);
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0001");
  const Json manifest = Json::parse(disk_.BytesOf("dir/fw.snapshot-0001/manifest.json"));
  EXPECT_EQ(manifest["format"], "hangscope-snapshot");
  EXPECT_EQ(manifest["version"], 2);
  EXPECT_EQ(manifest["streams"][0]["end_offset"], 8);
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/report.txt"));
  auto reader = BlockReader::Open(disk_, "dir/fw.snapshot-0001/stdout");
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->Next(), BlockReader::Event::kBlock);
  EXPECT_EQ(reader->block(), "one\ntwo\n");
  EXPECT_EQ(FindHistory(disk_, "dir/fw.snapshot-0001/").size(), 1u);
}

TEST_F(SnapshotTest, IsAbsentWhenItFails) {
  Snapshots snapshots(disk_, "dir/fw", 2);
  disk_.capacity = disk_.Used() + 100;  // no room for the index
  EXPECT_EQ(Take(&snapshots).substr(0, 6), "failed");
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001"));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001.partial"));
  disk_.capacity = 1 << 30;
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0001");
}

TEST_F(SnapshotTest, FirstAndNewestStayEarlierRunsGoFirst) {
  {
    Snapshots earlier(disk_, "dir/fw", 2);
    Take(&earlier);
    Take(&earlier);
  }
  Snapshots snapshots(disk_, "dir/fw", 2);
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0003");
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001"));
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0002"));
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0004");
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0002"));
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0005");
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0003"));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0004"));
}

TEST_F(SnapshotTest, DraftThatAKilledRecorderLeftIsRemoved) {
  // Of numbers that no process has; a page that was being drawn, too.
  const std::string left = "dir/fw.snapshot-0001.2147483646.partial";
  ASSERT_TRUE(
      WriteWholeFile(disk_, "dir/fw.snapshot-0002.report.2147483645.partial", "<html>").ok());
  const std::string live = "dir/fw.snapshot-0001." + std::to_string(getppid()) + ".partial";
  const std::string mine = "dir/fw.snapshot-0001.partial";
  for (const std::string& folder : {left, live, mine}) {
    ASSERT_TRUE(disk_.MakeFolders(folder).ok());
    ASSERT_TRUE(WriteWholeFile(disk_, folder + "/manifest.json", "{").ok());
  }
  Snapshots snapshots(disk_, "dir/fw", 2);
  EXPECT_FALSE(disk_.Exists(left));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0002.report.2147483645.partial"));
  EXPECT_TRUE(disk_.Exists(live + "/manifest.json"));
  EXPECT_TRUE(disk_.Exists(mine + "/manifest.json"));
}

TEST_F(SnapshotTest, WhatIsNoSnapshotStaysWhateverItsName) {
  ASSERT_TRUE(disk_.MakeFolders("dir/fw.snapshot-0001").ok());
  ASSERT_TRUE(WriteWholeFile(disk_, "dir/fw.snapshot-0001/manifest.json", "{}").ok());
  Snapshots snapshots(disk_, "dir/fw", 1);
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0002");
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0003");
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0002"));
}

TEST_F(SnapshotTest, OneWithAFileOfSomebodyElseStays) {
  Snapshots snapshots(disk_, "dir/fw", 1);
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0001");
  ASSERT_TRUE(WriteWholeFile(disk_, "dir/fw.snapshot-0001/notes.txt", "mine").ok());
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0002");
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0003");
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/notes.txt"));
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0002"));
}

TEST_F(SnapshotTest, TheOlderOneStaysWhereTheNewOneFails) {
  Snapshots snapshots(disk_, "dir/fw", 1, true);
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0001");
  disk_.capacity = disk_.Used() + 100;  // no room for the index
  EXPECT_EQ(Take(&snapshots).substr(0, 6), "failed");
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
  disk_.capacity = 1 << 30;
  EXPECT_EQ(Take(&snapshots), "dir/fw.snapshot-0002");
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001"));
}

TEST_F(SnapshotTest, SaysWhatFiredAndWhen) {
  Snapshots snapshots(disk_, "dir/fw", 2);
  Manifest manifest;
  manifest.start = manifest.start_wall = 1000 * kSecond;
  manifest.trigger = {TriggerKind::kRegex,
                      "regex: panic",
                      "kernel panic\x1b[2J: 7",
                      1041 * kSecond,
                      "stdout",
                      4,
                      19,
                      1234};
  manifest.post.time = 2 * kSecond;
  manifest.since_last = true;
  manifest.time = manifest.wall = 1043 * kSecond;
  ASSERT_TRUE(snapshots.Take({store_.get()}, &manifest, true).ok());
  const Json json = Json::parse(disk_.BytesOf("dir/fw.snapshot-0001/manifest.json"));
  EXPECT_EQ(json["trigger"], "regex: panic");
  EXPECT_EQ(json["trigger_kind"], "regex");
  EXPECT_EQ(json["trigger_detail"], "kernel panic\x1b[2J: 7");
  EXPECT_EQ(json["trigger_stream"], "stdout");
  EXPECT_EQ(json["trigger_offset"], 4);
  EXPECT_EQ(json["trigger_s"], 41.0);
  EXPECT_EQ(json["trigger_time"], "1970-01-01T00:17:21.000Z");
  EXPECT_EQ(json["elapsed_s"], 43.0);
  EXPECT_EQ(json["suppressed"], 1234);
  EXPECT_EQ(json["post_s"], 2.0);
  EXPECT_EQ(json["since_last"], true);
  const std::string report = disk_.BytesOf("dir/fw.snapshot-0001/report.txt");
  EXPECT_NE(
      report.find(
          "trigger: regex: panic (stdout: kernel panic\\x1b[2J: 7), 1 234 more since the last at "
          "1970-01-01T00:17:21.000Z, 41.0 s after the start\ntaken 2.0 s later, for --post 2.0 "
          "s\n"),
      std::string::npos)
      << report;
}

TEST(HistoryPrinter, LeavesOutHalfLinesAroundALoss) {
  FakeFileSystem disk;
  FakeClock clock;
  auto plan = PlanRing("64K", "1", 10);
  auto store = RingStore::Create(disk, clock, "dir/r", "stdin", *plan, 7);
  (*store)->Append("whole 1\nhalf", clock.Monotonic());
  disk.capacity = disk.Used();
  EXPECT_EQ((*store)->Append(" a line\nlost\nand ", clock.Monotonic()), 0u);
  (*store)->Lose(17, ENOSPC);
  disk.capacity = 1 << 30;
  clock.Advance(2 * kSecond);
  (*store)->Append("half again\nwhole 2\nopen end", clock.Monotonic());
  auto reader = BlockReader::Open(disk, "dir/r");
  ASSERT_TRUE(reader.ok());
  std::string printed;
  uint64_t lost = 0;
  HistoryPrinter printer(
      &*reader,
      [&](std::string_view text) {
        printed += text;
        return true;
      },
      [&](const Loss& loss) { lost += loss.bytes(); });
  EXPECT_TRUE(printer.PrintAvailable());
  EXPECT_EQ(printed, "whole 1\nwhole 2\n");
  EXPECT_EQ(lost, 17u);
  EXPECT_TRUE(printer.PrintRest());
  EXPECT_EQ(printed, "whole 1\nwhole 2\nopen end");
}

}  // namespace
}  // namespace hangscope

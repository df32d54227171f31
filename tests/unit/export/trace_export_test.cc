// Traces as text and JSON Lines, and how a file comes to be whole.
#include "export/trace_export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/ctf_notes.h"
#include "export/trace_jsonl.h"
#include "export/trace_text.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_trace.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// A core and a CPU with an event of each type of field, a loss, a gap, a stale span and a wait.
FakeTrace Sample() {
  FakeTrace trace;
  TraceHead& head = trace.its_head;
  const size_t core = trace.Track(RingKind::kCore, 3, "core 3 writer");
  const size_t cpu = trace.Track(RingKind::kCpu, 0, "CPU 0");
  const size_t typed =
      trace.Kind("typed", {{"u", TraceFieldType::kUnsigned, 64},
                           {"i", TraceFieldType::kSigned, 32},
                           {"b", TraceFieldType::kBool, 1},
                           {"t", TraceFieldType::kText, 0},
                           {"p", TraceFieldType::kPointer, 64},
                           {"color", TraceFieldType::kUnsigned, 8, {{1, "red"}, {7, "green"}}},
                           {"none", TraceFieldType::kUnsigned, 32}});
  const size_t change = trace.Kind("sched:sched_switch");
  head.kinds[change].meaning = TraceMeaning::kSwitch;
  head.kinds[change].category = "sched";
  TraceEvent& event = trace.Event(core, typed, 2'000'000'000);
  event.task = 4;
  event.sequence = 17;
  event.ambiguous = true;
  event.values = {
      {UINT64_MAX},  {static_cast<uint64_t>(-5)}, {1}, {0, "say \"x\"\n"}, {0x1234}, {7},
      {0, "", false}};
  trace.Loss(core, 2'000'000'000, 2'500'000'000, 9);
  TraceEvent& left = trace.Event(cpu, change, 3'000'000'000);
  left.from = 4;
  left.from_waits = true;
  left.what = "futex";
  head.name = "the trace";
  head.verdict = "deadlock\x1b[2J";
  head.since_cycles = {{"/soc/host", "looping", 284'564}};
  head.warnings = {"something is damaged"};
  head.window.emplace();
  head.window->time = {2'000'000'000, 3'000'000'000};
  head.window->rings = {{head.tracks[0].ring,
                         {},
                         0,
                         0,
                         0,
                         false,
                         {},
                         {},
                         {{{1'000'000'000, 1'490'000'000}, 510'000'000, 64},
                          {{1'491'000'000, 1'500'000'000}, 500'000'000, 64}}}};
  head.window->gaps = {
      {0, {}, {2'600'000'000, 2'700'000'000}, GapReason::kTorn, 3, AmountUnit::kRecords}};
  trace.its_end.time = 3'000'000'000;
  trace.its_end.events = 2;
  trace.its_end.losses = 1;
  trace.its_end.tasks = {{4, "main"}};
  trace.its_end.standings = {{{false, 3},
                              Activity::kWaiting,
                              2'100'000'000,
                              "cb3 of (1,2)",
                              {{true, 4}},
                              "CRBW, dataflow.c:88",
                              ""}};
  return trace;
}

TraceExportOptions To(const std::string& format, const std::string& path) {
  TraceExportOptions options;
  options.format = format;
  options.path = path;
  return options;
}

std::string Exported(const std::string& format, FakeTrace trace = Sample()) {
  FakeFileSystem files;
  const auto summary = ExportTrace(files, trace, To(format, "out"));
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  return summary.ok() ? files.BytesOf("out") : "";
}

TEST(TraceText, LosesNothingAndTellsWhatIsMissingWhereItIs) {
  EXPECT_EQ(
      Exported("text"),
      "the trace: 2 tracks, 2.000000 to 3.000000\n"
      "verdict: deadlock\\x1b[2J\n"
      "/soc/host: looping since cycle 284564\n"
      "window: 2.000000 to 3.000000\n"
      "note: something is damaged\n"
      "                  core 3 writer  stale: 1.000000 to 1.500000, older than the window by 0.5 "
      "s\n"
      "       ~2.000000  core 3 writer  task 4    typed  u=18446744073709551615 i=-5 b=1 t=say "
      "\"x\"\\n p=0x1234 color=green none=?\n"
      "                  core 3 writer  missing: 9 records (overwritten), 2.000000 to 2.500000\n"
      "                  core 3 writer  gap: 2.600000 to 2.700000, 3 records (torn)\n"
      "        3.000000  CPU 0          sched:sched_switch\n"
      "at 3.000000:\n"
      "core 3 writer: waiting since 2.100000 for cb3 of (1,2), from task 4 main; at CRBW, "
      "dataflow.c:88\n");
}

// A window numbers streams; their tracks have the numbers of the cores whose lines they hold.
FakeTrace OfTwoStreams() {
  FakeTrace trace;
  for (const char* stream : {"stdout", "stderr"}) {
    for (const int64_t hart : {0, 1})
      trace.its_head.tracks[trace.Track(RingKind::kStream, hart, fmt::format("hart {}", hart))]
          .ring.what = stream;
  }
  const size_t plain = trace.Kind("plain");
  for (const TimeNs time : {10, 100}) {
    for (size_t track = 0; track < 4; ++track) trace.Event(track, plain, time);
  }
  TraceHead& head = trace.its_head;
  head.window.emplace().time = {20, 100};
  head.window->rings = {
      {{RingKind::kStream, 0, "stdout"}, {}, 0, 0, 0, false, {}, {}, {}},
      {{RingKind::kStream, 1, "stderr"}, {}, 0, 0, 0, false, {}, {}, {{{10, 15}, 5, 64}}}};
  head.window->gaps = {{1, {}, {30, 40}, GapReason::kNoRoom, 7, AmountUnit::kBytes}};
  trace.its_end.time = 100;
  return trace;
}

TEST(TraceExport, WhatAStreamLostIsDrawnAtItsCoresAndAtNoOthers) {
  const Json chrome = Json::parse(Exported("chrome", OfTwoStreams()));
  std::vector<std::string> drawn;
  for (const Json& event : chrome["traceEvents"]) {
    const std::string category = event.value("cat", "");
    if (event["ph"] == "B" && (category == "gap" || category == "stale"))
      drawn.push_back(fmt::format("{} {}", category, event["tid"].get<int>()));
  }
  EXPECT_THAT(drawn, ::testing::UnorderedElementsAre("gap 3", "gap 4", "stale 3", "stale 4"));
  EXPECT_THAT(Exported("text", OfTwoStreams()),
              AllOf(HasSubstr("  stderr  gap: 0.000000 to 0.000000, 7 bytes (dropped"),
                    HasSubstr("  stderr  stale: ")));
  const CtfWindowNotes notes = NotesOfWindow(OfTwoStreams().its_head);
  EXPECT_EQ(notes.elsewhere, 0u);
  EXPECT_THAT(notes.tracks,
              ElementsAre(IsEmpty(), IsEmpty(), ::testing::SizeIs(2), ::testing::SizeIs(2)));
}

TEST(TraceText, ATimeIsACountWhereNobodyKnowsTheClocksRate) {
  FakeTrace trace = Sample();
  trace.its_head.counts_clock = true;
  EXPECT_THAT(Exported("text", std::move(trace)), HasSubstr("3000000000 ticks  CPU 0"));
}

TEST(TraceJson, EachLineIsAnObjectWithTypedValues) {
  std::vector<Json> lines;
  const std::string text = Exported("jsonl");
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["type"], "trace");
  EXPECT_EQ(lines[0]["tracks"][0]["name"], "core 3 writer");
  EXPECT_EQ(lines[0]["window"]["gaps"][0]["lost_records"], 3);
  EXPECT_EQ(lines[1]["fields"], (Json{{"u", UINT64_MAX},
                                      {"i", -5},
                                      {"b", true},
                                      {"t", "say \"x\"\n"},
                                      {"p", "0x1234"},
                                      {"color", 7},
                                      {"none", nullptr}}));
  EXPECT_THAT(text, HasSubstr("\"i\":-5,"));
  EXPECT_EQ(lines[1]["ambiguous"], true);
  EXPECT_EQ(lines[1]["sequence"], 17);
  EXPECT_EQ(lines[2]["type"], "trace_loss");
  EXPECT_EQ(lines[2]["lost_records"], 9);
  EXPECT_EQ(lines[3]["meaning"], "switch");
  EXPECT_EQ(lines[3]["from"], 4);
  EXPECT_EQ(lines[3]["from_waits"], true);
  EXPECT_EQ(lines[3]["what"], "futex");
  EXPECT_FALSE(lines[3].contains("to"));
  EXPECT_EQ(lines[4]["type"], "trace_end");
  EXPECT_EQ(lines[4]["standings"][0]["by"][0]["task"], 4);
}

TEST(TraceJson, TextThatIsNoUtf8IsReplaced) {
  FakeTrace trace = Sample();
  trace.its_head.kinds[1].name = "bad\xff name";
  const std::string text = Exported("jsonl", std::move(trace));
  EXPECT_THAT(text, HasSubstr("bad\xef\xbf\xbd name"));
}

TEST(TraceExport, AFileIsWholeOrNotThere) {
  FakeFileSystem files;
  files.capacity = 300;
  FakeTrace trace = Sample();
  EXPECT_THAT(ExportTrace(files, trace, To("text", "out")).status().message(),
              HasSubstr("No space left"));
  EXPECT_FALSE(files.Exists("out"));
  EXPECT_FALSE(files.Exists("out.partial"));
}

TEST(TraceExport, OneThatIsStoppedLeavesNothing) {
  FakeFileSystem files;
  FakeTrace trace = Sample();
  TraceExportOptions options = To("text", "out");
  options.go_on = [](double) { return false; };
  const auto summary = ExportTrace(files, trace, options);
  ASSERT_TRUE(summary.ok());
  EXPECT_TRUE(summary.value().stopped);
  EXPECT_FALSE(files.Exists("out"));
  EXPECT_FALSE(files.Exists("out.partial"));
}

TEST(TraceExport, ATraceThatCannotBeReadOnIsNoExport) {
  FakeFileSystem files;
  FakeTrace trace = Sample();
  trace.failure = Status::Io("the disk is gone");
  EXPECT_EQ(ExportTrace(files, trace, To("text", "out")).status().message(), "the disk is gone");
  EXPECT_FALSE(files.Exists("out"));
}

TEST(TraceExport, WhatIsThereIsReplacedOnlyWhereThatIsAskedFor) {
  FakeFileSystem files;
  ASSERT_TRUE(WriteWholeFile(files, "out", "somebody's").ok());
  FakeTrace first = Sample();
  EXPECT_THAT(ExportTrace(files, first, To("text", "out")).status().message(),
              HasSubstr("--force"));
  EXPECT_EQ(files.BytesOf("out"), "somebody's");
  TraceExportOptions options = To("text", "out");
  options.force = true;
  FakeTrace second = Sample();
  const auto summary = ExportTrace(files, second, options);
  ASSERT_TRUE(summary.ok());
  EXPECT_THAT(files.BytesOf("out"), HasSubstr("the trace"));
  EXPECT_EQ(summary.value().bytes, files.BytesOf("out").size());
  EXPECT_EQ(summary.value().events, 2u);
}

TEST(TraceExport, WhatIsCalledPartialIsNotTouched) {
  FakeFileSystem files;
  ASSERT_TRUE(WriteWholeFile(files, "out.partial", "mine").ok());
  ASSERT_TRUE(files.MakeFolders("ctf.partial").ok());
  ASSERT_TRUE(WriteWholeFile(files, "ctf.partial/main.c", "mine").ok());
  FakeTrace first = Sample();
  EXPECT_TRUE(ExportTrace(files, first, To("text", "out")).ok());
  FakeTrace second = Sample();
  EXPECT_TRUE(ExportTrace(files, second, To("ctf", "ctf")).ok());
  EXPECT_EQ(files.BytesOf("out.partial"), "mine");
  EXPECT_EQ(files.BytesOf("ctf.partial/main.c"), "mine");
  EXPECT_EQ(files.List(".").size(), 4u);
}

TEST(TraceExport, OnlyAFolderThatIsATraceAndNothingElseIsReplaced) {
  FakeFileSystem files;
  TraceExportOptions options = To("ctf", "out");
  FakeTrace first = Sample();
  ASSERT_TRUE(ExportTrace(files, first, options).ok());
  options.force = true;
  EXPECT_TRUE(CheckTraceExport(files, options).ok());
  const auto trace = files.Save();
  for (const char* more : {"out/mine", "out/streams", "out/src/main.c", "out/stream_9/x"}) {
    ASSERT_TRUE(WriteWholeFile(files, more, "mine").ok());
    const bool is_deep = NameOf(FolderOf(more)) != "out";
    if (is_deep) (void)files.MakeFolders(FolderOf(more)).ok();
    EXPECT_THAT(CheckTraceExport(files, options).message(), HasSubstr("not replaced")) << more;
    ASSERT_TRUE(files.Remove(more).ok());
    if (is_deep) (void)files.RemoveFolder(FolderOf(more)).ok();
  }
  ASSERT_EQ(files.Save(), trace);
  files.BytesOf("out/metadata") = "title: my project\n";
  EXPECT_THAT(CheckTraceExport(files, options).message(), HasSubstr("not replaced"));
}

TEST(TraceExport, AFolderIsNeverReplacedByAFile) {
  FakeFileSystem files;
  ASSERT_TRUE(files.MakeFolders("out").ok());
  TraceExportOptions options = To("text", "out");
  options.force = true;
  EXPECT_THAT(CheckTraceExport(files, options).message(), HasSubstr("'out' is a folder"));
}

TEST(TraceExport, AFormatThatThereIsNotIsToldWithThoseThatThereAre) {
  FakeFileSystem files;
  EXPECT_THAT(CheckTraceExport(files, To("pdf", "")).message(),
              AllOf(HasSubstr("'pdf'"), HasSubstr("jsonl"), HasSubstr("text")));
  EXPECT_THAT(CheckTraceExport(files, To("", "")).message(), HasSubstr("text"));
  for (const TraceFormatInfo& format : TraceFormats())
    EXPECT_EQ(CheckTraceExport(files, To(format.name, "")).ok(), !format.is_folder) << format.name;
}

}  // namespace

TEST(TraceExport, CountsWhoStoodHow) {
  FakeFileSystem files;
  FakeTrace trace = Sample();
  const auto summary_of = [&] {
    TraceExportOptions options = To("text", "out");
    options.force = true;
    return ExportTrace(files, trace, options).value();
  };
  EXPECT_EQ(summary_of().standings, 1u);
  EXPECT_EQ(summary_of().waiting, 1u);
  EXPECT_EQ(summary_of().standers, "core");
  trace.its_end.standings.push_back({{true, 4}, Activity::kRunning, {}, {}, {}, {}, {}});
  EXPECT_EQ(summary_of().standers, "cores and tasks");
  EXPECT_EQ(summary_of().waiting, 1u);
  trace.its_end.standings.erase(trace.its_end.standings.begin());
  EXPECT_EQ(summary_of().standers, "task");
  trace.its_end.standings.push_back({{true, 5}, Activity::kWaiting, {}, {}, {}, {}, {}});
  trace.its_head.tasks_are_threads = true;
  EXPECT_EQ(summary_of().standers, "threads");
  trace.its_end.standings.clear();
  EXPECT_EQ(summary_of().standings, 0u);
}

}  // namespace hangscope

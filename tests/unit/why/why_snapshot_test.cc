// hangscope why SNAPSHOT: whatever of it can be read is told, and what cannot is said.
#include "why/why_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "snapshot/manifest_writer.h"
#include "snapshot/recording_kind.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WhySnapshot : public ::testing::Test {
 protected:
  WhySnapshot() {
    EXPECT_TRUE(files.MakeFolders("trace/fw.snapshot-0001").ok());
    options.source.target = "trace/fw.snapshot-0001";
  }

  void Write(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(WriteWholeFile(files, options.source.target + "/" + name, bytes).ok());
  }

  void WriteVerdict(State state) {
    Manifest manifest;
    manifest.time = 10 * kSecond;
    manifest.verdict.state = state;
    manifest.verdict.confidence = Confidence::kLikely;
    manifest.verdict.time = 10 * kSecond;
    manifest.verdict.summary = "silent, child asleep in futex";
    manifest.command = {"fw", "--fast"};
    Write("manifest.json", ManifestJson(manifest));
    Write("report.txt", ReportText(manifest));
  }

  std::string Cpus() {
    PerfStory story;
    story.Comm(7, "worker");
    story.Call(1 * kSecond, 0, 7, 202);
    story.Switch(2 * kSecond, 0, 7, 1, 0);
    return story.image.File();
  }

  Result<WhyReport> Ask() { return AskWhySnapshot(files, clock, options, {}); }

  FakeFileSystem files;
  FakeClock clock;
  WhyOptions options;
};

TEST_F(WhySnapshot, TellsTheVerdictItWasTakenWithAndNothingOfTheRest) {
  WriteVerdict(State::kSilent);
  ASSERT_EQ(KindOf(files, options.source.target), RecordingKind::kSnapshot);
  auto report = Ask();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->text,
              StartsWith("hangscope: HANG after 10.0 s: silent, child asleep in futex (likely)\n"));
  EXPECT_EQ(report->text.find("--fast"), std::string::npos) << report->text;
  EXPECT_TRUE(report->is_bad);
  WriteVerdict(State::kProgressing);
  EXPECT_FALSE(Ask()->is_bad);
}

TEST_F(WhySnapshot, TellsWhatItsCpuRingsHoldBehindTheVerdict) {
  WriteVerdict(State::kSilent);
  Write("cpu.perf.data", Cpus());
  auto report = Ask();
  ASSERT_TRUE(report.ok());
  EXPECT_LT(report->text.find("HANG after"), report->text.find("\n7 worker")) << report->text;
  options.json = true;
  EXPECT_THAT(AskWhySnapshot(files, clock, options, {"", kSecond, true, {}, 0})->text,
              AllOf(StartsWith(R"({"type":"verdict","version":2,"time":"1970-01-01T00:00:00.000Z",)"
                               R"("target":"trace/fw.snapshot-0001","state":"silent")"),
                    HasSubstr(R"("type":"window")")));
}

TEST_F(WhySnapshot, TellsAnOldVerdictInTheFormOfToday) {
  Write(
      "manifest.json",
      R"({"format":"hangscope-snapshot","version":1,"time":"2026-11-21T14:35:44.675Z","verdict":{"state":"deadlock",)"
      R"("confidence":"certain","hang":true,"summary":"s","elapsed_s":9.5,"since_s":7.25,)"
      R"("findings":[{"kind":"deadlock","source":"threads","confidence":"certain",)"
      R"("summary":"s","lines":["l"],"evidence":[],"doubts":[],"threads":[7,8]}]}})");
  options.json = true;
  EXPECT_EQ(Ask()->text,
            R"({"type":"verdict","version":2,"time":"2026-11-21T14:35:44.675Z",)"
            R"("target":"trace/fw.snapshot-0001","state":"deadlock","confidence":"certain",)"
            R"("hang":true,"summary":"s","elapsed_s":9.5,"for_s":2.25,)"
            R"("findings":[{"kind":"deadlock","source":"threads","confidence":"certain",)"
            R"("hang":true,"summary":"s","subjects":[],"partners":[],"victims":[],)"
            R"("lines":["l"],"evidence":[],"doubts":[]}]})"
            "\n");
}

TEST_F(WhySnapshot, SaysThatANewerHangscopeWroteIt) {
  Manifest manifest;
  std::string json = ManifestJson(manifest);
  const std::string version = "\"version\": 2";
  ASSERT_NE(json.find(version), std::string::npos);
  Write("manifest.json", json.replace(json.find(version), version.size(), "\"version\": 3"));
  Write("report.txt", ReportText(manifest));
  EXPECT_THAT(Ask()->text, HasSubstr("is of version 3, and this hangscope knows version 2"));
  options.json = true;
  const std::string lines = Ask()->text;
  EXPECT_THAT(lines, StartsWith("{\"type\":\"verdict\""));
  EXPECT_THAT(lines, HasSubstr("is of version 3"));
}

TEST_F(WhySnapshot, LooksAtItsCpuRingsInTheWindowOfItsManifest) {
  WriteVerdict(State::kSilent);
  Write("cpu.perf.data", Cpus());
  const std::string recording = options.source.target + "/cpu.perf.data";
  EXPECT_FALSE(WindowOf(files, recording));
  Write("manifest.json", R"({"format": "hangscope-snapshot", "verdict": {"hang": true},
      "window": {"from_ns": 1900000000, "to_ns": 6000000000, "policy": "last time",
                 "rings": [{"kind": "CPU", "number": 0, "what": "events"}],
                 "gaps": [{"ring": {"kind": "CPU", "number": 0, "what": "events"},
                           "from_ns": 1900000000, "to_ns": 1950000000, "why": "overwritten"}]}})");
  ASSERT_TRUE(WindowOf(files, recording));
  EXPECT_EQ(WindowOf(files, recording)->time, (TimeSpan{1'900'000'000, 6 * kSecond}));
  EXPECT_FALSE(WindowOf(files, options.source.target + "/other.data"));
  EXPECT_THAT(Ask()->text, AllOf(HasSubstr("all 1 threads are blocked, the last since 4.0 s"),
                                 HasSubstr("window: 4.100000 s up to the trigger"),
                                 HasSubstr("1 gap,"), HasSubstr("overwritten")));
  for (const char* broken :
       {"", "[]", R"({"format": "hangscope-snapshot", "window": 3})",
        R"({"format": "hangscope-snapshot", "window": {"from_ns": 1, "to_ns": "x"}})",
        R"({"format": "hangscope-snapshot", "window": {"from_ns": 5, "to_ns": 4}})",
        R"({"format": "other", "window": {"from_ns": 1, "to_ns": 4}})"}) {
    Write("manifest.json", broken);
    EXPECT_FALSE(WindowOf(files, recording)) << broken;
  }
}

TEST_F(WhySnapshot, SaysWhichPartCannotBeReadAndTellsTheOthers) {
  WriteVerdict(State::kSilent);
  Write("cpu.perf.data", "no such thing");
  auto report = Ask();
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->text, AllOf(StartsWith("hangscope: HANG"), HasSubstr("cpu.perf.data'")));
  Write("cpu.perf.data", Cpus());
  Write("manifest.json", "{\"verdict\": 7");
  report = Ask();
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->text, AllOf(HasSubstr("has no verdict in it"), HasSubstr("\n7 worker")));
  EXPECT_FALSE(report->is_bad);
}

TEST_F(WhySnapshot, FailsWhereNothingCanBeRead) {
  Write("manifest.json", "[]");
  auto report = Ask();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("manifest.json' has no verdict in it"));
}

}  // namespace
}  // namespace hangscope

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
  EXPECT_THAT(AskWhySnapshot(files, clock, options, {"", kSecond, true, "", 0})->text,
              AllOf(StartsWith(R"({"type":"verdict","version":1,"state":"silent")"),
                    HasSubstr(R"("type":"window")")));
}

TEST_F(WhySnapshot, LooksAtItsCpuRingsFromTheTriggerOn) {
  WriteVerdict(State::kSilent);
  Write("cpu.perf.data", Cpus());
  const std::string recording = options.source.target + "/cpu.perf.data";
  EXPECT_EQ(TriggerOf(files, recording), std::nullopt);
  Write("manifest.json", R"({"verdict": {"hang": true}, "window": {"to_ns": 6000000000}})");
  EXPECT_EQ(TriggerOf(files, recording), 6 * kSecond);
  EXPECT_EQ(TriggerOf(files, options.source.target + "/other.data"), std::nullopt);
  EXPECT_THAT(Ask()->text, AllOf(HasSubstr("all 1 threads are blocked, the last since 4.0 s"),
                                 HasSubstr("up to the trigger")));
  for (const char* broken : {"", "[]", R"({"window": 3})", R"({"window": {"to_ns": "x"}})",
                             R"({"window": {"to_ns": -4}})"}) {
    Write("manifest.json", broken);
    EXPECT_EQ(TriggerOf(files, recording), std::nullopt) << broken;
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

// What hangscope why tells of a perf.data: stories of threads that sleep, starve and go on; rings
// with what is missing in them.
#include "why/why_perf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fakes/etm_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "fakes/pt_bytes.h"
#include "fakes/small_elf.h"
#include "perf/perf_file.h"
#include "perf/recorded_rings.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kRunnable = 0, kSleeps = 1, kSleepsInKernel = 2, kPreempted = 0x100;
constexpr int64_t kFutex = 202;

class WhyPerfTest : public ::testing::Test {
 protected:
  // Of 100 bytes each, by a ring that overwrites itself.
  void TellPieces(int count) {
    for (int i = 0; i < count; ++i) {
      story_.Comes(1000 + 100 * i, 3, 7);
      story_.Aux(1050 + 100 * i, 3, 7, 100 * (i + 1), 100, PERF_AUX_FLAG_OVERWRITE);
      story_.Switch(1050 + 100 * i, 3, 7, kSleeps, 0);
    }
  }
  WhyReport Ask(bool json = false) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", story_.image.File()).ok());
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = json;
    options.window = window_;
    options.branches = branches_;
    auto report = AskWhyPerf(files_, clock_, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.value_or({});
  }
  // The JSON objects of this type.
  std::vector<nlohmann::json> Objects(const std::string& type) {
    std::vector<nlohmann::json> objects;
    std::istringstream lines(Ask(true).text);
    for (std::string line; std::getline(lines, line);) {
      auto object = nlohmann::json::parse(line);
      if (object["type"] == type) objects.push_back(std::move(object));
    }
    return objects;
  }
  nlohmann::json ThreadObject(int tid) {
    for (const auto& object : Objects("thread")) {
      if (object["thread"] == tid) return object;
    }
    ADD_FAILURE() << "no thread " << tid;
    return {};
  }
  nlohmann::json WindowObject() { return Objects("window").at(0); }
  void Declare(TimeSpan time) {
    window_.emplace();
    window_->time = time;
  }
  // What hangscope's own file says of its rings.
  void Say(const RecordedRings& rings) {
    story_.image.features[kPerfFeatureRecordedRings] = RecordedRingsText(rings);
  }
  void Overwrite() {
    for (PerfEvent& event : story_.image.events) event.attr.write_backward = 1;
  }
  // Time goes on, on another CPU.
  void UntilSecond(int second) { story_.Switch(second * kSecond, 1, 0, kRunnable, 99); }

  FakeClock clock_;
  FakeFileSystem files_;
  PerfStory story_;
  size_t branches_ = 0;
  std::optional<Window> window_;  // of the manifest beside the file
};

TEST_F(WhyPerfTest, TellsWhatEachThreadDoesAtTheEnd) {
  story_.Switch(kSecond, 0, 0, kRunnable, 7);
  story_.Call(kSecond + 10, 0, 7, kFutex, 0x1234);
  story_.Switch(kSecond + 20, 0, 7, kSleeps, 8);
  story_.Call(kSecond + 30, 0, 8, kFutex);
  story_.Return(kSecond + 40, 0, 8, kFutex);
  story_.Switch(kSecond + 50, 0, 8, kPreempted, 9);
  story_.Return(kSecond + 55, 0, 9, kFutex);
  UntilSecond(1);
  story_.Exit(kSecond + 70, 1, 10);
  const auto sleeper = ThreadObject(7);
  EXPECT_EQ(sleeper["state"], "blocked");
  EXPECT_EQ(sleeper["letter"], "S");
  EXPECT_EQ(sleeper["name"], "task7");
  EXPECT_EQ(sleeper["since_ns"], kSecond + 20);
  EXPECT_THAT(sleeper["system_call"].get<std::string>(), HasSubstr("0x1234"));
  EXPECT_EQ(sleeper["system_call_since_ns"], kSecond + 10);
  const auto preempted = ThreadObject(8);
  EXPECT_EQ(preempted["state"], "wants a CPU");
  EXPECT_TRUE(preempted["system_call"].is_null()) << preempted.dump();
  EXPECT_EQ(ThreadObject(9)["state"], "running");
  EXPECT_EQ(ThreadObject(10)["state"], "ended");
}

// Of a recording of some processes, others are known only by those who make way for them.
TEST_F(WhyPerfTest, ClaimsNothingOfThreadsThatWereNotRecorded) {
  story_.Call(kSecond, 0, 7, kFutex);
  story_.Switch(kSecond + 10, 0, 7, kSleeps, 44);
  UntilSecond(4);
  EXPECT_EQ(ThreadObject(44)["state"], "seen");
  EXPECT_TRUE(ThreadObject(44)["since_ns"].is_null());
  EXPECT_THAT(Ask().text, AllOf(HasSubstr("perhaps a hang: all 1 threads are blocked"),
                                Not(HasSubstr("task44"))));
}

// A program that hangs leaves no records: from the newest one on, nothing is known of how long.
TEST_F(WhyPerfTest, JudgesFromTheTriggerWhereThatIsKnown) {
  story_.Call(kSecond, 0, 7, kFutex);
  story_.Switch(kSecond + 10, 0, 7, kSleeps, 0);
  EXPECT_THAT(Ask().text, AllOf(HasSubstr("no hang found"),
                                HasSubstr("up to the newest record, at 1.000000010")));
  Declare({kSecond, 5 * kSecond});
  EXPECT_THAT(Ask().text,
              AllOf(HasSubstr("all 1 threads are blocked, the last since 4.0 s"),
                    HasSubstr("up to the trigger, at 5.000000000"), HasSubstr("-4.000000")));
  for (const TimeNs other :
       {TimeNs{0}, TimeNs{-1}, kSecond - 1, 400 * 86400 * kSecond, INT64_MAX}) {
    Declare({0, other});
    EXPECT_THAT(Ask().text, HasSubstr("up to the newest record")) << other;
  }
}

// While the rings are copied, records come that are newer than the trigger.
TEST_F(WhyPerfTest, TakesTheWindowOfTheSnapshotWithItsGapsAndRings) {
  Overwrite();
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(5 * kSecond, 1, 0, kRunnable, 8);
  story_.Switch(9 * kSecond, 0, 7, kSleeps, 0);
  Declare({3 * kSecond + 7, 8 * kSecond + 1});
  window_->policy = WindowPolicy::kLastTime;
  window_->rings.resize(1);
  window_->rings[0].ring = {RingKind::kStream, 0, "stdout"};
  window_->gaps = {{0, {}, {4 * kSecond, 5 * kSecond}, GapReason::kBlind}};
  const auto window = WindowObject();
  EXPECT_EQ(window["from_ns"], 3 * kSecond + 7);
  EXPECT_EQ(window["to_ns"], 8 * kSecond + 1);
  EXPECT_EQ(window["policy"], "last time");
  EXPECT_EQ(window["ends_with"], "trigger");
  EXPECT_EQ(window["gaps"].size(), 1u);
  EXPECT_THAT(Ask().text,
              AllOf(HasSubstr("window: 5.000000 s up to the trigger, at 8.000000001, last time"),
                    HasSubstr("1 gap,"), HasSubstr("-7.000000 to +1.000000 s")));
}

TEST_F(WhyPerfTest, LetsNobodyRunWhereSomebodyElseDoes) {
  story_.WholeMachine();
  story_.Switch(kSecond, 0, 0, kRunnable, 67);
  story_.Switch(kSecond + 10, 0, 9, kSleeps, 8);
  story_.Call(kSecond + 20, 0, 8, kFutex);
  EXPECT_EQ(ThreadObject(67)["state"], "seen");
  EXPECT_EQ(ThreadObject(8)["state"], "running");
}

// Others of its name are not it.
TEST_F(WhyPerfTest, FindsTheDeadlockOfTheProgramBesideAMachineThatGoesOn) {
  story_.WholeMachine();
  story_.Command({"server", "other"});
  RecordedRings rings;
  rings.window = {0, 8'500 * kMillisecond};
  rings.process = 7;
  Say(rings);
  for (const int tid : {7, 8, 9, 10}) story_.Comm(tid, tid == 9 ? "job" : "other");
  story_.Fork(kSecond, 0, 9, 7);
  story_.Call(kSecond, 0, 7, kFutex);
  story_.Switch(2 * kSecond, 0, 7, kSleeps, 9);
  story_.Switch(3 * kSecond, 0, 9, kSleeps, 8);
  story_.Switch(8 * kSecond, 0, 8, kRunnable, 10);
  const std::string text = Ask().text;
  EXPECT_THAT(text, StartsWith("perhaps a hang: all 2 threads of the program are blocked, the last "
                               "since 5.5 s"));
  EXPECT_LT(text.find("\n7 other"), text.find("\n8 other"));
  EXPECT_LT(text.find("\n9 job"), text.find("\n10 other"));
  story_.Wake(8 * kSecond, 0, 8, 9);
  EXPECT_THAT(Ask().text, StartsWith("no hang found in the records"));
}

TEST_F(WhyPerfTest, SaysNothingOfAWholeMachineThatSleeps) {
  story_.WholeMachine();
  story_.Command({"perf", "record", "-a"});
  story_.Switch(kSecond, 0, 7, kSleeps, 0);
  story_.Fork(9 * kSecond, 1, 99, 98);
  EXPECT_THAT(Ask().text, StartsWith("no hang found in the records"));
}

TEST_F(WhyPerfTest, ShowsTheProgramBeforeTheRestOfTheMachine) {
  story_.WholeMachine();
  story_.Command({"/usr/bin/perf", "record", "-a", "--", "/opt/bin/server"});
  for (const int tid : {7, 8, 9})
    story_.Comm(tid, tid == 7 ? "server" : tid == 8 ? "other" : "job");
  story_.Fork(kSecond, 0, 9, 7);
  for (int tid = 7; tid < 10; ++tid) story_.Switch((11 - tid) * kSecond, 0, tid, kSleeps, 0);
  const std::string text = Ask().text;
  EXPECT_LT(text.find("\n7 server"), text.find("\n8 other"));
  EXPECT_LT(text.find("\n9 job"), text.find("\n8 other"));
  EXPECT_NE(text.find("\n8 other"), std::string::npos);
}

TEST_F(WhyPerfTest, DoesNotCareInWhichOrderRecordsCome) {
  story_.Switch(kSecond, 0, 0, kRunnable, 7);
  story_.Call(kSecond + 10, 0, 7, kFutex);
  story_.Switch(kSecond + 20, 0, 7, kSleeps, 8);
  story_.Wake(kSecond + 30, 0, 8, 7);
  story_.Switch(kSecond + 40, 0, 8, kSleeps, 7);
  story_.Return(kSecond + 50, 0, 7, kFutex);
  story_.Call(kSecond + 60, 0, 7, 1);
  story_.Switch(kSecond + 70, 0, 7, kSleepsInKernel, 0);
  const auto forwards = ThreadObject(7);
  std::reverse(story_.image.records.begin(), story_.image.records.end());
  EXPECT_EQ(ThreadObject(7), forwards);
  EXPECT_EQ(forwards["letter"], "D");
  EXPECT_THAT(forwards["system_call_since_ns"], kSecond + 60);
}

TEST_F(WhyPerfTest, FindsWhoWantsACpuAndGetsNone) {
  story_.Switch(kSecond, 0, 7, kSleeps, 8);
  story_.Wake(kSecond + 30, 0, 8, 7);
  UntilSecond(4);
  const WhyReport report = Ask();
  EXPECT_TRUE(report.is_bad);
  EXPECT_THAT(report.text,
              StartsWith("HANG: task7 7 wants a CPU for 3.0 s and gets none (likely)\n"));
}

TEST_F(WhyPerfTest, DoubtsWhereRecordsWereLost) {
  story_.Switch(kSecond, 0, 7, kPreempted, 8);
  story_.Lost(2 * kSecond, 0, 33);
  UntilSecond(4);
  const WhyReport report = Ask();
  EXPECT_FALSE(report.is_bad);
  EXPECT_THAT(report.text, AllOf(StartsWith("perhaps a hang: task7 7 wants a CPU"),
                                 HasSubstr("doubt: 33 records were lost")));
}

TEST_F(WhyPerfTest, FindsWhomNoSignalWouldWake) {
  story_.Call(kSecond - 10, 0, 7, 0);
  story_.Switch(kSecond, 0, 7, kSleepsInKernel, 0);
  story_.Switch(kSecond, 0, 6, kSleepsInKernel, 0);  // the kernel's own: it called nothing
  UntilSecond(9);
  EXPECT_FALSE(Ask().is_bad) << "a disk may be slow";
  UntilSecond(12);
  const WhyReport report = Ask();
  EXPECT_TRUE(report.is_bad);
  EXPECT_THAT(report.text, AllOf(HasSubstr("task7 7 sleeps in the kernel for 11.0 s"),
                                 Not(HasSubstr("task6 6 sleeps in the kernel for"))));
}

TEST_F(WhyPerfTest, CountsEachLossOnceThoughPerfTellsOfItAgainAtTheEnd) {
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  story_.Call(1 * kSecond, 1, 8, kFutex);
  story_.Lost(2 * kSecond, 0, 30);
  story_.Switch(3 * kSecond, 0, 7, kSleeps, 0);
  story_.Call(4 * kSecond, 1, 8, kFutex);
  story_.LostInAll(1, 30);
  EXPECT_EQ(Objects("perf_file").at(0)["lost_records"], 30);
  EXPECT_EQ(WindowObject()["gaps"].size(), 1u);
  story_.LostInAll(3, 12);           // behind the last record that found room, on CPU 1
  story_.LostInAll(3, 99, 1 << 15);  // left out by a filter
  EXPECT_EQ(Objects("perf_file").at(0)["lost_records"], 42);
  const auto gaps = WindowObject()["gaps"];
  ASSERT_EQ(gaps.size(), 2u) << gaps.dump();
  EXPECT_EQ(gaps[0]["lost_records"], 30);
  EXPECT_EQ(gaps[0]["ring"]["number"], 0);
  EXPECT_EQ(gaps[1]["lost_records"], 12);
  EXPECT_EQ(gaps[1]["ring"]["number"], 1);
  EXPECT_EQ(gaps[1]["from_ns"], 4 * kSecond);
  std::vector<int> cpus;
  for (const auto& cpu : Objects("cpu")) cpus.push_back(cpu["cpu"]);
  EXPECT_THAT(cpus, testing::ElementsAre(0, 1));
}

// An event that no sample is of: on which CPU it was lost is not known.
TEST_F(WhyPerfTest, LetsEachRingHaveLostWhatIsOfAnUnknownCpu) {
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(2 * kSecond, 1, 0, kRunnable, 8);
  story_.LostInAll(2, 5);
  EXPECT_EQ(Objects("perf_file").at(0)["lost_records"], 5);
  const auto gaps = WindowObject()["gaps"];
  ASSERT_EQ(gaps.size(), 2u) << gaps.dump();
  for (const auto& gap : gaps) EXPECT_TRUE(gap["lost_records"].is_null());
}

TEST_F(WhyPerfTest, BearsLossesThatCannotBe) {
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  for (int i = 0; i < 3; ++i) {
    story_.Lost((2 + i) * kSecond, 0, ~uint64_t{0} - 5);
    story_.LostInAll(1, ~uint64_t{0});
  }
  EXPECT_EQ(Objects("perf_file").at(0)["lost_records"], ~uint64_t{0});
}

TEST_F(WhyPerfTest, SaysThatNothingWasRecordedInPlaceOfThatNothingHangs) {
  story_.ThreadMap({7, 8});
  story_.Comm(7, "server");
  EXPECT_THAT(Ask().text,
              AllOf(StartsWith("no verdict: nothing was recorded of 2 threads (7 server, 8): none "
                               "of them ran; while they live, 'hangscope why PID' says what they "
                               "wait for\nwindow: none, since no record tells a time\n"),
                    Not(HasSubstr("no hang")), Not(HasSubstr("trigger")), Not(HasSubstr("-0000"))));
  EXPECT_TRUE(WindowObject()["to_ns"].is_null());
  EXPECT_THAT(Objects("perf_file").at(0)["cannot_tell"].get<std::string>(),
              StartsWith("nothing was recorded of 2 threads"));
  const auto verdict = Objects("verdict").at(0);
  EXPECT_EQ(verdict["state"], "silent");
  EXPECT_EQ(verdict["confidence"], "possible");
  EXPECT_THAT(verdict["doubts"].dump(), HasSubstr("nothing was recorded of 2 threads"));
  story_.Fork(kSecond, 0, 9, 7);  // it lives, but no ring has anything
  EXPECT_THAT(Ask().text, StartsWith("no verdict: nothing was recorded of 2 threads"));
  story_.Auxtrace(3, 0, 50);
  EXPECT_THAT(Ask().text, Not(HasSubstr("nothing was recorded"))) << "traces were";
}

TEST_F(WhyPerfTest, SaysWhyItCannotTellWhoWaits) {
  story_.Call(kSecond, 0, 7, kFutex);
  story_.Switch(2 * kSecond, 0, 7, kSleeps, 8);
  EXPECT_THAT(Ask().text, StartsWith("no hang found in the records"));
  EXPECT_TRUE(Objects("perf_file").at(0)["cannot_tell"].is_null());
  PerfStory no_formats = story_;
  story_.LeaveFormatsOut();
  EXPECT_THAT(Ask().text, StartsWith("no verdict: the file does not say which fields its "
                                     "tracepoints have, as when its recorder was killed"));
  PerfStory only_calls;
  for (PerfEvent& event : only_calls.image.events) event.attr.type = PERF_TYPE_SOFTWARE;
  only_calls.LeaveFormatsOut();
  only_calls.Call(kSecond, 0, 7, kFutex);
  story_ = only_calls;
  EXPECT_THAT(Ask().text,
              AllOf(StartsWith("no verdict: neither switches nor wake-ups were recorded"),
                    HasSubstr("raw_syscalls:sys_exit' records them\n")));
  story_.image.records = {PerfRecordOf(kPerfStat, std::string(32, '\0'))};
  EXPECT_THAT(Ask().text, StartsWith("no verdict: the file has the counters of perf stat record"));
}

TEST_F(WhyPerfTest, LeavesSleepersAlone) {
  story_.Switch(kSecond, 0, 7, kSleeps, 0);
  story_.Switch(kSecond, 0, 8, kSleeps, 7);
  story_.Switch(kSecond + 5, 0, 7, kSleeps, 0);
  UntilSecond(4);
  story_.Switch(4 * kSecond, 1, 99, kSleeps, 0);
  const WhyReport report = Ask();
  EXPECT_FALSE(report.is_bad);
  EXPECT_THAT(report.text, StartsWith("no hang found in the records\n"));
}

TEST_F(WhyPerfTest, FitsOnAScreen) {
  for (int tid = 10; tid < 500; ++tid) {
    story_.Call(kSecond + tid, tid % 64, tid, kFutex);
    story_.Switch(kSecond + tid, tid % 64, tid, kPreempted, 0);
    story_.Lost(kSecond + tid, tid % 64, 1);
    story_.Aux(kSecond + tid, tid % 64, tid, 100, 50, PERF_AUX_FLAG_TRUNCATED);
  }
  UntilSecond(4);
  const std::string text = Ask().text;
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 124u) << line;
  EXPECT_EQ(Objects("thread").size(), 491u);
}

TEST_F(WhyPerfTest, PrintsNoControlCharacter) {
  story_.Comm(7, "\x1b[31mred\n");
  story_.Switch(kSecond, 0, 7, kSleeps, 0);
  const std::string text = Ask().text;
  EXPECT_THAT(text, AllOf(HasSubstr("\\x1b[31mred\\n"), Not(HasSubstr("\x1b"))));
}

TEST_F(WhyPerfTest, TellsTheWindowOverTheEventsOfAllCpus) {
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(2 * kSecond, 1, 0, kRunnable, 8);
  story_.Switch(3 * kSecond, 0, 7, kSleeps, 0);
  story_.Lost(4 * kSecond, 1, 12);
  story_.Switch(5 * kSecond, 1, 8, kSleeps, 0);
  auto windows = Objects("window");
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0]["to_ns"], 5 * kSecond);
  EXPECT_EQ(windows[0]["policy"], "coherent");
  ASSERT_EQ(windows[0]["gaps"].size(), 1u) << windows[0].dump();
  EXPECT_EQ(windows[0]["gaps"][0]["why"], "dropped for want of room");
  EXPECT_EQ(windows[0]["gaps"][0]["lost_records"], 12);
  EXPECT_EQ(windows[0]["gaps"][0]["ring"]["number"], 1);
  for (const auto& task : windows[0]["threads"])
    EXPECT_EQ(task["continuous"], task["thread"] == 7) << task.dump();
}

// The side band is kept from the start on, and some of it is made up of what was before.
TEST_F(WhyPerfTest, LetsNoNameForkOrMappingBeginTheWindow) {
  story_.Mapped(1 * kSecond, 0, 7);
  story_.Fork(2 * kSecond, 1, 8, 7);
  story_.Exit(3 * kSecond, 0, 9);
  story_.Switch(80 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(81 * kSecond, 1, 0, kRunnable, 8);
  story_.Exit(82 * kSecond, 1, 10);
  EXPECT_EQ(WindowObject()["from_ns"], 80 * kSecond);
  EXPECT_EQ(WindowObject()["to_ns"], 82 * kSecond);
  EXPECT_EQ(WindowObject()["ends_with"], "newest record");
  Overwrite();
  EXPECT_EQ(WindowObject()["from_ns"], 81 * kSecond);
}

// What another event's ring kept is from the start on.
TEST_F(WhyPerfTest, CountsOnlyWhatIsInRingsThatOverwriteThemselves) {
  Overwrite();
  story_.image.events[2].attr.write_backward = 0;
  for (int i = 1; i < 5; ++i) story_.Call(i * kSecond, 0, 7, kFutex);
  story_.Switch(6 * kSecond, 0, 7, kSleeps, 0);
  story_.Switch(7 * kSecond, 0, 0, kRunnable, 7);
  EXPECT_EQ(WindowObject()["from_ns"], 6 * kSecond);
}

// A copy of cpu.perf.data, away from its manifest.
TEST_F(WhyPerfTest, TellsTheWindowThatHangscopesOwnFileNotes) {
  Overwrite();
  story_.Switch(3 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(4 * kSecond, 1, 0, kRunnable, 8);
  story_.Switch(8 * kSecond, 1, 8, kSleeps, 0);  // while it was copied
  RecordedRings rings;
  rings.window = {4 * kSecond, 7 * kSecond};
  rings.rings = {{0, 1 * kSecond, 1 * kSecond, 7 * kSecond},
                 {1, 1 * kSecond, 4 * kSecond, 8 * kSecond}};
  Say(rings);
  auto window = WindowObject();
  EXPECT_EQ(window["from_ns"], 4 * kSecond) << "CPU 1 was overwritten";
  EXPECT_EQ(window["to_ns"], 7 * kSecond);
  EXPECT_EQ(window["limited_by"]["number"], 1);
  EXPECT_EQ(window["ends_with"], "trigger");
  // Nothing was overwritten: the recording began before the first record.
  rings.rings[1].complete_since = 1 * kSecond;
  Say(rings);
  window = WindowObject();
  EXPECT_EQ(window["from_ns"], 1 * kSecond);
  EXPECT_TRUE(window["from_the_start"]);
  // Of a CPU that lost all while it was read there is no record.
  rings.rings.push_back({2, 1 * kSecond, 6 * kSecond, 6 * kSecond});
  Say(rings);
  window = WindowObject();
  EXPECT_EQ(window["from_ns"], 6 * kSecond);
  EXPECT_EQ(window["limited_by"]["number"], 2);
  // As asked for, with gaps.
  rings.policy = WindowPolicy::kLastTime;
  rings.window.from = 2 * kSecond;
  Say(rings);
  window = WindowObject();
  EXPECT_EQ(window["from_ns"], 2 * kSecond);
  EXPECT_EQ(window["policy"], "last time");
  ASSERT_EQ(window["gaps"].size(), 1u) << window.dump();
  EXPECT_EQ(window["gaps"][0]["ring"]["number"], 2);
  EXPECT_EQ(window["gaps"][0]["to_ns"], 6 * kSecond);
}

TEST_F(WhyPerfTest, BelievesNoNoteOfRingsThatCannotBe) {
  Overwrite();
  story_.Switch(3 * kSecond, 0, 0, kRunnable, 7);
  RecordedRings rings;
  rings.window = {1, 4 * kSecond};
  rings.rings = {{0, 5, 3, 4 * kSecond}};
  const std::string texts[] = {RecordedRingsText(rings), "", "{", "[]", std::string(200, '[')};
  for (const std::string& text : texts) {
    story_.image.features[kPerfFeatureRecordedRings] = text;
    EXPECT_EQ(WindowObject()["ends_with"], "newest record") << text;
    EXPECT_THAT(Ask().text, HasSubstr("part 224, is damaged")) << text;
  }
}

// In which order threads ran on which CPU nobody knows; who ran when, they tell.
TEST_F(WhyPerfTest, FollowsThreadsWhoseRecordsDoNotTellTheCpu) {
  story_.TellNoCpus();
  story_.Switch(1 * kSecond, 0, 9, kRunnable, 7);
  story_.Switch(1 * kSecond + 1, 1, 9, kRunnable, 8);
  story_.Call(2 * kSecond, 0, 7, kFutex);
  story_.Call(2 * kSecond, 1, 8, kFutex);
  story_.Switch(3 * kSecond, 0, 7, kSleeps, 9);
  story_.Switch(4 * kSecond, 1, 8, kSleeps, 9);
  const auto window = WindowObject();
  EXPECT_TRUE(window["gaps"].empty()) << window.dump();
  ASSERT_EQ(window["threads"].size(), 3u) << window.dump();
  for (const auto& thread : window["threads"]) EXPECT_TRUE(thread["continuous"]) << thread.dump();
  EXPECT_EQ(window["threads"][0]["ran"][0]["to_ns"], 3 * kSecond);
  EXPECT_EQ(window["threads"][1]["ran"][0]["to_ns"], 4 * kSecond);
}

// Of some processes only who leaves is told by sched_switch.
TEST_F(WhyPerfTest, CountsThoseWhoWereRecordedAmongTheThreadsThatAreCovered) {
  story_.Call(1 * kSecond, 0, 7, kFutex);
  story_.Switch(2 * kSecond, 0, 7, kSleeps, 44);
  story_.Comes(3 * kSecond, 0, 7);
  story_.Call(4 * kSecond, 0, 7, kFutex);
  story_.Switch(5 * kSecond, 0, 7, kSleeps, 45);
  const auto threads = WindowObject()["threads"];
  ASSERT_EQ(threads.size(), 1u) << threads.dump();
  EXPECT_EQ(threads[0]["thread"], 7);
  EXPECT_EQ(threads[0]["ran"][0]["from_ns"], 3 * kSecond);
}

// Rings that overwrite may have lost anything before what they have.
TEST_F(WhyPerfTest, BeginsTheWindowWhereEachOverwriteRingHasData) {
  Overwrite();
  story_.Switch(1 * kSecond, 0, 0, kRunnable, 7);
  story_.Switch(2 * kSecond, 1, 0, kRunnable, 8);
  story_.Switch(3 * kSecond, 0, 7, kSleeps, 0);
  story_.Switch(5 * kSecond, 1, 8, kSleeps, 0);
  const auto window = Objects("window").at(0);
  EXPECT_EQ(window["from_ns"], 2 * kSecond);
  EXPECT_EQ(window["limited_by"]["number"], 1);
}

TEST_F(WhyPerfTest, PlacesTheSpansOfTraces) {
  story_.TraceStart(100, 3, 7);
  story_.Aux(200, 3, 7, 0, 50);
  story_.Aux(300, 3, 7, 50, 30, PERF_AUX_FLAG_TRUNCATED);  // goes on where the last one ended
  story_.TraceStart(350, 3, 8);
  // 20 bytes are missing before it
  story_.Aux(400, 3, 8, 100, 60, PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION);
  story_.Auxtrace(3, 0, 80);
  story_.Auxtrace(3, 100, 40);  // and 20 of its own
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["from_ns"], 100);
  EXPECT_EQ(spans[0]["to_ns"], 200);
  EXPECT_EQ(spans[0]["held_bytes"], 50);
  EXPECT_EQ(spans[1]["from_ns"], 200);
  EXPECT_EQ(spans[1]["flags"], "truncated");
  EXPECT_EQ(spans[2]["from_ns"], 350);
  EXPECT_EQ(spans[2]["thread"], 8);
  EXPECT_EQ(spans[2]["flags"], "partial, collision");
  EXPECT_EQ(spans[2]["held_bytes"], 40);
  const auto ring = Objects("trace_ring").at(0);
  EXPECT_EQ(ring["told_bytes"], 140);
  EXPECT_EQ(ring["held_bytes"], 120);
  EXPECT_EQ(ring["twice_bytes"], 0);
  const auto window = Objects("window").at(0);
  std::vector<std::string> reasons;
  for (const auto& gap : window["gaps"]) reasons.push_back(gap["why"]);
  EXPECT_THAT(reasons, AllOf(testing::Contains("dropped for want of room"),
                             testing::Contains("unreadable")));
  EXPECT_THAT(Ask().text, HasSubstr("20 B not in the file"));
}

TEST_F(WhyPerfTest, TakesASpanOfNoBytesForOneInWhichThereWasNothingToTrace) {
  story_.TraceStart(100, 3, 7);
  story_.Comes(100, 3, 7);
  story_.Aux(200, 3, 7, 0, 50);
  story_.Switch(200, 3, 7, kSleeps, 0);
  story_.Comes(300, 3, 7);
  story_.Aux(400, 3, 7, 50, 0);
  story_.Switch(400, 3, 7, kSleeps, 0);
  story_.Auxtrace(3, 0, 50);
  EXPECT_TRUE(WindowObject()["gaps"].empty()) << WindowObject().dump();
  EXPECT_TRUE(WindowObject()["threads"][0]["continuous"]);
  story_.Comes(500, 3, 7);
  story_.Aux(600, 3, 7, 50, 0, PERF_AUX_FLAG_TRUNCATED);  // there was no room for any
  story_.Switch(600, 3, 7, kSleeps, 0);
  EXPECT_FALSE(WindowObject()["gaps"].empty());
}

TEST_F(WhyPerfTest, CallsThoseSpansStaleThatTheWindowDoes) {
  story_.TraceStart(100, 3, 7);
  story_.Aux(200, 3, 7, 0, 50);  // not in the file
  story_.Aux(300, 3, 7, 100, 50);
  story_.Aux(400, 3, 7, 500, 50);
  story_.Auxtrace(3, 100, 50);
  story_.Auxtrace(3, 500, 50);
  const std::string text = Ask().text;
  size_t told = 0;
  for (size_t at = text.find("  stale\n"); at != std::string::npos;
       at = text.find("  stale\n", at + 1))
    ++told;
  EXPECT_EQ(told, 1u) << text;
  EXPECT_THAT(text, HasSubstr("1 stale span"));
}

TEST_F(WhyPerfTest, CountsWhatSnapshotsHaveTwice) {
  story_.Switch(1 * kSecond, 2, 0, kRunnable, 7);
  story_.Auxtrace(2, 1000, 400);
  story_.Switch(2 * kSecond, 2, 7, kSleeps, 0);
  story_.Auxtrace(2, 1100, 400);  // 300 of them again
  story_.Auxtrace(2, 64, 32);     // the ring began anew
  const auto ring = Objects("trace_ring").at(0);
  EXPECT_EQ(ring["held_bytes"], 532);
  EXPECT_EQ(ring["twice_bytes"], 300);
  EXPECT_EQ(ring["restarts"], 1);
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["flags"], "snapshot");
  EXPECT_TRUE(spans[0]["from_ns"].is_null()) << "nothing says when it began";
  EXPECT_EQ(spans[0]["to_ns"], 1 * kSecond);
  EXPECT_EQ(spans[1]["begin_offset"], 1400);
  EXPECT_EQ(spans[1]["end_offset"], 1500);
}

// perf record -S: four pieces went through a ring that has room for two.
TEST_F(WhyPerfTest, BeginsTheWindowWhereASnapshotsOlderPiecesWereOverwritten) {
  TellPieces(4);
  story_.Auxtrace(3, 200, 200);
  auto window = WindowObject();
  EXPECT_FALSE(window["from_the_start"]);
  EXPECT_EQ(window["limited_by"]["number"], 3);
  EXPECT_EQ(window["from_ns"], 1150) << "there the second piece ends, which was overwritten";
  EXPECT_TRUE(window["gaps"].empty()) << window.dump();
  EXPECT_EQ(window["rings"][0]["held_bytes"], 200);
  EXPECT_THAT(Ask().text, HasSubstr("limited by CPU 3"));
}

// When the end of a piece was written that is left of it, nothing says.
TEST_F(WhyPerfTest, BeginsTheWindowBehindAPieceOfWhichOnlyTheEndIsLeft) {
  TellPieces(3);
  story_.Auxtrace(3, 140, 160);
  const auto window = WindowObject();
  EXPECT_EQ(window["from_ns"], 1150);
  EXPECT_EQ(window["rings"][0]["held_bytes"], 160);
  EXPECT_TRUE(window["gaps"].empty()) << window.dump();
}

TEST_F(WhyPerfTest, BearsOffsetsThatCannotBe) {
  for (const uint64_t offset : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{0}}) {
    for (int i = 0; i < 20; ++i)
      story_.Aux(100 + i, 3, 7, offset - static_cast<uint64_t>(i), ~uint64_t{0} >> i);
    story_.Auxtrace(3, offset, 64);
  }
  for (const auto& span : Objects("trace_span")) {
    EXPECT_LE(span["held_bytes"], 192);
    EXPECT_LE(span["begin_offset"], span["end_offset"]);
  }
}

TEST_F(WhyPerfTest, TellsOfARecordingOfCoreSight) {
  WhyPerfOptions options;
  options.path = TEST_DATA "/perf/etm.data";
  auto report = AskWhyPerf(PosixFileSystem(), clock_, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->is_bad);
  EXPECT_THAT(
      report->text,
      AllOf(HasSubstr("4 spans of traces in 1 rings, 384 B held; 0 B twice, 0 restarts"),
            HasSubstr("208 atoms, 0 no sync, 1 trace off\n"), HasSubstr("17235 etm_test_loop")));
}

TEST_F(WhyPerfTest, CountsNoInstructionsWithoutTheirCode) {
  WhyPerfOptions options;
  options.path = TEST_DATA "/perf/etm.data";
  options.branches = 3;
  auto report = AskWhyPerf(PosixFileSystem(), clock_, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->text, AllOf(HasSubstr("208 atoms"), Not(HasSubstr("0 insns"))));
}

TEST_F(WhyPerfTest, TellsTheDamage) {
  story_.Switch(kSecond, 0, 7, kSleeps, 0);
  story_.image.records.push_back(std::string(16, '\0'));
  EXPECT_THAT(Ask().text, HasSubstr("damaged: at offset "));
}

TEST_F(WhyPerfTest, KnowsAPerfDataByItsBegin) {
  ASSERT_TRUE(WriteWholeFile(files_, "pipe", story_.image.Pipe()).ok());
  ASSERT_TRUE(WriteWholeFile(files_, "other", "ELF or whatever").ok());
  ASSERT_TRUE(WriteWholeFile(files_, "short", "PERF").ok());
  EXPECT_TRUE(IsPerfData(files_, "pipe"));
  EXPECT_FALSE(IsPerfData(files_, "other"));
  EXPECT_FALSE(IsPerfData(files_, "short"));
  EXPECT_FALSE(IsPerfData(files_, "none"));
}

// CPUs that trace, each a span of one run with a time stamp before it and one behind it.
class TracedCpusTest : public WhyPerfTest {
 protected:
  void Trace(int cpu, TimeNs from, TimeNs to, uint64_t first, uint64_t second) {
    EtmBytes trace;
    trace.Sync().Time(first).On().Enter(kA64Base).Atoms("EE").Time(second);
    const std::string bytes = Framed(static_cast<uint8_t>(0x10 + 2 * cpu), trace.bytes);
    story_.TraceStart(from, cpu, 7);
    story_.Aux(to, cpu, 7, 0, bytes.size());
    story_.image.records.push_back(
        PerfRecordOf(kPerfAuxtrace, PerfWord(bytes.size()) + PerfWord(0) + PerfWord(0) +
                                        PerfBytes(static_cast<uint32_t>(cpu), 7, cpu, 0u)) +
        bytes);
  }
  // The program that runs: with the recorded build id.
  void MapProgram() {
    SmallElf elf;
    elf.build_id = std::string(20, 'b');
    elf.segments = {
        {kA64Base, std::string(reinterpret_cast<const char*>(kA64Code), sizeof kA64Code)}};
    elf.functions = {{"main", kA64Base}, {"leaf", kA64Base + 0x18}};
    program_ = testing::TempDir() + "timed-program-XXXXXX";
    const int opened = mkstemp(program_.data());
    ASSERT_GE(opened, 0);
    close(opened);
    const std::string file = elf.File();
    std::ofstream(program_, std::ios::binary) << file;
    story_.image.records.push_back(PerfRecordOf(
        PERF_RECORD_MMAP2,
        PerfIds(7, 7) + PerfWord(kA64Base) + PerfWord(sizeof kA64Code) +
            PerfWord(file.find(elf.segments[0].second)) +
            PerfBytes(uint8_t{20}, uint8_t{0}, uint16_t{0}) + std::string(20, 'b') +
            PerfBytes(uint32_t{5}, uint32_t{2}) + PerfText(program_) + std::string(32, '\0'),
        PERF_RECORD_MISC_MMAP_BUILD_ID));
  }
  // 10 ns a count, from 1 s on.
  void ConvertTimes(bool holds = true) {
    story_.image.records.push_back(PerfRecordOf(
        kPerfTimeConversion, PerfWord(0) + PerfWord(10) + PerfWord(kSecond) + PerfWord(0) +
                                 PerfWord(0) + PerfBytes(uint8_t{holds}, uint8_t{0}) +
                                 std::string(6, '\0')));
  }
  void TearDown() override { unlink(program_.c_str()); }

  std::string program_;
};

TEST_F(TracedCpusTest, ListsBranchesOfAllCpusInOneOrderWithTheirTimes) {
  branches_ = 10;
  story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, EtmV4InfoWithTimes(2)));
  ConvertTimes();
  MapProgram();
  Trace(0, kSecond, kSecond + 900, 50, 60);  // 1 s + 500 ns to 600 ns
  Trace(1, kSecond, kSecond + 900, 20, 30);
  const auto branches = Objects("branch");
  ASSERT_EQ(branches.size(), 6u);
  for (size_t i = 0; i < branches.size(); ++i) {
    const TimeNs from = kSecond + (i < 3 ? 200 : 500);
    EXPECT_EQ(branches[i]["cpu"], i < 3 ? 1 : 0) << i;
    EXPECT_EQ(branches[i]["between_ns"], nlohmann::json({from, from + 100})) << i;
    EXPECT_EQ(branches[i]["order_known"], true) << i;
  }
  EXPECT_THAT(Ask().text, AllOf(HasSubstr("the last 6 branches, the newest last, and between"),
                                Not(HasSubstr("~")), Not(HasSubstr("not converted"))));
}

TEST_F(TracedCpusTest, SaysWhichBranchesMayHaveComeInAnotherOrder) {
  branches_ = 10;
  story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, EtmV4InfoWithTimes(2)));
  ConvertTimes();
  MapProgram();
  Trace(0, kSecond, kSecond + 900, 20, 60);
  Trace(1, kSecond, kSecond + 900, 50, 70);
  for (const auto& branch : Objects("branch")) EXPECT_EQ(branch["order_known"], false);
  EXPECT_THAT(Ask().text, HasSubstr("\n~ CPU 1 "));
}

TEST_F(TracedCpusTest, SaysWhyTimeStampsHaveNoTimes) {
  const auto says = [&](const std::string& why) {
    EXPECT_EQ(Objects("note").at(0)["text"], "time stamps of the traces are not converted: " + why);
  };
  story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, EtmV4InfoWithTimes(1)));
  Trace(0, kSecond, kSecond + 900, 20, 60);
  says("the file does not say how its time follows the counter");
  ConvertTimes(false);
  says("the file does not say how its time follows the counter");
  ConvertTimes();
  EXPECT_THAT(Ask().text, Not(HasSubstr("not converted")));
  story_.image.records[0] = PerfRecordOf(kPerfAuxtraceInfo, EtmV4InfoWithTimes(1, 2));
  says("the file does not say that they count as the CPU's virtual counter does");
  story_.image.events[0].attr.use_clockid = 1;
  says("the records have another clock than the kernel's own");
}

#if HANGSCOPE_HAS_LIBIPT

// The tracer sends a PSB after some bytes, not where an AUX record begins.
TEST_F(WhyPerfTest, ReadsAnIntelPtStreamAcrossItsAuxRecords) {
  PtBytes trace;
  trace.Sync(1000).Run().Run().Run();
  story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, PtInfo()));
  story_.TraceStart(kSecond, 0, 7);
  const uint64_t third = trace.size() / 3;
  story_.Aux(kSecond + 10, 0, 7, 0, third);
  story_.Aux(kSecond + 20, 0, 8, third, third);
  story_.Aux(kSecond + 30, 0, 7, 2 * third, trace.size() - 2 * third);
  story_.Auxtrace(0, 0, 0);
  story_.image.records.back() =
      PerfRecordOf(kPerfAuxtrace,
                   PerfWord(trace.size()) + PerfWord(0) + PerfWord(0) + PerfBytes(0u, 7, 0, 0u)) +
      trace.bytes();
  uint64_t packets = 0, atoms = 0;
  for (const auto& span : Objects("trace_span")) {
    EXPECT_THAT(span["discontinuities"].dump(), Not(HasSubstr("before the first")));
    packets += span["packets"].get<uint64_t>();
    atoms += span["atoms"].get<uint64_t>();
  }
  EXPECT_EQ(packets, 4u + 3 * 5);
  EXPECT_EQ(atoms, 3 * 4u);
}

// perf record --aux-sample: the kernel tells of the area's bytes, and the file has only those that
// samples hold.
TEST_F(WhyPerfTest, ReadsThePiecesOfTracesThatSamplesHave) {
  PerfEvent event;
  event.name = "branch-misses:u";
  event.attr = story_.image.events[0].attr;
  event.attr.type = PERF_TYPE_HARDWARE;
  event.attr.config = PERF_COUNT_HW_BRANCH_MISSES;
  event.attr.sample_type &= ~uint64_t{PERF_SAMPLE_RAW};
  event.attr.sample_type |= PERF_SAMPLE_AUX;
  event.ids = {9};
  story_.image.events.push_back(event);
  story_.image.features[kPerfFeatureEventDescription] = story_.image.EventNames();
  PtBytes trace;
  std::string bytes = trace.Sync(1000).Run().bytes();
  bytes.resize((bytes.size() + 7) / 8 * 8);
  story_.AuxtraceInfo(PtInfo());
  const auto sample = [&](TimeNs time, int cpu, int tid) {
    story_.image.records.push_back(
        PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(9) + PerfIds(tid, tid) + PerfBytes(time) +
                                             PerfBytes(cpu, 0) + PerfWord(bytes.size()) + bytes));
  };
  sample(kSecond + 10, 0, 7);
  sample(kSecond + 20, 0, 7);
  sample(kSecond + 20, 1, 8);
  story_.Aux(kSecond + 30, 0, 7, 0, 4096);
  const auto spans = Objects("trace_span");
  ASSERT_EQ(spans.size(), 3u);
  for (const auto& span : spans) {
    EXPECT_TRUE(span["sampled"].get<bool>());
    EXPECT_EQ(span["atoms"], 4);
    EXPECT_EQ(span["held_bytes"], bytes.size());
  }
  EXPECT_EQ(spans[2]["thread"], 8);
  EXPECT_EQ(spans[2]["to_ns"], kSecond + 20);
  EXPECT_THAT(Ask().text, AllOf(HasSubstr("3 spans of traces in 2 rings"), HasSubstr("of a sample"),
                                Not(HasSubstr("not in the file"))));
}

#endif

}  // namespace
}  // namespace hangscope

// What watch and why print: texts, JSON, metrics.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scope/watch_json.h"
#include "scope/watch_text.h"
#include "verdict/json.h"
#include "watch/metrics.h"

namespace hangscope {
namespace {

using Kind = SubjectId::Kind;

constexpr TimeNs kNow = 100 * kSecond;

uint32_t Waypoint(std::string_view text) {
  uint32_t word = 0;
  for (size_t i = 0; i < text.size(); ++i)
    word |= static_cast<uint32_t>(static_cast<uint8_t>(text[i])) << 8 * i;
  return word;
}

// Two nodes at (0,0) and (1,0) with two cores each, and two tasks.
class WatchExportTest : public ::testing::Test {
 protected:
  WatchExportTest() : names_(catalog_, nullptr, 0) {
    nodes_.resize(2);
    nodes_[1].x = 1;
    names_.SetCores(std::vector<ScopeCore>(4), nodes_);
    for (uint32_t core = 0; core < 4; ++core) {
      SubjectState subject;
      subject.subject = {Kind::kCore, core};
      subject.activity = Activity::kRunning;
      subject.since = kNow - 2 * kSecond;
      subject.sample.in_use = true;
      subject.sample.node = static_cast<uint16_t>(core / 2);
      subject.sample.waypoint = Waypoint("MULR");
      subjects_.push_back(subject);
    }
    for (uint32_t task = 0; task < 2; ++task) {
      SubjectState subject;
      subject.subject = {Kind::kTask, task};
      subject.activity = Activity::kRunning;
      subject.task = 70001 + task;
      subjects_.push_back(subject);
    }
  }
  void Wait(uint32_t subject, uint32_t resource, TimeNs age,
            ResourceKind kind = ResourceKind::kChannel) {
    subjects_[subject].activity = Activity::kWaiting;
    subjects_[subject].wait = WaitState{7, resource, kind, 0};
    subjects_[subject].since = kNow - age;
    subjects_[subject].sample.waypoint = Waypoint("CRBW");
  }
  ScopeFinding Found(FindingKind kind, const std::vector<uint32_t>& cores) {
    ScopeFinding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kCertain;
    finding.since = kNow - 31 * kSecond;
    for (const uint32_t core : cores) finding.subjects.push_back({Kind::kCore, core});
    return finding;
  }
  ScopeFinding Deadlock() {
    Wait(1, 0x1003, 31 * kSecond);
    Wait(2, 0x1001, 30 * kSecond);
    ScopeFinding finding = Found(FindingKind::kDeadlock, {1, 2});
    finding.first = SubjectId{Kind::kCore, 2};
    finding.victims = {{Kind::kCore, 0}};
    return finding;
  }
  WatchScene Scene() { return {"fw", false, &subjects_, &names_, &nodes_, kNow, false}; }
  std::string Text(const ScopeFinding& finding, const FindingHistory& history = {}) {
    return FindingText(finding, Scene(), history);
  }
  nlohmann::json Json(const ScopeFinding& finding, const FindingHistory& history = {}) {
    const std::string line = FindingJson(ToldFinding(finding, Scene(), history), "fw", 0);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    return nlohmann::json::parse(line);
  }

  ScopeCatalog catalog_;
  WatchNames names_;
  std::vector<NodeSample> nodes_;
  std::vector<SubjectState> subjects_;
};

TEST_F(WatchExportTest, ADeadlockNamesEachMemberWhatItWaitsForAndFromWhom) {
  FindingHistory history;
  history.events = {"POP 1", "PUSH cb3 seq 4711"};
  const std::string text = Text(Deadlock(), history);
  EXPECT_EQ(text,
            "HANG: deadlock, 2 of 4 cores wait for each other (certain)\n"
            "  core 1 (0,0)  waits 31.0 s at CRBW for 0x1003 (provided by core 2)\n"
            "  core 2 (1,0)  waits 30.0 s at CRBW for 0x1001 (provided by core 1)\n"
            "  also waiting for these: core 0 (0,0)\n"
            "  first to stop: core 2 (1,0), after PUSH cb3 seq 4711\n"
            "  its last events: POP 1; PUSH cb3 seq 4711\n");
}

TEST_F(WatchExportTest, LocksAreHeldAndOneThatWaitsForItselfIsNamed) {
  Wait(1, 0x77, kSecond, ResourceKind::kExclusive);
  subjects_[1].since_at_least = true;
  EXPECT_EQ(Text(Found(FindingKind::kDeadlock, {1})),
            "HANG: deadlock, core 1 (0,0) waits for itself (certain)\n"
            "  core 1 (0,0)  waits >1.0 s at CRBW for 0x77 (held by core 1)\n");
}

TEST_F(WatchExportTest, StarvationNamesWhoShouldProvide) {
  Wait(3, 0x5, 6 * kSecond);
  ScopeFinding finding = Found(FindingKind::kStarved, {3});
  finding.resource = 5;
  EXPECT_EQ(FindingSummary(finding, Scene()),
            "starved, core 3 (1,0) waits for 0x5, which nobody is known to hold or provide");
  finding.partners = {{Kind::kCore, 2}};
  finding.confidence = Confidence::kLikely;
  finding.doubts = {"core 2 may be slow"};
  EXPECT_EQ(
      Text(finding),
      "HANG: starved, core 3 (1,0) waits for 0x5, which never comes from core 2 (1,0) (likely)\n"
      "  core 3 (1,0)  waits 6.0 s at CRBW for 0x5 (provided by core 2)\n"
      "  core 2 (1,0)  runs at MULR\n"
      "  not certain: core 2 may be slow\n");
  finding.resource = 0;
  finding.subjects = {{Kind::kTask, 1}};
  EXPECT_EQ(FindingSummary(finding, Scene()), "starved, task 70002 is ready and never runs");
}

TEST_F(WatchExportTest, ABusyDebugRingTakesFourRows) {
  FindingHistory history;
  for (uint32_t order = 40; order > 0; --order) history.debug.push_back({order, 0, order});
  const std::string text = Text(Found(FindingKind::kSilent, {0}), history);
  EXPECT_NE(text.find("\n    00000028 00000027 "), std::string::npos) << text;
  EXPECT_NE(text.find(" 00000009   (core 0)\n    and 8 older ones\n"), std::string::npos) << text;
  history.debug.resize(32);
  EXPECT_EQ(Text(Found(FindingKind::kSilent, {0}), history).find("older"), std::string::npos);
}

TEST_F(WatchExportTest, WhatIsOnlyPossibleIsNotCalledAHang) {
  ScopeFinding finding = Found(FindingKind::kSilent, {0});
  finding.confidence = Confidence::kPossible;
  subjects_[0].activity = Activity::kSilent;
  EXPECT_EQ(Text(finding),
            "perhaps silent, core 0 (0,0) stands still and waits for nothing (possible)\n"
            "  core 0 (0,0)  stands still for 2.0 s at MULR\n");
  EXPECT_FALSE(Json(finding)["hang"].get<bool>());
}

TEST_F(WatchExportTest, AReadyTaskThatNeverRunsIsToldWithThoseThatRan) {
  for (const uint32_t task : {8u, 9u}) {
    SubjectState& state = subjects_.emplace_back();
    state.subject = {Kind::kTask, task};
    state.activity = Activity::kRunning;
    state.task = task + 1;
    state.has_core = task == 9;
  }
  ScopeFinding finding = Found(FindingKind::kStarved, {});
  finding.subjects = {{Kind::kTask, 8}};
  finding.partners = {{Kind::kTask, 9}};
  EXPECT_EQ(Text(finding),
            "HANG: starved, task 9 is ready and never runs (certain)\n"
            "  task 9   is ready (task 10 ran instead)\n"
            "  task 10  runs\n");
}

TEST_F(WatchExportTest, CorruptionIsSaidOnceAndMadePrintable) {
  ScopeFinding finding = Found(FindingKind::kCorrupt, {0});
  finding.corruption = {Corruption::Part::kCore, 0, "launch \x1b[31m77"};
  finding.repeated_evidence = {"core 0: launch \x1b[31m77"};
  EXPECT_EQ(Text(finding), "CORRUPT: core 0: launch \\x1b[31m77 (certain)\n");
}

TEST_F(WatchExportTest, SeveralTargetsAreToldApart) {
  WatchScene scene = Scene();
  scene.of_several = true;
  EXPECT_EQ(FindingText(Found(FindingKind::kSilent, {0}), scene, {}).substr(0, 17),
            "fw: HANG: silent,");
}

TEST_F(WatchExportTest, OfADeadTargetNoWaitIsCalledShort) {
  Wait(1, 0x77, 0);
  WatchScene scene = Scene();
  scene.is_dead = true;
  EXPECT_NE(
      FindingText(Found(FindingKind::kDeadlock, {1}), scene, {}).find("waits at CRBW for 0x77"),
      std::string::npos);
}

TEST_F(WatchExportTest, DebugValuesComeEightARowEachWithItsCore) {
  std::vector<DebugValue> values;
  for (uint32_t i = 0; i < 10; ++i) values.push_back({20 - i, i % 2, 0xab00 + i});
  EXPECT_EQ(DebugRingRows(values),
            (std::vector<std::string>{"0:0000ab00 1:0000ab01 0:0000ab02 1:0000ab03 0:0000ab04 "
                                      "1:0000ab05 0:0000ab06 1:0000ab07",
                                      "0:0000ab08 1:0000ab09"}));
  values.resize(2);
  values[1].core = 0;
  EXPECT_EQ(DebugRingRows(values), std::vector<std::string>{"0000ab00 0000ab01   (core 0)"});
}

TEST_F(WatchExportTest, TheTableIsAlignedAndLeavesOutWhatIsEmpty) {
  Wait(1, 0x1003, 31 * kSecond);
  subjects_.resize(4);
  subjects_[3].activity = Activity::kUnused;
  const WatchTable table(Scene(), false);
  EXPECT_EQ(table.Head(), "core  node   activity  at    waits for   since\n");
  EXPECT_EQ(table.Line(subjects_[0], Scene()), "0     (0,0)  running   MULR  -           -\n");
  EXPECT_EQ(table.Line(subjects_[1], Scene()), "1     (0,0)  waiting   CRBW  0x1003      31.0 s\n");
  EXPECT_EQ(WatchTable(Scene(), true).Head(),
            "core      node   role    activity  at    waits for               since     kernel     "
            " stack\n");
}

TEST_F(WatchExportTest, TasksHaveTheirLineAndTheColumnSaysSo) {
  const WatchTable table(Scene(), false);
  EXPECT_EQ(table.Head().substr(0, 10), "core, task");
  EXPECT_EQ(table.Line(subjects_[4], Scene()).substr(0, 10), "task 70001");
}

TEST_F(WatchExportTest, AFindingInJsonHasTheFieldsThatProgramsRelyOn) {
  const nlohmann::json json = Json(Deadlock(), {{"PUSH"}, {{1, 2, 0xab}}});
  EXPECT_EQ(json["type"], "finding");
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(json["source"], "scope");
  EXPECT_EQ(json["kind"], "deadlock");
  EXPECT_EQ(json["confidence"], "certain");
  EXPECT_EQ(json["hang"], true);
  ASSERT_EQ(json["subjects"].size(), 2u);
  EXPECT_EQ(json["subjects"][0]["core"], 1);
  EXPECT_EQ(json["subjects"][0]["name"], "core 1 (0,0)");
  EXPECT_EQ(json["subjects"][0]["at"], "CRBW");
  EXPECT_EQ(json["subjects"][0]["waits_for"], "0x1003");
  EXPECT_EQ(json["subjects"][0]["for_s"], 31.0);
  EXPECT_EQ(json["first"], "core 2 (1,0)");
  EXPECT_EQ(json["victims"][0]["core"], 0);
  EXPECT_EQ(json["partners"].size(), 0u);
  EXPECT_EQ(json["last_events"][0], "PUSH");
  for (const char* absent : {"resource", "facts"}) EXPECT_FALSE(json.contains(absent)) << absent;
}

TEST_F(WatchExportTest, FaultResourceCorruptionAndTasksAreInTheirFields) {
  ScopeFinding fault = Found(FindingKind::kFault, {0});
  fault.fault.type = FaultType::kBus;
  fault.fault.reason = 1;
  EXPECT_EQ(Json(fault)["facts"]["fault"], "bus");
  EXPECT_EQ(Json(fault)["facts"]["reason"], "zero length");
  ScopeFinding starved = Found(FindingKind::kStarved, {});
  starved.subjects = {{Kind::kTask, 1}};
  starved.resource = 5;
  EXPECT_EQ(Json(starved)["subjects"][0]["task"], 70002);
  EXPECT_EQ(Json(starved)["resource"], "0x5");
  ScopeFinding corrupt = Found(FindingKind::kCorrupt, {0});
  corrupt.corruption = {Corruption::Part::kCore, 0, "launch 77"};
  EXPECT_EQ(Json(corrupt)["facts"]["where"], "core 0");
  EXPECT_EQ(Json(corrupt)["facts"]["what"], "launch 77");
}

TEST_F(WatchExportTest, BytesThatAreNoTextDoNotBreakTheJson) {
  ScopeFinding corrupt = Found(FindingKind::kCorrupt, {0});
  corrupt.corruption = {Corruption::Part::kCore, 0, std::string("\xff\0\n\"", 4)};
  EXPECT_EQ(Json(corrupt)["kind"], "corrupt");
}

TEST(MetricNamesTest, OnlyWhatTheFormatAllowsIsAName) {
  for (const char* good : {"a", "_x", ":rate", "hangscope_polls_total", "a9"})
    EXPECT_TRUE(IsMetricName(good)) << good;
  for (const char* bad : {"", "9a", "a-b", "a b", "a\n", "\xc3\xa4"})
    EXPECT_FALSE(IsMetricName(bad)) << bad;
  EXPECT_TRUE(IsLabelName("core"));
  for (const char* bad : {"__name__", "a:b", "", "1"}) EXPECT_FALSE(IsLabelName(bad)) << bad;
}

// A line of the exposition format: NAME{LABEL="VALUE",...} NUMBER; the value's escapes undone.
struct MetricLine {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string value;
};

MetricLine ParseLine(const std::string& line) {
  MetricLine parsed;
  size_t at = line.find_first_of("{ ");
  parsed.name = line.substr(0, at);
  while (line.at(at) != ' ') {
    const size_t equals = line.find('=', ++at);
    std::string value;
    size_t i = equals + 2;
    for (; line.at(i) != '"'; ++i)
      value.push_back(line[i] == '\\' ? (line.at(++i) == 'n' ? '\n' : line[i]) : line[i]);
    parsed.labels.emplace_back(line.substr(at, equals - at), value);
    at = line.at(i + 1) == '}' ? i + 2 : i + 1;
  }
  parsed.value = line.substr(at + 1);
  return parsed;
}

TEST_F(WatchExportTest, EveryMetricIsWellFormedAndBelongsToTheFamilyBeforeIt) {
  Wait(1, 0x1003, 31 * kSecond);
  subjects_[0].sample.stack_free = 512;
  WatchScene scene = Scene();
  scene.target = "a \"quoted\\name\"\nof two lines";
  const std::string text =
      WatchMetrics({{scene, true, {{FindingKind::kDeadlock, 2}}}}, WatchCost{});
  std::string family;
  std::map<std::string, int> families;
  std::map<std::string, int> samples;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(++families[family], 1) << line;
      EXPECT_EQ(family.ends_with("_total"), line.ends_with(" counter")) << line;
      continue;
    }
    if (line.starts_with("# HELP ")) continue;
    const MetricLine metric = ParseLine(line);
    EXPECT_EQ(metric.name, family) << line;
    EXPECT_TRUE(IsMetricName(metric.name)) << line;
    EXPECT_EQ(++samples[line.substr(0, line.rfind(' '))], 1) << "twice: " << line;
    for (const auto& [name, value] : metric.labels) {
      EXPECT_TRUE(IsLabelName(name)) << line;
      if (name == "target") {
        EXPECT_EQ(value, "a \"quoted\\name\"\\nof two lines") << line;
      }
    }
  }
  EXPECT_EQ(families.size(), 11u);
  EXPECT_NE(text.find(R"x(core="1",name="core 1 (0,0)",activity="waiting"} 1)x"),
            std::string::npos);
  EXPECT_NE(text.find(R"x(core="1",name="core 1 (0,0)",activity="running"} 0)x"),
            std::string::npos);
  EXPECT_NE(text.find(R"x(hangscope_wait_seconds{)x"), std::string::npos);
  EXPECT_NE(text.find("name=\"core 1 (0,0)\"} 31\n"), std::string::npos);
  EXPECT_NE(text.find(R"x(kind="deadlock"} 2)x"), std::string::npos);
  EXPECT_NE(text.find(R"x(name="core 0 (0,0)"} 512)x"), std::string::npos);
}

}  // namespace
}  // namespace hangscope

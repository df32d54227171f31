// What why prints of processes: on a screen of any width, and as JSON Lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "process/process_json.h"
#include "process/process_text.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Two of its threads wait for each other, a third for the end of one of them.
class ProcessExportTest : public ::testing::Test {
 protected:
  ProcessExportTest() {
    look_.begin = 100 * kSecond, look_.end = look_.begin + kMillisecond;
    look_.longest_stop = 400'000;
    ProcessFacts process;
    process.pid = 4711, process.parent = 1, process.name = "abba",
    process.state = ThreadState::kSleeping;
    look_.processes.push_back(process);
    Add(4711, "abba", WaitKind::kJoin).wait.thread = 4712;
    Locks(4712, "worker-a", "lock_b", 4713);
    Locks(4713, "worker-b", "lock_a", 4712);
  }

  ThreadFacts& Add(int tid, const std::string& name, WaitKind kind) {
    auto& threads = look_.processes[0].threads;
    threads.push_back({});
    ThreadFacts& thread = threads.back();
    thread.pid = 4711, thread.tid = tid, thread.name = name, thread.state = ThreadState::kSleeping,
    thread.system_call = 202;
    thread.system_call_name = "futex", thread.since = look_.end - 41 * kSecond,
    thread.wait.kind = kind;
    thread.stack = {{0x1000, "__lll_lock_wait", "", "libc.so.6"},
                    {0x2000, "transfer(int*, int*)", "abba.c:31", "abba"},
                    {0x3000, "start_thread", "", "libc.so.6"}};
    return thread;
  }
  void Locks(int tid, const std::string& name, const std::string& lock, int owner) {
    ThreadFacts& thread = Add(tid, name, WaitKind::kMutex);
    thread.wait.variable = lock, thread.wait.owner = owner, thread.wait.address = 0x4000;
  }
  void AddIdle(int count) {
    for (int i = 0; i < count; ++i)
      Add(5000 + i, "idle", WaitKind::kCondition).wait.variable = "work_came";
  }
  ProcessScene Scene(size_t columns = 80) {
    SystemSample before = look_;
    before.begin -= 50 * kMillisecond, before.end -= 50 * kMillisecond;
    judgement_ = JudgeProcess({before, look_});
    ProcessScene scene;
    scene.look = &look_, scene.judgement = &judgement_, scene.columns = columns;
    return scene;
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static size_t Longest(const std::string& text) {
    size_t longest = 0;
    for (const std::string& line : Lines(text)) longest = std::max(longest, line.size());
    return longest;
  }

  SystemSample look_;
  ProcessJudgement judgement_;
};

TEST_F(ProcessExportTest, TheVerdictComesFirstThenWhoWaitsForWhom) {
  const auto lines = Lines(ProcessText(Scene(100)));
  ASSERT_GE(lines.size(), 6u);
  EXPECT_EQ(lines[0], "HANG: deadlock, 2 of 3 threads wait for each other (certain)");
  EXPECT_EQ(lines[1],
            "  4712 worker-a  waits 41.0 s for mutex lock_b, held by 4713  transfer  abba.c:31");
  EXPECT_EQ(lines[2],
            "  4713 worker-b  waits 41.0 s for mutex lock_a, held by 4712  transfer  abba.c:31");
  EXPECT_EQ(lines[3], "  1 more waits for these: 4711 abba");
  EXPECT_EQ(lines[5], "process 4711 (abba), 3 threads: 3 wait; the longest was stopped for 0.4 ms");
  EXPECT_EQ(lines[6], "thread         state  for     waits for                   at");
  EXPECT_THAT(
      lines[7],
      StartsWith("4712 worker-a  waits  41.0 s  mutex lock_b, held by 4713  transfer  abba.c:31"));
}

TEST_F(ProcessExportTest, AllOfItFitsOnOneScreen) {
  for (const size_t columns : {40, 60, 80, 120, 300}) {
    AddIdle(40);
    const std::string text = ProcessText(Scene(columns));
    EXPECT_LE(Longest(text), columns);
    EXPECT_LE(Lines(text).size(), columns < 60 ? 30u : 22u) << text;
    EXPECT_THAT(text, HasSubstr("more: --all shows all"));
    if (columns < 60) continue;
    EXPECT_THAT(text, HasSubstr("stack of 4712 worker-a"));
  }
}

TEST_F(ProcessExportTest, WhatIsTooLongForALineStandsOnOneOfItsOwn) {
  look_.processes[0].threads[1].wait.variable = "the_lock_of_the_table_of_all_that_is_known";
  const auto lines = Lines(ProcessText(Scene(80)));
  EXPECT_EQ(lines[1],
            "  4712 worker-a  waits 41.0 s for mutex the_lock_of_the_table_of_all_that_is_...");
  EXPECT_EQ(lines[2], "       transfer  abba.c:31");
}

TEST_F(ProcessExportTest, OnRequestAllThreadsAndAllFrames) {
  AddIdle(40);
  ProcessScene scene = Scene();
  scene.all_threads = scene.all_stacks = true;
  const std::string text = ProcessText(scene);
  EXPECT_THAT(text, Not(HasSubstr("--all shows all")));
  EXPECT_THAT(text, HasSubstr("stack of 5039 idle"));
  EXPECT_THAT(text, HasSubstr("#2  start_thread"));
  size_t rows = 0, frames = 0;
  for (const std::string& line : Lines(text)) {
    rows += line.find("  waits  41.0 s  ") != std::string::npos;
    frames += line.starts_with("  #");
  }
  EXPECT_EQ(rows, 43u);
  EXPECT_EQ(frames, 43u * 3);
}

TEST_F(ProcessExportTest, WhatNamesHoldCannotReachTheTerminal) {
  look_.processes[0].name = "ab\x1b[2J";
  look_.processes[0].threads[1].name = "\x1b]0;x\a";
  look_.processes[0].threads[1].stack[1].function = "f\x1b";
  look_.processes[0].threads[1].wait.variable = "l\n\x1b";
  look_.processes[0].warnings.push_back("no \x1b");
  ProcessScene scene = Scene();
  scene.all_stacks = true;
  const std::string text = ProcessText(scene) + ProcessJson(scene, 0, 0);
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
}

TEST_F(ProcessExportTest, OfAnotherProcessAWarningSaysOfWhich) {
  look_.processes[0].warnings = {"its stacks were cut"};
  ProcessFacts& other = look_.processes.emplace_back();
  other.pid = 4800, other.name = "worker";
  other.warnings = {"its stacks were cut"};
  const std::string text = ProcessText(Scene());
  EXPECT_THAT(text, HasSubstr("\n  its stacks were cut\n"));
  EXPECT_THAT(text, HasSubstr("\n  process 4800 (worker): its stacks were cut\n"));
}

TEST_F(ProcessExportTest, WhereNothingIsWrongTheFirstLineSaysSo) {
  look_.processes[0].threads[1].wait.has_timeout = true;
  const std::string text = ProcessText(Scene());
  EXPECT_THAT(text, StartsWith("no hang found\nprocess 4711 (abba), 3 threads: 3 wait;"));
}

TEST_F(ProcessExportTest, CutsByCharactersNotBytes) {
  EXPECT_EQ(CutToColumns("abcdef", 6), "abcdef");
  EXPECT_EQ(CutToColumns("abcdef", 5), "ab...");
  EXPECT_EQ(CutToColumns("äöüß", 4), "äöüß");
  EXPECT_EQ(CutToColumns("äöüßä", 4), "ä...");
  EXPECT_EQ(CutToColumns("abc", 2), "..");
  EXPECT_EQ(CutToColumns("abc", 0), "");
}

TEST_F(ProcessExportTest, JsonHasTheProcessesAndTheThreads) {
  const auto lines = Lines(ProcessJson(Scene(), 0, 0));
  ASSERT_EQ(lines.size(), 1u + 1 + 3);
  const auto note = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(note["event"], "looked");
  EXPECT_EQ(note["longest_stop_s"], 0.0004);
  const auto thread = nlohmann::json::parse(lines[3]);
  EXPECT_EQ(thread["type"], "thread");
  EXPECT_EQ(thread["stand"], "waits");
  EXPECT_EQ(thread["for_s"], 41.0);
  EXPECT_EQ(thread["waits_for"]["variable"], "lock_b");
  EXPECT_EQ(thread["waits_for"]["owner"], 4713);
  EXPECT_EQ(thread["stack"].size(), 3u);
}

TEST_F(ProcessExportTest, AFindingTravelsWithItsThreads) {
  std::vector<StackFrame>& stack = look_.processes[0].threads[1].stack;
  const auto of_header = [](uint64_t pc, const char* function, const char* source) {
    return StackFrame{pc, function, source, "abba", FrameLanguage::kNative, true};
  };
  stack.insert(stack.begin() + 2, {{0x2800, "worker", "abba.c:52", "abba"},
                                   of_header(0x2900, "__invoke<worker>", "invoke.h:9"),
                                   of_header(0x2980, "operator()", "std_thread.h:259"),
                                   {0x2a00, "main", "abba.c:70", "abba"}});
  stack.push_back({0x3100, "_start", "", "abba"});
  // The compiler put these into transfer.
  stack.insert(stack.begin() + 1, {of_header(0x1800, "lock", "std_mutex.h:103"),
                                   of_header(0x1900, "wait_until<>", "condition_variable:151")});
  const ProcessScene scene = Scene();
  const Finding finding = ToldSightings(*scene.judgement, *scene.look).findings.at(0);
  ASSERT_EQ(finding.subjects.size(), 2u);
  EXPECT_EQ(finding.subjects[0].thread, 4712);
  EXPECT_THAT(finding.subjects[0].where, HasSubstr("abba.c:31"));
  EXPECT_EQ(finding.subjects[0].callers,
            (std::vector<std::string>{"worker  abba.c:52", "main  abba.c:70"}));
  EXPECT_THAT(finding.subjects[0].waits_for, HasSubstr("mutex lock_b"));
  EXPECT_EQ(finding.subjects[0].lasts, 41 * kSecond);
  ASSERT_EQ(finding.victims.size(), 1u);
  EXPECT_EQ(finding.victims[0].thread, 4711);
}

TEST_F(ProcessExportTest, JsonTakesNamesThatAreNoText) {
  look_.processes[0].threads[1].name = "\xff\xfe";
  for (const std::string& line : Lines(ProcessJson(Scene(), 0, 0)))
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

}  // namespace
}  // namespace hangscope

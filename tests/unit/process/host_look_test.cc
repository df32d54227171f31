#include "process/host_look.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "process/process_json.h"
#include "process/process_text.h"
#include "process/process_words.h"
#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimeNs kWall = 1'800'000'000 * kSecond;
constexpr const char* kHere = "10.0.0.1:7000";
constexpr const char* kThere = "10.0.0.2:46068";

WaitFile Connection(const std::string& local, const std::string& remote) {
  WaitFile file;
  file.fd = 3, file.kind = FileKind::kSocket, file.outside = true;
  file.name = "tcp " + local + " - " + remote;
  return file;
}

// A process that waits for what comes over a connection to another machine.
SystemSample Reader(int pid, const char* name, const char* local, const char* remote) {
  World world;
  world.Process(pid, name);
  ThreadFacts& thread = world.Thread(pid, pid, WaitKind::kRead, name);
  thread.wait.files = {Connection(local, remote)};
  SystemSample look = world.look();
  look.remote_ends = {{local, remote, {{pid, 3}}, false}};
  return look;
}

std::vector<SystemSample> TwoLooks(const SystemSample& look) {
  SystemSample first = look;
  first.begin -= 50 * kMillisecond, first.end -= 50 * kMillisecond;
  return {first, look};
}

std::string Written(const SystemSample& look, const char* host, TimeNs wall = kWall,
                    std::vector<SystemSample> looks = {}) {
  SystemSample sample = look;
  sample.host = host, sample.boot = std::string("boot of ") + host;
  const ProcessJudgement judgement = JudgeProcess(looks.empty() ? TwoLooks(sample) : looks);
  return ProcessJson({&sample, &judgement, true, true, 120, 100}, wall, 0);
}

HostLook Read(const std::string& text) {
  auto look = ReadHostLook(text, "b.jsonl");
  EXPECT_TRUE(look.ok()) << look.status().message();
  return look.ok() ? *look : HostLook{};
}

ProcessJudgement Judged(const SystemSample& own, const std::vector<HostLook>& others) {
  auto joined = JoinLooks(TwoLooks(own), kWall, others);
  EXPECT_TRUE(joined.ok());
  return JudgeProcess(*joined);
}

const SystemSample kOwn = Reader(10, "client", kHere, kThere);
const SystemSample kOther = Reader(10, "server", kThere, kHere);

TEST(HostLook, WhoWaitForEachOtherOnTwoHostsAreADeadlock) {
  EXPECT_TRUE(IsSilent(JudgeProcess(TwoLooks(kOwn))));
  auto joined = JoinLooks(TwoLooks(kOwn), kWall, {Read(Written(kOther, "far"))});
  const ProcessFinding finding = Only(JudgeProcess(*joined));
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, ElementsAre(HasSubstr("the clocks of their hosts")));
  const Finding told = ToldFinding(finding, joined->back());
  EXPECT_THAT(told.lines,
              ElementsAre("10 client  waits 41.0 s for data from tcp 10.0.0.1:7000 - "
                          "10.0.0.2:46068 (fd 3) written by 10 server on far",
                          "10 server on far  waits 41.0 s for data from tcp 10.0.0.2:46068 - "
                          "10.0.0.1:7000 (fd 3) written by 10 client"));
  EXPECT_THAT(told.evidence, ElementsAre(HasSubstr("the same in 2 looks on its host")));
  EXPECT_EQ(told.subjects[1].host, "far");
}

TEST(HostLook, OneThatRunsOnTheOtherHostHangsNobody) {
  auto looks = TwoLooks(kOther);
  looks.front().processes[0].threads[0].voluntary_switches -= 1;
  EXPECT_TRUE(IsSilent(Judged(kOwn, {Read(Written(kOther, "far", kWall, looks))})));
}

TEST(HostLook, ClocksThatShowNoCommonTimeLeaveItPossible) {
  for (const TimeNs apart : {-60 * kSecond, 60 * kSecond}) {
    const ProcessFinding finding =
        Only(Judged(kOwn, {Read(Written(kOther, "far", kWall + apart))}));
    EXPECT_EQ(finding.confidence, Confidence::kPossible) << apart;
  }
}

TEST(HostLook, AnEndThatTwoHostsHaveIsNobodys) {
  const std::string other = Written(kOther, "far"), third = Written(kOther, "farther");
  EXPECT_TRUE(IsSilent(Judged(kOwn, {Read(other), Read(third)})));
  EXPECT_FALSE(IsSilent(Judged(kOwn, {Read(other), Read(other)})));  // the same twice
}

TEST(HostLook, AddressesOfAMachineItselfLeadToNoOther) {
  const SystemSample own = Reader(10, "client", "127.0.0.1:1", "127.0.0.1:2");
  const SystemSample other = Reader(10, "server", "127.0.0.1:2", "127.0.0.1:1");
  EXPECT_TRUE(IsSilent(Judged(own, {Read(Written(other, "far"))})));
}

TEST(HostLook, OthersWhoMayHaveTheEndOpenLeaveItOpen) {
  SystemSample other = kOther;
  other.remote_ends[0].others_unknown = true;
  EXPECT_TRUE(IsSilent(Judged(kOwn, {Read(Written(other, "far"))})));
}

// What is held up there, holds up who waits here.
TEST(HostLook, AStoppedProcessThereIsWhyThisOneWaits) {
  SystemSample other = kOther;
  other.processes[0].threads[0].state = ThreadState::kStopped;
  const ProcessFinding finding = Only(Judged(kOwn, {Read(Written(other, "far"))}));
  EXPECT_EQ(finding.kind, FindingKind::kHeld);
  EXPECT_THAT(finding.summary, HasSubstr("process 10 (server) on far"));
}

// What is written says all that the judge needs.
TEST(HostLook, IsJudgedAsItWasWhereItWasMade) {
  for (const World& world : {Abba(),
                             [] {
                               World pipes;
                               pipes.Reads(10, 10, {11}), pipes.Reads(11, 11, {10});
                               return pipes;
                             }(),
                             [] {
                               World spins;
                               spins.Spins(10, 10);
                               return spins;
                             }()}) {
    auto joined = JoinLooks(TwoLooks(kOwn), kWall, {Read(Written(world.look(), "far"))});
    std::vector<SystemSample> there = *joined;
    for (SystemSample& look : there) look.asked = {kIdsOfHost + 10};
    const auto expected = world.Judge().findings;
    const auto findings = JudgeProcess(there).findings;
    ASSERT_EQ(findings.size(), expected.size());
    EXPECT_EQ(findings[0].kind, expected[0].kind);
    EXPECT_EQ(findings[0].confidence, expected[0].confidence);
  }
}

TEST(HostLook, OfTheSameKernelItHasTheSameNumbers) {
  SystemSample own = kOwn;
  own.boot = "boot of far";
  auto joined =
      JoinLooks(TwoLooks(own), kWall, {Read(Written(Reader(11, "server", kThere, kHere), "far"))});
  EXPECT_EQ(joined->back().processes[1].pid, 11);
  EXPECT_EQ(joined->back().processes[1].host, "");
  EXPECT_EQ(Only(JudgeProcess(*joined)).kind, FindingKind::kDeadlock);
  // The same process is the one of the newer look.
  EXPECT_EQ(JoinLooks(TwoLooks(own), kWall, {Read(Written(kOwn, "far"))})->back().processes.size(),
            1u);
}

TEST(HostLook, FramesOfPythonStayFramesOfPython) {
  World world;
  world.Process(10, "server");
  const StackFrame frame = {0, "take", "bank.py:31", "/srv/bank.py", FrameLanguage::kPython};
  world.Thread(10, 10, WaitKind::kSemaphore).stack = {{0x1000, "read", "", "libc.so.6"}, frame};
  const std::string text = Written(world.look(), "far");
  EXPECT_THAT(text, HasSubstr(R"({"language":"python","function":"take","source":"bank.py:31",)"
                              R"("module":"/srv/bank.py"})"));
  const HostLook read = Read(text);
  const auto& stack = read.look.processes.at(0).threads.at(0).stack;
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[0].language, FrameLanguage::kNative);
  EXPECT_EQ(stack[1].language, FrameLanguage::kPython);
  EXPECT_EQ(stack[1].module, "/srv/bank.py");
}

TEST(HostLook, FramesOfTheSystemStayNoPlaces) {
  World world;
  world.Process(10, "server");
  world.Thread(10, 10, WaitKind::kMutex).stack = {
      {0x1000, "g_mutex_lock", "", "libglib-2.0.so.0", FrameLanguage::kNative, true},
      {0x2000, "take", "bank.c:31", "bank"}};
  const HostLook read = Read(Written(world.look(), "far"));
  const ThreadFacts& thread = read.look.processes.at(0).threads.at(0);
  EXPECT_TRUE(thread.stack.at(0).of_system);
  EXPECT_FALSE(thread.stack.at(1).of_system);
  EXPECT_EQ(FrameText(OwnFrame(thread)), "take  bank.c:31");
}

TEST(HostLook, WhatIsNoLookIsRefusedWithItsLine) {
  const auto why = [](const std::string& text) {
    return ReadHostLook(text, "b.jsonl").status().message();
  };
  EXPECT_THAT(why(""), HasSubstr("has no look at processes in it"));
  EXPECT_THAT(why("{\"type\":\"verdict\"}\n{"), HasSubstr("line 2: this is no object of JSON"));
  EXPECT_THAT(why("[]"), HasSubstr("line 1"));
  for (const char* pid : {"0", "-1", "4194304", "1e9", "\"7\"", "null"})
    EXPECT_THAT(why(fmt::format("{{\"type\":\"process\",\"pid\":{}}}", pid)),
                HasSubstr("a process without a number"))
        << pid;
  EXPECT_THAT(why("{\"type\":\"process\",\"pid\":7}\n{\"type\":\"process\",\"pid\":7}"),
              HasSubstr("line 2: a process that was there already"));
  EXPECT_THAT(why("{\"type\":\"thread\",\"pid\":7,\"tid\":7}"),
              HasSubstr("does not follow its process"));
}

TEST(HostLook, AnyBytesAreReadOrRefused) {
  const std::string text = Written(kOther, "far");
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '"', '9', '-', '\n'}) {
      std::string damaged = text;
      damaged[i] = byte;
      auto look = ReadHostLook(damaged, "b.jsonl");
      if (look.ok()) JudgeProcess(*JoinLooks(TwoLooks(kOwn), kWall, {*look}));
    }
  }
}

}  // namespace
}  // namespace hangscope

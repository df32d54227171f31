// Who reads and writes what others, or nobody, have the other end of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = FindingKind;

TEST(ProcessPipes, ReadingAPipeThatOnlyOneselfCouldWriteNeverEnds) {
  World world;
  world.Reads(10, 10, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(LinesOf(world), ElementsAre(HasSubstr("data from a pipe (fd 3) written by itself")));
}

TEST(ProcessPipes, APipeWithinAProcessThatAnotherThreadMayWrite) {
  World world;
  world.Reads(10, 10, {10});
  world.Signals(10, 11, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.victims, ElementsAre(11));
  world.Thread(10, 12, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, AReaderWithHandlersMayBeInterrupted) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Reads(10, 10, {10});
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessPipes, APipeThatProcessesOutOfSightMayWriteIsPossibleOnly) {
  World world;
  WaitFile& file = world.Reads(10, 10, {10}).wait.files[0];
  file.others_unknown = file.others_hidden = true;
  const ProcessJudgement judgement = world.Judge();
  EXPECT_EQ(Only(judgement).kind, Kind::kNoWriter);
  EXPECT_EQ(Only(judgement).confidence, Confidence::kPossible);
  EXPECT_THAT(Only(judgement).doubts,
              testing::Contains(HasSubstr("might have the other end open")));
  EXPECT_FALSE(judgement.IsBad());
  file.others_hidden = false;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, ANamedPipeOrAnEventMayBeServedByThoseWhoAreNotThereYet) {
  World world;
  WaitFile& file = world.Reads(10, 10, {20}).wait.files[0];
  world.Reads(20, 20, {10});
  file.name = "/run/commands";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("/run/commands (fd 3) written by 20"));
  file.name = "/run/commands (deleted)";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  file.kind = FileKind::kEvent;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

// The handler of a shell for SIGINT ends neither its child nor the lock that this waits for.
TEST(ProcessPipes, HandlersOfAProcessWhoseEndOthersWaitForRaiseNoDoubt) {
  const auto judge = [](uint64_t holder_handles, uint64_t shell_handles) {
    World world;
    for (const int pid : {10, 20}) {  // flock, its shell, and what that runs
      world.Process(pid, "flock").caught_signals = holder_handles;
      world.Thread(pid, pid, WaitKind::kChild).wait.children = {pid + 1};
      world.Process(pid + 1, "sh").caught_signals = shell_handles;
      world.Thread(pid + 1, pid + 1, WaitKind::kChild).wait.children = {pid + 2};
      world.Process(pid + 2, "flock");
      world.Thread(pid + 2, pid + 2, WaitKind::kFileLock).wait.owner = 30 - pid;
    }
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(judge(0, SignalBit(SIGINT)), Confidence::kCertain);
  EXPECT_EQ(judge(SignalBit(SIGINT), 0), Confidence::kLikely);  // it may give its lock back
}

TEST(ProcessPipes, TwoProcessesThatReadFromEachOtherAreADeadlock) {
  World world;
  world.Reads(10, 10, {20});
  world.Reads(20, 20, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_EQ(finding.summary, "deadlock, 2 threads of 2 processes wait for each other");
}

TEST(ProcessPipes, ACycleThroughAPipeIsFoundThoughOtherThreadsOfTheWriterIdle) {
  World world;
  world.Reads(10, 10, {20});
  world.Reads(20, 20, {10});
  world.Signals(20, 21, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_THAT(finding.victims, ElementsAre(21));
}

TEST(ProcessPipes, ACycleThroughLocksAndPipes) {
  World world;
  world.Reads(10, 10, {20});        // from 20, which waits
  world.Locks(20, 20, "lock", 21);  // for a lock of 21,
  world.Reads(20, 21, {10});        // which reads from 10
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 21));
  EXPECT_THAT(finding.victims, ElementsAre(20));
}

TEST(ProcessPipes, WhoeverReadsFromAWriterThatLivesWaitsByDesign) {
  World world;
  world.Reads(10, 10, {10, 20});
  world.Thread(20, 20, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, ReadsFromAProcessThatHangsItself) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_TRUE(finding.IsBad());
}

TEST(ProcessPipes, ReadsFromAProcessWhoseThreadsAllIdle) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  world.Signals(20, 21, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(20, 21));
  EXPECT_THAT(finding.victims, ElementsAre(10));
}

TEST(ProcessPipes, WhoOpensANamedPipeWaitsForWhoeverOpensItsOtherEnd) {
  World world;
  WaitFile pipe;
  pipe.kind = FileKind::kPipe, pipe.name = "orders", pipe.others_unknown = true;
  world.Thread(10, 10, WaitKind::kOpen).wait.files = {pipe};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(finding.summary,
            "no writer, its only thread waits for somebody to open orders for writing");
}

TEST(ProcessPipes, OneLivePeerOfManyIsEnough) {
  const auto polls = [](bool second_hangs) {
    World world;
    ThreadFacts& thread = world.Reads(10, 10, {20});
    thread.wait.kind = WaitKind::kPoll;
    WaitFile other = thread.wait.files[0];
    other.fd = 5, other.others = {{30, 4}};
    thread.wait.files.push_back(other);
    world.Locks(20, 20, "lock", 20);
    if (second_hangs)
      world.Locks(30, 30, "lock", 30);
    else
      world.Thread(30, 30, WaitKind::kTime).wait.has_timeout = true;
    return world.Judge();
  };
  EXPECT_THAT(polls(false).findings[0].victims, ElementsAre());
  EXPECT_THAT(polls(true).findings[0].victims, ElementsAre(10));
}

}  // namespace
}  // namespace hangscope

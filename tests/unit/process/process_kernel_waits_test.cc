// Who sleeps in the kernel for what only its own process could do, or nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = FindingKind;

ThreadFacts& Opens(World* world, int pid, int tid, const char* name) {
  ThreadFacts& thread = world->Thread(pid, tid, WaitKind::kOpen);
  WaitFile file;
  file.kind = FileKind::kPipe, file.name = name;
  thread.wait.files = {file};
  return thread;
}

// One that waits for a file of `kind`, which these have, too.
ThreadFacts& WaitsFor(World* world, int pid, FileKind kind, std::vector<int> others) {
  ThreadFacts& thread = world->Reads(pid, pid, std::move(others));
  thread.wait.files[0].kind = kind;
  return thread;
}

TEST(ProcessKernelWaits, APipeWhoseNameIsGoneIsOpenedByNobody) {
  World world;
  WaitFile& file = Opens(&world, 10, 11, "lonely.fifo (deleted)").wait.files[0];
  world.Joins(10, 10, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(11));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_EQ(finding.summary,
            "no writer, 1 of 2 threads waits for somebody to open lonely.fifo (deleted) for "
            "writing");
  file.others_unsure = true;  // it may have been renamed
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  file.others_unsure = false;
  World handles = world;
  handles.Of(10).caught_signals = kTerm;
  EXPECT_EQ(Only(handles.Judge()).confidence, Confidence::kPossible);
  // Beside one that moves, it is worth a word.
  world.Thread(10, 12, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessKernelWaits, APipeThatHasANameMayBeOpenedAtAnyTime) {
  World world;
  Opens(&world, 10, 10, "later.fifo");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessKernelWaits, AConnectionThatOnlyItsReaderCouldAccept) {
  World world;
  WaitFile& file = WaitsFor(&world, 10, FileKind::kSocket, {10}).wait.files[0];
  file.name = "tcp 127.0.0.1:9 - 127.0.0.1:80", file.unaccepted = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_EQ(finding.summary,
            "no writer, its only thread reads a connection to its own process that nobody has "
            "accepted, and nobody there can");
  EXPECT_THAT(LinesOf(world),
              ElementsAre(HasSubstr("data from tcp 127.0.0.1:9 - 127.0.0.1:80 (fd 3), not accepted "
                                    "yet by itself")));
  // Its child has the listening socket, too.
  file.others.emplace_back(20, 3);
  world.Thread(20, 20, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessKernelWaits, ARingThatWasGivenNothingCompletesNothing) {
  World world;
  WaitFile& file = WaitsFor(&world, 10, FileKind::kRing, {10}).wait.files[0];
  world.Of(10).threads[0].system_call_name = "io_uring_enter";
  EXPECT_TRUE(IsSilent(world.Judge()));
  file.is_idle = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.summary, HasSubstr("completions of an io_uring that was given nothing"));
  EXPECT_THAT(LinesOf(world),
              ElementsAre(HasSubstr("completions of an io_uring that was given nothing to do (fd "
                                    "3)")));
}

TEST(ProcessKernelWaits, ARequestOfARingIsAWaitForItsFile) {
  World world;
  world.Reads(10, 10, {20}).system_call_name = "io_uring_enter";
  world.Thread(20, 20, WaitKind::kChild).wait.children = {10};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("an io_uring's request for data from a pipe (fd 3)"));
}

TEST(ProcessKernelWaits, APageThatNobodyIsLeftToFill) {
  World world;
  ThreadFacts& thread = WaitsFor(&world, 10, FileKind::kFault, {10});
  thread.tid = 11, thread.wait.files[0].fd = -1;
  world.Locks(10, 10, "lock_a", 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.summary, HasSubstr("a page that a userfaultfd keeps back"));
  EXPECT_THAT(finding.partners, ElementsAre(10));
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  world.Thread(10, 12, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessKernelWaits, WhatIsWrittenToATerminalIsReadByWhoHasItsOtherSide) {
  World world;
  ThreadFacts& thread = WaitsFor(&world, 10, FileKind::kTerminal, {20});
  thread.wait.kind = WaitKind::kWrite;
  thread.wait.files[0].wants_read = false, thread.wait.files[0].name = "/dev/pts/3";
  world.Thread(20, 20, WaitKind::kChild).wait.children = {10};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("room in /dev/pts/3 (fd 3) read by 20"));
}

TEST(ProcessKernelWaits, WhoMadeATerminalMayServeWhoeverOpensIt) {
  World world;
  ThreadFacts& thread = WaitsFor(&world, 10, FileKind::kTerminal, {10});
  thread.wait.files[0].name = "/dev/pts/3";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely) << "its own side has no name";
  world.Of(10).threads[0].wait.files[0].name = "/dev/ptmx";
  EXPECT_EQ(Only(world.Judge()).kind, Kind::kNoWriter);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

ThreadFacts& Downs(World* world, int pid, const char* name) {
  ThreadFacts& thread = world->Thread(pid, pid, WaitKind::kSemaphore);
  thread.wait.shared = thread.wait.is_public = true;
  thread.wait.shared_name = name, thread.wait.sharers = {10, 20};
  return thread;
}

TEST(ProcessKernelWaits, SemaphoresWithNamesInACircleMayBeADeadlock) {
  World world;
  Downs(&world, 10, "/dev/shm/sem.free+0x0");
  Downs(&world, 20, "/dev/shm/sem.full+0x0");
  const ProcessJudgement judgement = world.Judge();
  const ProcessFinding finding = Only(judgement);
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_THAT(finding.doubts, testing::Contains(HasSubstr("whoever knows the name")));
  EXPECT_THAT(finding.summary, HasSubstr("semaphore /dev/shm/sem.free+0x0, semaphore"));
}

// Each opens later what the other one waits to have opened; or only one does.
TEST(ProcessKernelWaits, PipesThatAreOpenedCrosswiseAreADeadlockIfTheCodeSaysSo) {
  World world;
  for (const int pid : {10, 20}) {
    WaitFile& file = Opens(&world, pid, pid, pid == 10 ? "requests" : "replies").wait.files[0];
    file.others_unknown = file.is_public = true, file.others = {{30 - pid, -1}};
  }
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("as the code of 20 program does later"));
  WaitFile& other = world.Of(20).threads[0].wait.files[0];
  other.others.clear(), other.is_public = false;
  EXPECT_FALSE(world.Judge().IsBad());
}

// Whoever has work for them will come.
TEST(ProcessKernelWaits, WorkersOfOneSemaphoreWithANameIdle) {
  World world;
  Downs(&world, 10, "/dev/shm/sem.jobs+0x0");
  Downs(&world, 20, "/dev/shm/sem.jobs+0x0");
  EXPECT_TRUE(IsSilent(world.Judge()));
  for (const int pid : {10, 20}) world.Of(pid).threads[0].wait.is_public = false;
  EXPECT_TRUE(world.Judge().IsBad());  // in memory that only these two have
}

}  // namespace
}  // namespace hangscope

// How the processes of a tree stand: who moves, and who waits for the outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

World Launched() {
  World world;
  world.Process(1, "shell");
  world.Process(10, "server");
  world.Thread(1, 1, WaitKind::kChild).wait.children = {10};
  world.Ask({1, 10});
  return world;
}

TEST(ProcessStanding, ATreeThatWaitsForTheOutsideSaysForWhat) {
  World world = Launched();
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kAccept, "server");
  WaitFile file;
  file.fd = 4, file.kind = FileKind::kSocket, file.listening = file.outside = true;
  file.name = "tcp 0.0.0.0:80";
  thread.wait.files = {file};
  world.Signals(10, 11, "work");
  const ProcessStanding standing = world.Judge().standing;
  EXPECT_THAT(standing.outside,
              ElementsAre("10 server waits for a connection to tcp 0.0.0.0:80 (fd 4)"));
  EXPECT_TRUE(standing.complete);
  EXPECT_TRUE(standing.moving.empty() && standing.tickers.empty() && standing.unknown.empty() &&
              standing.halted.empty());
}

TEST(ProcessStanding, WhoWaitsForSomebodyWhoWaitsForTheOutsideSaysBoth) {
  World world;
  world.Process(10, "client");
  world.Process(20, "holder");
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFileLock, "client");
  WaitFile file;
  file.fd = 4, file.kind = FileKind::kFile, file.name = "/run/db.lock", file.others = {{20, 3}};
  thread.wait.files = {file};
  world.Thread(20, 20, WaitKind::kAccept, "holder");
  const auto outside = [&] { return world.Judge().standing.outside; };
  EXPECT_THAT(outside(),
              ElementsAre("10 client waits for the lock of /run/db.lock (fd 4), held by 20 "
                          "holder, and 20 holder waits for a connection"));
  // The shell that started the holder has its descriptor, too.
  world.Of(10).threads[0].wait.files[0].others = {{20, 3}, {30, 3}};
  world.Process(30, "sh");
  world.Thread(30, 30, WaitKind::kChild).wait.children = {20};
  EXPECT_THAT(outside(),
              ElementsAre(HasSubstr("held by 20 holder, 30 sh, and 20 holder waits for")));
  world.Of(10).threads[0].wait.files[0].others = {{20, 3}};
  world.Thread(20, 21, WaitKind::kAccept);  // any of them may give it back
  EXPECT_THAT(outside(),
              ElementsAre("10 client waits for the lock of /run/db.lock (fd 4), held by 20 "
                          "holder"));
}

TEST(ProcessStanding, WhoWaitsForAServerThatIsBusySaysSo) {
  World world;
  world.Process(10, "client");
  world.Process(20, "server");
  world.Reads(10, 10, {20});
  world.Thread(20, 20, WaitKind::kNone, "server").state = ThreadState::kRunning;
  world.Signals(20, 21, "work");
  const auto outside = [&] { return world.Judge().standing.outside; };
  EXPECT_THAT(outside(), ElementsAre(::testing::EndsWith(", and 20 server runs")));
  // With another one that is, too, nobody knows who would answer.
  world.Thread(20, 22, WaitKind::kNone, "helper").state = ThreadState::kRunning;
  EXPECT_THAT(outside(), ElementsAre(::testing::Not(HasSubstr(" runs"))));
}

// For whom else sees a part of what they wait for.
TEST(KnownWaits, AreThoseOfWhichItIsKnownWhoCouldEndThem) {
  World world;
  world.Process(10);
  world.Process(20);
  world.Locks(10, 11, "lock", 12);
  world.Signals(10, 12, "work");
  world.Thread(10, 13, WaitKind::kTime).wait.has_timeout = true;
  world.Reads(10, 14, {20});
  world.Thread(20, 20, WaitKind::kNone).state = ThreadState::kRunning;
  world.Locks(20, 21, "moved", 20);
  const ProcessJudgement judgement = world.Judge(
      [](SystemSample* first) { first->processes[1].threads[1].voluntary_switches = 1; });
  EXPECT_THAT(judgement.still, ElementsAre(11, 12, 14));
  ASSERT_EQ(judgement.waits.size(), 2u);
  EXPECT_EQ(judgement.waits[0].thread, 11);
  EXPECT_THAT(judgement.waits[0].whom, ElementsAre(12));
  EXPECT_EQ(judgement.waits[0].doubt, "");
  EXPECT_EQ(judgement.waits[1].thread, 14);
  EXPECT_THAT(judgement.waits[1].whom, ElementsAre(20, 21));
  EXPECT_NE(judgement.waits[1].doubt, "");
  const Sightings told = ToldSightings(judgement, world.look());
  ASSERT_EQ(told.waits.size(), 2u);
  EXPECT_EQ(told.waits[0].line, "11  waits 41.0 s for mutex lock, held by 12");
  EXPECT_EQ(told.waits[0].since, world.look().end - 41 * kSecond);
  EXPECT_EQ(told.waits[0].whom[0].process, 10);
  EXPECT_TRUE(world.JudgeOnce().still.empty()) << "one look does not tell";
}

TEST(ProcessStanding, WhoNapsOverAndOverIsATickerAndWhoWorksMoves) {
  World world = Launched();
  world.Thread(10, 10, WaitKind::kTime).wait.has_timeout = true;
  world.Thread(10, 11, WaitKind::kTime).wait.has_timeout = true;
  world.Thread(10, 12, WaitKind::kTime).wait.has_timeout = true;
  world.Thread(10, 13, WaitKind::kNone).state = ThreadState::kRunning;
  world.Signals(10, 14, "work");
  world.Thread(10, 15, WaitKind::kNone).state = ThreadState::kRunning;  // it has just woken
  const ProcessStanding standing = world
                                       .Judge([](SystemSample* first) {
                                         auto& threads = first->processes[1].threads;
                                         threads[1].voluntary_switches = 1;
                                         threads[2].voluntary_switches = 1;
                                         threads[2].cpu_time = -20 * kMillisecond;
                                         threads[4].voluntary_switches = 1;
                                         threads[5].state = ThreadState::kSleeping;
                                         threads[5].wait.has_timeout = true;
                                       })
                                       .standing;
  EXPECT_THAT(standing.tickers, ElementsAre(10, 11, 15));
  EXPECT_THAT(standing.moving, ElementsAre(12, 13, 14));
}

TEST(ProcessStanding, AnEventLoopWithATimerWaitsForTheOutsideToo) {
  World world = Launched();
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kPoll);
  WaitFile file;
  file.kind = FileKind::kSocket, file.listening = true, file.name = "tcp 0.0.0.0:80";
  thread.wait.files = {file}, thread.wait.has_timeout = true;
  const ProcessStanding standing = world.Judge().standing;
  EXPECT_THAT(standing.tickers, ElementsAre(10));
  EXPECT_THAT(standing.outside, ElementsAre(HasSubstr("a connection to tcp 0.0.0.0:80")));
}

TEST(ProcessStanding, WhatIsNotKnownOrHaltedIsSaid) {
  World world = Launched();
  ProcessFacts& secret = world.Process(20, "secret");
  secret.is_hidden = true;
  secret.warnings = {"process 20 may not be looked into"};
  world.Ask({1, 10, 20});
  world.Stopped(10, 10);
  world.Thread(20, 20, WaitKind::kNone);
  world.Thread(10, 11, WaitKind::kOther).system_call_name = "semop";
  const ProcessStanding standing = world.Judge().standing;
  EXPECT_THAT(standing.halted, ElementsAre("10 is stopped"));
  EXPECT_THAT(
      standing.unknown,
      ElementsAre("11 waits for a semaphore of System V: what ends this system call is not known",
                  "20 sleeps: what for may not be looked at"));
  EXPECT_FALSE(standing.complete);
  EXPECT_EQ(standing.hidden, "process 20 may not be looked into");
}

TEST(ProcessStanding, WhatIsOfSystemVMayBeUsedByWhoeverKnowsItsNumber) {
  World world = Launched();
  WaitFile file;
  file.kind = FileKind::kSemaphore, file.others_unknown = true;
  world.Thread(10, 10, WaitKind::kRead, "vault").wait.files = {file};
  EXPECT_THAT(world.Judge().standing.unknown,
              ElementsAre(HasSubstr(": whoever knows its number may use it")));
}

TEST(ProcessStanding, APeerOutsideOfTheTreeIsTheOutsideAndOneInItIsNot) {
  World world = Launched();
  world.Process(30).parent = 2;
  world.Thread(10, 10, WaitKind::kAccept);
  world.Reads(10, 11, {30});
  world.Reads(10, 12, {1});
  world.Thread(30, 30, WaitKind::kAccept);
  EXPECT_THAT(
      world.Judge().standing.outside,
      ElementsAre("10 waits for a connection",
                  "11 waits for data from a pipe (fd 3) written by 30 program, and 30 waits "
                  "for a connection"));
}

// A pool is asked about by the number of who started it, and its workers work.
TEST(ProcessStanding, AChildThatAWaitLedToCountsAsTheTreeDoes) {
  World world;
  world.Process(1, "pool");
  world.Process(20, "helper").parent = 10;
  world.Process(10, "worker").parent = 1;
  world.Process(30, "stranger").parent = 2;
  world.Thread(1, 1, WaitKind::kChild).wait.children = {10};
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
  world.Thread(20, 20, WaitKind::kNone).state = ThreadState::kRunning;
  world.Thread(30, 30, WaitKind::kNone).state = ThreadState::kRunning;
  const ProcessStanding standing = world.Judge().standing;
  EXPECT_THAT(standing.moving, ElementsAre(20));
  EXPECT_TRUE(standing.outside.empty());
}

TEST(ProcessStanding, WhatIsFoundIsToldThereAndADoubtfulFindingLeavesItUnknown) {
  World world = Launched();
  world.Locks(10, 10, "lock", 10);
  const ProcessJudgement judgement = world.Judge();
  EXPECT_TRUE(Only(judgement).IsBad());
  EXPECT_TRUE(judgement.standing.unknown.empty() && judgement.standing.outside.empty());
  World doubtful = Launched();
  WaitFile& file = doubtful.Reads(10, 10, {10}).wait.files[0];
  file.others_unknown = file.others_hidden = true;
  EXPECT_THAT(doubtful.Judge().standing.unknown,
              ElementsAre(HasSubstr("might have the other end")));
}

TEST(ProcessStanding, AHandlerThatWritesItsOwnPipeIsTheOutside) {
  World world = Launched();
  world.Of(10).caught_signals = kTerm;
  world.Reads(10, 10, {10});
  const ProcessJudgement judgement = world.Judge();
  EXPECT_FALSE(judgement.IsBad());
  EXPECT_THAT(judgement.standing.outside,
              ElementsAre("10 waits for data from a pipe (fd 3) written by itself, or for a signal "
                          "that it handles"));
  EXPECT_TRUE(judgement.standing.unknown.empty());
}

TEST(ProcessStanding, AHangAnywhereInTheTreeIsTheTreesHang) {
  World world = Launched();
  world.Thread(10, 10, WaitKind::kAccept);
  world.Locks(10, 11, "lock", 11);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
}

}  // namespace
}  // namespace hangscope

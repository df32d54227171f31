// Sessions of a database server that wait for each other's locks, and for their clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = FindingKind;

// A program with the number 10, and processes of a server.
class Shop {
 public:
  // The session `pid` wants what `holders` have.
  ThreadFacts& Wants(int pid, std::vector<int> holders) {
    ThreadFacts& thread = Session(pid, WaitKind::kServerLock, "active");
    WaitFile file;
    file.kind = FileKind::kServerLock, file.name = "lock of transaction 735 (ShareLock)";
    for (const int holder : holders) file.others.emplace_back(holder, -1);
    thread.wait.files = {file};
    thread.wait.circle_ends_after = kSecond;
    return thread;
  }
  ThreadFacts& Idles(int pid, int client) {
    ThreadFacts& thread = Session(pid, WaitKind::kRead, "idle in transaction");
    thread.wait.files = {Socket(client)};
    return thread;
  }
  ThreadFacts& Asks(int pid, int session) {
    ThreadFacts& thread = world_.Thread(pid, pid, WaitKind::kPoll, "shop");
    thread.wait.files = {Socket(session)};
    return thread;
  }
  World& world() { return world_; }

 private:
  static WaitFile Socket(int other) {
    WaitFile file;
    file.fd = 9, file.kind = FileKind::kSocket, file.name = "unix '/run/s'";
    file.others = {{other, 4}};
    return file;
  }
  ThreadFacts& Session(int pid, WaitKind kind, const char* state) {
    world_.Process(pid, "postgres").session =
        SessionFacts{"PostgreSQL", "app", "shop", "till", state, "UPDATE account"};
    world_.Of(pid).caught_signals = kTerm;
    return world_.Thread(pid, pid, kind, "postgres");
  }
  World world_;
};

Shop OfItself() {
  Shop shop;
  shop.Asks(10, 21);
  shop.Wants(21, {20});
  shop.Idles(20, 10);
  return shop;
}

TEST(ProcessServers, AClientThatWaitsForItsOwnTransactionIsDeadlocked) {
  Shop shop = OfItself();
  const ProcessFinding finding = Only(shop.world().Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20, 21));
  EXPECT_THAT(finding.doubts,
              Contains("PostgreSQL may be told to end what process 21 (postgres) does"));
  EXPECT_THAT(finding.evidence,
              Contains("20 postgres of PostgreSQL: user app, database shop, application till, idle "
                       "in transaction, ran last UPDATE account"));
  const std::vector<std::string> lines = LinesOf(shop.world());
  EXPECT_THAT(
      lines,
      Contains(HasSubstr("for the lock of transaction 735 (ShareLock), held by 20 postgres")));
  EXPECT_THAT(lines, Contains(HasSubstr("for its client 10 program, idle in transaction (fd 9)")));
}

TEST(ProcessServers, AClientThatDoesSomethingElseMayCommit) {
  Shop shop = OfItself();
  shop.world().Thread(10, 11, WaitKind::kTime);
  EXPECT_TRUE(IsSilent(shop.world().Judge()));
}

TEST(ProcessServers, WaitsThatTheServerSoonEndsAreNone) {
  for (const int pid : {20, 21}) {
    Shop shop = OfItself();
    shop.world().Of(pid).threads[0].wait.given_up_after = 30 * kSecond;
    EXPECT_TRUE(IsSilent(shop.world().Judge()));
    shop.world().Of(pid).threads[0].wait.given_up_after = 3600 * kSecond;
    shop.world().Of(pid).threads[0].wait.given_up_by = "lock_timeout";
    const ProcessFinding finding = Only(shop.world().Judge());
    EXPECT_EQ(finding.confidence, Confidence::kLikely);
    EXPECT_THAT(finding.doubts, Contains(HasSubstr("gives up after 1 h 00 m")));
    EXPECT_THAT(finding.doubts, Contains(HasSubstr("(lock_timeout)")));
  }
}

TEST(ProcessServers, ACircleOfItsOwnTheServerBreaks) {
  Shop shop;
  shop.Wants(20, {21});
  shop.Wants(21, {20});
  EXPECT_EQ(Only(shop.world().Judge()).confidence, Confidence::kPossible);
  for (const int pid : {20, 21})
    shop.world().Of(pid).threads[0].wait.circle_ends_after = 600 * kSecond;
  const ProcessFinding finding = Only(shop.world().Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("looks for such a circle 10 m 00 s after")));
}

TEST(ProcessServers, WhatAPreparedTransactionHasSomebodyMayGiveBack) {
  Shop shop = OfItself();
  shop.world().Of(21).threads[0].wait.files[0].outside = true;
  EXPECT_TRUE(IsSilent(shop.world().Judge()));
  shop.world().Of(21).threads[0].wait.files[0].others.clear();
  EXPECT_THAT(shop.world().Judge().standing.outside,
              Contains(HasSubstr("(ShareLock), held by a prepared transaction")));
}

TEST(ProcessServers, OfHoldersThatAreNotAllKnownNothingIsConcluded) {
  Shop shop = OfItself();
  shop.world().Of(21).threads[0].wait.files[0].others_unknown = true;
  EXPECT_TRUE(IsSilent(shop.world().Judge()));
}

TEST(ProcessServers, WhoWaitsForATerminalIsToldAtTheEndOfTheChain) {
  Shop shop = OfItself();
  WaitFile terminal;
  terminal.fd = 0, terminal.kind = FileKind::kTerminal, terminal.name = "/dev/pts/3",
  terminal.outside = true;
  ThreadFacts& psql = shop.world().Thread(30, 30, WaitKind::kRead, "psql");
  psql.wait.files = {terminal};
  shop.world().Of(20).threads[0].wait.files[0].others = {{30, 4}};
  const ProcessJudgement judgement = shop.world().Judge();
  EXPECT_TRUE(IsSilent(judgement));
  EXPECT_THAT(
      judgement.standing.outside,
      ElementsAre(HasSubstr("held by 20 postgres, and 20 postgres waits for its client 30 "
                            "program, idle in transaction (fd 9), and 30 psql waits for ")));
}

TEST(ProcessServers, WhoWaitsForAnIdleSessionMayBeNotifiedThroughIt) {
  Shop shop;
  shop.Asks(10, 20);
  shop.Idles(20, 10);
  EXPECT_EQ(Only(shop.world().Judge()).kind, Kind::kDeadlock);
  shop.world().Of(20).session->state = "idle";
  EXPECT_TRUE(IsSilent(shop.world().Judge()));
}

TEST(ProcessServers, AnIdleSessionHasItsAdvisoryLocksUntilItsClientGivesThemBack) {
  Shop shop = OfItself();
  shop.world().Of(20).session->state = "idle";
  EXPECT_EQ(Only(shop.world().Judge()).kind, Kind::kDeadlock);
}

TEST(ProcessServers, WhoStandsInFrontIsSaidNotToHaveIt) {
  Shop shop = OfItself();
  shop.world().Of(21).threads[0].wait.files[0].others_queue = true;
  EXPECT_EQ(WaitedFor(shop.world().Of(21).threads[0], shop.world().look()),
            "the lock of transaction 735 (ShareLock), which is given first to 20 postgres");
}

// In the midst of its loop it has called itself over D-Bus, and polls for the answer.
ThreadFacts& CallsItself(World* world, int tid) {
  ThreadFacts& thread = world->Thread(10, tid, WaitKind::kPoll);
  thread.wait.of_own_call = true;
  thread.wait.files.resize(1);
  thread.wait.files[0].fd = 7, thread.wait.files[0].kind = FileKind::kEvent;
  return thread;
}

// A thread of GLib, which passes on what comes over the bus.
ThreadFacts& PassesOn(World* world, int tid) {
  ThreadFacts& thread = world->Thread(10, tid, WaitKind::kPoll, "gdbus");
  thread.stack.resize(1);
  thread.stack[0].function = "g_main_loop_run", thread.stack[0].of_system = true;
  thread.wait.files.resize(1);
  thread.wait.files[0].kind = FileKind::kSocket, thread.wait.files[0].outside = true;
  return thread;
}

TEST(ProcessServers, WhoCallsItselfOverABusWaitsForItself) {
  World world;
  CallsItself(&world, 10);
  PassesOn(&world, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary, "deadlock, a thread waits for itself");
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("an answer over D-Bus from itself"));
}

TEST(ProcessServers, AnotherThreadMayAnswerACallOfItsOwnProcess) {
  World naps;
  CallsItself(&naps, 10);
  PassesOn(&naps, 11);
  naps.Thread(10, 12, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(naps.Judge()));
  World reads;
  CallsItself(&reads, 10);
  reads.Thread(10, 12, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(reads.Judge()));
  World serves;  // a loop of its own in another thread
  CallsItself(&serves, 10);
  PassesOn(&serves, 11).name = "clock";
  EXPECT_TRUE(IsSilent(serves.Judge()));
  World hangs;
  CallsItself(&hangs, 10);
  hangs.Locks(10, 12, "clock", 10);
  EXPECT_EQ(Only(hangs.Judge()).kind, FindingKind::kDeadlock);
}

TEST(ProcessServers, ACallWithALimitEndsByItself) {
  World world;
  CallsItself(&world, 10);
  PassesOn(&world, 11).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

}  // namespace
}  // namespace hangscope

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

}  // namespace
}  // namespace hangscope

#include "runtime/postgres/postgres_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fakes/fake_postgres.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Wait = PostgresSession::Wait;

constexpr uint32_t Mask(int mode) { return 1u << mode; }

PostgresSession SessionOf(const FakePostgres& server) {
  std::string warning;
  const auto session = server.Read(&warning);
  EXPECT_EQ(warning, "");
  EXPECT_TRUE(session);
  return session.value_or(PostgresSession{});
}

TEST(PostgresReader, WhoWaitsForATransactionWaitsForWhoeverRunsIt) {
  FakePostgres server;
  server.SetTag(5, 735);
  server.Hold(3, Mask(FakePostgres::kExclusive));
  server.Want(0, FakePostgres::kShare);
  const PostgresSession session = SessionOf(server);
  EXPECT_EQ(session.wait, Wait::kLock);
  EXPECT_EQ(session.user, "app");
  EXPECT_EQ(session.database, "shop");
  EXPECT_EQ(session.application, "till");
  EXPECT_EQ(session.state, "active");
  EXPECT_EQ(session.statement, "UPDATE account SET balance = 0");
  EXPECT_EQ(session.socket, 9);
  ASSERT_TRUE(session.lock);
  EXPECT_EQ(session.lock->name, "lock of transaction 735");
  EXPECT_EQ(session.lock->mode, "ShareLock");
  EXPECT_THAT(session.lock->holders, ElementsAre(103));
  EXPECT_FALSE(session.lock->is_queued || session.lock->has_prepared || session.lock->is_cut);
  EXPECT_EQ(session.deadlock_timeout, kSecond);
  EXPECT_FALSE(session.lock_timeout);
}

TEST(PostgresReader, WhoHasItInAModeThatLeavesRoomIsNoHolder) {
  FakePostgres server;
  server.SetTag(0, 5, 16384);
  server.Hold(1, Mask(1) | Mask(3));  // AccessShareLock, RowExclusiveLock
  server.Hold(2, Mask(1));
  server.Want(0, FakePostgres::kShare);
  EXPECT_THAT(SessionOf(server).lock->holders, ElementsAre(101));
  EXPECT_EQ(SessionOf(server).lock->name, "lock of relation 16384 of database shop");
}

TEST(PostgresReader, WhoStandsInFrontIsWaitedForWhereNobodyHasIt) {
  FakePostgres server;
  server.SetTag(0, 7, 16384);
  server.Hold(1, Mask(1));
  server.Want(2, FakePostgres::kAccessExclusive);
  server.Want(3, 1);
  server.Want(0, 1);
  server.Want(4, FakePostgres::kAccessExclusive);
  const auto lock = *SessionOf(server).lock;
  EXPECT_TRUE(lock.is_queued);
  EXPECT_THAT(lock.holders, ElementsAre(102));
  EXPECT_EQ(lock.name, "lock of relation 16384 of database 7");
}

TEST(PostgresReader, WorkersOfOneQueryDoNotExcludeEachOther) {
  FakePostgres server;
  server.SetTag(0, 5, 16384);
  server.Hold(1, Mask(FakePostgres::kExclusive), 1);
  server.Hold(2, Mask(FakePostgres::kExclusive), 2);
  server.Want(0, FakePostgres::kExclusive, 1);
  EXPECT_THAT(SessionOf(server).lock->holders, ElementsAre(102));
}

TEST(PostgresReader, APreparedTransactionHasNoProcess) {
  FakePostgres server;
  server.SetTag(5, 735);
  server.Hold(FakePostgres::kProcs, Mask(FakePostgres::kExclusive));
  server.Want(0, FakePostgres::kShare);
  EXPECT_TRUE(SessionOf(server).lock->has_prepared);
  EXPECT_THAT(SessionOf(server).lock->holders, IsEmpty());
}

TEST(PostgresReader, LocksHaveTheNamesThatTheServerGivesThem) {
  const auto name = [](uint8_t type, uint32_t a, uint32_t b, uint32_t c, uint16_t d) {
    FakePostgres server;
    server.SetTag(type, a, b, c, d);
    server.Hold(1, Mask(FakePostgres::kExclusive));
    server.Want(0, FakePostgres::kExclusive);
    const auto lock = SessionOf(server).lock;
    return lock ? lock->name : "";
  };
  EXPECT_EQ(name(0, 0, 1262, 0, 0), "lock of relation 1262 of all databases");
  EXPECT_EQ(name(4, 5, 16384, 3, 7), "lock of row (3,7) of relation 16384 of database shop");
  EXPECT_EQ(name(6, 4, 17, 0, 0), "lock of virtual transaction 4/17");
  EXPECT_EQ(name(8, 5, 2615, 2200, 0), "lock of object 2200 of class 2615 of database shop");
  EXPECT_EQ(name(10, 5, 0xffffffff, 0xffffffff, 1), "advisory lock -1 of database shop");
  EXPECT_EQ(name(10, 5, 1, 2, 2), "advisory lock (1, 2) of database shop");
  EXPECT_EQ(name(77, 5, 1, 2, 2), "");
}

TEST(PostgresReader, WhatItWaitsForOtherwiseItsEventTells) {
  FakePostgres server;
  server.SetState(3, "BEGIN");
  server.SetEvent(postgres_layout::kClientRead);
  EXPECT_EQ(SessionOf(server).wait, Wait::kReadClient);
  EXPECT_EQ(SessionOf(server).state, "idle in transaction");
  server.SetEvent(postgres_layout::kClientWrite);
  EXPECT_EQ(SessionOf(server).wait, Wait::kWriteClient);
  server.SetEvent(postgres_layout::kActivityEvents + 3);
  EXPECT_EQ(SessionOf(server).wait, Wait::kWork);
  server.SetEvent(0);
  EXPECT_EQ(SessionOf(server).wait, Wait::kOther);
}

TEST(PostgresReader, LimitsAreThoseThatAreSet) {
  FakePostgres server;
  server.Set<int32_t>("LockTimeout", 3000);
  server.Set<int32_t>("StatementTimeout", -1);
  server.Set<int32_t>("IdleInTransactionSessionTimeout", 60'000);
  EXPECT_EQ(SessionOf(server).lock_timeout, 3 * kSecond);
  EXPECT_FALSE(SessionOf(server).statement_timeout);
  EXPECT_EQ(SessionOf(server).idle_in_transaction_timeout, 60 * kSecond);
}

TEST(PostgresReader, TheProcessThatBeginsTheOthersHasNoSession) {
  FakePostgres server;
  server.Set<uint64_t>("MyProc", 0);
  std::string warning;
  EXPECT_FALSE(server.Read(&warning));
  EXPECT_EQ(warning, "");
}

TEST(PostgresReader, MemoryThatLooksOtherwiseIsNotRead) {
  const auto is_refused = [](const auto& change) {
    FakePostgres server;
    server.SetTag(5, 735);
    server.Hold(3, Mask(FakePostgres::kExclusive));
    server.Want(0, FakePostgres::kShare);
    change(&server);
    std::string warning;
    return !server.Read(&warning) && warning == "its memory does not look as PostgreSQL 15 has it";
  };
  using namespace postgres_layout;
  EXPECT_FALSE(is_refused([](FakePostgres*) {}));
  EXPECT_TRUE(is_refused([](FakePostgres* server) { server->Forget("MyProc"); }));
  EXPECT_TRUE(is_refused([](FakePostgres* server) { server->Forget("ProcGlobal"); }));
  EXPECT_TRUE(is_refused(
      [](FakePostgres* server) { server->Put<int32_t>(server->Proc(0) + kProcPid, 99); }));
  EXPECT_TRUE(is_refused(
      [](FakePostgres* server) { server->Put<int32_t>(server->Proc(0) + kProcNumber, 1); }));
  EXPECT_TRUE(is_refused(
      [](FakePostgres* server) { server->Set<uint64_t>("MyProc", server->Proc(0) + 8); }));
  EXPECT_TRUE(is_refused([](FakePostgres* server) {
    server->Set<uint64_t>("MyProc", server->Proc(FakePostgres::kProcs + 2));
  }));
}

TEST(PostgresReader, AListThatDoesNotEndIsCut) {
  FakePostgres server;
  server.SetTag(5, 735);
  const uint64_t holder = server.Hold(3, Mask(FakePostgres::kExclusive));
  server.Want(0, FakePostgres::kShare);
  server.Put(holder + postgres_layout::kHolderLink + 8, holder + postgres_layout::kHolderLink);
  EXPECT_TRUE(SessionOf(server).lock->is_cut);
  EXPECT_THAT(SessionOf(server).lock->holders, ElementsAre(103));
  server.Put(holder, uint64_t{0x4000});  // of another lock
  EXPECT_TRUE(SessionOf(server).lock->is_cut);
  EXPECT_THAT(SessionOf(server).lock->holders, IsEmpty());
}

TEST(PostgresReader, ALockThatItDoesNotWaitForIsNone) {
  FakePostgres server;
  server.SetTag(5, 735);
  server.Hold(3, Mask(FakePostgres::kExclusive));
  server.Want(0, FakePostgres::kShare);
  server.Put<int32_t>(server.Proc(0) + postgres_layout::kWaitMode, 9);
  EXPECT_EQ(SessionOf(server).wait, Wait::kOther);
  server.Put<int32_t>(server.Proc(0) + postgres_layout::kWaitMode, FakePostgres::kShare);
  server.Put<uint32_t>(server.Proc(0) + postgres_layout::kWaitStatus, 0);  // it was given to it
  EXPECT_EQ(SessionOf(server).wait, Wait::kOther);
  EXPECT_FALSE(SessionOf(server).lock);
}

}  // namespace
}  // namespace hangscope

// Threads of Java, of memory that is laid out as its tables say; and of memory that is not.
#include "runtime/jvm/jvm_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_jvm.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMostFrames = 32;

std::vector<JavaThread> ThreadsOf(FakeJvm& jvm, std::string* warning, size_t most = 100) {
  auto reader = jvm.Open();
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return reader.ok() ? reader.value()->Threads(most, kMostFrames, warning)
                     : std::vector<JavaThread>();
}

// Two that hold one account each and want the other one's.
struct FakeBank {
  FakeBank() {
    account = jvm.AddClass("bank/Account", jvm.object_class().address, {});
    bank = jvm.AddClass("bank/Bank", jvm.object_class().address,
                        {{"static first", "Lbank/Account;"}, {"static count", "I"}});
    transfer = jvm.AddMethod(&bank, "transfer", "Bank.java", 30);
    first = jvm.AddObject(account);
    second = jvm.AddObject(account);
    jvm.Refer(bank.mirror, bank.offsets.at("first"), first);
    one = jvm.AddThread("teller-1", 4711);
    two = jvm.AddThread("teller-2", 4712);
    jvm.AddFrame(&one, transfer, 9);
    jvm.AddFrame(&two, transfer, 3);
    jvm.Pend(one, jvm.AddMonitor(second, two.address));
    jvm.Pend(two, jvm.AddMonitor(first, one.stack + 512));  // a lock that stood on its stack
  }
  FakeJvm jvm;
  FakeJvm::Class account, bank;
  uint64_t transfer = 0, first = 0, second = 0;
  FakeJvm::Thread one, two;
};

TEST(JvmReader, KnowsWhoWaitsForWhoseMonitor) {
  FakeBank bank;
  std::string warning;
  const auto threads = ThreadsOf(bank.jvm, &warning);
  EXPECT_EQ(warning, "");
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_EQ(threads[0].name, "teller-1");
  EXPECT_EQ(threads[0].tid, 4711);
  EXPECT_FALSE(threads[0].is_daemon);
  EXPECT_FALSE(threads[0].is_of_machine);
  EXPECT_EQ(threads[0].wait,
            (JavaWait{JavaWaitKind::kMonitor, bank.second, "monitor of a bank.Account", "", 4712}));
  EXPECT_EQ(threads[1].wait,
            (JavaWait{JavaWaitKind::kMonitor, bank.first, "monitor", "Bank.first", 4711}));
}

TEST(JvmReader, NamesFramesWithTheirLines) {
  FakeBank bank;
  std::string warning;
  auto reader = bank.jvm.Open();
  ASSERT_TRUE(reader.ok());
  const auto threads = reader.value()->Threads(2, kMostFrames, &warning);
  ASSERT_THAT(threads, SizeIs(2));
  ASSERT_THAT(threads[0].frames, SizeIs(1));
  const StackFrame& frame = threads[0].stack[0];
  EXPECT_EQ(frame.function, "Bank.transfer");
  EXPECT_EQ(frame.source, "Bank.java:31");
  EXPECT_EQ(frame.module, "bank.Bank");
  EXPECT_EQ(frame.language, FrameLanguage::kJava);
  EXPECT_FALSE(frame.of_system);
  EXPECT_EQ(threads[1].stack[0].source, "Bank.java:30");
}

TEST(JvmReader, KnowsWhoHasALockOfJavaUtilConcurrent) {
  FakeJvm jvm;
  const uint64_t object = jvm.object_class().address;
  const auto ownable = jvm.AddClass("java/util/concurrent/locks/AbstractOwnableSynchronizer",
                                    object, {{"exclusiveOwnerThread", "Ljava/lang/Thread;"}});
  const auto sync =
      jvm.AddClass("java/util/concurrent/locks/ReentrantLock$NonfairSync", ownable.address, {});
  const auto lock = jvm.AddClass("java/util/concurrent/locks/ReentrantLock", object,
                                 {{"sync", "Ljava/util/concurrent/locks/ReentrantLock$Sync;"}});
  auto unsafe = jvm.AddClass("jdk/internal/misc/Unsafe", object, {});
  auto tables = jvm.AddClass("Tables", object, {{"lock", "Ljava/lang/Object;"}});
  auto waits = jvm.AddThread("waits", 11);
  const auto holds = jvm.AddThread("holds", 12);
  const uint64_t its_sync = jvm.AddObject(sync);
  const uint64_t its_lock = jvm.AddObject(lock);
  const uint64_t holder = jvm.AddObject(tables);
  jvm.Refer(its_sync, ownable.offsets.at("exclusiveOwnerThread"), holds.object);
  jvm.Refer(its_lock, lock.offsets.at("sync"), its_sync);
  jvm.Refer(holder, tables.offsets.at("lock"), its_lock);
  jvm.AddFrame(&waits, jvm.AddMethod(&unsafe, "park", "Unsafe.java", 5), 0);
  jvm.AddFrame(&waits, jvm.AddMethod(&tables, "rebuild", "Tables.java", 7), 0, holder);
  jvm.Park(waits, its_sync);
  std::string warning;
  const auto threads = ThreadsOf(jvm, &warning);
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_THAT(threads[0].frames, SizeIs(2));
  EXPECT_EQ(threads[0].wait,
            (JavaWait{JavaWaitKind::kLock, its_sync, "ReentrantLock", "Tables.lock", 12}));
  EXPECT_EQ(threads[1].wait, JavaWait());
}

// Of who waits for a lock that is held so, and whose first reader, 12, has it so often.
std::pair<JavaWaitKind, int> WaitForReaders(uint32_t holds, uint32_t state) {
  FakeJvm jvm;
  const uint64_t object = jvm.object_class().address;
  const auto ownable = jvm.AddClass("java/util/concurrent/locks/AbstractOwnableSynchronizer",
                                    object, {{"exclusiveOwnerThread", "Ljava/lang/Thread;"}});
  const auto sync =
      jvm.AddClass("java/util/concurrent/locks/ReentrantReadWriteLock$NonfairSync", ownable.address,
                   {{"behind the fields of the class above", "J"},
                    {"firstReader", "Ljava/lang/Thread;"},
                    {"firstReaderHoldCount", "I"},
                    {"state", "I"}});
  auto unsafe = jvm.AddClass("jdk/internal/misc/Unsafe", object, {});
  auto waits = jvm.AddThread("waits", 11);
  const auto reads = jvm.AddThread("reads", 12);
  const uint64_t its_sync = jvm.AddObject(sync);
  jvm.Refer(its_sync, sync.offsets.at("firstReader"), reads.object);
  jvm.Put(its_sync + sync.offsets.at("firstReaderHoldCount"), holds);
  jvm.Put(its_sync + sync.offsets.at("state"), state);
  jvm.AddFrame(&waits, jvm.AddMethod(&unsafe, "park", "Unsafe.java", 5), 0);
  jvm.Park(waits, its_sync);
  std::string warning;
  const JavaWait wait = ThreadsOf(jvm, &warning).at(0).wait;
  return {wait.kind, wait.owner};
}

// The lock records the first reader; others only in their own threads.
TEST(JvmReader, KnowsTheOnlyReaderOfALock) {
  EXPECT_EQ(WaitForReaders(2, 2 << 16), std::pair(JavaWaitKind::kLock, 12));
  EXPECT_EQ(WaitForReaders(1, 2 << 16), std::pair(JavaWaitKind::kReaders, 0)) << "another reads";
  EXPECT_EQ(WaitForReaders(0, 1), std::pair(JavaWaitKind::kReaders, 0)) << "somebody writes";
}

TEST(JvmReader, TellsPoolsAndTheMachinesOwnThreads) {
  FakeJvm jvm;
  auto pool =
      jvm.AddClass("java/util/concurrent/ThreadPoolExecutor", jvm.object_class().address, {});
  auto worker = jvm.AddThread("pool-1-thread-1", 21);
  jvm.AddFrame(&worker, jvm.AddMethod(&pool, "getTask", "ThreadPoolExecutor.java", 9), 0);
  jvm.AddThread("C2 CompilerThread0", 22, true);
  std::string warning;
  const auto threads = ThreadsOf(jvm, &warning);
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_TRUE(threads[0].idles);
  EXPECT_FALSE(threads[0].is_of_machine);
  EXPECT_TRUE(threads[1].is_of_machine);
}

TEST(JvmReader, KnowsThatAMonitorWasLetGoOfUntilItIsNotified) {
  FakeBank bank;
  bank.jvm.Pend(bank.two, 0);
  bank.jvm.WaitOn(bank.two, bank.jvm.AddMonitor(bank.first, bank.one.address));
  std::string warning;
  const auto threads = ThreadsOf(bank.jvm, &warning);
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_EQ(threads[1].wait,
            (JavaWait{JavaWaitKind::kNotify, bank.first, "notify() of", "Bank.first", 0}));
}

TEST(JvmReader, SaysWhatItLeavesOut) {
  FakeBank bank;
  std::string warning;
  EXPECT_THAT(ThreadsOf(bank.jvm, &warning, 1), SizeIs(1));
  EXPECT_EQ(warning, "only the first 1 threads are looked at");
  bank.jvm.PutAt("ThreadsSMRSupport._java_thread_list", uint64_t{8});
  EXPECT_THAT(ThreadsOf(bank.jvm, &warning), IsEmpty());
}

TEST(JvmReader, RefusesMachinesThatItDoesNotKnow) {
  FakeJvm newer;
  newer.PutVersion(25);
  EXPECT_THAT(newer.Open().status().message(), HasSubstr("Java 25 is another version than 17"));
  FakeJvm bare;
  bare.Forget("gHotSpotVMTypes");
  EXPECT_THAT(bare.Open().status().message(), HasSubstr("no tables for debuggers"));
}

TEST(JvmReader, AHookThatTheLibraryMadeItselfIsNoneOfTheProgram) {
  const auto handles = [](const std::vector<const char*>& of) {
    FakeBank bank;
    FakeJvm& jvm = bank.jvm;
    const auto hooks = jvm.AddClass("java/lang/ApplicationShutdownHooks", 0,
                                    {{"static hooks", "Ljava/util/IdentityHashMap;"}});
    const auto map = jvm.AddClass("java/util/IdentityHashMap", 0,
                                  {{"table", "[Ljava/lang/Object;"}, {"size", "I"}});
    const auto array = jvm.AddClass("[Ljava/lang/Object;", 0, {});
    const uint64_t table = jvm.AddObject(array, 16 + 4 * 16);
    jvm.Put<uint32_t>(table + 12, 16);
    for (size_t i = 0; i < of.size(); ++i) {
      const uint64_t hook = jvm.AddObject(jvm.AddClass(of[i], 0, {}));
      jvm.Refer(table, static_cast<uint32_t>(16 + 8 * (3 * i + 1)), hook);
      jvm.Refer(table, static_cast<uint32_t>(16 + 8 * (3 * i + 1) + 4), hook);
    }
    const uint64_t made = jvm.AddObject(map);
    jvm.Refer(made, map.offsets.at("table"), table);
    jvm.Put(made + map.offsets.at("size"), static_cast<uint32_t>(of.size()));
    jvm.Refer(hooks.mirror, hooks.offsets.at("hooks"), made);
    jvm.Load(hooks);
    auto reader = jvm.Open();
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    return reader.ok() && reader.value()->HandlesSignals();
  };
  EXPECT_FALSE(handles({}));
  EXPECT_FALSE(handles({"java/util/logging/LogManager$Cleaner"}));
  EXPECT_TRUE(handles({"app/Saver"}));
  EXPECT_TRUE(handles({"java/util/logging/LogManager$Cleaner", "app/Saver"}));
}

TEST(JvmReader, BearsDamage) {
  FakeBank bank;
  const std::string whole = bank.jvm.image();
  for (size_t at = 0; at < whole.size(); at += 7) {
    bank.jvm.image() = whole;
    bank.jvm.image()[at] = static_cast<char>(whole[at] ^ 0xff);
    std::string warning;
    auto reader = bank.jvm.Open();
    if (!reader.ok()) continue;
    for (const JavaThread& thread : reader.value()->Threads(100, kMostFrames, &warning)) {
      EXPECT_LE(thread.stack.size(), kMostFrames);
    }
  }
}

}  // namespace
}  // namespace hangscope

#include "runtime/jvm/jvm_print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangscope {
namespace {

constexpr size_t kMost = 100;

std::vector<JavaThread> Read(const std::string& text, std::string* warning = nullptr) {
  std::string ignored;
  return PrintedJavaThreads(text).Threads(kMost, kMost, warning == nullptr ? &ignored : warning);
}

// As OpenJDK 17 prints one; what is left out of the line it has, too.
std::string Head(const std::string& name, int nid, const std::string& state,
                 const std::string& daemon = "") {
  char number[16];
  snprintf(number, sizeof number, "0x%x", nid);
  return "\"" + name + "\" #14 " + daemon +
         "prio=5 os_prio=0 cpu=1.83ms elapsed=1.72s tid=0x7f3 nid=" + number +
         " waiting  [0x7fb]\n   java.lang.Thread.State: " + state + "\n";
}

const std::string kBank =
    "2026-11-28 21:53:07\nFull thread dump OpenJDK 64-Bit Server VM:\n\n" +
    Head("teller-1", 101, "BLOCKED (on object monitor)") +
    "\tat com.acme.Bank.transfer(Bank.java:31)\n"
    "\t- waiting to lock <0x000000069ed480d0> (a com.acme.Account)\n"
    "\t- locked <0x000000069ed480b8> (a com.acme.Account)\n"
    "\tat com.acme.Bank$$Lambda$3/0x00007fb2ac000c08.run(Unknown Source)\n"
    "\tat java.lang.Thread.run(java.base@17.0.21.1/Thread.java:840)\n\n"
    "   Locked ownable synchronizers:\n\t- <0x000000069ed47fb0> "
    "(a java.util.concurrent.locks.ReentrantLock$NonfairSync)\n\n" +
    Head("teller-2", 102, "WAITING (parking)") +
    "\tat jdk.internal.misc.Unsafe.park(java.base@17.0.21.1/Native Method)\n"
    "\t- parking to wait for  <0x000000069ed47fb0> "
    "(a java.util.concurrent.locks.ReentrantLock$NonfairSync)\n"
    "\tat com.acme.Bank.transfer(Bank.java:33)\n"
    "\t- locked <0x000000069ed480d0> (a com.acme.Account)\n\n"
    "   Locked ownable synchronizers:\n\t- None\n\n"
    "\"VM Thread\" os_prio=0 cpu=1.39ms elapsed=1.77s tid=0x7fb nid=0x70 runnable\n\n"
    "Found one Java-level deadlock:\n=============================\n\"teller-1\":\n"
    "  waiting to lock monitor 0x00007fb2900031a0\n\"teller-1\":\n"
    "\tat com.acme.Other.method(Other.java:1)\n";

TEST(JvmPrint, SaysWhoHasWhatTheOthersWant) {
  const auto threads = Read(kBank);
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0].name, "teller-1");
  EXPECT_EQ(threads[0].tid, 101);
  EXPECT_EQ(threads[0].wait.kind, JavaWaitKind::kMonitor);
  EXPECT_EQ(threads[0].wait.type, "monitor of a com.acme.Account");
  EXPECT_EQ(threads[0].wait.owner, 102);
  ASSERT_EQ(threads[0].stack.size(), 3u);
  EXPECT_EQ(threads[0].stack[0].function, "Bank.transfer");
  EXPECT_EQ(threads[0].stack[0].source, "Bank.java:31");
  EXPECT_EQ(threads[0].stack[0].module, "com.acme.Bank");
  EXPECT_FALSE(threads[0].stack[0].of_system);
  EXPECT_TRUE(threads[0].stack[1].of_system) << "made for a lambda";
  EXPECT_EQ(threads[0].stack[2].source, "Thread.java:840");
  EXPECT_EQ(threads[1].wait.kind, JavaWaitKind::kLock);
  EXPECT_EQ(threads[1].wait.type, "ReentrantLock");
  EXPECT_EQ(threads[1].wait.owner, 101);
  EXPECT_EQ(threads[1].stack[0].source, "") << "native";
  EXPECT_TRUE(threads[2].is_of_machine);
  EXPECT_FALSE(threads[0].is_of_machine || threads[1].is_of_machine);
}

TEST(JvmPrint, WhoWaitsToBeNotifiedHasLeftTheMonitor) {
  const auto threads = Read(Head("waits", 1, "WAITING (on object monitor)") +
                            "\tat java.lang.Object.wait(Native Method)\n"
                            "\t- waiting on <0x10> (a Mailbox)\n\tat Mailbox.take(Mailbox.java:7)\n"
                            "\t- locked <0x10> (a Mailbox)\n" +
                            Head("notified", 2, "BLOCKED (on object monitor)") +
                            "\tat java.lang.Object.wait(Native Method)\n"
                            "\t- waiting to re-lock in wait() <0x10> (a Mailbox)\n"
                            "\t- locked <0x10> (a Mailbox)\n" +
                            Head("has", 3, "RUNNABLE") +
                            "\tat Mailbox.put(Mailbox.java:9)\n"
                            "\t- locked <0x10> (a Mailbox)\n");
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0].wait.kind, JavaWaitKind::kNotify);
  EXPECT_EQ(threads[0].wait.type, "notify() of a Mailbox");
  EXPECT_EQ(threads[1].wait.kind, JavaWaitKind::kMonitor);
  EXPECT_EQ(threads[1].wait.owner, 3);
  EXPECT_EQ(threads[2].wait, JavaWait());
}

TEST(JvmPrint, WhoInitialisesAClassIsInItsInitialiser) {
  const std::string engine = Head("one", 1, "RUNNABLE") +
                             "\tat Engine.<clinit>(Engine.java:3)\n"
                             "\t- waiting on the Class initialization monitor for Gearbox\n";
  const std::string gearbox = Head("two", 2, "RUNNABLE") +
                              "\tat Gearbox.<clinit>(Gearbox.java:3)\n"
                              "\t- waiting on the Class initialization monitor for Engine\n";
  const auto threads = Read(engine + gearbox);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].wait.kind, JavaWaitKind::kInitializer);
  EXPECT_EQ(threads[0].wait.name, "Gearbox");
  EXPECT_EQ(threads[0].wait.owner, 2);
  EXPECT_EQ(threads[1].wait.owner, 1);
  EXPECT_TRUE(threads[0].is_blocked);
}

TEST(JvmPrint, AWaitWithATimeMayBeOverByTheTimeOfALook) {
  const auto threads =
      Read(Head("naps", 1, "TIMED_WAITING (parking)") +
           "\t- parking to wait for  <0x20> (a java.util.concurrent.CountDownLatch$Sync)\n");
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].wait, JavaWait());
  EXPECT_TRUE(threads[0].is_blocked);
}

TEST(JvmPrint, NumbersAreDecimalFromJava21On) {
  const auto threads =
      Read("\"a \"b\" nid=7 c\" #1 [77] prio=5 os_prio=0 cpu=1ms tid=0x1 nid=77 runnable\n");
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].tid, 77);
  EXPECT_EQ(threads[0].name, "a \"b\" nid=7 c");
}

TEST(JvmPrint, APoolThatStandsByIdles) {
  const std::string parked =
      "\tat jdk.internal.misc.Unsafe.park(Native Method)\n\t- parking to wait for  <0x30> (a "
      "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)\n"
      "\tat java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)\n";
  const auto threads =
      Read(Head("pool-1-thread-1", 1, "WAITING (parking)") + parked +
           "\tat java.util.concurrent.ThreadPoolExecutor.getTask(T.java:1)\n" +
           Head("worker", 2, "WAITING (parking)") + parked + "\tat App.run(App.java:1)\n");
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_TRUE(threads[0].idles);
  EXPECT_FALSE(threads[1].idles);
  EXPECT_EQ(threads[1].wait.kind, JavaWaitKind::kParked);
  EXPECT_EQ(threads[1].wait.type, "LinkedBlockingQueue");
}

TEST(JvmPrint, WhatMakesNoSenseIsPassedOver) {
  std::string warning;
  EXPECT_TRUE(
      Read("Full thread dump\n\"no number\" #1 prio=5\n\tat A.b(A.java:1)\n", &warning).empty());
  EXPECT_EQ(warning, "its machine printed none");
  for (size_t cut = 0; cut < kBank.size(); cut += 3) {
    for (const JavaThread& thread :
         Read(kBank.substr(0, cut) + std::string(1, '\x01') + kBank.substr(cut)))
      EXPECT_GT(thread.tid, 0);
  }
}

}  // namespace
}  // namespace hangscope

// System calls of 32-bit programs and what they mean.
#include "proc/system_call_32.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <cstring>
#include <map>

#include "process/futex_kind.h"
#include "process/system_call.h"

namespace hangscope {
namespace {

ReadMemory Holding(std::map<uint64_t, uint32_t> words) {
  return [words = std::move(words)](uint64_t address, void* into, size_t bytes) {
    for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
      const auto word = words.find(address + at);
      if (word == words.end()) return false;
      std::memcpy(static_cast<char*>(into) + at, &word->second,
                  std::min(sizeof(uint32_t), bytes - at));
    }
    return true;
  };
}

TaskSystemCall CallOf32(int number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                        uint64_t d = 0) {
  TaskSystemCall call;
  call.number = number;
  call.arguments = {a, b, c, d, 0, 0};
  return call;
}

#if defined(__x86_64__)
TEST(SystemCalls32, HaveNumbersOfTheirOwn) {
  const ReadMemory nothing = Holding({});
  const auto number = [&](int of_32) {
    return NativeCallOf32(CallOf32(of_32), nothing).call.number;
  };
  EXPECT_EQ(number(3), SYS_read);
  EXPECT_EQ(number(7), SYS_wait4);
  EXPECT_EQ(number(422), SYS_futex);
  EXPECT_EQ(number(449), 449);
  EXPECT_EQ(number(240), SYS_futex) << "of 64-bit programs this is mq_open";
  EXPECT_EQ(number(20), -1) << "getpid does not wait";
  EXPECT_TRUE(NativeCallOf32(CallOf32(240), nothing).has_short_times);
  EXPECT_FALSE(NativeCallOf32(CallOf32(422), nothing).has_short_times);
}

TEST(SystemCalls32, OfSocketsHaveTheirArgumentsInMemory) {
  constexpr uint64_t kReceive = 10;
  const ReadMemory memory = Holding({{0x1000, 5}, {0x1004, 0x2000}, {0x1008, 16}});
  const TaskSystemCall receive = NativeCallOf32(CallOf32(102, kReceive, 0x1000), memory).call;
  EXPECT_EQ(receive.number, SYS_recvfrom);
  EXPECT_EQ(receive.arguments[0], 5u);
  EXPECT_EQ(ExplainSystemCall(receive, memory).files.at(0).fd, 5);
  EXPECT_EQ(NativeCallOf32(CallOf32(102, kReceive, 0x3000), memory).call.number, -1);
  EXPECT_EQ(NativeCallOf32(CallOf32(102, 99, 0x1000), memory).call.number, -1);
}

TEST(SystemCalls32, WaitForLocksOfFilesWithLongPositions) {
  constexpr uint64_t kSetLock64Wait = 14;
  const ReadMemory nothing = Holding({});
  const TaskSystemCall lock = NativeCallOf32(CallOf32(221, 4, kSetLock64Wait), nothing).call;
  EXPECT_EQ(ExplainSystemCall(lock, nothing).kind, WaitKind::kFileLock);
}
#endif

TEST(Futexes32, AMutexHasItsKindBeforeItsUsers) {
  // lock, count, owner, kind, users
  const ReadMemory memory =
      Holding({{0x1000, 2}, {0x1004, 0}, {0x1008, 4711}, {0x100c, 0}, {0x1010, 1}});
  FutexWord word{0x1000, 2, true, true};
  const auto is_thread = [](int thread) { return thread == 4711; };
  const FutexMeaning meaning = ExplainFutexWord(word, FutexUse::kWait, {}, memory, is_thread);
  EXPECT_EQ(meaning.kind, WaitKind::kMutex);
  EXPECT_EQ(meaning.owner, 4711);
  EXPECT_FALSE(meaning.owner_died);
  word.is_32_bit = false;  // then nobody uses it
  EXPECT_EQ(ExplainFutexWord(word, FutexUse::kWait, {}, memory, is_thread).kind, WaitKind::kFutex);
}

}  // namespace
}  // namespace hangscope

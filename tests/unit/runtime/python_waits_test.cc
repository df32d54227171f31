// What threads of Python wait for and who holds it, from an image of the process's memory that is
// built here as CPython 3.11 lays it out.
#include "runtime/python/python_waits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_python.h"

namespace hangscope {
namespace {

using ::std::string;
using ::testing::StartsWith;

constexpr uint64_t kSemaphore = 0x5000;
// Units 2 to 7 are guarded, with one value below.
const string kWithBlock("\x82\x06\x08\x03", 4);

TEST(PythonHandlers, TheTableSaysHowManyValuesAreWhole) {
  const string table = kWithBlock + string("\x8a\x02\x10\x06", 4);
  EXPECT_EQ(DepthOfHandler(table, 1), std::nullopt);
  EXPECT_EQ(DepthOfHandler(table, 2), 1u);
  EXPECT_EQ(DepthOfHandler(table, 7), 1u);
  EXPECT_EQ(DepthOfHandler(table, 8), std::nullopt);
  EXPECT_EQ(DepthOfHandler(table, 11), 3u);
  EXPECT_EQ(DepthOfHandler(table, 12), std::nullopt);
  EXPECT_EQ(DepthOfHandler(table.substr(0, 6), 11), std::nullopt);  // cut
  EXPECT_EQ(DepthOfHandler("\xff\xff\xff\xff\xff\xff\xff", 1), std::nullopt);
}

class Story {
 public:
  Story() {
    python.MakeTypesWhole();
    lock_type_ = python.WholeType("_thread.lock", FakePython::kHeapType);
    method_type_ = python.WholeType("builtin_function_or_method");
    interpreter_ = python.Interpreter();
  }

  uint64_t Lock(uint64_t semaphore = 0x7000) {
    return python.Object(lock_type_, {semaphore, 0, 1});
  }
  // The bound method that a `with` block keeps.
  uint64_t ExitOf(uint64_t lock, const string& name = "__exit__") {
    const uint64_t text = python.Block(16);
    python.PutText(text, name);
    const uint64_t method = python.Block(16);
    python.Put(method, text);
    return python.Object(method_type_, {method, lock});
  }
  uint64_t Thread(uint64_t tid, uint64_t frame) { return python.Thread(interpreter_, tid, frame); }
  // Of the thread 4711 that waits for `object`.
  PythonWait Explain(uint64_t object) {
    auto reader = python.Open();
    EXPECT_TRUE(reader.ok());
    string stack(64, '\x10');
    std::memcpy(stack.data() + 24, &object, sizeof object);
    PythonWaits waits(*reader);
    return waits.Explain(kSemaphore, stack,
                         reader->FramesOf(FakePython::kPyThread, 0, 0, 64).frames);
  }

  FakePython python;

 private:
  uint64_t lock_type_, method_type_, interpreter_;
};

TEST(PythonWaits, WhoStandsInTheWithBlockOfALockHoldsIt) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  const uint64_t globals = story.python.Dict({{"other", lock + 8}, {"account_b", lock}});
  const auto frame = [&](int64_t unit) {
    return story.python.WholeFrame("transfer", "/srv/bank.py", unit, 0, {{"first", lock}},
                                   {story.ExitOf(lock)}, kWithBlock, globals);
  };
  story.Thread(FakePython::kPyThread, frame(1));  // it is about to enter it itself
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
  story.Thread(4712, frame(4));
  const PythonWait wait = story.Explain(lock);
  EXPECT_EQ(wait.owner, 4712);
  EXPECT_TRUE(wait.owner_by_frames);
  EXPECT_EQ(wait.type, "lock");
  EXPECT_EQ(wait.name, "account_b");
  // Where two seem to, one has given it back by other means.
  story.Thread(4713, frame(4));
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
}

TEST(PythonWaits, AThreadThatTakesALockTwiceHoldsItItself) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  const uint64_t outer = story.python.WholeFrame("put", "/srv/cache.py", 4, 0, {{"lock", lock}},
                                                 {story.ExitOf(lock)}, kWithBlock);
  story.Thread(FakePython::kPyThread,
               story.python.WholeFrame("evict", "/srv/cache.py", 1, outer, {{"lock", lock}},
                                       {story.ExitOf(lock)}, kWithBlock));
  EXPECT_EQ(story.Explain(lock).owner, FakePython::kPyThread);
  EXPECT_THAT(story.Explain(lock).name, StartsWith("lock at 0x"));
}

TEST(PythonWaits, OtherMethodsAndObjectsAreNoLocksThatAreHeld) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  const uint64_t file = story.python.Object(story.python.WholeType("_io.FileIO"), {kSemaphore});
  story.Thread(FakePython::kPyThread, 0);
  story.Thread(4712, story.python.WholeFrame("f", "/srv/bank.py", 4, 0, {},
                                             {story.ExitOf(lock, "acquire")}, kWithBlock));
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
  EXPECT_EQ(story.Explain(file).object, 0u);
  EXPECT_EQ(story.Explain(story.Lock()).object, 0u);  // of another semaphore
}

TEST(PythonWaits, WhatMayHaveBeenGivenBackInItsBlockIsNotHeld) {
  Story story;
  FakePython& python = story.python;
  const uint64_t lock = story.Lock(kSemaphore);
  const auto block = [&](uint64_t tid, const string& name) {
    const uint64_t outer = python.WholeFrame("f", "/srv/bank.py", 4, 0, {{"lock", lock}},
                                             {story.ExitOf(lock)}, kWithBlock);
    python.UseNames(outer, {"work", name});
    return std::pair(outer, story.Thread(tid, outer));
  };
  story.Thread(FakePython::kPyThread, 0);
  block(4712, "release");
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
  const auto [outer, thread] = block(4713, "releases");
  EXPECT_EQ(story.Explain(lock).owner, 4713);
  // An object whose block ends takes the lock again that it had given back.
  const uint64_t type = python.WholeType("Unlocked", FakePython::kHeapType);
  python.Put<int64_t>(type + 288, 16);
  const uint64_t self = python.Object(type, {python.Dict({{"lock", lock}})});
  python.PutInnermost(
      thread, python.WholeFrame("Unlocked.work", "/srv/bank.py", 0, outer, {{"self", self}}));
  EXPECT_EQ(story.Explain(lock).owner, 4713);
  python.PutInnermost(
      thread, python.WholeFrame("Unlocked.__exit__", "/srv/bank.py", 0, outer, {{"self", self}}));
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
}

TEST(PythonWaits, TheLockOfAThreadIsItsEnd) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  story.Thread(FakePython::kPyThread, 0);
  const uint64_t other = story.Thread(4712, 0);
  story.python.Block(64);
  story.python.Put(other + 192,
                   story.python.Object(story.python.WholeType("weakref.ReferenceType"), {lock}));
  EXPECT_EQ(story.Explain(lock).thread, 4712);
  EXPECT_EQ(story.Explain(lock).owner, std::nullopt);
}

// What is found out of all threads is found out once.
TEST(PythonWaits, OfManyThreadsEachWaitReadsLittle) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  for (uint64_t tid = 5000; tid < 5200; ++tid) story.Thread(tid, 0);
  auto reader = story.python.Open();
  ASSERT_TRUE(reader.ok());
  PythonWaits waits(*reader);
  string stack(64, '\x10');
  std::memcpy(stack.data() + 24, &lock, sizeof lock);
  waits.Explain(kSemaphore, stack, {});
  EXPECT_GT(story.python.reads, 200u);
  story.python.reads = 0;
  waits.Explain(kSemaphore, stack, {});
  EXPECT_LT(story.python.reads, 50u);
}

TEST(PythonWaits, AQueueIsNamedRatherThanTheLocksInsideOfIt) {
  Story story;
  const uint64_t waiter = story.Lock(kSemaphore);
  const uint64_t condition =
      story.python.Object(story.python.WholeType("Condition", FakePython::kHeapType), {});
  const uint64_t queue =
      story.python.Object(story.python.WholeType("LifoQueue", FakePython::kHeapType), {});
  const uint64_t globals = story.python.Dict({{"jobs", queue}});
  uint64_t at = story.python.WholeFrame("consume", "/srv/bank.py", 0, 0, {}, {}, "", globals);
  at = story.python.WholeFrame("Queue.get", "/usr/lib/python3.11/queue.py", 0, at,
                               {{"self", queue}});
  at = story.python.WholeFrame("Condition.wait", "/usr/lib/python3.11/threading.py", 0, at,
                               {{"self", condition}});
  story.Thread(FakePython::kPyThread, at);
  const PythonWait wait = story.Explain(waiter);
  EXPECT_TRUE(wait.is_signal);
  EXPECT_EQ(wait.type + " " + wait.name, "queue jobs");
}

TEST(PythonWaits, ElementsOfListsAndAttributesHaveNames) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  const uint64_t other = story.Lock();
  const uint64_t slotted = story.python.WholeType("Account", FakePython::kHeapType);
  const uint64_t member = story.python.Block(40);
  const uint64_t name = story.python.Block(16);
  story.python.PutText(name, "balance_lock");
  story.python.Put(member, name);
  story.python.Put<int32_t>(member + 8, 16);
  story.python.Put<uint64_t>(member + 16, 16);
  story.python.Put<uint64_t>(slotted + 16, 1);
  story.python.Put(slotted + 240, member);
  const uint64_t account = story.python.Object(slotted, {lock});
  const auto name_in = [&](uint64_t globals, uint64_t self) {
    story.Thread(FakePython::kPyThread, story.python.WholeFrame("f", "/srv/bank.py", 0, 0,
                                                                {{"self", self}}, {}, "", globals));
    return story.Explain(lock).name;
  };
  EXPECT_EQ(name_in(story.python.Dict({{"forks", story.python.Tuple({other, lock})}}), other),
            "forks[1]");
  EXPECT_EQ(name_in(story.python.Dict({{"main", account}}), other), "main.balance_lock");
  EXPECT_EQ(name_in(story.python.Dict({}), account),
            fmt::format("balance_lock of Account at {:#x}", account));
}

// Whatever a byte is, reads are bounded, and no holder is told that is no thread.
TEST(PythonWaits, NoByteThatChangesLeadsAstray) {
  Story story;
  const uint64_t lock = story.Lock(kSemaphore);
  const uint64_t globals = story.python.Dict({{"account_b", lock}});
  const auto frame = [&](int64_t unit) {
    return story.python.WholeFrame("transfer", "/srv/bank.py", unit, 0, {{"first", lock}},
                                   {story.ExitOf(lock)}, kWithBlock, globals);
  };
  story.Thread(FakePython::kPyThread, frame(1));
  story.Thread(4712, frame(4));
  size_t changed = 0;
  string& image = story.python.image();
  for (size_t i = 0; i < image.size(); ++i) {
    const char before = image[i];
    for (const int flip : {0x01, 0x10, 0xff}) {
      image[i] = static_cast<char>(before ^ flip);
      auto reader = story.python.Open();
      if (!reader.ok()) continue;
      story.python.reads = 0;
      const PythonWait wait = story.Explain(lock);
      EXPECT_LT(story.python.reads, 50000u);
      if (wait.owner != 4712 || wait.name != "account_b") ++changed;
    }
    image[i] = before;
  }
  EXPECT_GT(changed, 200u);
  EXPECT_EQ(story.Explain(lock).owner, 4712);
}

TEST(PythonPools, AreIdleWhileTheyWaitForTheNextJob) {
  const string folder = "/usr/lib/python3.11/";
  const auto frame = [&](const char* function, const string& file) {
    return StackFrame{0, function, "", file.starts_with('/') ? file : folder + file,
                      FrameLanguage::kPython};
  };
  const StackFrame worker = frame("worker", "multiprocessing/pool.py");
  const StackFrame get = frame("SimpleQueue.get", "multiprocessing/queues.py");
  EXPECT_TRUE(IsIdleInPool({get, worker, frame("work", "/srv/app.py")}));
  EXPECT_TRUE(
      IsIdleInPool({frame("SemLock.__enter__", "multiprocessing/synchronize.py"), get, worker}));
  EXPECT_TRUE(IsIdleInPool({frame("Queue.get", "multiprocessing/queues.py"),
                            frame("_process_worker", "concurrent/futures/process.py")}));
  EXPECT_TRUE(IsIdleInPool({frame("Pool._handle_tasks", "multiprocessing/pool.py")}));
  EXPECT_FALSE(IsIdleInPool({frame("SimpleQueue.put", "multiprocessing/queues.py"), worker}));
  EXPECT_FALSE(IsIdleInPool({get, frame("work", "/srv/app.py"), worker}));  // which runs a job
  EXPECT_FALSE(IsIdleInPool({worker}));
  EXPECT_FALSE(IsIdleInPool({get}));
}

}  // namespace
}  // namespace hangscope

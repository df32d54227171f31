#include "runtime/ruby/ruby_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_ruby.h"

namespace hangscope {
namespace {

using ruby_layout::ThreadStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMostRubyThreads = 16;
constexpr size_t kMostRubyFrames = 8;

std::unique_ptr<RubyReader> OpenRuby(const FakeRuby& ruby) {
  auto reader = ruby.Open();
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return std::move(*reader);
}

// By thread of the system.
std::map<int, RubyThread> RubyThreadsOf(const FakeRuby& ruby) {
  std::string warning;
  std::map<int, RubyThread> threads;
  for (const RubyThread& thread : OpenRuby(ruby)->Threads(kMostRubyThreads, &warning))
    threads[thread.tid] = thread;
  EXPECT_EQ(warning, "");
  return threads;
}

std::vector<RubyFrame> RubyFramesOf(const FakeRuby& ruby, uint64_t thread) {
  const auto reader = OpenRuby(ruby);
  return reader->FramesOf(reader->SitesOf(thread), kMostRubyFrames);
}

TEST(RubyReader, WhoWantsAMutexWaitsForTheThreadThatHasIt) {
  const FakeRubyStory story;
  const auto threads = RubyThreadsOf(story.ruby);
  ASSERT_THAT(threads, SizeIs(2));
  EXPECT_TRUE(threads.at(100).is_main);
  EXPECT_FALSE(threads.at(101).is_main);
  EXPECT_EQ(threads.at(100).wait.kind, RubyWaitKind::kMutex);
  EXPECT_EQ(threads.at(100).wait.type, "Mutex");
  EXPECT_EQ(threads.at(100).wait.thread, story.second);
  EXPECT_EQ(threads.at(101).wait.thread, story.first);
  EXPECT_NE(threads.at(100).wait.object, threads.at(101).wait.object);
}

TEST(RubyReader, AThreadMayHaveManyMutexes) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t owner = ruby.AddThread(101);
  const uint64_t wanted = ruby.Mutex(owner);
  ruby.Mutex(owner);
  ruby.WantMutex(main, wanted);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait.thread, owner);
}

TEST(RubyReader, AMutexThatWasJustGivenBackHasNoOwner) {
  FakeRuby ruby;
  ruby.WantMutex(ruby.AddThread(100, ThreadStatus::kSleepsForever), ruby.Mutex(0));
  const RubyWait wait = RubyThreadsOf(ruby).at(100).wait;
  EXPECT_EQ(wait.kind, RubyWaitKind::kMutex);
  EXPECT_EQ(wait.thread, 0u);
}

TEST(RubyReader, AMonitorIsToldInsteadOfTheMutexInIt) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t owner = ruby.AddThread(101);
  const uint64_t mutex = ruby.Mutex(owner);
  const uint64_t monitor = ruby.Monitor(mutex);
  ruby.CallC(main, monitor);
  ruby.WantMutex(main, mutex);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait,
            (RubyWait{RubyWaitKind::kMutex, monitor, "Monitor", owner, 0}));
}

TEST(RubyReader, AMonitorOfAnotherMutexIsNotTold) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t mutex = ruby.Mutex(main);
  ruby.CallC(main, ruby.Monitor(ruby.Mutex(0)));
  ruby.WantMutex(main, mutex);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait.object, mutex);
}

TEST(RubyReader, WhoPopsAQueueWaitsForIt) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t queue = ruby.Data("sized_queue", ruby.Block(64));
  ruby.CallC(main, queue);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait,
            (RubyWait{RubyWaitKind::kObject, queue, "SizedQueue", 0, 0}));
}

TEST(RubyReader, TheMutexOfAConditionVariableSleepsForIt) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t condition = ruby.Data("condvar", ruby.Block(24));
  ruby.CallC(main, condition);
  ruby.CallC(main, ruby.Mutex(0));
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait,
            (RubyWait{RubyWaitKind::kObject, condition, "ConditionVariable", 0, 0}));
}

// Only what the innermost method of Ruby has called counts.
TEST(RubyReader, AQueueFurtherOutIsNotWaitedFor) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  ruby.CallC(main, ruby.Data("queue", ruby.Block(64)));
  ruby.Call(main, ruby.Method("each", ruby.String("a.rb"), 1, {1}), 0);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait.kind, RubyWaitKind::kWakeup);
}

TEST(RubyReader, WhoJoinsWaitsForTheEndOfAThread) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleepsForever);
  const uint64_t other = ruby.AddThread(101);
  ruby.CallC(main, ruby.Data("VM/thread", other));
  const RubyWait wait = RubyThreadsOf(ruby).at(100).wait;
  EXPECT_EQ(wait.kind, RubyWaitKind::kJoin);
  EXPECT_EQ(wait.thread, other);
}

TEST(RubyReader, WhoWaitsForAChildSaysForWhich) {
  FakeRuby ruby;
  ruby.AddThread(100, ThreadStatus::kSleeps);
  ruby.WaitForChild(ruby.AddThread(101, ThreadStatus::kSleeps), 4711);
  const auto threads = RubyThreadsOf(ruby);
  EXPECT_EQ(threads.at(100).wait.kind, RubyWaitKind::kSleep);
  EXPECT_EQ(threads.at(101).wait.kind, RubyWaitKind::kChildEnd);
  EXPECT_EQ(threads.at(101).wait.child, 4711);
}

TEST(RubyReader, WhoWaitsToRunKnowsWhoRuns) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100);
  const uint64_t other = ruby.AddThread(101, ThreadStatus::kSleepsForever);
  ruby.WaitToRun(other, main);
  const auto threads = RubyThreadsOf(ruby);
  EXPECT_EQ(threads.at(100).wait.kind, RubyWaitKind::kNone);
  EXPECT_EQ(threads.at(101).wait, (RubyWait{RubyWaitKind::kInterpreter, 0, "GVL", main, 0}));
}

TEST(RubyReader, ASystemCallIsNoWaitOfRubys) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100, ThreadStatus::kSleeps);
  ruby.Put<uint64_t>(main + ruby_layout::kThreadRegion, 0x7ff0);
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).wait.kind, RubyWaitKind::kNone);
}

TEST(RubyReader, FramesHaveTheirLines) {
  const FakeRubyStory story;
  EXPECT_THAT(RubyFramesOf(story.ruby, story.first),
              ElementsAre(RubyFrame{"transfer", "/srv/shop/bank.rb", 32, 30}));
}

TEST(RubyReader, EachPositionOfALongMethodHasItsLine) {
  FakeRuby ruby;
  std::vector<int> lines;
  for (int i = 0; i < 1400; ++i) lines.push_back(10 + i * i / 700);
  const uint64_t method = ruby.Method("long", ruby.String("/a.rb"), 9, lines);
  for (const size_t at : {0, 8, 9, 53, 54, 117, 118, 181, 400, 565, 566, 567, 900, 1100, 1399}) {
    const uint64_t thread = ruby.AddThread(100);
    ruby.Call(thread, method, at);
    EXPECT_EQ(RubyFramesOf(ruby, thread).at(0).line, lines[at]) << at;
  }
}

TEST(RubyReader, TimeoutLimitsWhatItCalls) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100);
  const uint64_t other = ruby.AddThread(101);
  const uint64_t path = ruby.String("/usr/lib/ruby/3.1.0/timeout.rb");
  const uint64_t pop = ruby.Method("pop_soon", ruby.String("/srv/a.rb"), 1, {1});
  ruby.Call(main, ruby.Method("block in timeout", path, 80, {90}), 0);
  ruby.Call(other, ruby.Method("timeout", path, 70, {71}), 0);  // without a time
  for (const uint64_t thread : {main, other}) ruby.Call(thread, pop, 0);
  const auto reader = OpenRuby(ruby);
  EXPECT_TRUE(reader->HasTimeLimit(reader->SitesOf(main)));
  EXPECT_FALSE(reader->HasTimeLimit(reader->SitesOf(other)));
}

TEST(RubyReader, ALineThatIsNotKnownIsThatOfTheMethod) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100);
  const uint64_t method =
      ruby.Method("wait_for_a_very_long_time_indeed", ruby.String("/srv/a.rb"), 7, {8});
  ruby.Put<uint64_t>(ruby.BodyOf(method) + ruby_layout::kBodyLineIndex, 0);
  ruby.Call(main, method, 0);
  const auto frames = RubyFramesOf(ruby, main);
  EXPECT_THAT(frames,
              ElementsAre(RubyFrame{"wait_for_a_very_long_time_indeed", "/srv/a.rb", 0, 7}));
  const StackFrame named = RubyReader::Name(frames[0]);
  EXPECT_EQ(named.source, "a.rb:7");
  EXPECT_EQ(named.module, "/srv/a.rb");
  EXPECT_EQ(named.language, FrameLanguage::kRuby);
  EXPECT_FALSE(named.of_system);
}

TEST(RubyReader, FilesOfRubyItselfAreLibraries) {
  for (const char* file : {"<internal:kernel>", "/usr/lib/ruby/3.1.0/monitor.rb",
                           "/var/lib/gems/3.1.0/gems/puma-6.0/lib/puma/server.rb"})
    EXPECT_TRUE(RubyReader::Name({"loop", file, 3, 1}).of_system) << file;
  EXPECT_EQ(RubyReader::Name({"loop", "<internal:kernel>", 3, 1}).source, "<internal:kernel>:3");
}

TEST(RubyReader, HowDeepABlockIsIsNoPartOfItsName) {
  EXPECT_EQ(RubyReader::Name({"block (2 levels) in <main>", "a.rb", 3, 1}).function,
            "block in <main>");
  EXPECT_EQ(RubyReader::Name({"block in take", "a.rb", 3, 1}).function, "block in take");
}

TEST(RubyReader, ThreadsHaveTheNamesThatTheProgramGaveThem) {
  FakeRuby ruby;
  ruby.NameThread(ruby.AddThread(100), "mailer");
  EXPECT_EQ(RubyThreadsOf(ruby).at(100).name, "mailer");
}

TEST(RubyReader, OnlyHandlersOfTheProgramAreHandled) {
  FakeRuby ruby;
  ruby.Trap(SIGHUP, 0x14);  // true: it is ignored
  ruby.Trap(SIGINT, 0x34);  // undefined: it ends the program
  ruby.Trap(SIGUSR1, ruby.Data("proc", ruby.Block(8)));
  EXPECT_EQ(OpenRuby(ruby)->HandledSignals(), uint64_t{1} << (SIGUSR1 - 1));
}

TEST(RubyReader, AnotherVersionIsRefusedByItsName) {
  FakeRuby ruby;
  ruby.SetVersion(3, 3);
  EXPECT_THAT(ruby.Open().status().message(), HasSubstr("Ruby 3.3"));
}

TEST(RubyReader, AListWithoutAnEndIsCutAndSaid) {
  FakeRuby ruby;
  ruby.Tangle(ruby.AddThread(100));
  std::string warning;
  EXPECT_THAT(OpenRuby(ruby)->Threads(kMostRubyThreads, &warning), SizeIs(kMostRubyThreads));
  EXPECT_THAT(warning, HasSubstr("not all"));
}

// As each stack has one, where it begins.
TEST(RubyReader, AFrameOfNothingIsNotShown) {
  FakeRuby ruby;
  const uint64_t main = ruby.AddThread(100);
  const uint64_t method = ruby.Method("<main>", ruby.String("/srv/a.rb"), 0, {1});
  ruby.PushFrame(main, method, 0, ruby_layout::kNil, ruby_layout::kFrameOfNothing);
  EXPECT_THAT(RubyFramesOf(ruby, main), IsEmpty());
}

TEST(RubyReader, AStackThatIsNoneHasNoFrames) {
  using namespace ruby_layout;
  for (const auto& [field, by] : {std::pair(kEcFrame, uint64_t{8}),         // between two frames
                                  std::pair(kEcFrame, ~uint64_t{0} << 20),  // below the stack
                                  std::pair(kEcStackWords, uint64_t{1} << 61)}) {  // around memory
    FakeRubyStory story;
    ASSERT_THAT(RubyFramesOf(story.ruby, story.first), SizeIs(1));
    const uint64_t at = story.ruby.Get<uint64_t>(story.first + kThreadEc) + field;
    story.ruby.Put(at, story.ruby.Get<uint64_t>(at) + by);
    EXPECT_THAT(OpenRuby(story.ruby)->SitesOf(story.first), IsEmpty()) << field << ' ' << by;
  }
}

}  // namespace
}  // namespace hangscope

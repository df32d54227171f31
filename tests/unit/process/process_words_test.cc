// What threads and their places are called.
#include "process/process_words.h"

#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

TEST(ProcessWords, NamesOfTargetsCannotReachTheTerminal) {
  World world;
  ThreadFacts& thread = world.Locks(10, 10, "lock\x1b[2J", 10);
  thread.name = "a\nb";
  EXPECT_EQ(ThreadLabel(thread), "10 a\\nb");
  EXPECT_EQ(WaitedFor(thread, world.look()), "mutex lock\\x1b[2J, which it holds itself");
}

TEST(ProcessWords, WhereAThreadIsIsInItsProgramAndNotInTheLibraryBelow) {
  ThreadFacts thread;
  thread.stack = {{1, "__lll_lock_wait", "", "libc.so.6"},
                  {2, "std::mutex::lock", "std_mutex.h:100", "abba"},
                  {3, "Transfer", "abba.cc:20", "abba"}};
  EXPECT_EQ(FrameText(OwnFrame(thread)), "Transfer  abba.cc:20");
  thread.stack.resize(1);
  EXPECT_EQ(FrameText(OwnFrame(thread)), "__lll_lock_wait  libc.so.6");
  thread.stack.clear();
  EXPECT_EQ(FrameText(OwnFrame(thread)), "");
}

}  // namespace
}  // namespace hangscope

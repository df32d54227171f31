// Programs that may write to the memory of other processes, by their symbols.
#include "process/steps/memory_writers.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

TEST(WritingPrograms, AreThoseThatCallWhatDoesIt) {
  EXPECT_TRUE(CallsWhatWritesElsewhere("/proc/self/exe")) << "hangscope stops threads";
  EXPECT_FALSE(CallsWhatWritesElsewhere(SPINNER));
  EXPECT_FALSE(CallsWhatWritesElsewhere("/etc/passwd"));
  EXPECT_FALSE(CallsWhatWritesElsewhere("/nowhere"));
}

TEST(WritingPrograms, AreLookedIntoOnce) {
  WritingPrograms programs;
  EXPECT_TRUE(programs.Has("/proc/self/exe", "1"));
  EXPECT_TRUE(programs.Has("/nowhere", "1"));
  EXPECT_FALSE(programs.Has("/nowhere", "2"));
}

}  // namespace
}  // namespace hangscope

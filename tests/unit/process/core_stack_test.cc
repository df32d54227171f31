// Whose core dump is read, and why there is none. That one is read: test_first_lines.py.
#include "process/core_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hangscope {
namespace {

using testing::HasSubstr;

std::string WhyNone(const std::string& pattern) {
  return ReadCrashStack(pattern, 4711, 0).status().message();
}

TEST(CoreStack, OnlyCrashesLeaveOne) {
  EXPECT_TRUE(WritesCore(SIGSEGV));
  EXPECT_TRUE(WritesCore(SIGABRT));
  EXPECT_FALSE(WritesCore(SIGTERM));
  EXPECT_FALSE(WritesCore(SIGKILL));
  EXPECT_FALSE(WritesCore(0));
}

TEST(CoreStack, WhereDumpsGoElsewhereThereIsNone) {
  EXPECT_THAT(WhyNone("|/usr/lib/systemd/systemd-coredump %P"),
              HasSubstr("the kernel hands core dumps to a program"));
  EXPECT_THAT(WhyNone("/no/such/folder/core.%p"), HasSubstr("no stack of the crash"));
  EXPECT_THAT(WhyNone("core.%h"), HasSubstr("no stack of the crash"));
  EXPECT_THAT(WhyNone("%"), HasSubstr("no stack of the crash"));
  EXPECT_THAT(WhyNone(""), HasSubstr("no stack of the crash"));
}

TEST(CoreStack, WhatIsNoDumpOfThisProcessIsNotRead) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("hangscope-core-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "core") << "no ELF";
  std::filesystem::copy_file("/proc/self/exe", folder / "core.4711");
  EXPECT_THAT(WhyNone((folder / "core").string()), HasSubstr("no stack of the crash"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hangscope

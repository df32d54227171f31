// Real children.
#include "proc/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace hangscope {
namespace {

std::string ProgramOf(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error).filename();
}

std::optional<ChildExit> WaitFor(ChildProcess& child) {
  for (int i = 0; i < 1000; ++i) {
    if (auto exit = child.Poll()) return exit;
    usleep(10'000);
  }
  return std::nullopt;
}

TEST(ChildProcessTest, WaitsForWhoAttachesBeforeItBecomesTheProgram) {
  ChildOptions options;
  options.command = {"sleep", "0"};
  pid_t attached = 0;
  std::string was;
  options.before_exec = [&](pid_t pid) {
    usleep(50'000);  // time in which it would be gone
    attached = pid;
    was = ProgramOf(pid);
  };
  auto child = StartChild(options);
  ASSERT_TRUE(child.ok()) << child.status().message();
  EXPECT_EQ(attached, (*child)->pid());
  EXPECT_EQ(was, ProgramOf(getpid()));
  const auto exit = WaitFor(**child);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->status, 0);
}

}  // namespace
}  // namespace hangscope

// Real children.
#include "proc/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "proc/proc_folder.h"

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

int ChildrenOf(pid_t parent, bool zombies_only = false) {
  const ProcFolder proc("/proc");
  int children = 0;
  for (const int pid : proc.Processes()) {
    const auto stat = proc.Stat(pid);
    if (stat && stat->parent == parent && (!zombies_only || stat->state == ThreadState::kZombie))
      ++children;
  }
  return children;
}

int ZombiesOf(pid_t parent) { return ChildrenOf(parent, true); }

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

TEST(ChildProcessTest, KeepsTheNumberOfAChildThatHasEnded) {
  ChildOptions options;
  options.command = {"sh", "-c", "(sleep 0.1; exit 1) & exit 3"};
  auto child = StartChild(options);
  ASSERT_TRUE(child.ok()) << child.status().message();
  const pid_t pid = (*child)->pid();
  const auto exit = WaitFor(**child);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->status, 3);
  // Its orphan, too, is collected behind it.
  for (int i = 0; i < 1000 && ChildrenOf(getpid()) > 1; ++i) {
    usleep(10'000);
    (void)(*child)->Poll();
    (void)(*child)->Activity();
  }
  const auto stat = ProcFolder("/proc").Stat(pid);
  ASSERT_TRUE(stat.has_value()) << "another process may have its number now";
  EXPECT_EQ(stat->state, ThreadState::kZombie);
  EXPECT_EQ(stat->parent, getpid());
  EXPECT_EQ(ZombiesOf(getpid()), 1);
  child->reset();
  EXPECT_EQ(ZombiesOf(getpid()), 0);
}

TEST(ChildProcessTest, APipeBetweenTheProcessesIsNoInput) {
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  const int before = dup(STDIN_FILENO);
  const auto waits_for_input = [](const char* script) {
    ChildOptions options;
    options.command = {"sh", "-c", script};
    auto child = StartChild(options);
    EXPECT_TRUE(child.ok()) << child.status().message();
    ChildActivity activity;
    for (int i = 0; i < 1000 && activity.waits_in != "read"; ++i) {
      usleep(10'000);
      activity = (*child)->Activity();
    }
    EXPECT_EQ(activity.waits_in, "read");
    const bool waits = (*child)->WaitsForInput(activity.ids);
    (*child)->SignalDescendants(SIGKILL);
    EXPECT_TRUE(WaitFor(**child));
    return waits;
  };
  dup2(input[0], STDIN_FILENO);
  EXPECT_FALSE(waits_for_input("sleep 1000 | cat"));
  EXPECT_TRUE(waits_for_input("exec cat"));
  dup2(before, STDIN_FILENO);
  close(before), close(input[0]), close(input[1]);
}

}  // namespace
}  // namespace hangscope

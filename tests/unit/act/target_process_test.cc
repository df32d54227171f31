// Whom --on-hang kill ends where hangscope did not start it.
#include "act/target_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace hangscope {
namespace {

// A child that maps `path`, or nothing where that is empty, and waits.
class Child {
 public:
  Child(const std::string& path, int protection, int flags) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const int fd = open(path.c_str(), O_RDWR);
      if (fd >= 0) (void)mmap(nullptr, 4096, protection, flags, fd, 0);
      (void)!write(ready[1], "r", 1);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  // The signal that ends it.
  int Wait() const {
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
    return info.si_status;
  }

 private:
  pid_t pid_ = 0;
};

class TargetProcessTest : public ::testing::Test {
 protected:
  TargetProcessTest() {
    const int fd = mkstemp(path_);
    EXPECT_EQ(ftruncate(fd, 4096), 0);
    close(fd);
  }
  ~TargetProcessTest() override { unlink(path_); }

  Child Writer() const { return {path_, PROT_READ | PROT_WRITE, MAP_SHARED}; }
  Result<std::unique_ptr<TargetProcess>> Find(const std::string& target) {
    return TargetProcess::Find(PosixFileSystem(), target);
  }
  std::string WhyNot(const std::string& target) {
    auto found = Find(target);
    EXPECT_EQ(found.status().code(), Status::Code::kUsage);
    return found.status().message();
  }

  char path_[32] = "/tmp/hangscope-target-XXXXXX";
  const std::string ram_ = "file:";
};

TEST_F(TargetProcessTest, OfAFileItIsWhoeverWritesToItNotWhoLooksOn) {
  const Child reads(path_, PROT_READ, MAP_SHARED);
  const Child copies(path_, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  EXPECT_NE(WhyNot(ram_ + path_).find("no process that may be looked into writes to"),
            std::string::npos);
  const Child writes = Writer();
  auto found = Find(ram_ + path_);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->pid(), writes.pid());
  EXPECT_EQ(Find(path_).value()->pid(), writes.pid());
}

TEST_F(TargetProcessTest, OfTwoWritersNobodyIsChosen) {
  const Child one = Writer();
  const Child other = Writer();
  EXPECT_NE(WhyNot(ram_ + path_).find("not certain"), std::string::npos);
}

TEST_F(TargetProcessTest, ASecondWriterThatCameLaterKeepsItAlive) {
  const Child writes = Writer();
  auto found = Find(ram_ + path_);
  ASSERT_TRUE(found.ok());
  const Child other = Writer();
  EXPECT_FALSE((*found)->End(kSecond).ok());
  EXPECT_FALSE((*found)->was_told());
  EXPECT_EQ(kill(writes.pid(), 0), 0);
}

TEST_F(TargetProcessTest, AProcessIsEndedByItsNumberOnceAndNotAfterItsEnd) {
  const Child child("", 0, 0);
  const std::string target = fmt::format("pid:{}", child.pid());
  auto found = Find(target);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE((*found)->End(kSecond).ok());
  EXPECT_EQ(child.Wait(), SIGTERM);
  EXPECT_FALSE((*found)->IsEnding());
  EXPECT_NE(WhyNot(target).find("is no more"), std::string::npos);  // though nobody collected it
}

TEST_F(TargetProcessTest, OneThatStaysIsKilledAfterAWhile) {
  const auto before = signal(SIGTERM, SIG_IGN);
  const Child child("", 0, 0);
  signal(SIGTERM, before);
  auto found = Find(fmt::format("pid:{}", child.pid()));
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE((*found)->End(kSecond).ok());
  (*found)->Tick(2 * kSecond);
  EXPECT_TRUE((*found)->IsEnding());
  (*found)->Tick(3 * kSecond);
  EXPECT_EQ(child.Wait(), SIGKILL);
}

TEST_F(TargetProcessTest, NeitherHangscopeNorTheFirstProcessNorADeviceIsEnded) {
  EXPECT_NE(WhyNot(fmt::format("pid:{}", getpid())).find("is not ended"), std::string::npos);
  EXPECT_NE(WhyNot("pid:1").find("is not ended"), std::string::npos);
  EXPECT_NE(WhyNot("gdb:localhost:1234").find("no process of this machine"), std::string::npos);
  EXPECT_NE(WhyNot("core:dump").find("a core dump"), std::string::npos);
}

TEST_F(TargetProcessTest, OfSeveralMemoriesEachProcessIsToldOnce) {
  const Child simulator(path_, PROT_READ | PROT_WRITE, MAP_SHARED);
  const Child host("", PROT_READ, MAP_SHARED);
  const std::string file = fmt::format("file:{}", path_);
  auto all = TargetProcesses::Find(
      PosixFileSystem(), {file, file + "@0x10", fmt::format("pid:{}", host.pid()), "core:dump"});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ((*all)->left_alone(),
            std::vector<std::string>{
                "--on-hang kill: 'dump' is a core dump, so there is nothing to end"});
  EXPECT_FALSE((*all)->was_told());
  EXPECT_EQ((*all)->End(kSecond), std::vector<std::string>());
  EXPECT_EQ(simulator.Wait(), SIGTERM);
  EXPECT_EQ(host.Wait(), SIGTERM);
  const std::string names = (*all)->names();
  EXPECT_EQ(std::count(names.begin(), names.end(), ','), 1) << names;
}

TEST_F(TargetProcessTest, OfMemoriesWithoutAProcessItSaysWhy) {
  auto none = TargetProcesses::Find(PosixFileSystem(), {"core:dump", "gdb:localhost:1"});
  EXPECT_EQ(none.status().code(), Status::Code::kUsage);
  EXPECT_EQ(none.status().message(),
            "--on-hang kill: 'dump' is a core dump, so there is nothing to end");
}

}  // namespace
}  // namespace hangscope

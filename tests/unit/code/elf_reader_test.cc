#include "code/elf_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace hangscope {
namespace {

using ::testing::HasSubstr;

Result<std::string> Answer(const std::function<std::string()>& work) {
  return AskSideProcess("test", {}, work);
}

TEST(SideProcess, AnswersWhatItIsAskedEachTime) {
  auto side = SideProcess::Start("test", {}, [count = 0](std::string_view request) mutable {
    return std::string(request) + std::to_string(++count);
  });
  ASSERT_TRUE(side.ok());
  EXPECT_EQ((*side)->Ask("a").value_or(""), "a1");
  EXPECT_EQ((*side)->Ask(std::string(1 << 20, 'b')).value_or("").size(), (1u << 20) + 1);
}

TEST(SideProcess, WhatEndsItEndsNobodyElse) {
  const auto crashed = Answer([]() -> std::string {
    raise(SIGSEGV);
    return "";
  });
  EXPECT_THAT(crashed.status().message(), HasSubstr("ended by signal 11"));
  EXPECT_THAT(Answer([]() -> std::string { _exit(3); }).status().message(), HasSubstr("ended"));
  auto side = SideProcess::Start("test", {}, [](std::string_view) -> std::string { _exit(3); });
  ASSERT_TRUE(side.ok());
  EXPECT_FALSE((*side)->Ask("").ok());
  EXPECT_FALSE((*side)->Ask("").ok());
  EXPECT_FALSE((*side)->status().ok());
}

TEST(SideProcess, KeepsTheFilesItIsGivenAndNoOthers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto kept = AskSideProcess("test", {ends[1]}, [&] {
    return std::string(fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) >= 0 ? "so" : "no");
  });
  EXPECT_EQ(kept.value(), "so");
  close(ends[0]);
  close(ends[1]);
}

TEST(SideProcess, IsKnownAsOursAndLeavesNoZombie) {
  pid_t pid = 0;
  {
    auto side =
        SideProcess::Start("test", {}, [](std::string_view) { return std::to_string(getpid()); });
    ASSERT_TRUE(side.ok());
    pid = std::atoi((*side)->Ask("").value_or("0").c_str());
    EXPECT_TRUE(SideProcess::Is(pid));
    EXPECT_FALSE(SideProcess::Is(getpid()));
  }
  EXPECT_FALSE(SideProcess::Is(pid));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);
}

// Linux shares the CPUs out among sessions: in one of its own it may get nothing for long while
// this one's processes work.
TEST(SideProcess, IsInAGroupOfItsOwnInThisSession) {
  const auto where = Answer([] {
    return std::to_string(getsid(0)) + (getpgrp() == getpid() ? " alone" : " with others");
  });
  EXPECT_EQ(where.value_or(""), std::to_string(getsid(0)) + " alone");
}

// One that gets no CPU ends late; here it ends late for who traces it, too.
TEST(SideProcess, OneThatEndsLateIsNotWaitedForAndCollectedLater) {
  auto side = SideProcess::Start("test", {}, [](std::string_view) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    return std::to_string(getpid());
  });
  ASSERT_TRUE(side.ok());
  const pid_t pid = std::atoi((*side)->Ask("").value_or("0").c_str());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t tracer = fork();
  if (tracer == 0) {
    const char traces = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (write(ends[1], &traces, 1) == 1) sleep(3);
    _exit(0);
  }
  char traces = 'n';
  EXPECT_EQ(read(ends[0], &traces, 1), 1);
  close(ends[0]);
  close(ends[1]);
  SystemClock clock;
  const TimeNs begin = clock.Monotonic();
  side->reset();
  EXPECT_LT(clock.Monotonic() - begin, 2 * kSecond);
  EXPECT_EQ(SideProcess::Is(pid), traces == 'y') << "until it is collected";
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  (void)Answer([] { return std::string(); }).ok();
  EXPECT_FALSE(SideProcess::Is(pid));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);
  if (traces != 'y') GTEST_SKIP() << "no process may trace another here";
}

TEST(ElfReader, KnowsWhatAnImageKnows) {
  auto reader = ElfReader::Open("/proc/self/exe");
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  auto again = ElfReader::Open((*reader)->copy_path());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->xlen(), 64);
  EXPECT_FALSE((*again)->InMemory(UINT64_MAX));
  EXPECT_TRUE((*again)->Locate(UINT64_MAX).function.empty());
  EXPECT_FALSE((*again)->HasChangedOnDisk());
}

TEST(ElfReader, SaysWhatIsNoElf) {
  const std::string path = ::testing::TempDir() + "elf_reader_test." + std::to_string(getpid());
  std::ofstream(path) << "no program";
  EXPECT_THAT(ElfReader::Open(path).status().message(), HasSubstr("is not an ELF file"));
  unlink(path.c_str());
  EXPECT_THAT(ElfReader::Open(path).status().message(), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace hangscope

#include "code/elf_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
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

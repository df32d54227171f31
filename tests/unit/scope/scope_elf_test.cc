#include "scope/scope_elf.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hangscope {
namespace {

TEST(ScopeElf, IsReadAgainOnceItsFileHasChanged) {
  const std::string path = ::testing::TempDir() + "scope_elf_test." + std::to_string(getpid());
  std::filesystem::copy_file("/bin/true", path);
  const auto first = ScopeElf::Read(path);
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_FALSE(first.value().build_id.empty());
  struct stat as_built {};
  ASSERT_EQ(stat(path.c_str(), &as_built), 0);

  // written to, but by its times and its size it is the same
  std::fstream(path, std::ios::in | std::ios::out) << "no program";
  const timespec times[] = {as_built.st_atim, as_built.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(ScopeElf::Read(path).value_or({}).build_id, first.value().build_id);

  const timespec later[] = {{0, UTIME_OMIT}, {as_built.st_mtim.tv_sec + 1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), later, 0), 0);
  EXPECT_FALSE(ScopeElf::Read(path).ok());
  unlink(path.c_str());
}

}  // namespace
}  // namespace hangscope

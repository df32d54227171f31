#include "snapshot/recorded_elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "scope/scope_elf.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;

class RecordedElfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Build("/bin/true");
    manifest_.elf = path_;
    manifest_.elf_id = ProgramId(files_, path_);
    ASSERT_FALSE(manifest_.elf_id.empty());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Build(const std::string& from) {
    std::filesystem::copy_file(from, path_, std::filesystem::copy_options::overwrite_existing);
  }

  FileSystem& files_ = PosixFileSystem();
  const std::string path_ = ::testing::TempDir() + "recorded_elf." + std::to_string(getpid());
  SavedManifest manifest_;
};

TEST_F(RecordedElfTest, IsTakenAsLongAsItIsTheSame) {
  Build("/bin/true");
  EXPECT_EQ(ElfOfSnapshot(files_, manifest_).path, path_);
  EXPECT_EQ(ElfOfSnapshot(files_, manifest_).warning, "");
}

TEST_F(RecordedElfTest, OfAnotherProgramTheNamesAreOthers) {
  Build("/bin/false");
  EXPECT_EQ(ElfOfSnapshot(files_, manifest_).path, "");
  EXPECT_THAT(ElfOfSnapshot(files_, manifest_).warning, HasSubstr("another program than when"));
}

TEST_F(RecordedElfTest, OneThatIsGoneIsSaidToBe) {
  std::filesystem::remove(path_);
  EXPECT_EQ(ElfOfSnapshot(files_, manifest_).path, "");
  EXPECT_THAT(ElfOfSnapshot(files_, manifest_).warning, HasSubstr("is not there any more"));
}

TEST_F(RecordedElfTest, OlderSnapshotsHaveNoId) {
  manifest_.elf_id = "";
  Build("/bin/false");
  EXPECT_EQ(ElfOfSnapshot(files_, manifest_).path, path_);
}

TEST_F(RecordedElfTest, MostSnapshotsHaveNoElf) {
  const RecordedElf none = ElfOfSnapshot(files_, {});
  EXPECT_EQ(none.path + none.warning, "");
}

}  // namespace
}  // namespace hangscope

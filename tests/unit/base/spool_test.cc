// What comes through a pipe becomes a file: of any length, up to what it may have.
#include "base/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    EXPECT_EQ(pipe(pipe_), 0);
    options_.name = "standard input";
    options_.folder = testing::TempDir();
  }
  ~SpoolTest() override {
    if (writer_.joinable()) writer_.join();
    close(pipe_[0]);
    if (fd_ >= 0) close(fd_);
  }
  // Somebody writes this and goes.
  void Send(std::string bytes) {
    writer_ = std::thread([this, bytes = std::move(bytes)] {
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t n = write(pipe_[1], bytes.data() + at, bytes.size() - at);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      close(pipe_[1]);
    });
  }
  Status Spool() {
    Status status;
    fd_ = SpoolPipe(pipe_[0], options_, &status);
    return status;
  }
  std::string Spooled() {
    FilesWithOneMore files(PosixFileSystem(), "-", fd_);
    return ReadWholeFile(files, "-").value_or("cannot be read");
  }

  int pipe_[2] = {-1, -1};
  int fd_ = -1;
  SpoolOptions options_;
  std::thread writer_;
};

TEST_F(SpoolTest, KeepsAllBytesInAFileWithoutAName) {
  std::string bytes(3'000'001, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  Send(bytes);
  ASSERT_TRUE(Spool().ok());
  EXPECT_TRUE(Spooled() == bytes);
  struct stat info {};
  ASSERT_EQ(fstat(fd_, &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(info.st_mode & 077u, 0u) << "it is this user's alone";
}

TEST_F(SpoolTest, RefusesMoreThanItMayTake) {
  options_.most_bytes = 64 << 10;
  Send(std::string((64 << 10) + 1, 'x'));
  EXPECT_THAT(Spool().message(), AllOf(HasSubstr("'standard input' has more than 64.0 KiB"),
                                       HasSubstr("write it to a file"), HasSubstr("TMPDIR")));
  EXPECT_EQ(fd_, -1);
}

TEST_F(SpoolTest, TakesAllThatItMayTake) {
  options_.most_bytes = 64 << 10;
  Send(std::string(64 << 10, 'x'));
  EXPECT_TRUE(Spool().ok());
  EXPECT_EQ(Spooled().size(), size_t{64} << 10);
}

// The writer is still there, and says nothing.
TEST_F(SpoolTest, EndsWhenItIsAskedTo) {
  ASSERT_EQ(write(pipe_[1], "so far", 6), 6);
  uint64_t seen = 0;
  options_.go_on = [&](uint64_t bytes) {
    seen = bytes;
    return bytes < 6;
  };
  ASSERT_TRUE(Spool().ok());
  EXPECT_EQ(seen, 6u);
  EXPECT_EQ(Spooled(), "so far");
  close(pipe_[1]);
}

TEST_F(SpoolTest, TellsOfAFolderThatIsNotThere) {
  options_.folder = "/none/such";
  Send("x");
  EXPECT_THAT(Spool().message(), HasSubstr("/none/such"));
}

TEST_F(SpoolTest, ShowsTheOtherFilesToo) {
  Send("x");
  ASSERT_TRUE(Spool().ok());
  FilesWithOneMore files(PosixFileSystem(), "-", fd_);
  EXPECT_TRUE(files.Exists("-"));
  EXPECT_FALSE(files.IsFolder("-"));
  EXPECT_FALSE(files.IsDevice("-"));
  EXPECT_TRUE(files.Exists("/proc/self/stat"));
  EXPECT_TRUE(files.IsFolder("/proc"));
  EXPECT_FALSE(files.Exists("/none/such"));
}

TEST(CompressorOf, KnowsItByTheFirstBytes) {
  const std::string path = testing::TempDir() + "/compressed";
  const auto of = [&path](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return CompressorOf(PosixFileSystem(), path);
  };
  EXPECT_EQ(of("\x1f\x8b\x08 and more"), "gzip");
  EXPECT_EQ(of("\x28\xb5\x2f\xfd and more"), "zstd");
  EXPECT_EQ(of(std::string("\xfd\x37zXZ\0", 6) + "and more"), "xz");
  EXPECT_EQ(of("BZh91AY"), "bzip2");
  EXPECT_EQ(of("PERFILE2"), "");
  EXPECT_EQ(of(""), "");
  std::filesystem::remove(path);
  EXPECT_EQ(CompressorOf(PosixFileSystem(), path), "");
}

}  // namespace
}  // namespace hangscope

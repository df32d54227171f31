#include "proc/ipc/tcp_counts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "proc/open_files.h"

namespace hangscope {
namespace {

// A connection of this process with itself.
class OwnConnection : public testing::Test {
 protected:
  void SetUp() override {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), size), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&at), size), 0);
    server_ = accept(listener, nullptr, nullptr);
    close(listener);
  }
  void TearDown() override {
    close(client_);
    close(server_);
  }

  static std::string NameOf(int fd) {
    sockaddr_in at = {};
    socklen_t size = sizeof at;
    getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    return fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
  }
  static uint64_t InodeOf(int fd) {
    struct stat about = {};
    fstat(fd, &about);
    return about.st_ino;
  }
  WaitFile Described() const {
    const ProcFolder proc("/proc");
    return OpenFiles(proc).Describe(getpid(), client_, true);
  }

  int client_ = -1, server_ = -1;
};

TEST_F(OwnConnection, CountsTheBytesThatCameInAll) {
  const std::string client = NameOf(client_), server = NameOf(server_);
  EXPECT_EQ(BytesReceived(server, client, InodeOf(server_)), 0u);
  ASSERT_EQ(write(client_, "GET /", 5), 5);
  EXPECT_EQ(BytesReceived(server, client, InodeOf(server_)), 5u);
  char byte = 0;
  ASSERT_EQ(read(server_, &byte, 1), 1);
  EXPECT_EQ(BytesReceived(server, client, InodeOf(server_)), 5u) << "read or not";
  EXPECT_FALSE(BytesReceived(server, client, InodeOf(client_))) << "another socket";
  EXPECT_FALSE(BytesReceived(server, "127.0.0.1:x", InodeOf(server_)));
  EXPECT_FALSE(BytesReceived(server, "[::1]:1", InodeOf(server_)));
}

TEST_F(OwnConnection, ARequestIsUnreadUntilSomeOfItIsRead) {
  EXPECT_FALSE(Described().unread) << "nothing has come";
  ASSERT_EQ(write(client_, "GET /", 5), 5);
  EXPECT_TRUE(Described().unread);
  char byte = 0;
  ASSERT_EQ(read(server_, &byte, 1), 1);
  EXPECT_FALSE(Described().unread);
}

}  // namespace
}  // namespace hangscope

#include "proc/java_attach.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace hangscope {
namespace {

using ::testing::HasSubstr;

// A child that answers as a machine of Java does, once it gets SIGQUIT; `answer` empty: it keeps
// silent.
class FakeMachine {
 public:
  explicit FakeMachine(const std::string& answer, bool handles = true) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) Serve(answer, handles, ready[1]);
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~FakeMachine() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    unlink(Path("java").c_str());
    unlink(Path("attach").c_str());
  }
  int pid() const { return pid_; }
  std::string Path(const char* of) const { return fmt::format("/tmp/.{}_pid{}", of, pid_); }

 private:
  [[noreturn]] static void Serve(const std::string& answer, bool handles, int ready) {
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGQUIT);
    if (handles) {
      signal(SIGQUIT, [](int) {});
      sigprocmask(SIG_BLOCK, &quit, nullptr);
    }
    if (write(ready, "r", 1) != 1) _exit(1);
    int which = 0;
    if (!handles) pause();
    sigwait(&quit, &which);
    const std::string attach = fmt::format("/tmp/.attach_pid{}", getpid());
    if (access(attach.c_str(), F_OK) != 0) _exit(2);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/tmp/.java_pid{}", getpid());
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(3);
    if (listen(listener, 1) != 0) _exit(4);
    for (;;) {
      const int fd = accept(listener, nullptr, nullptr);
      char request[64] = {};
      const ssize_t got = recv(fd, request, sizeof request, 0);
      const bool is_known =
          got == 18 && std::string(request, 18) == std::string("1\0threaddump\0-l\0\0\0", 18);
      if (answer.empty()) pause();
      const std::string bytes = is_known ? answer : "1\n";
      if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) _exit(5);
      close(fd);
    }
  }
  pid_t pid_ = 0;
};

TEST(JavaAttach, AMachineIsAskedOverItsSocketWhichItOpensOnce) {
  const FakeMachine machine("0\n\"main\" #1 nid=0x1\n");
  for (int times = 0; times < 2; ++times) {
    const auto text = AskJavaThreads(machine.pid());
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(text.value(), "\"main\" #1 nid=0x1\n");
  }
  EXPECT_NE(access(machine.Path("attach").c_str(), F_OK), 0) << "what was made for it is left";
}

TEST(JavaAttach, WhoDoesNotHandleTheSignalIsNotSentIt) {
  const FakeMachine machine("0\n", false);
  const auto text = AskJavaThreads(machine.pid());
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), HasSubstr("does not handle SIGQUIT"));
  EXPECT_EQ(waitpid(machine.pid(), nullptr, WNOHANG), 0) << "it runs no more";
}

TEST(JavaAttach, WhoDoesNotAnswerIsGivenUp) {
  const FakeMachine machine("");
  JavaAttachTimes times;
  times.answers = kSecond / 5;
  const auto text = AskJavaThreads(machine.pid(), times);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), HasSubstr("did not answer"));
}

TEST(JavaAttach, ARefusalIsTold) {
  const FakeMachine machine("100\nno\n");
  const auto text = AskJavaThreads(machine.pid());
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), HasSubstr("refused"));
}

}  // namespace
}  // namespace hangscope

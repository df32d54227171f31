// Which processes count as ended.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "target/process_target.h"

namespace hangscope {
namespace {

// A child that runs `what` and is not waited for before the test's end.
class Child {
 public:
  template <typename What>
  explicit Child(What what) : pid_(fork()) {
    if (pid_ == 0) {
      what();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  void UntilZombie() const {
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  const pid_t pid_;
};

TEST(LifeOfProcess, AZombieIsDeadAndWhatRunsIsNot) {
  const Child runs([] { pause(); });
  EXPECT_EQ(LifeOfProcess(runs.pid()), Life::kLive);
  const Child ends([] {});
  ends.UntilZombie();
  ASSERT_EQ(kill(ends.pid(), 0), 0);  // its number is taken
  EXPECT_EQ(LifeOfProcess(ends.pid()), Life::kDead);
}

TEST(LifeOfProcess, OneWhoseFirstThreadHasEndedLives) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const Child child([&] {
    const pid_t first = getpid();
    std::thread([&ready, first] {
      // Until the first thread is a zombie.
      char state = 'R';
      while (state != 'Z') {
        FILE* const stat =
            fopen(("/proc/self/task/" + std::to_string(first) + "/stat").c_str(), "r");
        if (stat == nullptr || fscanf(stat, "%*d %*s %c", &state) != 1) state = 'R';
        if (stat != nullptr) fclose(stat);
        usleep(1000);
      }
      (void)!write(ready[1], "r", 1);
      pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread
  });
  close(ready[1]);  // a child that fails ends the read
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(LifeOfProcess(child.pid()), Life::kLive);
  close(ready[0]);
}

TEST(LifeOfProcess, ANumberThatNobodyHasIsDead) {
  EXPECT_EQ(LifeOfProcess(999999999), Life::kDead);
}

}  // namespace
}  // namespace hangscope

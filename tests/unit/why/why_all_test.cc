// hangscope why --all-hung with looks that were written down.
#include "why/why_all.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fakes/fake_clock.h"
#include "fakes/fake_process_inspector.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ProcessFacts Sleeper(int pid, const char* name, WaitKind kind) {
  ProcessFacts process;
  process.pid = pid, process.name = name, process.state = ThreadState::kSleeping;
  process.command = std::string("/usr/bin/") + name;
  ThreadFacts thread;
  thread.pid = thread.tid = pid, thread.name = name, thread.state = ThreadState::kSleeping;
  thread.system_call = 202, thread.wait.kind = kind;
  process.threads.push_back(thread);
  return process;
}

ProcessFacts Locked(int pid) {
  ProcessFacts process = Sleeper(pid, "locked", WaitKind::kMutex);
  process.threads[0].wait.owner = pid, process.threads[0].wait.variable = "lock";
  return process;
}

class WhyAll : public ::testing::Test {
 protected:
  WhyAll()
      : root_(std::filesystem::temp_directory_path() /
              ("hangscope-why-all-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_);
    std::filesystem::create_symlink(std::to_string(getpid()), root_ / "self");
  }
  ~WhyAll() override { std::filesystem::remove_all(root_); }

  void Put(ProcessFacts process) {
    const auto folder = root_ / std::to_string(process.pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat")
        << process.pid << " (x) S 1 7 7 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 9\n";
    all_.processes.push_back(process);
    inspectors_[process.pid].processes.push_back(std::move(process));
  }
  // Of the process that is asked, and those that its waits lead to.
  void LeadsTo(int pid, ProcessFacts other) {
    inspectors_[pid].processes.push_back(std::move(other));
  }
  Result<WhyReport> Ask() {
    WhyAllOptions options;
    options.columns = 120;
    return AskWhyAllHung(
        clock_, ProcFolder(root_.string()),
        [this] { return std::unique_ptr<ProcessInspector>(std::make_unique<Machine>(this)); },
        options);
  }

  std::vector<int> asked_;

 private:
  // Two looks at all, then one at each that is asked for.
  struct Machine final : ProcessInspector {
    explicit Machine(WhyAll* its_test) : test(its_test) {}
    Result<SystemSample> Inspect(int pid, const InspectOptions& options) override {
      if (!options.also.empty() || !options.stacks) {
        EXPECT_FALSE(options.stop);
        return test->all_;
      }
      test->asked_.push_back(pid);
      return test->inspectors_[pid];
    }
    WhyAll* const test;
  };

  const std::filesystem::path root_;
  FakeClock clock_;
  SystemSample all_;
  std::map<int, SystemSample> inspectors_;
};

TEST_F(WhyAll, WhoWaitsForTheOutsideIsNotAskedAgain) {
  Put(Sleeper(10, "server", WaitKind::kAccept));
  Put(Locked(20));
  const auto report = Ask();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(asked_, std::vector<int>{20});
  EXPECT_TRUE(report->is_bad);
  EXPECT_THAT(report->text, StartsWith("HANG: 1 hang in 2 processes\n"
                                       "HANG: deadlock, a thread waits for itself (certain)\n"));
  EXPECT_THAT(report->text, HasSubstr("  in process 20 (locked): /usr/bin/locked; hangscope why 20 "
                                      "shows the stacks\n"));
}

TEST_F(WhyAll, WhereNobodyHangsTheCountSaysSo) {
  Put(Sleeper(10, "server", WaitKind::kAccept));
  const auto report = Ask();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->is_bad);
  EXPECT_EQ(report->text, "no hang found in 1 process\n");
}

TEST_F(WhyAll, OneThatOthersWaitForIsToldOnce) {
  ProcessFacts make = Sleeper(10, "make", WaitKind::kChild);
  make.threads[0].wait.children = {20};
  Put(make);
  Put(Locked(20));
  LeadsTo(10, Locked(20));
  const auto report = Ask();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(asked_, (std::vector<int>{10, 20}));
  EXPECT_THAT(report->text, StartsWith("HANG: 1 hang in 2 processes\n"));
  EXPECT_EQ(report->text.find("in process 10"), std::string::npos);
}

TEST_F(WhyAll, WhatIsStoppedOrHiddenIsCountedAndNoHang) {
  ProcessFacts stopped = Sleeper(10, "vim", WaitKind::kNone);
  stopped.state = stopped.threads[0].state = ThreadState::kStopped;
  Put(stopped);
  ProcessFacts hidden = Sleeper(20, "secret", WaitKind::kNone);
  hidden.is_hidden = true;
  Put(hidden);
  const auto report = Ask();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->is_bad);
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(report->text,
            "no hang found in 2 processes\n"
            "1 is stopped, by a signal or a debugger: process 10 (vim)\n"
            "1 process may not be looked into; hangscope why 20 says what grants it\n");
}

}  // namespace
}  // namespace hangscope

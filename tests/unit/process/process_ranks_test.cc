// Ranks of an MPI job that poll for what others send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

// Ranks 0, 1, ... of processes 10, 11, ..., in two looks: all of them in MPI_Recv.
class Job {
 public:
  explicit Job(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int pid = 10 + rank;
      world_.Process(pid, "job").rank = RankFacts{rank, {}, false, 7};
      for (int other = 0; other < ranks; ++other) {
        if (other != rank) world_.Of(pid).rank->others.emplace_back(other, 10 + other);
      }
      ThreadFacts& thread = world_.Thread(pid, pid, WaitKind::kRanks);
      thread.state = ThreadState::kRunning, thread.system_call = -1;
      thread.wait.object_type = "MPI_Recv", thread.cpu_time = kSecond;
    }
  }
  ThreadFacts& rank(int number) { return world_.Of(10 + number).threads[0]; }
  World& world() { return world_; }
  ProcessJudgement Judge(const std::function<void(SystemSample*)>& otherwise = nullptr) const {
    return world_.Judge([&](SystemSample* first) {
      for (ProcessFacts& process : first->processes) process.threads[0].cpu_time = kSecond / 2;
      if (otherwise) otherwise(first);
    });
  }

 private:
  World world_;
};

TEST(ProcessRanks, WhoAllWaitForEachOtherAreDeadlocked) {
  const ProcessFinding finding = Only(Job(2).Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(10, 11));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("no message has passed in between")));
  EXPECT_EQ(DoesWhat(Job(2).rank(0), Job(2).world().look()), "polls for rank 1, in MPI_Recv");
}

TEST(ProcessRanks, OneThatComputesOrSleepsMaySendSomething) {
  for (const ThreadState state : {ThreadState::kRunning, ThreadState::kSleeping}) {
    Job job(3);
    job.rank(2).state = state;
    job.rank(2).wait = {};
    job.rank(2).wait.kind = state == ThreadState::kRunning ? WaitKind::kNone : WaitKind::kTime;
    EXPECT_TRUE(IsSilent(job.Judge()));
  }
}

TEST(ProcessRanks, WhereAMessageHasPassedNobodyIsStuck) {
  const auto second = [](SystemSample* look) -> ThreadFacts& {
    return look->processes[1].threads[0];
  };
  const std::function<void(SystemSample*)> cases[] = {
      [&](SystemSample* look) { second(look).wait.address = 0x2000; },
      [&](SystemSample* look) { second(look).wait.object_type = "MPI_Barrier"; },
      [&](SystemSample* look) { second(look).wait = {}; },
      [&](SystemSample* look) { second(look).cpu_time = kSecond; },
  };
  for (const auto& change : cases) EXPECT_TRUE(IsSilent(Job(2).Judge(change)));
}

TEST(ProcessRanks, OneMayNapBetweenTwoLooksForMessages) {
  Job job(2);
  ThreadFacts& naps = job.rank(1);
  naps.state = ThreadState::kSleeping, naps.wait.has_timeout = true;
  const auto judge = [&](uint64_t times) {
    return job.Judge([times](SystemSample* first) {
      ThreadFacts& before = first->processes[1].threads[0];
      before.cpu_time = kSecond, before.voluntary_switches -= times;
    });
  };
  naps.voluntary_switches = 2000;
  EXPECT_EQ(Only(judge(1000)).kind, Kind::kDeadlock);
  EXPECT_TRUE(IsSilent(judge(3)));
}

TEST(ProcessRanks, WhereNotAllRanksAreKnownNothingIs) {
  Job job(2);
  job.world().Of(10).rank->others_unknown = true;
  EXPECT_TRUE(IsSilent(job.Judge()));
}

TEST(ProcessRanks, ThreadsOfTheLibraryDoNotCountButOthersDo) {
  Job job(2);
  ThreadFacts& helper = job.world().Thread(10, 110, WaitKind::kPoll);
  helper.stack = {{1, "epoll_wait", "", "libc.so.6", FrameLanguage::kNative, true}};
  EXPECT_EQ(Only(job.Judge()).kind, Kind::kDeadlock);
  job.world().Of(10).threads[1].wait.kind = WaitKind::kTime;
  EXPECT_TRUE(IsSilent(job.Judge()));
  job.world().Of(10).threads[1].wait.kind = WaitKind::kPoll;
  job.world().Of(10).threads[1].stack.push_back(
      {2, "Work", "job.c:7", "job", FrameLanguage::kNative, false});
  EXPECT_TRUE(IsSilent(job.Judge()));
}

}  // namespace
}  // namespace hangscope

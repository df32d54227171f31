// Semaphores and message queues: of System V, whose holders nobody records, and of POSIX.
#include "proc/ipc/system_v.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using Kind = FindingKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ThreadFacts& Takes(World* world, int pid, const char* name, int last) {
  ThreadFacts& thread = world->Thread(pid, pid, WaitKind::kRead, "taker");
  WaitFile file;
  file.kind = FileKind::kSemaphore, file.name = name, file.is_public = true;
  if (last != 0) file.others = {{last, -1}};
  file.others_unknown = last == 0;
  thread.wait.files = {file};
  return thread;
}

TEST(SystemV, TwoSemaphoresThatTheOtherTookLastAreADeadlock) {
  World world;
  Takes(&world, 10, "System V semaphore 0 of set 3", 20);
  Takes(&world, 20, "System V semaphore 1 of set 3", 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(
      LinesOf(world),
      ElementsAre(HasSubstr("for System V semaphore 0 of set 3, last taken by 20 program"),
                  HasSubstr("for System V semaphore 1 of set 3, last taken by 10 program")));
}

TEST(SystemV, WhoTookLastNeedNotBeWhoGives) {
  World world;
  Takes(&world, 10, "System V semaphore 0 of set 3", 20);
  Takes(&world, 20, "System V semaphore 0 of set 3", 0);
  EXPECT_TRUE(IsSilent(world.Judge()));
  // A parent that made the set waits for its workers.
  World parent;
  Takes(&parent, 10, "System V semaphore 0 of set 3", 20);
  parent.Thread(20, 20, WaitKind::kChild).wait.children = {10};
  parent.Ask({20, 10});
  EXPECT_TRUE(IsSilent(parent.Judge()));
  // One that is stopped took last.
  World stopped;
  Takes(&stopped, 10, "System V semaphore 0 of set 3", 20);
  stopped.Stopped(20, 20);
  EXPECT_TRUE(IsSilent(stopped.Judge()));
}

TEST(SystemV, QueuesThatOthersMayUseAreLessSure) {
  const auto confidence = [](bool unsure) {
    World world;
    for (const int pid : {10, 20}) {
      WaitFile& file = Takes(&world, pid, "System V message queue 3", 30 - pid).wait.files[0];
      file.kind = FileKind::kQueue, file.others_unsure = unsure;
    }
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(confidence(false), Confidence::kLikely);
  EXPECT_EQ(confidence(true), Confidence::kPossible);
}

TEST(SystemV, QueuesAreListedWithWhoUsedThemLast) {
  const auto queues = ParseMessageQueues(
      "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid\n"
      "         0          2   600           0          0 12808 12812     0     0     0     0\n"
      " 305419896          7   666          12          3     0     0     0     0     0     0\n"
      "nonsense\n");
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].id, 2);
  EXPECT_EQ(queues[0].key, 0);
  EXPECT_EQ(queues[0].last_sender, 12808);
  EXPECT_EQ(queues[0].last_receiver, 12812);
  EXPECT_EQ(queues[1].key, 305419896);
}

// A /proc of 10, its child 20, and 30, a stranger, with a queue that 10 has made without a key.
class OwnQueue : public ::testing::Test {
 protected:
  OwnQueue() {
    PutLink("self/ns/ipc", "ipc:[1]");
    PutProcess(10, 1);
    PutProcess(20, 10);
    PutProcess(30, 1);
  }
  ~OwnQueue() override { std::filesystem::remove_all(root_); }

  // What 10 waits for.
  WaitFile UsedBy(int last_sender, int last_receiver) {
    std::filesystem::create_directories(root_ / "sysvipc");
    std::ofstream(root_ / "sysvipc/msg")
        << fmt::format("0 2 600 12 1 {} {} 0 0 0 0\n", last_sender, last_receiver);
    return DescribeMessageQueue(ProcFolder(root_.string()), 10, 2, true);
  }

 private:
  void PutProcess(int pid, int parent) {
    const std::string folder = std::to_string(pid);
    PutLink(folder + "/ns/ipc", "ipc:[1]");
    PutLink(folder + "/exe", pid == 30 ? "/bin/sh" : "/bin/program");
    std::ofstream(root_ / folder / "stat") << fmt::format(
        "{} (program) S {} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n", pid, parent);
  }
  void PutLink(const std::string& path, const std::string& target) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(target, root_ / path);
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / fmt::format("hangscope-own-queue-{}", getpid());
};

TEST_F(OwnQueue, IsOfTheFamilyWhereOnlyThatHasUsedIt) {
  const auto is_surely_theirs = [](const WaitFile& file) {
    EXPECT_EQ(file.others, (std::vector<std::pair<int, int>>{{10, -1}, {20, -1}}));
    EXPECT_FALSE(file.others_unknown);
    return !file.others_unsure;
  };
  EXPECT_TRUE(is_surely_theirs(UsedBy(10, 20)));
  EXPECT_TRUE(is_surely_theirs(UsedBy(10, 0)));
  EXPECT_FALSE(is_surely_theirs(UsedBy(0, 0))) << "its number may be told yet";
  EXPECT_FALSE(is_surely_theirs(UsedBy(10, 30))) << "a stranger was told its number";
  // Of another one who sent last it waits for an answer, as a rule.
  EXPECT_EQ(UsedBy(20, 10).others, (std::vector<std::pair<int, int>>{{20, -1}}));
}

TEST(SystemV, WhatHasNoKeyIsUsedByTheFamilyOfItsUser) {
  const char* const sets =
      "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"
      "         0          2   600          2     0     0     0     0          0 1795790000\n"
      "1509949440          3   600          1     0     0     0     0 1795790001 1795790000\n";
  ASSERT_TRUE(FindSemaphoreSet(sets, 2));
  EXPECT_EQ(FindSemaphoreSet(sets, 2)->key, 0);
  EXPECT_EQ(FindSemaphoreSet(sets, 2)->last_used, 0);
  EXPECT_EQ(FindSemaphoreSet(sets, 3)->key, 1509949440);
  EXPECT_EQ(FindSemaphoreSet(sets, 3)->last_used, 1795790001);
  EXPECT_FALSE(FindSemaphoreSet(sets, 4));
  const auto take = [](World* world, int pid, std::vector<int> family) {
    WaitFile& file = Takes(world, pid, "System V semaphore 0 of set 2", 0).wait.files[0];
    file.is_public = file.others_unknown = false, file.others_unsure = true;
    for (const int member : family) file.others.emplace_back(member, -1);
  };
  World alone;
  take(&alone, 10, {10});
  const ProcessFinding finding = Only(alone.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(finding.summary,
            "deadlock, its only thread waits for System V semaphore 0 of set 2, private to 10 "
            "program");
  // Its child may give it back.
  World family;
  take(&family, 10, {10, 20});
  family.Thread(20, 20, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(family.Judge()));
  World both;
  take(&both, 10, {10, 20});
  take(&both, 20, {10, 20});
  EXPECT_EQ(Only(both.Judge()).kind, Kind::kDeadlock);
  EXPECT_FALSE(both.Judge().IsBad());
}

TEST(MessageQueues, WhoWaitsForAMessageOfWhoWaitsForOneIsInADeadlock) {
  World world;
  for (const int pid : {10, 20}) {
    WaitFile& file = world.Reads(pid, pid, {30 - pid}).wait.files[0];
    file.kind = FileKind::kQueue, file.name = "/orders", file.is_public = true;
  }
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts,
              testing::Contains("whoever knows the name of the message queue may use it"));
  EXPECT_THAT(LinesOf(world)[0],
              HasSubstr("for a message from queue /orders (fd 3) sent by 20 program"));
}

// Others may come, and the server serves them.
TEST(MessageQueues, AServerOfAClientThatHangsIsNoPartOfThat) {
  World world;
  WaitFile& file = world.Reads(10, 10, {20}).wait.files[0];
  file.kind = FileKind::kQueue, file.name = "/orders", file.is_public = true;
  world.Locks(20, 20, "own", 20);
  world.Ask({10});
  const ProcessJudgement judgement = world.Judge();
  EXPECT_FALSE(judgement.IsBad());
  EXPECT_EQ(judgement.stands.at(10), ThreadStand::kOutside);
  // Nor does it wait for itself because it has the queue open for both.
  World alone;
  WaitFile& own = alone.Reads(10, 10, {10, 20}).wait.files[0];
  own.kind = FileKind::kQueue, own.name = "/orders", own.is_public = true;
  alone.Thread(20, 20, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(alone.Judge()));
}

TEST(MessageQueues, WhoSendsToAFullOneThatNobodyElseHasMayWaitForGood) {
  World world;
  ThreadFacts& thread = world.Reads(10, 10, {10});
  thread.wait.kind = WaitKind::kWrite;
  WaitFile& file = thread.wait.files[0];
  file.kind = FileKind::kQueue, file.name = "/orders", file.is_public = true;
  file.outside = true, file.wants_read = false;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.summary, HasSubstr("no reader, its only thread waits for a message queue"));
  World beside = world;  // whose other thread may receive
  beside.Thread(10, 11, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(beside.Judge()));
  thread.wait.kind = WaitKind::kRead;  // as servers do
  EXPECT_TRUE(IsSilent(world.Judge()));
}

}  // namespace
}  // namespace hangscope

// Semaphores and message queues: of System V, whose holders nobody records, and of POSIX.
#include "proc/ipc/system_v.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("for a message from /orders (fd 3) sent by 20 program"));
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

}  // namespace
}  // namespace hangscope

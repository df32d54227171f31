// Goroutines that wait for what nobody who may go on can come to, in memory laid out by hand.
#include "runtime/go/go_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "fakes/fake_go_program.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Result<StrandedGoroutines> Ask(FakeGoProgram& go, GoReachInput input = {}) {
  auto reader = go.Open();
  if (!reader.ok()) return reader.status();
  std::string warning;
  input.goroutines = reader->Goroutines(
      100, [](uint64_t) { return false; }, &warning);
  EXPECT_EQ(warning, "");
  auto reach = GoReach::Read(go.heap(), go.module(), [&](uint64_t at, void* into, size_t bytes) {
    return go.Read(at, into, bytes);
  });
  if (!reach.ok()) return reach.status();
  return reach->Stranded(input);
}

StrandedGoroutines StrandedIn(FakeGoProgram& go, GoReachInput input = {}) {
  auto stranded = Ask(go, std::move(input));
  EXPECT_TRUE(stranded.ok()) << stranded.status().message();
  return stranded.ok() ? *stranded : StrandedGoroutines();
}

TEST(GoReach, WhoWaitsForWhatNobodyElseHasIsStranded) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {channel}), {channel});
  go.AddWaiting(2, kGoSleeps, {go.NewObject()});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, IsEmpty())));
}

TEST(GoReach, WhoSleepsMayHaveItOverAnyPointers) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  const uint64_t last = go.NewObject({0, channel + 8});  // into the midst of it
  const uint64_t first = go.NewObject({0, 0, 0, last});
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {channel}), {channel});
  go.AddWaiting(2, kGoSleeps, {0, first});
  EXPECT_THAT(StrandedIn(go), IsEmpty());
  go.Point(first, 3, 0);
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, IsEmpty())));
}

TEST(GoReach, WordsOfAFrameThatAreNotUsedAnyMoreDoNotCount) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {channel}), {channel});
  go.AddWaiting(2, kGoSleeps, {0, 0, channel});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, IsEmpty())));
}

TEST(GoReach, AllWordsCountOfWhoRunsAndOfFramesThatAreNotKnown) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {channel}), {channel});
  go.AddRunning(2, {0, 0, 0, channel});
  EXPECT_THAT(StrandedIn(go), IsEmpty());

  FakeGoProgram other;
  const uint64_t its = other.NewObject();
  other.WaitForChannels(other.AddWaiting(1, kGoReceives, {its}), {its});
  const uint64_t g = other.AddWaiting(2, kGoSleeps, {0, 0, 0, its});
  other.Put<uint64_t>(g + go_layout::kSavedPc, 0x900000);
  EXPECT_THAT(StrandedIn(other), IsEmpty());
}

TEST(GoReach, WhoIsWokenWakesOthers) {
  FakeGoProgram go;
  const uint64_t first = go.NewObject(), second = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {first}), {first});
  go.WaitForChannels(go.AddWaiting(2, kGoReceives, {second, first}), {second});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, ElementsAre(2)), Pair(2, IsEmpty())));
  go.SetVariable(second);
  EXPECT_THAT(StrandedIn(go), IsEmpty());
}

TEST(GoReach, OfThoseThatWaitForEachOtherEachHasWhatTheOtherWants) {
  FakeGoProgram go;
  const uint64_t left = go.NewObject(), right = go.NewObject(), all = go.NewObject();
  go.WaitForChannels(go.AddWaiting(5, kGoSends, {right, all}), {left});
  go.WaitForChannels(go.AddWaiting(6, kGoSends, {left, all}), {right});
  go.AddWaiter(3, go.AddWaiting(1, kGoSemaphore, {}), all + 8);
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(5, ElementsAre(6)), Pair(6, ElementsAre(5)),
                                                   Pair(1, ElementsAre(5, 6))));
}

TEST(GoReach, WhoWaitsForTheSameInTheSameWayGivesNothing) {
  FakeGoProgram go;
  const uint64_t jobs = go.NewObject();
  for (const uint64_t id : {5, 6})
    go.WaitForChannels(go.AddWaiting(id, kGoReceives, {jobs}), {jobs});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(5, IsEmpty()), Pair(6, IsEmpty())));
  go.WaitForChannels(go.AddWaiting(7, kGoSends, {jobs}), {jobs});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(5, ElementsAre(7)), Pair(6, ElementsAre(7)),
                                                   Pair(7, ElementsAre(5, 6))));
}

TEST(GoReach, ALockIsGivenByItsHolderOnly) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject(), lock = go.NewObject();
  go.SetVariable(lock);
  go.AddWaiter(3, go.AddWaiting(5, kGoSemaphore, {channel}), lock);
  go.WaitForChannels(go.AddWaiting(6, kGoSends, {channel}), {channel});
  EXPECT_THAT(StrandedIn(go), IsEmpty());  // whoever has it, may give it back
  GoReachInput input;
  input.held_by = {{5, 6}};
  EXPECT_THAT(StrandedIn(go, input),
              UnorderedElementsAre(Pair(5, ElementsAre(6)), Pair(6, ElementsAre(5))));
  go.AddRunning(7, {channel});
  EXPECT_THAT(StrandedIn(go, input), IsEmpty());
}

TEST(GoReach, AFinalizerMayGiveWhatItsObjectAndItsFunctionHave) {
  FakeGoProgram go;
  const uint64_t first = go.NewObject(), second = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {}), {first});
  go.WaitForChannels(go.AddWaiting(2, kGoReceives, {}), {second});
  EXPECT_EQ(StrandedIn(go).size(), 2u);
  go.Finalize(go.NewObject({first}), go.NewObject({0, second}));
  EXPECT_THAT(StrandedIn(go), IsEmpty());
}

TEST(GoReach, ARegisterMayBeAllThatHasIt) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {}), {channel});
  GoReachInput input;
  input.registers = {7, channel};
  EXPECT_THAT(StrandedIn(go, input), IsEmpty());
}

TEST(GoReach, WhoeverWaitsForConditionsHasThemInHand) {
  FakeGoProgram go;
  const uint64_t condition = go.NewObject();
  go.AddWaiting(1, kGoCondition, {condition});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, IsEmpty())));
  go.AddWaiting(2, kGoSleeps, {condition});
  EXPECT_THAT(StrandedIn(go), IsEmpty());
}

TEST(GoReach, WhoWaitsForNothingWakesNobodyAndIsNotMissed) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.AddWaiting(1, kGoNilChannel, {channel});
  go.WaitForChannels(go.AddWaiting(2, kGoReceives, {}), {channel});
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(2, IsEmpty())));
}

TEST(GoReach, ASemaphoreOnItsOwnStackIsItsOwn) {
  FakeGoProgram go;
  const uint64_t g = go.AddWaiting(1, kGoSemaphore, {});
  go.AddWaiter(3, g, go.Get<uint64_t>(g + go_layout::kStackBegin) + 8);
  EXPECT_THAT(StrandedIn(go), UnorderedElementsAre(Pair(1, IsEmpty())));
}

TEST(GoReach, AVariableIsEverybodys) {
  FakeGoProgram go;
  go.AddWaiter(3, go.AddWaiting(1, kGoSemaphore, {}), go.Block(16));
  EXPECT_THAT(StrandedIn(go), IsEmpty());
}

TEST(GoReach, NobodyIsKnownWithoutTime) {
  FakeGoProgram go;
  uint64_t chain = 0;
  for (int i = 0; i < 100; ++i) chain = go.NewObject({chain});
  go.AddWaiting(1, kGoSleeps, {chain});
  GoReachInput input;
  input.is_late = [] { return true; };
  auto stranded = Ask(go, input);
  ASSERT_FALSE(stranded.ok());
  EXPECT_THAT(stranded.status().message(), HasSubstr("there was no time"));
}

TEST(GoReach, NobodyIsKnownOfAHeapThatCannotBeRead) {
  FakeGoProgram go;
  go.AddWaiting(1, kGoSleeps, {go.NewObject()});
  go.Put<uint64_t>(go.heap() + go_layout::kArenas, 8);
  auto stranded = Ask(go);
  ASSERT_FALSE(stranded.ok());
  EXPECT_EQ(stranded.status().message(), "not all of its heap can be read");
  go.Put<uint8_t>(go.span() + go_layout::kSpanState, 77);
  EXPECT_EQ(Ask(go).status().message(), "its heap is not that of Go 1.19");
}

TEST(GoReach, NobodyIsKnownWhereAStackCannotBeReadWhole) {
  FakeGoProgram go;
  const uint64_t channel = go.NewObject();
  go.WaitForChannels(go.AddWaiting(1, kGoReceives, {channel}), {channel});
  const uint64_t runs = go.AddRunning(2, {channel});
  EXPECT_THAT(StrandedIn(go), IsEmpty());
  const auto begin = go.Get<uint64_t>(runs + go_layout::kStackBegin);
  for (const uint64_t end : {begin + (1u << 20), begin + (1u << 30)}) {
    go.Put(runs + go_layout::kStackEnd, end);
    EXPECT_EQ(Ask(go).status().message(), "not all stacks of its goroutines can be read");
  }
}

TEST(GoReach, AProgramOfSeveralModulesIsNotJudged) {
  FakeGoProgram go;
  go.Put<uint64_t>(go.module() + go_layout::kNextModule, 0x1000);
  EXPECT_EQ(Ask(go).status().message(), "the program has code in several modules");
}

}  // namespace
}  // namespace hangscope

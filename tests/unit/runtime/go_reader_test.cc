// Goroutines, of memory that is laid out as Go 1.19 does it; and of memory that is not.
#include "runtime/go/go_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fake_go.h"
#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Goroutine> GoroutinesOf(FakeGo& go, std::string* warning, size_t most = 100) {
  auto reader = go.Open();
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return {};
  return reader->Goroutines(
      most, [](uint64_t pc) { return pc == 0x400002; }, warning);
}

std::vector<uint64_t> IdsOf(const std::vector<Goroutine>& goroutines) {
  std::vector<uint64_t> ids;
  for (const Goroutine& each : goroutines) ids.push_back(each.id);
  return ids;
}

TEST(GoReader, ListsTheProgramsGoroutinesThatHaveNotEnded) {
  FakeGo go;
  go.AddGoroutine(1, go_layout::Status::kWaiting, kGoReceives);
  go.AddGoroutine(2, go_layout::Status::kWaiting, kGoReceives);  // the runtime's own
  go.AddGoroutine(3, go_layout::Status::kDead);
  const uint64_t runs = go.AddGoroutine(4, go_layout::Status::kRunning);
  const uint64_t thread = go.Block(128);
  go.Put<uint64_t>(thread + go_layout::kThreadId, 4711);
  go.Put(runs + go_layout::kThread, thread);
  std::string warning;
  const auto goroutines = GoroutinesOf(go, &warning);
  EXPECT_EQ(warning, "");
  ASSERT_THAT(IdsOf(goroutines), ElementsAre(1u, 4u));
  EXPECT_TRUE(goroutines[0].waits);
  EXPECT_EQ(goroutines[0].reason, "chan receive");
  EXPECT_EQ(goroutines[0].pc, 0x401001u);
  EXPECT_EQ(goroutines[0].stack_pointer, 0xc000001000u);
  EXPECT_EQ(goroutines[0].frame_pointer, 0xc000001040u);
  EXPECT_EQ(goroutines[0].stack_end, 0xc000002000u);
  EXPECT_TRUE(goroutines[1].runs);
  EXPECT_EQ(goroutines[1].tid, 4711);
  EXPECT_EQ(goroutines[1].pc, 0u);
}

TEST(GoReader, KnowsSemaphoresAndChannelsThatAreWaitedFor) {
  FakeGo go;
  const uint64_t first = go.AddGoroutine(5, go_layout::Status::kWaiting, kGoSemaphore);
  const uint64_t second = go.AddGoroutine(6, go_layout::Status::kWaiting, kGoSemaphore);
  const uint64_t third = go.AddGoroutine(7, go_layout::Status::kWaiting, kGoReceives);
  go.AddWaiter(17, first, 0xc000010004);
  go.AddWaiter(17, second, 0xc000020004);
  go.WaitForChannels(third, {0xc000030000, 0xc000030060});
  go.CloseTheRing(third);  // as no runtime would
  std::string warning;
  const auto goroutines = GoroutinesOf(go, &warning);
  ASSERT_EQ(goroutines.size(), 3u);
  EXPECT_EQ(goroutines[0].semaphore, 0xc000010004u);
  EXPECT_EQ(goroutines[1].semaphore, 0xc000020004u);
  EXPECT_EQ(goroutines[2].semaphore, 0u);
  ASSERT_GE(goroutines[2].channels.size(), 2u);
  EXPECT_LE(goroutines[2].channels.size(), 64u);
  EXPECT_EQ(goroutines[2].channels[1], 0xc000030060u);
}

TEST(GoReader, SaysWhatItLeavesOut) {
  FakeGo go;
  for (uint64_t id = 10; id < 15; ++id) go.AddGoroutine(id, go_layout::Status::kRunnable);
  std::string warning;
  EXPECT_THAT(IdsOf(GoroutinesOf(go, &warning, 2)), ElementsAre(10u, 11u));
  EXPECT_EQ(warning, "only the first 2 goroutines are looked at");
  go.Put<uint64_t>(go.AddressOf("runtime.allgs") + 8, 1u << 30);
  EXPECT_THAT(GoroutinesOf(go, &warning), IsEmpty());
  EXPECT_EQ(warning, "the list of its goroutines cannot be read");
}

TEST(GoReader, RefusesVersionsThatItDoesNotKnow) {
  const auto newer = FakeGo("go1.27.1").Open();
  ASSERT_FALSE(newer.ok());
  EXPECT_THAT(newer.status().message(), HasSubstr("go1.27.1 is another version than 1.19"));
  FakeGo stripped;
  stripped.Forget("runtime.allgs");
  EXPECT_THAT(stripped.Open().status().message(), HasSubstr("are not found"));
}

TEST(GoReader, BearsDamage) {
  FakeGo go;
  const uint64_t waits = go.AddGoroutine(5, go_layout::Status::kWaiting, kGoSemaphore);
  go.AddWaiter(3, waits, 0xc000010004);
  go.WaitForChannels(waits, {0xc000030000});
  const std::string whole = go.image();
  for (size_t at = 0; at < whole.size(); at += 3) {
    go.image() = whole;
    go.image()[at] = static_cast<char>(whole[at] ^ 0xff);
    std::string warning;
    auto reader = go.Open();
    if (!reader.ok()) continue;
    EXPECT_LE(reader
                  ->Goroutines(
                      100, [](uint64_t) { return false; }, &warning)
                  .size(),
              1u);
  }
}

TEST(GoObjects, AreKnownByTheFunctionsThatWait) {
  const auto of = [](std::vector<std::string> functions) {
    return ObjectOfSemaphore(0x1010, functions);
  };
  EXPECT_EQ(of({"runtime.gopark", "sync.(*Mutex).lockSlow", "main.f"}),
            (GoObject{"mutex", 0x100c, true}));
  EXPECT_EQ(of({"sync.(*Mutex).lockSlow", "sync.(*Mutex).Lock", "sync.(*RWMutex).Lock", "main.f"}),
            (GoObject{"rwmutex", 0x100c, true}));
  EXPECT_EQ(of({"sync.(*RWMutex).Lock"}), (GoObject{"rwmutex", 0x1008, true}));
  EXPECT_EQ(of({"sync.(*RWMutex).RLock"}), (GoObject{"rwmutex", 0x1004, true}));
  EXPECT_EQ(of({"sync.(*WaitGroup).Wait"}), (GoObject{"wait group", 0x1008, false}));
  EXPECT_EQ(of({"internal/poll.(*fdMutex).rwlock"}), GoObject());
  EXPECT_EQ(ObjectOfSemaphore(0, {"sync.(*Mutex).lockSlow"}), GoObject());
}

}  // namespace
}  // namespace hangscope

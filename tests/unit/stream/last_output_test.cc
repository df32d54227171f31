// What was printed last, from the ring.
#include "stream/last_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/ring_store.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kStep[] = "Trace 0: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] wait_for\n";

class LastOutputTest : public testing::Test {
 protected:
  LastOutputTest() {
    auto plan = PlanRing("96M", "1", 10);
    auto store = RingStore::Create(disk_, clock_, "fw.stdout", "stdout", *plan, 7);
    store_ = std::move(*store);
  }

  void Print(const std::string& text) { store_->Append(text, clock_.Monotonic()); }
  void Steps(size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += kStep;
    Print(text);
  }
  LastOutput Read() {
    return ReadLastOutput(disk_, "fw.stdout", "stdout", [this] { return stops_; });
  }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::unique_ptr<RingStore> store_;
  bool stops_ = false;
};

TEST_F(LastOutputTest, IsTheNewestLinesThatCanBeSeen) {
  EXPECT_THAT(Read().lines, IsEmpty());
  Print("one\ntwo\n\n  \nthree\n\033[32mfour\033[0m\r\n10 %\r20 %\nsix\n");
  const LastOutput output = Read();
  EXPECT_EQ(output.stream, "stdout");
  EXPECT_THAT(output.lines, ElementsAre("two", "three", "four", "20 %", "six"));
  EXPECT_FALSE(output.unfinished);
  EXPECT_FALSE(output.of_trace);
}

TEST_F(LastOutputTest, HasALineWithoutItsEnd) {
  Print("first\nGo on? [y/n] ");
  EXPECT_THAT(Read().lines, ElementsAre("first", "Go on? [y/n] "));
  EXPECT_TRUE(Read().unfinished);
}

TEST_F(LastOutputTest, CutsLongLinesBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "\xc3\xa4";
  Print("x" + umlauts + "\n");
  ASSERT_EQ(Read().lines.size(), 1u);
  EXPECT_EQ(Read().lines[0], "x" + umlauts.substr(0, 198) + "...");
}

TEST_F(LastOutputTest, OfALineLongerThanIsReadThereIsNothing) {
  Print("before\n" + std::string(300 << 10, 'x'));
  EXPECT_THAT(Read().lines, IsEmpty());
  Print("\nafter\n");
  EXPECT_THAT(Read().lines, ElementsAre("after"));
}

TEST_F(LastOutputTest, LooksFarBackInATrace) {
  Steps(1000);
  clock_.Advance(kSecond);
  const TimeNs printed = clock_.Monotonic();
  Print("block 4710 sent\nblock 4711 sent\n");
  for (int i = 0; i < 40; ++i) {
    clock_.Advance(kSecond / 10);
    Steps(1000);
  }
  Print("Trace 0: 0x7ef");  // half a line of it
  const LastOutput output = Read();
  EXPECT_THAT(output.lines, ElementsAre("block 4710 sent", "block 4711 sent"));
  EXPECT_FALSE(output.unfinished);
  EXPECT_TRUE(output.of_trace);
  EXPECT_NEAR(static_cast<double>(output.time - printed), 0, 0.2 * kSecond);
  stops_ = true;
  EXPECT_THAT(Read().lines, IsEmpty());
}

TEST_F(LastOutputTest, ALineThatALossCutsIsNone) {
  Print("first\nhalf");
  store_->Lose(10, ENOSPC);
  Print(" of it\nlast\n");
  EXPECT_THAT(Read().lines, ElementsAre("last"));
}

}  // namespace
}  // namespace hangscope

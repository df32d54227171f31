// What a stripped program of Go says of its functions, its lines and the runtime's variables.
#include "runtime/go/go_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fake_stripped_go.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<std::pair<std::string, uint64_t>> VariablesOf(FakeStrippedGo& go) {
  std::vector<std::pair<std::string, uint64_t>> variables;
  auto symbols = go.Read();
  if (!symbols.ok()) return variables;
  for (const GoSymbols::Symbol& each : symbols->variables())
    variables.emplace_back(each.name, each.address);
  return variables;
}

std::vector<std::string> PlacesOf(const GoSymbols& symbols, uint64_t pc) {
  std::vector<std::string> places;
  for (const SourceFrame& frame : symbols.At(pc))
    places.push_back(frame.function + (frame.is_inlined ? " inlined " : " ") + frame.path + ":" +
                     std::to_string(frame.line));
  return places;
}

TEST(GoSymbols, AreFunctionsAndLinesOfTheRuntimesTables) {
  FakeStrippedGo go;
  auto symbols = go.Read();
  ASSERT_TRUE(symbols.ok()) << symbols.status().message();
  std::vector<std::string> names;
  for (const GoSymbols::Symbol& each : symbols->TakeFunctions()) {
    EXPECT_EQ(each.address, FakeStrippedGo::kText + 0x100 * names.size());
    EXPECT_EQ(each.bytes, 0x100u);
    names.push_back(each.name);
  }
  EXPECT_THAT(names, ElementsAre("main.main", "runtime.allgadd", "runtime.semacquire1",
                                 "runtime.semrelease1", "runtime.mallocinit"));
  EXPECT_THAT(PlacesOf(*symbols, FakeStrippedGo::kMain), ElementsAre("main.main /src/main.go:7"));
  EXPECT_THAT(PlacesOf(*symbols, FakeStrippedGo::kMain + 40),
              ElementsAre("main.inlined inlined /src/main.go:20", "main.main /src/other.go:9"));
  EXPECT_THAT(PlacesOf(*symbols, FakeStrippedGo::kTextEnd), ElementsAre());
  EXPECT_THAT(PlacesOf(*symbols, FakeStrippedGo::kText - 1), ElementsAre());
}

TEST(GoSymbols, AreVariablesOfTheRuntimeByTheCodeThatUsesThem) {
  FakeStrippedGo go;
  go.AddWaiter((0xc000010004 >> 3) % go_layout::kSemaphoreLines, 0xc000010004);
  EXPECT_THAT(VariablesOf(go), UnorderedElementsAre(Pair("runtime.firstmoduledata", go.module()),
                                                    Pair("runtime.allgs", go.all()),
                                                    Pair("runtime.semtable", go.table()),
                                                    Pair("runtime.mheap_", go.heap())));
}

TEST(GoSymbols, AreNoVariablesThatMakeNoSense) {
  FakeStrippedGo moved;  // in a line of other semaphores
  moved.AddWaiter((0xc000010004 >> 3) % go_layout::kSemaphoreLines + 1, 0xc000010004);
  FakeStrippedGo grown;  // more than there is room for
  grown.Put<uint64_t>(grown.all() + 8, 2);
  FakeStrippedGo unused;  // no instruction leads to its room
  unused.PutText(FakeStrippedGo::kAppends + 0x20, std::string(7, '\xcc'));
  FakeStrippedGo odd;  // no page begins there
  odd.Put(odd.heap() + go_layout::kAllSpans, odd.all());
  const auto has = [](FakeStrippedGo& go, const std::string& name) {
    for (const auto& variable : VariablesOf(go)) {
      if (variable.first == name) return true;
    }
    return false;
  };
  EXPECT_FALSE(has(moved, "runtime.semtable"));
  EXPECT_TRUE(has(moved, "runtime.allgs"));
  EXPECT_FALSE(has(grown, "runtime.allgs"));
  EXPECT_FALSE(has(unused, "runtime.allgs"));
  EXPECT_TRUE(has(unused, "runtime.mheap_"));
  EXPECT_FALSE(has(odd, "runtime.mheap_"));
}

TEST(GoSymbols, AreNotFoundWithoutTheHeadOfTheTables) {
  FakeStrippedGo newer;
  newer.Put<uint32_t>(newer.head(), 0xffff'fff1);
  const auto symbols = newer.Read();
  ASSERT_FALSE(symbols.ok());
  EXPECT_THAT(symbols.status().message(), HasSubstr("are not found"));
}

TEST(GoSymbols, AreNotKeptWithoutEndWhereAllShareALongName) {
  FakeStrippedGo go;
  go.ShareALongName(20'000);
  const auto symbols = go.Read();
  ASSERT_FALSE(symbols.ok());
  EXPECT_THAT(symbols.status().message(), HasSubstr("too long"));
}

TEST(GoSymbols, BearDamage) {
  FakeStrippedGo go;
  const std::string whole = go.image();
  const size_t begin = go.head() - FakeStrippedGo::kText;
  size_t read = 0;
  for (const int flip : {0xff, 0x80, 0x01}) {
    // Behind the tables are the table of semaphores and the heap, of which few bytes count.
    for (size_t at = begin; at < whole.size(); at += at < begin + 2048 ? 1 : 997) {
      go.image() = whole;
      go.image()[at] = static_cast<char>(whole[at] ^ flip);
      auto symbols = go.Read();
      if (!symbols.ok()) continue;
      ++read;
      for (uint64_t pc = FakeStrippedGo::kText; pc < FakeStrippedGo::kTextEnd; pc += 0x28)
        EXPECT_LE(symbols->At(pc).size(), 65u);
    }
  }
  EXPECT_GT(read, 1000u);
}

TEST(GoVersion, IsWhatTheLinkerHasWritten) {
  FakeMemory memory(0x1000);
  const uint64_t at = memory.Block(64), text = memory.Block(16);
  memory.PutText(text, "go1.17.5");
  const ReadMemory read = [&](uint64_t address, void* into, size_t bytes) {
    return memory.Read(address, into, bytes);
  };
  const auto info = [&](char flags, const std::string& length_and_text) {
    memory.PutText(at, std::string("\xff Go buildinf:\x08") + flags);
    memory.Put<uint64_t>(at + 16, at + 48);
    memory.PutText(at + 32, length_and_text + '\0');
    memory.Put(at + 48, text), memory.Put<uint64_t>(at + 56, 8);
    return memory.image().substr(0, 64);
  };
  EXPECT_EQ(GoVersionIn(std::string(32, ' ') + info(2, "\x08go1.19.8"), read), "go1.19.8");
  EXPECT_EQ(GoVersionIn("text" + info(2, "\x08go1.19.8"), read), std::nullopt);
  EXPECT_EQ(GoVersionIn(info(2, "\x08no1.19.8"), read), std::nullopt);
  EXPECT_EQ(GoVersionIn(info(0, ""), read), "go1.17.5");
  EXPECT_EQ(GoVersionIn(info(2, std::string(1, '\0')), read), std::nullopt);
  EXPECT_EQ(GoVersionIn(info(2, "\x7f"), read), std::nullopt);
  EXPECT_EQ(GoVersionIn(info(2, "\x08go1.19.8").substr(0, 36), read), std::nullopt);
  EXPECT_EQ(GoVersionIn(std::string(64, '\0'), read), std::nullopt);
}

}  // namespace
}  // namespace hangscope

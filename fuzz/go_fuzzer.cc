// The memory of a program of Go, damaged in any way: bounded reads and lists.
#include <string>
#include <vector>

#include "fakes/fake_go_program.h"
#include "fakes/fake_stripped_go.h"
#include "fuzz.h"
#include "runtime/go/go_reach.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostGoroutines = 64;
constexpr size_t kMostChannelsOfOne = 64;

// Who waits for ever of a program whose heap and tables are damaged, too.
void FollowPointers(std::string_view input) {
  FakeGoProgram go;
  go.image() = std::string(input);
  auto reader = go.Open();
  if (!reader.ok()) return;
  GoReachInput asked;
  std::string warning;
  asked.goroutines = reader->Goroutines(
      kMostGoroutines, [](uint64_t) { return false; }, &warning);
  auto reach = GoReach::Read(go.heap(), go.module(), [&](uint64_t at, void* into, size_t bytes) {
    ++go.reads;
    return go.Read(at, into, bytes);
  });
  if (!reach.ok()) {
    FUZZ_REQUIRE(!reach.status().message().empty());
    return;
  }
  auto stranded = reach->Stranded(asked);
  FUZZ_REQUIRE(stranded.ok() || !stranded.status().message().empty());
  if (!stranded.ok()) return;
  FUZZ_REQUIRE(stranded->size() <= asked.goroutines.size());
  for (const auto& [id, others] : *stranded) {
    for (const uint64_t other : others) FUZZ_REQUIRE(stranded->count(other) != 0);
  }
}

// What its tables say without symbols.
void ReadTables(std::string_view input) {
  constexpr size_t kMostOfOnePlace = 65;
  FakeStrippedGo go;
  go.image() = std::string(input);
  auto symbols = go.Read();
  FUZZ_REQUIRE(symbols.ok() || !symbols.status().message().empty());
  if (!symbols.ok()) return;
  FUZZ_REQUIRE(symbols->TakeFunctions().size() <= input.size());
  for (uint64_t pc = go.kText; pc < go.kTextEnd; pc += 0x28)
    FUZZ_REQUIRE(symbols->At(pc).size() <= kMostOfOnePlace);
}

}  // namespace

void FuzzGo(std::string_view input) {
  FollowPointers(input);
  ReadTables(input);
  FakeGo go;
  go.image() = std::string(input);
  auto reader = go.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  std::string warning;
  const auto goroutines = reader->Goroutines(
      kMostGoroutines, [](uint64_t pc) { return pc % 2 == 1; }, &warning);
  FUZZ_REQUIRE(goroutines.size() <= kMostGoroutines);
  for (const Goroutine& each : goroutines) {
    FUZZ_REQUIRE(each.channels.size() <= kMostChannelsOfOne);
    FUZZ_REQUIRE(each.waits || (each.semaphore == 0 && each.channels.empty()));
    FUZZ_REQUIRE(!each.runs || each.in_system_call || each.pc == 0);
  }
  // An input has so many goroutines at most, each with so many channels.
  FUZZ_REQUIRE(go.reads < 1000 + input.size() * (kMostChannelsOfOne + 4));
}

}  // namespace hangscope::fuzz

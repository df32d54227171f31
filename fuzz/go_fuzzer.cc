// The memory of a program of Go, damaged in any way: bounded reads and lists.
#include <string>
#include <vector>

#include "fakes/fake_go.h"
#include "fuzz.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostGoroutines = 64;
constexpr size_t kMostChannelsOfOne = 64;

}  // namespace

void FuzzGo(std::string_view input) {
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
    FUZZ_REQUIRE(!each.runs || each.pc == 0);
  }
  // An input has so many goroutines at most, each with so many channels.
  FUZZ_REQUIRE(go.reads < 1000 + input.size() * (kMostChannelsOfOne + 4));
}

}  // namespace hangscope::fuzz

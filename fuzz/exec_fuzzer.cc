// What a helper of exec: sends, whatever it is asked.
#include <memory>
#include <string>

#include "fakes/fake_channel.h"
#include "fuzz.h"
#include "target/exec_target.h"

namespace hangscope::fuzz {
namespace {

void CheckStatus(const Status& status) {
  FUZZ_REQUIRE(status.ok() || (!status.message().empty() && status.message().size() < 2000));
  for (const char c : status.message()) FUZZ_REQUIRE(static_cast<uint8_t>(c) >= 0x20);
}

// In order, without overlap, and all asked for within them.
void CheckRanges(Target& target) {
  uint64_t end = 0;
  for (const MemoryRange& range : target.ranges()) {
    FUZZ_REQUIRE(range.begin >= end && range.size_bytes > 0 &&
                 range.size_bytes <= UINT64_MAX - range.begin);
    end = range.begin + range.size_bytes;
  }
  char byte = 0;
  if (end != UINT64_MAX) FUZZ_REQUIRE(!target.Read(end, {&byte, 1}).ok());
}

}  // namespace

// The first byte: how many bytes come at once, less one. Turns are divided by a byte 0xff; the last
// one goes on.
void FuzzExec(std::string_view input) {
  if (input.empty()) return;
  Choices choices(input.substr(1));
  std::vector<std::string> turns;
  while (!choices.empty() && turns.size() < 16) turns.emplace_back(choices.ScanUntil('\xff'));
  const size_t piece = 1 + static_cast<uint8_t>(input[0]);
  auto target =
      ExecTarget::Open("the helper", std::make_unique<FakeChannel>(std::move(turns), piece),
                       kSecond, [] { return ""; });
  CheckStatus(target.status());
  if (!target.ok()) return;
  CheckRanges(**target);
  const uint64_t begin = (*target)->ranges()[0].begin;
  std::string bytes(static_cast<size_t>(std::min<uint64_t>((*target)->ranges()[0].size_bytes, 32)),
                    'x');
  for (int i = 0; i < 3; ++i) {
    CheckStatus((*target)->Read(begin, bytes));
    (void)(*target)->life();
    CheckStatus((*target)->Write(begin, bytes));
  }
}

}  // namespace hangscope::fuzz

// The memory of a bash, damaged in any way, and a script of any bytes: bounded reads and lists.
#include <string>

#include "fakes/fake_bash.h"
#include "fuzz.h"
#include "runtime/bash/bash_script.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostShellFrames = 16;
constexpr size_t kMostShellReads = 400'000;

}  // namespace

void FuzzBash(std::string_view input) {
  FakeBashStory story;
  story.bash.image() = std::string(input);
  auto reader = story.bash.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (reader.ok()) {
    const std::vector<BashFrame> frames = reader->Frames(kMostShellFrames);
    FUZZ_REQUIRE(frames.size() <= kMostShellFrames);
    for (const BashFrame& frame : frames) FUZZ_REQUIRE(frame.line >= 0);
  }
  FUZZ_REQUIRE(story.bash.reads < kMostShellReads);
  const size_t all = RedirectionsAfter(input, 0, "main", "").size();
  for (const char* function : {"main", "serve"}) {
    for (const Redirection& each : RedirectionsAfter(input, 2, function, "requests"))
      FUZZ_REQUIRE(!each.name.empty() && (each.reads || each.writes));
  }
  FUZZ_REQUIRE(all <= input.size());
}

}  // namespace hangscope::fuzz

// The memory of a program of Node.js, damaged in any way: bounded reads and walks.
#include <string>

#include "fakes/fake_v8.h"
#include "fuzz.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostScriptFrames = 32;

}  // namespace

void FuzzV8(std::string_view input) {
  FakeScriptStack story;
  story.v8.image() = std::string(input);  // V8's numbers, too, which are at the same place
  auto reader = story.v8.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  ScriptAnchor anchor = story.Anchor();
  for (const bool is_known : {true, false}) {
    if (!is_known) anchor.frame_pointer.reset();
    const auto frames = reader.value()->FramesFrom(anchor, story.stack.end, kMostScriptFrames,
                                                   FakeScriptStack::IsInterpreter);
    FUZZ_REQUIRE(frames.size() <= kMostScriptFrames);
    for (const ScriptFrame& frame : frames) {
      FUZZ_REQUIRE(frame.line >= 0 && frame.first_line >= 0);
      FUZZ_REQUIRE(!V8Reader::Name(frame).function.empty());
    }
  }
}

}  // namespace hangscope::fuzz

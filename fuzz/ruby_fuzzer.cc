// The memory of a program of Ruby, damaged in any way: bounded reads, lists and stacks.
#include <string>

#include "fakes/fake_ruby.h"
#include "fuzz.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostRubyThreads = 16;
constexpr size_t kMostRubyFrames = 32;
constexpr size_t kMostRubyReads = 400'000;

}  // namespace

void FuzzRuby(std::string_view input) {
  FakeRubyStory story;
  story.ruby.image() = std::string(input);  // the version, too, which is at the same place
  auto reader = story.ruby.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  std::string warning;
  reader.value()->HandledSignals();
  const auto threads = reader.value()->Threads(kMostRubyThreads, &warning);
  FUZZ_REQUIRE(threads.size() <= kMostRubyThreads);
  for (const RubyThread& thread : threads) {
    FUZZ_REQUIRE(thread.wait.kind != RubyWaitKind::kMutex || !thread.wait.type.empty());
    const auto frames =
        reader.value()->FramesOf(reader.value()->SitesOf(thread.address), kMostRubyFrames);
    FUZZ_REQUIRE(frames.size() <= kMostRubyFrames);
    for (const RubyFrame& frame : frames) {
      FUZZ_REQUIRE(frame.line >= 0 && frame.first_line >= 0);
      FUZZ_REQUIRE(!RubyReader::Name(frame).function.empty());
    }
  }
  FUZZ_REQUIRE(story.ruby.reads < kMostRubyReads);
}

}  // namespace hangscope::fuzz

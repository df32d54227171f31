// The memory of a program of Java, damaged in any way: bounded reads, lists and walks.
#include <string>

#include "fakes/fake_jvm.h"
#include "fuzz.h"
#include "runtime/jvm/jvm_print.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostThreadsOfInput = 32;
constexpr size_t kMostFramesOfThread = 32;

}  // namespace

void FuzzJvm(std::string_view input) {
  std::string ignored;
  for (const JavaThread& thread :
       PrintedJavaThreads(input).Threads(kMostThreadsOfInput, kMostFramesOfThread, &ignored))
    FUZZ_REQUIRE(thread.tid > 0 && thread.stack.size() <= kMostFramesOfThread);
  FakeJvm jvm;
  jvm.image() = std::string(input);  // its tables, too, which are at the same place
  auto reader = jvm.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  std::string warning;
  const auto threads = reader.value()->Threads(kMostThreadsOfInput, kMostFramesOfThread, &warning);
  FUZZ_REQUIRE(threads.size() <= kMostThreadsOfInput);
  for (const JavaThread& thread : threads) {
    FUZZ_REQUIRE(thread.tid > 0 && thread.frames.size() <= kMostFramesOfThread);
    FUZZ_REQUIRE(thread.is_blocked || thread.wait == JavaWait());
    for (const StackFrame& frame : thread.stack) FUZZ_REQUIRE(!frame.function.empty());
    reader.value()->WaitNow(thread);
  }
  reader.value()->HandlesSignals();
}

}  // namespace hangscope::fuzz

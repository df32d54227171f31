// What the source calls the locks that threads of real programs wait for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "fakes/started_program.h"
#include "process/linux_inspector.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

SystemClock names_clock;

// What `thread` of the program waits for, once that is a lock that the other one has.
std::string WaitsFor(const StartedProgram& program, const char* thread) {
  const int holder = program.Tid(thread == std::string("main") ? "other" : "main");
  constexpr TimeNs kWithin = 20 * kSecond;
  auto inspector = OpenLinuxInspector(names_clock);
  const TimeNs end = names_clock.Monotonic() + kWithin;
  while (names_clock.Monotonic() < end) {
    const auto look = (*inspector)->Inspect(program.pid(), {});
    const ThreadFacts* const facts =
        look.ok() ? FindThread(look.value(), program.Tid(thread)) : nullptr;
    if (facts != nullptr && facts->wait.kind == WaitKind::kMutex && facts->wait.owner == holder)
      return facts->wait.variable;
  }
  return "no lock";
}

class NamedLocks : public testing::TestWithParam<const char*> {};

TEST_P(NamedLocks, AreMembersOfVariables) {
  const StartedProgram program(GetParam(), "variable");
  EXPECT_THAT(WaitsFor(program, "other"), testing::EndsWith("cache.accounts[3].lock"));
  EXPECT_THAT(WaitsFor(program, "main"), testing::EndsWith("cache.accounts[1].lock"));
}

TEST_P(NamedLocks, AreElementsOfALibrarysArray) {
  const StartedProgram program(GetParam(), "array");
  EXPECT_THAT(WaitsFor(program, "other"), testing::EndsWith("cache.stripes[2]"));
  EXPECT_THAT(WaitsFor(program, "main"), testing::EndsWith("cache.stripes[1]"));
}

// Whoever waits for it has another name for it.
TEST_P(NamedLocks, AreMembersOfVariablesOfAFunction) {
  const StartedProgram program(GetParam(), "function");
  EXPECT_THAT(WaitsFor(program, "other"), testing::HasSubstr("savings.lock in "));
  EXPECT_THAT(WaitsFor(program, "main"), testing::HasSubstr("checking.lock in "));
}

// Both call it "to.lock", and mean two; the vector has one name for each.
TEST_P(NamedLocks, AreElementsOfAVectorOfPointers) {
  const StartedProgram program(GetParam(), "vector");
  EXPECT_THAT(WaitsFor(program, "other"), testing::EndsWith("accounts[2]->lock"));
  EXPECT_THAT(WaitsFor(program, "main"), testing::EndsWith("accounts[0]->lock"));
}

TEST_P(NamedLocks, AreBehindPointersOfAFunction) {
  const StartedProgram program(GetParam(), "pointers");
  EXPECT_THAT(WaitsFor(program, "other"), testing::StartsWith("server->queues[1]->lock in "));
  EXPECT_THAT(WaitsFor(program, "main"), testing::StartsWith("server->queues[0]->lock in "));
}

#if defined(__x86_64__)
TEST_P(NamedLocks, AreThoseOfFiles) {
  const StartedProgram program(GetParam(), "file");
  EXPECT_THAT(WaitsFor(program, "other"), testing::StartsWith("lock in "));
  EXPECT_THAT(WaitsFor(program, "main"), testing::HasSubstr("log->_lock in "));
}
#endif

INSTANTIATE_TEST_SUITE_P(Built, NamedLocks, testing::Values(NAMED_LOCKS, NAMED_LOCKS_FAST),
                         [](const auto& way) {
                           return way.index == 0 ? "AsDebugged" : "AsShipped";
                         });

// The debug information is the target's: with whatever is in it, a look comes to an end, and says
// of the lock what memory says.
TEST(NamesOfLocks, TakeNoHarmFromBrokenDebugInformation) {
  constexpr int kTries = 12, kBytes = 300;
  std::string folder = testing::TempDir() + "hangscope-names-XXXXXX";  // mkdtemp puts letters there
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ifstream in(NAMED_LOCKS, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // Behind what is loaded come the sections that only debuggers read.
  const size_t debug_begin = whole.rfind("GCC: (");
  ASSERT_NE(debug_begin, std::string::npos);
  std::mt19937 random(7);
  for (int i = 0; i < kTries; ++i) {
    std::string broken = whole;
    for (int byte = 0; byte < kBytes; ++byte)
      broken[debug_begin + 64 + random() % ((whole.size() - debug_begin) / 2)] =
          static_cast<char>(random());
    const std::string path = folder + "/broken" + std::to_string(i);
    std::ofstream(path, std::ios::binary) << broken;
    chmod(path.c_str(), 0700);
    const StartedProgram program(path.c_str(), "vector");
    ASSERT_TRUE(program.is_ready());
    EXPECT_NE(WaitsFor(program, "other"), "no lock") << i;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hangscope

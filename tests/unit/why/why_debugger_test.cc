// What hangscope why tells of a debugger's snapshot.
#include "why/why_debugger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "fakes/debugger_folder.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WhyDebuggerTest : public ::testing::Test {
 protected:
  std::string Ask(size_t branches = 0, bool json = false) {
    auto report = AskWhyDebugger(disk_, clock_, {folder_.WriteTo(disk_), "", json, branches});
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_FALSE(report.value_or({}).is_bad);
    return report.value_or({}).text;
  }

  DebuggerFolder folder_;
  FakeFileSystem disk_;
  FakeClock clock_;
};

TEST_F(WhyDebuggerTest, TellsWhatEachTraceUnitRecordedAndWhereItsCoreWasLast) {
  const std::string text = Ask();
  EXPECT_THAT(text, AllOf(HasSubstr("2 cores, 2 trace sources, 1 buffers"),
                          HasSubstr("last branched at 0x400014"), Not(HasSubstr("branches of"))));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "ETM_1 +0x11 cpu_1 Cortex-A53 +ETB_0 +[0-9]+ B +[0-9]+ +7 +12 +6\n"));
}

TEST_F(WhyDebuggerTest, ListsTheLastBranchesThatWereAskedFor) {
  EXPECT_THAT(Ask(2), HasSubstr("the last 2 branches of cpu_0, the newest last:\n"
                                "  0x400014 -> 0x400014\n  0x400014 -> ?\n"));
}

TEST_F(WhyDebuggerTest, SaysAllOfItAsJson) {
  folder_.Replace("etm_0.ini", "ETM4.2", "ITM");
  std::istringstream lines(Ask(1, true));
  std::string types;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    types += object["type"].get<std::string>() + " ";
    if (object["type"] != "trace_source") continue;
    EXPECT_EQ(object["core"], "cpu_1");
    EXPECT_EQ(object["trace_id"], 0x11);
    EXPECT_EQ(object["instructions"], 12);
    EXPECT_EQ(object["branches"], 6);
  }
  EXPECT_EQ(types, "debugger_snapshot trace_source branch note ");
}

}  // namespace
}  // namespace hangscope

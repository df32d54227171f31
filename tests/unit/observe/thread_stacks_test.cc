// Whose stacks a report has.
#include "observe/thread_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verdict/junit.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kThreads[] =
    R"({"type":"process","pid":20,"name":"test_017","command":"./test_017 --fast"}
{"type":"thread","pid":20,"tid":20,"name":"test_017","stack":[{"pc":"0x10","function":"main"}]}
{"type":"thread","pid":20,"tid":21,"name":"worker","stack":[
no JSON
{"type":"thread","pid":20,"tid":22,"name":"a\u001bb","stack":[{"pc":"0x7f","function":"lock","module":"libc.so.6"},{"pc":"0x12"},{"pc":"0x13","function":"take","source":"locks.c:9","module":"test_017"}]}
)";

Verdict Hang() {
  Verdict verdict;
  verdict.summary = "deadlock";
  verdict.by_finding = true;
  Finding finding;
  finding.subjects.push_back({.name = "22 b", .process = 20, .thread = 22});
  finding.partners.push_back({.name = "23 gone", .process = 20, .thread = 23});
  finding.lines = {"22 b  waits 1.0 s for mutex m"};
  verdict.findings = {finding, finding};
  return verdict;
}

TEST(ThreadStacks, AreThoseOfWhomAVerdictIsAbout) {
  Verdict verdict = Hang();
  verdict.stacks = StacksOf(verdict, kThreads);
  ASSERT_EQ(verdict.stacks.size(), 1u);
  EXPECT_EQ(verdict.stacks[0].process, "20 test_017");
  EXPECT_THAT(verdict.stacks[0].frames, ElementsAre("lock  libc.so.6", "0x12", "take  locks.c:9"));
  EXPECT_EQ(StacksText(verdict),
            "\nstack of 22 a\\x1bb, of process 20 test_017: ./test_017 --fast\n"
            "  lock  libc.so.6\n  0x12\n  take  locks.c:9\n");
  EXPECT_EQ(HeadlineWithSubject(verdict),
            "deadlock: 22 b  waits 1.0 s for mutex m  (process 20 test_017: ./test_017 --fast)");
}

TEST(ThreadStacks, AreNoneWhereNobodyLooked) {
  EXPECT_THAT(StacksOf(Hang(), ""), IsEmpty());
  EXPECT_THAT(StacksOf({}, kThreads), IsEmpty());
  EXPECT_EQ(StacksText(Hang()), "");
}

TEST(ThreadStacks, AreBounded) {
  std::string frames = R"({"function":"f"})";
  for (int i = 0; i < 99; ++i) frames += R"(,{"function":"f"})";
  Verdict verdict = Hang();
  verdict.stacks = StacksOf(
      verdict, R"({"type":"thread","pid":20,"tid":22,"name":"b","stack":[)" + frames + "]}\n");
  ASSERT_EQ(verdict.stacks.size(), 1u);
  EXPECT_EQ(verdict.stacks[0].frames.size(), 24u);
  EXPECT_THAT(StacksText(verdict), HasSubstr("  ... 76 more\n"));
}

}  // namespace
}  // namespace hangscope

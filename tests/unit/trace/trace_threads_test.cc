// The threads of a snapshot as a trace: for whom each waits, since when, and where.
#include <gtest/gtest.h>

#include "fakes/fake_file_system.h"
#include "trace/trace_of_threads.h"

namespace hangscope {
namespace {

constexpr char kLook[] =
    R"({"type":"note","event":"looked","monotonic_ns":5000000000,"wall_ns":105000000000})"
    "\n";
constexpr char kThreads[] =
    R"({"type":"thread","pid":7,"tid":8,"name":"left","state":"sleeping","stand":"waits","for_s":2.5,)"
    R"("where":{"function":"Transfer","source":"bank.c:9"},)"
    R"("waits_for":{"kind":"mutex","text":"mutex lock_b, held by 9","owner":9}})"
    "\n"
    R"({"type":"thread","pid":7,"tid":9,"name":"right","state":"sleeping","stand":"timed"})"
    "\n"
    R"({"type":"thread","pid":7,"tid":10,"name":"busy","state":"running","stand":"moves"})"
    "\n{\n";

class ThreadsTraceTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceSource> Open(const std::string& text, TimeNs taken,
                                    bool other_clock = false) {
    EXPECT_TRUE(WriteWholeFile(files_, "threads.jsonl", text).ok());
    auto opened = OpenThreadsTrace(files_, "threads.jsonl", taken, other_clock);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(*opened);
  }

  FakeFileSystem files_;
};

TEST_F(ThreadsTraceTest, SaysForWhomEachThreadWaitsSinceWhenAndWhere) {
  const auto trace = Open(std::string(kLook) + kThreads, 105'500'000'000);
  const TraceEnd& end = trace->end();
  EXPECT_EQ(end.time, 5'500'000'000);
  EXPECT_EQ(trace->head().time.from, 2'500'000'000);
  EXPECT_EQ(trace->head().wall_minus_monotonic, 100'000'000'000);
  EXPECT_TRUE(trace->head().tasks_are_threads);
  EXPECT_EQ(end.tasks.at(8), "left");
  ASSERT_EQ(end.standings.size(), 3u);
  const TraceStanding& left = end.standings[0];
  EXPECT_EQ(left.who, (TraceWho{true, 8}));
  EXPECT_EQ(left.activity, Activity::kWaiting);
  EXPECT_EQ(left.since, 2'500'000'000);
  EXPECT_EQ(left.waits_for, "mutex lock_b, held by 9");
  EXPECT_EQ(left.by, (std::vector<TraceWho>{{true, 9}}));
  EXPECT_EQ(left.place, "Transfer, bank.c:9");
  EXPECT_EQ(end.standings[1].activity, Activity::kIdle);
  EXPECT_EQ(end.standings[2].activity, Activity::kRunning);
  EXPECT_EQ(end.warnings, std::vector<std::string>{"threads.jsonl: 1 lines in it are damaged"});
}

TEST_F(ThreadsTraceTest, SaysHowOldTheLookAtThemIs) {
  const auto trace = Open(std::string(kLook) + kThreads, 117'000'000'000);
  EXPECT_EQ(trace->end().warnings.at(0),
            "how the threads stand was seen 12.0 s before the end of the recording");
}

TEST_F(ThreadsTraceTest, HasNoTimesWhereNobodyKnowsWhenTheyWereLookedAt) {
  for (const auto& trace : {Open(kThreads, 105'500'000'000),
                            Open(std::string(kLook) + kThreads, 105'500'000'000, true)}) {
    EXPECT_EQ(trace->end().standings.at(0).since, std::nullopt);
    EXPECT_EQ(trace->end().standings.at(0).waits_for, "mutex lock_b, held by 9");
    EXPECT_EQ(trace->head().time.to, 0);
  }
}

}  // namespace
}  // namespace hangscope

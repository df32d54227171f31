// A debugger's snapshot as a trace, and branches as functions that nest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/debugger_folder.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "trace/branch_track.h"
#include "trace/trace_source.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Functions of 0x100 bytes each: "f1" from 0x100 on; nothing is known from 0x1000 on.
Location FunctionAt(uint64_t address) {
  Location location;
  if (address >= 0x1000) return location;
  location.function_begin = address & ~uint64_t{0xff};
  location.function = "f" + std::to_string(address >> 8);
  return location;
}

class BranchTrackTest : public ::testing::Test {
 protected:
  // What was begun and ended: "+f1 +f2 -".
  std::string Calls(std::initializer_list<std::pair<uint64_t, uint64_t>> branches) {
    for (const auto& [from, to] : branches) track_.Add({from, to, 0, std::nullopt, -1}, 7, 0);
    std::string calls;
    for (const TraceItem& item : items_) {
      const auto& event = std::get<TraceEvent>(item);
      const TraceMeaning meaning = kinds_[event.kind].meaning;
      if (meaning == TraceMeaning::kFunctionEnter) calls += "+" + event.what + " ";
      if (meaning == TraceMeaning::kFunctionLeave) calls += "- ";
    }
    return calls;
  }

  std::vector<TraceEventKind> kinds_;
  std::deque<TraceItem> items_;
  BranchTrack track_{0, AddBranchKinds(&kinds_), FunctionAt, &items_};
};

TEST_F(BranchTrackTest, CallsNestAndReturnsEndThem) {
  EXPECT_EQ(Calls({{0x140, 0x200}, {0x210, 0x300}, {0x320, 0x214}, {0x220, 0x208}}), "+f2 +f3 - ");
}

TEST_F(BranchTrackTest, ReturnsThroughSeveralAtOnce) {
  EXPECT_EQ(Calls({{0x140, 0x200}, {0x210, 0x300}, {0x310, 0x400}, {0x410, 0x214}}),
            "+f2 +f3 +f4 - - ");
}

TEST_F(BranchTrackTest, JumpsIntoAFunctionThatIsNotOpen) {
  EXPECT_EQ(Calls({{0x140, 0x200}, {0x210, 0x348}}), "+f2 - +f3 ");
}

TEST_F(BranchTrackTest, LoopsToAFunctionsBeginStayInIt) {
  EXPECT_EQ(Calls({{0x140, 0x200}, {0x210, 0x200}, {0x210, 0x200}}), "+f2 ");
}

TEST_F(BranchTrackTest, KnowsNothingWhereTheFlowIsLost) {
  EXPECT_EQ(Calls({{0x140, 0x200}, {0x210, 0}, {0, 0x344}, {0x350, 0x2000}}), "+f2 - +f3 - ");
}

TEST_F(BranchTrackTest, NamesBothEndsOfABranch) {
  (void)Calls({{0x140, 0x2000}});
  const auto& branch = std::get<TraceEvent>(items_.front());
  EXPECT_EQ(branch.values[1].text, "f1+0x40");
  EXPECT_EQ(branch.values[3].text, "");
}

class DebuggerTraceTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceSource> Open(size_t branches) {
    TraceRequest request;
    request.source.target = folder_.WriteTo(disk_);
    request.branches = branches;
    auto source = OpenTraceSource(disk_, clock_, request);
    EXPECT_TRUE(source.ok()) << source.status().message();
    return source.ok() ? std::move(*source) : nullptr;
  }
  static std::vector<TraceEvent> EventsOf(TraceSource& source, size_t* losses) {
    std::vector<TraceEvent> events;
    TraceItem item;
    while (source.Next(&item).value_or(false)) {
      if (const auto* event = std::get_if<TraceEvent>(&item))
        events.push_back(*event);
      else
        ++*losses;
    }
    return events;
  }

  DebuggerFolder folder_;
  FakeFileSystem disk_;
  FakeClock clock_;
};

TEST_F(DebuggerTraceTest, HasATrackForEachTraceUnitAndItsLastBranches) {
  const auto source = Open(3);
  ASSERT_EQ(source->head().tracks.size(), 2u);
  EXPECT_EQ(source->head().tracks[1].name, "cpu_1 ETM_1");
  EXPECT_TRUE(source->head().counts_bytes);
  EXPECT_THAT(source->head().warnings, Contains(HasSubstr("--elf FILE")));
  size_t losses = 0;
  const std::vector<TraceEvent> events = EventsOf(*source, &losses);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(losses, 0u);
  EXPECT_EQ(source->head().kinds[events.back().kind].name, "branch");
  EXPECT_EQ(events.back().values[0].bits, kA64Base + 0x14);
  EXPECT_FALSE(events.back().values[2].known) << "the trace ended";
  for (size_t i = 1; i < events.size(); ++i) EXPECT_GE(events[i].time, events[i - 1].time);
}

// What lies before the branches that are kept is no loss of theirs.
TEST_F(DebuggerTraceTest, TellsOfBreaksAmongTheBranchesThatAreKept) {
  EtmBytes trace;
  trace.bytes = A64Run();
  trace.Overflow().bytes += A64Run();
  folder_.files["cstrace.bin"] = Framed(0x10, trace.bytes);
  size_t losses = 0;
  (void)EventsOf(*Open(100), &losses);
  EXPECT_EQ(losses, 1u);
  losses = 0;
  (void)EventsOf(*Open(2), &losses);
  EXPECT_EQ(losses, 0u);
}

}  // namespace
}  // namespace hangscope

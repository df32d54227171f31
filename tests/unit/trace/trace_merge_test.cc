// Several traces as one, and a trace without what nobody asked for.
#include "trace/trace_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_trace.h"
#include "trace/trace_filter.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two cores, 6 events and a loss, at 10 to 60 ns.
std::unique_ptr<FakeTrace> Sample() {
  auto trace = std::make_unique<FakeTrace>();
  const size_t zero = trace->Track(RingKind::kCore, 0, "core 0 reader");
  const size_t one = trace->Track(RingKind::kCore, 1, "core 1 writer");
  const size_t plain = trace->Kind("plain");
  const size_t change = trace->Kind("sched:switch");
  trace->Event(zero, plain, 10).task = 1;
  trace->Event(one, plain, 20).task = 2;
  trace->Event(zero, change, 30).to = 2;
  trace->Loss(one, 20, 40, 7);
  trace->Event(one, plain, 40);
  trace->Event(zero, plain, 50).task = 1;
  trace->Event(one, change, 60).from = 2;
  trace->its_head.tasks = {{1, "first"}, {2, "second"}};
  trace->its_end.time = 60;
  trace->its_end.standings = {{{false, 0}, Activity::kWaiting, 30, "cb3", {}, "", ""},
                              {{false, 1}, Activity::kRunning, {}, "", {}, "", ""},
                              {{true, 2}, Activity::kIdle, {}, "", {}, "", ""}};
  return trace;
}

std::vector<std::string> Filtered(const TraceRequest& request,
                                  std::unique_ptr<TraceSource>* kept = nullptr) {
  auto filtered = FilterTrace(Sample(), request);
  if (!filtered.ok()) return {filtered.status().message()};
  auto lines = LinesOf(**filtered);
  if (kept != nullptr) *kept = std::move(*filtered);
  return lines;
}

std::unique_ptr<TraceSource> Merged(std::unique_ptr<FakeTrace> a, std::unique_ptr<FakeTrace> b,
                                    int64_t shift) {
  std::vector<TracePart> parts;
  parts.push_back({std::move(a), 0});
  parts.push_back({std::move(b), shift});
  return MergeTraces(TraceHead(), std::move(parts));
}

// The rings of CPUs know since when a thread waits, a look at the thread knows for whom.
TEST(TraceMerge, AThreadOfTwoPartsStandsOnce) {
  const TraceStanding of_cpus{{true, 7}, Activity::kWaiting, 40, "futex", {}, "", ""};
  TraceStanding look{{true, 7}, Activity::kWaiting, 38, "mutex m, held by 8", {{true, 8}}, "Lock",
                     ""};
  look.seen = 50;
  const auto merged = [&](const TraceStanding& first, const TraceStanding& second) {
    auto a = std::make_unique<FakeTrace>();
    auto b = std::make_unique<FakeTrace>();
    a->its_end.standings = {first};
    b->its_end.standings = {second};
    const auto both = Merged(std::move(a), std::move(b), 0);
    LinesOf(*both);
    EXPECT_EQ(both->end().standings.size(), 1u);
    return both->end().standings.at(0);
  };
  const TraceStanding one = merged(of_cpus, look);
  EXPECT_EQ(one.waits_for, "mutex m, held by 8");
  EXPECT_EQ(one.by, (std::vector<TraceWho>{{true, 8}}));
  EXPECT_EQ(one.place, "Lock");
  EXPECT_EQ(one.since, 40);

  look.seen = 39;  // it ran after that
  EXPECT_EQ(merged(of_cpus, look).waits_for, "futex");
  const TraceStanding runs{{true, 7}, Activity::kRunning, {}, "", {}, "", ""};
  EXPECT_EQ(merged(runs, look).activity, Activity::kRunning);
}

TEST(TraceMerge, AHangLastsUntilTheWindowEndsWhereTheClockIsTheWindows) {
  for (const auto& [window, end] : {std::pair(TimeSpan{5, 1000}, TimeNs{1000}),
                                    {TimeSpan{70, 1000}, 60},
                                    {TimeSpan{5, 40}, 60},
                                    {TimeSpan{5, INT64_MAX}, 60}}) {
    TraceHead head;
    head.window.emplace().time = window;
    std::vector<TracePart> parts;
    parts.push_back({Sample(), 0});
    const auto merged = MergeTraces(std::move(head), std::move(parts));
    EXPECT_EQ(merged->head().time.to, end) << window.from << " to " << window.to;
    LinesOf(*merged);
    EXPECT_EQ(merged->end().time, end);
  }
}

TEST(TraceMerge, PartsComeInTheOrderOfTimeAndThoseOfOneTimeInTheirs) {
  auto a = std::make_unique<FakeTrace>();
  const size_t cpu = a->Track(RingKind::kCpu, 0, "CPU 0");
  const size_t tick = a->Kind("tick");
  for (const TimeNs time : {5, 20, 60}) a->Event(cpu, tick, time);
  const auto merged = Merged(std::move(a), Sample(), 0);
  EXPECT_THAT(
      LinesOf(*merged),
      ElementsAre("5 CPU 0 tick", "10 core 0 reader plain", "20 CPU 0 tick",
                  "20 core 1 writer plain", "30 core 0 reader sched:switch",
                  "40 core 1 writer lost 7", "40 core 1 writer plain", "50 core 0 reader plain",
                  "60 CPU 0 tick", "60 core 1 writer sched:switch"));
  EXPECT_EQ(merged->end().events, 9u);
  EXPECT_EQ(merged->end().losses, 1u);
  EXPECT_EQ(merged->head().time, (TimeSpan{5, 60}));
  EXPECT_EQ(merged->progress(), 1);
}

TEST(TraceMerge, KindsOfOneNameAreToldApart) {
  auto a = std::make_unique<FakeTrace>();
  a->Event(a->Track(RingKind::kCpu, 0, "CPU 0"), a->Kind("plain"), 1);
  const auto merged = Merged(std::move(a), Sample(), 0);
  EXPECT_THAT(LinesOf(*merged)[1], "10 core 0 reader plain (2)");
}

TEST(TraceMerge, MemoriesOfADeviceHaveTheirKindsInCommon) {
  std::vector<TracePart> parts;
  for (const char* const name : {"core 0 (0,0)", "core 0 (1,0)"}) {
    auto part = std::make_unique<FakeTrace>();
    part->Event(part->Track(RingKind::kCore, 0, name), part->Kind("plain"), 1);
    parts.push_back({std::move(part), 0, true});
  }
  const auto merged = MergeTraces(TraceHead(), std::move(parts));
  EXPECT_THAT(LinesOf(*merged), ElementsAre("1 core 0 (0,0) plain", "1 core 0 (1,0) plain"));
}

// Who asks for the next one gives the one before to be overwritten.
TEST(TraceMerge, AnEventHasNothingOfTheOneThatItsMemoryHeld) {
  TraceItem item;
  auto& before = item.emplace<TraceEvent>();
  before.ambiguous = before.from_waits = true;
  before.task = before.from = before.to = 7;
  before.what = before.where = "a text that is too long for the string itself";
  before.count = 9;
  const TraceEvent& next = BeginEvent(&item);
  EXPECT_FALSE(next.ambiguous || next.from_waits || next.task || next.from || next.to);
  EXPECT_EQ(next.what + next.where, "");
  EXPECT_EQ(next.count, 0u);
  item = TraceLoss();
  EXPECT_EQ(BeginEvent(&item).values.size(), 0u);
}

// A firmware's task 2 is not the thread 2.
TEST(TraceMerge, TasksOfAPartAreShiftedWhereverTheyAreNamed) {
  constexpr int64_t kShift = 1000;
  auto a = std::make_unique<FakeTrace>();
  a->its_head.tasks = {{2, "kthreadd"}};
  const auto merged = Merged(std::move(a), Sample(), kShift);
  std::vector<int64_t> seen;
  TraceItem item;
  while (merged->Next(&item).value_or(false)) {
    const auto* event = std::get_if<TraceEvent>(&item);
    if (event == nullptr) continue;
    for (const auto& task : {event->task, event->from, event->to}) {
      if (task) seen.push_back(*task);
    }
  }
  EXPECT_THAT(seen, ElementsAre(1001, 1002, 1002, 1001, 1002));
  EXPECT_EQ(merged->head().tasks.at(2), "kthreadd");
  EXPECT_EQ(merged->head().tasks.at(1002), "second");
  EXPECT_EQ(merged->end().standings.at(2).who, (TraceWho{true, 1002}));
  EXPECT_EQ(merged->end().standings.at(0).who, (TraceWho{false, 0}));  // a core stays what it is
}

TEST(TraceMerge, APartThatCannotBeReadOnIsATroubleAndTheOtherGoesOn) {
  auto a = std::make_unique<FakeTrace>();
  a->Event(a->Track(RingKind::kCpu, 0, "CPU 0"), a->Kind("tick"), 15);
  a->failure = Status::Io("the disk is gone");
  const auto merged = Merged(std::move(a), Sample(), 0);
  EXPECT_EQ(LinesOf(*merged).size(), 8u);
  EXPECT_THAT(merged->end().warnings, ElementsAre("the disk is gone"));
}

TEST(TraceMerge, FailsWhereNoPartCanBeReadOn) {
  auto a = std::make_unique<FakeTrace>();
  a->failure = Status::Io("the disk is gone");
  std::vector<TracePart> parts;
  parts.push_back({std::move(a), 0});
  EXPECT_THAT(LinesOf(*MergeTraces(TraceHead(), std::move(parts))),
              ElementsAre("the disk is gone"));
}

TEST(TraceFilter, TimesAreOfTheClockOrBackFromTheEnd) {
  TraceRequest request;
  request.from = 30;
  request.to = 50;
  EXPECT_THAT(Filtered(request),
              ElementsAre("30 core 0 reader sched:switch", "40 core 1 writer lost 7",
                          "40 core 1 writer plain", "50 core 0 reader plain"));
  request.from = -10;
  request.to.reset();
  EXPECT_THAT(Filtered(request),
              ElementsAre("50 core 0 reader plain", "60 core 1 writer sched:switch"));
}

TEST(TraceFilter, ALossThatReachesIntoTheTimeIsKept) {
  TraceRequest request;
  request.to = 25;
  EXPECT_THAT(Filtered(request), ElementsAre("10 core 0 reader plain", "20 core 1 writer plain",
                                             "40 core 1 writer lost 7"));
}

TEST(TraceFilter, HowItStoodLaterIsNoPartOfATimeBefore) {
  TraceRequest request;
  request.to = 50;
  std::unique_ptr<TraceSource> kept;
  (void)Filtered(request, &kept);
  EXPECT_TRUE(kept->end().standings.empty());
  EXPECT_EQ(kept->end().events, 5u);
  EXPECT_EQ(kept->head().time, (TimeSpan{10, 50}));
}

TEST(TraceFilter, CoresByNumberRangeAndName) {
  for (const char* cores : {"1", "1-5", "writer", "core 1 writer"}) {
    TraceRequest request;
    request.cores = cores;
    std::unique_ptr<TraceSource> kept;
    EXPECT_THAT(Filtered(request, &kept),
                ElementsAre("20 core 1 writer plain", "40 core 1 writer lost 7",
                            "40 core 1 writer plain", "60 core 1 writer sched:switch"))
        << cores;
    EXPECT_EQ(kept->head().tracks.size(), 1u);
    EXPECT_EQ(kept->end().standings.size(), 2u);  // the core's, and the task's
  }
  TraceRequest request;
  request.cores = "7";
  EXPECT_THAT(Filtered(request), ElementsAre(AllOf(HasSubstr("--core '7'"),
                                                   HasSubstr("core 0 reader, core 1 writer"))));
}

TEST(TraceFilter, ATaskIsWhoRanWhoLeftAndWhoCame) {
  for (const char* task : {"2", "second"}) {
    TraceRequest request;
    request.task = task;
    EXPECT_THAT(Filtered(request),
                ElementsAre("20 core 1 writer plain", "30 core 0 reader sched:switch",
                            "40 core 1 writer lost 7", "60 core 1 writer sched:switch"))
        << task;
  }
  TraceRequest request;
  request.task = "secnd";
  EXPECT_THAT(Filtered(request), ElementsAre(HasSubstr("but there is 'second'")));
}

TEST(TraceFilter, AnEventByItsNameWithItsSystemOrWithout) {
  for (const char* name : {"sched:switch", "switch"}) {
    TraceRequest request;
    request.event = name;
    EXPECT_THAT(Filtered(request),
                ElementsAre("30 core 0 reader sched:switch", "40 core 1 writer lost 7",
                            "60 core 1 writer sched:switch"))
        << name;
  }
  TraceRequest request;
  request.event = "plane";
  std::unique_ptr<TraceSource> kept;
  EXPECT_THAT(Filtered(request, &kept), ElementsAre("40 core 1 writer lost 7"));
  EXPECT_THAT(kept->end().warnings, ElementsAre(HasSubstr("there is 'plain'")));
}

TEST(TraceFilter, TheNewestEventsWithTheLossesAmongThem) {
  TraceRequest request;
  request.most_events = 3;
  std::unique_ptr<TraceSource> kept;
  EXPECT_THAT(Filtered(request, &kept),
              ElementsAre("40 core 1 writer lost 7", "40 core 1 writer plain",
                          "50 core 0 reader plain", "60 core 1 writer sched:switch"));
  EXPECT_EQ(kept->end().events, 3u);
  EXPECT_EQ(kept->end().losses, 1u);
}

TEST(TraceFilter, TimesThatHoldNothingAreRefused) {
  TraceRequest request;
  request.from = 70;
  EXPECT_THAT(Filtered(request),
              ElementsAre(HasSubstr("nothing is held of the time that is asked for")));
  request.from = 50;
  request.to = 40;
  EXPECT_THAT(Filtered(request), ElementsAre(HasSubstr("ends before it begins")));
}

}  // namespace
}  // namespace hangscope

#include "export/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/random_trace.h"
#include "fakes/timeline_recorder.h"
#include "fakes/trace_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Story = TraceStory;

class TimelineTest : public ::testing::Test {
 protected:
  void Draw(Story& story) {
    const Status status = story.AnnounceTo(builder);
    EXPECT_TRUE(status.ok()) << status.message();
    sink.Finish();
    EXPECT_THAT(sink.broken, IsEmpty());
  }

  TimelineRecorder sink;
  TimelineBuilder builder{sink};
};

TEST_F(TimelineTest, ShowsWhoRunsWhoWaitsAndWhoIsReady) {
  Story story(1, true);
  story.Switch(10, 0, {}, 5)
      .Switch(20, 0, 5, 6)
      .Wake(30, 0, 6, 5)
      .Switch(40, 0, 6, 5, false)
      .Switch(50, 0, 5, {}, true, "futex");
  Draw(story);
  EXPECT_EQ(sink.Picture("CPU 0"),
            "10..20 thread 5 reader; 20..40 thread 6 writer; 40..50 thread 5 reader");
  EXPECT_EQ(
      sink.Picture("thread 5 reader"),
      "10..20 running; 20..30 waiting; 30..40 ready; 40..50 running; 50..1000 waiting in futex");
  EXPECT_EQ(sink.Picture("thread 6 writer"), "20..40 running; 40..1000 ready");
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, DrawsAnArrowFromWhoWakesToTheEndOfTheWait) {
  Story story(1, true);
  story.Switch(10, 0, 5, 6).Wake(30, 0, 6, 5);
  Draw(story);
  ASSERT_EQ(sink.arrows.size(), 1u);
  EXPECT_EQ(sink.arrows[0].from, "thread 6 writer");
  EXPECT_EQ(sink.arrows[0].to, "thread 5 reader");
  EXPECT_EQ(sink.arrows[0].from_time, 30);
  EXPECT_EQ(sink.arrows[0].to_time, 30);
}

TEST_F(TimelineTest, DrawsNoArrowToWhoDoesNotWait) {
  Story story(1, true);
  story.Switch(10, 0, 5, 6).Wake(30, 0, 6, 6).Wake(35, 0, 6, 5).Wake(36, 0, 6, 5);
  Draw(story);
  EXPECT_EQ(sink.arrows.size(), 1u);
  EXPECT_EQ(sink.RowOf("CPU 0").instants.size(), 3u);
}

TEST_F(TimelineTest, GivesAnArrowFromAnIdleCoreASliceToBeginIn) {
  Story story(2, true);
  story.Switch(10, 0, 5, {}).Wake(30, 1, {}, 5);
  Draw(story);
  ASSERT_EQ(sink.arrows.size(), 1u);
  EXPECT_EQ(sink.arrows[0].from, "CPU 1");
  EXPECT_EQ(sink.Picture("CPU 1"), "30..30 sched:sched_wakeup");
}

TEST_F(TimelineTest, TakesATasksCallsWithItWhereItGoes) {
  Story story(2, true);
  story.Switch(10, 0, {}, 5).Enter(12, Story::kCallEnter, 0, 5, "read").Switch(20, 0, 5, 6);
  story.Switch(30, 1, {}, 5).Leave(40, Story::kCallLeave, 1, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("thread 5 reader"),
            "10..20 running; >12..20 read; 20..30 waiting in read; 30..1000 running; >30..40 read");
  EXPECT_THAT(sink.RowOf("thread 5 reader").slices[4].arguments,
              Contains(Pair("continued", "true")));
  EXPECT_EQ(sink.RowOf("thread 5 reader").slices[1].state, SliceState::kSystemCall);
}

TEST_F(TimelineTest, NestsInterruptsAndFunctionsInWhoRuns) {
  Story story(1, true);
  story.Switch(10, 0, {}, 5)
      .Enter(11, Story::kFunctionEnter, 0, 5, "main")
      .Enter(12, Story::kIrqEnter, 0, 5, "timer");
  story.Leave(14, Story::kIrqLeave, 0, 5)
      .Switch(20, 0, 5, 6)
      .Switch(30, 0, 6, 5)
      .Leave(40, Story::kFunctionLeave, 0, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("CPU 0"),
            "10..20 thread 5 reader; >11..20 main; >>12..14 timer; 20..30 thread 6 writer; "
            "30..1000 thread 5 reader; >30..40 main");
  EXPECT_EQ(sink.RowOf("CPU 0").slices[2].state, SliceState::kInterrupt);
  EXPECT_EQ(sink.RowOf("CPU 0").slices[1].state, SliceState::kFunction);
}

// A kernel may switch inside an interrupt: the interrupt goes on, whoever was interrupted.
TEST_F(TimelineTest, LetsAnInterruptGoOnThroughASwitch) {
  Story story(1);
  story.Switch(10, 0, {}, 5)
      .Enter(12, Story::kIrqEnter, 0, 5, "timer")
      .Switch(14, 0, 5, 6, false)
      .Leave(16, Story::kIrqLeave, 0, 6);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"),
            "10..14 task 5 reader; >12..14 timer; 14..1000 task 6 writer; >14..16 timer");
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, SeesByAnEventWhoRunsWhereNoSwitchSaidSo) {
  Story story(1);
  story.Plain(10, 0, 5).Plain(20, 0, 5).Plain(30, 0, 6);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "10..30 task 5 reader; 30..1000 task 6 writer");
  EXPECT_EQ(sink.Picture("task 5 reader"), "10..30 running");
  EXPECT_THAT(builder.notes(), ElementsAre(HasSubstr("1 switch is not in the trace")));
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, ClosesWhatIsOpenAtALossAndForgetsIt) {
  Story story(2, true);
  story.Switch(10, 0, {}, 5)
      .Enter(12, Story::kCallEnter, 0, 5, "read")
      .Switch(13, 1, {}, 6)
      .Enter(14, Story::kFunctionEnter, 0, {}, "idle");
  story.Lose(20, 40, 0, 12).Leave(50, Story::kCallLeave, 0, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("CPU 0"),
            "10..20 thread 5 reader; >14..20 idle; 20..40 gap; 50..1000 thread 5 reader");
  EXPECT_EQ(sink.Picture("thread 5 reader"), "10..20 running; >12..20 read; 50..1000 running");
  EXPECT_EQ(sink.Picture("thread 6 writer"), "13..1000 running")
      << "another CPU's thread has nothing to do with it";
  EXPECT_THAT(sink.RowOf("CPU 0").gaps, ElementsAre(Pair(20, "overwritten: 12 records")));
  EXPECT_THAT(sink.RowOf("CPU 0").instants, ElementsAre(Pair(50, "raw_syscalls:sys_exit")))
      << "its begin was lost";
  EXPECT_THAT(builder.notes(), ElementsAre(HasSubstr("1 end of something")));
}

TEST_F(TimelineTest, ShowsALossWithoutATimeOnce) {
  Story story(1);
  story.Plain(10).Lose(20, 20, 0, 1, GapReason::kTorn).Plain(30);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "");
  EXPECT_THAT(sink.RowOf("core 0").gaps, ElementsAre(Pair(20, "torn: 1 record")));
}

TEST_F(TimelineTest, PutsWhatIsStaleAroundWhatHappenedInIt) {
  Story story(2);
  story.head.window = WindowOf(story.head);
  story.head.window->rings[1].stale.push_back({{10, 60}, 40, 1});
  story.Plain(10, 1, 5).Plain(50, 1, 5).Plain(200, 0).Plain(300, 1, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 1"), "10..60 stale; >10..60 task 5 reader; 60..1000 task 5 reader");
  EXPECT_EQ(sink.RowOf("core 1").slices[0].state, SliceState::kStale);
  EXPECT_EQ(sink.Picture("task 5 reader"), "10..1000 running");
  EXPECT_THAT(sink.RowOf("core 1").gaps,
              ElementsAre(Pair(10, "stale: older than the window by 40 ns")));
}

TEST_F(TimelineTest, DrawsTheWindowsGapsWhereTheyLie) {
  Story story(2);
  story.head.window = WindowOf(story.head);
  story.head.window->gaps = {{0, {}, {200, 300}, GapReason::kBlind, 0, AmountUnit::kUnknown},
                             {1, 5, {400, 400}, GapReason::kNoRoom, 3, AmountUnit::kRecords}};
  story.Plain(110, 0, 5).Plain(350, 1).Plain(360, 0, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"),
            "110..200 task 5 reader; 200..300 gap; 360..1000 task 5 reader");
  EXPECT_EQ(sink.Picture("task 5 reader"), "110..200 running; 360..1000 running");
  EXPECT_THAT(sink.RowOf("core 1").gaps,
              ElementsAre(Pair(400, "dropped for want of room: 3 records, of task 5 reader")));
}

TEST_F(TimelineTest, ShowsALossThatTheWindowKnowsOnce) {
  Story story(2);
  story.head.window = WindowOf(story.head);
  story.head.window->gaps = {{0, {}, {200, 300}, GapReason::kOverwritten, 7, AmountUnit::kRecords}};
  story.Plain(110, 0).Lose(150, 300, 0, 7).Lose(400, 500, 0, 1).Plain(600, 0);
  Draw(story);
  EXPECT_THAT(sink.RowOf("core 0").gaps,
              ElementsAre(Pair(150, "overwritten: 7 records"), Pair(400, "overwritten: 1 record")));
  EXPECT_EQ(sink.Picture("core 0"), "150..300 gap; 400..500 gap");
}

TEST_F(TimelineTest, ShowsALossInWhatIsStaleInside) {
  Story story(1);
  story.head.window = WindowOf(story.head);
  story.head.window->rings[0].stale.push_back({{10, 60}, 40, 1});
  story.Plain(10).Lose(20, 30, 0, 2).Plain(40).Lose(55, 90, 0, 2).Plain(95);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "10..60 stale; >20..30 gap; >55..60 gap");
  EXPECT_EQ(sink.RowOf("core 0").gaps.size(), 3u);
}

TEST_F(TimelineTest, CountsOnARowBelowTheCore) {
  Story story(2);
  story.Fill(10, 1, 3).Fill(20, 1, 5);
  Draw(story);
  const auto& row = sink.RowOf("fill of cb3");
  EXPECT_THAT(row.counts, ElementsAre(Pair(10, 3), Pair(20, 5)));
  EXPECT_EQ(row.track.parent, sink.RowOf("core 1").track.id);
  EXPECT_EQ(sink.instants, 0u);
}

TEST_F(TimelineTest, CountsWhatManyCoresCountOnOneRow) {
  Story story(2);
  story.Queue(10, Story::kQueueSend, 0, "queue jobs", 1)
      .Queue(20, Story::kQueueReceive, 1, "queue jobs", 0)
      .Queue(30, Story::kQueueSend, 0, "queue results", 4);
  Draw(story);
  EXPECT_THAT(sink.RowOf("queue jobs").counts, ElementsAre(Pair(10, 1), Pair(20, 0)));
  EXPECT_THAT(sink.RowOf("queue results").counts, ElementsAre(Pair(30, 4)));
  EXPECT_EQ(sink.RowOf("queue jobs").track.parent, sink.RowOf("core 0").track.id);
  // They are events all the same.
  EXPECT_THAT(sink.RowOf("core 1").instants, ElementsAre(Pair(20, "queue_receive")));
}

TEST_F(TimelineTest, DrawsWaitsAndTransactionsOfTheCoreWhoeverRunsOnIt) {
  Story story(1);
  story.OfCore(10, Story::kWaitBegin, 0, 7, 5)
      .OfCore(20, Story::kBusBegin, 0, 0x1000, 5)
      .OfCore(30, Story::kBusEnd, 0, 0x1000, 5)
      .Switch(40, 0, 5, 6)
      .OfCore(50, Story::kWaitEnd, 0, 7, 6);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"),
            "10..40 task 5 reader; >10..40 waiting for 7; >>20..30 bus_read; 40..1000 task 6 "
            "writer; >40..50 waiting for 7");
  EXPECT_EQ(sink.RowOf("core 0").slices[1].state, SliceState::kWaiting);
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, EndsOnlyTheWaitThatEnds) {
  Story story(1);
  story
      .OfCore(10, Story::kWaitEnd, 0, 9)  // began before the ring
      .OfCore(20, Story::kWaitBegin, 0, 7)
      .OfCore(30, Story::kWaitEnd, 0, 8)  // its begin was not recorded
      .Enter(40, Story::kIrqEnter, 0, {}, "irq 3")
      .Leave(50, Story::kIrqLeave, 0, {})
      .Leave(55, Story::kIrqLeave, 0, {})   // no wait ends with it
      .OfCore(60, Story::kWaitBegin, 0, 6)  // one thing at a time
      .OfCore(70, Story::kWaitEnd, 0, 6);
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "20..60 waiting for 7; >40..50 irq 3; 60..70 waiting for 6");
  EXPECT_THAT(sink.RowOf("core 0").instants, ElementsAre(Pair(10, "wait_end"), Pair(30, "wait_end"),
                                                         Pair(55, "irq:irq_handler_exit")));
  EXPECT_THAT(builder.notes(),
              ElementsAre("3 ends of something whose begin is not in the trace are drawn as events",
                          "1 slice without an end is drawn to the end of the one around it"));
}

TEST_F(TimelineTest, ShowsWaypointsBelowTheCoreUpToWhatIsLost) {
  Story story(1);
  story.AtWaypoint(10, 0, "CRBW", "cb.c:41")
      .OfCore(15, Story::kWaitBegin, 0, 7)
      .AtWaypoint(20, 0, "NRBW")  // in the middle of the wait
      .Lose(30, 60, 0, 4)
      .AtWaypoint(70, 0, "CRBD")
      .AtWaypoint(80, 0, "");
  Draw(story);
  EXPECT_EQ(sink.Picture("waypoints"), "10..20 CRBW; 20..30 NRBW; 70..80 CRBD");
  EXPECT_THAT(sink.RowOf("waypoints").slices[0].arguments, ElementsAre(Pair("where", "cb.c:41")));
  EXPECT_EQ(sink.RowOf("waypoints").track.parent, sink.RowOf("core 0").track.id);
  EXPECT_EQ(sink.Picture("core 0"), "15..30 waiting for 7; 30..60 gap");
}

TEST_F(TimelineTest, DrawsAWaitOnceWhereItsBeginWasRecorded) {
  Story story(2);
  story.OfCore(20, Story::kWaitBegin, 0, 7);
  for (const int64_t core : {0, 1}) {
    TraceStanding standing;
    standing.who = {false, core};
    standing.activity = Activity::kWaiting;
    standing.since = 30;
    standing.waits_for = core == 0 ? "7" : "8";
    story.end.standings.push_back(standing);
  }
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "20..1000 waiting for 7");
  EXPECT_EQ(sink.Picture("core 1"), "30..1000 waiting for 8");
}

TEST_F(TimelineTest, EndsWithHowEverybodyStandsAndForWhom) {
  Story story(2);
  story.Plain(10, 0).Plain(20, 1);
  story.end.standings = {{.who = {false, 0},
                          .activity = Activity::kWaiting,
                          .since = 500,
                          .waits_for = "cb3 of (1,2)",
                          .by = {{false, 1}},
                          .place = "dataflow.c:88",
                          .fault = ""},
                         {.who = {false, 1},
                          .activity = Activity::kHalted,
                          .since = 400,
                          .waits_for = "",
                          .by = {},
                          .place = "",
                          .fault = "assert"},
                         {.who = {true, 7},
                          .activity = Activity::kWaiting,
                          .since = {},
                          .waits_for = "",
                          .by = {{false, 0}},
                          .place = "",
                          .fault = ""},
                         {.who = {false, 9},
                          .activity = Activity::kSilent,
                          .since = 600,
                          .waits_for = "",
                          .by = {},
                          .place = "",
                          .fault = ""}};
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "500..1000 waiting for cb3 of (1,2)");
  EXPECT_THAT(sink.RowOf("core 0").slices[0].arguments,
              ElementsAre(Pair("place", "dataflow.c:88")));
  EXPECT_EQ(sink.Picture("core 1"), "400..1000 halted");
  EXPECT_EQ(sink.RowOf("core 1").slices[0].state, SliceState::kHalted);
  EXPECT_EQ(sink.Picture("core 9"), "600..1000 silent")
      << "it has no ring, and stands all the same";
  ASSERT_EQ(sink.arrows.size(), 2u);
  EXPECT_EQ(sink.arrows[0].from + " > " + sink.arrows[0].to + ": " + sink.arrows[0].name,
            "core 1 > core 0: waited for: cb3 of (1,2)");
  EXPECT_EQ(sink.arrows[1].from + " > " + sink.arrows[1].to, "core 0 > task 7");
}

TEST_F(TimelineTest, DoesNotBeginAStandingBeforeWhatHappenedLast) {
  Story story(1);
  story.Plain(700, 0);
  story.end.standings = {{.who = {false, 0},
                          .activity = Activity::kWaiting,
                          .since = 500,
                          .waits_for = "",
                          .by = {},
                          .place = "",
                          .fault = ""}};
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "700..1000 waiting");
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, DrawsAStandingOfUnknownAgeAsFarBackAsNothingElseIsKnown) {
  Story story(3);
  story.head.time = {5, 1000};
  story.Plain(700, 1);
  for (int64_t core = 0; core < 3; ++core) {
    story.end.standings.push_back({.who = {false, core},
                                   .activity = Activity::kHalted,
                                   .since = {},
                                   .waits_for = "",
                                   .by = {},
                                   .place = "",
                                   .fault = ""});
  }
  story.end.standings[2].since = 5000;  // behind the end
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "5..1000 halted");
  EXPECT_EQ(sink.Picture("core 1"), "700..1000 halted");
  EXPECT_EQ(sink.Picture("core 2"), "5..1000 halted");
  EXPECT_THAT(sink.RowOf("core 2").slices[0].arguments, ElementsAre(Pair("since", "not known")));
}

// It ends behind the last event: until then it ran, waited, or did what nobody recorded.
TEST_F(TimelineTest, DrawsNobodyEndedBeforeTheEnd) {
  Story story(1, true);
  story.Switch(10, 0, {}, 5).Switch(20, 0, 5, {}, true, "futex");
  for (const auto& [thread, since] : {std::pair(5, 1000), {6, 1200}, {7, 900}}) {
    TraceStanding& standing = story.end.standings.emplace_back();
    standing.who = {true, thread};
    standing.activity = Activity::kEnded;
    standing.since = since;
  }
  Draw(story);
  EXPECT_EQ(sink.Picture("thread 5 reader"), "10..20 running; 20..1000 waiting in futex");
  EXPECT_EQ(sink.Picture("thread 7"), "900..1000 ended");
  for (const auto& row : sink.rows())
    EXPECT_TRUE(row.track.name != "thread 6 writer" || row.slices.empty());
}

// Of a recording of some threads: who comes when one of them leaves says nothing when it goes.
TEST_F(TimelineTest, KnowsNothingOfACpuWhileSomebodyRunsWhoIsNotRecorded) {
  Story story(1, true);
  story.Switch(10, 0, {}, 5).Switch(20, 0, 5, 44, true, "futex");
  std::get<TraceEvent>(story.items.back()).to_recorded = false;
  story.Enter(25, Story::kIrqEnter, 0, {}, "timer").Leave(26, Story::kIrqLeave, 0, {});
  story.Switch(30, 0, {}, 5).Switch(40, 0, 5, 44);
  std::get<TraceEvent>(story.items.back()).to_recorded = false;
  Draw(story);
  EXPECT_EQ(sink.Picture("CPU 0"),
            "10..20 thread 5 reader; 20..30 not recorded; >25..26 timer; 30..40 thread 5 reader; "
            "40..1000 not recorded");
  EXPECT_EQ(sink.RowOf("CPU 0").slices[1].state, SliceState::kGap);
  EXPECT_THAT(builder.warnings(), IsEmpty());
}

TEST_F(TimelineTest, LetsATaskRunOnOneCoreOnly) {
  Story story(2, true);
  story.Switch(10, 0, {}, 5).Switch(20, 1, {}, 5);
  Draw(story);
  EXPECT_EQ(sink.Picture("CPU 0"), "10..20 thread 5 reader");
  EXPECT_EQ(sink.Picture("CPU 1"), "20..1000 thread 5 reader");
  EXPECT_EQ(sink.Picture("thread 5 reader"), "10..20 running; 20..1000 running");
  EXPECT_THAT(builder.warnings(), ElementsAre(HasSubstr("1 time a task ran on two cores")));
}

TEST_F(TimelineTest, TakesASwitchThatIsToldTwiceOnce) {
  Story story(1, true);
  story.Switch(10, 0, {}, 6)
      .Enter(12, Story::kCallEnter, 0, 6, "poll")
      .Switch(15, 0, 6, 5)
      .Switch(20, 0, 5, 6)
      .Switch(20, 0, 5, 6);
  story.Leave(30, Story::kCallLeave, 0, 6);
  Draw(story);
  EXPECT_EQ(sink.Picture("thread 6 writer"),
            "10..15 running; >12..15 poll; 15..20 waiting in poll; 20..1000 running; >20..30 poll");
  EXPECT_THAT(sink.RowOf("CPU 0").instants, ElementsAre(Pair(20, "sched:sched_switch")));
  EXPECT_THAT(builder.notes(), ElementsAre(HasSubstr("1 switch says what is known already")));
}

TEST_F(TimelineTest, ForgetsWhoRanWhenAnotherLeaves) {
  Story story(1, true);
  story.Switch(10, 0, {}, 5).Switch(20, 0, 6, 7);
  Draw(story);
  EXPECT_EQ(sink.Picture("thread 5 reader"), "10..20 running");
  EXPECT_EQ(sink.Picture("thread 6 writer"), "20..1000 waiting");
  EXPECT_THAT(builder.notes(), ElementsAre(HasSubstr("1 switch is not in the trace")));
}

TEST_F(TimelineTest, TellsEndsWithoutABeginAndBeginsWithoutAnEnd) {
  Story story(1);
  story.Leave(10, Story::kCallLeave, 0, 5)
      .Leave(11, Story::kFunctionLeave, 0, {})
      .Enter(20, Story::kFunctionEnter, 0, {}, "main");
  story.Enter(21, Story::kIrqEnter, 0, {}, "timer")
      .Leave(30, Story::kFunctionLeave, 0, {})
      .Leave(40, Story::kIrqLeave, 0, {});
  Draw(story);
  EXPECT_EQ(sink.Picture("core 0"), "10..1000 task 5 reader; >20..30 main; >>21..30 timer");
  EXPECT_EQ(sink.instants, 3u);
  EXPECT_THAT(builder.notes(),
              ElementsAre(HasSubstr("3 ends of something"), HasSubstr("1 slice without an end")));
}

TEST_F(TimelineTest, DrawsNoDeeperThanItCanHold) {
  Story story(1);
  for (TimeNs time = 1; time <= 300; ++time)
    story.Enter(time, Story::kFunctionEnter, 0, {}, "again");
  for (TimeNs time = 301; time <= 600; ++time) story.Leave(time, Story::kFunctionLeave, 0, {});
  Draw(story);
  EXPECT_EQ(sink.RowOf("core 0").slices.size(), 256u);
  EXPECT_EQ(sink.RowOf("core 0").slices[0].to, 600);
  EXPECT_EQ(sink.instants, 88u) << "44 begins, 44 ends";
  EXPECT_THAT(builder.warnings(), ElementsAre(HasSubstr("44 slices are nested too deeply")));
}

TEST_F(TimelineTest, DrawsATimeThatGoesBackwardsLate) {
  Story story(1);
  story.Plain(20).Plain(10);
  Draw(story);
  EXPECT_THAT(sink.RowOf("core 0").instants,
              ElementsAre(Pair(20, "mutex_lock"), Pair(20, "mutex_lock")));
  EXPECT_THAT(builder.warnings(), ElementsAre(HasSubstr("1 time lies before")));
}

TEST_F(TimelineTest, LeavesOutEventsOfNoTrackAndSaysSo) {
  Story story(1);
  story.Plain(10, 7).Lose(20, 30, 8, 1);
  Draw(story);
  EXPECT_THAT(builder.warnings(), ElementsAre(HasSubstr("2 events of no track")));
}

TEST_F(TimelineTest, StopsWhereTheSinkFails) {
  Story story(1);
  story.Plain(10).Plain(20);
  sink.fail = Status::Io("the disk is full");
  const Status status = story.AnnounceTo(builder);
  EXPECT_EQ(status.message(), "the disk is full");
  EXPECT_EQ(sink.instants, 0u);
  sink.fail = {};
  EXPECT_FALSE(builder.Write(story.At(30, Story::kPlain)).ok()) << "what is missing stays missing";
  EXPECT_EQ(sink.instants, 0u);
}

TEST_F(TimelineTest, GivesRowsToNoMoreTasksThanItCanHold) {
  Story story(1);
  ASSERT_TRUE(builder.Begin(story.head).ok());
  for (int64_t task = 0; task < 65536 + 10; ++task)
    ASSERT_TRUE(builder.Write(story.At(task, Story::kPlain, 0, task)).ok());
  story.end.time = 70000;
  ASSERT_TRUE(builder.End(story.end).ok());
  sink.Finish();
  EXPECT_THAT(sink.broken, IsEmpty());
  EXPECT_EQ(sink.rows().size(), 65536u + 1);
  EXPECT_EQ(sink.instants, 65546u);
  EXPECT_THAT(builder.warnings(), Contains(HasSubstr("10 events of tasks beyond the first 65536")));
}

// What is drawn keeps its promises, and each event and loss is in it.
TEST(RandomTimelineTest, NestsBalancesAndSortsWhateverComes) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomTrace trace(seed);
    TimelineRecorder sink;
    TimelineBuilder builder(sink);
    ASSERT_TRUE(trace.story.AnnounceTo(builder).ok());
    sink.Finish();
    ASSERT_THAT(sink.broken, IsEmpty());
    uint64_t plain = 0, wakes = 0, counts = 0, gaps = 0;
    for (const TimelineRecorder::Row& row : sink.rows()) {
      counts += row.counts.size();
      gaps += row.gaps.size();
      for (const auto& [time, name] : row.instants) {
        plain += name == "mutex_lock";
        wakes += name == "sched:sched_wakeup";
      }
      for (const TimelineRecorder::Slice& slice : row.slices) ASSERT_LE(slice.from, slice.to);
    }
    ASSERT_EQ(plain, trace.plain);
    ASSERT_EQ(wakes, trace.wakes);
    ASSERT_EQ(counts, trace.counts);
    ASSERT_GE(gaps, trace.losses);
  }
}
}  // namespace
}  // namespace hangscope

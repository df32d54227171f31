// A perf.data as a trace: its records in the order of time, whatever the file's order; and what
// they mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_trace.h"
#include "fakes/perf_story.h"
#include "perf/perf_sorter.h"
#include "trace/trace_of_cpus.h"
#include "trace/trace_source.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSleeps = 1;  // TASK_INTERRUPTIBLE

struct Opened {
  FakeFileSystem files;
  std::unique_ptr<TraceSource> trace;
  std::vector<TraceEvent> events;
  std::vector<TraceLoss> losses;

  explicit Opened(const std::string& bytes) {
    EXPECT_TRUE(WriteWholeFile(files, "perf.data", bytes).ok());
    auto opened = OpenCpuTrace(files, "perf.data");
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status().message();
      return;
    }
    trace = std::move(*opened);
    TraceItem item;
    while (trace->Next(&item).value_or(false)) {
      if (const auto* event = std::get_if<TraceEvent>(&item))
        events.push_back(*event);
      else
        losses.push_back(std::get<TraceLoss>(item));
    }
  }
  std::vector<TimeNs> Times() const {
    std::vector<TimeNs> times;
    for (const TraceEvent& event : events) times.push_back(event.time);
    return times;
  }
  const TraceEventKind& KindOf(const TraceEvent& event) const {
    return trace->head().kinds.at(event.kind);
  }
  const TraceStanding* Standing(int64_t tid) const {
    for (const TraceStanding& standing : trace->end().standings) {
      if (standing.who == TraceWho{true, tid}) return &standing;
    }
    return nullptr;
  }
};

// What a sorter returns of a file, as times.
std::vector<TimeNs> Sorted(const std::string& bytes, PerfSorterOptions options,
                           uint64_t* late = nullptr) {
  FakeFileSystem files;
  EXPECT_TRUE(WriteWholeFile(files, "perf.data", bytes).ok());
  auto file = PerfFile::Open(files, "perf.data");
  if (!file.ok()) {
    ADD_FAILURE() << file.status().message();
    return {};
  }
  PerfSorter sorter(**file, options);
  const Status status = (*file)->ForEachPlaced(
      [&](const PerfRecord& record, const PerfRecordPlace& place, std::string_view own) {
        return sorter.Add(record, place, own).ok();
      });
  EXPECT_TRUE(status.ok());
  std::vector<TimeNs> times;
  PerfRecord record;
  while (sorter.Next(&record).value_or(false)) times.push_back(record.time);
  EXPECT_EQ(sorter.returned(), sorter.added());
  if (late != nullptr) *late = sorter.late();
  return times;
}

// Calls at `times`, in that order.
std::string FileOf(const std::vector<TimeNs>& times) {
  PerfStory story;
  for (const TimeNs time : times) story.Call(time, static_cast<int>(time % 4), 7, 1);
  return story.image.File();
}

std::vector<TimeNs> Shuffled(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TimeNs> times;
  for (size_t i = 0; i < count; ++i) times.push_back(static_cast<TimeNs>(random() % 5000));
  return times;
}

// As that which tells of the last switches of tasks.
TEST(TraceCpusTest, AnEventThatIsRecordedTwiceIsOneKind) {
  PerfStory story;
  PerfEvent again = story.image.events[0];
  again.ids = {4711};
  story.image.events.push_back(again);
  story.Switch(10, 0, 5, 6, 0);
  const Opened opened(story.image.File());
  ASSERT_FALSE(opened.events.empty());
  std::vector<std::string> names;
  for (const TraceEventKind& kind : opened.trace->head().kinds) names.push_back(kind.name);
  EXPECT_EQ(std::count(names.begin(), names.end(), "sched:sched_switch"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "sched:sched_switch (2)"), 0);
}

TEST(PerfSorter, AnyOrderOfTheFileComesInTheOrderOfTime) {
  std::vector<std::vector<TimeNs>> orders = {Shuffled(500, 1), Shuffled(500, 2)};
  std::vector<TimeNs> up, rings, down;
  for (TimeNs time = 0; time < 500; ++time) up.push_back(time);
  for (TimeNs ring = 0; ring < 5; ++ring) {  // ring after ring, each in order
    for (TimeNs time = ring; time < 500; time += 5) rings.push_back(time);
  }
  down.assign(up.rbegin(), up.rend());
  orders.push_back(up);
  orders.push_back(rings);
  orders.push_back(down);
  for (const uint64_t block_bytes : {200u, 3000u, 1u << 20}) {
    for (size_t i = 0; i < orders.size(); ++i) {
      std::vector<TimeNs> expected = orders[i];
      std::sort(expected.begin(), expected.end());
      uint64_t late = 0;
      EXPECT_TRUE(Sorted(FileOf(orders[i]), {block_bytes, 1u << 30}, &late) == expected)
          << "order " << i << ", blocks of " << block_bytes;
      EXPECT_EQ(late, 0u);
    }
  }
}

TEST(PerfSorter, WhatWasCompressedIsSortedToo) {
  PerfStory story;
  std::vector<TimeNs> times = Shuffled(300, 3);
  for (const TimeNs time : times) story.Call(time, 0, 7, 1);
  story.image.records = PerfCompressed(story.image.records, 1000);
  std::sort(times.begin(), times.end());
  EXPECT_TRUE(Sorted(story.image.File(), {2000, 1u << 30}) == times);
}

TEST(PerfSorter, BytesOfHardwareTracesBetweenRecordsAreNotTakenForRecords) {
  PerfStory story;
  std::vector<TimeNs> times;
  for (TimeNs time = 100; time > 0; --time) {
    story.Call(time, 0, 7, 1);
    if (time % 10 == 0) story.Auxtrace(0, 0, 64);
    times.push_back(101 - time);
  }
  EXPECT_TRUE(Sorted(story.image.File(), PerfSorterOptions()) == times);
}

// Where the memory does not do, all is returned all the same, and counted.
TEST(PerfSorter, TooLittleOrderForTheMemoryIsCounted) {
  std::vector<TimeNs> times = Shuffled(500, 4);
  uint64_t late = 0;
  std::vector<TimeNs> got = Sorted(FileOf(times), {500, 2000}, &late);
  EXPECT_GT(late, 0u);
  std::sort(got.begin(), got.end());
  std::sort(times.begin(), times.end());
  EXPECT_TRUE(got == times);
}

TEST(TraceOfCpus, SwitchesSayWhoLeftWhoCameAndInWhatItWaits) {
  PerfStory story;
  story.Call(100, 1, 7, 202);  // futex
  story.Switch(110, 1, 7, kSleeps, 8);
  story.Switch(120, 1, 8, 0, 0);  // preempted, and nobody comes
  story.Wake(130, 0, 9, 7);
  story.Switch(140, 1, 0, 0, 7);
  story.Return(150, 1, 7, 202);
  const Opened opened(story.image.File());
  ASSERT_EQ(opened.events.size(), 6u);
  EXPECT_EQ(opened.KindOf(opened.events[0]).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(opened.events[0].task, 7);
#if defined(__x86_64__)
  EXPECT_EQ(opened.events[0].what, "futex");
  EXPECT_EQ(opened.events[1].what, "futex");
#endif
  EXPECT_EQ(opened.KindOf(opened.events[1]).name, "sched:sched_switch");
  EXPECT_EQ(opened.KindOf(opened.events[1]).meaning, TraceMeaning::kSwitch);
  EXPECT_EQ(opened.events[1].from, 7);
  EXPECT_EQ(opened.events[1].to, 8);
  EXPECT_TRUE(opened.events[1].from_waits);
  EXPECT_FALSE(opened.events[2].from_waits);
  EXPECT_EQ(opened.events[2].to, std::nullopt);
  EXPECT_EQ(opened.KindOf(opened.events[3]).meaning, TraceMeaning::kWake);
  EXPECT_EQ(opened.events[3].to, 7);
  EXPECT_EQ(opened.events[3].task, 9);
  EXPECT_EQ(opened.KindOf(opened.events[5]).meaning, TraceMeaning::kLeave);
}

TEST(TraceOfCpus, FieldsAreTypedByTheirFormat) {
  PerfStory story;
  story.Switch(110, 1, 7, kSleeps, 8);
  const Opened opened(story.image.File());
  ASSERT_EQ(opened.events.size(), 1u);
  std::vector<std::string> told;
  const TraceEventKind& kind = opened.KindOf(opened.events[0]);
  for (size_t i = 0; i < kind.fields.size(); ++i) {
    const TraceValue& value = opened.events[0].values.at(i);
    told.push_back(
        kind.fields[i].name + "=" +
        (kind.fields[i].type == TraceFieldType::kText ? value.text : std::to_string(value.bits)));
  }
  EXPECT_THAT(told, ElementsAre("prev_comm=task7", "prev_pid=7", "prev_state=1", "next_comm=task8",
                                "next_pid=8"));
}

TEST(TraceOfCpus, EachCpuIsATrackAndThreadsHaveNames) {
  PerfStory story;
  story.Comm(7, "decoder");
  story.Switch(10, 3, 7, kSleeps, 8);
  story.Switch(20, 0, 9, 0, 7);
  const Opened opened(story.image.File());
  ASSERT_EQ(opened.trace->head().tracks.size(), 2u);
  EXPECT_EQ(opened.trace->head().tracks[1].name, "CPU 3");
  EXPECT_EQ(opened.trace->head().tracks[1].ring, (RingName{RingKind::kCpu, 3, "events"}));
  EXPECT_EQ(opened.events[0].track, 1u);
  EXPECT_EQ(opened.trace->head().tasks.at(7), "decoder");
  EXPECT_EQ(opened.trace->head().tasks.at(8), "task8");
  EXPECT_EQ(opened.trace->head().time, (TimeSpan{10, 20}));
}

TEST(TraceOfCpus, WhatTheKernelLostIsALossBetweenWhatIsLeft) {
  PerfStory story;
  story.Call(100, 0, 7, 1);
  story.Lost(150, 0, 12);
  story.Call(160, 0, 7, 1);
  const Opened opened(story.image.File());
  ASSERT_EQ(opened.losses.size(), 1u);
  EXPECT_EQ(opened.losses[0].time, (TimeSpan{100, 150}));
  EXPECT_EQ(opened.losses[0].amount, 12u);
  EXPECT_EQ(opened.losses[0].reason, GapReason::kNoRoom);
  EXPECT_EQ(opened.events[1].sequence, 13u);  // gaps in it are losses
}

TEST(TraceOfCpus, ThreadsStandAtTheEndAsTheLastRecordsSay) {
  PerfStory story;
  story.Call(100, 0, 7, 202);
  story.Switch(110, 0, 7, kSleeps, 8);
  story.Switch(120, 0, 8, kSleeps, 9);
  story.Call(125, 0, 9, 1);
  story.Switch(127, 0, 9, 0, 11);  // which is not recorded itself
  story.Exit(130, 0, 10);
  const Opened opened(story.image.File());
  ASSERT_NE(opened.Standing(7), nullptr);
  ASSERT_NE(opened.Standing(8), nullptr);
  ASSERT_NE(opened.Standing(9), nullptr);
#if defined(__x86_64__)
  EXPECT_EQ(opened.Standing(7)->activity, Activity::kWaiting);
  EXPECT_EQ(opened.Standing(7)->waits_for, "futex");
#endif
  EXPECT_EQ(opened.Standing(7)->since, 110);
  EXPECT_EQ(opened.Standing(8)->activity, Activity::kIdle);  // nobody knows in what
  EXPECT_EQ(opened.Standing(9)->activity, Activity::kRunning);
  EXPECT_EQ(opened.Standing(10)->activity, Activity::kEnded);
  EXPECT_EQ(opened.Standing(11), nullptr);
}

TEST(TraceOfCpus, WhatACutFileHasIsToldAndThatItWasCut) {
  PerfStory story;
  for (TimeNs time = 0; time < 100; ++time) story.Call(time, 0, 7, 1);
  uint64_t records_at = 0;
  std::string bytes = story.image.Pipe();
  (void)story.image.File(&records_at);
  const size_t whole = Opened(bytes).events.size();
  ASSERT_EQ(whole, 100u);
  bytes.resize(bytes.size() - story.image.records.back().size() - 3);
  const Opened opened(bytes);
  EXPECT_EQ(opened.events.size(), 98u);
  EXPECT_THAT(opened.trace->head().warnings, Contains(HasSubstr("is not whole")));
}

TEST(TraceOfCpus, NothingBelowTheTimeOfTheEventBefore) {
  PerfStory story;
  for (const TimeNs time : Shuffled(200, 5)) story.Call(time, 0, 7, 1);
  const Opened opened(story.image.File());
  EXPECT_EQ(opened.events.size(), 200u);
  const std::vector<TimeNs> times = opened.Times();
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(opened.trace->progress(), 1);
  EXPECT_THAT(opened.trace->end().warnings, IsEmpty());
}

// Without tracepoints, records of switches tell who ran.
TEST(TraceOfCpus, SwitchRecordsCountOnceWhereNoTracepointTellsTheSame) {
  PerfImage image;
  PerfEvent event;
  event.name = "dummy:u";
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_DUMMY;
  event.attr.sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  event.attr.sample_id_all = 1;
  event.ids = {1};
  image.events = {event};
  const auto trailer = [](TimeNs time, int tid) {
    return PerfIds(tid, tid) + PerfBytes(time) + PerfBytes(0, 0) + PerfWord(1);
  };
  const auto record = [&](TimeNs time, int tid, int other, uint16_t misc) {
    image.records.push_back(PerfRecordOf(PERF_RECORD_SWITCH_CPU_WIDE,
                                         PerfIds(other, other) + trailer(time, tid), misc));
  };
  record(10, 7, 8, PERF_RECORD_MISC_SWITCH_OUT);
  record(11, 8, 7, 0);
  record(20, 8, 7, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  const Opened opened(image.File());
  ASSERT_EQ(opened.events.size(), 2u);
  EXPECT_EQ(opened.KindOf(opened.events[0]).name, "perf:switch");
  EXPECT_EQ(opened.events[0].from, 7);
  EXPECT_EQ(opened.events[0].to, 8);
  EXPECT_TRUE(opened.events[0].from_waits);
  EXPECT_FALSE(opened.events[1].from_waits);
}

// Of a recording of some threads.
TEST(TraceOfCpus, WhoHasNoRecordsOfItsOwnIsNotRecorded) {
  PerfStory story;
  story.Switch(10, 0, 7, kSleeps, 8);
  story.Switch(20, 0, 8, kSleeps, 44);
  const Opened some(story.image.File());
  ASSERT_EQ(some.events.size(), 2u);
  EXPECT_TRUE(some.events[0].to_recorded);
  EXPECT_EQ(some.events[1].to, 44);
  EXPECT_FALSE(some.events[1].to_recorded);
  story.Switch(30, 1, 0, 0, 9);
  const Opened whole(story.image.File());
  EXPECT_TRUE(whole.events[1].to_recorded) << "where the idle thread is recorded, everybody is";
}

TEST(TraceOfCpus, ThatOfASnapshotCoversWhatTheSnapshotDoes) {
  FakeFileSystem files;
  FakeClock clock;
  PerfStory story;
  story.Switch(10, 0, 7, kSleeps, 8);
  TraceRequest request;
  request.source.target = "s/cpu.perf.data";
  EXPECT_TRUE(WriteWholeFile(files, request.source.target, story.image.File()).ok());
  auto alone = OpenTraceSource(files, clock, request);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_FALSE((*alone)->head().window.has_value());
  EXPECT_TRUE(WriteWholeFile(files, "s/manifest.json",
                             R"({"format": "hangscope-snapshot", "version": 2, "window":
                             {"from_ns": 5, "to_ns": 90, "policy": "since-last"}})")
                  .ok());
  auto part = OpenTraceSource(files, clock, request);
  ASSERT_TRUE(part.ok());
  ASSERT_TRUE((*part)->head().window.has_value());
  EXPECT_EQ((*part)->head().window->time, (TimeSpan{5, 90}));
  EXPECT_EQ((*part)->head().trigger, 90);
  EXPECT_EQ((*part)->head().time.to, 90) << "up to the trigger nothing more happened";
}

TEST(TraceOfCpus, AFileThatIsNoneIsRefusedInOneSentence) {
  FakeFileSystem files;
  EXPECT_TRUE(WriteWholeFile(files, "x", "no perf.data").ok());
  EXPECT_THAT(OpenCpuTrace(files, "x").status().message(),
              AllOf(HasSubstr("'x'"), HasSubstr("no perf.data")));
}

}  // namespace
}  // namespace hangscope

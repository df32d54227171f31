// A scope as a trace: its events, what they mean, and how all stood at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_trace.h"
#include "fakes/scope_writer.h"
#include "fakes/watch_image.h"
#include "hangscope/abi/catalog.h"
#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/watch.h"
#include "trace/scope_kinds.h"
#include "trace/trace_of_scope.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum KernelId : uint32_t {
  kTaskSwitch = 18,
  kTaskSuspend = 19,
  kTaskResume = 20,
  kTaskDelay = 21,
  kSemaphoreWait = 23,
  kMutexLock = 25,
  kQueueSend = 29,
  kIsrEnter = 31,
  kIsrExit = 32
};

ScopeEvent EventOf(uint32_t id, std::vector<uint32_t> parameters,
                   std::optional<uint32_t> task = std::nullopt) {
  ScopeEvent event;
  event.id = id;
  event.task = task;
  event.parameter_count = static_cast<uint32_t>(parameters.size());
  std::copy(parameters.begin(), parameters.end(), event.parameters.begin());
  return event;
}

std::string Padded(std::string bytes) {
  while (bytes.size() % 4 != 0) bytes += '\0';
  return bytes;
}

// A catalog of events that have these names and a u32 each.
std::string CatalogOf(const std::vector<std::pair<uint32_t, std::string>>& names) {
  const auto word = [](uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), 4);
  };
  std::string entries;
  for (const auto& [id, name] : names)
    entries += Padded(word(HANGSCOPE_CATALOG_EVENT) + word(id) + word(0) + name + '\0' + "at %u" +
                      '\0' + "u32 place," + '\0');
  return word(HANGSCOPE_CATALOG_MAGIC) + word(HANGSCOPE_CATALOG_VERSION) +
         word(static_cast<uint32_t>(12 + entries.size())) + entries;
}

class Kinds {
 public:
  explicit Kinds(const std::vector<std::pair<uint32_t, std::string>>& names = {}) {
    EXPECT_TRUE(catalog_.Add(CatalogOf(names)).ok());
    kinds_.emplace(catalog_, nullptr, 8, 4);
  }
  TraceEvent Fill(const ScopeEvent& event) {
    TraceEvent filled;
    kinds_->Fill(event, &all, &filled);
    return filled;
  }
  const TraceEventKind& Of(uint32_t id) { return all[kinds_->Of(id, &all)]; }

  std::vector<TraceEventKind> all;

 private:
  ScopeCatalog catalog_;
  std::optional<ScopeKinds> kinds_;
};

TEST(ScopeKinds, WhatBeginsAndEndsIsToldByNamesOfWhichBothAreThere) {
  Kinds kinds({{64, "dma_begin"},
               {65, "dma_end"},
               {66, "flush_enter"},
               {67, "flush_exit"},
               {68, "bus_start"},
               {69, "bus_done"},
               {70, "alone_begin"},
               {71, "_begin"},
               {72, "_end"}});
  EXPECT_EQ(kinds.Of(64).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(kinds.Of(65).meaning, TraceMeaning::kLeave);
  EXPECT_EQ(kinds.Of(67).meaning, TraceMeaning::kLeave);
  EXPECT_EQ(kinds.Of(68).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(kinds.Of(70).meaning, TraceMeaning::kPlain);
  EXPECT_EQ(kinds.Of(71).meaning, TraceMeaning::kPlain);
  EXPECT_EQ(kinds.Fill(EventOf(64, {1})).what, "dma");
  EXPECT_EQ(kinds.Of(64).category, "user");
  EXPECT_EQ(kinds.Of(kIsrEnter).category, "isr");
}

TEST(ScopeKinds, InterruptsBeginAndEnd) {
  Kinds kinds;
  EXPECT_EQ(kinds.Of(kIsrEnter).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(kinds.Of(kIsrExit).meaning, TraceMeaning::kLeave);
  EXPECT_EQ(kinds.Fill(EventOf(kIsrEnter, {5})).what, "interrupt 5");
}

TEST(ScopeKinds, ASwitchSaysWhoAndInWhatTheTaskWaitsThatSaidSoLast) {
  Kinds kinds;
  (void)kinds.Fill(EventOf(kMutexLock, {0x2000, 9}, 4));  // which task 9 has
  (void)kinds.Fill(EventOf(kIsrEnter, {5}, 4));           // an interrupt comes between
  const TraceEvent waits = kinds.Fill(EventOf(kTaskSwitch, {4, 9}, 4));
  EXPECT_EQ(waits.from, 4);
  EXPECT_EQ(waits.to, 9);
  EXPECT_TRUE(waits.from_waits);
  EXPECT_EQ(waits.what, "mutex 0x2000");
  // that was said of the switch before
  EXPECT_FALSE(kinds.Fill(EventOf(kTaskSwitch, {4, 9}, 4)).from_waits);
}

TEST(ScopeKinds, ATaskThatGotWhatItWantedDoesNotWait) {
  const auto waits_after = [](const ScopeEvent& event) {
    Kinds kinds;
    (void)kinds.Fill(event);
    return kinds.Fill(EventOf(kTaskSwitch, {4, 9}, 4)).from_waits;
  };
  EXPECT_FALSE(waits_after(EventOf(kMutexLock, {0x2000, 4}, 4)));  // its own now
  EXPECT_FALSE(waits_after(EventOf(kSemaphoreWait, {0x2000, 0}, 4)));
  EXPECT_TRUE(waits_after(EventOf(kSemaphoreWait, {0x2000, ~0u}, 4)));
  EXPECT_TRUE(waits_after(EventOf(kTaskDelay, {10}, 4)));
  EXPECT_TRUE(waits_after(EventOf(kTaskSuspend, {4}, 4)));
  EXPECT_FALSE(waits_after(EventOf(kTaskSuspend, {7}, 4)));  // another
  EXPECT_FALSE(waits_after(EventOf(kTaskDelay, {10}, 5)));   // another's word
}

TEST(ScopeKinds, TheHistoryOfACoreIsItsOwn) {
  Kinds kinds;
  const TraceEvent begin = kinds.Fill(EventOf(HANGSCOPE_ID_WAIT_BEGIN, {0x77, 2}));
  EXPECT_EQ(begin.what, "waiting for 0x77");
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_WAIT_BEGIN).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_WAIT_END).meaning, TraceMeaning::kLeave);
  EXPECT_TRUE(kinds.Of(HANGSCOPE_ID_WAIT_END).of_track);
  EXPECT_EQ(kinds.Fill(EventOf(HANGSCOPE_ID_WAIT_END, {0x77, 1})).values[0].bits, 0x77u);
  const uint32_t write = HANGSCOPE_ID_BEFORE_BUS + HANGSCOPE_BUS_INLINE_WRITE;
  EXPECT_EQ(kinds.Fill(EventOf(write, {0x1000, 4})).what, "bus_inline_write");
  EXPECT_EQ(kinds.Of(write).meaning, TraceMeaning::kEnter);
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_BUS_END).name, "bus_end");
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_BUS_END).meaning, TraceMeaning::kLeave);
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_BUS_END).category, "history");
  // "CRBW", the first character in the low byte
  EXPECT_EQ(kinds.Fill(EventOf(HANGSCOPE_ID_WAYPOINT, {0x57425243, 0})).what, "CRBW");
  EXPECT_EQ(kinds.Of(HANGSCOPE_ID_WAYPOINT).meaning, TraceMeaning::kState);
  EXPECT_FALSE(kinds.Of(kIsrEnter).of_track);
}

TEST(ScopeKinds, QueuesAndWhatIsCountedHaveAFill) {
  Kinds kinds;
  const TraceEvent counted = kinds.Fill(EventOf(HANGSCOPE_ID_COUNTER, {0x77, 3}));
  EXPECT_EQ(counted.what, "0x77");
  EXPECT_EQ(counted.count, 3u);
  EXPECT_FALSE(kinds.Of(HANGSCOPE_ID_COUNTER).also_event);
  const TraceEvent sent = kinds.Fill(EventOf(kQueueSend, {0x2000, 5}, 4));
  EXPECT_EQ(sent.what, "queue 0x2000");
  EXPECT_EQ(sent.count, 5u);
  EXPECT_TRUE(kinds.Of(kQueueSend).also_event);
  EXPECT_EQ(kinds.Of(kQueueSend).meaning, TraceMeaning::kCounter);
  const std::string counter = kinds.Of(kQueueSend).counter;
  EXPECT_EQ(kinds.Of(kQueueSend + 1).counter, counter);
}

// A core may say where it is between its task's word and the switch.
TEST(ScopeKinds, TheHistoryOfACoreIsNoTasksWord) {
  Kinds kinds;
  (void)kinds.Fill(EventOf(kSemaphoreWait, {0x2000, ~0u}, 4));
  (void)kinds.Fill(EventOf(HANGSCOPE_ID_WAYPOINT, {0x57425243, 0}, 4));
  EXPECT_TRUE(kinds.Fill(EventOf(kTaskSwitch, {4, 9}, 4)).from_waits);
}

TEST(ScopeKinds, NobodyIsNoTask) {
  Kinds kinds;
  EXPECT_EQ(kinds.Fill(EventOf(kTaskSwitch, {0, 3})).from, std::nullopt);
  EXPECT_EQ(kinds.Fill(EventOf(kTaskSwitch, {3, HANGSCOPE_NO_TASK})).to, std::nullopt);
  EXPECT_EQ(kinds.Fill(EventOf(kTaskResume, {3})).to, 3);
  EXPECT_EQ(kinds.Of(kTaskResume).meaning, TraceMeaning::kWake);
}

TEST(ScopeKinds, AnEventThatNoCatalogHasShowsItsParameters) {
  Kinds kinds;
  const TraceEvent event = kinds.Fill(EventOf(900, {11, 12}));
  EXPECT_EQ(kinds.all[event.kind].name, "event 900");
  ASSERT_EQ(event.values.size(), 4u);
  EXPECT_EQ(event.values[1].bits, 12u);
  EXPECT_TRUE(event.values[1].known);
  EXPECT_FALSE(event.values[2].known);
}

TEST(ScopeKinds, TwoIdsOfOneNameAreTwoKinds) {
  Kinds kinds({{64, "same"}, {65, "same"}});
  EXPECT_EQ(kinds.Of(64).name, "same");
  EXPECT_EQ(kinds.Of(65).name, "same (65)");
}

class TraceOfScope : public ::testing::Test {
 protected:
  TraceOfScope() : writer_(&target_, 2, 8) {}

  // As the target is now, and dead.
  std::unique_ptr<TraceSource> Open(const ScopeTraceOptions& options = {}) {
    ScopeSource source;
    source.target = "the target";
    source.open = [this]() -> Result<std::unique_ptr<Target>> {
      auto copy = std::make_unique<FakeTarget>(target_.memory);
      copy->state = Life::kDead;
      return std::unique_ptr<Target>(std::move(copy));
    };
    auto opened = OpenScopeTrace(files_, clock_, source, options);
    if (opened.ok()) return std::move(opened->source);
    ADD_FAILURE() << opened.status().message();
    return std::make_unique<FakeTrace>();
  }

  FakeFileSystem files_;
  FakeClock clock_;
  FakeTarget target_;
  ScopeWriter writer_;
};

TEST_F(TraceOfScope, EventsOfAllCoresComeInTheOrderOfTime) {
  for (const uint64_t time : {100, 300, 500}) writer_.Write(0, 900, time);
  for (const uint64_t time : {200, 300, 400}) writer_.Write(1, 900, time);
  const auto trace = Open();
  EXPECT_EQ(trace->head().time, (TimeSpan{100, 500}));
  EXPECT_THAT(LinesOf(*trace),
              ElementsAre("100 core 0 event 900", "200 core 1 event 900", "300 core 0 event 900",
                          "300 core 1 event 900", "400 core 1 event 900", "500 core 0 event 900"));
  EXPECT_EQ(trace->end().events, 6u);
  EXPECT_EQ(trace->end().time, 500);
  EXPECT_EQ(trace->progress(), 1);
  EXPECT_THAT(trace->head().warnings, IsEmpty());
}

TEST_F(TraceOfScope, WhatIsOverwrittenOrTornIsALossWhereItWas) {
  for (uint64_t i = 0; i < 12; ++i) {
    if (i == 9)
      (void)writer_.Take(0, writer_.Reserve(0));  // begun, and never finished
    else
      writer_.Write(0, 900, 1000 + i * 10);
  }
  const auto trace = Open();
  std::vector<TraceLoss> losses;
  uint64_t next = 4;  // 8 of 12 are held
  TraceItem item;
  while (trace->Next(&item).value_or(false)) {
    if (const auto* loss = std::get_if<TraceLoss>(&item)) {
      losses.push_back(*loss);
      next += loss->reason == GapReason::kTorn ? 1 : 0;
    } else {
      EXPECT_EQ(std::get<TraceEvent>(item).sequence, next++);
    }
  }
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].reason, GapReason::kOverwritten);
  EXPECT_EQ(losses[0].amount, 4u);
  EXPECT_EQ(losses[0].time, (TimeSpan{1040, 1040}));
  EXPECT_EQ(losses[1].reason, GapReason::kTorn);
  EXPECT_EQ(losses[1].amount, 1u);
  EXPECT_EQ(losses[1].time, (TimeSpan{1080, 1100}));
  EXPECT_EQ(trace->end().losses, 2u);
}

// Handlers that interrupt one another record out of order, by little.
TEST_F(TraceOfScope, TimesOfATrackNeverFall) {
  for (const uint64_t time : {100, 90, 120}) writer_.Write(0, 900, time);
  EXPECT_THAT(LinesOf(*Open()),
              ElementsAre("100 core 0 event 900", "100 core 0 event 900", "120 core 0 event 900"));
}

TEST_F(TraceOfScope, TimesAreMonotonicWhereItIsKnownHowTheClocksWentTogether) {
  writer_.Write(0, 900, 1000);
  writer_.Write(1, 900, 3000);
  const auto trace = Open({{{0, 2000, 7'000'000, 2.0, 10}}, false});
  // a shared clock
  EXPECT_THAT(LinesOf(*trace), ElementsAre("6998000 core 0 event 900", "7002000 core 1 event 900"));
}

TEST_F(TraceOfScope, AClockOfUnknownRateCounts) {
  writer_.header().clock_hz = 0;
  writer_.PutHeader();
  writer_.Write(0, 900, 1234);
  const auto trace = Open();
  EXPECT_TRUE(trace->head().counts_clock);
  EXPECT_EQ(trace->head().time.to, 1234);
}

TEST_F(TraceOfScope, ClocksThatCannotBeComparedAreTold) {
  writer_.header().clock_kind = HANGSCOPE_CLOCK_CYCLES;
  writer_.PutHeader();
  writer_.Write(0, 900, 1);
  EXPECT_THAT(Open()->head().warnings, Contains(HasSubstr("a clock of its own")));
}

TEST(TraceOfScopeEnd, WhoWaitsForWhatAndWhoHasIt) {
  WatchImageOptions options;
  options.tasks = 2;
  WatchImage image(options);
  image.Put(0, offsetof(hangscope_mailbox, heartbeat), 1);
  image.Wait(1, 0x77, HANGSCOPE_RESOURCE_EXCLUSIVE, 5000);
  image.PutClaim(0, 0, 0x77);  // core 0 has it
  image.TaskWaits(0, 3, HANGSCOPE_RESOURCE_EXCLUSIVE, 0x2000, 4);
  image.TaskWaits(1, 4, HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);
  FakeFileSystem files;
  FakeClock clock;
  ScopeSource source;
  source.target = "the target";
  source.open = [&image]() -> Result<std::unique_ptr<Target>> {
    auto copy = std::make_unique<FakeTarget>(image.target.memory);
    copy->state = Life::kDead;
    return std::unique_ptr<Target>(std::move(copy));
  };
  auto trace = OpenScopeTrace(files, clock, source, {});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_THAT(LinesOf(*trace->source), IsEmpty());
  std::map<TraceWho, TraceStanding> by_who;
  for (const TraceStanding& standing : trace->source->end().standings)
    by_who[standing.who] = standing;
  ASSERT_EQ(by_who.size(), 4u);
  EXPECT_EQ((by_who[{false, 0}].activity), Activity::kRunning);
  const TraceStanding& core = by_who[{false, 1}];
  EXPECT_EQ(core.activity, Activity::kWaiting);
  EXPECT_EQ(core.waits_for, "0x77");
  EXPECT_EQ(core.since, 5000);
  EXPECT_THAT(core.by, ElementsAre(TraceWho{false, 0}));
  EXPECT_THAT((by_who[{true, 3}].by), ElementsAre(TraceWho{true, 4}));
  EXPECT_EQ((by_who[{true, 4}].activity), Activity::kIdle);
  EXPECT_EQ((by_who[{true, 4}].waits_for), "time to pass");
  EXPECT_EQ(trace->source->end().time, 5000);  // of the wait that began last
}

TEST(TraceOfScopeEnd, AFaultIsTold) {
  WatchImage image;
  image.Put(2, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  image.PutDetail(2, offsetof(hangscope_detail, fault) + offsetof(hangscope_fault, type),
                  HANGSCOPE_FAULT_ASSERT);
  image.PutDetail(2, offsetof(hangscope_detail, fault) + offsetof(hangscope_fault, line), 41);
  FakeFileSystem files;
  FakeClock clock;
  ScopeSource source;
  source.target = "the target";
  source.open = [&image]() -> Result<std::unique_ptr<Target>> {
    return std::unique_ptr<Target>(std::make_unique<FakeTarget>(image.target.memory));
  };
  auto trace = OpenScopeTrace(files, clock, source, {});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->source->end().standings.size(), 1u);
  EXPECT_EQ(trace->source->end().standings[0].activity, Activity::kHalted);
  EXPECT_THAT(trace->source->end().standings[0].fault, HasSubstr("41"));
}

}  // namespace
}  // namespace hangscope

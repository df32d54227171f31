// hangscope why pid:N with looks that were written down.
#include "why/why_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fake_process_inspector.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

SystemSample Locked() {
  SystemSample look;
  ProcessFacts process;
  process.pid = 10, process.name = "program";
  ThreadFacts thread;
  thread.pid = thread.tid = 10, thread.state = ThreadState::kSleeping, thread.system_call = 202;
  thread.wait.kind = WaitKind::kMutex, thread.wait.owner = 10, thread.wait.variable = "lock";
  process.threads.push_back(thread);
  look.processes.push_back(process);
  return look;
}

WhyProcessOptions Options() {
  WhyProcessOptions options;
  options.pid = 10;
  return options;
}

TEST(WhyProcess, TheFirstLookStopsNobodyAndTheSecondComesInTime) {
  FakeClock clock;
  FakeProcessInspector inspector;
  const TimeNs begin = clock.Monotonic();
  SystemSample look = Locked();
  look.begin = begin;
  inspector.Add(look);
  const auto report = AskWhyProcess(clock, inspector, Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->is_bad);
  EXPECT_THAT(report->text, StartsWith("HANG: deadlock, a thread waits for itself (certain)\n"));
  EXPECT_EQ(clock.Monotonic() - begin, 50 * kMillisecond);
  ASSERT_EQ(inspector.asked.size(), 2u);
  EXPECT_FALSE(inspector.asked[0].second.stop || inspector.asked[0].second.step_running);
  EXPECT_TRUE(inspector.asked[1].second.stop && inspector.asked[1].second.stacks);
}

TEST(WhyProcess, AMachineOfJavaThatCannotBeReadIsAskedWhereThatIsWanted) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  look.begin = clock.Monotonic();
  look.processes[0].has_unread_java = true;
  inspector.Add(look);
  WhyProcessOptions options = Options();
  ASSERT_TRUE(AskWhyProcess(clock, inspector, options).ok());
  EXPECT_EQ(inspector.asked.size(), 2u) << "nobody is asked unless that is wanted";
  options.ask_java = [](int pid) { return Result<std::string>(std::to_string(pid) + " said"); };
  auto report = AskWhyProcess(clock, inspector, options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(inspector.asked.back().second.java_threads.at(10), "10 said");
  EXPECT_THAT(report->text, HasSubstr("; its virtual machine halted them"));
  options.ask_java = [](int) { return Result<std::string>(Status::Io("it does not answer")); };
  report = AskWhyProcess(clock, inspector, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(inspector.asked.back().second.java_threads.empty());
  EXPECT_THAT(report->text, HasSubstr("it does not answer"));
}

// Who runs the program looks at it from time to time, and may do so just when it has ended.
TEST(WhyProcess, AProgramThatHasJustEndedIsNoHangToWhoStartedIt) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  inspector.Add(look);
  EXPECT_EQ(FindProcessHangs(clock, inspector, 10).findings.size(), 1u);
  FakeProcessInspector ended;
  look.processes[0].state = look.processes[0].threads[0].state = ThreadState::kZombie;
  look.processes[0].threads[0].wait = {};
  ended.Add(look);
  EXPECT_TRUE(FindProcessHangs(clock, ended, 10).findings.empty());
  EXPECT_THAT(AskWhyProcess(clock, ended, Options())->text, HasSubstr("zombie"));
}

// Who asks for itself waits a second to see whether a lock is tried again and again; a recorder
// does not.
TEST(WhyProcess, ARecorderIsNotKeptForLocksWithTimeLimits) {
  const auto lasts = [](const std::function<void(Clock&, ProcessInspector&)>& ask) {
    FakeClock clock;
    FakeProcessInspector inspector;
    SystemSample look = Locked();
    ThreadFacts& thread = look.processes[0].threads[0];
    thread.wait.has_timeout = thread.naps_again = true;
    look.begin = clock.Monotonic();
    inspector.Add(look);
    const TimeNs begin = clock.Monotonic();
    ask(clock, inspector);
    return clock.Monotonic() - begin;
  };
  EXPECT_GE(lasts([](Clock& clock, ProcessInspector& inspector) {
              (void)AskWhyProcess(clock, inspector, Options());
            }),
            kSecond);
  EXPECT_EQ(lasts([](Clock& clock, ProcessInspector& inspector) {
              FindProcessHangs(clock, inspector, 10);
            }),
            50 * kMillisecond);
}

// It would count as one that works where a look has not seen it.
TEST(WhyProcess, WhomALockThatIsTriedAgainLedToIsInEveryLook) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  ThreadFacts& thread = look.processes[0].threads[0];
  thread.wait.has_timeout = true;
  inspector.Add(look);
  ProcessFacts other = look.processes[0];
  other.pid = other.threads[0].pid = other.threads[0].tid = 20;
  look.processes.push_back(other);
  inspector.Add(look);
  (void)AskWhyProcess(clock, inspector, Options());
  ASSERT_GT(inspector.asked.size(), 4u);
  EXPECT_THAT(inspector.asked[1].second.with, IsEmpty());
  for (size_t i = 2; i < inspector.asked.size(); ++i)
    EXPECT_THAT(inspector.asked[i].second.with, ElementsAre(20)) << i;
}

// In the look that would tell most, it runs.
TEST(WhyProcess, WhoIsAwakeBetweenTwoTriesIsAsleepInAnotherLook) {
  FakeClock clock;
  FakeProcessInspector inspector;
  for (uint64_t i = 0; i < 8; ++i) {
    SystemSample look = Locked();
    ThreadFacts& thread = look.processes[0].threads[0];
    thread.wait.has_timeout = true;
    thread.voluntary_switches = 5 * i;
    if (i == 1) thread.state = ThreadState::kRunning, thread.wait = {};
    inspector.Add(look);
  }
  WhyProcessOptions options = Options();
  options.stop = false;
  const auto report = AskWhyProcess(clock, inspector, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->text, StartsWith("HANG: deadlock, a thread waits for itself (likely)\n"));
}

// Whoever waits longer than a moment is told for what.
// Beside who waits for itself: one that naps, and had to wait for a CPU when it was looked at.
TEST(WhyProcess, ATickerThatWaitsForACpuIsAsleepInAnotherLook) {
  FakeClock clock;
  SystemSample look = Locked();
  ThreadFacts ticker;
  ticker.pid = 10, ticker.tid = 11, ticker.name = "ticker";
  ticker.state = ThreadState::kRunning;
  look.processes[0].threads.push_back(ticker);
  const auto at = [&](TimeNs begin, TimeNs cpu_time, bool naps) {
    SystemSample now = look;
    now.begin = now.end = begin;
    ThreadFacts& thread = now.processes[0].threads[1];
    thread.cpu_time = cpu_time;
    if (naps) thread.state = ThreadState::kSleeping, thread.wait.has_timeout = true;
    return now;
  };
  const auto ask = [&](TimeNs cpu_time, bool naps) {
    FakeProcessInspector inspector;
    inspector.Add(at(kSecond, 0, false));
    inspector.Add(at(kSecond + 50 * kMillisecond, kMillisecond, false));
    inspector.Add(at(kSecond + 80 * kMillisecond, kMillisecond, false));
    inspector.Add(at(kSecond + 110 * kMillisecond, cpu_time, naps));
    const auto report = AskWhyProcess(clock, inspector, Options());
    return std::pair(report.ok() ? report->text : report.status().message(),
                     inspector.asked.size());
  };
  EXPECT_EQ(ask(kMillisecond, true).second, 4u) << "no more than it takes";
  EXPECT_THAT(ask(kMillisecond, true).first, Not(HasSubstr("partial")));
  EXPECT_THAT(ask(20 * kMillisecond, true).first, HasSubstr("partial")) << "it works";
  EXPECT_THAT(ask(kMillisecond, false).first, HasSubstr("partial")) << "it never naps";
  EXPECT_EQ(ask(kMillisecond, false).second, 6u);
}

// Where a rank of MPI was when it ran could not be told.
TEST(WhyProcess, ARankThatWasNotSeenPollingIsLookedAtAgain) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  ProcessFacts& process = look.processes[0];
  process.rank.emplace();
  process.threads[0].state = ThreadState::kRunning;
  process.threads[0].wait = {};
  inspector.Add(look);
  inspector.Add(look);
  inspector.Add(look);
  process.threads[0].wait.kind = WaitKind::kRanks;
  inspector.Add(look);
  ASSERT_TRUE(AskWhyProcess(clock, inspector, Options()).ok());
  EXPECT_EQ(inspector.asked.size(), 5u) << "two, two more, and one a second later";
}

TEST(WhyProcess, WhatTakesLongIsSaidAfterAMoment) {
  const auto told = [](bool naps) {
    FakeClock clock;
    FakeProcessInspector inspector;
    SystemSample look = Locked();
    look.processes[0].threads[0].wait.has_timeout = naps;
    look.processes[0].threads[0].naps_again = naps;
    look.begin = clock.Monotonic();
    inspector.Add(look);
    std::vector<TimeNs> times;
    WhyProcessOptions options = Options();
    options.observing = [&](const std::string& text) {
      EXPECT_THAT(text, HasSubstr("again and again"));
      times.push_back(clock.Monotonic() - look.begin);
    };
    (void)AskWhyProcess(clock, inspector, options);
    return times;
  };
  EXPECT_TRUE(told(false).empty());
  const std::vector<TimeNs> times = told(true);
  ASSERT_FALSE(times.empty());
  EXPECT_GE(times.front(), 300 * kMillisecond);
  EXPECT_LE(times.front(), 400 * kMillisecond);
}

TEST(WhyProcess, AnotherProcessFindsTheSame) {
  FakeClock clock;
  FakeProcessInspector inspector;
  inspector.Add(Locked());
  const ProcessHangs here = FindProcessHangs(clock, inspector, 10);
  const auto beside = FindProcessHangsBeside(clock, inspector, 10);
  ASSERT_TRUE(beside.ok()) << beside.status().message();
  const std::vector<Finding>& found = beside.value().findings;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, here.findings[0].kind);
  EXPECT_EQ(found[0].confidence, here.findings[0].confidence);
  EXPECT_EQ(found[0].summary, here.findings[0].summary);
  EXPECT_EQ(found[0].evidence, here.findings[0].evidence);
  EXPECT_EQ(found[0].doubts, here.findings[0].doubts);
  EXPECT_EQ(found[0].is_warning, here.findings[0].is_warning);
  EXPECT_FALSE(here.findings[0].lines.empty());
  EXPECT_EQ(found[0].lines, here.findings[0].lines);
  EXPECT_EQ(FindingObject(found[0]), FindingObject(here.findings[0]));
  EXPECT_EQ(beside.value().threads.size(), here.threads.size());
}

TEST(WhyProcess, AnotherProcessTellsTheSameOfHowAllStand) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  const auto add = [&](int tid, WaitKind kind, ThreadState state) {
    ThreadFacts thread;
    thread.pid = 10, thread.tid = tid, thread.wait.kind = kind, thread.state = state;
    look.processes[0].threads.push_back(thread);
  };
  add(11, WaitKind::kTime, ThreadState::kSleeping);
  add(12, WaitKind::kAccept, ThreadState::kSleeping);
  add(13, WaitKind::kOther, ThreadState::kSleeping);
  add(14, WaitKind::kNone, ThreadState::kStopped);
  add(15, WaitKind::kNone, ThreadState::kRunning);
  inspector.Add(look);
  HangQuestion question = 10;
  question.descendants = true;
  question.also = {20};
  const ProcessHangs hangs = FindProcessHangs(clock, inspector, question);
  const ProcessStanding& here = hangs.standing;
  const auto beside = FindProcessHangsBeside(clock, inspector, question);
  ASSERT_TRUE(beside.ok()) << beside.status().message();
  const ProcessStanding& there = beside.value().standing;
  EXPECT_THAT(here.tickers, testing::ElementsAre(11));
  EXPECT_EQ(there.tickers, here.tickers);
  EXPECT_THAT(here.moving, testing::ElementsAre(15));
  EXPECT_EQ(there.moving, here.moving);
  EXPECT_EQ(here.outside.size(), 1u);
  EXPECT_EQ(there.outside, here.outside);
  EXPECT_EQ(here.unknown.size(), 1u);
  EXPECT_EQ(there.unknown, here.unknown);
  EXPECT_EQ(here.halted.size(), 1u);
  EXPECT_EQ(there.halted, here.halted);
  EXPECT_TRUE(here.complete && there.complete);
  EXPECT_EQ(beside.value().still_threads, hangs.still_threads);
  ASSERT_EQ(hangs.waits.size(), 1u);
  ASSERT_EQ(beside.value().waits.size(), 1u);
  const Wait& wait = beside.value().waits[0];
  EXPECT_EQ(wait.line, hangs.waits[0].line);
  EXPECT_EQ(wait.since, hangs.waits[0].since);
  EXPECT_EQ(wait.who.name, hangs.waits[0].who.name);
  EXPECT_EQ(wait.who.waits_for, hangs.waits[0].who.waits_for);
  EXPECT_EQ(wait.who.thread, 10);
  ASSERT_EQ(wait.whom.size(), 1u);
  EXPECT_EQ(wait.whom[0].thread, hangs.waits[0].whom[0].thread);
  for (const auto& [pid, asked] : inspector.asked) {
    EXPECT_TRUE(asked.descendants && !asked.stop && !asked.step_running);
    EXPECT_THAT(asked.also, testing::ElementsAre(20));
  }
  question.step = true;
  FindProcessHangs(clock, inspector, question);
  EXPECT_TRUE(inspector.asked.back().second.step_running);
}

class CrashingInspector final : public ProcessInspector {
  Result<SystemSample> Inspect(int, const InspectOptions&) override {
    raise(SIGSEGV);
    return Status::NotFound("");
  }
};

TEST(WhyProcess, WhatEndsTheOtherProcessIsSaid) {
  FakeClock clock;
  CrashingInspector inspector;
  EXPECT_THAT(FindProcessHangsBeside(clock, inspector, 10).status().message(),
              HasSubstr("signal 11"));
}

TEST(WhyProcess, WhoeverMayNotBeStoppedIsNot) {
  FakeClock clock;
  FakeProcessInspector inspector;
  inspector.Add(Locked());
  WhyProcessOptions options = Options();
  options.stop = false;
  ASSERT_TRUE(AskWhyProcess(clock, inspector, options).ok());
  for (const auto& [pid, asked] : inspector.asked) EXPECT_FALSE(asked.stop || asked.step_running);
}

TEST(WhyProcess, AProcessThatIsNotThereOrHasEndedMeanwhile) {
  FakeClock clock;
  FakeProcessInspector none;
  EXPECT_EQ(AskWhyProcess(clock, none, Options()).status().code(), Status::Code::kNotFound);
  FakeProcessInspector ends;
  ends.Add(Locked());
  ends.Add(SystemSample{});
  EXPECT_EQ(AskWhyProcess(clock, ends, Options()).status().message(),
            "process 10 has ended while it was looked at");
  FakeProcessInspector other;
  other.Add(Locked());
  SystemSample another = Locked();
  another.processes[0].pid = 11;
  other.Add(another);
  EXPECT_FALSE(AskWhyProcess(clock, other, Options()).ok());
}

TEST(WhyProcess, AProcessThatEndsMeanwhileIsNoZombieThatItsParentForgot) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  inspector.Add(look);
  look.processes[0].state = look.processes[0].threads[0].state = ThreadState::kZombie;
  look.processes[0].threads[0].wait = {};
  inspector.Add(look);
  EXPECT_EQ(AskWhyProcess(clock, inspector, Options()).status().message(),
            "process 10 has ended while it was looked at");
}

TEST(WhyProcess, OfAProgramOfAnotherWidthItDoesNotSayThatItIsFine) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  ProcessFacts& process = look.processes[0];
  process.is_32_bit = process.is_hidden = true;  // on a machine whose 32-bit calls nobody reads
  process.threads[0].wait = {};
  process.threads[0].stack = {{0x1000, "", "", "program"}};
  process.warnings.push_back("process 10 is a 32-bit program");
  inspector.Add(look);
  EXPECT_EQ(AskWhyProcess(clock, inspector, Options()).status().message(),
            "process 10 is a 32-bit program");
}

TEST(WhyProcess, WhatWorksIsClean) {
  FakeClock clock;
  FakeProcessInspector inspector;
  inspector.Add(Locked());
  SystemSample later = Locked();
  later.processes[0].threads[0].voluntary_switches = 1;
  inspector.Add(later);
  WhyProcessOptions options = Options();
  options.json = true;
  const auto report = AskWhyProcess(clock, inspector, options);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->is_bad);
  EXPECT_THAT(report->text, HasSubstr(R"("state":"progressing")"));
}

TEST(WhyProcess, OfWhatMayNotBeLookedAtItDoesNotSayThatItIsFine) {
  FakeClock clock;
  FakeProcessInspector inspector;
  SystemSample look = Locked();
  look.processes[0].threads[0].wait = {};
  look.processes[0].warnings.push_back("process 10 may not be looked at; run hangscope as root");
  inspector.Add(look);
  EXPECT_EQ(AskWhyProcess(clock, inspector, Options()).status().message(),
            "process 10 may not be looked at; run hangscope as root");
  FakeProcessInspector in_part;
  ThreadFacts known = look.processes[0].threads[0];
  known.tid = 11, known.wait.kind = WaitKind::kTime;
  look.processes[0].threads.push_back(known);
  in_part.Add(look);
  EXPECT_TRUE(AskWhyProcess(clock, in_part, Options()).ok());
}

}  // namespace
}  // namespace hangscope

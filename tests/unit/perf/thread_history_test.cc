// What is told of threads from the rings of their own: a worker that its main thread wakes, and
// that stops.
#include "perf/thread_history.h"

#include <gtest/gtest.h>

#include "cpu/side_band_recorder.h"
#include "fakes/perf_bytes.h"

namespace hangscope {
namespace {

constexpr int kMain = 4711;
constexpr int kWorker = 4713;
constexpr TimeNs kNow = 100 * kSecond;
constexpr uint64_t kSwitches = 900;
constexpr uint64_t kWakes = 901;

class ThreadHistoryTest : public ::testing::Test {
 protected:
  ThreadHistoryTest() {
    PerfEvent switches;
    switches.attr.sample_type =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    switches.attr.sample_id_all = 1;
    switches.ids = {kSwitches};
    PerfEvent wakes = switches;
    wakes.attr.sample_type |= PERF_SAMPLE_RAW;
    wakes.ids = {kWakes};
    wakes.format =
        "name: sched_waking\nID: 375\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
        "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
        "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
    capture_.events = {switches, wakes};
    capture_.time = kNow;
    Add(kMain, "main");
    Add(kWorker, "worker-b");
  }

  ThreadRing& Ring(int thread) {
    for (ThreadRing& each : capture_.threads) {
      if (each.thread == thread) return each;
    }
    return capture_.threads.front();
  }
  void Add(int thread, const std::string& name) {
    ThreadRing ring;
    ring.process = kMain;
    ring.thread = thread;
    ring.name = name;
    ring.ring.tid = thread;
    ring.ring.recording_since = 50 * kSecond;
    capture_.threads.push_back(ring);
  }
  void Switches(int thread, TimeNs time, uint16_t misc) {
    Ring(thread).ring.records +=
        MakePerfRecord(PERF_RECORD_SWITCH, misc, "", {kMain, thread, time, 0, kSwitches});
  }
  void Comes(int thread, TimeNs time) { Switches(thread, time, 0); }
  void Leaves(int thread, TimeNs time, bool preempted = false) {
    Switches(thread, time,
             PERF_RECORD_MISC_SWITCH_OUT | (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));
  }
  void Runs(int thread, TimeNs from, TimeNs to) {
    Comes(thread, from);
    Leaves(thread, to);
  }
  // `global`: the waker's number in the kernel's own namespace.
  void Wakes(int thread, TimeNs time, int whom, uint8_t flags = 0, int global = 0) {
    const std::string raw =
        PerfBytes(uint16_t{375}, flags, uint8_t{0}, global == 0 ? thread : global) +
        std::string(16, '\0') + PerfBytes(whom);
    Ring(thread).ring.records +=
        PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(kWakes) + PerfIds(kMain, thread) +
                                             PerfBytes(time) + PerfBytes(0, 0) +
                                             PerfBytes(static_cast<uint32_t>(raw.size())) + raw);
  }

  Finding FoundOf(const std::vector<int>& threads) const {
    Finding finding;
    for (const int thread : threads) {
      FindingSubject subject{std::to_string(thread) + (thread == kMain ? " main" : " worker-b")};
      subject.process = kMain;
      subject.thread = thread;
      finding.subjects.push_back(subject);
    }
    finding.lines = {"what it waits for"};
    ThreadHistory(capture_).AddTo(&finding);
    return finding;
  }
  // The same records in rings of CPUs: all of a thread on one of them.
  CpuCapture OfCpus() const {
    CpuCapture capture;
    capture.time = kNow;
    capture.events = capture_.events;
    capture.events[1].name = "sched:sched_waking";
    for (const ThreadRing& ring : capture_.threads) {
      capture.rings.push_back(ring.ring);
      capture.rings.back().cpu = static_cast<int>(capture.rings.size());
      capture.side_band +=
          MakePerfRecord(PERF_RECORD_COMM, 0, PerfIds(kMain, ring.thread) + PerfText(ring.name),
                         {kMain, ring.thread, kSecond, 0, kSwitches});
    }
    return capture;
  }
  // The line that is told of one thread; empty: none.
  std::string LineOf(int thread) const {
    const std::vector<std::string> lines = FoundOf({thread}).lines;
    return lines.size() == 2 ? lines[1] : "";
  }

  HistoryCapture capture_;
};

TEST_F(ThreadHistoryTest, ThreadRanLastThenAndThatOneWokeIt) {
  Comes(kMain, 80 * kSecond);
  Wakes(kMain, 87 * kSecond, kWorker);
  Leaves(kMain, 88 * kSecond);
  Runs(kWorker, 87 * kSecond + kMillisecond / 10, 87 * kSecond + kMillisecond / 2);
  const Finding finding = FoundOf({kWorker});
  EXPECT_EQ(finding.lines,
            (std::vector<std::string>{
                "what it waits for",
                "4713 worker-b  ran last 12.999 s ago for 0.400 ms, woken by 4711 main"}));
  EXPECT_EQ(finding.history, (std::vector<std::string>{
                                 "13.000000 s ago  4711 main wakes 4713 worker-b",
                                 "12.999500 s ago  4713 worker-b leaves the CPU after 0.400 ms"}));
}

TEST_F(ThreadHistoryTest, RingsOfCpusTellTheSame) {
  Comes(kMain, 80 * kSecond);
  Wakes(kMain, 87 * kSecond, kWorker);
  Leaves(kMain, 88 * kSecond);
  Runs(kWorker, 87 * kSecond + kMillisecond / 10, 87 * kSecond + kMillisecond / 2);
  const Finding of_threads = FoundOf({kMain, kWorker});
  Finding finding = FoundOf({});
  finding.subjects = of_threads.subjects;
  ThreadHistory(OfCpus()).AddTo(&finding);
  EXPECT_EQ(finding.lines, of_threads.lines);
  EXPECT_EQ(finding.history, of_threads.history);
  EXPECT_EQ(finding.first, "4713 worker-b");
}

// What woke it may be among what was overwritten.
TEST_F(ThreadHistoryTest, RingOfACpuThatWasOverwrittenSaysNothingOfBefore) {
  Comes(kMain, 80 * kSecond);
  Wakes(kMain, 87 * kSecond, kWorker);
  Runs(kWorker, 90 * kSecond, 91 * kSecond);
  CpuCapture capture = OfCpus();
  capture.rings[1].lost_before = true;  // its first record is of 90 s
  Finding finding = FoundOf({});
  finding.subjects = FoundOf({kWorker}).subjects;
  ThreadHistory(capture).AddTo(&finding);
  EXPECT_EQ(finding.lines.at(1),
            "4713 worker-b  ran last 9.000 s ago for 1.000 s; 4711 main woke it 13.000 s ago");
}

// The sleep that ended then had another end, which no record tells.
TEST_F(ThreadHistoryTest, WhoWokeItForAnEarlierRunDidNotWakeItForTheLast) {
  Comes(kMain, 80 * kSecond);
  Wakes(kMain, 85 * kSecond, kWorker);
  Runs(kWorker, 85 * kSecond, 86 * kSecond);
  Runs(kWorker, 90 * kSecond, 91 * kSecond);
  EXPECT_EQ(LineOf(kWorker),
            "4713 worker-b  ran last 9.000 s ago for 1.000 s; 4711 main woke it 15.000 s ago");
}

TEST_F(ThreadHistoryTest, WokenThreadThatGetsNoCpu) {
  Comes(kMain, 80 * kSecond);
  Runs(kWorker, 85 * kSecond, 86 * kSecond);
  Wakes(kMain, 95 * kSecond, kWorker);
  EXPECT_EQ(LineOf(kWorker),
            "4713 worker-b  ran last 14.000 s ago for 1.000 s; 4711 main woke it "
            "5.000 s ago, and it did not run yet");
}

TEST_F(ThreadHistoryTest, FirstToStopIsWhoLeftTheCpuFirst) {
  Runs(kMain, 80 * kSecond, 88 * kSecond);
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  const Finding finding = FoundOf({kMain, kWorker});
  EXPECT_EQ(finding.first, "4713 worker-b");
  EXPECT_EQ(finding.lines[1], "first to stop: 4713 worker-b");
}

TEST_F(ThreadHistoryTest, FirstToStopIsNotKnownWhereOneDidNotStop) {
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  Comes(kMain, 88 * kSecond);
  EXPECT_EQ(FoundOf({kMain, kWorker}).first, "");
  Leaves(kMain, 89 * kSecond, true);
  EXPECT_EQ(FoundOf({kMain, kWorker}).first, "") << "it wants to go on";
  EXPECT_EQ(FoundOf({kMain, kWorker, 4999}).first, "") << "of one of them nothing is recorded";
}

TEST_F(ThreadHistoryTest, OfAThreadThatIsNotRecordedNothingIsKnown) {
  Runs(kMain, 80 * kSecond, 88 * kSecond);
  Ring(kWorker).paused_since = 87 * kSecond;
  const Finding finding = FoundOf({kWorker, kMain});
  EXPECT_EQ(finding.first, "");
  EXPECT_EQ(finding.lines[1],
            "4713 worker-b  is not recorded since 13.000 s ago: it switched too often");
}

// It stood still by then; or it has a CPU for itself, and is never switched.
TEST_F(ThreadHistoryTest, OfAThreadThatDidNotLeaveACpuSinceItWasFoundNothingIsSaid) {
  EXPECT_EQ(LineOf(kWorker), "");
  EXPECT_TRUE(FoundOf({kWorker}).history.empty());
}

// A timer, a disk or the network: who happens to run then has nothing to do with it.
TEST_F(ThreadHistoryTest, InterruptThatWakesIsNotTheThreadThatItInterrupts) {
  constexpr uint8_t kHardInterrupt = 0x08, kSoftInterrupt = 0x10, kNmi = 0x40;
  Comes(kMain, 80 * kSecond);
  for (const uint8_t flags : {kHardInterrupt, kSoftInterrupt, kNmi})
    Wakes(kMain, 85 * kSecond + flags, kWorker, flags | 0x01);
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  const Finding finding = FoundOf({kMain, kWorker});
  EXPECT_EQ(finding.lines.back(), "4713 worker-b  ran last 13.000 s ago for 1.000 s");
  EXPECT_EQ(finding.history.size(), 1u);
}

// Tracepoints have the numbers of the kernel's own namespace: there another thread has that one.
TEST_F(ThreadHistoryTest, NumbersOfAnotherNamespaceNameNobody) {
  Comes(kMain, 80 * kSecond);
  Wakes(kMain, 85 * kSecond, kWorker, 0, 99'001);
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  EXPECT_EQ(LineOf(kWorker), "4713 worker-b  ran last 13.000 s ago for 1.000 s");
}

TEST_F(ThreadHistoryTest, OfARunThatBeganBeforeTheRecordsOnlyTheEndIsTold) {
  Leaves(kWorker, 87 * kSecond);
  EXPECT_EQ(LineOf(kWorker), "4713 worker-b  ran last 13.000 s ago");
}

TEST_F(ThreadHistoryTest, OfManyStepsTheLastAreTold) {
  for (int i = 0; i < 100; ++i) Runs(kWorker, (51 + i / 4) * kSecond, (51 + i / 4) * kSecond + i);
  EXPECT_EQ(FoundOf({kWorker}).history.size(), 4u);
}

TEST_F(ThreadHistoryTest, FindingOfAScopeKeepsItsOwn) {
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  Finding finding;
  finding.subjects.push_back({"core 1"});
  finding.history = {"PUSH cb3"};
  ThreadHistory(capture_).AddTo(&finding);
  EXPECT_EQ(finding.history, std::vector<std::string>{"PUSH cb3"});
  EXPECT_TRUE(finding.lines.empty());
}

TEST_F(ThreadHistoryTest, DamagedRecordsEndTheStory) {
  Runs(kWorker, 86 * kSecond, 87 * kSecond);
  Ring(kWorker).ring.records += std::string(5, '\x01');
  EXPECT_EQ(LineOf(kWorker), "4713 worker-b  ran last 13.000 s ago for 1.000 s");
}

}  // namespace
}  // namespace hangscope

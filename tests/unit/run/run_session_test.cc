// A whole run with a fake child on a disk in memory.
#include "run/run_session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "fakes/etm_bytes.h"
#include "fakes/fake_child.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "fakes/fake_process_inspector.h"
#include "fakes/perf_bytes.h"
#include "model/perf_format.h"
#include "ring/block_reader.h"

namespace hangscope {
namespace {

class RunSessionTest : public ::testing::Test {
 protected:
  RunSessionTest() : child_(new FakeChild) {
    environment_.files = &disk_;
    environment_.clock = &clock_;
    environment_.signal_fd = eventfd(0, EFD_NONBLOCK);
    environment_.narrator.write = [this](std::string_view text) { said_ += text; };
    environment_.check_program = [](const std::string&) { return Status(); };
    environment_.start_child =
        [this](const ChildOptions&) -> Result<std::unique_ptr<ChildProcess>> {
      return std::unique_ptr<ChildProcess>(child_);
    };
    options_.observer.command = {"fw"};
    options_.observer.prefix = options_.ring_prefix = "dir/fw";
    options_.observer.stall = 200 * kMillisecond;
    options_.geometry = *PlanRing("64K", "1", 20);
  }
  ~RunSessionTest() override { close(environment_.signal_fd); }

  RunOutcome Run() { return RunProgram(environment_, options_); }

  void WaitsForItself(FakeProcessInspector* inspector) {
    SystemSample look;
    ProcessFacts process;
    process.pid = child_->pid();
    ThreadFacts thread;
    thread.pid = thread.tid = process.pid;
    thread.state = ThreadState::kSleeping;
    thread.system_call = 202;
    thread.wait.kind = WaitKind::kMutex;
    thread.wait.owner = thread.tid;
    thread.wait.variable = "lock";
    process.threads.push_back(thread);
    look.processes.push_back(process);
    inspector->Add(look);
    environment_.inspector = inspector;
  }

  FakeFileSystem disk_;
  SystemClock clock_;
  FakeChild* child_;  // owned by the run
  Environment environment_;
  RunOptions options_;
  std::string said_;
};

TEST_F(RunSessionTest, RecordsAndReturnsTheChildsStatus) {
  child_->Print("hello\n");
  child_->End({7, 0});
  const RunOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.exit_status, 7);
  auto reader = BlockReader::Open(disk_, "dir/fw.stdout");
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->Next(), BlockReader::Event::kBlock);
  EXPECT_EQ(reader->block(), "hello\n");
  EXPECT_TRUE(reader->finished());
}

TEST_F(RunSessionTest, EachStreamHasARingOfItsName) {
  options_.streams[0].captured = {"stdout", 1, true};
  options_.streams[1].captured = {"fd3", 3};
  options_.launcher = {"stdbuf", "-oL"};
  ChildOptions started;
  environment_.start_child =
      [&](const ChildOptions& options) -> Result<std::unique_ptr<ChildProcess>> {
    started = options;
    return std::unique_ptr<ChildProcess>(child_);
  };
  child_->End({0, 0});
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_EQ(started.command, (std::vector<std::string>{"stdbuf", "-oL", "fw"}));
  ASSERT_EQ(started.streams.size(), 2u);
  EXPECT_TRUE(started.streams[0].pty);
  EXPECT_EQ(started.streams[1].child_fd, 3);
  EXPECT_TRUE(disk_.Exists("dir/fw.stdout.index"));
  EXPECT_TRUE(disk_.Exists("dir/fw.fd3.index"));
  EXPECT_FALSE(disk_.Exists("dir/fw.stderr.index"));
}

TEST_F(RunSessionTest, TellsTheChildThatTheTerminalHasAnotherSize) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  dup2(ends[0], environment_.signal_fd);
  signalfd_siginfo info{};
  info.ssi_signo = SIGWINCH;
  ASSERT_EQ(write(ends[1], &info, sizeof info), static_cast<ssize_t>(sizeof info));
  int sizes_seen = 0;
  child_->on_poll = [&] {
    sizes_seen = child_->terminal_sizes_seen;
    child_->End({0, 0});
  };
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_EQ(sizes_seen, 1);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(RunSessionTest, DeathBySignal) {
  child_->End({0, SIGSEGV});
  EXPECT_EQ(Run().exit_status, 128 + SIGSEGV);
  EXPECT_NE(said_.find("DEAD"), std::string::npos);
}

TEST_F(RunSessionTest, HangEndsAChildThatObeys) {
  options_.on_hang.what = OnHang::kKill;
  child_->Print("working\n");
  child_->dies_of = SIGTERM;
  EXPECT_EQ(Run().exit_status, kRunHang);
  EXPECT_NE(said_.find("HANG"), std::string::npos);
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
}

TEST_F(RunSessionTest, HangKillsAChildThatDoesNot) {
  options_.on_hang.what = OnHang::kKill;
  child_->Print("working\n");
  child_->dies_of = SIGKILL;
  EXPECT_EQ(Run().exit_status, kRunHang);
}

TEST_F(RunSessionTest, WhatEndsWhileItIsJudgedHadNoHang) {
  FakeProcessInspector inspector;
  WaitsForItself(&inspector);
  options_.on_hang.what = OnHang::kKill;
  child_->Print("working\n");
  child_->on_poll = [&] {
    if (!inspector.asked.empty()) child_->End({7, 0});
  };
  EXPECT_EQ(Run().exit_status, 7) << said_;
  EXPECT_EQ(said_.find("HANG"), std::string::npos) << said_;
}

TEST_F(RunSessionTest, WhatEndsWhileItsHangIsReportedKeepsItsStatus) {
  options_.on_hang.what = OnHang::kKill;
  child_->on_signal = [] { ADD_FAILURE() << "it was ended"; };
  child_->Print("working\n");
  child_->on_poll = [this] {
    if (disk_.Exists("dir/fw.snapshot-0001/manifest.json")) child_->End({7, 0});
  };
  EXPECT_EQ(Run().exit_status, 7) << said_;
  EXPECT_NE(said_.find("HANG"), std::string::npos) << said_;
}

TEST_F(RunSessionTest, WhatEndsAsItsTimeIsOverKeepsItsStatus) {
  options_.timeout = 1;
  int polls = 0;
  child_->on_poll = [&] {
    if (++polls == 2) child_->End({7, 0});
  };
  EXPECT_EQ(Run().exit_status, 7) << said_;
}

TEST_F(RunSessionTest, HangIsOnlyToldWhereThatIsWanted) {
  options_.on_hang.what = OnHang::kNone;
  options_.observer.snapshot_on_hang = false;
  child_->Print("working\n");
  child_->on_poll = [this] {
    if (said_.find("HANG") != std::string::npos) child_->End({0, 0});
  };
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
}

TEST_F(RunSessionTest, ThreadsOfASilentProgramSayWhyWithoutBeingStopped) {
  FakeProcessInspector inspector;
  WaitsForItself(&inspector);
  options_.on_hang.what = OnHang::kKill;
  child_->Print("working\n");
  child_->dies_of = SIGTERM;
  // Asked every 250 ms, it would cost what nobody uses: the threads tell it, too.
  child_->on_question_for_input = [] { ADD_FAILURE() << "it was asked for its input"; };
  EXPECT_EQ(Run().exit_status, kRunHang);
  EXPECT_NE(said_.find("s: deadlock, "), std::string::npos) << said_;
  EXPECT_NE(said_.find("mutex lock"), std::string::npos) << said_;
  ASSERT_FALSE(inspector.asked.empty());
  for (const auto& [pid, how] : inspector.asked) EXPECT_FALSE(how.stop || how.step_running);
}

TEST_F(RunSessionTest, WithoutAViewOfItsThreadsItIsAskedWhetherItWaitsForInput) {
  child_->waits_for_input = true;
  child_->Print("name? ");
  child_->on_poll = [this] {
    if (said_.find("silent") != std::string::npos) child_->End({0, 0});
  };
  options_.observer.heartbeat = 100 * kMillisecond;
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_NE(said_.find("it waits for its own input"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("HANG"), std::string::npos) << said_;
}

TEST_F(RunSessionTest, FailureTakesASnapshotWithTheLastWordsAndSuccessNone) {
  child_->Print("last words\n");
  child_->End({7, 0});
  EXPECT_EQ(Run().exit_status, 7);
  EXPECT_NE(disk_.BytesOf("dir/fw.snapshot-0001/manifest.json").find("status 7"),
            std::string::npos);
  auto reader = BlockReader::Open(disk_, "dir/fw.snapshot-0001/stdout");
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(reader->Next(), BlockReader::Event::kBlock);
  EXPECT_EQ(reader->block(), "last words\n");
  EXPECT_NE(said_.find("snapshot: dir/fw.snapshot-0001/   (11 B of stdout, report.html)"),
            std::string::npos)
      << said_;

  disk_.Clear();
  child_ = new FakeChild;
  child_->End({0, 0});
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
}

TEST_F(RunSessionTest, LineThatMatchesTakesASnapshotWhileTheProgramRuns) {
  options_.observer.stall = 60 * kSecond;
  options_.observer.triggers.patterns = {"panic"};
  options_.observer.patterns = *LinePatterns::Compile("--trigger", {"panic"});
  child_->Print("kernel panic: 7\n");
  child_->on_poll = [this] {
    if (said_.find("regex: panic (stdout: kernel panic: 7)") != std::string::npos)
      child_->End({0, 0});
  };
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
}

TEST_F(RunSessionTest, WithoutARoomForItsSocketItRecords) {
  environment_.control_folder = "/proc/nothing/here";
  child_->Print("hello\n");
  child_->End({0, 0});
  EXPECT_EQ(Run().exit_status, 0);
  EXPECT_NE(said_.find("hangscope ls and snap do not find this recorder"), std::string::npos)
      << said_;
}

TEST_F(RunSessionTest, SnapshotHasWhatTheCpusDidFromBeforeTheProgramBegan) {
  std::vector<std::string> order;
  environment_.start_child =
      [&](const ChildOptions& options) -> Result<std::unique_ptr<ChildProcess>> {
    options.before_exec(4711);
    order.push_back("program");
    return std::unique_ptr<ChildProcess>(child_);
  };
  FakeCpus cpus;
  int ticks = 0;
  environment_.record_cpus =
      [&](Clock&, pid_t pid,
          const CpuRecorderOptions& options) -> Result<std::unique_ptr<CpuRecorder>> {
    order.push_back("recorder of " + std::to_string(pid) +
                    (options.call_stacks ? " with stacks" : ""));
    auto recorder = std::make_unique<FakeCpuRecorder>([&] {
      return Result<CpuCapture>(
          cpus.Call(0, clock_.Monotonic(), 4711, 39, 0).Take(clock_.Monotonic()));
    });
    recorder->told = {"no tracepoints here"};
    recorder->on_tick = [&] { ++ticks; };
    return std::unique_ptr<CpuRecorder>(std::move(recorder));
  };
  options_.record_cpus = true;
  options_.cpus.call_stacks = true;
  int polls = 0;
  child_->on_poll = [&] {
    if (++polls == 3) child_->End({7, 0});
  };
  EXPECT_EQ(Run().exit_status, 7);
  EXPECT_EQ(order, (std::vector<std::string>{"recorder of 4711 with stacks", "program"}));
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/cpu.perf.data"));
  const std::string manifest = disk_.BytesOf("dir/fw.snapshot-0001/manifest.json");
  EXPECT_NE(manifest.find("\"gaps\": []"), std::string::npos) << manifest;
  EXPECT_NE(said_.find("warning: --cpu: no tracepoints here"), std::string::npos) << said_;
  EXPECT_NE(said_.find("of 1 CPU, "), std::string::npos) << said_;
  EXPECT_GE(ticks, 2);
}

// Its CPU's tracer wrote 48 bytes before it left; their code is nowhere.
TEST_F(RunSessionTest, SaysOfAHangWhatTheHardwareTracesOfTheBlamedThreadsTell) {
  FakeProcessInspector inspector;
  WaitsForItself(&inspector);
  child_->Print("working\n");
  child_->on_poll = [this] {
    if (said_.find("HANG") != std::string::npos) child_->End({7, 0});
  };
  environment_.start_child =
      [&](const ChildOptions& options) -> Result<std::unique_ptr<ChildProcess>> {
    options.before_exec(4711);
    return std::unique_ptr<ChildProcess>(child_);
  };
  const TimeNs left = clock_.Monotonic();
  const std::string bytes = A64Run();
  environment_.record_cpus =
      [&](Clock&, pid_t pid, const CpuRecorderOptions&) -> Result<std::unique_ptr<CpuRecorder>> {
    return std::unique_ptr<CpuRecorder>(std::make_unique<FakeCpuRecorder>([&, pid] {
      FakeCpus cpus;
      cpus.Run(0, left - 1000, pid, false).Run(0, left, pid, true);
      CpuCapture capture = cpus.Take(clock_.Monotonic());
      capture.side_band += PerfRecordOf(kPerfAuxtraceInfo, EtmV4Info(1));
      capture.side_band +=
          PerfRecordOf(PERF_RECORD_AUX, PerfWord(0) + PerfWord(bytes.size()) + PerfWord(0x100) +
                                            PerfIds(pid, pid) + PerfBytes(left) + PerfBytes(0, 0) +
                                            PerfWord(FakeCpus::kSideBandId));
      AuxRing ring;
      ring.capacity_bytes = 4096;
      ring.bytes = bytes;
      ring.head = bytes.size();
      capture.aux.push_back(ring);
      return Result<CpuCapture>(capture);
    }));
  };
  options_.record_cpus = true;
  Run();
  const std::string line = "last branches: none, no branch could be followed in ";
  EXPECT_NE(said_.find(line), std::string::npos) << said_;
  EXPECT_NE(disk_.BytesOf("dir/fw.snapshot-0001/report.txt").find(line), std::string::npos);
  const std::string manifest = disk_.BytesOf("dir/fw.snapshot-0001/manifest.json");
  EXPECT_NE(manifest.find("\"last_branches\""), std::string::npos) << manifest;
  EXPECT_NE(manifest.find("\"why_none\": \"no branch"), std::string::npos) << manifest;
}

TEST_F(RunSessionTest, ProgramWhoseCpusCannotBeRecordedRunsAllTheSame) {
  environment_.start_child =
      [&](const ChildOptions& options) -> Result<std::unique_ptr<ChildProcess>> {
    options.before_exec(4711);
    return std::unique_ptr<ChildProcess>(child_);
  };
  environment_.record_cpus =
      [&](Clock&, pid_t, const CpuRecorderOptions&) -> Result<std::unique_ptr<CpuRecorder>> {
    return Status::Io("perf_event_paranoid is 3");
  };
  options_.record_cpus = true;
  child_->End({7, 0});
  EXPECT_EQ(Run().exit_status, 7);
  EXPECT_NE(said_.find("warning: --cpu: perf_event_paranoid is 3; the program runs without"),
            std::string::npos)
      << said_;
  EXPECT_TRUE(disk_.Exists("dir/fw.snapshot-0001/manifest.json"));
  EXPECT_FALSE(disk_.Exists("dir/fw.snapshot-0001/cpu.perf.data"));
}

TEST_F(RunSessionTest, ProgramThatCannotStartTouchesNothing) {
  environment_.check_program = [](const std::string& program) {
    return Status::FromErrno(ENOENT, "start", program);
  };
  const RunOutcome outcome = Run();
  EXPECT_EQ(outcome.exit_status, kRunNotFound);
  EXPECT_FALSE(disk_.Exists("dir/fw.stdout.index"));
  delete child_;
}

}  // namespace
}  // namespace hangscope

// A scope's cores in the window: their clock against the host's, their rings beside those of CPUs
// and streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "fakes/fake_clock.h"
#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "fakes/scope_writer.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/manifest_writer.h"
#include "snapshot/scope_capture.h"
#include "snapshot/scope_rings.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr uint32_t kStep = 77;

// A target that counts 2 in a nanosecond and was switched on late.
class ScopeWindowTest : public ::testing::Test {
 protected:
  static constexpr TimeNs kOn = 990 * kSecond;
  static uint64_t CountAt(TimeNs host) { return static_cast<uint64_t>(host - kOn) * 2; }

  void SetUp() override { writer_.emplace(&target_, 2, 8); }
  void BeLinux(TimeNs sync) {
    writer_->header().features |= HANGSCOPE_FEATURE_THREADS;
    writer_->header().clock_hz = 0;
    writer_->header().sync_ns = static_cast<uint64_t>(sync);
    writer_->header().sync_time = CountAt(sync);
    writer_->PutHeader();
  }
  // An event at that instant, as the target's clock has it.
  void Event(uint32_t core, TimeNs host) {
    const uint64_t count = CountAt(host);
    if (writer_->Begun(core) == 0)
      writer_->Put(core, offsetof(hangscope_ring, epoch), static_cast<uint32_t>(count >> 30));
    writer_->Write(core, kStep, count);
  }
  // Tells the epoch on both sides of it: without one a torn record may have been one that changed
  // it.
  void Anchor(uint32_t core, TimeNs host) {
    const auto epoch = static_cast<uint32_t>(CountAt(host) >> 30);
    writer_->Put(core, offsetof(hangscope_ring, anchor),
                 static_cast<uint32_t>(writer_->Begun(core) << HANGSCOPE_TICKET_SHIFT) +
                     HANGSCOPE_ID_ANCHOR);
    writer_->Write(core, HANGSCOPE_ID_ANCHOR, CountAt(host), epoch, epoch);
  }
  void ReadMachineAt(TimeNs host) {
    clock_.Advance(host - clock_.Monotonic());
    scope_clock_.ReadMachine();
  }
  ScopeRings Rings(TimeNs read_at) {
    ScopeSource source;
    source.target = "test";
    source.open = [&]() -> Result<std::unique_ptr<Target>> {
      return std::unique_ptr<Target>(std::make_unique<FakeTarget>(target_.memory));
    };
    auto view = ScopeView::Open(disk_, source);
    EXPECT_TRUE(view.ok()) << view.status().message();
    auto rings = ReadScopeRings(**view, scope_clock_, read_at);
    EXPECT_TRUE(rings.ok()) << rings.status().message();
    return *rings;
  }

  FakeClock clock_;  // begins at 1000 s
  FakeFileSystem disk_;
  FakeTarget target_;
  std::optional<ScopeWriter> writer_;
  ScopeClock scope_clock_{clock_, [this] { return CountAt(clock_.Monotonic()); }};
};

constexpr TimeNs At(TimeNs ms) { return 1000 * kSecond + ms * kMillisecond; }

TEST_F(ScopeWindowTest, EventsOfALinuxProgramStandWhereTheyHappened) {
  BeLinux(At(100));
  for (const TimeNs ms : {0, 500, 1000}) ReadMachineAt(At(ms));
  Event(0, At(110));
  Event(0, At(120));
  const ScopeRings found = Rings(At(1001));
  EXPECT_EQ(found.left_out, "");
  ASSERT_EQ(found.rings.size(), 2u);
  const RingHistory& ring = found.rings[0];
  EXPECT_EQ(ring.ring, (RingName{RingKind::kCore, 0, "scope"}));
  ASSERT_EQ(ring.held.size(), 1u);
  EXPECT_NEAR(static_cast<double>(ring.held[0].time.from), static_cast<double>(At(110)), 5);
  EXPECT_NEAR(static_cast<double>(ring.held[0].time.to), static_cast<double>(At(120)), 5);
  EXPECT_EQ(ring.head, 32u);
  EXPECT_EQ(ring.recorded_until, At(1001));
  EXPECT_LE(found.clock_error, 5);
  EXPECT_GE(found.clock_error, 1);
  ASSERT_EQ(found.clocks.size(), 2u);
  EXPECT_NEAR(found.clocks[0].ns_per_count, 0.5, 1e-6);
}

TEST_F(ScopeWindowTest, AScopeThatCountsAnotherClockStaysOutAndSaysSo) {
  BeLinux(At(100));
  writer_->header().sync_time += 60ull * 2 * kSecond;
  writer_->PutHeader();
  for (const TimeNs ms : {0, 500, 1000}) ReadMachineAt(At(ms));
  Event(0, At(110));
  const ScopeRings found = Rings(At(1001));
  EXPECT_TRUE(found.rings.empty());
  EXPECT_THAT(found.left_out, ::testing::HasSubstr("does not count with this machine's counter"));
  Manifest manifest;
  manifest.scope.image = "scope.bin";
  manifest.scope.not_in_window = found.left_out;
  EXPECT_THAT(ManifestJson(manifest),
              ::testing::HasSubstr("\"not_in_window\": \"the scope does not count"));
  EXPECT_THAT(ReportText(manifest),
              ::testing::HasSubstr("cores are not in the window: the scope does not count"));
}

TEST_F(ScopeWindowTest, FirmwareOfWhichNoEventCameStaysOut) {
  Event(0, At(110));
  EXPECT_THAT(Rings(At(1001)).left_out, ::testing::HasSubstr("no event came while it was watched"));
}

TEST_F(ScopeWindowTest, ErrorOfFirmwareIsThatOfTwoLooksAndTrueTimesLieWithin) {
  writer_->header().clock_hz = 2'000'000'000;
  writer_->PutHeader();
  for (TimeNs ms = 200; ms <= 2000; ms += 200) {
    // Late in one time between two looks and early in the next.
    scope_clock_.SawNewest(0, CountAt(At(ms - (ms % 400 == 0 ? 150 : 10))), At(ms - 200), At(ms));
  }
  Event(0, At(1300));
  Event(0, At(1900));
  const ScopeRings found = Rings(At(2000));
  ASSERT_EQ(found.rings.size(), 2u) << found.left_out;
  const TimeNs error = found.clock_error;
  EXPECT_GE(error, 100 * kMillisecond);
  EXPECT_LE(error, 250 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(found.rings[0].held[0].time.from), static_cast<double>(At(1300)),
              static_cast<double>(error));
  EXPECT_NEAR(static_cast<double>(found.rings[0].held.back().time.to),
              static_cast<double>(At(1900)), static_cast<double>(error));
}

TEST_F(ScopeWindowTest, LooksAtFirmwareTakeWhatIsNewAndForgetWhatWasBeforeItBeganAnew) {
  writer_->header().clock_hz = 2'000'000'000;
  writer_->PutHeader();
  const std::string ram = ::testing::TempDir() + "scope_window_ram_" + std::to_string(getpid());
  const auto store = [&] { std::ofstream(ram, std::ios::binary) << target_.memory; };
  Event(0, At(-400));
  store();
  ScopeCapture capture(disk_, [&](int) { return ScopeSource{FileSpec(ram), ""}; });
  capture.Find(0);
  ASSERT_TRUE(capture.found());
  const auto look = [&](TimeNs at) {
    clock_.Advance(at - clock_.Monotonic());
    capture.SampleClock(clock_, &scope_clock_);
  };
  look(At(0));
  EXPECT_FALSE(Rings(At(0)).left_out.empty());  // how old that event is nobody knows
  Event(0, At(150));
  store();
  look(At(100));  // too early
  look(At(200));
  const ScopeRings found = Rings(At(200));
  ASSERT_EQ(found.rings.size(), 2u) << found.left_out;
  EXPECT_GE(found.clock_error, 100 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(found.rings[0].held.back().time.to), static_cast<double>(At(150)),
              static_cast<double>(found.clock_error));
  ++writer_->header().boots;
  writer_->PutHeader();
  store();
  look(At(400));
  EXPECT_FALSE(Rings(At(400)).left_out.empty());
  std::remove(ram.c_str());
}

TEST_F(ScopeWindowTest, ErrorGrowsWithTheDistanceFromTheSamples) {
  const AlignedClock clock{{1000, 0, 1.0, 10}, 1000, 2000};
  EXPECT_EQ(clock.ErrorAt(1500), 10);
  EXPECT_EQ(clock.ErrorAt(2000), 10);
  EXPECT_EQ(clock.ErrorAt(7000), 110);
  EXPECT_EQ(clock.ErrorAt(500), 20);
}

TEST_F(ScopeWindowTest, OverwrittenAndTornRecordsAreMissingWithTheirAmounts) {
  BeLinux(At(100));
  for (const TimeNs ms : {0, 1000}) ReadMachineAt(At(ms));
  for (TimeNs ms = 110; ms < 117; ++ms) Event(0, At(ms));
  Anchor(0, At(117));
  for (TimeNs ms = 118; ms < 122; ++ms) Event(0, At(ms));
  writer_->Take(0, writer_->Reserve(0));  // never finished
  Event(0, At(130));
  const ScopeRings found = Rings(At(1001));
  const RingHistory& ring = found.rings[0];
  EXPECT_EQ(ring.head, 14u * 16);
  EXPECT_EQ(ring.held.front().begin_offset, 6u * 16);
  EXPECT_EQ(ring.recording_since, 0);
  ASSERT_EQ(ring.losses.size(), 1u);
  EXPECT_EQ(ring.losses[0].reason, GapReason::kTorn);
  EXPECT_EQ(ring.losses[0].amount, 16u);
  EXPECT_NEAR(static_cast<double>(ring.losses[0].time.from), static_cast<double>(At(121)), 5);
  EXPECT_NEAR(static_cast<double>(ring.losses[0].time.to), static_cast<double>(At(130)), 5);
}

TEST_F(ScopeWindowTest, OneWindowOverCpusAndCoresBeginsWhereACoreWasOverwrittenAndStatesTheError) {
  BeLinux(At(100));
  for (const TimeNs ms : {0, 1000}) ReadMachineAt(At(ms));
  for (TimeNs ms = 110; ms < 122; ++ms) Event(0, At(ms));
  ScopeRings scope = Rings(At(1001));
  FakeCpus cpus;
  cpus.Call(0, At(105), 4711, 1, 0).Call(0, At(500), 4711, 2, 0);
  CpuRecording recording(disk_, std::make_unique<FakeCpuRecorder>([&] {
                           return Result<CpuCapture>(cpus.Take(At(1000)));
                         }),
                         {"fw"});
  ASSERT_TRUE(recording.Capture().ok());
  WindowFinder windows(disk_, {});
  Manifest manifest;
  ASSERT_TRUE(
      recording.Write("snapshot", false, scope.rings, scope.clock_error, &windows, &manifest).ok());
  const Window& window = *manifest.window;
  EXPECT_NEAR(static_cast<double>(window.time.from), static_cast<double>(At(114)), 5);
  EXPECT_EQ(window.time.to, At(1000));
  ASSERT_TRUE(window.limited_by.has_value());
  EXPECT_EQ(window.rings[*window.limited_by].ring, (RingName{RingKind::kCore, 0, "scope"}));
  EXPECT_EQ(window.clock_error, scope.clock_error);
  EXPECT_TRUE(window.gaps.empty());
  EXPECT_EQ(windows.last_marks().size(), window.rings.size());
}

}  // namespace
}  // namespace hangscope

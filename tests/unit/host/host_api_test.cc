// The public API of the host library: a program with a probe of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "fakes/watch_image.h"
#include "hangscope/host/hangscope.hpp"

namespace hangscope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr uint64_t kBegin = 0x4000;
constexpr auto kGenerous = 20s;

// The memory of a device, shared with the test that changes it.
struct Device {
  std::mutex mutex;
  WatchImage image;
  host::Life life = host::Life::kLive;
  int reads = 0;
  bool is_broken = false;
};

class DeviceProbe final : public host::Probe {
 public:
  explicit DeviceProbe(Device& device) : device_(device) {}

  std::string Name() const override { return "the board"; }
  host::Status Read(uint64_t address, void* bytes, size_t count) override {
    const std::lock_guard lock(device_.mutex);
    ++device_.reads;
    if (device_.is_broken) return {host::Code::kIo, "the cable is out"};
    std::memcpy(bytes, device_.image.target.memory.data() + (address - kBegin), count);
    return {};
  }
  host::Status Write(uint64_t address, const void* bytes, size_t count) override {
    const std::lock_guard lock(device_.mutex);
    std::memcpy(device_.image.target.memory.data() + (address - kBegin), bytes, count);
    return {};
  }
  std::vector<host::Range> Ranges() const override {
    return {{kBegin, device_.image.scope_bytes()}};
  }
  host::Life Alive() override {
    const std::lock_guard lock(device_.mutex);
    return device_.life;
  }

 private:
  Device& device_;
};

// Cores 0 and 1 wait for each other.
void Deadlock(Device& device) {
  const std::lock_guard lock(device.mutex);
  device.image.Wait(0, 7, HANGSCOPE_RESOURCE_EXCLUSIVE, 1000);
  device.image.Wait(1, 8, HANGSCOPE_RESOURCE_EXCLUSIVE, 1000);
  device.image.PutClaim(0, 0, 8);
  device.image.PutClaim(1, 0, 7);
}

host::Options Quick() {
  host::Options options;
  options.stall = 50ms;
  options.interval = 5ms;
  return options;
}

bool Until(const std::function<bool()>& condition) {
  for (const auto end = std::chrono::steady_clock::now() + kGenerous;
       std::chrono::steady_clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// What a watcher called back with.
struct Heard {
  std::mutex mutex;
  std::vector<host::Finding> findings;
  std::thread::id thread;
  sigset_t mask{};

  void Take(const host::Finding& finding) {
    const std::lock_guard lock(mutex);
    findings.push_back(finding);
    thread = std::this_thread::get_id();
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  }
  size_t count() {
    const std::lock_guard lock(mutex);
    return findings.size();
  }
};

TEST(HostApi, LooksAtATargetThroughAProbeOfTheUsers) {
  Device device;
  device.image.Put(2, offsetof(hangscope_mailbox, waypoint), 0x57425243);  // CRBW
  device.image.Put(2, offsetof(hangscope_mailbox, heartbeat), 5);
  auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
  ASSERT_TRUE(target.ok()) << target.status().message();
  ASSERT_TRUE(target->Look().ok());
  const auto subjects = target->Subjects();
  ASSERT_EQ(subjects.size(), 4u);
  EXPECT_EQ(subjects[2].name, "core 2");
  EXPECT_EQ(subjects[2].waypoint, "CRBW");
  EXPECT_EQ(subjects[2].heartbeat, 5u);
  EXPECT_EQ(subjects[3].activity, host::Activity::kUnused);
}

TEST(HostApi, SaysWhyATargetHangs) {
  Device device;
  Deadlock(device);
  for (const host::Life life : {host::Life::kLive, host::Life::kDead}) {
    device.life = life;
    auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
    ASSERT_TRUE(target.ok());
    auto findings = target->Why();
    ASSERT_TRUE(findings.ok()) << findings.status().message();
    ASSERT_EQ(findings->size(), 1u);
    const host::Finding& finding = (*findings)[0];
    EXPECT_EQ(finding.kind, host::FindingKind::kDeadlock);
    EXPECT_TRUE(finding.is_bad);
    EXPECT_THAT(finding.summary, HasSubstr("deadlock, 2 of"));
    EXPECT_THAT(finding.text, HasSubstr("core 1"));
    EXPECT_THAT(finding.subjects, testing::UnorderedElementsAre("core 0", "core 1"));
  }
}

TEST(HostApi, FindsNothingWhereNothingIsWrong) {
  Device device;
  device.life = host::Life::kDead;
  auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
  auto findings = target->Why();
  ASSERT_TRUE(findings.ok());
  EXPECT_TRUE(findings->empty());
}

TEST(HostApi, WatcherCallsBackOnItsOwnThreadWithAllSignalsBlocked) {
  Device device;
  Heard heard;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(),
                                      [&](const host::Finding& f) { heard.Take(f); });
  ASSERT_TRUE(watcher.ok()) << watcher.status().message();
  ASSERT_TRUE(Until([&] { return watcher->looks() > 3; }));
  EXPECT_EQ(heard.count(), 0u);
  Deadlock(device);
  ASSERT_TRUE(Until([&] { return heard.count() > 0; }));
  watcher->Stop();
  EXPECT_EQ(heard.findings[0].kind, host::FindingKind::kDeadlock);
  EXPECT_NE(heard.thread, std::this_thread::get_id());
  EXPECT_EQ(sigismember(&heard.mask, SIGINT), 1);
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
  EXPECT_EQ(watcher->Subjects()[0].activity, host::Activity::kWaiting);
}

TEST(HostApi, StoppedWatcherLooksNoMore) {
  Device device;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(), {});
  ASSERT_TRUE(Until([&] { return watcher->looks() > 0; }));
  EXPECT_FALSE(watcher->Wait(1ms));
  watcher->RequestStop();
  watcher->Stop();
  watcher->Stop();
  EXPECT_TRUE(watcher->Wait(0ns));
  const int reads = device.reads;
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(device.reads, reads);
}

TEST(HostApi, CallbackMayStopItsWatcherAndLookAtIt) {
  Device device;
  Deadlock(device);
  std::atomic<host::Watcher*> own{nullptr};
  std::atomic<int> calls{0};
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(),
                                      [&](const host::Finding&) {
                                        while (own.load() == nullptr) std::this_thread::yield();
                                        EXPECT_EQ(own.load()->Subjects().size(), 4u);
                                        ++calls;
                                        own.load()->Stop();
                                      });
  ASSERT_TRUE(watcher.ok());
  own = &watcher.value();
  EXPECT_TRUE(watcher->Wait(kGenerous));
  EXPECT_EQ(calls.load(), 1);
}

TEST(HostApi, WatcherThatIsDestroyedHasEnded) {
  Device device;
  std::atomic<int> calls{0};
  {
    auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(),
                                        [&](const host::Finding&) { ++calls; });
    ASSERT_TRUE(Until([&] { return watcher->looks() > 0; }));
    auto other = std::move(*watcher);
    EXPECT_FALSE(other.Wait(1ms));
  }
  const int reads = device.reads;
  Deadlock(device);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(device.reads, reads);
  EXPECT_EQ(calls.load(), 0);
}

TEST(HostApi, WatcherEndsWithItsTarget) {
  Device device;
  Deadlock(device);
  Heard heard;
  auto options = Quick();
  options.stall = 1h;  // only the end is a reason to look closer
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), options,
                                      [&](const host::Finding& f) { heard.Take(f); });
  ASSERT_TRUE(Until([&] { return watcher->looks() > 1; }));
  {
    const std::lock_guard lock(device.mutex);
    device.life = host::Life::kDead;
  }
  EXPECT_TRUE(watcher->Wait(kGenerous));
  ASSERT_EQ(heard.count(), 1u);
  EXPECT_EQ(heard.findings[0].kind, host::FindingKind::kDeadlock);
}

TEST(HostApi, TargetThatCannotBeReadAnyMoreIsFoundDead) {
  Device device;
  Heard heard;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(),
                                      [&](const host::Finding& f) { heard.Take(f); });
  ASSERT_TRUE(Until([&] { return watcher->looks() > 1; }));
  {
    const std::lock_guard lock(device.mutex);
    device.is_broken = true;
  }
  EXPECT_TRUE(watcher->Wait(kGenerous));
  ASSERT_EQ(heard.count(), 1u);
  EXPECT_EQ(heard.findings[0].kind, host::FindingKind::kDead);
  EXPECT_THAT(heard.findings[0].text, HasSubstr("the cable is out"));
}

TEST(HostApi, PausesAndResumesACore) {
  Device device;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(), {});
  ASSERT_TRUE(watcher->Pause(1).ok());
  const auto word = [&](size_t at) {
    const std::lock_guard lock(device.mutex);
    return device.image.Get(1, at);
  };
  EXPECT_EQ(word(offsetof(hangscope_mailbox, pause)), 1u);
  ASSERT_TRUE(watcher->Resume(1).ok());
  EXPECT_EQ(word(offsetof(hangscope_mailbox, pause)), 0u);
  EXPECT_EQ(word(offsetof(hangscope_mailbox, resumes)), 1u);
  const host::Status status = watcher->Pause(4);
  EXPECT_EQ(status.code(), host::Code::kUsage);
  EXPECT_EQ(status.message(), "there are cores 0 to 3");
}

// `count` records of event 77 of core 1, a microsecond apart from 1 ms on: its ring holds 8.
void Record(Device& device, uint32_t count) {
  const std::lock_guard lock(device.mutex);
  for (uint32_t n = 0; n < count; ++n) {
    const size_t at = sizeof(hangscope_ring) + 16 * (n % 8);
    device.image.PutRing(1, at, n << HANGSCOPE_TICKET_SHIFT | 77);
    device.image.PutRing(1, at + 4, 1'000'000 + 1000 * n);
    device.image.PutRing(1, at + 8, n);
    device.image.PutRing(1, at + 12, 5);
  }
  device.image.PutEmitted(1, count);
}

TEST(HostApi, ReadsEventsAndCountsWhatIsLost) {
  Device device;
  Record(device, 11);
  auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
  ASSERT_TRUE(target.ok());
  for (int again = 0; again < 2; ++again) {
    auto events = target->ReadEvents();
    ASSERT_TRUE(events.ok()) << events.status().message();
    EXPECT_EQ(events->lost, 3u);
    ASSERT_EQ(events->events.size(), 8u);
    const host::Event& first = events->events[0];
    EXPECT_EQ(first.core, 1u);
    EXPECT_EQ(first.sequence, 3u);
    EXPECT_EQ(first.time, std::chrono::nanoseconds(1'003'000));
    EXPECT_EQ(first.name, "event 77");
    EXPECT_EQ(first.text, "(3, 5)");
    EXPECT_EQ(events->events[7].sequence, 10u);
  }
}

TEST(HostApi, WatcherReadsEventsWhileItWatches) {
  Device device;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(), {});
  ASSERT_TRUE(watcher.ok());
  Record(device, 5);
  auto events = watcher->ReadEvents();
  ASSERT_TRUE(events.ok()) << events.status().message();
  EXPECT_EQ(events->events.size(), 5u);
  EXPECT_EQ(events->lost, 0u);
}

TEST(HostApi, SetsDelaysOfACore) {
  Device device;
  auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
  ASSERT_TRUE(target.ok());
  host::Delays delays;
  delays.read = host::Delay{100};
  delays.atomic = host::Delay{500, true};
  delays.seed = 7;
  device.image.PutDetail(2, offsetof(hangscope_detail, delays) + 4, 9);
  ASSERT_TRUE(target->SetDelays(2, delays).ok());
  const auto word = [&](size_t at) { return device.image.GetDetail(2, at); };
  EXPECT_EQ(word(offsetof(hangscope_detail, delays)), 100u);
  EXPECT_EQ(word(offsetof(hangscope_detail, delays) + 4), 9u) << "was not given";
  EXPECT_EQ(word(offsetof(hangscope_detail, delays) + 8), 500u | HANGSCOPE_DELAY_RANDOM);
  EXPECT_EQ(word(offsetof(hangscope_detail, delay_seed)), 7u);
  delays.write = host::Delay{1u << 31};
  EXPECT_EQ(target->SetDelays(2, delays).message(),
            "a delay of 2147483648 rounds; up to 2147483647 are possible");
  EXPECT_EQ(target->SetDelays(4, {}).message(), "there are cores 0 to 3");
}

TEST(HostApi, SetsWhichEventsACoreRecords) {
  Device device;
  const auto mask = [&] { return device.image.GetRing(1, offsetof(hangscope_ring, mask)); };
  {
    auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
    EXPECT_THAT(target->SetMask(1, 0).message(), HasSubstr("was built with HANGSCOPE_MASK=0"));
  }
  device.image.PutHeaderWord(offsetof(hangscope_header, features), HANGSCOPE_FEATURE_MASK);
  device.image.SignHeader();
  auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
  ASSERT_TRUE(target.ok());
  ASSERT_TRUE(target->SetMask(1, host::kClassTask | host::kClassUser).ok());
  EXPECT_EQ(mask(), 0x11u);
  ASSERT_TRUE(target->SetMask(1, host::kAllClasses & ~host::kClassHistory).ok());
  EXPECT_EQ(mask(), 0x7fffffffu);
  ASSERT_TRUE(target->SetMask(1, host::kAllClasses).ok());
  EXPECT_EQ(mask(), 0xffffffffu)
      << "the history of waypoints, waits and transactions is a class, too";
  ASSERT_TRUE(target->SetMask(1, host::kClassTask | host::kClassUser).ok());
  ASSERT_TRUE(target->FreezeAfter(1, 20).ok());
  EXPECT_EQ(mask(), 0u);
  EXPECT_EQ(device.image.GetRing(1, offsetof(hangscope_ring, armed)), 0x11u);
  EXPECT_EQ(device.image.GetRing(1, offsetof(hangscope_ring, remaining)), 20u);
  EXPECT_EQ(target->FreezeAfter(1, 1u << 31).code(), host::Code::kUsage);
}

TEST(HostApi, SwitchesFeatures) {
  Device device;
  auto watcher = host::Watcher::Start(std::make_unique<DeviceProbe>(device), Quick(), {});
  ASSERT_TRUE(watcher.ok());
  auto features = watcher->ReadFeatures();
  ASSERT_TRUE(features.ok());
  EXPECT_EQ(features->on, features->built);
  ASSERT_TRUE(watcher->SetFeatures(features->built & ~host::kFeatureWaits).ok());
  EXPECT_EQ(watcher->ReadFeatures()->on, HANGSCOPE_WATCH_FEATURES & ~HANGSCOPE_WATCH_WAITS);
  {
    const std::lock_guard lock(device.mutex);
    EXPECT_EQ(device.image.GetWatchWord(offsetof(hangscope_watch, switch_changes)), 1u);
  }
  EXPECT_EQ(watcher->SetFeatures(1u << 20).message(),
            "features 0x100000 are not built into the board");
}

TEST(HostApi, TakesASnapshotThatSaysTheSame) {
  Device device;
  Deadlock(device);
  Record(device, 11);
  const std::string folder =
      testing::TempDir() + "host_api_test." + std::to_string(getpid()) + ".snapshot";
  {
    auto target = host::Target::Open(std::make_unique<DeviceProbe>(device), Quick());
    ASSERT_TRUE(target.ok());
    const host::Status status = target->TakeSnapshot(folder);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_FALSE(target->TakeSnapshot(folder).ok()) << "it is there already";
  }
  auto snapshot = host::Target::Open(folder, Quick());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  auto findings = snapshot->Why();
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_THAT((*findings)[0].summary, HasSubstr("deadlock, 2 of"));
  EXPECT_EQ(snapshot->ReadEvents()->events.size(), 8u);
  EXPECT_THAT(snapshot->Pause(0).message(),
              HasSubstr("is a snapshot, which stays as it was taken"));
  EXPECT_EQ(snapshot->SetFeatures(0).code(), host::Code::kUsage);
  std::filesystem::remove_all(folder);
}

class EmptyProbe final : public host::Probe {
 public:
  explicit EmptyProbe(std::vector<host::Range> ranges) : ranges_(std::move(ranges)) {}
  host::Status Read(uint64_t, void* bytes, size_t count) override {
    std::memset(bytes, 0, count);
    return {};
  }
  std::vector<host::Range> Ranges() const override { return ranges_; }

 private:
  std::vector<host::Range> ranges_;
};

TEST(HostApi, SaysWhatIsWrong) {
  Device device;
  EXPECT_EQ(host::Target::Open("file:/nonexistent").status().code(), host::Code::kNotFound);
  EXPECT_EQ(host::Target::Open("pid:x").status().code(), host::Code::kUsage);
  EXPECT_EQ(host::Target::Open(std::unique_ptr<host::Probe>()).status().code(), host::Code::kUsage);
  EXPECT_EQ(host::Watcher::Start("exec:false", Quick(), {}).status().code(), host::Code::kIo);
  host::Options options;
  options.interval = 0ns;
  EXPECT_THAT(
      host::Watcher::Start(std::make_unique<DeviceProbe>(device), options, {}).status().message(),
      HasSubstr("Options::interval: 0 ns"));
  EXPECT_THAT(
      host::Target::Open(std::make_unique<EmptyProbe>(std::vector<host::Range>{{0, 64}, {32, 64}}))
          .status()
          .message(),
      HasSubstr("do not overlap"));
  EXPECT_THAT(host::Target::Open(std::make_unique<EmptyProbe>(std::vector<host::Range>{{0, 4096}}))
                  .status()
                  .message(),
              HasSubstr("has no scope"));
  EXPECT_FALSE(std::string(host::Version()).empty());
  EXPECT_STREQ(host::FindingKindName(host::FindingKind::kStarved), "starved");
}

}  // namespace
}  // namespace hangscope

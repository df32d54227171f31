// Memories judged as one target: waits that lead from one into another, and memories that come and
// go.
#include "device/live_device.h"

#include <gtest/gtest.h>

#include <deque>

#include "fakes/borrowed_target.h"
#include "fakes/fake_file_system.h"
#include "fakes/watch_image.h"

namespace hangscope {
namespace {

constexpr TimeNs kStallTime = kSecond;
constexpr uint32_t kExclusive = HANGSCOPE_RESOURCE_EXCLUSIVE;
constexpr uint32_t kChannel = HANGSCOPE_RESOURCE_CHANNEL;
constexpr uint32_t kFirstProvide = 4;  // slot, behind those that are held

// As HANGSCOPE_NODE_RESOURCE: by the number that the memory's own table gives the node.
uint32_t Of(uint32_t node, uint32_t number) { return (node + 1) << 16 | number; }

class LiveDeviceTest : public ::testing::Test {
 protected:
  // A memory of two cores in node `own` of its table, which has these coordinates.
  WatchImage& Add(uint32_t own, const std::vector<std::pair<uint16_t, uint16_t>>& table,
                  uint32_t tasks = 0) {
    WatchImage& image = images_.emplace_back(WatchImageOptions{
        .cores = 2, .tasks = tasks, .nodes = static_cast<uint32_t>(table.size())});
    for (size_t i = 0; i < table.size(); ++i)
      image.PutNode(static_cast<uint32_t>(i), 0, table[i].first | table[i].second << 16);
    for (const uint32_t core : {0u, 1u}) {
      image.Put(core, offsetof(hangscope_mailbox, node), own);
      image.Put(core, offsetof(hangscope_mailbox, heartbeat), 1);
    }
    DeviceMemory memory;
    memory.source = SourceOf(image.target);
    memory.name = "memory " + std::to_string(images_.size() - 1);
    spec_.memories.push_back(memory);
    return image;
  }
  // Two nodes side by side, which both know of each other.
  void AddPair() {
    Add(0, {{0, 0}, {1, 0}});
    Add(1, {{0, 0}, {1, 0}});
  }
  void AddUnreadable() {
    DeviceMemory memory;
    memory.name = "lost";
    memory.source.target = "the lost";
    memory.source.open = []() -> Result<std::unique_ptr<Target>> {
      return Status::Io("cannot open 'lost.bin': No such file or directory");
    };
    spec_.memories.push_back(memory);
  }
  Status Open() {
    spec_.name = "grid";
    auto opened = LiveDevice::Open(files_, spec_, {kStallTime}, now_);
    if (opened.ok()) device_ = std::move(*opened);
    return opened.status();
  }
  void Poll() {
    device_->Poll(now_);
    for (ScopeFinding& finding : device_->DrainFindings()) {
      told_.push_back(FindingText(finding, device_->Scene(now_), device_->History(finding)));
      found_.push_back(std::move(finding));
    }
    for (const Watchable::Note& note : device_->DrainNotes()) notes_.push_back(note.text);
    now_ += 100 * kMillisecond;
  }
  // Cores that are not in `still` beat.
  void Run(TimeNs time, const std::set<std::pair<size_t, uint32_t>>& still = {}) {
    for (const TimeNs end = now_ + time; now_ < end;) {
      ++beats_;
      for (size_t i = 0; i < images_.size(); ++i) {
        for (const uint32_t core : {0u, 1u}) {
          if (!still.contains({i, core}) && images_[i].target.memory.size() > 1)
            images_[i].Put(core, offsetof(hangscope_mailbox, heartbeat), beats_);
        }
      }
      Poll();
    }
  }
  // Core 0 of each of the first two waits for what the other's holds, or provides.
  void Cross(uint32_t kind, uint32_t first = Of(0, 5), uint32_t second = Of(1, 6)) {
    const uint32_t slot = kind == kExclusive ? 0 : kFirstProvide;
    images_[0].PutClaim(0, slot, first);
    images_[1].PutClaim(0, slot, second);
    images_[0].Wait(0, second, kind, 1000);
    images_[1].Wait(0, first, kind, 2000);
  }
  const std::set<std::pair<size_t, uint32_t>> both_ = {{0, 0}, {1, 0}};

  FakeFileSystem files_;
  std::deque<WatchImage> images_;
  DeviceSpec spec_;
  std::unique_ptr<LiveDevice> device_;
  uint32_t beats_ = 1;
  std::vector<ScopeFinding> found_;
  std::vector<std::string> told_;
  std::vector<std::string> notes_;
  TimeNs now_ = 100 * kSecond;
};

TEST_F(LiveDeviceTest, ADeadlockAcrossMemoriesIsFoundAndNamesTheNodes) {
  AddPair();
  Cross(kChannel);
  ASSERT_TRUE(Open().ok());
  Run(3 * kStallTime, both_);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
  EXPECT_NE(told_[0].find("core 0 (0,0)"), std::string::npos) << told_[0];
  EXPECT_NE(told_[0].find("resource 6 of (1,0) (provided by core 0 (1,0))"), std::string::npos)
      << told_[0];
  const Finding told = device_->Tell(found_[0], now_);
  ASSERT_EQ(told.subjects.size(), 2u);
  EXPECT_EQ(told.subjects[1].core, 0u);  // by its own memory's number
  EXPECT_EQ(told.subjects[1].memory, "memory 1");
  EXPECT_EQ(told.subjects[1].node, (std::pair<uint32_t, uint32_t>{1, 0}));
}

TEST_F(LiveDeviceTest, NodesMeetByTheirCoordinatesAndNotByTheirNumbers) {
  Add(0, {{0, 0}, {1, 0}});
  Add(0, {{1, 0}, {0, 0}});
  Cross(kExclusive);
  images_[1].PutClaim(0, 0, Of(0, 6));  // which is (1,0) there
  images_[1].Wait(0, Of(1, 5), kExclusive, 2000);
  ASSERT_TRUE(Open().ok());
  Run(3 * kStallTime, both_);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
}

// Addresses and the like mean something else in each memory.
TEST_F(LiveDeviceTest, NumbersThatAreNoNodesAreOfTheirMemoryAlone) {
  AddPair();
  Cross(kExclusive, 0x77, 0x80000078);
  ASSERT_TRUE(Open().ok());
  Run(3 * kStallTime, both_);
  for (const ScopeFinding& finding : found_) {
    EXPECT_NE(finding.kind, FindingKind::kDeadlock);
    EXPECT_FALSE(finding.IsBad());
  }
}

TEST_F(LiveDeviceTest, NobodyIsAccusedWhileAProviderInAnotherMemoryGoesOn) {
  AddPair();
  images_[1].PutClaim(0, kFirstProvide, Of(1, 6));
  images_[1].PutClaim(1, kFirstProvide, Of(1, 6));
  images_[0].PutClaim(0, kFirstProvide, Of(0, 5));
  images_[0].Wait(0, Of(1, 6), kChannel, 1000);
  images_[1].Wait(0, Of(0, 5), kChannel, 1000);
  ASSERT_TRUE(Open().ok());
  Run(2 * kStallTime, both_);  // core 1 of memory 1 provides it, too, and beats
  EXPECT_TRUE(found_.empty());
}

TEST_F(LiveDeviceTest, ACoreThatFaultedInAnotherNodeIsNamedAsTheCulprit) {
  AddPair();
  images_[1].PutClaim(1, kFirstProvide, Of(1, 6));
  images_[1].Put(1, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  images_[0].Wait(0, Of(1, 6), kChannel, 1000);
  ASSERT_TRUE(Open().ok());
  Run(3 * kStallTime, {{0, 0}, {1, 1}});
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kFault);
  EXPECT_NE(told_[0].find("core 1 (1,0)"), std::string::npos) << told_[0];
  EXPECT_NE(device_->Scene(now_).Find({SubjectId::Kind::kCore, 0}), nullptr);
}

TEST_F(LiveDeviceTest, WhichFaultOfANodeCameFirstIsToldByTheDevicesNumbers) {
  AddPair();
  images_[0].Put(1, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  for (const uint32_t core : {0u, 1u})
    images_[1].Put(core, offsetof(hangscope_mailbox, fault), HANGSCOPE_FAULT_ASSERT);
  images_[1].PutNode(1, offsetof(hangscope_node, first_fault), 2);
  ASSERT_TRUE(Open().ok());
  Run(kStallTime, {{0, 1}, {1, 0}, {1, 1}});
  ASSERT_EQ(told_.size(), 3u);
  const auto says = [&](const std::string& who, const std::string& sentence) {
    return std::any_of(told_.begin(), told_.end(), [&](const std::string& text) {
      return text.find(who) < text.find('\n') && text.find(sentence) != std::string::npos;
    });
  };
  EXPECT_FALSE(says("core 1 (0,0)", "came first")) << told_[0];
  EXPECT_FALSE(says("core 1 (0,0)", "the first of")) << told_[0];
  EXPECT_TRUE(says("core 1 (1,0)", "the first of its node's 2 faults\n")) << told_[1] << told_[2];
  EXPECT_TRUE(says("core 0 (1,0)", "the first of its node's 2 faults was that of core 1 (1,0)\n"))
      << told_[1] << told_[2];
}

TEST_F(LiveDeviceTest, WhatMemoryThatCannotBeReadMayDeliverIsPossibleAtMost) {
  for (const uint32_t kind : {kChannel, kExclusive}) {
    images_.clear();
    spec_.memories.clear();
    found_.clear();
    AddPair();
    AddUnreadable();
    Cross(kind);
    ASSERT_TRUE(Open().ok());
    ASSERT_EQ(device_->warnings().size(), 1u);
    EXPECT_EQ(device_->warnings()[0],
              "memory 'lost' cannot be read: cannot open 'lost.bin': No such file or directory");
    Run(3 * kStallTime, both_);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
    // A lock has one holder, who is known.
    EXPECT_EQ(found_[0].confidence,
              kind == kExclusive ? Confidence::kCertain : Confidence::kPossible);
    EXPECT_EQ(found_[0].doubts.empty(), kind == kExclusive);
  }
  EXPECT_EQ(device_->Unread(),
            std::vector<std::string>{"lost: cannot open 'lost.bin': No such file or directory"});
}

TEST_F(LiveDeviceTest, AMemoryThatGoesAwayIsSaidAndTheOthersStayWatched) {
  AddPair();
  Add(0, {{2, 0}});
  images_[0].PutClaim(1, 0, Of(0, 9));
  images_[0].Wait(1, Of(0, 9), kExclusive, 5);  // waits for itself
  images_[2].PutClaim(0, kFirstProvide, 7);
  ASSERT_TRUE(Open().ok());
  Run(kStallTime / 2, {{0, 1}});
  const std::string whole = images_[2].target.memory;
  images_[2].target.Set("x");
  Run(kStallTime / 2, {{0, 1}});
  ASSERT_FALSE(notes_.empty());
  EXPECT_NE(notes_[0].find("memory 'memory 2' cannot be read: "), std::string::npos) << notes_[0];
  EXPECT_EQ(device_->watcher().subjects()[4].activity, Activity::kUnread);
  images_[2].target.Set(whole);
  Run(kStallTime, {{0, 1}});
  EXPECT_NE(notes_.back().find("can be read again"), std::string::npos) << notes_.back();
  EXPECT_EQ(device_->watcher().subjects()[4].activity, Activity::kRunning);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
}

TEST_F(LiveDeviceTest, AProviderWhoseMemoryIsAwayMayDeliver) {
  AddPair();
  images_[1].PutClaim(0, kFirstProvide, Of(1, 6));
  images_[0].Wait(0, Of(1, 6), kChannel, 1000);
  ASSERT_TRUE(Open().ok());
  Run(2 * kStallTime, {{0, 0}});
  EXPECT_TRUE(found_.empty());
  images_[1].target.Set("x");
  Run(kStallTime - 200 * kMillisecond, {{0, 0}});
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_NE(told_[0].find("the memory of core 0 (1,0) cannot be read"), std::string::npos)
      << told_[0];
  Run(kStallTime, {{0, 0}});  // and then it is gone for good: a finding of its own
  ASSERT_GE(found_.size(), 2u);
  EXPECT_EQ(found_[1].kind, FindingKind::kDead);
  EXPECT_EQ(found_[1].summary.rfind("memory 'memory 1': it is gone", 0), 0u) << found_[1].summary;
  EXPECT_FALSE(device_->is_over());
}

TEST_F(LiveDeviceTest, AMemoryThatComesLaterIsWatchedFromThen) {
  AddPair();
  Cross(kExclusive);
  bool is_there = false;
  const auto open = spec_.memories[1].source.open;
  spec_.memories[1].source.open = [&is_there, open]() -> Result<std::unique_ptr<Target>> {
    return is_there ? open() : Result<std::unique_ptr<Target>>(Status::Io("not yet"));
  };
  ASSERT_TRUE(Open().ok());
  Run(2 * kStallTime, both_);
  for (const ScopeFinding& finding : found_) EXPECT_FALSE(finding.IsBad());
  found_.clear();
  is_there = true;
  Run(3 * kStallTime, both_);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
}

TEST_F(LiveDeviceTest, DumpsOfAllMemoriesAreJudgedTogether) {
  AddPair();
  Cross(kExclusive);
  for (WatchImage& image : images_) image.target.state = Life::kUnknown;
  ASSERT_TRUE(Open().ok());
  for (int i = 0; i < 30 && !device_->is_over(); ++i) Poll();
  EXPECT_TRUE(device_->is_over());
  EXPECT_TRUE(device_->is_dead());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
}

// How old a wait was when its own memory was last heard of says nothing of another memory's.
TEST_F(LiveDeviceTest, OfDumpsWithClocksOfTheirOwnNobodyStoppedFirst) {
  for (const bool one_clock : {false, true}) {
    images_.clear();
    spec_.memories.clear();
    found_.clear();
    spec_.one_clock = one_clock;
    AddPair();
    Cross(kExclusive);
    images_[0].Wait(1, 9, HANGSCOPE_RESOURCE_OUTSIDE, 5000);
    for (WatchImage& image : images_) image.target.state = Life::kUnknown;
    ASSERT_TRUE(Open().ok());
    for (int i = 0; i < 30 && !device_->is_over(); ++i) Poll();
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].first.has_value(), one_clock);
  }
}

TEST_F(LiveDeviceTest, WhoStoppedFirstIsKnownWhereOneClockIsAllMemories) {
  for (const bool one_clock : {false, true}) {
    images_.clear();
    spec_.memories.clear();
    found_.clear();
    spec_.one_clock = one_clock;
    AddPair();
    Cross(kExclusive);
    ASSERT_TRUE(Open().ok());
    Run(3 * kStallTime, both_);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].first.has_value(), one_clock);
  }
  EXPECT_EQ(found_[0].first->index, 0u);
}

// Mailboxes and nothing else, while nobody waits for long: 128 nodes at ten looks a second are half
// a megabyte.
TEST_F(LiveDeviceTest, ALookAtManyNodesReadsTheirMailboxesAndHeadsOnly) {
  constexpr uint16_t kNodes = 128;
  for (uint16_t node = 0; node < kNodes; ++node)
    Add(0, {{static_cast<uint16_t>(node + 1), 0}, {static_cast<uint16_t>(node + 2), 0}});
  ASSERT_TRUE(Open().ok());
  Run(2 * kStallTime);
  const uint64_t before = device_->bytes_read();
  Run(kStallTime);
  EXPECT_EQ(device_->bytes_read() - before,
            10 * kNodes * 2 * (sizeof(hangscope_mailbox) + sizeof(hangscope_ring::head)));
}

TEST_F(LiveDeviceTest, AFileThatContradictsAScopeIsRefused) {
  AddPair();
  spec_.memories[1].node = {7, 7};
  EXPECT_EQ(Open().message(), "memory 'memory 1': the file says it is node (7,7), its scope (1,0)");
  spec_.memories[1].node = {1, 0};
  EXPECT_TRUE(Open().ok());
  Add(1, {{0, 0}, {1, 0}});
  EXPECT_EQ(Open().message(), "memories 'memory 1' and 'memory 2' both have cores at (1,0)");
}

// Where a scope knows itself alone, the file says where it is.
TEST_F(LiveDeviceTest, TheFilePlacesAScopeThatWasToldNothing) {
  Add(0, {{0, 0}});
  Add(0, {{0, 0}});
  ASSERT_TRUE(Open().ok());
  Poll();
  EXPECT_EQ(SubjectName({SubjectId::Kind::kCore, 2}, device_->Scene(now_)), "core 0 (memory 1)");
  spec_.memories[0].node = {3, 4};
  ASSERT_TRUE(Open().ok());
  Poll();
  EXPECT_EQ(SubjectName({SubjectId::Kind::kCore, 1}, device_->Scene(now_)), "core 1 (3,4)");
}

// Task 7 of one memory is another one than task 7 of the next, and their holders are their own.
TEST_F(LiveDeviceTest, TasksOfAnOsAreInTheCircleAndAreToldApart) {
  Add(0, {{0, 0}, {1, 0}}, 2);
  Add(1, {{0, 0}, {1, 0}}, 2);
  images_[0].TaskWaits(0, 7, kChannel, Of(1, 6), HANGSCOPE_NO_TASK);
  images_[1].TaskWaits(1, 7, kChannel, Of(0, 5), HANGSCOPE_NO_TASK);
  images_[0].PutClaim(2, kFirstProvide, Of(0, 5));  // rows of tasks come behind those of cores
  images_[1].PutClaim(3, kFirstProvide, Of(1, 6));
  images_[0].TaskWaits(1, 8, kExclusive, 0x20, 7);  // held by task 7, as its record says
  ASSERT_TRUE(Open().ok());
  Run(3 * kStallTime);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_NE(told_[0].find("task 7 (0,0)"), std::string::npos) << told_[0];
  EXPECT_NE(told_[0].find("(provided by task 7 (1,0))"), std::string::npos) << told_[0];
  EXPECT_NE(told_[0].find("also waiting for these: task 8 (0,0)"), std::string::npos) << told_[0];
  const Finding told = device_->Tell(found_[0], now_);
  EXPECT_EQ(told.subjects[0].task, 7u);
  EXPECT_EQ(told.subjects[1].task, 7u);
  EXPECT_EQ(told.victims[0].waits_for, "0x20 (0,0)");
}

// A ready task that never runs is for a watch of its memory alone.
TEST_F(LiveDeviceTest, WhoRunsIsNotJudged) {
  Add(0, {{0, 0}}, 2);
  images_[0].TaskIsReady(0, 7);
  images_[0].TaskIsReady(1, 8);
  images_[0].PutRunning(0, 7);
  ASSERT_TRUE(Open().ok());
  Run(5 * kStallTime, {{0, 0}, {0, 1}});
  EXPECT_TRUE(std::none_of(found_.begin(), found_.end(), [](const ScopeFinding& finding) {
    return finding.kind == FindingKind::kStarved;
  }));
}

TEST_F(LiveDeviceTest, ACoreWhoseNodeCannotBeRightIsInNone) {
  AddPair();
  ASSERT_TRUE(Open().ok());
  Run(kStallTime / 2);
  images_[1].Put(1, offsetof(hangscope_mailbox, node), 3);
  Run(kStallTime / 2);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kCorrupt);
  EXPECT_NE(told_[0].find("core 1 of (1,0): node"), std::string::npos) << told_[0];
}

TEST_F(LiveDeviceTest, WhatIsCorruptNamesItsMemory) {
  AddPair();
  ASSERT_TRUE(Open().ok());
  Run(kStallTime / 2);
  images_[1].Put(1, offsetof(hangscope_mailbox, guard), 7);
  Run(kStallTime / 2);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_NE(told_[0].find("core 1 of (1,0): guard"), std::string::npos) << told_[0];
  EXPECT_EQ(found_[0].subjects[0].index, 3u);
}

}  // namespace
}  // namespace hangscope

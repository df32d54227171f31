// The memories of a device in a snapshot: what of them is kept, and what is made of it later.
#include "snapshot/device_capture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fakes/borrowed_target.h"
#include "fakes/fake_file_system.h"
#include "fakes/watch_image.h"

namespace hangscope {
namespace {

using testing::ElementsAre;

constexpr TimeNs kCapturedAt = 100 * kSecond;

// Core 0 of each of two memories holds a lock that the other's waits for; a third cannot be read.
class DeviceCaptureTest : public ::testing::Test {
 protected:
  DeviceCaptureTest() {
    char name[] = "/tmp/hangscope-capture-XXXXXX";
    folder_ = mkdtemp(name);
    spec_.name = "grid";
    for (uint32_t i = 0; i < 2; ++i) {
      WatchImage& image = images_[i];
      for (uint32_t node = 0; node < 2; ++node) image.PutNode(node, 0, node);
      image.Put(0, offsetof(hangscope_mailbox, node), i);
      image.PutClaim(0, 0, (i + 1) << 16 | 5);
      image.Wait(0, (2 - i) << 16 | 5, HANGSCOPE_RESOURCE_EXCLUSIVE, 1000);
      DeviceMemory memory;
      memory.name = "memory " + std::to_string(i);
      memory.source = SourceOf(image.target);
      spec_.memories.push_back(memory);
    }
    DeviceMemory lost;
    lost.name = "lost";
    lost.source.target = "file:lost.bin";
    lost.source.open = []() -> Result<std::unique_ptr<Target>> { return Status::Io("it is off"); };
    spec_.memories.push_back(lost);
  }
  ~DeviceCaptureTest() override { std::filesystem::remove_all(folder_); }

  // Into the folder.
  DeviceManifest Capture() {
    FakeFileSystem none;
    auto device = LiveDevice::Open(none, spec_, {kSecond}, kCapturedAt);
    EXPECT_TRUE(device.ok());
    (*device)->Poll(kCapturedAt);
    DeviceManifest manifest;
    for (const auto& [name, bytes] : CaptureDevice(none, **device, &manifest)) {
      EXPECT_TRUE(IsPartOfDevice(name)) << name;
      EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), folder_ + "/" + name, bytes).ok());
    }
    return manifest;
  }
  // What the folder's memories say together.
  std::vector<ScopeFinding> Findings() {
    auto spec = ReadCapturedDevice(PosixFileSystem(), folder_);
    EXPECT_TRUE(spec.ok()) << spec.status().message();
    auto device = LiveDevice::Open(PosixFileSystem(), *spec, {kSecond}, kCapturedAt);
    EXPECT_TRUE(device.ok());
    (*device)->Poll(kCapturedAt);
    unread_ = (*device)->Unread();
    return (*device)->watcher().standing();
  }
  void Replace(const std::string& what, const std::string& by) {
    const std::string path = folder_ + "/" + kDeviceFileName;
    std::string text = ReadWholeFile(PosixFileSystem(), path, 1 << 20).value_or("");
    const size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), path, text.replace(at, what.size(), by)).ok());
  }

  WatchImage images_[2] = {WatchImage({.cores = 1, .nodes = 2}),
                           WatchImage({.cores = 1, .nodes = 2})};
  DeviceSpec spec_;
  std::string folder_;
  std::vector<std::string> unread_;
};

TEST_F(DeviceCaptureTest, SaysOfEachMemoryWhereItIsOrWhyItIsNot) {
  const DeviceManifest manifest = Capture();
  ASSERT_EQ(manifest.memories.size(), 3u);
  EXPECT_EQ(manifest.memories[0].image, "memory-0.bin");
  EXPECT_EQ(manifest.memories[1].image, "memory-1.bin");
  EXPECT_EQ(manifest.memories[2].image, "");
  EXPECT_EQ(manifest.memories[2].unread, "it is off");
}

TEST_F(DeviceCaptureTest, AWaitLeadsFromOneImageIntoTheOther) {
  Capture();
  const std::vector<ScopeFinding> found = Findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kDeadlock);
  EXPECT_THAT(unread_, ElementsAre("lost: it is off"));
}

TEST_F(DeviceCaptureTest, WhoHadEndedWaitsForNothing) {
  Capture();
  Replace("\"catalog\": \"memory-0.catalog\"",
          "\"catalog\": \"memory-0.catalog\", \"ended\": true");
  for (const ScopeFinding& finding : Findings()) EXPECT_NE(finding.kind, FindingKind::kDeadlock);
}

// A snapshot may be somebody else's.
TEST_F(DeviceCaptureTest, NamesNothingOutsideTheFolder) {
  Capture();
  Replace("file:memory-1.bin", "exec:touch /tmp/never");
  auto spec = ReadCapturedDevice(PosixFileSystem(), folder_);
  EXPECT_EQ(spec.status().message(),
            fmt::format("'{}/device.json' names 'exec:touch /tmp/never', which is no part of the "
                        "snapshot",
                        folder_));
  Replace("exec:touch /tmp/never", "file:/etc/hostname");
  EXPECT_FALSE(ReadCapturedDevice(PosixFileSystem(), folder_).ok());
}

TEST(DeviceCapture, KnowsItsPartsByName) {
  for (const char* const name :
       {"device.json", "memory-0.bin", "memory-12.catalog", "program-3.catalog"})
    EXPECT_TRUE(IsPartOfDevice(name)) << name;
  for (const char* const name :
       {"memory-.bin", "memory-x.bin", "program-3.bin", "memory-0.bin.orig", "../memory-0.bin"})
    EXPECT_FALSE(IsPartOfDevice(name)) << name;
}

}  // namespace
}  // namespace hangscope

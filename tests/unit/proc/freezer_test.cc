#include "proc/freezer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hangscope {
namespace {

// Process 7, and groups as a test writes them down.
class FreezerTest : public ::testing::Test {
 protected:
  ~FreezerTest() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  bool Holds() { return !WhatHolds().empty(); }
  // Below the folder of groups.
  std::string WhatHolds() {
    const std::string groups = (root_ / "cgroup").string();
    const std::string file = Freezer(proc_, groups).WhatHolds(7);
    return file.starts_with(groups) ? file.substr(groups.size()) : file;
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("hangscope-freezer-" + std::to_string(getpid()));
  const ProcFolder proc_{root_.string()};
};

TEST_F(FreezerTest, NothingIsKnownWithoutGroups) {
  EXPECT_FALSE(Holds());
  Put("7/cgroup", "0::/\n");
  EXPECT_FALSE(Holds());
}

TEST_F(FreezerTest, TheSecondVersionSaysItOfTheGroupOrOfOneAbove) {
  Put("7/cgroup", "1:name=systemd:/\n0::/user/job\n");
  Put("cgroup/user/job/cgroup.freeze", "0\n");
  Put("cgroup/user/job/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_FALSE(Holds());
  Put("cgroup/user/cgroup.freeze", "1\n");
  EXPECT_EQ(WhatHolds(), "/user/cgroup.freeze") << "and one of the group cannot be frozen yet";
  Put("cgroup/user/cgroup.freeze", "0\n");
  Put("cgroup/user/job/cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_EQ(WhatHolds(), "/user/job/cgroup.freeze") << "by a group that is not in sight";
}

TEST_F(FreezerTest, BesideTheFirstVersionItIsMountedElsewhere) {
  Put("7/cgroup", "0::/job\n");
  Put("cgroup/unified/job/cgroup.freeze", "1\n");
  EXPECT_EQ(WhatHolds(), "/unified/job/cgroup.freeze");
}

TEST_F(FreezerTest, TheFirstVersionHasAHierarchyOfItsOwn) {
  Put("7/cgroup", "3:cpu,cpuacct:/\n2:freezer:/job\n0::/\n");
  Put("cgroup/freezer/job/freezer.state", "THAWED\n");
  EXPECT_FALSE(Holds());
  Put("cgroup/freezer/job/freezer.state", "FREEZING\n");
  EXPECT_EQ(WhatHolds(), "/freezer/job/freezer.state");
  Put("7/cgroup", "2:freezer:/job/part\n");
  Put("cgroup/freezer/job/part/freezer.state", "FROZEN\n");
  Put("cgroup/freezer/job/part/freezer.self_freezing", "0\n");
  Put("cgroup/freezer/job/freezer.self_freezing", "1\n");
  EXPECT_EQ(WhatHolds(), "/freezer/job/freezer.state") << "which that is in";
}

}  // namespace
}  // namespace hangscope

#include "proc/proc_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace hangscope {
namespace {

TEST(ProcFolder, SaysWhyItShowsNothingOfThisProcess) {
  EXPECT_EQ(ProcFolder("/proc").WhyBlind(), "");
  const auto root =
      std::filesystem::temp_directory_path() / ("hangscope-proc-" + std::to_string(getpid()));
  const ProcFolder proc(root.string());
  EXPECT_EQ(proc.WhyBlind(), "/proc shows no processes: mount it");
  std::filesystem::create_directories(root / "1");
  constexpr const char* kAnother =
      "/proc shows the processes of another PID namespace: mount one of this";
  EXPECT_EQ(proc.WhyBlind(), kAnother) << "its processes do not include this one";
  std::filesystem::create_symlink(std::to_string(getpid() + 1), root / "self");
  EXPECT_EQ(proc.WhyBlind(), kAnother);
  std::filesystem::remove(root / "self");
  std::filesystem::create_symlink(std::to_string(getpid()), root / "self");
  EXPECT_EQ(proc.WhyBlind(), "");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hangscope

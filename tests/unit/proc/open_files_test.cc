#include "proc/open_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace hangscope {
namespace {

// A /proc in which process 42 has connections to 10.0.0.2, each from a port of its own.
class ManyConnections : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ / "42/fd");
    std::filesystem::create_directories(root_ / "42/ns");
    std::filesystem::create_directories(root_ / "42/net");
    std::filesystem::create_symlink("net:[1]", root_ / "42/ns/net");
    std::ofstream table(root_ / "42/net/tcp");
    table << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
    for (int i = 0; i < kConnections; ++i) {
      table << fmt::format("{}: 0100000A:{:04X} 0200000A:0050 01 0:0 00:0 0 0 0 {} 1 0\n", i,
                           1000 + i, 7000 + i);
      std::filesystem::create_symlink(fmt::format("socket:[{}]", 7000 + i),
                                      root_ / fmt::format("42/fd/{}", i));
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static constexpr int kConnections = 5;
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / fmt::format("hangscope-open-files-{}", getpid());
};

TEST_F(ManyConnections, AreToldOfUpToALimitAndTheRestIsCounted) {
  const ProcFolder proc(root_.string());
  for (const size_t most : {size_t{0}, size_t{3}, size_t{5}, size_t{6}}) {
    OpenFiles files(proc);
    size_t left_out = 99;
    const auto ends = files.RemoteEndsOf({42}, most, &left_out);
    EXPECT_EQ(ends.size(), std::min<size_t>(most, kConnections));
    EXPECT_EQ(ends.size() + left_out, size_t{kConnections});
    if (!ends.empty()) {
      EXPECT_EQ(ends[0].remote, "10.0.0.2:80");
      EXPECT_EQ(ends[0].holders, (std::vector<std::pair<int, int>>{{42, 0}}));
    }
  }
}

}  // namespace
}  // namespace hangscope

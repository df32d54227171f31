// Who ran when: from switches in any order, of which the newest runs are kept.
#include "perf/perf_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace hangscope {
namespace {

using ::testing::ElementsAre;

// Cpu, thread, from, to.
using CpuRun = std::tuple<int64_t, int64_t, TimeNs, TimeNs>;

constexpr size_t kAll = 1'000'000;

bool Anybody(int) { return true; }

std::vector<CpuRun> Found(const std::map<int64_t, PerfSwitches>& switches, TimeNs until,
                          size_t most = kAll, bool (*is_wanted)(int) = Anybody) {
  std::vector<CpuRun> runs;
  for (const TaskRun& run : FindRuns(switches, until, most, is_wanted).runs)
    runs.emplace_back(run.cpu, run.task, run.time.from, run.time.to);
  std::sort(runs.begin(), runs.end());
  return runs;
}

// Three CPUs that switch at times of their own, and one of them far less than the others.
std::map<int64_t, PerfSwitches> ManySwitches(size_t count) {
  std::map<int64_t, PerfSwitches> switches;
  for (size_t i = 0; i < count; ++i) {
    const auto time = static_cast<TimeNs>(10 * i);
    switches[0].push_back({time, 1 + static_cast<int>(i % 7), 1 + static_cast<int>((i + 1) % 7)});
    switches[1].push_back({time + 1, 11, i % 3 == 0 ? 0 : 11});
    if (i % 100 == 0) switches[2].push_back({time + 2, 0, 21});
  }
  return switches;
}

TEST(PerfRunsTest, GoesFromComingToLeaving) {
  const std::map<int64_t, PerfSwitches> switches = {
      {0, {{10, 0, 7}, {20, 7, 8}, {30, 8, 0}, {40, 0, 7}, {50, 9, 0}}},
      {3, {{15, 5, 6}, {25, 0, 4}}}};
  EXPECT_THAT(Found(switches, 60),
              ElementsAre(CpuRun{0, 7, 10, 20}, CpuRun{0, 7, 40, 60}, CpuRun{0, 8, 20, 30},
                          CpuRun{3, 4, 25, 60}, CpuRun{3, 6, 15, 25}));
}

TEST(PerfRunsTest, KnowsNoCpuOfThreadsWhoseRecordsTellNone) {
  const std::map<int64_t, PerfSwitches> switches = {{-7, {{10, 0, 7}, {20, 7, 0}}}};
  EXPECT_THAT(Found(switches, 60), ElementsAre(CpuRun{-1, 7, 10, 20}));
}

TEST(PerfRunsTest, TellsOnlyOfWantedThreads) {
  const std::map<int64_t, PerfSwitches> switches = {{0, {{10, 0, 7}, {20, 7, 8}, {30, 8, 7}}}};
  EXPECT_THAT(Found(switches, 60, kAll, [](int tid) { return tid == 8; }),
              ElementsAre(CpuRun{0, 8, 20, 30}));
}

// As rings that are written backwards have them, or several that were read in turn.
TEST(PerfRunsTest, TellsTheSameWhateverTheOrderOfTheFile) {
  const auto ordered = ManySwitches(500);
  auto mixed = ordered;
  std::reverse(mixed[0].begin(), mixed[0].end());
  std::shuffle(mixed[1].begin(), mixed[1].end(), std::mt19937(1));
  EXPECT_EQ(Found(mixed, 5000), Found(ordered, 5000));
}

TEST(PerfRunsTest, KeepsTheNewest) {
  const auto switches = ManySwitches(5000);
  std::vector<CpuRun> all = Found(switches, 50'000);
  std::sort(all.begin(), all.end(),
            [](const CpuRun& a, const CpuRun& b) { return std::get<3>(a) < std::get<3>(b); });
  for (const size_t most : {size_t{1}, size_t{63}, size_t{1000}, all.size() - 1, all.size()}) {
    std::vector<CpuRun> newest(all.end() - static_cast<ptrdiff_t>(most), all.end());
    std::vector<CpuRun> found = Found(switches, 50'000, most);
    ASSERT_EQ(found.size(), most);
    // Those that go on to the end are equally new.
    const auto count = [](const std::vector<CpuRun>& runs) {
      return std::count_if(runs.begin(), runs.end(),
                           [](const CpuRun& run) { return std::get<3>(run) == 50'000; });
    };
    EXPECT_EQ(count(found), count(newest)) << most;
    if (most <= 3) continue;
    std::sort(newest.begin(), newest.end());
    EXPECT_EQ(found, newest) << most;
    EXPECT_EQ(FindRuns(switches, 50'000, most, Anybody).left_out, most < all.size());
  }
}

}  // namespace
}  // namespace hangscope

#include "report/run_steps.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

RunSteps RunOf(const std::vector<std::pair<std::string, std::string>>& names) {
  RunSteps run;
  for (const auto& [name, own_name] : names) run.sequences[name].own_name = own_name;
  return run;
}

TEST(RunSteps, ACoreIsComparedWithTheOneOfItsNumberAndName) {
  const RunSteps run =
      RunOf({{"core 1 alpha", "alpha"}, {"core 2 beta", "beta"}, {"core 3", ""}, {"stdout", ""}});
  for (const auto& [name, sequence] : run.sequences) EXPECT_EQ(CounterpartOf(name, run, run), name);
}

TEST(RunSteps, AThreadIsComparedWithTheOneOfItsNameWhateverItsNumber) {
  const RunSteps run = RunOf({{"core 1 alpha", "alpha"}, {"core 2 beta", "beta"}});
  const RunSteps other = RunOf({{"core 1 beta", "beta"}, {"core 2 alpha", "alpha"}});
  EXPECT_EQ(CounterpartOf("core 1 alpha", run, other), "core 2 alpha");
  EXPECT_EQ(CounterpartOf("core 2 beta", run, other), "core 1 beta");
}

TEST(RunSteps, OfSeveralOfOneNameNoneIsTaken) {
  const RunSteps one = RunOf({{"core 1 worker", "worker"}});
  const RunSteps two = RunOf({{"core 2 worker", "worker"}, {"core 3 worker", "worker"}});
  EXPECT_EQ(CounterpartOf("core 1 worker", one, two), std::nullopt);
  EXPECT_EQ(CounterpartOf("core 2 worker", two, one), std::nullopt);
  EXPECT_EQ(CounterpartOf("core 2 worker", two, two), "core 2 worker");
}

TEST(RunSteps, WhatHasNoNameOfItsOwnIsComparedByItsWholeName) {
  const RunSteps run = RunOf({{"core 1", ""}, {"stdout", ""}});
  const RunSteps other = RunOf({{"core 2", ""}, {"stderr", ""}});
  EXPECT_EQ(CounterpartOf("core 1", run, other), std::nullopt);
  EXPECT_EQ(CounterpartOf("stdout", run, other), std::nullopt);
}

}  // namespace
}  // namespace hangscope

#include "runtime/mpi/mpi_job.h"

#include <gtest/gtest.h>

#include <string>

namespace hangscope {
namespace {

std::string Environment(const std::string& rank, const std::string& size, const std::string& job) {
  std::string text;
  for (const std::string& entry : {std::string("HOME=/root"), "OMPI_COMM_WORLD_SIZE=" + size,
                                   "PMIX_NAMESPACE=" + job, "OMPI_COMM_WORLD_RANK=" + rank})
    text += entry + '\0';
  return text;
}

TEST(MpiJob, ItsEnvironmentTellsWhichRankAProcessIs) {
  const auto place = MpiPlaceOf(Environment("2", "4", "1546846209"));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->job, "1546846209");
}

TEST(MpiJob, WhatDoesNotTellAllOfItIsNoRank) {
  EXPECT_FALSE(MpiPlaceOf(""));
  EXPECT_FALSE(MpiPlaceOf("HOME=/root"));
  EXPECT_FALSE(MpiPlaceOf(Environment("4", "4", "1")));
  EXPECT_FALSE(MpiPlaceOf(Environment("-1", "4", "1")));
  EXPECT_FALSE(MpiPlaceOf(Environment("x", "4", "1")));
  EXPECT_FALSE(MpiPlaceOf(Environment("1", "4", "")));
}

TEST(MpiJob, CallsThatReturnWithoutOtherRanksAreNoWaits) {
  EXPECT_EQ(MpiWaitOf("PMPI_Recv"), "MPI_Recv");
  EXPECT_EQ(MpiWaitOf("MPI_Allreduce"), "MPI_Allreduce");
  EXPECT_EQ(MpiWaitOf("ompi_mpi_finalize"), "MPI_Finalize");
  EXPECT_EQ(MpiWaitOf("PMPI_Test"), "");
  EXPECT_EQ(MpiWaitOf("PMPI_Iprobe"), "");
  EXPECT_EQ(MpiWaitOf("PMPI_Isend"), "");
  EXPECT_EQ(MpiWaitOf("Recv"), "");
  EXPECT_EQ(MpiWaitOf(""), "");
}

TEST(MpiJob, KnowsTheMemoryThroughWhichMessagesPass) {
  EXPECT_TRUE(CarriesMpiMessages("/dev/shm/vader_segment.host.0.5c330001.0"));
  EXPECT_FALSE(CarriesMpiMessages("/dev/shm/cache"));
}

}  // namespace
}  // namespace hangscope

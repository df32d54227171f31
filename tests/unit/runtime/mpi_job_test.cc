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

TEST(MpiJob, MpichNumbersItsRanksAndDoesNotNameTheJob) {
  const std::string ranks("PMI_RANK=1\0PMI_FD=6\0PMI_SIZE=2\0", 30);
  const auto place = MpiPlaceOf(ranks);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 2);
  EXPECT_EQ(place->job, MpiPlaceOf(std::string("PMI_SIZE=2\0PMI_RANK=0\0", 22))->job);
  EXPECT_FALSE(MpiPlaceOf(std::string("PMI_RANK=2\0PMI_SIZE=2\0", 22)));
  // Open MPI, started by something that sets these, too.
  EXPECT_EQ(MpiPlaceOf(ranks + Environment("2", "4", "9"))->rank, 2);
  EXPECT_FALSE(MpiPlaceOf(ranks + Environment("4", "4", "9")));
}

TEST(MpiJob, IsKnownByItsLibrary) {
  EXPECT_TRUE(IsMpiLibrary("/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2"));
  EXPECT_TRUE(IsMpiLibrary("/opt/openmpi/lib/libmpi.so.40"));
  EXPECT_FALSE(IsMpiLibrary("/usr/lib/x86_64-linux-gnu/libmpfr.so.6"));
  EXPECT_TRUE(IsOfMpi("libucp.so.0.0.0"));
  EXPECT_TRUE(IsOfMpi("mca_pml_ob1.so"));
  EXPECT_FALSE(IsOfMpi("solver"));
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
  EXPECT_TRUE(CarriesMpiMessages("/dev/shm/mpich_shar_tmpNIcSgZ"));
  EXPECT_TRUE(CarriesMpiMessages("/dev/shm/ucx_shm_posix_33950fed (deleted)"));
  EXPECT_TRUE(CarriesMpiMessages("/SYSV00000000 (deleted)"));
  EXPECT_FALSE(CarriesMpiMessages("/dev/shm/cache"));
}

}  // namespace
}  // namespace hangscope

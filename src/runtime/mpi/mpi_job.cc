#include "runtime/mpi/mpi_job.h"

#include <algorithm>
#include <iterator>

#include "base/numbers.h"

namespace hangscope {

namespace {

constexpr std::string_view kLibraries[] = {"/libmpi.so", "/libmpich.so"};
constexpr std::string_view kModules[] = {"mca_",   "libmpi", "libopen-", "libucp",
                                         "libuct", "libucs", "libucm"};
// Of Open MPI's vader and sm, of MPICH's own, and of UCX's posix and sysv.
constexpr std::string_view kSegments[] = {"vader_segment", "/sm_segment", "/mpich_shar_tmp",
                                          "/ucx_shm_posix", "/SYSV00000000"};

}  // namespace

bool IsMpiLibrary(std::string_view path) {
  return std::any_of(std::begin(kLibraries), std::end(kLibraries),
                     [&](std::string_view name) { return path.find(name) != path.npos; });
}

bool IsOfMpi(std::string_view module) {
  return std::any_of(std::begin(kModules), std::end(kModules),
                     [&](std::string_view begin) { return module.starts_with(begin); });
}

std::optional<MpiPlace> MpiPlaceOf(std::string_view environment) {
  MpiPlace place;
  place.rank = -1;
  MpiPlace pmi = place;
  pmi.job = "PMI";
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (name == "OMPI_COMM_WORLD_RANK") place.rank = ParseWhole<int>(value).value_or(-1);
    if (name == "OMPI_COMM_WORLD_SIZE") place.size = ParseWhole<int>(value).value_or(0);
    if (name == "PMIX_NAMESPACE") place.job = value;
    // MPICH's launcher numbers the ranks of one job, and does not name that.
    if (name == "PMI_RANK") pmi.rank = ParseWhole<int>(value).value_or(-1);
    if (name == "PMI_SIZE") pmi.size = ParseWhole<int>(value).value_or(0);
  }
  if (place.rank < 0 && place.size == 0 && place.job.empty()) place = pmi;
  if (place.rank < 0 || place.rank >= place.size || place.job.empty()) return std::nullopt;
  return place;
}

std::string MpiWaitOf(std::string_view function) {
  constexpr std::string_view kWaits[] = {"Recv",
                                         "Send",
                                         "Ssend",
                                         "Sendrecv",
                                         "Sendrecv_replace",
                                         "Probe",
                                         "Mprobe",
                                         "Mrecv",
                                         "Wait",
                                         "Waitall",
                                         "Waitany",
                                         "Waitsome",
                                         "Barrier",
                                         "Bcast",
                                         "Reduce",
                                         "Allreduce",
                                         "Gather",
                                         "Gatherv",
                                         "Scatter",
                                         "Scatterv",
                                         "Allgather",
                                         "Allgatherv",
                                         "Alltoall",
                                         "Alltoallv",
                                         "Alltoallw",
                                         "Scan",
                                         "Exscan",
                                         "Reduce_scatter",
                                         "Reduce_scatter_block",
                                         "Finalize"};
  function = function.substr(0, function.find('('));
  if (function == "ompi_mpi_finalize") return std::string(kMpiFinalize);  // which jumps there
  if (function.starts_with('P')) function.remove_prefix(1);
  constexpr std::string_view kBegin = "MPI_";
  if (!function.starts_with(kBegin)) return {};
  const std::string_view name = function.substr(kBegin.size());
  const bool waits = std::find(std::begin(kWaits), std::end(kWaits), name) != std::end(kWaits);
  return waits ? std::string(function) : "";
}

bool CarriesMpiMessages(std::string_view path) {
  return std::any_of(std::begin(kSegments), std::end(kSegments),
                     [&](std::string_view name) { return path.find(name) != path.npos; });
}

}  // namespace hangscope

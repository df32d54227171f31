#include "runtime/mpi/mpi_job.h"

#include <algorithm>
#include <iterator>

#include "base/numbers.h"

namespace hangscope {

std::optional<MpiPlace> MpiPlaceOf(std::string_view environment) {
  MpiPlace place;
  place.rank = -1;
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
  }
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
  if (function == "ompi_mpi_finalize") return "MPI_Finalize";  // which jumps there
  if (function.starts_with('P')) function.remove_prefix(1);
  constexpr std::string_view kBegin = "MPI_";
  if (!function.starts_with(kBegin)) return {};
  const std::string_view name = function.substr(kBegin.size());
  const bool waits = std::find(std::begin(kWaits), std::end(kWaits), name) != std::end(kWaits);
  return waits ? std::string(function) : "";
}

bool CarriesMpiMessages(std::string_view path) {
  return path.find("vader_segment") != std::string_view::npos ||
         path.find("/sm_segment") != std::string_view::npos;
}

}  // namespace hangscope

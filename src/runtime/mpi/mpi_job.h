// What a process of an MPI job says of itself: its rank in its environment, and by the names of the
// functions that it is in, that it waits for other ranks. Of Open MPI, and of MPICH over UCX.
#ifndef HANGSCOPE_RUNTIME_MPI_MPI_JOB_H
#define HANGSCOPE_RUNTIME_MPI_MPI_JOB_H

#include <optional>
#include <string>
#include <string_view>

namespace hangscope {

// The call by which a rank ends, with all others.
inline constexpr std::string_view kMpiFinalize = "MPI_Finalize";

struct MpiPlace {
  std::string job;  // the same for all ranks of it that one process has started
  int rank = 0;
  int size = 0;
};

// Whether the file is the library that a program of MPI calls.
bool IsMpiLibrary(std::string_view path);

// Whether a module is of MPI, or of what it passes messages by, wherever it is installed.
bool IsOfMpi(std::string_view module);

// `environment` is /proc/PID/environ.
std::optional<MpiPlace> MpiPlaceOf(std::string_view environment);

// "MPI_Recv" of "PMPI_Recv", if that returns only when other ranks have sent or taken something;
// else empty.
std::string MpiWaitOf(std::string_view function);

// Whether ranks of this machine pass messages through such a file that they share.
bool CarriesMpiMessages(std::string_view path);

}  // namespace hangscope

#endif

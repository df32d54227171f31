#include "base/status.h"

#include <cstring>

namespace hangscope {

Status Status::FromErrno(int error, const std::string& what, const std::string& path) {
  char buffer[128];
  Status status = Io("cannot " + what + " '" + path + "': " + strerror_r(error, buffer, sizeof buffer));
  status.error_ = error;
  if (error == ENOENT) status.code_ = Code::kNotFound;
  return status;
}

}  // namespace hangscope

#include "base/status.h"

#include <cstring>

namespace hangscope {

std::string ErrorText(int error) {
  char buffer[128];
  return strerror_r(error, buffer, sizeof buffer);
}

Status Status::FromErrno(int error, const std::string& what, const std::string& path) {
  Status status = Io("cannot " + what + " '" + path + "': " + ErrorText(error));
  status.error_ = error;
  if (error == ENOENT) status.code_ = Code::kNotFound;
  return status;
}

}  // namespace hangscope

#include "session/trace_of_cpus.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace hangscope {

Result<std::unique_ptr<TraceSource>> OpenCpuTrace(FileSystem&, const std::string& path) {
  return Status::NotFound(fmt::format("'{}' is not exported", Printable(path)));
}

}  // namespace hangscope

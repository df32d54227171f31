// Where a trace is written to: a file, in pieces of some size.
#ifndef HANGSCOPE_EXPORT_TRACE_OUTPUT_H
#define HANGSCOPE_EXPORT_TRACE_OUTPUT_H

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace hangscope {

// One thread.
class TraceOutput {
 public:
  // Writes from the file's begin on; `file` outlives this.
  explicit TraceOutput(File& file) : file_(file) {}

  Status Add(std::string_view bytes) {
    buffer_ += bytes;
    return buffer_.size() < kPieceBytes ? Status() : Flush();
  }
  // What was added is in the file then.
  Status Flush() {
    size_t written = 0;
    Status status = file_.WriteAt(bytes_, buffer_, &written);
    bytes_ += written;
    buffer_.clear();
    return status;
  }

 private:
  static constexpr size_t kPieceBytes = 256u << 10;

  File& file_;
  std::string buffer_;
  uint64_t bytes_ = 0;
};

}  // namespace hangscope

#endif

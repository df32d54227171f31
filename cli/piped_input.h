// What may be named in place of a file: standard input as "-", and a pipe, as /dev/stdin or <(...)
// are.
#ifndef HANGSCOPE_CLI_PIPED_INPUT_H
#define HANGSCOPE_CLI_PIPED_INPUT_H

#include <memory>
#include <string>

#include "base/spool.h"

namespace hangscope::cli {

// One of a process.
class PipedInput {
 public:
  PipedInput() = default;
  ~PipedInput();
  PipedInput(const PipedInput&) = delete;
  PipedInput& operator=(const PipedInput&) = delete;

  // Where `target` is a pipe, reads it to its end and tells people on a terminal how far it is.
  // The first Ctrl-C leaves the writer some seconds to end, the second ends it. Fails, too, where
  // `target` is compressed.
  Status Read(const std::string& target);
  // Why a command failed: where nothing takes what was read for its own, that says so.
  Status WhyNot(const Status& status) const;
  // Those of the machine, and among them what was read.
  FileSystem& files() { return with_it_ != nullptr ? *with_it_ : PosixFileSystem(); }

 private:
  Status ReadPipe(int fd, const std::string& name);

  std::string target_;  // that was read
  std::unique_ptr<FilesWithOneMore> with_it_;
  int fd_ = -1;
  bool owns_ = false;
};

}  // namespace hangscope::cli

#endif

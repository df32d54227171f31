// The options that say where the code of a recording of perf is: of `why`, `export` and `report`.
#ifndef HANGSCOPE_CLI_CODE_OPTIONS_H
#define HANGSCOPE_CLI_CODE_OPTIONS_H

#include "base/file_system.h"
#include "options.h"
#include "perf/code/code_places.h"

namespace hangscope::cli {

class CodeOptions {
 public:
  void AddTo(OptionParser* options);
  // kUsage where one was given and `target` is neither a perf.data nor a snapshot with one.
  Result<CodePlaces> Resolve(FileSystem& files, const std::string& target) const;

 private:
  std::string binaries_;
  std::string vmlinux_;
  std::string kallsyms_;
};

}  // namespace hangscope::cli

#endif

#include "code_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/utf8.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/recording_kind.h"

namespace hangscope::cli {
namespace {

bool HasPerfData(FileSystem& files, const std::string& target) {
  const RecordingKind kind = KindOf(files, target);
  return kind == RecordingKind::kPerfData ||
         (IsFolder(kind) && files.Exists(target + "/" + kCpuFileName));
}

// Where perf keeps files by build id; it tells its subcommands in the variable.
std::string CacheOfPerf() {
  if (const char* folder = getenv("PERF_BUILDID_DIR")) return folder;
  const char* home = getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.debug";
}

}  // namespace

void CodeOptions::AddTo(OptionParser* options) {
  options->Option("--binaries", &binaries_);
  options->Option("--vmlinux", &vmlinux_);
  options->Option("--kallsyms", &kallsyms_);
}

Result<CodePlaces> CodeOptions::Resolve(FileSystem& files, const std::string& target) const {
  const char* given = !binaries_.empty()   ? "--binaries"
                      : !vmlinux_.empty()  ? "--vmlinux"
                      : !kallsyms_.empty() ? "--kallsyms"
                                           : nullptr;
  if (given != nullptr && !HasPerfData(files, target))
    return Status::Usage(fmt::format("{} is about a perf.data, and '{}' neither is one nor has one",
                                     given, Printable(target)));
  CodePlaces places;
  places.binaries = binaries_;
  places.kernel.vmlinux = vmlinux_;
  places.kernel.kallsyms = kallsyms_;
  places.kernel.cache = CacheOfPerf();
  return places;
}

}  // namespace hangscope::cli

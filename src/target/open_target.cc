#include <fmt/format.h>

#include "base/file_system.h"
#include "base/numbers.h"
#include "target/core_target.h"
#include "target/exec_target.h"
#include "target/file_target.h"
#include "target/gdb_target.h"
#include "target/paged_guest.h"
#include "target/process_target.h"
#include "target/target.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

// Reading JTAG is slow, and so is starting what does it.
constexpr TimeNs kPatienceWithHelpers = 10 * kSecond;

Result<std::unique_ptr<Target>> OpenHelper(const std::string& command,
                                           const TargetOptions& options) {
  auto target = ExecTarget::Open(command, kPatienceWithHelpers);
  if (!target.ok()) return target;
  const bool can_be_searched = static_cast<const ExecTarget&>(**target).has_ranges();
  if (!can_be_searched && !options.symbol && !(*target)->scope_address()) {
    return Status::NotFound(
        fmt::format("{} says neither what memory there is nor where the scope is; --elf FILE with "
                    "the symbol hangscope_scope does",
                    (*target)->name()));
  }
  return target;
}

constexpr TimeNs kPatienceWithServers = 5 * kSecond;

Result<std::unique_ptr<Target>> OpenServer(const TargetSpec& spec, const TargetOptions& options) {
  if (!options.intrusive) {
    return Status::Usage(
        fmt::format("{}: a debug server stops its target when one connects, until one leaves; "
                    "--intrusive says that it may",
                    spec.name));
  }
  if (!options.symbol) {
    return Status::Usage(
        fmt::format("{}: a debug server does not tell where the scope is; --elf FILE with the "
                    "symbol hangscope_scope does",
                    spec.name));
  }
  return GdbTarget::Open(spec.where, kPatienceWithServers);
}

}  // namespace

Result<std::unique_ptr<Target>> OpenTarget(const std::string& text, const TargetOptions& options) {
  FileSystem& files = PosixFileSystem();
  const TargetSpec spec = ParseTargetSpec(files, text);
  if (!spec.status.ok()) return spec.status;
  switch (spec.kind) {
    case TargetSpec::Kind::kFile:
      return FileTarget::Open(files, spec.where, spec.offset);
    case TargetSpec::Kind::kProcess:
      if (spec.offset && spec.pages) return PagedGuest::Open(spec.pid, *spec.pages, *spec.offset);
      return spec.offset ? ProcessTarget::OpenAt(files, spec.pid, *spec.offset)
                         : ProcessTarget::Open(files, spec.pid, options);
    case TargetSpec::Kind::kCore:
      return CoreTarget::Open(files, spec.where);
    case TargetSpec::Kind::kServer:
      return OpenServer(spec, options);
    case TargetSpec::Kind::kHelper:
      return OpenHelper(spec.where, options);
  }
  return Status::Usage(fmt::format("'{}' is no target", text));
}

}  // namespace hangscope

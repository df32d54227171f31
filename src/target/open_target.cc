#include <fmt/format.h>

#include "base/file_system.h"
#include "base/numbers.h"
#include "target/core_target.h"
#include "target/exec_target.h"
#include "target/file_target.h"
#include "target/gdb_target.h"
#include "target/process_target.h"
#include "target/target.h"

namespace hangscope {
namespace {

// PATH[@OFFSET]; a file whose name has an @ is found by its name.
Result<std::unique_ptr<Target>> OpenFile(const std::string& text) {
  FileSystem& files = PosixFileSystem();
  const size_t at = text.rfind('@');
  if (at == std::string::npos || files.Exists(text))
    return FileTarget::Open(files, text, std::nullopt);
  const auto offset = ParseDecimalOrHex<uint64_t>(std::string_view(text).substr(at + 1));
  if (!offset) {
    return Status::Usage(fmt::format(
        "'{}': behind @ stands where the scope begins, in bytes; for example file:ram.bin@0x1000",
        text));
  }
  return FileTarget::Open(files, text.substr(0, at), offset);
}

// Reading JTAG is slow, and so is starting what does it.
constexpr TimeNs kPatienceWithHelpers = 10 * kSecond;

Result<std::unique_ptr<Target>> OpenHelper(const std::string& command,
                                           const TargetOptions& options) {
  if (command.empty())
    return Status::Usage(
        "exec: wants a command that reaches the target's memory; for example 'exec:./jtag_helper "
        "--port 3'");
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

Result<std::unique_ptr<Target>> OpenServer(const std::string& where, const TargetOptions& options) {
  if (!options.intrusive) {
    return Status::Usage(
        fmt::format("gdb:{}: a debug server stops its target when one connects, until one leaves; "
                    "--intrusive says that it may",
                    where));
  }
  if (!options.symbol) {
    return Status::Usage(
        fmt::format("gdb:{}: a debug server does not tell where the scope is; --elf FILE with the "
                    "symbol hangscope_scope does",
                    where));
  }
  return GdbTarget::Open(where, kPatienceWithServers);
}

Result<std::unique_ptr<Target>> OpenProcess(const std::string& text, const TargetOptions& options) {
  const auto pid = ParseDecimalOrHex<uint64_t>(text);
  if (!pid || *pid == 0 || *pid > INT32_MAX) {
    return Status::Usage(fmt::format("pid:{}: a process's number; for example pid:4711", text));
  }
  return ProcessTarget::Open(PosixFileSystem(), static_cast<int>(*pid), options);
}

}  // namespace

Result<std::unique_ptr<Target>> OpenTarget(const std::string& spec, const TargetOptions& options) {
  if (spec.starts_with("file:")) return OpenFile(spec.substr(5));
  if (spec.starts_with("pid:")) return OpenProcess(spec.substr(4), options);
  if (spec.starts_with("core:")) return CoreTarget::Open(PosixFileSystem(), spec.substr(5));
  if (spec.starts_with("gdb:")) return OpenServer(spec.substr(4), options);
  if (spec.starts_with("exec:")) return OpenHelper(spec.substr(5), options);
  return OpenFile(spec);
}

}  // namespace hangscope

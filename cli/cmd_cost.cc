// hangscope cost: docs/hangscope-cost.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/numbers.h"
#include "base/units.h"
#include "commands.h"
#include "help/all_helps.h"
#include "options.h"
#include "tools/cost_table.h"
#include "tools/count_cost.h"

namespace hangscope::cli {
namespace {

Result<uint64_t> ParsePer(const std::string& text) {
  if (text == "calls") return uint64_t{1};
  if (const auto number = ParseWhole<uint64_t>(text, 1)) return *number;
  return Status::Usage(fmt::format(
      "--per '{}': how many events each time entered is, or calls; for example --per 100", text));
}

// The executable's own path; its folder tells where the plugin is.
std::string OwnPath() {
  char path[4096];
  const ssize_t length = readlink(kOwnProgram, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

Status Check(const CostOptions& options, const std::string& elf_path) {
  constexpr char kExample[] =
      "for example hangscope cost --elf fw.elf --symbol emit -- qemu-system-riscv32 -machine virt "
      "-bios none -kernel fw.elf";
  if (options.command.empty()) return Status::Usage(fmt::format("no QEMU to run; {}", kExample));
  if (elf_path.empty())
    return Status::Usage(fmt::format("--elf is missing: the program on the target; {}", kExample));
  if (options.symbols.empty() && options.marks.empty())
    return Status::Usage(
        fmt::format("neither --symbol nor --mark says what to count; {}", kExample));
  return {};
}

int WriteReport(const CostReport& report, bool json) {
  WriteOut(json ? CostJson(report) : CostTable(report));
  if (!report.complete)
    PrintNote("QEMU was ended; the event that each hart was in the middle of is counted in part");
  int status = kExitClean;
  for (const CostSubject& subject : report.subjects) {
    if (subject.Total().entered != 0) continue;
    PrintError(fmt::format("no event was seen: '{}' was never entered", subject.name));
    status = kExitFailed;
  }
  return status;
}

}  // namespace

int CostCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser(CostHelp());
  const auto mine_end = words.begin() + static_cast<ptrdiff_t>(parser.WordsBeforeProgram(words));
  const auto program = mine_end != words.end() && *mine_end == "--" ? mine_end + 1 : mine_end;
  CostOptions options;
  std::string elf_path;
  std::string per = "calls";
  std::string seconds;
  bool json = false;
  parser.Option("--elf", &elf_path);
  parser.Options("--symbol", &options.symbols);
  parser.Options("--mark", &options.marks);
  parser.Option("--per", &per);
  parser.Option("--seconds", &seconds);
  parser.Flag("--json", &json);
  if (const auto exit = parser.Parse({words.begin(), mine_end})) return *exit;
  options.command.assign(program, words.end());
  if (Status status = Check(options, elf_path); !status.ok()) return Fail(status);
  auto events = ParsePer(per);
  if (!events.ok()) return Fail(events.status());
  options.events_per_entry = *events;
  if (!seconds.empty()) {
    auto limit = ParseDuration("--seconds", seconds);
    if (!limit.ok()) return Fail(limit.status());
    options.time_limit = *limit;
  }
  auto elf = ElfImage::Open(elf_path);
  if (!elf.ok()) return Fail(elf.status());
  auto plugin = FindCountPlugin(OwnPath());
  if (!plugin.ok()) return Fail(plugin.status());
  options.plugin_path = *plugin;
  options.signals = signals.inherited;

  SystemClock clock;
  const CostEnvironment environment = {
      &clock, OpenSignalFd(signals), [](std::string_view text) { WriteAll(STDERR_FILENO, text); }};
  auto report = MeasureCost(environment, **elf, options);
  return report.ok() ? WriteReport(*report, json) : Fail(report.status());
}

}  // namespace hangscope::cli

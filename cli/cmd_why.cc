// hangscope why: docs/hangscope-why.md.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"
#include "code/debug_info.h"
#include "code_options.h"
#include "commands.h"
#include "cost_limits.h"
#include "help/all_helps.h"
#include "options.h"
#include "piped_input.h"
#include "proc/java_attach.h"
#include "process/linux_inspector.h"
#include "progress_bar.h"
#include "run/recording_places.h"
#include "snapshot/recording_kind.h"
#include "target/target_spec.h"
#include "target_words.h"
#include "why/why.h"
#include "why/why_all.h"
#include "why/why_core.h"
#include "why/why_debugger.h"
#include "why/why_perf.h"
#include "why/why_process.h"
#include "why/why_snapshot.h"

namespace hangscope::cli {
namespace {

constexpr size_t kColumnsOfFiles = 120;
constexpr size_t kMostBranches = 100'000;

// Of the screen that `fd` is; of a pipe or a file, as many as people have nowadays.
void SetScreen(int fd, WhyProcessOptions* options) {
  winsize size{};
  const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 2;
  options->columns = known ? size.ws_col : kColumnsOfFiles;
  // the command above it, the next prompt below
  if (known) options->lines = static_cast<size_t>(size.ws_row - 2);
}

Result<WhyReport> Ask(FileSystem& files, const WhyOptions& options, WhyProcessOptions process) {
  SystemClock clock;
  const TargetSpec spec = ParseTargetSpec(files, options.source.target);
  if (spec.pid == 0) return AskWhy(files, clock, options);
  auto inspector = OpenLinuxInspector(clock);
  if (!inspector.ok()) return inspector.status();
  process.pid = spec.pid;
  process.json = options.json;
  WorkLine work(!options.json);
  process.observing = [&work](const std::string& text) { work.Show(text); };
  return AskWhyPid(PosixFileSystem(), clock, **inspector, options, process);
}

Result<WhyReport> AskAll(const WhyOptions& options, const WhyProcessOptions& process) {
  SystemClock clock;
  ProgressBar bar(clock, false, false);
  bar.Begin("looking");
  WhyAllOptions all;
  all.apart = process.apart;
  all.stop = process.stop;
  all.json = options.json;
  all.columns = process.columns;
  all.progress = [&bar](double part) { bar.Show(part); };
  return AskWhyAllHung(
      clock, ProcFolder("/proc"), [&clock] { return OpenLinuxInspector(clock); }, all);
}

Result<size_t> ParseBranches(const std::string& text) {
  if (const auto branches = ParseWhole<size_t>(text, 0, kMostBranches)) return *branches;
  return Status::Usage(fmt::format("--branches '{}': a number up to {}; for example --branches 64",
                                   text, kMostBranches));
}

// Without the "file:" that may stand before it.
std::string PathOfTarget(FileSystem& files, const std::string& target) {
  const TargetSpec spec = ParseTargetSpec(files, target);
  return spec.kind == TargetSpec::Kind::kFile ? spec.name : target;
}

// What its scope says, where it has one, then its threads.
Result<WhyReport> AskCore(FileSystem& files, Clock& clock, const WhyOptions& options,
                          WhyProcessOptions process, const std::string& path) {
  auto scope = AskWhy(files, clock, options);
  process.json = options.json;
  auto threads = AskWhyCore(clock, path, process);
  if (!scope.ok()) return threads;
  if (threads.ok()) scope->text += threads->text;
  scope->is_bad = scope->is_bad || (threads.ok() && threads->is_bad);
  return scope;
}

// Of a file, or a folder with files, that tell what they are.
std::optional<Result<WhyReport>> AskRecording(FileSystem& files, const WhyOptions& options,
                                              const WhyProcessOptions& process,
                                              WhyPerfOptions perf) {
  SystemClock clock;
  perf.path = PathOfTarget(files, options.source.target);
  perf.window = WindowOf(files, perf.path);
  const RecordingKind kind = KindOf(files, perf.path);
  if (kind == RecordingKind::kPerfData) return AskWhyPerf(files, clock, perf);
  if (kind == RecordingKind::kCore) return AskCore(files, clock, options, process, perf.path);
  if (kind == RecordingKind::kDebugger && perf.path == options.source.target)
    return AskWhyDebugger(files, clock,
                          {perf.path, options.source.elf, options.json, perf.branches});
  if (kind == RecordingKind::kSnapshot && perf.path == options.source.target)
    return AskWhySnapshot(files, clock, options, perf);
  return std::nullopt;
}

Result<WhyReport> AskDevice(const std::string& path, const std::string& stall, WhyOptions options) {
  SystemClock clock;
  if (!stall.empty()) {
    auto time = ParseDuration("--stall", stall);
    if (!time.ok()) return time.status();
    options.stall = *time;
  }
  auto device = ReadDeviceFile(PosixFileSystem(), path);
  if (!device.ok()) return device.status();
  for (DeviceMemory& memory : device->memories) memory.source.intrusive = options.source.intrusive;
  return AskWhyDevice(PosixFileSystem(), clock, *device, options);
}

int Report(const Result<WhyReport>& report, bool json) {
  if (!report.ok()) return Fail(report.status());
  const size_t head = std::min(report->text.find('\n'), report->text.size());
  if (report->is_bad && !json && WantsColour(STDOUT_FILENO)) {
    WriteOut("\033[1;31m" + report->text.substr(0, head) + "\033[0m" + report->text.substr(head));
  } else {
    WriteOut(report->text);
  }
  return report->is_bad ? kExitHang : kExitClean;
}

constexpr unsigned kMostCpuSecondsOfWhy = 300;

}  // namespace

int WhyCommand(const std::vector<std::string>& words) {
  OptionParser parser(WhyHelp());
  WhyOptions options;
  WhyProcessOptions process;
  std::string stall;
  std::string device;
  CodeOptions code;
  std::string branches = "0";
  std::vector<std::string> with;
  bool no_stop = false;
  bool debuginfod = false;
  bool all_hung = false;
  bool ask = false;
  parser.Positional("target", &options.source.target);
  parser.Option("--elf", &options.source.elf);
  parser.Option("--device", &device);
  parser.Option("--stall", &stall);
  code.AddTo(&parser);
  parser.Option("--branches", &branches);
  parser.Options("--with", &with);
  parser.Flag("--json", &options.json);
  parser.Flag("--intrusive", &options.source.intrusive);
  parser.Flag("--no-stop", &no_stop);
  parser.Flag("--debuginfod", &debuginfod);
  parser.Flag("--ask", &ask);
  parser.Flag("--all", &process.all_threads);
  parser.Flag("--stacks", &process.all_stacks);
  parser.Flag("--all-hung", &all_hung);
  if (const auto exit = parser.Parse(words)) return *exit;
  if (std::count(words.begin(), words.end(), "") != 0 && options.source.target.empty())
    return Fail(Status::Usage("an empty argument names nothing to ask about"));
  LimitCost(kMostCpuSecondsOfWhy);
  if (!device.empty() && (!options.source.target.empty() || !options.source.elf.empty()))
    return Fail(
        Status::Usage("--device stands instead of a TARGET and --elf: its file names them"));
  if (!device.empty()) return Report(AskDevice(device, stall, options), options.json);
  if (all_hung && (!options.source.target.empty() || !with.empty()))
    return Fail(Status::Usage(
        "--all-hung asks all processes of this machine, so it takes neither TARGET nor --with"));
  if (Status status =
          all_hung ? Status() : ChooseNewest("snapshot", NewestSnapshot, &options.source.target);
      !status.ok())
    return Fail(status);
  if (debuginfod) AskDebugInfoServers();
  if (!stall.empty()) {
    auto time = ParseDuration("--stall", stall);
    if (!time.ok()) return Fail(time.status());
    options.stall = process.apart = *time;
  }
  process.stop = !no_stop;
  if (ask) process.ask_java = [](int pid) { return AskJavaThreads(pid); };
  SetScreen(STDOUT_FILENO, &process);
  if (all_hung) return Report(AskAll(options, process), options.json);
  auto last_branches = ParseBranches(branches);
  if (!last_branches.ok()) return Fail(last_branches.status());
  for (const std::string& path : with) {
    auto look = OpenHostLook(PosixFileSystem(), path);
    if (!look.ok()) return Fail(look.status());
    process.others.push_back(std::move(*look));
  }
  PipedInput input;
  if (Status status = input.Read(options.source.target); !status.ok()) return Fail(status);
  if (Status status = ResolveTarget(input.files(), &options.source.target); !status.ok())
    return Fail(status);
  auto places = code.Resolve(input.files(), PathOfTarget(input.files(), options.source.target));
  if (!places.ok()) return Fail(places.status());
  auto recorded = AskRecording(input.files(), options, process,
                               {"", options.stall, options.json, *places, *last_branches});
  auto report = recorded ? std::move(*recorded) : Ask(input.files(), options, process);
  if (!report.ok() && ParseTargetSpec(input.files(), options.source.target).pid != 0)
    return Fail(report.status());
  if (!report.ok())
    return Fail(WithAdvice(input.files(), input.WhyNot(report.status()), options.source.target));
  return Report(report, options.json);
}

}  // namespace hangscope::cli

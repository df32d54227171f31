// hangscope report: docs/hangscope-report.md.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/clock.h"
#include "base/numbers.h"
#include "code_options.h"
#include "commands.h"
#include "cost_limits.h"
#include "help/all_helps.h"
#include "options.h"
#include "piped_input.h"
#include "process/linux_inspector.h"
#include "progress_bar.h"
#include "report/read_report.h"
#include "report/report_data.h"
#include "report/report_divergence.h"
#include "report/report_page.h"
#include "run/recording_places.h"
#include "snapshot/recording_kind.h"
#include "target/target_spec.h"
#include "target_words.h"
#include "why/why_process.h"

namespace hangscope::cli {
namespace {

constexpr size_t kMostEvents = 10'000'000;

struct Words {
  std::string output;
  std::string events;
  bool force = false;
  bool data = false;
  bool quiet = false;
};

Result<size_t> ParseEvents(const std::string& text) {
  if (const auto events = ParseWhole<size_t>(text, 1, kMostEvents)) return *events;
  return Status::Usage(fmt::format(
      "--events '{}': a number from 1 to {}; for example --events 100000", text, kMostEvents));
}

// Of a snapshot into its folder, of anything else beside where one stands.
std::string DefaultOutput(const std::string& target, bool against) {
  const std::string ending = against ? ".against.html" : ".html";
  if (target == "-") return "stdin.report" + ending;
  if (KindOf(PosixFileSystem(), target) == RecordingKind::kSnapshot)
    return target + "/report" + ending;
  const TargetSpec spec = ParseTargetSpec(PosixFileSystem(), target);
  if (spec.pid != 0) return fmt::format("pid-{}.report{}", spec.pid, ending);
  const std::string path =
      target.substr(target.find(':') == std::string::npos ? 0 : target.find(':') + 1);
  return NameOf(path.ends_with('/') ? path.substr(0, path.size() - 1) : path) + ".report" + ending;
}

// Of a live process: what its threads wait for. Empty: the target is none.
Result<std::string> LookAtProcess(FileSystem& files, Clock& clock, const std::string& target) {
  const TargetSpec spec = ParseTargetSpec(files, target);
  if (spec.pid == 0 || spec.offset) return std::string();
  auto inspector = OpenLinuxInspector(clock);
  if (!inspector.ok()) return inspector.status();
  WhyProcessOptions look;
  look.pid = spec.pid;
  look.json = true;
  auto report = AskWhyProcess(clock, **inspector, look);
  if (!report.ok()) return report.status();
  return std::move(report->text);
}

constexpr unsigned kMostCpuSecondsOfReport = 600;

}  // namespace

int ReportCommand(const std::vector<std::string>& words) {
  OptionParser parser(ReportHelp());
  ReportOptions options;
  Words given;
  CodeOptions code;
  parser.Positional("snapshot", &options.source.target);
  parser.Option("--output", &given.output);
  parser.Option("--against", &options.against);
  parser.Option("--elf", &options.source.elf);
  code.AddTo(&parser);
  parser.Option("--events", &given.events);
  parser.Flag("--force", &given.force);
  parser.Flag("--data", &given.data);
  parser.Flag("--quiet", &given.quiet);
  if (const auto exit = parser.Parse(words)) return *exit;
  LimitCost(kMostCpuSecondsOfReport);
  if (given.quiet) SilenceNotes();
  if (Status status = ChooseNewest("snapshot", NewestSnapshot, &options.source.target);
      !status.ok())
    return Fail(status);
  if (Status status = ResolveTarget(PosixFileSystem(), &options.source.target); !status.ok())
    return Fail(status);
  while (options.source.target.size() > 1 && options.source.target.ends_with('/'))
    options.source.target.pop_back();
  if (!given.events.empty()) {
    auto events = ParseEvents(given.events);
    if (!events.ok()) return Fail(events.status());
    options.most_events = *events;
  }
  const bool chosen = !given.output.empty();
  const std::string output =
      chosen ? given.output : DefaultOutput(options.source.target, !options.against.empty());
  const bool anew = given.force || (!options.against.empty() && !chosen);
  if (!given.data && output != "-" && !anew && PosixFileSystem().Exists(output) &&
      !PosixFileSystem().IsDevice(output)) {
    PrintNote(fmt::format("'{}' is there already; --force writes it anew", output));
    return Succeed(output + "\n");
  }
  PipedInput input;
  if (Status status = input.Read(options.source.target); !status.ok()) return Fail(status);
  auto places = code.Resolve(input.files(), options.source.target);
  if (!places.ok()) return Fail(places.status());
  options.code = std::move(*places);
  SystemClock clock;
  auto threads = LookAtProcess(input.files(), clock, options.source.target);
  if (!threads.ok()) return Fail(threads.status());
  options.threads = std::move(*threads);
  auto bar = std::make_unique<ProgressBar>(clock, given.data || output == "-", given.quiet);
  bar->Begin("reading what happened");
  options.progress = [&](double part) { bar->Show(part); };
  auto report = ReadReport(input.files(), clock, options);
  bar.reset();
  if (!report.ok())
    return Fail(WithAdvice(input.files(), input.WhyNot(report.status()), options.source.target));
  if (given.data) return Succeed(ReportDataJson(*report) + "\n");
  if (output == "-") return Succeed(ReportPage(ReportDataJson(*report)));
  const Status written =
      WriteReportPage(PosixFileSystem(), *report, output, fmt::format("{}.{}~", output, getpid()),
                      FileSystem::Mode::kNew);
  if (!written.ok()) {
    PrintError(written.message() + (chosen ? "" : "; -o FILE writes it elsewhere"));
    return kExitFailed;
  }
  return Succeed((report->divergence ? DivergenceText(*report->divergence) : "") + output + "\n");
}

}  // namespace hangscope::cli

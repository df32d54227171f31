// hangscope export: docs/hangscope-export.md.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"
#include "code_options.h"
#include "commands.h"
#include "cost_limits.h"
#include "export/trace_export.h"
#include "help/all_helps.h"
#include "options.h"
#include "piped_input.h"
#include "progress_bar.h"
#include "target_words.h"

namespace hangscope::cli {
namespace {

constexpr size_t kMostExportedBranches = 1'000'000;

// Standard output as a file that is written from its begin to its end.
class StandardOutput final : public File {
 public:
  Status WriteAt(uint64_t, std::string_view bytes, size_t* written) override {
    *written = WriteAll(STDOUT_FILENO, bytes) ? bytes.size() : 0;
    if (*written == bytes.size()) return {};
    nobody_listens_ = errno == EPIPE;
    return Status::FromErrno(errno, "write", "standard output");
  }
  Result<size_t> ReadAt(uint64_t, std::span<char>) override { return Refuse(); }
  Status Truncate(uint64_t) override { return Refuse(); }
  Result<uint64_t> Size() override { return Refuse(); }
  Result<uint64_t> LinkCount() override { return Refuse(); }
  Status Lock() override { return Refuse(); }
  bool IsLocked() override { return false; }
  bool IsOursAlone() override { return false; }

  bool nobody_listens() const { return nobody_listens_; }

 private:
  static Status Refuse() { return Status::Io("standard output can only be written to"); }
  bool nobody_listens_ = false;
};

volatile sig_atomic_t export_interrupted = 0;

struct ExportWords {
  TraceRequest request;
  TraceExportOptions options;
  CodeOptions code;
  std::string from, until, last, branches;
  bool no_streams = false;
  bool quiet = false;
};

// "12.5", "12.5s": of the clock; "-2s", "-500ms", "-20us": back from the end.
Result<std::optional<TimeNs>> ParseTime(const char* option, const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1e9},   {"s", 1e9}, {"ms", 1e6},
                                                            {"us", 1e3}, {"ns", 1},  {"m", 60e9}};
  if (text.empty()) return std::optional<TimeNs>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  for (const auto& [unit, ns] : kUnits) {
    if (error != std::errc() || unit != std::string_view(end, text.data() + text.size())) continue;
    if (std::abs(number * ns) < 9e18)
      return std::optional(static_cast<TimeNs>(std::llround(number * ns)));
  }
  return Status::Usage(fmt::format(
      "{} '{}': seconds of the recording's clock, or back from its end; for example {}=-2s", option,
      text, option));
}

Status Resolve(ExportWords* words) {
  auto from = ParseTime("--from", words->from);
  if (!from.ok()) return from.status();
  auto until = ParseTime("--until", words->until);
  if (!until.ok()) return until.status();
  words->request.from = *from;
  words->request.to = *until;
  words->request.streams = !words->no_streams;
  TraceExportOptions& options = words->options;
  if (options.path == "-") options.path.clear();
  if (options.format.empty()) options.format = TraceFormatOfPath(options.path);
  for (const TraceFormatInfo& info : TraceFormats()) {
    if (info.name == options.format && info.is_binary && !info.is_folder && options.path.empty() &&
        isatty(STDOUT_FILENO) != 0)
      return Status::Usage(
          fmt::format("--to {} is binary, and standard output a terminal; for example -o hang{}",
                      info.name, info.endings[0]));
  }
  if (!words->branches.empty()) {
    const auto branches = ParseWhole<size_t>(words->branches, 0, kMostExportedBranches);
    if (!branches)
      return Status::Usage(
          fmt::format("--branches '{}': a number up to {}; for example "
                      "--branches 1000",
                      words->branches, kMostExportedBranches));
    words->request.branches = *branches;
  }
  if (words->last.empty()) return {};
  const auto last = ParseWhole<size_t>(words->last, 1);
  if (!last)
    return Status::Usage(
        fmt::format("--last '{}': how many events; for example --last 100", words->last));
  words->request.most_events = *last;
  return {};
}

std::string SummaryText(const TraceExportSummary& summary, const std::string& path) {
  // Of a damaged recording the two may be farther from one another than a time can be.
  const uint64_t length =
      static_cast<uint64_t>(summary.time.to) - static_cast<uint64_t>(summary.time.from);
  const std::string time = !summary.counts.empty()
                               ? fmt::format("{} {}", length, summary.counts)
                               : fmt::format("{:.6f} s", static_cast<double>(length) / 1e9);
  std::string text =
      fmt::format("{} event{}, {} loss{}", summary.events, summary.events == 1 ? "" : "s",
                  summary.losses, summary.losses == 1 ? "" : "es");
  // Where there is nothing but how they stood, there is no span of events.
  if (summary.events > 0 || summary.losses > 0 || summary.standings == 0) text += ", " + time;
  if (summary.standings > 0)
    text += fmt::format(", {} {} as they stood ({} waiting)", summary.standings, summary.standers,
                        summary.waiting);
  if (!path.empty()) text += fmt::format(", {} in {}", FormatSize(summary.bytes), path);
  return text;
}

int Export(ExportWords& words) {
  if (Status status = Resolve(&words); !status.ok()) return Fail(status);
  if (Status status = CheckTraceExport(PosixFileSystem(), words.options); !status.ok())
    return Fail(status);
  PipedInput input;
  if (Status status = input.Read(words.request.source.target); !status.ok()) return Fail(status);
  if (Status status = ResolveTarget(input.files(), &words.request.source.target); !status.ok())
    return Fail(status);
  auto places = words.code.Resolve(input.files(), words.request.source.target);
  if (!places.ok()) return Fail(places.status());
  words.request.code = std::move(*places);
  struct sigaction action {};
  action.sa_handler = [](int) { export_interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second ends it at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  SystemClock clock;
  auto bar = std::make_unique<ProgressBar>(clock, words.options.path.empty(), words.quiet);
  words.request.go_on = words.options.go_on = [&](double part) {
    bar->Show(part);
    return export_interrupted == 0;
  };
  bar->Begin("looking through it");
  auto source = OpenTraceSource(input.files(), clock, words.request);
  if (!source.ok() && export_interrupted != 0) return kExitInterrupted;
  bar->Begin("writing");
  if (!source.ok())
    return Fail(
        WithAdvice(input.files(), input.WhyNot(source.status()), words.request.source.target));
  for (const std::string& warning : (*source)->head().warnings) PrintNote("warning: " + warning);
  StandardOutput output;
  words.options.standard_output = &output;
  auto summary = ExportTrace(PosixFileSystem(), **source, words.options);
  bar.reset();
  if (!summary.ok()) return output.nobody_listens() ? kExitClean : Fail(summary.status());
  if (summary->stopped) return kExitInterrupted;
  for (const std::string& warning : (*source)->end().warnings) PrintNote("warning: " + warning);
  if (!words.quiet) PrintNote(SummaryText(*summary, words.options.path));
  return kExitClean;
}

constexpr unsigned kMostCpuSecondsOfExport = 3600;

}  // namespace

int ExportCommand(const std::vector<std::string>& words) {
  OptionParser parser(ExportHelp());
  ExportWords wanted;
  TraceRequest& request = wanted.request;
  parser.Positional("target", &request.source.target);
  parser.Option("--to", &wanted.options.format);
  parser.Option("--output", &wanted.options.path);
  parser.Flag("--force", &wanted.options.force);
  parser.Option("--from", &wanted.from);
  parser.Option("--until", &wanted.until);
  parser.Option("--core", &request.cores);
  parser.Option("--task", &request.task);
  parser.Option("--event", &request.event);
  parser.Option("--last", &wanted.last);
  parser.Flag("--no-streams", &wanted.no_streams);
  parser.Option("--branches", &wanted.branches);
  wanted.code.AddTo(&parser);
  parser.Option("--elf", &request.source.elf);
  parser.Flag("--intrusive", &request.source.intrusive);
  parser.Flag("--quiet", &wanted.quiet);
  if (const auto exit = parser.Parse(words)) return *exit;
  LimitCost(kMostCpuSecondsOfExport);
  if (request.source.target.empty())
    return Fail(Status::Usage(
        "nothing to export given; for example hangscope export --to text trace/fw.snapshot-0001"));
  return Export(wanted);
}

}  // namespace hangscope::cli

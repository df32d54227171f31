// hangscope report: docs/hangscope-report.md.
#include <unistd.h>

#include "base/clock.h"
#include "commands.h"
#include "export/report_data.h"
#include "options.h"
#include "session/report.h"

namespace hangscope::cli {
namespace {

constexpr char kHelp[] =
    R"(usage: hangscope report [options] SNAPSHOT

One page about a hang: the verdict, who waits for whom, what happened when, faults, threads,
the last lines. It is one HTML file that needs no network. SNAPSHOT is a snapshot's folder;
or, as for hangscope why, a scope's file, a core dump, a perf.data.

  -o FILE               where the page goes [SNAPSHOT/report.html]; - is standard output
  --force               also where there is one already
  --data                the page's data alone, as JSON, on standard output (docs/report-data.md)
  --elf FILE            the program: names, files and lines [as the snapshot says]

Status: 0 the report is written; 2 usage; 3 the snapshot cannot be read, or the page not written.
)";

int Fail(const Status& status) {
  PrintError(status.message());
  return status.code() == Status::Code::kUsage ? kExitUsage : kExitFailed;
}

}  // namespace

int ReportCommand(const std::vector<std::string>& words) {
  OptionParser parser("report", kHelp);
  ReportOptions options;
  bool data = false;
  parser.Positional("snapshot", &options.source.target);
  parser.Option("--elf", &options.source.elf);
  parser.Flag("--data", &data);
  switch (parser.Parse(words)) {
    case OptionParser::Outcome::kHelp: return kExitClean;
    case OptionParser::Outcome::kError: return kExitUsage;
    case OptionParser::Outcome::kGo: break;
  }
  if (options.source.target.empty()) {
    PrintError("no snapshot given; for example hangscope report trace/fw.snapshot-0001");
    return kExitUsage;
  }
  SystemClock clock;
  auto report = ReadReport(PosixFileSystem(), clock, options);
  if (!report.ok()) return Fail(report.status());
  (void)WriteAll(STDOUT_FILENO, ReportDataJson(*report) + "\n");
  return kExitClean;
}

}  // namespace hangscope::cli

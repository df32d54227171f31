// hangscope why: docs/hangscope-why.md.
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "commands.h"
#include "options.h"
#include "session/why.h"

namespace hangscope::cli {
namespace {

constexpr char kHelp[] =
    R"(usage: hangscope why [options] TARGET

Says why a target that records with hangscope/hangscope.h hangs or died: who waits for whom,
who stopped first and what it did then, faults, what is corrupt. TARGET may be live or dead:

  file:PATH[@OFFSET]    a scope file, a dump of memory, guest RAM; or a console's log
                        with a dump in it; file: may be left out
  SNAPSHOT              a snapshot's folder
  pid:N                 a process
  core:FILE             a core dump
  exec:COMMAND          what a helper reads, of a device for example
  gdb:HOST:PORT         a debug server, or gdb:PATH for its socket; it stops the target
                        for a moment, so this wants --intrusive
  exec:COMMAND          a helper that reaches the target's memory (docs/probes.md)

  --elf FILE            the program: names, lines, and where the scope is
  --stall T             how long what may be alive is looked at, and what lasts so long
                        is a hang [1]
  --json                JSON Lines (docs/json.md)
  --intrusive           the target may be stopped for a moment

Status: 0 neither hang nor fault; 1 a hang or a fault; 2 usage; 3 the target cannot be read.
)";

int Fail(const Status& status) {
  PrintError(status.message());
  return status.code() == Status::Code::kUsage ? kExitUsage : kExitFailed;
}

}  // namespace

int WhyCommand(const std::vector<std::string>& words) {
  OptionParser parser("why", kHelp);
  WhyOptions options;
  std::string stall = "1";
  parser.Positional("target", &options.source.target);
  parser.Option("--elf", &options.source.elf);
  parser.Option("--stall", &stall);
  parser.Flag("--json", &options.json);
  parser.Flag("--intrusive", &options.source.intrusive);
  switch (parser.Parse(words)) {
    case OptionParser::Outcome::kHelp: return kExitClean;
    case OptionParser::Outcome::kError: return kExitUsage;
    case OptionParser::Outcome::kGo: break;
  }
  if (options.source.target.empty()) {
    PrintError("no target given; for example hangscope why pid:4711");
    return kExitUsage;
  }
  auto time = ParseDuration("--stall", stall);
  if (!time.ok()) return Fail(time.status());
  options.stall = *time;
  SystemClock clock;
  auto report = AskWhy(PosixFileSystem(), clock, options);
  if (!report.ok()) return Fail(report.status());
  (void)WriteAll(STDOUT_FILENO, report->text);
  return report->is_bad ? kExitHang : kExitClean;
}

}  // namespace hangscope::cli

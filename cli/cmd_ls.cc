// hangscope ls: docs/hangscope-ls.md.
#include <unistd.h>

#include "commands.h"
#include "control/recorder_table.h"
#include "options.h"
#include "recorders.h"

namespace hangscope::cli {
namespace {

constexpr char kLsHelp[] =
    R"(usage: hangscope ls [options]

Lists the recorders (hangscope run and tee) that run now as this user, by name: process,
program, age, bytes so far and lately, snapshots taken, and what each thinks of its program.

  --json                one JSON object a line (docs/hangscope-ls.md)

Status: 0, also where none runs; 2 usage.
)";

}  // namespace

int LsCommand(const std::vector<std::string>& words) {
  OptionParser parser("ls", kLsHelp);
  bool json = false;
  parser.Flag("--json", &json);
  if (const auto exit = parser.Parse(words)) return *exit;
  const std::vector<LiveRecorder> recorders = FindLiveRecorders();
  if (recorders.empty()) {
    PrintNote("no recorder is running");
    return kExitClean;
  }
  const std::vector<RecorderStatus> statuses = StatusesOf(recorders);
  std::string text;
  if (json) {
    for (const RecorderStatus& status : statuses) text += RecorderJson(status) + "\n";
  } else {
    const size_t columns =
        isatty(STDOUT_FILENO) != 0 ? static_cast<size_t>(TerminalColumns(STDOUT_FILENO)) : 0;
    text = RecorderTable(statuses, columns);
  }
  WriteOut(text);
  return kExitClean;
}

}  // namespace hangscope::cli

// hangscope ls: docs/hangscope-ls.md.
#include <unistd.h>

#include "commands.h"
#include "control/recorder_table.h"
#include "help/all_helps.h"
#include "options.h"
#include "recorders.h"

namespace hangscope::cli {

int LsCommand(const std::vector<std::string>& words) {
  OptionParser parser(LsHelp());
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

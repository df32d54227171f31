// hangscope snap: docs/hangscope-snap.md.
#include <fmt/format.h>
#include <unistd.h>

#include "base/utf8.h"
#include "commands.h"
#include "control/recorder_table.h"
#include "help/all_helps.h"
#include "options.h"
#include "recorders.h"

namespace hangscope::cli {
namespace {

void ListOnStderr(const std::vector<LiveRecorder>& recorders) {
  WriteAll(STDERR_FILENO, RecorderTable(StatusesOf(recorders), 0));
}

}  // namespace

int SnapCommand(const std::vector<std::string>& words) {
  OptionParser parser(SnapHelp());
  std::string target;
  bool now = false;
  bool since_last = false;
  parser.Positional("target", &target);
  parser.Flag("--now", &now);
  parser.Flag("--since-last", &since_last);
  if (const auto exit = parser.Parse(words)) return *exit;
  const std::vector<LiveRecorder> recorders = FindLiveRecorders();
  if (target.empty()) {
    PrintError(
        "no recorder given; name one by its process, name or folder, as in hangscope snap fw");
    if (!recorders.empty()) ListOnStderr(recorders);
    return kExitUsage;
  }
  const std::vector<LiveRecorder> meant = RecordersMatching(recorders, target);
  if (meant.empty()) {
    PrintError(fmt::format("no recorder that runs is called, or writes to, '{}'{}", target,
                           recorders.empty() ? "; none is running" : "; there are"));
    if (!recorders.empty()) ListOnStderr(recorders);
    return kExitFailed;
  }
  if (meant.size() > 1) {
    PrintError(fmt::format("'{}' may be any of {} recorders; choose one by its PID", target,
                           meant.size()));
    ListOnStderr(meant);
    return kExitUsage;
  }
  auto folder = AskForSnapshot(meant[0], now, since_last);
  if (!folder.ok()) {
    PrintError(fmt::format("the recorder {} took no snapshot: {}", meant[0].status.pid,
                           Printable(folder.status().message())));
    return kExitFailed;
  }
  WriteOut(Printable(*folder) + "\n");
  return kExitClean;
}

}  // namespace hangscope::cli

// hangscope ls: docs/hangscope-ls.md.
#include <unistd.h>

#include "commands.h"
#include "export/recorder_table.h"
#include "options.h"
#include "session/control_client.h"
#include "session/control_folder.h"

namespace hangscope::cli {
namespace {

constexpr char kHelp[] =
    R"(usage: hangscope ls [options]

Lists the recorders (hangscope run and tee) that run now as this user, by name: process,
program, age, bytes so far and lately, snapshots taken, and what each thinks of its program.

  --json                one JSON object a line (docs/hangscope-ls.md)

Status: 0, also where none runs; 2 usage.
)";

constexpr TimeNs kPatience = 2 * kSecond;

void Print(int fd, const std::string& text) { (void)!write(fd, text.data(), text.size()); }

}  // namespace

int LsCommand(const std::vector<std::string>& words) {
  OptionParser parser("ls", kHelp);
  bool json = false;
  parser.Flag("--json", &json);
  switch (parser.Parse(words)) {
    case OptionParser::Outcome::kHelp: return kExitClean;
    case OptionParser::Outcome::kError: return kExitUsage;
    case OptionParser::Outcome::kGo: break;
  }
  const LiveRecorders recorders = FindRecorders(ControlFolder(), kPatience);
  if (!recorders.warning.empty()) Print(STDERR_FILENO, "hangscope: warning: " + recorders.warning + "\n");
  if (recorders.found.empty()) {
    Print(STDERR_FILENO, "hangscope: no recorder is running\n");
    return kExitClean;
  }
  std::vector<RecorderStatus> statuses;
  for (const LiveRecorder& recorder : recorders.found) statuses.push_back(recorder.status);
  std::string text;
  if (json) {
    for (const RecorderStatus& status : statuses) text += RecorderJson(status) + "\n";
  } else {
    const size_t columns = isatty(STDOUT_FILENO) != 0 ? static_cast<size_t>(TerminalColumns(STDOUT_FILENO)) : 0;
    text = RecorderTable(statuses, columns);
  }
  Print(STDOUT_FILENO, text);
  return kExitClean;
}

}  // namespace hangscope::cli

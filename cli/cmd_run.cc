// hangscope run: docs/hangscope-run.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "commands.h"
#include "options.h"
#include "session/run_session.h"

namespace hangscope::cli {
namespace {

constexpr char kHelp[] =
    R"(usage: hangscope run [options] -- PROGRAM [ARGUMENT...]

Starts PROGRAM, records what it prints into bounded rings on disk, passes it on, and
watches: when every core of an instruction trace loops, or everything is silent, for the
stall time, it says where, and takes a snapshot.

  --elf FILE            the program on the target: functions, files, lines
  --stall T             time without progress that makes a hang [10] (2.5, 500ms, 2m)
  --on-hang WHAT        snapshot, kill (snapshot, then end it: status 124), exec:COMMAND
                        (snapshot, then a shell command), none [snapshot]
  --prefix P            rings P.stdout.* and P.stderr.*, snapshots P.snapshot-NNNN/
                        [trace/NAME, NAME from the ELF or the program]
  --size S --keep N     each ring takes S times N bytes at most [500M, 3]
  --compress HOW        zstd, none, or auto: zstd as long as it keeps up [auto]
  --memory S            what may wait for a slow disk or reader, each stream [64M]
  --lossless            PROGRAM waits for a slow reader of its output instead of losing it
  --capture STREAMS     stdout, stderr or stdout,stderr [stdout,stderr]
  --no-passthrough      do not pass the output on
  --heartbeat T         a sign of life on stderr every T seconds, 0: none [5]
  --json                JSON Lines instead of text (docs/json.md)
  --log FILE            heartbeats and verdicts go to FILE instead of stderr
  --junit FILE          the outcome as JUnit XML
  --max-snapshots M     how many are kept: the first and the newest [2]

SIGUSR1 and SIGUSR2 take a snapshot; SIGINT, SIGTERM and SIGHUP go to PROGRAM.
Status: PROGRAM's own; 124 ended for a hang; 125 hangscope failed; 126, 127 PROGRAM could
not be started; 128+N it died of signal N.
)";

// "trace/fw" for --elf build/fw.elf; without an ELF the program gives the name.
std::string DefaultPrefix(const std::string& elf, const std::string& program) {
  std::string name = NameOf(elf.empty() ? program : elf);
  if (const size_t dot = name.rfind('.'); !elf.empty() && dot != std::string::npos && dot > 0) name.resize(dot);
  return "trace/" + name;
}

Status ParseCapture(const std::string& text, RunOptions* options) {
  options->capture_stdout = options->capture_stderr = false;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    if (name == "stdout") options->capture_stdout = true;
    else if (name == "stderr") options->capture_stderr = true;
    else return Status::Usage(fmt::format("--capture '{}': the streams are stdout and stderr; for example --capture stdout,stderr", text));
    at = comma + 1;
  }
  return {};
}

Status ParseOnHang(const std::string& text, RunOptions* options) {
  if (text == "snapshot") options->on_hang = OnHang::kSnapshot;
  else if (text == "kill") options->on_hang = OnHang::kKill;
  else if (text == "none") options->on_hang = OnHang::kNone;
  else if (text.starts_with("exec:") && text.size() > 5) options->on_hang = OnHang::kExec;
  else return Status::Usage(fmt::format("--on-hang '{}': snapshot, kill, exec:COMMAND or none; for example --on-hang kill", text));
  if (options->on_hang == OnHang::kExec) options->on_hang_command = text.substr(5);
  options->observer.snapshot_on_hang = options->on_hang != OnHang::kNone;
  return {};
}

int Fail(const Status& status) {
  PrintError(status.message());
  return kRunFailed;
}

}  // namespace

int RunCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  // What follows "--" is the program's alone.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> mine(words.begin(), dashes);
  if (dashes == words.end() && !words.empty() && !words.front().starts_with("-")) {
    return Fail(Status::Usage(fmt::format("put -- before the program: hangscope run -- {}", fmt::join(words, " "))));
  }
  OptionParser parser("run", kHelp);
  RecorderWords recorder_words;
  recorder_words.compress = "auto";
  recorder_words.AddTo(&parser);
  std::string capture = "stdout,stderr";
  std::string on_hang = "snapshot";
  RunOptions options;
  bool no_passthrough = false;
  parser.Option("--capture", &capture);
  parser.Option("--on-hang", &on_hang);
  parser.Option("--junit", &options.junit_path);
  parser.Flag("--no-passthrough", &no_passthrough);
  switch (parser.Parse(mine)) {
    case OptionParser::Outcome::kHelp: return kExitClean;
    case OptionParser::Outcome::kError: return kRunFailed;
    case OptionParser::Outcome::kGo: break;
  }
  if (dashes == words.end() || dashes + 1 == words.end()) {
    return Fail(Status::Usage("no program to run; for example hangscope run -- make test"));
  }
  options.observer.command.assign(dashes + 1, words.end());
  if (Status status = ParseCapture(capture, &options); !status.ok()) return Fail(status);
  if (recorder_words.prefix.empty()) {
    recorder_words.prefix = DefaultPrefix(recorder_words.elf, options.observer.command[0]);
  }

  Recorder recorder;
  const size_t longest_name = NameOf(recorder_words.prefix).size() + sizeof ".stdout";
  if (Status status = Resolve(recorder_words, longest_name, &recorder); !status.ok()) return Fail(status);
  std::vector<std::string> command = std::move(options.observer.command);
  options.observer = recorder.observer;
  options.observer.command = std::move(command);
  if (Status status = ParseOnHang(on_hang, &options); !status.ok()) return Fail(status);
  options.ring_prefix = recorder_words.prefix;
  options.geometry = recorder.geometry;
  options.stages = recorder.stages;
  options.out = PassTo(STDOUT_FILENO, !no_passthrough, recorder.environment.narrator);
  options.err = PassTo(STDERR_FILENO, !no_passthrough, recorder.environment.narrator);
  options.inherited_mask = signals.inherited_mask;
  options.inherited_sigpipe_ignored = signals.sigpipe_ignored;
  recorder.environment.signal_fd = OpenSignalFd(signals);

  const RunOutcome outcome = RunProgram(recorder.environment, options);
  if (!outcome.status.ok()) PrintError(outcome.status.message());
  return outcome.exit_status;
}

}  // namespace hangscope::cli

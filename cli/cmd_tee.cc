// hangscope tee: docs/hangscope-tee.md.
#include <unistd.h>

#include "commands.h"
#include "recorder_options.h"
#include "run/tee_session.h"

namespace hangscope::cli {
namespace {

constexpr char kTeeHelp[] =
    R"(usage: PROGRAM | hangscope tee [options]

Records standard input into a bounded ring on disk and watches it like run does. It cannot
see the program that writes; where you can, use hangscope run.

  --prefix P            the ring P.*, snapshots P.snapshot-NNNN/ [~/.local/state/hangscope/...]
  --keep-rings          without --prefix: it stays also where nothing happened
  --size S --keep N     the ring takes S times N bytes at most [500M, 3]
  --compress HOW        none, zstd, or auto: zstd as long as it keeps up [none]
  --passthrough         copy standard input to standard output
  --memory S            what may wait for a slow disk or reader [64M]
  --lossless            wait for a slow reader instead of losing what it does not take
  --heartbeat T         a sign of life on stderr every T seconds, 0: none [5]
  --elf FILE            the program on the target: functions, files, lines
  --place-regex RE      what a place of a log is, as for run
  --stall T             time without progress that makes a hang [10]
  --on-hang WHAT        snapshot or none [snapshot]
  --trigger RE          a snapshot for a line that matches RE (RE2); repeatable
  --trigger-rate P%[/T] one when less than P % of the usual rate comes, over T [5] seconds
  --trigger-silence T   one when nothing comes for T
  --trigger-quiet T     how long each of these rests after it fired [1]
  --post T|S            record on for a time (2s) or a size (16M) before taking one
  --json, --log FILE, --max-snapshots M   as for run

hangscope snap, SIGUSR1 and SIGUSR2 take a snapshot. SIGINT, SIGTERM and SIGHUP end it; what
is in the pipe by then is recorded. Status: 0 no hang; 1 a hang; 2 usage; 3 failed; 130
interrupted.
)";

}  // namespace

int TeeCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser("tee", kTeeHelp);
  RecorderWords recorder_words;
  recorder_words.compress = "none";
  recorder_words.AddTo(&parser);
  bool passthrough = false;
  std::string on_hang = "snapshot";
  parser.Flag("--passthrough", &passthrough);
  parser.Option("--on-hang", &on_hang);
  if (const auto exit = parser.Parse(words)) return *exit;
  if (on_hang != "snapshot" && on_hang != "none")
    return Fail(Status::Usage("--on-hang '" + on_hang +
                              "': tee knows snapshot and none; it has no program to kill"));
  Recorder recorder;
  constexpr const char* kName = "stdin";
  const std::string named = recorder_words.prefix.empty() ? kName : NameOf(recorder_words.prefix);
  const Status status = Resolve(recorder_words, named.size(), &recorder);
  if (!status.ok()) return Fail(status);
  TeeOptions options;
  options.observer = recorder.observer;
  options.observer.snapshot_on_hang = on_hang == "snapshot";
  options.observer.plain_snapshot = true;
  options.observer.bound_bytes = recorder.geometry.bound_bytes;
  options.geometry = recorder.geometry;
  options.stages = recorder.stages;
  options.input_fd = STDIN_FILENO;
  options.out = PassTo(STDOUT_FILENO, passthrough, recorder.environment.narrator);
  recorder.environment.signal_fd = OpenSignalFd(signals);
  auto place = MakePlaceUnlessNamed(&recorder_words, kName, &options.observer);
  if (!place.ok()) return Fail(place.status());
  options.ring_prefix = recorder_words.prefix;
  options.keep_rings = recorder_words.keep_rings;
  if (*place) options.place = (*place)->folder;
  const TeeOutcome outcome = RunTee(recorder.environment, options);
  if (*place) LeavePlace(PosixFileSystem(), **place, outcome.keep_rings);
  if (!outcome.status.ok()) PrintError(outcome.status.message());
  return static_cast<int>(outcome.exit);
}

}  // namespace hangscope::cli

// hangscope tee: docs/hangscope-tee.md.
#include <unistd.h>

#include "commands.h"
#include "help/all_helps.h"
#include "recorder_options.h"
#include "run/tee_session.h"

namespace hangscope::cli {

int TeeCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser(TeeHelp());
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

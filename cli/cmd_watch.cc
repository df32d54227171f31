// hangscope watch: docs/hangscope-watch.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/numbers.h"
#include "base/units.h"
#include "commands.h"
#include "cpu_options.h"
#include "recorder_options.h"
#include "run/cpu_watch_session.h"
#include "target/target_spec.h"
#include "terminal_screen.h"
#include "watch/watch_session.h"

namespace hangscope::cli {
namespace {

constexpr char kWatchHelp[] =
    R"(usage: hangscope watch [options] TARGET...

Watches targets that record with hangscope/hangscope.h, without stopping them, and says
who hangs and who waits for whom: deadlocks, waits that never end, silence; faults,
corruption.
TARGET: pid:N; a file with the scope or a guest's RAM, file:PATH[@OFFSET]; exec:COMMAND;
gdb:HOST:PORT, which wants --intrusive.

  --elf FILE            the program: names, lines, where the scope is; one for all
                        targets, or one for each in the same order
  --interval T          between polls [100ms]
  --stall T             what waits or stands still for so long is looked into [5]
  --budget S            bytes that polls may read in a second; they slow down for it [64M]
  --for T               end after this time; otherwise when the targets end
  --exit-on-hang        end at the first hang or fault
  --plain               no live view on a terminal, but lines as into a pipe
  --json                JSON Lines on standard output, and in the log (docs/json.md)
  --log FILE            what changes, line by line; FILE.1 ... are older
  --log-size S --log-keep N   the log takes S times N bytes at most [10M, 3]
  --append              to the log that is there
  --metrics ADDR        GET /metrics for Prometheus at HOST:PORT, or on the socket PATH
  --intrusive           the target may be stopped for a moment

  --cpu                 for one pid:N: record what the kernel does with it, with or without a
                        scope; SIGUSR1, SIGUSR2 and hangscope snap take a snapshot. With it -e, -a,
                        -g, --cpu-size, --window as for hangscope run
  --prefix P            of these snapshots, P.snapshot-NNNN/ [~/.local/state/hangscope/
                        pid-N-PID/pid-N, PID is hangscope's]

On a terminal it shows the cores live; ? there says what keys do, q ends it, and what was
found is printed then. Elsewhere findings are printed as they come, ENTER resumes paused
cores (in the view r does), SIGUSR1 prints the table of cores, SIGINT ends it. Status: 0 clean; 1 a hang or a fault; 2 usage; 3 a target cannot be
read, or has no scope; 130 interrupted, nothing found.
)";

struct WatchWords {
  std::vector<std::string> targets;
  std::vector<std::string> elfs;
  std::string interval = "100ms";
  std::string stall = "5";
  std::string budget = "64M";
  std::string length;
  std::string log_size = "10M";
  std::string log_keep = "3";
  bool intrusive = false;
  bool plain = false;
};

Status ResolveTimes(const WatchWords& words, WatchOptions* options) {
  auto interval = ParseDuration("--interval", words.interval);
  if (!interval.ok()) return interval.status();
  auto stall = ParseDuration("--stall", words.stall);
  if (!stall.ok()) return stall.status();
  auto length = ParseDuration("--for", words.length.empty() ? "1" : words.length);
  if (!length.ok()) return length.status();
  options->interval = *interval;
  options->stall = *stall;
  options->length = words.length.empty() ? 0 : *length;
  return {};
}

Status ResolveSizes(const WatchWords& words, WatchOptions* options) {
  auto budget = ParseSize("--budget", words.budget);
  if (!budget.ok()) return budget.status();
  auto size = ParseSize("--log-size", words.log_size);
  if (!size.ok()) return size.status();
  constexpr uint64_t kLeastLog = 64u << 10;  // room for the legend and the table of a large target
  if (*size < kLeastLog)
    return Status::Usage(
        fmt::format("--log-size '{}': the legend and a table want 64K at least", words.log_size));
  const auto keep = ParseWhole<int>(words.log_keep, 1, 1000);
  if (!keep)
    return Status::Usage(fmt::format(
        "--log-keep '{}': how many files, 1 to 1000; for example --log-keep 3", words.log_keep));
  options->budget_bytes_per_s = *budget;
  options->log.size_bytes = *size;
  options->log.keep = *keep;
  return {};
}

Status ResolveSources(const WatchWords& words, WatchOptions* options) {
  if (words.targets.empty())
    return Status::Usage("no target given; for example hangscope watch pid:4711");
  if (words.elfs.size() > 1 && words.elfs.size() != words.targets.size()) {
    return Status::Usage(
        fmt::format("{} targets and {} times --elf: give one for all, or one for each",
                    words.targets.size(), words.elfs.size()));
  }
  for (size_t i = 0; i < words.targets.size(); ++i) {
    const std::string elf =
        words.elfs.empty() ? "" : words.elfs[std::min(i, words.elfs.size() - 1)];
    options->sources.push_back({words.targets[i], elf, words.intrusive});
  }
  return {};
}

// Whoever reads a terminal from the background is stopped for it.
bool TerminalIsOurs() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

// N of the only target, pid:N.
Result<pid_t> ProcessOf(const WatchWords& watch) {
  const std::string target = watch.targets.size() == 1 ? watch.targets[0] : "";
  const TargetSpec spec = ParseTargetSpec(PosixFileSystem(), target);
  if (spec.kind != TargetSpec::Kind::kProcess)
    return Status::Usage("--cpu records one process; for example hangscope watch pid:4711 --cpu");
  if (spec.pid == 0)
    return Status::Usage(
        fmt::format("'{}': pid: and the number of a process; for example pid:4711", target));
  return spec.pid;
}

Result<CpuWatchEnd> RunCpuWatch(const WatchWords& watch, const CpuWords& cpu_words,
                                const WatchOptions& options, const std::string& prefix,
                                const StartSignals& signals) {
  auto pid = ProcessOf(watch);
  if (!pid.ok()) return pid.status();
  auto cpus = cpu_words.Resolve();
  if (!cpus.ok()) return cpus.status();
  RecorderWords words;
  words.prefix = prefix;
  words.heartbeat = "0";
  words.compress = "none";
  words.json = options.json;
  if (!watch.elfs.empty()) words.elf = watch.elfs[0];
  Recorder recorder;
  const std::string name = fmt::format("pid-{}", *pid);
  const std::string named = prefix.empty() ? name : NameOf(prefix);
  if (Status status = Resolve(words, named.size() + 1, &recorder); !status.ok()) return status;
  CpuWatchOptions session;
  session.pid = *pid;
  session.recorder = cpus->recorder;
  session.observer = recorder.observer;
  session.observer.window = cpus->window;
  session.length = options.length;
  recorder.environment.signal_fd = OpenSignalFd(signals);
  auto place = MakePlaceUnlessNamed(&words, name, &session.observer);
  if (!place.ok()) return place.status();
  auto end = WatchCpus(recorder.environment, session);
  if (*place) {
    FileSystem& files = PosixFileSystem();
    LeavePlace(files, **place, !files.List((*place)->folder).empty());
  }
  return end;
}

// Nothing polls mailboxes there: whoever asks how often would take its silence for a program that
// works.
Status CheckWithCpu(const OptionParser& parser, bool cpu) {
  if (!cpu)
    return parser.IsGiven("--prefix")
               ? Status::Usage("--prefix has no effect without --cpu: only that takes snapshots")
               : Status();
  for (const char* option :
       {"--interval", "--stall", "--budget", "--log", "--log-size", "--log-keep", "--append",
        "--metrics", "--exit-on-hang", "--intrusive"}) {
    if (parser.IsGiven(option)) {
      return Status::Usage(
          fmt::format("{} has no effect with --cpu, which records and looks at no mailboxes; run a "
                      "second hangscope watch without --cpu for these",
                      option));
    }
  }
  return {};
}

int CpuWatchStatus(Result<CpuWatchEnd> end) {
  if (!end.ok()) return Fail(end.status());
  return *end == CpuWatchEnd::kInterrupted ? kExitInterrupted : kExitClean;
}

}  // namespace

int WatchCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser("watch", kWatchHelp);
  WatchWords watch;
  WatchOptions options;
  CpuWords cpu_words;
  cpu_words.AddTo(&parser);
  std::string prefix;
  parser.Option("--prefix", &prefix);
  parser.Positionals("targets", &watch.targets);
  parser.Options("--elf", &watch.elfs);
  parser.Option("--interval", &watch.interval);
  parser.Option("--stall", &watch.stall);
  parser.Option("--budget", &watch.budget);
  parser.Option("--for", &watch.length);
  parser.Option("--log", &options.log.path);
  parser.Option("--log-size", &watch.log_size);
  parser.Option("--log-keep", &watch.log_keep);
  parser.Option("--metrics", &options.metrics);
  parser.Flag("--append", &options.log.append);
  parser.Flag("--exit-on-hang", &options.exit_on_hang);
  parser.Flag("--json", &options.json);
  parser.Flag("--plain", &watch.plain);
  parser.Flag("--intrusive", &watch.intrusive);
  if (const auto exit = parser.Parse(words)) return *exit;
  for (const auto resolve : {ResolveSources, ResolveTimes, ResolveSizes}) {
    if (const Status status = resolve(watch, &options); !status.ok()) return Fail(status);
  }
  if (const Status status = CheckWithCpu(parser, cpu_words.cpu); !status.ok())
    return CpuWatchStatus(status);
  if (cpu_words.cpu) return CpuWatchStatus(RunCpuWatch(watch, cpu_words, options, prefix, signals));
  if (auto without = cpu_words.Resolve(); !without.ok()) return Fail(without.status());
  SystemClock clock;
  WatchEnvironment environment;
  environment.files = &PosixFileSystem();
  environment.clock = &clock;
  environment.say = WriteOut;
  environment.terminal_fd = isatty(STDIN_FILENO) != 0 ? STDIN_FILENO : -1;
  environment.terminal_may_be_read = TerminalIsOurs;
  TerminalScreen screen;
  const bool live = !watch.plain && !options.json && TerminalCanShow();
  if (live) environment.screen = &screen;
  environment.signal_fd = OpenSignalFd(live ? WithTerminalView(signals) : signals);
  const WatchOutcome outcome = RunWatch(environment, options);
  if (!outcome.status.ok()) PrintError(outcome.status.message());
  return static_cast<int>(outcome.exit);
}

}  // namespace hangscope::cli

// hangscope watch: docs/hangscope-watch.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/build_features.h"
#include "base/numbers.h"
#include "base/units.h"
#include "commands.h"
#include "control/control_folder.h"
#include "cpu_options.h"
#include "help/all_helps.h"
#include "process/linux_inspector.h"
#include "progress_bar.h"
#include "recorder_options.h"
#include "run/process_watch_session.h"
#include "scope/scope_view.h"
#include "target/process_target.h"
#include "target/target_spec.h"
#include "terminal_screen.h"
#include "watch/watch_session.h"

namespace hangscope::cli {
namespace {

struct WatchWords {
  std::vector<std::string> targets;
  std::vector<std::string> elfs;
  std::vector<std::string> devices;
  std::string interval = "100ms";
  std::string stall = "5";
  std::string budget = "64M";
  std::string length;
  std::string prefix;
  std::string on_hang;  // empty: not given
  std::string act_on = "likely";
  std::string max_snapshots = "2";
  std::string dump_every;
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
  if (options->dump_all && options->log.path.empty())
    return Status::Usage("--dump-all has no effect without --log: dumps go into the log");
  if (words.dump_every.empty()) return {};
  if (options->log.path.empty())
    return Status::Usage("--dump-every has no effect without --log: dumps go into the log");
  auto dump_every = ParseDuration("--dump-every", words.dump_every);
  if (!dump_every.ok()) return dump_every.status();
  options->dump_every = *dump_every;
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
  for (const std::string& path : words.devices) {
    auto device = ReadDeviceFile(PosixFileSystem(), path);
    if (!device.ok()) return device.status();
    for (DeviceMemory& memory : device->memories) memory.source.intrusive = words.intrusive;
    options->devices.push_back(std::move(*device));
  }
  if (words.targets.empty() && words.devices.empty())
    return Status::Usage("no target given; for example hangscope watch pid:4711");
  if (words.targets.empty() && !words.elfs.empty())
    return Status::Usage("--elf has no effect with --device: the file names the ELFs");
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

// Without a word about hangs nothing is written: who only looks leaves no trace.
Status ResolveActs(const WatchWords& words, WatchOptions* options) {
  const std::string unasked = words.prefix.empty() ? "none" : "snapshot";
  auto on_hang = ParseOnHang(words.on_hang.empty() ? unasked : words.on_hang);
  if (!on_hang.ok()) return on_hang.status();
  auto most = ParseMaxSnapshots(words.max_snapshots);
  if (!most.ok()) return most.status();
  options->acts.on_hang = std::move(*on_hang);
  options->acts.max_snapshots = *most;
  return ParseActOn(words.act_on, &options->acts.act_on);
}

// Of a file or a folder, but for what a shell or a terminal reads otherwise.
std::string PlainName(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return name.empty() || name.front() == '.' ? "target" + name : name;
}

// Of snapshots that nobody gave a name: after the first target.
std::string NameOfTarget(const std::string& target) {
  const TargetSpec spec = ParseTargetSpec(PosixFileSystem(), target);
  return PlainName(spec.kind == TargetSpec::Kind::kProcess  ? fmt::format("pid-{}", spec.pid)
                   : spec.kind == TargetSpec::Kind::kHelper ? "helper"
                   : spec.kind == TargetSpec::Kind::kServer ? "gdb"
                                                            : NameOf(spec.where));
}

// After the file that lists the memories: "grid" of grid.json.
std::string NameOfDevice(const std::string& path) {
  std::string name = NameOf(path);
  constexpr std::string_view kEnding = ".json";
  if (name.size() > kEnding.size() && name.ends_with(kEnding))
    name.resize(name.size() - kEnding.size());
  return PlainName(std::move(name));
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

// A program without a scope, or one whose CPUs are recorded: what `hangscope run` watches of one
// that it started.
ProcessWatchOutcome RunProcessWatch(const WatchWords& watch, const CpuWords& cpu_words, pid_t pid,
                                    const WatchOptions& options, const StartSignals& signals) {
  auto cpus = cpu_words.Resolve();
  if (!cpus.ok()) return {false, false, cpus.status()};
  RecorderWords words;
  words.prefix = watch.prefix;
  words.stall = watch.stall;
  words.max_snapshots = watch.max_snapshots;
  const bool live = !watch.plain && !options.json && isatty(STDOUT_FILENO) != 0;
  words.heartbeat = live ? "5" : "0";  // a line that is rewritten; elsewhere news alone is printed
  words.compress = "none";
  words.json = options.json;
  if (!watch.elfs.empty()) words.elf = watch.elfs[0];
  Recorder recorder;
  recorder.log_fd = STDOUT_FILENO;
  const std::string name = fmt::format("pid-{}", pid);
  const std::string named = watch.prefix.empty() ? name : NameOf(watch.prefix);
  if (Status status = Resolve(words, named.size() + 1, &recorder); !status.ok())
    return {false, false, status};
  ProcessWatchOptions session;
  session.pid = pid;
  session.record_cpus = cpus->on;
  session.recorder = cpus->recorder;
  if (cpus->on) session.observer.history = HistoryOf::kCpus;
  session.observer = recorder.observer;
  session.observer.window = cpus->window;
  session.on_hang = options.acts.on_hang;
  session.observer.act_on = options.acts.act_on;
  session.observer.acts = session.on_hang.Acts();
  session.observer.snapshot_on_hang = session.on_hang.TakesSnapshot();
  session.signals = signals.inherited;
  session.exit_on_hang = options.exit_on_hang;
  session.junit_path = options.junit_path;
  session.length = options.length;
  auto inspector = OpenLinuxInspector(recorder.clock);
  if (!inspector.ok() && !cpus->on) return {false, false, inspector.status()};
  if (inspector.ok()) recorder.environment.inspector = inspector->get();
  recorder.environment.look_beside = true;
  recorder.environment.signal_fd = OpenSignalFd(signals);
  auto place = MakePlaceUnlessNamed(&words, name, &session.observer);
  if (!place.ok()) return {false, false, place.status()};
  const ProcessWatchOutcome outcome = WatchProcess(recorder.environment, session);
  if (*place) {
    FileSystem& files = PosixFileSystem();
    LeavePlace(files, **place, !files.List((*place)->folder).empty());
  }
  return outcome;
}

// The only target, where it is a process that is there and has no scope; else 0.
pid_t ProcessWithoutScope(const WatchWords& watch) {
  auto pid = ProcessOf(watch);
  if (!watch.devices.empty() || !pid.ok() || LifeOfProcess(*pid) != Life::kLive) return 0;
  const std::string elf = watch.elfs.empty() ? "" : watch.elfs[0];
  const auto view = ScopeView::Open(PosixFileSystem(), {ProcessSpec(*pid), elf, false});
  return !view.ok() && view.status().code() == Status::Code::kNotFound ? *pid : 0;
}

// They are about how mailboxes are polled and shown: whoever asks how often would take silence for
// a program that works.
Status CheckWithoutPolls(const OptionParser& parser, const std::string& why) {
  for (const char* option :
       {"--interval", "--budget", "--log", "--log-size", "--log-keep", "--append", "--dump-every",
        "--dump-all", "--metrics", "--intrusive", "--device"}) {
    if (parser.IsGiven(option))
      return Status::Usage(
          fmt::format("{} has no effect {}; it is about mailboxes alone", option, why));
  }
  return {};
}

int StatusOf(const ProcessWatchOutcome& outcome) {
  if (!outcome.status.ok()) return Fail(outcome.status);
  if (outcome.found) return kExitHang;
  return outcome.interrupted ? kExitInterrupted : kExitClean;
}

}  // namespace

int WatchCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser(WatchHelp());
  WatchWords watch;
  WatchOptions options;
  CpuWords cpu_words;
  cpu_words.AddTo(&parser);
  parser.Option("--prefix", &watch.prefix);
  parser.Option("--on-hang", &watch.on_hang);
  parser.Option("--act-on", &watch.act_on);
  parser.Option("--max-snapshots", &watch.max_snapshots);
  parser.Positionals("targets", &watch.targets);
  parser.Options("--elf", &watch.elfs);
  parser.Options("--device", &watch.devices);
  parser.Option("--interval", &watch.interval);
  parser.Option("--stall", &watch.stall);
  parser.Option("--budget", &watch.budget);
  parser.Option("--for", &watch.length);
  parser.Option("--log", &options.log.path);
  parser.Option("--log-size", &watch.log_size);
  parser.Option("--log-keep", &watch.log_keep);
  parser.Option("--dump-every", &watch.dump_every);
  parser.Flag("--dump-all", &options.dump_all);
  parser.Option("--metrics", &options.metrics);
  parser.Option("--junit", &options.junit_path);
  parser.Flag("--append", &options.log.append);
  parser.Flag("--exit-on-hang", &options.exit_on_hang);
  parser.Flag("--json", &options.json);
  parser.Flag("--plain", &watch.plain);
  parser.Flag("--intrusive", &watch.intrusive);
  if (const auto exit = parser.Parse(words)) return *exit;
  for (const auto resolve : {ResolveSources, ResolveTimes, ResolveSizes, ResolveActs}) {
    if (const Status status = resolve(watch, &options); !status.ok()) return Fail(status);
  }
  if (cpu_words.cpu) {
    auto pid = ProcessOf(watch);
    if (!pid.ok()) return Fail(pid.status());
    if (const Status status = CheckWithoutPolls(parser, "with --cpu"); !status.ok())
      return Fail(status);
    if (watch.on_hang.empty()) options.acts.on_hang.what = OnHang::kSnapshot;  // it has a place
    return StatusOf(RunProcessWatch(watch, cpu_words, *pid, options, signals));
  }
  if (auto without = cpu_words.Resolve(); !without.ok()) return Fail(without.status());
  if (const pid_t pid = ProcessWithoutScope(watch); pid != 0) {
    if (const Status status = CheckWithoutPolls(parser, "on a process that has no scope");
        !status.ok())
      return Fail(status);
    return StatusOf(RunProcessWatch(watch, cpu_words, pid, options, signals));
  }
  SystemClock clock;
  WatchEnvironment environment;
  environment.files = &PosixFileSystem();
  environment.clock = &clock;
  WorkLine work(!options.json);
  environment.say = [&](std::string_view text) {
    work.Show("");
    return WriteOut(text);
  };
  environment.show_work = [&](const std::string& text) { work.Show(text); };
  environment.terminal_fd = isatty(STDIN_FILENO) != 0 ? STDIN_FILENO : -1;
  environment.terminal_may_be_read = TerminalIsOurs;
  const bool wants_live = !watch.plain && !options.json;
#if HANGSCOPE_HAS_NCURSES
  TerminalScreen screen;
  const bool live = wants_live && TerminalCanShow();
  if (live) environment.screen = &screen;
#else
  const bool live = false;
  if (wants_live && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0)
    PrintNote("there is no live view: this hangscope was built without ncurses");
#endif
  environment.signal_fd = OpenSignalFd(live ? WithTerminalView(signals) : signals);
  environment.control_folder = ControlFolder();
  options.acts.signals = signals.inherited;
  std::optional<RecordingPlace> place;
  environment.make_prefix = [&]() -> Result<std::string> {
    if (!watch.prefix.empty()) return watch.prefix;
    auto made =
        MakePlace(PosixFileSystem(), watch.targets.empty() ? NameOfDevice(watch.devices[0])
                                                           : NameOfTarget(watch.targets[0]));
    if (!made.ok()) return made.status();
    place = std::move(*made);
    return place->prefix;
  };
  const WatchOutcome outcome = RunWatch(environment, options);
  if (place) LeavePlace(PosixFileSystem(), *place, !PosixFileSystem().List(place->folder).empty());
  if (!outcome.status.ok()) PrintError(outcome.status.message());
  return static_cast<int>(outcome.exit);
}

}  // namespace hangscope::cli

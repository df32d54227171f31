// hangscope run: docs/hangscope-run.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/comma_list.h"
#include "base/file_system.h"
#include "base/numbers.h"
#include "commands.h"
#include "cpu_options.h"
#include "help/all_helps.h"
#include "option_environment.h"
#include "process/linux_inspector.h"
#include "recorder_options.h"
#include "run/run_session.h"
#include "verdict/junit.h"

namespace hangscope::cli {
namespace {

// "fw" for --elf build/fw.elf; without an ELF the program gives the name.
std::string DefaultName(const std::string& elf, const std::string& program) {
  std::string name = NameOf(elf.empty() ? program : elf);
  if (const size_t dot = name.rfind('.'); !elf.empty() && dot != std::string::npos && dot > 0)
    name.resize(dot);
  return name;
}

// N of fd:N. The limit of open files (ulimit -n) holds for the program, too.
Result<int> ParseDescriptor(const std::string& name) {
  const auto fd = ParseWhole<int>(std::string_view(name).substr(3), STDERR_FILENO + 1);
  if (!fd)
    return Status::Usage(
        fmt::format("--capture '{}': a descriptor from 3 on; for example --capture fd:3", name));
  if (const long limit = sysconf(_SC_OPEN_MAX); limit > 0 && *fd >= limit) {
    return Status::Usage(
        fmt::format("--capture '{}': the descriptors here end at {} (ulimit -n)", name, limit - 1));
  }
  return *fd;
}

Result<CapturedStream> ParseStream(const std::string& name) {
  if (name == "stdout") return CapturedStream{name, STDOUT_FILENO};
  if (name == "stderr") return CapturedStream{name, STDERR_FILENO};
  if (!name.starts_with("fd:")) {
    return Status::Usage(
        fmt::format("--capture '{}': the streams are stdout, stderr and fd:N; for example "
                    "--capture stdout,stderr",
                    name));
  }
  auto fd = ParseDescriptor(name);
  if (!fd.ok()) return fd.status();
  return CapturedStream{fmt::format("fd{}", *fd), *fd};
}

// By descriptor, each once.
Result<std::vector<CapturedStream>> ParseCapture(const std::string& text) {
  std::map<int, CapturedStream> streams;
  for (const std::string& name : SplitAtCommas(text)) {
    auto stream = ParseStream(name);
    if (!stream.ok()) return stream.status();
    streams[stream->child_fd] = *stream;
  }
  std::vector<CapturedStream> sorted;
  for (const auto& [fd, stream] : streams) sorted.push_back(stream);
  return sorted;
}

// To be called before hangscope opens anything, for what it opens takes the numbers
// that are free: a stream goes on to our descriptor of its number, if we were given one.
Result<std::vector<RunStream>> ResolveStreams(const std::string& capture, bool pty) {
  auto captured = ParseCapture(!capture.empty() ? capture : pty ? "stdout" : "stdout,stderr");
  if (!captured.ok()) return captured.status();
  std::vector<RunStream> streams;
  for (CapturedStream& stream : captured.value()) {
    if (pty && stream.child_fd == STDERR_FILENO) {
      return Status::Usage(
          "--pty: stderr is on the same terminal as stdout, and recorded with it; for example "
          "--pty --capture stdout");
    }
    stream.pty = pty && stream.child_fd == STDOUT_FILENO;
    PassthroughOptions passthrough;
    if (fcntl(stream.child_fd, F_GETFD) != -1) passthrough.fd = stream.child_fd;
    streams.push_back({stream, passthrough});
  }
  if (pty && !streams.front().captured.pty) {
    return Status::Usage(fmt::format(
        "--pty --capture {}: the terminal is stdout; for example --pty --capture stdout,{}",
        capture, capture));
  }
  return streams;
}

size_t LongestName(const std::vector<RunStream>& streams) {
  size_t longest = 0;
  for (const RunStream& stream : streams) longest = std::max(longest, stream.captured.name.size());
  return longest;
}

// stdbuf becomes the program (exec) after it set up the C library's buffers.
Status LaunchLineBuffered(RunOptions* options) {
  if (!CheckProgram("stdbuf").ok()) {
    return Status::Usage(
        "--line-buffered needs the command stdbuf (package coreutils), which is not in the PATH; "
        "--pty does without");
  }
  options->launcher = {"stdbuf", "-oL", "-eL"};
  return {};
}

Status ParseTimes(const std::string& timeout, const std::string& expect_output,
                  RunOptions* options) {
  const auto parse = [](const char* option, const std::string& text, TimeNs* time) {
    if (text.empty()) return Status();
    auto parsed = ParseDuration(option, text);
    if (parsed.ok()) *time = *parsed;
    return parsed.status();
  };
  if (Status status = parse("--timeout", timeout, &options->timeout); !status.ok()) return status;
  return parse("--expect-output", expect_output, &options->observer.expect_output);
}

Status ParseOnExit(const std::string& text, ObserverOptions* options) {
  if (text != "snapshot" && text != "always" && text != "none" && text != "unless-stopped") {
    return Status::Usage(
        fmt::format("--on-exit '{}': snapshot, unless-stopped, always or none; for example "
                    "--on-exit none",
                    text));
  }
  options->on_exit = text == "always"           ? OnExit::kAlways
                     : text == "none"           ? OnExit::kNone
                     : text == "unless-stopped" ? OnExit::kUnlessStopped
                                                : OnExit::kFailure;
  return {};
}

RunOutcome FailRun(const Status& status) { return {kRunFailed, status}; }

// The value of an option, also where the other options are wrong; empty: none.
std::string ValueOf(std::string_view option, const std::vector<std::string>& words) {
  std::string value = OptionOfEnvironment(option).value_or("");
  const std::string with_value = fmt::format("{}=", option);
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == option && at + 1 < words.size()) value = words[at + 1];
    if (words[at].starts_with(with_value)) value = words[at].substr(with_value.size());
  }
  return value;
}

// Of a run that did not begin. Without it a CI system would show no test at all, as if all were
// well.
void WriteJunitOfNoRun(const std::vector<std::string>& options,
                       const std::vector<std::string>& program, int status,
                       const std::string& why) {
  const std::string path = ValueOf("--junit", options);
  if (path.empty()) return;
  JunitCase result;
  result.name = ValueOf("--junit-name", options);
  if (result.name.empty())
    result.name = program.empty() ? "hangscope run" : fmt::to_string(fmt::join(program, " "));
  const bool no_program = status == kRunNotFound || status == kRunCannotExecute;
  result.error = (no_program ? "not started: " : "hangscope failed: ") + ErrorText(why);
  const Status written = WriteWholeFile(PosixFileSystem(), path, JunitXml(result));
  if (!written.ok()) PrintError("--junit: " + written.message());
}

RunOutcome Run(OptionParser& parser, const std::vector<std::string>& mine,
               const std::vector<std::string>& program, const StartSignals& signals) {
  RecorderWords recorder_words;
  recorder_words.compress = "auto";
  recorder_words.AddTo(&parser);
  std::string capture;
  std::string on_hang = "snapshot";
  std::string on_exit = "snapshot";
  RunOptions options;
  bool no_passthrough = false;
  bool pty = false;
  bool line_buffered = false;
  parser.Option("--capture", &capture);
  CpuWords cpu_words;
  cpu_words.AddTo(&parser);
  std::string history = "auto";
  parser.Option("--history", &history);
  std::string scope;
  parser.Option("--scope", &scope);
  parser.Option("--on-hang", &on_hang);
  std::string act_on = "likely";
  std::string timeout;
  std::string expect_output;
  bool closed = false;
  parser.Option("--act-on", &act_on);
  parser.Option("--timeout", &timeout);
  parser.Option("--expect-output", &expect_output);
  parser.Flag("--closed", &closed);
  parser.Option("--on-exit", &on_exit);
  parser.Option("--junit", &options.junit_path);
  parser.Option("--junit-name", &options.junit_name);
  parser.Flag("--no-passthrough", &no_passthrough);
  parser.Flag("--pty", &pty);
  parser.Flag("--line-buffered", &line_buffered);
  if (const auto exit = parser.Parse(mine, kRunFailed)) return {*exit, {}};
  if (program.empty())
    return FailRun(Status::Usage("no program to run; for example hangscope run make test"));
  options.observer.command = program;
  auto streams = ResolveStreams(capture, pty);
  if (!streams.ok()) return FailRun(streams.status());
  options.streams = std::move(*streams);
  if (line_buffered) {
    if (Status status = LaunchLineBuffered(&options); !status.ok()) return FailRun(status);
  }
  const std::string name = DefaultName(recorder_words.elf, options.observer.command[0]);

  Recorder recorder;
  const size_t longest_name =
      NameOf(recorder_words.prefix.empty() ? name : recorder_words.prefix).size() + 1 +
      LongestName(options.streams);
  if (Status status = Resolve(recorder_words, longest_name, &recorder); !status.ok())
    return FailRun(status);
  std::vector<std::string> command = std::move(options.observer.command);
  options.observer = recorder.observer;
  options.observer.command = std::move(command);
  options.observer.scope = ParseScopePlace(scope);
  auto cpus = cpu_words.Resolve();
  if (!cpus.ok()) return FailRun(cpus.status());
  options.record_cpus = cpus->on;
  options.cpus = cpus->recorder;
  options.observer.window = cpus->window;
  auto action = ParseOnHang(on_hang);
  if (!action.ok()) return FailRun(action.status());
  options.on_hang = std::move(*action);
  options.observer.snapshot_on_hang = options.on_hang.TakesSnapshot();
  options.observer.acts = options.on_hang.Acts();
  if (history != "auto" && history != "none")
    return FailRun(Status::Usage(
        fmt::format("--history '{}': auto or none; for example --history none", history)));
  // Where the CPUs' rings have it all, it is not recorded twice.
  if (history == "auto")
    options.observer.history = cpus->on ? HistoryOf::kCpus : HistoryOf::kThreads;
  if (Status status = ParseOnExit(on_exit, &options.observer); !status.ok()) return FailRun(status);
  if (Status status = ParseActOn(act_on, &options.observer.act_on); !status.ok())
    return FailRun(status);
  if (Status status = ParseTimes(timeout, expect_output, &options); !status.ok())
    return FailRun(status);
  options.observer.closed = closed;
  options.geometry = recorder.geometry;
  options.stages = recorder.stages;
  for (RunStream& stream : options.streams) {
    const int fd = stream.passthrough.fd;
    stream.passthrough = PassTo(fd, fd >= 0 && !no_passthrough, recorder.environment.narrator);
  }
  options.signals = signals.inherited;
  recorder.environment.signal_fd =
      pty ? OpenSignalFd(WithTerminalSize(signals)) : OpenSignalFd(signals);

  // Where there is none, what the streams say must do.
  auto inspector = OpenLinuxInspector(recorder.clock);
  if (inspector.ok()) recorder.environment.inspector = inspector->get();
  recorder.environment.look_beside = true;

  auto place = MakePlaceUnlessNamed(&recorder_words, name, &options.observer);
  if (!place.ok()) return FailRun(place.status());
  options.ring_prefix = recorder_words.prefix;
  options.keep_rings = recorder_words.keep_rings;
  if (*place) options.place = (*place)->folder;
  RunOutcome outcome = RunProgram(recorder.environment, options);
  if (*place) LeavePlace(PosixFileSystem(), **place, outcome.keep_rings);
  return outcome;
}

}  // namespace

int RunCommand(const std::vector<std::string>& words, const StartSignals& signals) {
  OptionParser parser(RunHelp());
  // What follows is the program's alone.
  const auto mine_end = words.begin() + static_cast<ptrdiff_t>(parser.WordsBeforeProgram(words));
  const std::vector<std::string> mine(words.begin(), mine_end);
  const auto program_begin = mine_end != words.end() && *mine_end == "--" ? mine_end + 1 : mine_end;
  const std::vector<std::string> program(program_begin, words.end());
  const RunOutcome outcome = Run(parser, mine, program, signals);
  if (!outcome.status.ok()) PrintError(outcome.status.message());
  const std::string why = outcome.status.ok() ? parser.error() : outcome.status.message();
  if (!why.empty()) WriteJunitOfNoRun(mine, program, outcome.exit_status, why);
  if (outcome.terminal_signal != 0) EndBySignal(outcome.terminal_signal);
  return outcome.exit_status;
}

}  // namespace hangscope::cli

#include "recorder_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/comma_list.h"
#include "base/file_system.h"
#include "base/numbers.h"
#include "base/units.h"
#include "commands.h"
#include "control/control_folder.h"

namespace hangscope::cli {
namespace {

Result<Compress> ParseCompress(const std::string& text) {
  if (text == "none") return Compress::kNone;
  if (text == "zstd") return Compress::kZstd;
  if (text == "auto") return Compress::kAuto;
  return Status::Usage(
      fmt::format("--compress '{}': none, zstd or auto; for example --compress zstd", text));
}

Result<uint64_t> ParseMemory(const std::string& text) {
  auto bytes = ParseSize("--memory", text);
  if (bytes.ok() && (*bytes < StagingBuffer::kSmallest || *bytes > StagingBuffer::kLargest)) {
    return Status::Usage(fmt::format("--memory '{}': from 1M to {}; for example --memory 64M", text,
                                     FormatSize(StagingBuffer::kLargest)));
  }
  return bytes;
}

Status ResolveTriggers(const RecorderWords& words, ObserverOptions* observer) {
  TriggerOptions& triggers = observer->triggers;
  triggers.patterns = words.triggers;
  if (!words.triggers.empty()) {
    auto patterns = LinePatterns::Compile("--trigger", words.triggers);
    if (!patterns.ok()) return patterns.status();
    observer->patterns = *patterns;
  }
  if (!words.trigger_rate.empty()) {
    if (Status status = ParseTriggerRate("--trigger-rate", words.trigger_rate, &triggers);
        !status.ok())
      return status;
  }
  if (!words.trigger_silence.empty()) {
    auto silence = ParseDuration("--trigger-silence", words.trigger_silence);
    if (!silence.ok()) return silence.status();
    triggers.silence = *silence;
  }
  auto quiet = ParseDuration("--trigger-quiet", words.trigger_quiet);
  if (!quiet.ok()) return quiet.status();
  triggers.quiet = *quiet;
  if (words.post.empty()) return {};
  auto post = ParseTimeOrSize("--post", words.post);
  if (!post.ok()) return post.status();
  triggers.post = *post;
  return {};
}

}  // namespace

void RecorderWords::AddTo(OptionParser* options) {
  options->Option("--prefix", &prefix);
  options->Option("--size", &size);
  options->Option("--keep", &keep);
  options->Option("--stall", &stall);
  options->Option("--heartbeat", &heartbeat);
  options->Option("--elf", &elf);
  options->Option("--log", &log);
  options->Option("--place-regex", &place_regex);
  options->Option("--max-snapshots", &max_snapshots);
  options->Option("--compress", &compress);
  options->Option("--memory", &memory);
  options->Flag("--lossless", &lossless);
  options->Options("--trigger", &triggers);
  options->Option("--trigger-rate", &trigger_rate);
  options->Option("--trigger-silence", &trigger_silence);
  options->Option("--trigger-quiet", &trigger_quiet);
  options->Option("--post", &post);
  options->Flag("--json", &json);
  options->Flag("--keep-rings", &keep_rings);
  options->Flag("--quiet", &quiet);
}

Result<std::optional<RecordingPlace>> MakePlaceUnlessNamed(RecorderWords* words,
                                                           const std::string& name,
                                                           ObserverOptions* observer) {
  if (!words->prefix.empty()) return std::optional<RecordingPlace>();
  auto place = MakePlace(PosixFileSystem(), name);
  if (!place.ok()) return place.status();
  words->prefix = observer->prefix = place->prefix;
  return std::optional<RecordingPlace>(*place);
}

Result<int> ParseMaxSnapshots(const std::string& text) {
  if (const auto number = ParseWhole<int>(text, 1, 9999)) return *number;
  return Status::Usage(fmt::format(
      "--max-snapshots '{}': a whole number from 1 to 9999; for example --max-snapshots 2", text));
}

Result<HangAction> ParseOnHang(const std::string& text) {
  constexpr std::string_view kExecPrefix = "exec:";
  if (text == "snapshot") return HangAction{OnHang::kSnapshot, ""};
  if (text == "kill") return HangAction{OnHang::kKill, ""};
  if (text == "none") return HangAction{OnHang::kNone, ""};
  if (text.starts_with(kExecPrefix) && text.size() > kExecPrefix.size())
    return HangAction{OnHang::kExec, text.substr(kExecPrefix.size())};
  return Status::Usage(fmt::format(
      "--on-hang '{}': snapshot, kill, exec:COMMAND or none; for example --on-hang kill", text));
}

Status ParseActOn(const std::string& text, ActOn* act_on) {
  for (const std::string& word : SplitAtCommas(text)) {
    if (word == "partial") {
      act_on->partial = true;
    } else if (word == "possible" || word == "likely" || word == "certain") {
      act_on->least = ConfidenceFromName(word);
    } else {
      return Status::Usage(
          fmt::format("--act-on '{}': possible, likely or certain, and partial; for example "
                      "--act-on likely,partial",
                      text));
    }
  }
  return {};
}

PassthroughOptions PassTo(int fd, bool wanted, const NarratorOptions& narrator) {
  PassthroughOptions options;
  options.fd = wanted ? fd : -1;
  options.hide_traces = isatty(fd) != 0;
  if (narrator.live && options.hide_traces) options.live_line = narrator.live_line;
  return options;
}

Status Resolve(const RecorderWords& words, size_t longest_name, Recorder* recorder) {
  auto compress = ParseCompress(words.compress);
  if (!compress.ok()) return compress.status();
  auto geometry = PlanRing(words.size, words.keep, longest_name, *compress);
  if (!geometry.ok()) return geometry.status();
  recorder->geometry = *geometry;
  auto memory = ParseMemory(words.memory);
  if (!memory.ok()) return memory.status();
  recorder->stages = {*memory, words.lossless};
  auto stall = ParseDuration("--stall", words.stall);
  if (!stall.ok()) return stall.status();
  auto most = ParseMaxSnapshots(words.max_snapshots);
  if (!most.ok()) return most.status();
  const bool beats = words.heartbeat != "0" && words.heartbeat != "off";
  auto heartbeat = ParseDuration("--heartbeat", beats ? words.heartbeat : "5");
  if (!heartbeat.ok()) return heartbeat.status();
  if (!words.elf.empty()) {
    auto elf = ElfReader::Open(words.elf);
    if (!elf.ok()) return elf.status();
    recorder->observer.elf_copy = (*elf)->copy_path();
    recorder->elf = std::move(*elf);
  }
  if (!words.place_regex.empty()) {
    auto rule = PlaceRule::Compile(words.place_regex);
    if (!rule.ok()) return rule.status();
    recorder->place_rule = std::move(*rule);
  }
  if (!words.log.empty()) {
    recorder->log_fd =
        open(words.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (recorder->log_fd < 0) return Status::FromErrno(errno, "open", words.log);
  }
  recorder->observer.prefix = words.prefix;
  recorder->observer.stall = *stall;
  recorder->observer.heartbeat = *heartbeat;
  recorder->observer.max_snapshots = *most;
  recorder->observer.elf_path = words.elf;

  if (Status status = ResolveTriggers(words, &recorder->observer); !status.ok()) return status;

  Environment& environment = recorder->environment;
  environment.files = &PosixFileSystem();
  environment.clock = &recorder->clock;
  environment.guard_program = kOwnProgram;
  environment.elf = recorder->elf.get();
  environment.place_rule = recorder->place_rule.get();
  environment.control_folder = ControlFolder();
  const int fd = recorder->log_fd;
  environment.narrator.write = [fd, path = words.log, told = false](std::string_view text) mutable {
    if (WriteAll(fd, text) || fd == STDERR_FILENO) return;
    if (!std::exchange(told, true))
      PrintError(Status::FromErrno(errno, "write", path).message() + "; what it lacks follows");
    WriteAll(STDERR_FILENO, text);
  };
  environment.narrator.columns = [fd] { return TerminalColumns(fd); };
  environment.narrator.json = words.json;
  environment.narrator.live = !words.json && isatty(fd) != 0;
  environment.narrator.colour = !words.json && WantsColour(fd);
  environment.narrator.quiet = !beats || words.quiet;
  environment.narrator.terse = words.quiet;
  return {};
}

}  // namespace hangscope::cli

#include "target_words.h"

#include <fmt/format.h>

#include "base/numbers.h"
#include "base/utf8.h"
#include "options.h"
#include "process_names.h"
#include "snapshot/recording_kind.h"
#include "stream/trace_line.h"
#include "target/process_target.h"
#include "target/target_spec.h"

namespace hangscope::cli {
namespace {

constexpr size_t kLooksForTraceIn = 65536;  // bytes of a file

// pid:N of each process that `word` is the number or the name of.
std::vector<std::string> ProcessesCalled(const std::string& word) {
  if (const auto pid = ParseWhole<int>(word, 1)) {
    if (LifeOfProcess(*pid) != Life::kLive) return {};
    return {ProcessSpec(*pid)};
  }
  std::vector<std::string> specs;
  for (const NamedProcess& process : ProcessesNamed(word))
    specs.push_back(ProcessSpec(process.pid));
  return specs;
}

bool MayNameProcess(const std::string& word) {
  return !word.empty() && word != "-" && word.find_first_of(":/@") == std::string::npos;
}

bool MayBeName(FileSystem& files, const std::string& word) {
  return MayNameProcess(word) && !files.Exists(word) &&
         KindOf(files, word) == RecordingKind::kOther;
}

// The file is taken, and whoever meant the process is to know.
void NoteProcessesCalled(FileSystem& files, const std::string& word) {
  if (!MayNameProcess(word)) return;
  const std::vector<std::string> processes = ProcessesCalled(word);
  if (processes.empty()) return;
  PrintNote(fmt::format("'{}' is taken as the {} of that name; {} is the {}process",
                        Printable(word), files.IsFolder(word) ? "folder" : "file", processes[0],
                        processes.size() > 1 ? "first " : ""));
}

bool IsProgram(FileSystem& files, const std::string& path) {
  constexpr std::string_view kMagic = "\177ELF";
  auto file = files.Open(path, FileSystem::Mode::kRead);
  char begin[kMagic.size()] = {};
  return file.ok() && (*file)->ReadAt(0, begin).ok() &&
         std::string_view(begin, sizeof begin) == kMagic;
}

// Of the first line of a simulator's trace in the beginning of a file.
TraceFormat TraceIn(FileSystem& files, const std::string& path) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return TraceFormat::kNone;
  std::string begin(kLooksForTraceIn, '\0');
  begin.resize((*file)->ReadAt(0, {begin.data(), begin.size()}).value_or(0));
  for (size_t at = 0, end = 0; (end = begin.find('\n', at)) != std::string::npos; at = end + 1) {
    const TraceLine line = ParseTraceLine(std::string_view(begin).substr(at, end - at));
    if (line.kind != TraceLine::Kind::kOther && line.format != TraceFormat::kNone)
      return line.format;
  }
  return TraceFormat::kNone;
}

// A log, or a trace in one: a hang shows in the time that passes between its lines, which a file
// does not have.
std::string AboutText(FileSystem& files, const std::string& path) {
  const std::string name = Printable(path);
  const TraceFormat format = TraceIn(files, path);
  if (format == TraceFormat::kNone)
    return fmt::format(
        "'{}' is a text file without a dump of a scope in it; a log is watched as it grows: tail "
        "-f {} | hangscope tee",
        name, name);
  return fmt::format(
      "'{}' is a {} trace, which is no recording: hangscope tee --elf FIRMWARE < {} says where its "
      "cores "
      "stood at its end",
      name, TraceFormatName(format), name);
}

// Of what is there and no recording of hangscope; empty: none is known.
std::string AdviceOn(FileSystem& files, const std::string& target) {
  const TargetSpec spec = ParseTargetSpec(files, target);
  if (spec.pid != 0)
    return fmt::format("hangscope why {} says what its threads wait for without that", spec.pid);
  if (spec.kind != TargetSpec::Kind::kFile) return {};
  const std::string path = Printable(spec.name);
  switch (KindOf(files, spec.name)) {
    case RecordingKind::kRing:
      return fmt::format(
          "'{}' is a recording of what a program printed: hangscope cat {} prints it", path, path);
    case RecordingKind::kOther:
      return IsProgram(files, spec.name)
                 ? fmt::format(
                       "to see why a program hangs: hangscope run {}, or, where it runs "
                       "already, hangscope why PID",
                       path)
                 : "";
    default:
      return {};
  }
}

}  // namespace

Result<int> FindProcess(const std::string& word) {
  if (const auto pid = ParseWhole<int>(word, 1)) return *pid;
  const std::vector<NamedProcess> named = ProcessesNamed(word);
  if (named.size() > 1) {
    std::string list;
    for (const NamedProcess& process : named)
      list += fmt::format("\n  {:<8} {}", process.pid,
                          Printable(std::string_view(process.command).substr(0, 60)));
    return Status::Usage(fmt::format("{} processes are called '{}'; choose one by its number:{}",
                                     named.size(), Printable(word), list));
  }
  return named.empty() ? 0 : named[0].pid;
}

Status ResolveTarget(FileSystem& files, std::string* word) {
  *word = SpecOfWord(files, *word);
  if (!MayBeName(files, *word)) {
    NoteProcessesCalled(files, *word);
    return CheckForSnapshot(files, *word);
  }
  auto pid = FindProcess(*word);
  if (!pid.ok()) return pid.status();
  if (*pid != 0) *word = ProcessSpec(*pid);
  return {};
}

Status WithAdvice(FileSystem& files, const Status& status, const std::string& target) {
  if (target == "-" || status.ok() || status.code() == Status::Code::kUsage) return status;
  const TargetSpec spec = ParseTargetSpec(files, target);
  if (spec.kind == TargetSpec::Kind::kFile && status.code() == Status::Code::kNotFound &&
      KindOf(files, spec.name) == RecordingKind::kText)
    return Status::Usage(AboutText(files, spec.name));
  const std::string advice =
      MayBeName(files, target) ? "nor is there a process of that name" : AdviceOn(files, target);
  return advice.empty() ? status : Status::NotFound(status.message() + "; " + advice);
}

}  // namespace hangscope::cli

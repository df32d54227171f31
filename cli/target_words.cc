#include "target_words.h"

#include <fmt/format.h>

#include "base/numbers.h"
#include "base/utf8.h"
#include "process_names.h"
#include "snapshot/recording_kind.h"
#include "target/target_spec.h"

namespace hangscope::cli {
namespace {

bool MayBeName(FileSystem& files, const std::string& word) {
  return !word.empty() && word != "-" && word.find_first_of(":/@") == std::string::npos &&
         !files.Exists(word) && KindOf(files, word) == RecordingKind::kOther;
}

bool IsProgram(FileSystem& files, const std::string& path) {
  constexpr std::string_view kMagic = "\177ELF";
  auto file = files.Open(path, FileSystem::Mode::kRead);
  char begin[kMagic.size()] = {};
  return file.ok() && (*file)->ReadAt(0, begin).ok() &&
         std::string_view(begin, sizeof begin) == kMagic;
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
    case RecordingKind::kText:
      return fmt::format("a log is read as it grows: tail -f {} | hangscope tee", path);
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
  if (!MayBeName(files, *word)) return CheckForSnapshot(files, *word);
  auto pid = FindProcess(*word);
  if (!pid.ok()) return pid.status();
  if (*pid != 0) *word = ProcessSpec(*pid);
  return {};
}

Status WithAdvice(FileSystem& files, const Status& status, const std::string& target) {
  if (target == "-" || status.ok() || status.code() == Status::Code::kUsage) return status;
  const std::string advice =
      MayBeName(files, target) ? "nor is there a process of that name" : AdviceOn(files, target);
  return advice.empty() ? status : Status::NotFound(status.message() + "; " + advice);
}

}  // namespace hangscope::cli

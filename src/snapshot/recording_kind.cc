#include "snapshot/recording_kind.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/utf8.h"
#include "hwtrace/debugger_snapshot.h"
#include "perf/perf_file.h"
#include "ring/history.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/device_capture.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

bool IsText(FileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return false;
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  char begin[4096];
  auto got = (*file)->ReadAt(0, begin);
  return got.ok() && *got > 0 && std::find(begin, begin + *got, '\0') == begin + *got;
}

bool IsCoreDump(FileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return false;
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  Elf64_Ehdr header = {};  // e_type lies at the same place in 32-bit ones
  auto got = (*file)->ReadAt(0, std::span(reinterpret_cast<char*>(&header), sizeof header));
  return got.ok() && *got == sizeof header && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_type == ET_CORE;
}

bool IsLeftOfSnapshot(FileSystem& files, const std::string& folder) {
  if (HasDevice(files, folder) || !FindHistory(files, folder).empty()) return true;
  const auto is_there = [&](const char* name) { return files.Exists(folder + "/" + name); };
  return is_there(kReportName) || is_there(kThreadsName) || is_there(kScopeImageName) ||
         is_there(kCpuFileName);
}

// What a folder has that can be given to a command: the end of a sentence.
std::string Contents(FileSystem& files, const std::string& folder) {
  constexpr std::string_view kIndex = ".index";
  std::vector<std::string> snapshots, recordings;
  for (const std::string& name : files.List(folder)) {
    const std::string path = folder + "/" + name;
    if (IsSnapshot(files, path)) snapshots.push_back(path);
    if (!name.ends_with(kIndex)) continue;
    const std::string ring = path.substr(0, path.size() - kIndex.size());
    recordings.push_back(ring.substr(0, ring.rfind('.')));
  }
  std::sort(snapshots.begin(), snapshots.end());
  std::sort(recordings.begin(), recordings.end());
  if (!snapshots.empty())
    return fmt::format("; there are snapshots in it, for example '{}'",
                       Printable(snapshots.back()));
  if (!recordings.empty())
    return fmt::format("; there are recordings of output in it: hangscope cat {} prints one",
                       Printable(recordings.front()));
  return ", and nothing else that hangscope wrote";
}

}  // namespace

RecordingKind KindOf(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path)) {
    if (files.Exists(path + "/" + kManifestName)) return RecordingKind::kSnapshot;
    if (IsDebuggerSnapshot(files, path)) return RecordingKind::kDebugger;
    return IsPerfData(files, path) ? RecordingKind::kPerfData : RecordingKind::kFolder;
  }
  if (IsPerfData(files, path)) return RecordingKind::kPerfData;
  if (IsCoreDump(files, path)) return RecordingKind::kCore;
  if (!FindHistory(files, path).empty()) return RecordingKind::kRing;
  return IsText(files, path) ? RecordingKind::kText : RecordingKind::kOther;
}

Status CheckForSnapshot(FileSystem& files, const std::string& path) {
  if (KindOf(files, path) == RecordingKind::kFolder && !IsLeftOfSnapshot(files, path))
    return Status::NotFound(fmt::format("the folder '{}' is no snapshot: it has no {}{}",
                                        Printable(path), kManifestName, Contents(files, path)));
  return {};
}

}  // namespace hangscope

#include "snapshot/recording_kind.h"

#include <algorithm>

#include "hwtrace/debugger_snapshot.h"
#include "perf/perf_file.h"
#include "ring/history.h"
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

}  // namespace

RecordingKind KindOf(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path)) {
    if (files.Exists(path + "/" + kManifestName)) return RecordingKind::kSnapshot;
    if (IsDebuggerSnapshot(files, path)) return RecordingKind::kDebugger;
    return IsPerfData(files, path) ? RecordingKind::kPerfData : RecordingKind::kFolder;
  }
  if (IsPerfData(files, path)) return RecordingKind::kPerfData;
  if (!FindHistory(files, path).empty()) return RecordingKind::kRing;
  return IsText(files, path) ? RecordingKind::kText : RecordingKind::kOther;
}

}  // namespace hangscope

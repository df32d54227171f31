#include "run/recording_places.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/numbers.h"
#include "control/control_folder.h"
#include "ring/ring_files.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

constexpr std::string_view kIndex = ".index";
constexpr size_t kLongestName = 100;
constexpr int kMostOfOneNumber = 1000;  // recordings of processes with the same number

// The folder, or where it is not there yet the one that it would be made in.
std::string Nearest(std::string path) {
  struct stat info {};
  while (path != "/" && stat(path.c_str(), &info) != 0) path = FolderOf(path);
  return path;
}

// In another user's home (su without -, sudo -E) nothing is made.
bool IsOurs(const std::string& path) {
  struct stat info {};
  return stat(Nearest(path).c_str(), &info) == 0 && info.st_uid == geteuid();
}

// $NAME, or nothing where that is no absolute path, or another user's folder.
std::string FolderIn(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && value[0] == '/' && IsOurs(value) ? value : "";
}

// The first that can be used is.
std::vector<std::string> Bases() {
  std::vector<std::string> bases;
  const std::string state = FolderIn("XDG_STATE_HOME");
  const std::string home = FolderIn("HOME");
  if (!state.empty()) bases.push_back(state + "/hangscope");
  if (state.empty() && !home.empty()) bases.push_back(home + "/.local/state/hangscope");
  bases.push_back(TemporaryFolder() + "/recordings");
  return bases;
}

// A folder of this user's alone, and no link.
Status Prepare(FileSystem& files, const std::string& base) {
  const std::string above = FolderOf(base);
  if (above == TemporaryFolder()) {
    if (auto folder = ControlFolderHandle::Open(above, true); !folder.ok()) return folder.status();
  } else if (Status status = files.MakeFolders(above); !status.ok()) {
    return status;
  }
  return ControlFolderHandle::Open(base, true).status();
}

struct Found {
  RecordingPlace place;
  int pid = 0;
  timespec changed{};
};

// The name of a recording in NAME-PID, or NAME-PID.N where there were several.
std::optional<Found> ParseFolder(const std::string& base, const std::string& folder) {
  const size_t dash = folder.rfind('-');
  if (dash == std::string::npos || dash == 0) return std::nullopt;
  std::string_view number = std::string_view(folder).substr(dash + 1);
  number = number.substr(0, number.find('.'));
  const auto pid = ParseWhole<int>(number, 1);
  if (!pid) return std::nullopt;
  Found found;
  found.place.folder = base + "/" + folder;
  found.place.prefix = found.place.folder + "/" + folder.substr(0, dash);
  found.pid = *pid;
  struct stat info {};
  if (lstat(found.place.folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      info.st_uid != geteuid())
    return std::nullopt;
  found.changed = info.st_mtim;
  return found;
}

// In the first of the places that can be used.
std::vector<Found> FindAll(FileSystem& files) {
  std::vector<Found> all;
  for (const std::string& base : Bases()) {
    if (!ControlFolderHandle::Open(base, false).ok()) {
      if (access(Nearest(base).c_str(), W_OK) == 0) break;
      continue;
    }
    for (const std::string& name : files.List(base)) {
      if (auto found = ParseFolder(base, name)) all.push_back(std::move(*found));
    }
    break;
  }
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.changed.tv_sec != b.changed.tv_sec ? a.changed.tv_sec > b.changed.tv_sec
                                                : a.changed.tv_nsec > b.changed.tv_nsec;
  });
  return all;
}

// Oldest first. Of several targets, each has its number behind the name (NAME-2.snapshot-0001).
std::vector<std::string> SnapshotsOf(FileSystem& files, const RecordingPlace& place) {
  std::vector<std::pair<int, std::string>> numbered;
  constexpr std::string_view kSnapshot = ".snapshot-";
  const std::string stem = NameOf(place.prefix);
  for (const std::string& name : files.List(place.folder)) {
    const size_t dot = name.rfind(kSnapshot);
    if (dot == std::string::npos || !name.starts_with(stem)) continue;
    const std::string_view target = std::string_view(name).substr(stem.size(), dot - stem.size());
    if (!target.empty() && (target[0] != '-' || !ParseWhole<int>(target.substr(1), 1))) continue;
    const auto number = ParseWhole<int>(std::string_view(name).substr(dot + kSnapshot.size()));
    const std::string path = place.folder + "/" + name;
    if (number && IsSnapshot(files, path)) numbered.emplace_back(*number, path);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> paths;
  for (const auto& [number, path] : numbered) paths.push_back(path);
  return paths;
}

bool HasRings(FileSystem& files, const RecordingPlace& place) {
  const std::vector<std::string> names = files.List(place.folder);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with(kIndex); });
}

// What is left when this fails is not ours, or in use.
Status RemovePlace(FileSystem& files, const RecordingPlace& place) {
  for (const std::string& name : files.List(place.folder)) {
    if (!name.ends_with(kIndex)) continue;
    const std::string ring = name.substr(0, name.size() - kIndex.size());
    if (Status status = RemoveRing(files, place.folder + "/" + ring); !status.ok()) return status;
  }
  for (const std::string& snapshot : SnapshotsOf(files, place)) {
    if (Status status = RemoveSnapshot(files, snapshot); !status.ok()) return status;
  }
  RemoveLeftDrafts(files, place.prefix);
  if (!files.List(place.folder).empty())
    return Status::Io(
        fmt::format("'{}' is not removed: not all of it is hangscope's", place.folder));
  return files.RemoveFolder(place.folder);
}

bool IsAlive(int pid) { return pid != getpid() && (kill(pid, 0) == 0 || errno == EPERM); }

// One whose process lives is recorded into, and one whose ring is locked, by a guard. Where no
// recording is, there may be what somebody put there.
void RemoveOldPlaces(FileSystem& files) {
  size_t kept = 0;
  for (const Found& found : FindAll(files)) {
    if (IsAlive(found.pid)) continue;
    const bool is_recording =
        HasRings(files, found.place) || !SnapshotsOf(files, found.place).empty();
    if (is_recording && ++kept <= kKeptRecordings) continue;
    (void)RemovePlace(files, found.place).ok();  // tried again by the next run
  }
}

Status NothingKept(const char* what) {
  return Status::Usage(
      fmt::format("no {} given, and none of this user is kept in '{}': a run that ends well keeps "
                  "its rings only with --keep-rings or --prefix",
                  what, Bases().front()));
}

}  // namespace

Result<RecordingPlace> MakePlace(FileSystem& files, const std::string& name) {
  RemoveOldPlaces(files);
  Status status;
  for (const std::string& base : Bases()) {
    status = Prepare(files, base);
    if (!status.ok()) continue;
    const std::string stem = name.substr(0, kLongestName);
    for (int number = 1; number <= kMostOfOneNumber; ++number) {
      RecordingPlace place;
      place.folder = fmt::format("{}/{}-{}", base, stem, getpid());
      if (number > 1) place.folder += fmt::format(".{}", number);
      place.prefix = place.folder + "/" + stem;
      status = files.MakeFolder(place.folder, FileSystem::Mode::kRecordedNew);
      if (status.ok()) return place;
      if (status.error() != EEXIST) break;
    }
  }
  return Status::Io(status.message() + "; --prefix names another place for the recording");
}

void LeavePlace(FileSystem& files, const RecordingPlace& place, bool keep) {
  if (!keep) (void)RemovePlace(files, place).ok();
  RemoveOldPlaces(files);
}

std::vector<RecordingPlace> RecordingPlaces(FileSystem& files) {
  std::vector<RecordingPlace> places;
  for (Found& found : FindAll(files)) places.push_back(std::move(found.place));
  return places;
}

Result<std::string> NewestSnapshot(FileSystem& files) {
  for (const RecordingPlace& place : RecordingPlaces(files)) {
    const std::vector<std::string> snapshots = SnapshotsOf(files, place);
    if (!snapshots.empty()) return snapshots.back();
  }
  return NothingKept("snapshot");
}

Result<std::string> NewestRecording(FileSystem& files) {
  for (const RecordingPlace& place : RecordingPlaces(files)) {
    if (HasRings(files, place)) return place.prefix;
  }
  return NothingKept("recording");
}

}  // namespace hangscope

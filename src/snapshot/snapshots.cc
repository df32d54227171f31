#include "snapshot/snapshots.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/numbers.h"
#include "ring/block_reader.h"
#include "scope/scope_view.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/device_capture.h"
#include "snapshot/manifest_reader.h"
#include "snapshot/manifest_writer.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

// A snapshot that is on its way in or out: no snapshot. Who is at it is in the name, so that it is
// nobody else's.
std::string PartialOf(const std::string& folder) {
  return fmt::format("{}.{}.partial", folder, getpid());
}

// What a file of a snapshot is written as before it has its name: beside the folder, not in it.
std::string FreshPartOf(const std::string& folder) {
  return fmt::format("{}.part.{}.partial", folder, getpid());
}

// The process of NNNN.PID.partial, or of a file that is written beside the folder: a page,
// NNNN.report.PID.partial, or another part, NNNN.part.PID.partial; 0: it is none of these.
int ProcessOfPartial(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || !ParseWhole<int>(name.substr(0, dot), 1)) return 0;
  name.remove_prefix(dot + 1);
  for (const std::string_view kind : {"report.", "part."}) {
    if (!name.starts_with(kind)) continue;
    name.remove_prefix(kind.size());
    break;
  }
  constexpr std::string_view kEnding = ".partial";
  if (!name.ends_with(kEnding)) return 0;
  name.remove_suffix(kEnding.size());
  return ParseWhole<int>(name, 1).value_or(0);
}

// Whether hangscope wrote that into a snapshot: a part, or a file of a stream's ring.
bool IsPart(const std::string& name, const SavedManifest& manifest) {
  constexpr const char* kParts[] = {kManifestName, kReportName,     kReportPageName,
                                    kThreadsName,  kScopeImageName, kScopeCatalogName,
                                    kCpuFileName};
  return std::find(std::begin(kParts), std::end(kParts), name) != std::end(kParts) ||
         (manifest.is_device && IsPartOfDevice(name)) ||
         std::any_of(
             manifest.streams.begin(), manifest.streams.end(),
             [&](const SavedStream& stream) { return name.starts_with(stream.name + "."); });
}

}  // namespace

bool IsSnapshot(FileSystem& files, const std::string& folder) {
  auto file = files.Open(folder + "/" + kManifestName, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  const std::string begin = fmt::format("{{\n  \"format\": \"{}\"", kManifestFormat);
  std::string got(begin.size(), '\0');
  return (*file)->ReadAt(0, {got.data(), got.size()}).value_or(0) == got.size() && got == begin;
}

Status RemoveSnapshot(FileSystem& files, const std::string& folder) {
  if (!IsSnapshot(files, folder))
    return Status::Io(fmt::format("'{}' is not removed: it is no snapshot", folder));
  const auto manifest = ReadManifest(files, folder);
  if (!manifest.ok()) return manifest.status();
  for (const std::string& name : files.List(folder)) {
    if (!IsPart(name, manifest.value()))
      return Status::Io(
          fmt::format("'{}' is not removed: hangscope did not write its '{}'", folder, name));
  }
  const std::string going = PartialOf(folder);
  Status status = files.Rename(folder, going);
  if (!status.ok()) return status;
  status = files.RemoveFolder(going);
  if (!status.ok()) (void)files.Rename(going, folder).ok();
  return status;
}

SnapshotDraft::~SnapshotDraft() {
  if (open_) (void)files_.RemoveFolder(Partial()).ok();
}

std::string SnapshotDraft::Partial() const { return PartialOf(folder_); }

Status SnapshotDraft::Begin() {
  Status status = files_.MakeFolders(FolderOf(folder_));
  if (status.ok()) status = files_.MakeFolder(Partial(), FileSystem::Mode::kRecordedNew);
  open_ = status.ok();
  return status;
}

namespace {

// A recorder that is killed here leaves nothing in the folder, and what it leaves beside it the
// next one removes.
Status ReplacePart(FileSystem& files, const std::string& folder, const std::string& name,
                   std::string_view text) {
  const std::string fresh = FreshPartOf(folder);
  Status status = WriteWholeFile(files, fresh, text, FileSystem::Mode::kRecordedNew);
  if (status.ok()) status = files.Rename(fresh, folder + "/" + name);
  if (!status.ok()) (void)files.Remove(fresh).ok();
  return status;
}

}  // namespace

Status AmendSnapshot(FileSystem& files, const std::string& folder, const Manifest& manifest,
                     const std::string& threads) {
  Status status;
  if (!threads.empty()) status = ReplacePart(files, folder, kThreadsName, threads);
  if (status.ok()) status = ReplacePart(files, folder, kReportName, ReportText(manifest));
  if (status.ok()) status = ReplacePart(files, folder, kManifestName, ManifestJson(manifest));
  return status;
}

Result<StreamWindow> SnapshotDraft::AddStream(RingStore& ring, uint64_t first_offset) {
  if (Status status = ring.Freeze(Partial(), first_offset); !status.ok()) return status;
  auto reader = BlockReader::Open(files_, Partial() + "/" + ring.stream_name());
  if (!reader.ok()) return reader.status();
  return reader->Window();
}

Status SnapshotDraft::AddText(const std::string& name, std::string_view text) {
  return WriteWholeFile(files_, Partial() + "/" + name, text, FileSystem::Mode::kRecordedNew);
}

Status SnapshotDraft::Commit() {
  Status status = files_.Rename(Partial(), folder_);
  if (status.ok()) open_ = false;
  return status;
}

void RemoveLeftDrafts(FileSystem& files, const std::string& prefix) {
  const std::string folder = FolderOf(prefix);
  const std::string stem = NameOf(prefix) + ".snapshot-";
  for (const std::string& name : files.List(folder)) {
    if (!name.starts_with(stem)) continue;
    const int pid = ProcessOfPartial(std::string_view(name).substr(stem.size()));
    const bool is_left = pid == getpid() || (pid != 0 && kill(pid, 0) != 0 && errno == ESRCH);
    if (!is_left) continue;
    const std::string path = folder + "/" + name;
    (void)(files.IsFolder(path) ? files.RemoveFolder(path) : files.Remove(path)).ok();
  }
}

Snapshots::Snapshots(FileSystem& files, std::string prefix, int most, bool last_stays)
    : files_(files), prefix_(std::move(prefix)), most_(most), last_stays_(last_stays) {
  RemoveLeftDrafts(files_, prefix_);
}

std::vector<std::pair<int, std::string>> Snapshots::Existing() const {
  std::vector<std::pair<int, std::string>> found;
  const std::string folder = FolderOf(prefix_);
  const std::string stem = NameOf(prefix_) + ".snapshot-";
  for (const std::string& name : files_.List(folder)) {
    if (!name.starts_with(stem)) continue;
    if (const auto number = ParseWhole<int>(std::string_view(name).substr(stem.size())))
      found.emplace_back(*number, folder + "/" + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// All but so many, earlier runs' first, and never `spared`. All of one goes at once: whoever reads
// it finds nothing rather than a part. One that cannot be removed is tried again at the next
// snapshot.
void Snapshots::RemoveOldest(int leave, int spared) {
  auto existing = Existing();
  std::erase_if(existing, [&](const auto& s) { return !IsSnapshot(files_, s.second); });
  while (static_cast<int>(existing.size()) > leave) {
    const auto victim = std::find_if(existing.begin(), existing.end(),
                                     [&](const auto& s) { return s.first != spared; });
    if (victim == existing.end()) return;
    (void)RemoveSnapshot(files_, victim->second).ok();
    existing.erase(victim);
  }
}

Result<std::string> Snapshots::Take(const std::vector<RingStore*>& rings, Manifest* manifest,
                                    bool since_last,
                                    const std::vector<std::pair<std::string, std::string>>& parts,
                                    const std::function<Status(const std::string& folder)>& add) {
  const auto existing = Existing();
  const int number = existing.empty() ? 1 : existing.back().first + 1;
  if (!last_stays_) RemoveOldest(most_ - 1, most_ == 1 ? 0 : first_of_run_);
  const std::string folder = fmt::format("{}.snapshot-{:04}", prefix_, number);
  SnapshotDraft draft(files_, folder);
  if (Status status = draft.Begin(); !status.ok()) return status;
  last_ends_.resize(rings.size());
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < rings.size(); ++i) {
    auto window = draft.AddStream(*rings[i], since_last ? last_ends_[i] : 0);
    if (!window.ok()) return window.status();
    window->end_time = manifest->time;
    ends.push_back(window->end_offset);
    manifest->streams.push_back(*window);
  }
  for (const auto& [name, bytes] : parts) {
    if (Status status = draft.AddText(name, bytes); !status.ok()) return status;
  }
  if (add) {
    if (Status status = add(draft.Partial()); !status.ok()) return status;
  }
  Status status = draft.AddText(kManifestName, ManifestJson(*manifest));
  if (status.ok()) status = draft.AddText(kReportName, ReportText(*manifest));
  if (status.ok()) status = draft.Commit();
  if (!status.ok()) return status;
  last_ends_ = std::move(ends);
  if (first_of_run_ == 0) first_of_run_ = number;
  if (last_stays_) RemoveOldest(most_, number);
  return folder;
}

}  // namespace hangscope

#include "snapshot/snapshots.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "ring/block_reader.h"
#include "snapshot/manifest_writer.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

// A snapshot that is on its way in or out: no snapshot.
constexpr const char* kPartial = ".partial";

}  // namespace

SnapshotDraft::~SnapshotDraft() {
  if (open_) (void)files_.RemoveTree(Partial()).ok();
}

std::string SnapshotDraft::Partial() const { return folder_ + kPartial; }

Status SnapshotDraft::Begin() {
  if (Status status = files_.RemoveTree(Partial()); !status.ok()) return status;
  open_ = true;
  return files_.MakeFolders(Partial());
}

Result<StreamWindow> SnapshotDraft::AddStream(RingStore& ring, uint64_t first_offset) {
  if (Status status = ring.Freeze(Partial(), first_offset); !status.ok()) return status;
  auto reader = BlockReader::Open(files_, Partial() + "/" + ring.stream_name());
  if (!reader.ok()) return reader.status();
  return reader->Window();
}

Status SnapshotDraft::AddText(const std::string& name, std::string_view text) {
  return WriteWholeFile(files_, Partial() + "/" + name, text);
}

Status SnapshotDraft::Commit() {
  Status status = files_.Rename(Partial(), folder_);
  if (status.ok()) open_ = false;
  return status;
}

Snapshots::Snapshots(FileSystem& files, std::string prefix, int most)
    : files_(files), prefix_(std::move(prefix)), most_(most) {
  // A draft that a killed recorder left behind is no snapshot.
  const std::string folder = FolderOf(prefix_);
  for (const std::string& name : files_.List(folder)) {
    if (name.starts_with(NameOf(prefix_) + ".snapshot-") && name.ends_with(kPartial)) {
      (void)files_.RemoveTree(folder + "/" + name).ok();
    }
  }
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

// Room for one more: earlier runs' go first, then this run's but its first.
Status Snapshots::MakeRoom() {
  auto existing = Existing();
  while (static_cast<int>(existing.size()) >= most_ && !existing.empty()) {
    const auto victim = std::find_if(existing.begin(), existing.end(), [&](const auto& s) {
      return s.first != first_of_run_ || most_ == 1;
    });
    if (victim == existing.end()) break;
    // All of it goes at once: whoever reads it finds nothing rather than a part.
    const std::string going = victim->second + kPartial;
    Status status = files_.RemoveTree(going);
    if (status.ok()) status = files_.Rename(victim->second, going);
    if (status.ok()) status = files_.RemoveTree(going);
    if (!status.ok()) return status;
    existing.erase(victim);
  }
  return {};
}

Result<std::string> Snapshots::Take(const std::vector<RingStore*>& rings, Manifest* manifest,
                                    bool since_last,
                                    const std::vector<std::pair<std::string, std::string>>& parts,
                                    const std::function<Status(const std::string& folder)>& add) {
  const auto existing = Existing();
  const int number = existing.empty() ? 1 : existing.back().first + 1;
  if (Status status = MakeRoom(); !status.ok()) return status;
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
  return folder;
}

}  // namespace hangscope

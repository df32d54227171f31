// Snapshots: immutable folders, complete or absent.
#ifndef HANGSCOPE_SNAPSHOT_SNAPSHOTS_H
#define HANGSCOPE_SNAPSHOT_SNAPSHOTS_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "model/manifest.h"
#include "ring/ring_store.h"

namespace hangscope {

// The names of what every snapshot has.
constexpr char kManifestName[] = "manifest.json";
constexpr char kReportName[] = "report.txt";
// Of a program that stands still: what its threads waited for (docs/json.md, why of processes).
constexpr char kThreadsName[] = "threads.jsonl";
constexpr char kReportPageName[] = "report.html";

// Whether a recorder made the folder: its manifest says so.
bool IsSnapshot(FileSystem& files, const std::string& folder);
// Fails where it is none, or has anything in it that hangscope did not write: then all of it stays.
Status RemoveSnapshot(FileSystem& files, const std::string& folder);
// Says in a snapshot what is known better since it was taken: the verdict of `manifest`, and
// `threads` where there is some. Each of its files is the old or the new one, never a part.
Status AmendSnapshot(FileSystem& files, const std::string& folder, const Manifest& manifest,
                     const std::string& threads);
// A draft that a killed recorder left behind is no snapshot: those under `prefix` go.
void RemoveLeftDrafts(FileSystem& files, const std::string& prefix);

// Parts are added to FOLDER.PID.partial, which becomes FOLDER at once or never.
class SnapshotDraft {
 public:
  SnapshotDraft(FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}
  ~SnapshotDraft();  // removes what was not committed
  SnapshotDraft(const SnapshotDraft&) = delete;
  SnapshotDraft& operator=(const SnapshotDraft&) = delete;

  Status Begin();
  // Pins the ring's history from `first_offset` of its stream on and returns the
  // window it covers.
  Result<StreamWindow> AddStream(RingStore& ring, uint64_t first_offset);
  Status AddText(const std::string& name, std::string_view text);
  Status Commit();
  // Where its parts are until then.
  std::string Partial() const;

 private:
  FileSystem& files_;
  const std::string folder_;
  bool open_ = false;
};

// PREFIX.snapshot-0001, -0002 ...: of those under one prefix at most `most` stay,
// the first of this run and the newest before others, so that the disk is bounded
// by (1 + most) times the ring.
class Snapshots {
 public:
  // `last_stays`: the older one goes only once the new one is whole, for nothing else would be left
  // meanwhile. Without, the new one finds the room of an older one.
  Snapshots(FileSystem& files, std::string prefix, int most, bool last_stays = false);

  // Fills in manifest->streams and commits. Returns the folder. `since_last`: only
  // what came after the snapshot before, whether that is still there or not.
  // `parts`: further files, by name. `add`: called with the folder once all that is in it, for who
  // writes a file there or has more for the manifest; may be empty, and what it returns may keep
  // the snapshot from being taken.
  Result<std::string> Take(const std::vector<RingStore*>& rings, Manifest* manifest,
                           bool since_last = false,
                           const std::vector<std::pair<std::string, std::string>>& parts = {},
                           const std::function<Status(const std::string& folder)>& add = {});

 private:
  std::vector<std::pair<int, std::string>> Existing() const;
  void RemoveOldest(int leave, int spared);

  FileSystem& files_;
  const std::string prefix_;
  const int most_;
  const bool last_stays_;
  int first_of_run_ = 0;
  std::vector<uint64_t> last_ends_;  // of the streams, at the snapshot before
};

}  // namespace hangscope

#endif

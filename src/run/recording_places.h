// Where recordings lie that nobody gave a place with --prefix: a folder for each run, so that two
// runs at once do not meet and the current folder stays as it is.
#ifndef HANGSCOPE_RUN_RECORDING_PLACES_H
#define HANGSCOPE_RUN_RECORDING_PLACES_H

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

struct RecordingPlace {
  std::string folder;  // .../hangscope/NAME-PID
  std::string prefix;  // FOLDER/NAME
};

// So many of them are kept, beside those that are recorded into.
constexpr size_t kKeptRecordings = 5;

// Makes NAME-PID, for this user alone, in $XDG_STATE_HOME/hangscope, which is
// ~/.local/state/hangscope where that is not set; where there is no home to write to, in
// /tmp/hangscope-UID/recordings. Older ones than the newest go.
Result<RecordingPlace> MakePlace(FileSystem& files, const std::string& name);

// To be called when the recording has ended: one that is not kept goes, and older ones than the
// newest. Only what an index or a manifest of this user accounts for is removed; a folder with
// anything else in it stays.
void LeavePlace(FileSystem& files, const RecordingPlace& place, bool keep);

// Those of this user, live ones too; that which changed last is the first.
std::vector<RecordingPlace> RecordingPlaces(FileSystem& files);

// The newest snapshot of the newest recording that has one. Fails with one sentence for whoever did
// not say which.
Result<std::string> NewestSnapshot(FileSystem& files);
// The prefix of the newest recording. The same.
Result<std::string> NewestRecording(FileSystem& files);

}  // namespace hangscope

#endif

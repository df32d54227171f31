// The other end of the control sockets: which recorders live, and asking them.
#ifndef HANGSCOPE_CONTROL_CONTROL_CLIENT_H
#define HANGSCOPE_CONTROL_CONTROL_CLIENT_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "control/control_protocol.h"
#include "model/recorder_status.h"

namespace hangscope {

struct LiveRecorder {
  RecorderStatus status;  // only the pid where it did not answer in time
  std::string folder;     // of its socket
};

struct LiveRecorders {
  std::vector<LiveRecorder> found;  // by name, then by age, the oldest first
  std::string warning;              // why the folder was not looked into; or empty
};

// Asks all recorders in `folder` at once and waits for `patience` at most. The
// sockets of dead recorders are removed.
LiveRecorders FindRecorders(const std::string& folder, TimeNs patience);

// Those that `target` may mean: a recorder's pid, else its child's pid, its name,
// its prefix, one of its rings or their files, or the folder they are in.
std::vector<LiveRecorder> RecordersMatching(const std::vector<LiveRecorder>& recorders,
                                            const std::string& target);

// Waits until the snapshot is durable, however long that takes. Its absolute path.
Result<std::string> AskForSnapshot(const LiveRecorder& recorder, bool now, bool since_last);

}  // namespace hangscope

#endif

// What a live recorder says of itself: `hangscope ls`.
#ifndef HANGSCOPE_MODEL_RECORDER_STATUS_H
#define HANGSCOPE_MODEL_RECORDER_STATUS_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hangscope {

struct RecorderStatus {
  int pid = 0;
  int child_pid = 0;                 // 0: none
  std::string name;                  // the prefix's last part
  std::string prefix;                // absolute, of snapshots
  std::vector<std::string> rings;    // absolute prefixes, one a stream
  std::vector<std::string> command;  // empty for tee
  TimeNs age = 0;
  uint64_t total_bytes = 0;
  double bytes_per_second = 0;  // lately
  std::string state;            // of the newest verdict
  std::string confidence;
  bool hang = false;
  std::string summary;
  uint64_t snapshots = 0;     // taken by this run
  std::string last_snapshot;  // absolute; empty: none
  bool answered = true;       // false: all but the pid is unknown
};

}  // namespace hangscope

#endif

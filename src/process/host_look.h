// A look that was made on another host, or earlier, from what `why --json` said of it
// (docs/json.md); and looks of several hosts as one, for the one judge. Pure.
#ifndef HANGSCOPE_PROCESS_HOST_LOOK_H
#define HANGSCOPE_PROCESS_HOST_LOOK_H

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/process.h"

namespace hangscope {

struct HostLook {
  SystemSample look;     // its `end` is 0, and its threads' `since` so much before that
  TimeNs wall = 0;       // when it was made, by the clock of its host
  std::set<int> moving;  // threads that ran between its two looks, or may at any time
};

// `text`: JSON Lines from anybody, of the file `path`. Fails where it has no look in it, or one
// that cannot be: says where.
Result<HostLook> ReadHostLook(std::string_view text, const std::string& path);

// Two looks at the processes of all hosts. `own`: the two that were made here, the newest last;
// `wall`: when that ended. The numbers of other hosts' processes become unique (kIdsOfHost). What
// one waits for from a connection whose other end is in another look, it waits for from those who
// hold that end. Fails where there are too many hosts.
Result<std::vector<SystemSample>> JoinLooks(std::vector<SystemSample> own, TimeNs wall,
                                            const std::vector<HostLook>& others);

}  // namespace hangscope

#endif

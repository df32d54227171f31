// Who has a file mapped: the simulator whose guest's memory it is, for example.
#ifndef HANGSCOPE_TARGET_FILE_USERS_H
#define HANGSCOPE_TARGET_FILE_USERS_H

#include <optional>
#include <string>
#include <vector>

namespace hangscope {

// The processes, but this one, that have the file mapped, in ascending order; only those that may
// be looked into. Reads all of /proc: milliseconds.
std::vector<int> ProcessesThatMap(const std::string& path);

// Those of them whose mapping is shared and may be written: whoever only looks on has none.
std::vector<int> ProcessesThatWrite(const std::string& path);

// Whether process `pid` has the file mapped; nothing where that may not be known.
std::optional<bool> MapsFile(int pid, const std::string& path);

}  // namespace hangscope

#endif

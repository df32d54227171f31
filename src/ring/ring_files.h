// The files of a ring as they lie in a folder where other files lie, too: which of them an index
// accounts for. Nothing else is removed or written over.
#ifndef HANGSCOPE_RING_RING_FILES_H
#define HANGSCOPE_RING_RING_FILES_H

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

// Locks P.index for a new run, with the names free that a ring of `segment_count` segments takes:
// what an earlier run left is removed, and the index, an empty file now, stays because it carries
// the lock. kBusy: a recorder is alive. Refused, with nothing changed, where a name is taken by
// what no index of this user accounts for.
Result<std::unique_ptr<File>> ClaimRing(FileSystem& files, const std::string& prefix,
                                        uint32_t segment_count);

// Removes a ring that nobody records into: what its index accounts for, and the index. Refused
// where the index is none of this user's; kBusy: a recorder is alive.
Status RemoveRing(FileSystem& files, const std::string& prefix);

}  // namespace hangscope

#endif

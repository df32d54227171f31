// Pins segments of a ring in a snapshot: by a hard link, which costs neither time nor disk, or by a
// copy where the file system has no links or the segment is to be filled further.
#ifndef HANGSCOPE_RING_RING_PIN_H
#define HANGSCOPE_RING_RING_PIN_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "ring/ring_format.h"

namespace hangscope {

// Pins those of `slots` that hold bytes from stream offset `first_offset` on, from the ring
// `prefix` to `pinned_prefix`; `copied` is a segment that must not be linked while it is filled;
// where the disk has no room for the copy, `close_copied` is called, after which it may be. Returns
// the slots of what was pinned.
Result<std::vector<IndexSlot>> PinSegments(FileSystem& files, const std::string& prefix,
                                           const std::string& pinned_prefix, uint64_t first_offset,
                                           std::optional<uint32_t> copied,
                                           const std::function<void()>& close_copied,
                                           std::vector<IndexSlot> slots);

}  // namespace hangscope

#endif

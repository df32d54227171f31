#include "ring/ring_pin.h"

#include <algorithm>
#include <cerrno>

namespace hangscope {
namespace {

Status CopySegment(FileSystem& files, const IndexSlot& slot, const std::string& from,
                   const std::string& to) {
  auto file = files.Open(from, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  std::string bytes(std::max(FileBytesOf(slot), slot.prev_length), '\0');
  auto got = (*file)->ReadAt(0, {bytes.data(), bytes.size()});
  if (!got.ok()) return got.status();
  return WriteWholeFile(files, to, {bytes.data(), *got}, FileSystem::Mode::kRecordedNew);
}

// FAT and some network disks have no hard links.
Status LinkOrCopySegment(FileSystem& files, const IndexSlot& slot, const std::string& from,
                         const std::string& to) {
  return files.Link(from, to).ok() ? Status() : CopySegment(files, slot, from, to);
}

}  // namespace

Result<std::vector<IndexSlot>> PinSegments(FileSystem& files, const std::string& prefix,
                                           const std::string& pinned_prefix, uint64_t first_offset,
                                           std::optional<uint32_t> copied,
                                           const std::function<void()>& close_copied,
                                           std::vector<IndexSlot> slots) {
  for (uint32_t k = 0; k < slots.size(); ++k) {
    IndexSlot& slot = slots[k];
    if (slot.sequence == 0) continue;
    const uint64_t end =
        std::max(slot.begin_offset + slot.length, slot.prev_begin + slot.prev_length);
    if (end <= first_offset) {
      slot = IndexSlot{};
      continue;
    }
    const std::string from = SegmentPath(prefix, k, slot.encoding);
    const std::string to = SegmentPath(pinned_prefix, k, slot.encoding);
    Status status =
        k == copied ? CopySegment(files, slot, from, to) : LinkOrCopySegment(files, slot, from, to);
    if (k == copied && status.error() == ENOSPC) {
      (void)files.Remove(to).ok();
      close_copied();
      status = files.Link(from, to);
    }
    if (status.error() == ENOENT)
      slot = IndexSlot{};  // deleted under us: readers report the gap
    else if (!status.ok())
      return status;
  }
  return slots;
}

}  // namespace hangscope

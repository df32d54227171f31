#include "ring/disk_refusals.h"

#include <cerrno>

namespace hangscope {
namespace {

constexpr TimeNs kFullDiskPause = kSecond;  // before new room is asked for again

bool IsFull(const Status& status) { return status.error() == ENOSPC || status.error() == EDQUOT; }

}  // namespace

void DiskRefusals::Refuse(const Status& why) {
  failing_ = true;
  barren_ = 0;
  last_error_ = why.error() != 0 ? why.error() : EIO;
}

bool DiskRefusals::NextMayFit(const Status& refusal, size_t segment_count) {
  if (!IsFull(refusal)) return false;
  if (!disk_full_) full_since_ = clock_.Monotonic();
  disk_full_ = true;
  return ++barren_ <= segment_count;
}

void DiskRefusals::ForgetFullDisk() {
  if (disk_full_ && clock_.Monotonic() - full_since_ >= kFullDiskPause) disk_full_ = false;
}

}  // namespace hangscope

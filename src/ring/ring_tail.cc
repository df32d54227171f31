#include "ring/ring_tail.h"

#include <algorithm>
#include <utility>

namespace hangscope {

Status RingTail::WriteAll() {
  if (block_bytes_ == 0) return {};
  std::string bytes(block_bytes_, '\0');
  if (file_ != nullptr) (void)file_->ReadAt(0, bytes).ok();
  if (Status status = files_.Remove(TailPath(prefix_)); !status.ok()) return status;
  auto file = files_.Open(TailPath(prefix_), FileSystem::Mode::kRecordedNew);
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  size_t written = 0;
  return file_->WriteAt(0, bytes, &written);
}

Status RingTail::ReadBack(uint64_t held_end, uint64_t stream_end, TimeNs now) {
  auto file = files_.Open(TailPath(prefix_), FileSystem::Mode::kRecorded);
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  block_bytes_ = file_->Size().value_or(0);
  const bool sound = index_.ReadTail(&record_) && record_.length <= block_bytes_;
  const uint64_t end = record_.begin_offset + record_.length;
  if (!sound || end <= held_end || record_.begin_offset > stream_end) return {};
  const uint64_t begin = std::max(held_end, record_.begin_offset);
  std::string bytes(end - begin, '\0');
  auto got = file_->ReadAt(begin - record_.begin_offset, {bytes.data(), bytes.size()});
  bytes.resize(got.value_or(0));
  if (record_.begin_offset == begin) {
    bytes_ = std::move(bytes);
    stamp_ = now;
    return {};
  }
  return Append(bytes, begin, now) == bytes.size()
             ? Status()
             : Status::FromErrno(refusals_.last_error(), "write", TailPath(prefix_));
}

size_t RingTail::Append(std::string_view bytes, uint64_t begin, TimeNs stamp) {
  const std::string_view piece = bytes.substr(0, block_bytes_ - bytes_.size());
  if (bytes_.empty()) {
    stamp_ = stamp;
    Reset(begin);  // (a): pairs with the reader's second look at the tail
    record_.time = stamp;
  }
  size_t written = 0;
  const Status status = file_->WriteAt(bytes_.size(), piece, &written);  // (b)
  record_.recent_offset = begin + bytes_.size();
  record_.recent_time = stamp;
  index_.AddStamp(record_.recent_offset, stamp);
  bytes_.append(piece.substr(0, written));
  record_.length = bytes_.size();
  index_.PublishTail(&record_);  // (c): pairs with the reader's first look at the tail
  if (!status.ok()) refusals_.Refuse(status);
  return written;
}

void RingTail::Reset(uint64_t begin) {
  record_ = IndexTail{};
  record_.begin_offset = begin;
  index_.PublishTail(&record_);
}

void RingTail::Close(uint64_t begin) {
  Reset(begin);
  (void)file_->Truncate(0).ok();
}

}  // namespace hangscope

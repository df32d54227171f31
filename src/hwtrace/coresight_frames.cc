#include "hwtrace/coresight_frames.h"

#include <algorithm>
#include <cstring>

namespace hangscope {
namespace {

constexpr char kBarrier[] = "\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f";

}  // namespace

void CoreSightFrameReader::Add(std::string_view bytes) {
  frames_.bytes += bytes.size();
  if (begun_bytes_ > 0) {
    const size_t size = std::min(bytes.size(), begun_.size() - begun_bytes_);
    std::memcpy(begun_.data() + begun_bytes_, bytes.data(), size);
    begun_bytes_ += size;
    bytes.remove_prefix(size);
    if (begun_bytes_ < begun_.size()) return;
    TakeFrame(begun_.data());
    begun_bytes_ = 0;
  }
  for (; bytes.size() >= kCoreSightFrameBytes; bytes.remove_prefix(kCoreSightFrameBytes))
    TakeFrame(bytes.data());
  std::copy(bytes.begin(), bytes.end(), begun_.begin());
  begun_bytes_ = bytes.size();
}

void CoreSightFrameReader::TakeFrame(const char* frame) {
  constexpr size_t kExtra = kCoreSightFrameBytes - 1;
  const auto extra = static_cast<uint8_t>(frame[kExtra]);
  if (std::memcmp(frame, kBarrier, kCoreSightFrameBytes) == 0) {
    frames_.begins_with_barrier = frames_.begins_with_barrier || frame_at_ == 0;
    ++frames_.barriers;
    id_ = kUnknownTraceId;
    counted_ = nullptr;
  } else {
    for (size_t i = 0; i < kExtra; i += 2) {
      const auto even = static_cast<uint8_t>(frame[i]);
      const bool has_odd = i + 1 < kExtra;
      if ((even & 1) == 0) {
        Count(id_);
        if (has_odd) Count(id_);
        continue;
      }
      const auto id = static_cast<uint8_t>(even >> 1);
      const bool later = (extra >> (i / 2) & 1) != 0;
      if (has_odd) Count(later ? id_ : id);
      if (id != id_) counted_ = nullptr;
      id_ = id;
    }
  }
  frame_at_ += kCoreSightFrameBytes;
}

// A byte.
void CoreSightFrameReader::Count(uint8_t id) {
  CoreSightFrames::OfId* of = id == id_ ? counted_ : nullptr;
  if (of == nullptr) {
    const auto [found, is_new] = frames_.ids.try_emplace(id);
    of = &found->second;
    if (is_new) of->first_frame = frame_at_;
    if (id == id_) counted_ = of;
  }
  ++of->bytes;
  of->last_frame = frame_at_;
}

}  // namespace hangscope

#include "ring/ring_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "base/units.h"

namespace hangscope {
namespace {

constexpr uint64_t kManySegmentsFrom = 64u << 20;
constexpr uint64_t kLargestReserve = 1u << 20;
constexpr uint64_t kPage = 4096;
// A frame's size in its skippable header has 32 bits.
constexpr uint64_t kLargestSegment = 2u << 30;
// Larger blocks compress little better (docs/performance.md), and a reader has to
// decompress a whole one for a byte of it.
constexpr uint64_t kLargestBlock = 256 * 1024;
constexpr uint64_t kSmallestAutoBlock = 16 * 1024;

Result<uint64_t> ParseKeep(std::string_view text) {
  const auto keep = ParseWhole<int64_t>(text);
  if (!keep)
    return Status::Usage(
        fmt::format("--keep '{}': not a whole number; for example --keep 3", text));
  if (*keep < 1) {
    return Status::Usage(fmt::format(
        "--keep '{}': at least one file's worth must be kept; for example --keep 3", text));
  }
  if (*keep > 1'000'000) {
    return Status::Usage(
        fmt::format("--keep '{}': the most is 1000000; for example --keep 3", text));
  }
  return static_cast<uint64_t>(*keep);
}

}  // namespace

bool IsSane(const IndexHeader& header) {
  return header.header_bytes == sizeof header && header.segment_count >= 1 &&
         header.segment_count <= kMostSegments && header.stamps_per_segment >= 1 &&
         header.stamps_per_segment <= kMostStamps && header.bound_bytes <= kMostBytes &&
         header.segment_bytes >= 1 &&
         header.segment_bytes <= header.bound_bytes / header.segment_count;
}

uint64_t ReserveBytes(uint64_t bound_bytes) { return std::min(bound_bytes / 384, kLargestReserve); }

Result<RingGeometry> PlanRing(std::string_view size_text, std::string_view keep_text,
                              size_t name_bytes, Compress compress) {
  auto size = ParseSize("--size", size_text);
  if (!size.ok()) return size.status();
  auto keep = ParseKeep(keep_text);
  if (!keep.ok()) return keep.status();

  RingGeometry plan;
  // Beyond, there would be more segments than a reader takes.
  if (__builtin_mul_overflow(*size, *keep, &plan.bound_bytes) ||
      plan.bound_bytes > kMostSegments * kLargestSegment) {
    return Status::Usage(fmt::format(
        "--size {} times --keep {} is larger than any disk; for example --size 500M --keep 3",
        size_text, keep_text));
  }
  if (plan.bound_bytes < kSmallestRing) {
    return Status::Usage(fmt::format(
        "--size {} times --keep {} makes a ring of {}, and the smallest is 64 KiB in all; for "
        "example --size 64K --keep 1",
        size_text, keep_text, FormatSize(plan.bound_bytes)));
  }
  plan.segment_count = plan.bound_bytes < kManySegmentsFrom ? 32 : 64;
  while (plan.bound_bytes / plan.segment_count > kLargestSegment) plan.segment_count *= 2;
  const uint64_t block =
      std::min(plan.bound_bytes / plan.segment_count / 4 * 3, kLargestBlock) & ~uint64_t{7};
  if (compress == Compress::kAuto && block < kSmallestAutoBlock) compress = Compress::kNone;
  plan.compress = compress;
  plan.block_bytes = compress == Compress::kNone ? 0 : block;
  // Stamps take 1/256 of the ring, at least one and at most 1024 a segment; where a
  // segment holds the history of many, more.
  const uint64_t share = compress == Compress::kNone ? 256 : 64;
  plan.stamps_per_segment = static_cast<uint32_t>(std::clamp<uint64_t>(
      plan.bound_bytes / share / (plan.segment_count * sizeof(IndexStamp)), 1, 1024));
  plan.reserve_bytes = ReserveBytes(plan.bound_bytes);
  // P.current exists twice for an instant while it is replaced.
  const uint64_t links = 2 * (name_bytes + 16);
  plan.segment_bytes =
      (plan.bound_bytes - plan.index_bytes() - plan.block_bytes - links) / plan.segment_count;
  if (plan.block_bytes != 0) plan.segment_bytes &= ~uint64_t{7};
  if (plan.segment_bytes > 64 * kPage) plan.segment_bytes -= plan.segment_bytes % kPage;
  return plan;
}

}  // namespace hangscope

#include "capture/ring_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/units.h"

namespace hangscope {
namespace {

constexpr uint64_t kManySegmentsFrom = 64u << 20;
constexpr uint64_t kLargestReserve = 1u << 20;
constexpr uint64_t kPage = 4096;

Result<uint64_t> ParseKeep(std::string_view text) {
  int64_t keep = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), keep);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Status::Usage(fmt::format("--keep '{}': not a whole number; for example --keep 3", text));
  }
  if (keep < 1) {
    return Status::Usage(fmt::format(
        "--keep '{}': at least one file's worth must be kept; for example --keep 3", text));
  }
  if (keep > 1'000'000) {
    return Status::Usage(fmt::format("--keep '{}': the most is 1000000; for example --keep 3", text));
  }
  return static_cast<uint64_t>(keep);
}

}  // namespace

Result<RingGeometry> PlanRing(std::string_view size_text, std::string_view keep_text,
                              size_t name_bytes) {
  auto size = ParseSize("--size", size_text);
  if (!size.ok()) return size.status();
  auto keep = ParseKeep(keep_text);
  if (!keep.ok()) return keep.status();

  RingGeometry plan;
  if (__builtin_mul_overflow(*size, *keep, &plan.bound_bytes) || plan.bound_bytes >> 60 != 0) {
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
  // Stamps take 1/256 of the ring, at least one and at most 1024 a segment.
  plan.stamps_per_segment = static_cast<uint32_t>(std::clamp<uint64_t>(
      plan.bound_bytes / 256 / (plan.segment_count * sizeof(IndexStamp)), 1, 1024));
  plan.reserve_bytes = std::min(plan.bound_bytes / 256, kLargestReserve);
  // P.current exists twice for an instant while it is replaced.
  const uint64_t links = 2 * (name_bytes + 16);
  plan.segment_bytes = (plan.bound_bytes - plan.index_bytes() - links) / plan.segment_count;
  if (plan.segment_bytes > 64 * kPage) plan.segment_bytes -= plan.segment_bytes % kPage;
  return plan;
}

}  // namespace hangscope

// Sizes and durations as users type them, and the rings that are planned from them.
#include "base/units.h"
#include "fuzz.h"
#include "ring/ring_format.h"

namespace hangscope::fuzz {
namespace {

void CheckPlan(const RingGeometry& plan, size_t name_bytes) {
  FUZZ_REQUIRE(plan.segment_count >= 1 && plan.stamps_per_segment >= 1);
  FUZZ_REQUIRE(plan.segment_bytes >= 1 && plan.segment_bytes <= plan.bound_bytes);
  FUZZ_REQUIRE(plan.reserve_bytes >= 1 && plan.reserve_bytes <= plan.segment_bytes);
  FUZZ_REQUIRE(plan.compress == Compress::kNone || plan.block_bytes >= 1);
  const uint64_t links = 2 * name_bytes;
  const uint64_t sum =
      plan.index_bytes() + plan.block_bytes + links + plan.segment_bytes * plan.segment_count;
  FUZZ_REQUIRE(sum <= plan.bound_bytes);
  FUZZ_REQUIRE(sum >= plan.bound_bytes / 100 * 90);
}

}  // namespace

// SIZE, KEEP, DURATION, a line each; the rest chooses.
void FuzzUnits(std::string_view input) {
  Choices choices(input);
  const std::string_view size = choices.ScanUntil('\n');
  const std::string_view keep = choices.ScanUntil('\n');
  const std::string_view time = choices.ScanUntil('\n');
  auto bytes = ParseSize("--size", size);
  if (bytes.ok()) {
    FUZZ_REQUIRE(*bytes >= 1 && *bytes <= uint64_t{1} << 60);
    FUZZ_REQUIRE(!FormatSize(*bytes).empty());
  }
  auto duration = ParseDuration("--stall-time", time);
  if (duration.ok()) {
    FUZZ_REQUIRE(*duration >= kMillisecond && *duration <= 30 * 24 * 3600 * kSecond);
    FUZZ_REQUIRE(!FormatElapsed(*duration).empty());
  }
  const size_t name_bytes = choices.Take<uint8_t>();
  for (const Compress compress : {Compress::kNone, Compress::kZstd, Compress::kAuto}) {
    auto plan = PlanRing(size, keep, name_bytes, compress);
    FUZZ_REQUIRE(plan.ok() || !plan.status().message().empty());
    if (plan.ok()) CheckPlan(*plan, name_bytes);
  }
  const auto number = choices.Take<uint64_t>();
  (void)FormatSize(number);
  (void)FormatCount(number);
  (void)FormatElapsed(static_cast<TimeNs>(number));
  (void)FormatWallTime(static_cast<TimeNs>(number));
}

}  // namespace hangscope::fuzz

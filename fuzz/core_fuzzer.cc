// A core dump in a file, damaged in any way: what it says that it has can be read, and nothing
// else.
#include <algorithm>
#include <string>

#include "fakes/fake_file_system.h"
#include "fuzz.h"
#include "target/core_target.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostRanges = 64;

void CheckRange(Target& target, const MemoryRange& range, uint64_t end_before) {
  FUZZ_REQUIRE(range.size_bytes > 0 && range.begin >= end_before &&
               range.size_bytes <= UINT64_MAX - range.begin);
  std::string bytes(static_cast<size_t>(std::min<uint64_t>(range.size_bytes, 4096)), '\0');
  FUZZ_REQUIRE(target.Read(range.begin, bytes).ok());
  FUZZ_REQUIRE(target.Read(range.begin + range.size_bytes - bytes.size(), bytes).ok());
  char byte = 0;
  if (range.begin > end_before) FUZZ_REQUIRE(!target.Read(range.begin - 1, {&byte, 1}).ok());
}

}  // namespace

void FuzzCore(std::string_view input) {
  FakeFileSystem files;
  FUZZ_REQUIRE(WriteWholeFile(files, "core", input).ok());
  auto target = CoreTarget::Open(files, "core");
  FUZZ_REQUIRE(target.ok() || !target.status().message().empty());
  if (!target.ok()) return;
  uint64_t end = 0;
  size_t checked = 0;
  FUZZ_REQUIRE(!(*target)->ranges().empty());
  for (const MemoryRange& range : (*target)->ranges()) {
    if (checked++ < kMostRanges) CheckRange(**target, range, end);
    end = range.begin + range.size_bytes;
  }
  char byte = 0;
  FUZZ_REQUIRE(end == UINT64_MAX || !(*target)->Read(end, {&byte, 1}).ok());
  FUZZ_REQUIRE(!(*target)->Write((*target)->ranges()[0].begin, "x").ok());
}

}  // namespace hangscope::fuzz

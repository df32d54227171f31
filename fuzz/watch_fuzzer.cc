// A scope with mailboxes, damaged in any way: what is read of it is followed over some looks,
// between which bytes change, and everything that is found gets its names.
#include <algorithm>
#include <string>

#include "fakes/fake_target.h"
#include "fuzz.h"
#include "hangscope/abi/watch.h"
#include "scope/scope_catalog.h"
#include "scope/watch_names.h"
#include "scope/watch_reader.h"
#include "scope/watcher.h"

namespace hangscope::fuzz {
namespace {

constexpr uint32_t kMostWatchedCores = 64;
constexpr uint32_t kMostNodes = 64;
constexpr size_t kChangeBytes = 4;  // of the input: where (3), what (1)
constexpr size_t kMostChanges = 16;

uint32_t Load(const std::string& image, size_t at, bool big) {
  return Load32(image.data() + at, big ? ByteOrder::kBig : ByteOrder::kLittle);
}

void Store(std::string* image, size_t at, uint32_t value, bool big) {
  for (size_t i = 0; i < 4; ++i)
    (*image)[at + i] = static_cast<char>(value >> 8 * (big ? 3 - i : i));
}

uint32_t Fnv(const std::string& image, size_t begin, size_t end) {
  uint32_t check = HANGSCOPE_CHECK_SEED;
  for (size_t i = begin; i < end; ++i)
    check = (check ^ static_cast<uint8_t>(image[i])) * HANGSCOPE_CHECK_PRIME;
  return check;
}

// Checks that fit, or no mutation gets past them.
void SignAll(std::string* image) {
  if (image->size() < sizeof(hangscope_header)) return;
  const bool big = (*image)[0] == 'g';
  Store(image, offsetof(hangscope_header, check), Fnv(*image, 0, HANGSCOPE_CHECKED_BYTES), big);
  const uint64_t watch_at = Load(*image, offsetof(hangscope_header, watch_at), big);
  if (watch_at < sizeof(hangscope_header) || watch_at + HANGSCOPE_WATCH_LEAST_BYTES > image->size())
    return;
  Store(image, watch_at, Fnv(*image, watch_at + 4, watch_at + HANGSCOPE_WATCH_CHECKED_BYTES), big);
}

class Source final : public WatchSource {
 public:
  explicit Source(WatchReader& reader) : reader_(reader) {}
  Result<std::vector<ClaimRow>> Claims() override { return reader_.ReadClaims(); }
  Result<CoreDetail> Detail(uint32_t core) override {
    return reader_.ReadDetail(core, &corruptions);
  }
  Result<uint64_t> Emitted(uint32_t core) override { return uint64_t{core}; }
  Result<TaskNews> News() override { return TaskNews{}; }

  std::vector<Corruption> corruptions;

 private:
  WatchReader& reader_;
};

void RequirePrintable(const std::string& text) {
  FUZZ_REQUIRE(std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  }));
}

void NameAll(const WatchNames& names, const Watcher& watcher, const ScopeSample& sample) {
  for (const SubjectState& subject : watcher.subjects()) {
    if (subject.subject.kind == SubjectId::Kind::kCore) {
      RequirePrintable(names.Core(subject.subject.index, subject.sample));
      RequirePrintable(WatchNames::Waypoint(subject.sample.waypoint));
      RequirePrintable(names.WaypointPlace(subject.sample.waypoint));
      RequirePrintable(names.Kernel(subject.sample.kernel));
    }
    if (subject.wait) RequirePrintable(names.Resource(subject.wait->resource));
  }
  for (const ScopeFinding& finding : watcher.standing()) {
    FUZZ_REQUIRE(!finding.subjects.empty() || finding.kind == FindingKind::kCorrupt);
    for (const auto* list : {&finding.subjects, &finding.partners, &finding.victims}) {
      for (const SubjectId& subject : *list) {
        FUZZ_REQUIRE(
            subject.index <
            (subject.kind == SubjectId::Kind::kCore ? sample.cores.size() : sample.tasks.size()));
      }
    }
    if (finding.kind == FindingKind::kFault) RequirePrintable(names.Fault(finding.fault));
    for (const std::string& line : finding.evidence) RequirePrintable(line);
    for (const std::string& line : finding.doubts) RequirePrintable(line);
  }
}

void Follow(FakeTarget& target, WatchReader& reader, std::string_view changes, bool dead) {
  WatcherOptions options;
  options.stall = kSecond;
  options.shared_clock = reader.scope().layout().shared_clock();
  options.clock_hz = reader.scope().layout().clock_hz;
  Watcher watcher(options);
  Source source(reader);
  ScopeSample sample;
  TimeNs now = kSecond;
  const ScopeCatalog catalog;
  WatchNames names(catalog, nullptr, reader.layout().program_at);
  std::vector<Corruption> corruptions;
  if (auto nodes = reader.ReadNodes(&corruptions); nodes.ok()) names.SetCores({}, nodes.value());
  for (size_t look = 0; look <= kMostChanges; ++look) {
    if (!reader.Poll(&sample).ok()) return;
    const auto wrong =
        static_cast<size_t>(std::count_if(sample.cores.begin(), sample.cores.end(),
                                          [](const CoreSample& core) { return core.corrupt; }));
    FUZZ_REQUIRE(sample.corruptions.size() >= wrong);
    sample.target_time = look;
    if (dead)
      watcher.SeeDead(sample, now, source);
    else
      watcher.See(sample, now, source);
    NameAll(names, watcher, sample);
    if (changes.size() < kChangeBytes) break;
    const size_t at = static_cast<uint8_t>(changes[0]) |
                      static_cast<size_t>(static_cast<uint8_t>(changes[1])) << 8 |
                      static_cast<size_t>(static_cast<uint8_t>(changes[2])) << 16;
    if (!target.memory.empty()) target.memory[at % target.memory.size()] = changes[3];
    changes.remove_prefix(kChangeBytes);
    now += kSecond;
  }
}

}  // namespace

// The first byte: bit 0, checks are made to fit; bit 1, it is dead; bits 2 to 5, how many changes
// (4 bytes each) stand before the image.
void FuzzWatch(std::string_view input) {
  if (input.empty()) return;
  const int how = input[0];
  input.remove_prefix(1);
  const std::string_view changes = input.substr(
      0, std::min<size_t>(input.size(), static_cast<size_t>(how >> 2 & 15) * kChangeBytes));
  std::string bytes(input.substr(changes.size()));
  if ((how & 1) != 0) SignAll(&bytes);
  FakeTarget target(std::move(bytes));
  auto scope = ScopeReader::Open(target, std::nullopt);
  if (!scope.ok() || scope->layout().core_count > kMostWatchedCores) return;
  auto reader = WatchReader::Open(*scope);
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  std::vector<Corruption> corruptions;
  ScopeSample sample;
  FUZZ_REQUIRE(reader->Poll(&sample).ok() && sample.cores.size() == scope->layout().core_count);
  FUZZ_REQUIRE(reader->ReadSwitches().ok() && reader->ReadClaims().ok() &&
               reader->ReadNodes(&corruptions).ok());
  for (uint32_t core = 0; core < scope->layout().core_count; ++core)
    FUZZ_REQUIRE(reader->ReadDetail(core, &corruptions).ok() == (reader->layout().details_at != 0));
  FUZZ_REQUIRE(reader->ReadFrame(0).ok() == (reader->layout().frames_at != 0));
  for (uint32_t node = 0; node < std::min(kMostNodes, reader->layout().node_count); ++node) {
    FUZZ_REQUIRE(reader->ReadDebugRing(node, sample).ok());
  }
  Follow(target, *reader, changes, (how & 2) != 0);
}

}  // namespace hangscope::fuzz

// A scope in a dump of memory, damaged in any way; and one as a console's text. What is found is
// formatted, too, by a catalog that the other fuzzer damages.
#include <algorithm>
#include <string>

#include "fakes/fake_clock.h"
#include "fakes/fake_target.h"
#include "fuzz.h"
#include "hangscope/abi/scope.h"
#include "scope/event_reader.h"
#include "scope/scope_catalog.h"
#include "scope/scope_text.h"
#include "stats/event_tables.h"
#include "target/hex_dump.h"
#include "trace/trace_of_scope.h"
#include "trace_check.h"

namespace hangscope::fuzz {
namespace {

constexpr uint32_t kMostReadCores = 64;

// A check that fits, or no mutation gets past it. Byte order by the magic.
void Sign(std::string* image) {
  if (image->size() < sizeof(hangscope_header)) return;
  const bool big = (*image)[0] == 'g';
  uint32_t check = HANGSCOPE_CHECK_SEED;
  for (size_t i = 0; i < HANGSCOPE_CHECKED_BYTES; ++i)
    check = (check ^ static_cast<uint8_t>((*image)[i])) * HANGSCOPE_CHECK_PRIME;
  for (size_t i = 0; i < 4; ++i)
    (*image)[188 + i] = static_cast<char>(check >> 8 * (big ? 3 - i : i));
}

void ReadCore(const ScopeReader& scope, uint32_t core, bool follow) {
  const ScopeCatalog catalog;
  EventReader reader(scope, core);
  if (follow) FUZZ_REQUIRE(reader.Poll(false).ok());
  FUZZ_REQUIRE(reader.Poll(true).ok());
  uint64_t events = 0;
  while (const auto item = reader.Next()) {
    if (const auto* event = std::get_if<ScopeEvent>(&*item)) {
      ++events;
      FUZZ_REQUIRE(event->parameter_count <= ScopeEvent::kMostParameters && event->id > 0 &&
                   event->id < 2048);
      FUZZ_REQUIRE(ScopeEventText(*event, scope.layout(), catalog).ends_with('\n'));
      FUZZ_REQUIRE(ScopeEventJson(*event, scope.layout(), catalog).ends_with("}\n"));
    } else {
      FUZZ_REQUIRE(std::get<EventLoss>(*item).begin < std::get<EventLoss>(*item).end);
      (void)EventLossText(std::get<EventLoss>(*item));
    }
  }
  const EventCounts counts = reader.core().counts;
  FUZZ_REQUIRE(counts.returned == events && counts.pending == 0);
  FUZZ_REQUIRE(counts.emitted ==
               counts.returned + counts.overwritten + counts.torn + counts.refused + counts.unread);
  (void)ScopeCoreText(reader.core());
  (void)ScopeCoreJson(reader.core());
}

void ReadAll(Target& target, bool follow) {
  auto scope = ScopeReader::Open(target, std::nullopt);
  FUZZ_REQUIRE(scope.ok() || !scope.status().message().empty());
  if (!scope.ok()) return;
  for (uint32_t core = 0; core < std::min(kMostReadCores, scope->layout().core_count); ++core)
    ReadCore(*scope, core, follow);
  std::vector<Corruption> corruptions;
  const auto tasks = scope->ReadTasks(&corruptions);
  FUZZ_REQUIRE(tasks.ok());
  ScopeCatalog catalog;
  if (const auto given = scope->ReadNames(); given.ok()) catalog.SetGiven(given.value().names);
  for (const TaskWait& task : tasks.value()) (void)TaskWaitText(task, scope->layout(), catalog);
}

// As hangscope show --stats counts it: each core's time is somebody's, nobody's, or not known.
void CountNumbers(const ScopeSource& source) {
  FakeFileSystem files;
  FakeClock clock;
  auto view = ScopeView::Open(files, source);
  if (!view.ok() || !(*view)->SampleOnce(clock).ok()) return;
  const EventStats stats = TakeEventStats(**view);
  uint64_t span = 0, sum = 0;
  for (const CoreNumbers& core : stats.cores) {
    span += core.span();
    sum += core.unknown + core.nobody;
  }
  for (const TaskNumbers& task : stats.tasks) sum += task.ran;
  FUZZ_REQUIRE(span == sum);
  const WatchNames names((*view)->catalog(), nullptr, 0);
  for (const NumberTable& table : EventTables(stats, (*view)->layout(), names)) {
    for (const auto& row : table.rows) FUZZ_REQUIRE(row.size() == table.columns.size());
  }
  FUZZ_REQUIRE(EventStatsJson(stats, (*view)->layout()).ends_with("}\n"));
}

// As hangscope export reads it.
void Export(const std::string& bytes) {
  FakeFileSystem files;
  FakeClock clock;
  ScopeSource source;
  source.target = "the target";
  source.open = [&bytes]() -> Result<std::unique_ptr<Target>> {
    auto target = std::make_unique<FakeTarget>(bytes);
    target->state = Life::kDead;
    return std::unique_ptr<Target>(std::move(target));
  };
  CountNumbers(source);
  CheckTrace([&]() -> std::unique_ptr<TraceSource> {
    auto trace = OpenScopeTrace(files, clock, source, {});
    return trace.ok() ? std::move(trace->source) : nullptr;
  });
}

}  // namespace

// The first byte: bit 0, the check is made to fit; bit 1, followed; bit 2, text.
void FuzzScope(std::string_view input) {
  if (input.empty()) return;
  const int how = input[0];
  std::string bytes(input.substr(1));
  if ((how & 4) != 0) {
    auto dump = HexDumpTarget::Parse("dump", bytes);
    if (dump.ok()) ReadAll(**dump, (how & 2) != 0);
    return;
  }
  if ((how & 1) != 0) Sign(&bytes);
  FakeTarget target(bytes);
  ReadAll(target, (how & 2) != 0);
  Export(bytes);
}

}  // namespace hangscope::fuzz

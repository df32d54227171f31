// The scope in memory: headers that lie, rings that are written to while they are read, clocks that
// wrap. Both byte orders and word sizes are in tests/system/test_scope.py.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/hash.h"
#include "fakes/scope_writer.h"
#include "hangscope/abi/catalog.h"
#include "hangscope/abi/kernel_events.h"
#include "scope/event_reader.h"
#include "scope/scope_catalog.h"
#include "scope/scope_reader.h"
#include "target/hex_dump.h"

namespace hangscope {
namespace {

constexpr uint32_t kStep = 77;
constexpr uint64_t kQuarter = 1u << 30;

class ScopeTest : public ::testing::Test {
 protected:
  void Make(uint32_t cores, uint32_t capacity, uint32_t word_bytes = 8) {
    writer_.emplace(&target_, cores, capacity, word_bytes);
  }
  void Open() {
    auto scope = ScopeReader::Open(target_, std::nullopt);
    ASSERT_TRUE(scope.ok()) << scope.status().message();
    scope_.emplace(std::move(*scope));
    reader_.emplace(*scope_, 0);
  }
  std::vector<ScopeEvent> Poll(bool last = false) {
    EXPECT_TRUE(reader_->Poll(last).ok());
    std::vector<ScopeEvent> events;
    while (auto item = reader_->Next()) {
      if (const auto* event = std::get_if<ScopeEvent>(&*item)) events.push_back(*event);
    }
    return events;
  }
  std::vector<ScopeEvent> OpenAndLook() {
    Open();
    return Poll(true);
  }
  using Tasks = std::vector<std::optional<uint32_t>>;
  static Tasks TasksOf(const std::vector<ScopeEvent>& events) {
    Tasks tasks;
    for (const ScopeEvent& event : events) tasks.push_back(event.task);
    return tasks;
  }
  void CheckLedger() {
    const EventCounts counts = reader_->core().counts;
    EXPECT_EQ(counts.emitted,
              counts.returned + counts.overwritten + counts.torn + counts.refused + counts.pending);
  }
  // What a target does that looks at its clock with each record.
  void WriteAt(uint64_t time, uint32_t first = 0) {
    const auto epoch = static_cast<uint32_t>(time >> 30);
    if (epoch != epoch_) Anchor(epoch, time);
    writer_->Write(0, kStep, time, first);
  }
  void Anchor(uint32_t epoch, uint64_t time) {
    const uint64_t newest = writer_->Begun(0) - 1;
    if (anchor_ && *anchor_ == newest) {
      writer_->Put(0, writer_->Slot(newest) + 8, epoch);  // renewed
    } else {
      anchor_ = writer_->Write(0, HANGSCOPE_ID_ANCHOR, time, epoch, epoch_);
      writer_->Put(0, offsetof(hangscope_ring, anchor), writer_->Get(0, writer_->Slot(*anchor_)));
    }
    epoch_ = epoch;
    writer_->Put(0, offsetof(hangscope_ring, epoch), epoch);
  }

  FakeTarget target_;
  std::optional<ScopeWriter> writer_;
  std::optional<ScopeReader> scope_;
  std::optional<EventReader> reader_;
  uint32_t epoch_ = 0;
  std::optional<uint64_t> anchor_;
};

TEST_F(ScopeTest, EachHeaderThatCannotBeRightIsRefusedInOneSentence) {
  struct Case {
    const char* said;
    std::function<void(hangscope_header&)> spoil;
  };
  const Case cases[] = {
      {"version 2.7", [](auto& h) { h.major = 2, h.minor = 7; }},
      {"header has 100 bytes", [](auto& h) { h.header_bytes = 100; }},
      {"words of 3 bytes", [](auto& h) { h.word_bytes = 3; }},
      {"records of 12 bytes", [](auto& h) { h.record_bytes = 12; }},
      {"records of 20 bytes", [](auto& h) { h.record_bytes = 20; }},
      {"records of 72 bytes", [](auto& h) { h.record_bytes = 72; }},
      {"rings of 4 records", [](auto& h) { h.ring_capacity = 4; }},
      {"rings of 12 records", [](auto& h) { h.ring_capacity = 12; }},
      {"rings of 131072 records", [](auto& h) { h.ring_capacity = 131072; }},
      {"no cores", [](auto& h) { h.core_count = 0; }},
      {"4294967295 rings", [](auto& h) { h.core_count = UINT32_MAX; }},
      {"begin 64 bytes from each other", [](auto& h) { h.ring_stride = 64; }},
      {"begin 257 bytes from each other", [](auto& h) { h.ring_stride = 257; }},
      {"rings that begin at offset 4", [](auto& h) { h.rings_at = 4; }},
      {"rings that begin at offset 193", [](auto& h) { h.rings_at = 193; }},
      {"from offset 4294967292 on", [](auto& h) { h.rings_at = UINT32_MAX - 3; }},
      {"1 task records", [](auto& h) { h.task_count = 1; }},
      {"4294967295 task records",
       [](auto& h) { h.task_count = UINT32_MAX, h.tasks_at = 192, h.task_stride = 32; }},
      {"not all of them are there", [](auto& h) { h.scope_bytes += 4; }},
  };
  for (const Case& one : cases) {
    Make(2, 8);
    one.spoil(writer_->header());
    writer_->PutHeader();
    const auto scope = ScopeReader::Open(target_, std::nullopt);
    ASSERT_FALSE(scope.ok()) << one.said;
    EXPECT_NE(scope.status().message().find(one.said), std::string::npos)
        << scope.status().message();
    EXPECT_EQ(scope.status().message().find('\n'), std::string::npos);
  }
}

TEST_F(ScopeTest, NamesThatTheTargetGaveAreReadWhole) {
  Make(1, 8);
  hangscope_header& header = writer_->header();
  header.names_at = header.scope_bytes;
  header.name_count = 3;
  header.scope_bytes += 3 * sizeof(hangscope_name);
  std::string memory = target_.memory;
  memory.resize(header.scope_bytes);
  target_.Set(std::move(memory));
  const auto name = [&](uint32_t slot, uint32_t kind, uint32_t id, const std::string& text) {
    hangscope_name given = {kind, id, {}};
    std::memcpy(given.text, text.data(), std::min(text.size(), sizeof given.text));
    std::memcpy(target_.memory.data() + header.names_at + slot * sizeof given, &given,
                sizeof given);
  };
  name(0, HANGSCOPE_CATALOG_TASK, 3, "motor");
  name(2, HANGSCOPE_CATALOG_RESOURCE | HANGSCOPE_NAME_RETIRED, 0x8000, std::string(30, 'x'));
  header.name_changes = 4;
  header.lost_names = 2;
  writer_->PutHeader();
  Open();
  const auto given = scope_->ReadNames();
  ASSERT_TRUE(given.ok()) << given.status().message();
  ASSERT_EQ(given->names.size(), 2u);
  EXPECT_EQ(given->names[0].text, "motor");
  EXPECT_FALSE(given->names[0].is_gone);
  EXPECT_EQ(given->names[1].kind, uint32_t{HANGSCOPE_CATALOG_RESOURCE});
  EXPECT_EQ(given->names[1].text, std::string(24, 'x'));
  EXPECT_TRUE(given->names[1].is_gone);
  EXPECT_EQ(given->lost, 2u);

  header.name_changes = 5;
  writer_->PutHeader();
  EXPECT_FALSE(scope_->ReadNames().ok()) << "one of them is half another";

  for (const uint32_t at : {header.scope_bytes, header.names_at + 4, 8u, header.names_at + 2}) {
    const uint32_t right = header.names_at;
    header.names_at = at;
    writer_->PutHeader();
    Open();
    ASSERT_EQ(scope_->corruptions().size(), 1u) << at;
    EXPECT_EQ(scope_->corruptions()[0].field, "names_at");
    EXPECT_TRUE(scope_->ReadNames()->names.empty());
    header.names_at = right;
  }
}

TEST_F(ScopeTest, NewerMinorVersionIsRead) {
  Make(1, 8);
  writer_->header().minor = 9;
  writer_->header().header_bytes = 256;
  writer_->PutHeader();
  writer_->Write(0, kStep, 5);
  EXPECT_EQ(OpenAndLook().size(), 1u);
}

TEST_F(ScopeTest, HeaderWithoutItsCheckIsNotReadyAndOneWithAWrongCheckIsDamaged) {
  Make(1, 8);
  target_.memory.replace(188, 4, std::string(4, '\0'));
  EXPECT_NE(ScopeReader::Open(target_, std::nullopt).status().message().find("not ready yet"),
            std::string::npos);
  target_.memory[188] = 1;
  EXPECT_NE(ScopeReader::Open(target_, std::nullopt).status().message().find("is damaged"),
            std::string::npos);
  target_.Set("nothing at all, and this for longer than a header would be");
  EXPECT_EQ(ScopeReader::Open(target_, std::nullopt).status().code(), Status::Code::kNotFound);
}

TEST_F(ScopeTest, UnfinishedRecordIsPendingWhileTheTargetLivesAndTornWhenItIsDead) {
  Make(1, 8);
  writer_->Write(0, kStep, 1);
  const uint64_t outer = writer_->Reserve(0);
  ASSERT_TRUE(writer_->Take(0, outer));
  writer_->Write(0, kStep, 3);
  Open();
  EXPECT_EQ(Poll().size(), 2u);
  EXPECT_EQ(reader_->core().counts.pending, 1u);
  CheckLedger();
  writer_->Finish(0, outer, kStep, 2, 42);
  const auto late = Poll();
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].parameters[0], 42u);
  EXPECT_EQ(late[0].sequence, outer);
  const uint64_t second = writer_->Reserve(0);
  ASSERT_TRUE(writer_->Take(0, second));
  Poll();
  Poll(true);
  EXPECT_EQ(reader_->core().counts.torn, 1u);
  EXPECT_EQ(reader_->core().counts.pending, 0u);
  CheckLedger();
}

TEST_F(ScopeTest, PendingRecordThatIsLappedIsOverwritten) {
  Make(1, 8);
  const uint64_t outer = writer_->Reserve(0);
  ASSERT_TRUE(writer_->Take(0, outer));
  Open();
  Poll();
  for (uint32_t i = 0; i < 8; ++i) writer_->Write(0, kStep, 10 + i, i);
  Poll();
  const EventCounts counts = reader_->core().counts;
  EXPECT_EQ(counts.overwritten, 1u);
  EXPECT_EQ(counts.refused, 1u);
  EXPECT_EQ(counts.returned, 7u);
  CheckLedger();
}

// The slot is overwritten between the reader's looks at its mark and at what is behind it.
TEST_F(ScopeTest, NoRecordIsMixedFromTwoWhileTheTargetWrites) {
  for (int overtaken_at = 1; overtaken_at < 12; ++overtaken_at) {
    Make(1, 8);
    for (uint32_t i = 0; i < 8; ++i) writer_->Write(0, kStep, i, i, ~i);
    Open();
    int reads = 0;
    target_.before_read = [&](uint64_t) {
      if (++reads != overtaken_at) return;
      for (uint32_t i = 8; i < 13; ++i) writer_->Write(0, kStep, i, i, ~i);
      const uint64_t open = writer_->Reserve(0);
      (void)writer_->Take(0, open);
      writer_->Put(0, writer_->Slot(open) + 8, 4711);
    };
    for (const ScopeEvent& event : Poll()) {
      EXPECT_EQ(event.parameters[0], event.sequence) << overtaken_at;
      EXPECT_EQ(event.parameters[1], ~event.parameters[0]) << overtaken_at;
    }
    CheckLedger();
    target_.before_read = nullptr;
    Poll();
    CheckLedger();
  }
}

// Each of the reader's last two looks is what tells, where the other cannot: a writer that takes no
// slot (no nesting) shows by the head alone; one whose head becomes visible late, by the mark.
TEST_F(ScopeTest, EitherOfTheLastLooksTellsThatARecordWasOverwritten) {
  for (const bool by_head : {true, false}) {
    for (int overtaken_at = 1; overtaken_at < 6; ++overtaken_at) {
      Make(1, 8);
      for (uint32_t i = 0; i < 8; ++i) writer_->Write(0, kStep, i, i, ~i);
      Open();
      int reads = 0;
      target_.before_read = [&](uint64_t) {
        if (++reads != overtaken_at) return;
        if (by_head)
          writer_->Reserve(0);
        else
          writer_->Put(0, writer_->Slot(8), HANGSCOPE_MARK_TAKEN);
        writer_->Put(0, writer_->Slot(8) + 8, 4711);
      };
      for (const ScopeEvent& event : Poll())
        EXPECT_EQ(event.parameters[1], ~event.parameters[0]) << by_head << overtaken_at;
      target_.before_read = nullptr;
    }
  }
}

// Writers nest at random, to any depth; the ledger knows what became of each record.
TEST_F(ScopeTest, LedgerOfNestedWritersIsAccountedForRecordByRecord) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::minstd_rand random(seed + 1);
    Make(1, 8, seed % 2 == 0 ? 8 : 4);
    const uint64_t first =
        seed % 3 == 0 ? 0 : (uint64_t{1} << 20) * (seed % 5) - (seed % 5 == 0 ? 0 : 20);
    writer_->SetBegun(0, first);
    writer_->Put(0, offsetof(hangscope_ring, base), static_cast<uint32_t>(first));
    Open();
    enum class Fate { kOpen, kWhole, kRefused };
    std::map<uint64_t, Fate> ledger;
    std::vector<uint64_t> unfinished;
    std::map<uint64_t, ScopeEvent> returned;
    const bool follows = seed % 2 == 1;
    for (int step = 0; step < 120; ++step) {
      const uint32_t choice = random() % 8;
      if (choice < 5) {
        const uint64_t sequence = writer_->Reserve(0);
        if (!writer_->Take(0, sequence)) {
          ledger[sequence] = Fate::kRefused;
        } else if (choice == 0 && unfinished.size() < 3) {
          ledger[sequence] = Fate::kOpen;
          unfinished.push_back(sequence);
        } else {
          writer_->Finish(0, sequence, kStep, sequence, static_cast<uint32_t>(sequence),
                          ~static_cast<uint32_t>(sequence));
          ledger[sequence] = Fate::kWhole;
        }
      } else if (choice == 5 && !unfinished.empty()) {
        const uint64_t sequence = unfinished.back();  // the innermost one first
        unfinished.pop_back();
        writer_->Finish(0, sequence, kStep, sequence, static_cast<uint32_t>(sequence),
                        ~static_cast<uint32_t>(sequence));
        ledger[sequence] = Fate::kWhole;
      } else if (choice == 6 && follows) {
        for (const ScopeEvent& event : Poll())
          EXPECT_TRUE(returned.emplace(event.sequence, event).second) << "twice";
        CheckLedger();
      }
    }
    for (const ScopeEvent& event : Poll(true))
      EXPECT_TRUE(returned.emplace(event.sequence, event).second) << "twice";
    reader_->CheckCounts();
    EXPECT_TRUE(reader_->corruptions().empty());
    CheckLedger();
    const EventCounts counts = reader_->core().counts;
    EXPECT_EQ(counts.emitted, ledger.size());
    EXPECT_EQ(counts.returned, returned.size());
    uint64_t refused = 0;
    uint64_t torn = 0;
    for (const auto& [sequence, fate] : ledger) {
      refused += fate == Fate::kRefused ? 1 : 0;
      const bool in_window = writer_->Begun(0) - sequence <= 8;
      torn += fate == Fate::kOpen && in_window ? 1 : 0;
      if (fate != Fate::kWhole || in_window) {
        EXPECT_EQ(returned.count(sequence), fate == Fate::kWhole ? 1u : 0u) << sequence;
      }
    }
    EXPECT_EQ(counts.refused, refused) << "seed " << seed;
    EXPECT_EQ(counts.torn, torn) << "seed " << seed;
    for (const auto& [sequence, event] : returned) {
      EXPECT_EQ(event.parameters[0], static_cast<uint32_t>(sequence));
      EXPECT_EQ(event.parameters[1], ~static_cast<uint32_t>(sequence));
    }
  }
}

TEST_F(ScopeTest, SilencesOfManyWrapsAreUndone) {
  Make(1, 16);
  const uint64_t times[] = {5, 3 * kQuarter + 1, 4000 * kQuarter + 7, 4000 * kQuarter + 9,
                            99'999 * kQuarter + kQuarter - 1};
  for (const uint64_t time : times) WriteAt(time);
  Anchor(120'000, 120'000 * kQuarter);
  Anchor(250'001, 250'001 * kQuarter);  // nothing was recorded between: it is renewed
  WriteAt(250'001 * kQuarter + 5);
  std::vector<uint64_t> found;
  for (const ScopeEvent& event : OpenAndLook()) {
    if (event.id != kStep) continue;
    EXPECT_FALSE(event.ambiguous) << event.time;
    found.push_back(event.time);
  }
  std::vector<uint64_t> wanted(std::begin(times), std::end(times));
  wanted.push_back(250'001 * kQuarter + 5);
  EXPECT_EQ(found, wanted);
}

TEST_F(ScopeTest, RecordsBeforeTheFirstAnchorAndBehindAnOverwrittenOneHaveTheirTimes) {
  Make(1, 8);
  for (uint32_t i = 0; i < 9; ++i) WriteAt(700 * kQuarter + i);  // its anchor is overwritten
  for (const ScopeEvent& event : OpenAndLook()) EXPECT_EQ(event.time >> 30, 700u);
  WriteAt(9000 * kQuarter);
  for (const ScopeEvent& event : OpenAndLook()) {
    EXPECT_FALSE(event.ambiguous);
    EXPECT_EQ(event.time >> 30, event.sequence < 10 ? 700u : 9000u) << event.sequence;
  }
}

TEST_F(ScopeTest, AnchorThatIsRenewedWhileOneFollowsDatesWhatComesAfter) {
  Make(1, 8);
  WriteAt(10 * kQuarter);
  Anchor(11, 11 * kQuarter);
  Open();
  Poll();
  Anchor(5000, 5000 * kQuarter);
  WriteAt(5000 * kQuarter + 3);
  const auto events = Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].time, 5000 * kQuarter + 3);
  EXPECT_FALSE(events[0].ambiguous);
}

TEST_F(ScopeTest, ClockThatNobodyLookedAtMakesTimesAmbiguous) {
  Make(1, 16, 4);
  writer_->Put(0, offsetof(hangscope_ring, ticks), 0);
  WriteAt(kQuarter + 1);
  WriteAt(2 * kQuarter + 1);
  const auto events = OpenAndLook();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_FALSE(events[1].ambiguous);  // the next look found one quarter gone
  EXPECT_TRUE(events[3].ambiguous);   // there is no next one
}

TEST_F(ScopeTest, TimeOfARecordBetweenTwoLostAnchorsIsMarked) {
  Make(1, 8);
  WriteAt(5);
  (void)writer_->Reserve(0);  // torn: may have been an anchor
  writer_->Write(0, kStep, 6);
  (void)writer_->Reserve(0);
  writer_->Put(0, offsetof(hangscope_ring, epoch), 4000);
  writer_->Write(0, kStep, 4000 * kQuarter + 1);
  std::map<uint64_t, ScopeEvent> events;
  for (const ScopeEvent& event : OpenAndLook()) events[event.sequence] = event;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[2].ambiguous);
  EXPECT_EQ(events[4].time, 4000 * kQuarter + 1);  // behind the last loss: the ring's own epoch
  EXPECT_FALSE(events[4].ambiguous);
}

TEST_F(ScopeTest, RecordsComeInOrderOfTime) {
  Make(1, 8);
  writer_->Write(0, kStep, 30, 0);
  writer_->Write(0, kStep, 10, 1);
  writer_->Write(0, kStep, 10, 2);
  writer_->Write(0, kStep, 20, 3);
  std::vector<uint32_t> order;
  for (const ScopeEvent& event : OpenAndLook()) order.push_back(event.parameters[0]);
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 2, 3, 0}));
}

TEST_F(ScopeTest, TaskIsThatOfTheSwitchesAroundUntilARecordIsMissing) {
  Make(1, 16);
  writer_->Write(0, kStep, 1);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 2, 4, 5);
  writer_->Write(0, kStep, 3);
  (void)writer_->Reserve(0);
  writer_->Write(0, kStep, 4);
  (void)writer_->Reserve(0);
  writer_->Write(0, kStep, 5);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 6, 7, 8);
  EXPECT_EQ(TasksOf(OpenAndLook()), (Tasks{4, 4, 5, {}, 7, 7}));
}

TEST_F(ScopeTest, SwitchesThatContradictEachOtherLeaveTheTaskBetweenUnknown) {
  Make(1, 16);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 2, 4, 5);
  writer_->Write(0, kStep, 3);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 4, 6, 7);
  writer_->Write(0, kStep, 5);
  EXPECT_EQ(TasksOf(OpenAndLook()), (Tasks{4, {}, 6, 7}));
}

TEST_F(ScopeTest, NobodyRanBeforeTheSwitchFromNoTask) {
  Make(1, 16);
  writer_->Write(0, kStep, 1);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 2, 0, 5);
  EXPECT_EQ(TasksOf(OpenAndLook()), (Tasks{{}, 0}));
}

TEST_F(ScopeTest, TaskOfARingWithoutSwitchesIsTheOneThatRunsIfSwitchesWereOverwritten) {
  Make(1, 8);
  writer_->Put(0, offsetof(hangscope_ring, last_task), 5);
  for (uint32_t i = 0; i < 8; ++i) writer_->Write(0, kStep, i);
  // All that ever happened is there, and no switch: who says which task runs does not record it.
  EXPECT_EQ(TasksOf(OpenAndLook()), Tasks(8));
  writer_->Write(0, kStep, 8);
  EXPECT_EQ(TasksOf(OpenAndLook()), Tasks(8, 5));
  writer_->Put(0, offsetof(hangscope_ring, mask), ~kTaskClass);
  EXPECT_EQ(TasksOf(OpenAndLook()), Tasks(8));
  writer_->Put(0, offsetof(hangscope_ring, mask), 0x7fffffffu);
  (void)writer_->Reserve(0);
  EXPECT_EQ(TasksOf(OpenAndLook()), Tasks(7));
}

TEST_F(ScopeTest, TaskBehindTheLastSwitchIsUnknownOnceSwitchesAreNotRecorded) {
  Make(1, 8);
  writer_->Write(0, kStep, 1);
  writer_->Write(0, HANGSCOPE_ID_TASK_SWITCH, 2, 4, 5);
  writer_->Write(0, kStep, 3);
  writer_->Put(0, offsetof(hangscope_ring, mask), ~kTaskClass);
  EXPECT_EQ(TasksOf(OpenAndLook()), (Tasks{4, 4, {}}));
}

TEST_F(ScopeTest, RingThatIsClearedCountsFromThere) {
  Make(1, 8);
  for (uint32_t i = 0; i < 20; ++i) writer_->Write(0, kStep, i);
  writer_->Put(0, offsetof(hangscope_ring, base), 18);
  EXPECT_EQ(OpenAndLook().size(), 2u);
  EXPECT_EQ(reader_->core().counts.emitted, 2u);
  CheckLedger();
}

TEST_F(ScopeTest, NanosecondsComeFromTheFrequencyOrFromTwoLooksAtBothClocks) {
  ScopeLayout layout;
  EXPECT_EQ(layout.Nanoseconds(5), std::nullopt);
  layout.clock_hz = 3;
  EXPECT_EQ(layout.Nanoseconds(2), 666'666'666);
  EXPECT_EQ(layout.Nanoseconds(UINT64_MAX), std::nullopt);  // in more than 292 years
  layout.clock_hz = 0;
  layout.sync_time = 100, layout.sync_ns = 1000, layout.last_time = 200, layout.last_ns = 1050;
  EXPECT_EQ(layout.Nanoseconds(300), 1100);
  EXPECT_EQ(layout.Nanoseconds(99), 999);
  layout.last_ns = 900;
  EXPECT_EQ(layout.Nanoseconds(300), std::nullopt);
  layout.sync_ns = 0, layout.last_ns = UINT64_MAX;
  EXPECT_EQ(layout.Nanoseconds(UINT64_MAX), std::nullopt);
}

std::string Entry(uint32_t id, const std::string& name, const std::string& format,
                  const std::string& fields, uint32_t kind = 1) {
  std::string entry;
  for (const uint32_t word : {kind, id, 16u}) entry.append(reinterpret_cast<const char*>(&word), 4);
  entry += name + '\0' + format + '\0' + fields + '\0';
  entry.resize((entry.size() + 3) / 4 * 4);
  return entry;
}
std::string List(const std::string& entries) {
  std::string list;
  for (const uint32_t word : {0x6c746163u, 1u, static_cast<uint32_t>(12 + entries.size())})
    list.append(reinterpret_cast<const char*>(&word), 4);
  return list + entries;
}
ScopeEvent EventOf(uint32_t id, std::vector<uint32_t> parameters) {
  ScopeEvent event;
  event.id = id;
  event.parameter_count = static_cast<uint32_t>(parameters.size());
  std::copy(parameters.begin(), parameters.end(), event.parameters.begin());
  return event;
}

TEST(ScopeCatalog, KnowsTheKernelsEventsWithoutBeingTold) {
  const ScopeCatalog catalog;
  EXPECT_EQ(catalog.Name(16), "task_create");
  EXPECT_EQ(catalog.Name(HANGSCOPE_ID_TASK_SWITCH), "task_switch");
  EXPECT_EQ(catalog.Format(EventOf(23, {0x20001000, ~0u}), 4), "semaphore 20001000, count -1");
  EXPECT_EQ(catalog.Format(EventOf(22, {7, 8}), 4), "");
  EXPECT_EQ(catalog.Name(900), "event 900");
  EXPECT_EQ(catalog.Format(EventOf(900, {1, 2}), 4), "(1, 2)");
}

TEST(ScopeCatalog, FormatsByItself) {
  ScopeCatalog catalog;
  const std::string section =
      List(Entry(64, "all", "%u %d|%04x|%-4u|%5d|%c|%s|%p|%% %q %lu",
                 "u8 a,i16 b,u32 c,u32 d,i32 e,u32 f,char4 g,ptr h,u64 i,") +
           Entry(65, "bare", "no conversions", "u32 x,bool y,") +
           Entry(66, "many", "%s%n%s%d", "")) +
      std::string(8, '\0') + List(Entry(67, "later", "", "", 9));
  ASSERT_TRUE(catalog.Add(section).ok());
  EXPECT_EQ(catalog.Format(EventOf(64, {0x1ff, 0xffff, 0xab, 7, static_cast<uint32_t>(-42), 'z',
                                        0x64636261, 0x1000, 0x2000, 5, 1}),
                           8),
            "255 -1|00ab|7   |  -42|z|abcd|0x200000001000|% %q 4294967301");
  EXPECT_EQ(catalog.Format(EventOf(64, {1, 2, 3}), 4), "1 2|0003|?   |    ?|?|?|?|% %q ?");
  EXPECT_EQ(catalog.Format(EventOf(65, {9, 1}), 4), "no conversions x=9 y=1");
  EXPECT_EQ(catalog.Format(EventOf(66, {9, 1}), 4), "?%n??");
  EXPECT_EQ(catalog.Find(67), nullptr);
}

TEST(ScopeCatalog, ValuesReadByTheirNames) {
  ScopeCatalog catalog;
  ASSERT_TRUE(catalog
                  .Add(List(Entry(1, "training", "link", "", HANGSCOPE_CATALOG_ENUMERATION) +
                            Entry(1, "red", "colour", "", HANGSCOPE_CATALOG_ENUMERATION) +
                            Entry(70, "net_link", "port %u is %s", "u16 port,link state,") +
                            Entry(7, "timer", "", "", HANGSCOPE_CATALOG_INTERRUPT)))
                  .ok());
  catalog.SetGiven({{HANGSCOPE_CATALOG_TASK, 3, "motor", false},
                    {HANGSCOPE_CATALOG_RESOURCE, 0x80001000, "rx", false}});
  const auto text = [&](uint32_t id, uint32_t first, uint32_t second = 0) {
    return catalog.Format(EventOf(id, {first, second}), 4);
  };
  EXPECT_EQ(text(70, 5, 1), "port 5 is training");
  EXPECT_EQ(text(70, 5, 9), "port 5 is 9");
  EXPECT_EQ(text(HANGSCOPE_ID_TASK_SWITCH, 2, 3), "from task 2 to task 3 motor");
  uint32_t id = 0;
  catalog.FindName("queue_send", &id);
  EXPECT_EQ(text(id, 0x80001000, 4), "queue rx, 4 waiting");
  EXPECT_EQ(text(id, 0x80002000, 3), "queue 80002000, 3 waiting") << "a length is no task";
  catalog.FindName("isr_enter", &id);
  EXPECT_EQ(text(id, 7), "interrupt 7 timer");
  const auto names = catalog.NamesOf(catalog.Find(70)->fields[1]);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0], (std::pair<uint64_t, std::string>(1, "training")));
  catalog.SetGiven({});
  EXPECT_EQ(text(HANGSCOPE_ID_TASK_SWITCH, 2, 3), "from task 2 to task 3");
}

TEST(ScopeCatalog, EachThatIsDamagedIsRefusedInOneSentence) {
  const std::string sound = List(Entry(64, "sound", "", ""));
  const std::string cases[] = {"hello, catalog",
                               sound.substr(0, 10),
                               sound.substr(0, sound.size() - 4),
                               List(Entry(0, "x", "", "")),
                               List(Entry(2048, "x", "", "")),
                               List(Entry(64, "x", "", "u33 y,")),
                               List(Entry(64, "x", "", "u32 y")),
                               List(Entry(64, "x", "", "u32 ,")),
                               List(std::string(12, 'x') + "no end"),
                               List("short")};
  for (const std::string& bytes : cases) {
    ScopeCatalog catalog;
    const Status status = catalog.Add(sound + bytes);
    EXPECT_FALSE(status.ok()) << bytes;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_EQ(catalog.Name(64), "sound");
  }
  std::string newer = sound;
  newer[4] = 2;
  EXPECT_NE(ScopeCatalog().Add(newer).message().find("version 2"), std::string::npos);
}

TEST(HexDump, ChecksumIsThatOfZlib) { EXPECT_EQ(Crc32("123456789"), 0xcbf43926u); }

}  // namespace
}  // namespace hangscope

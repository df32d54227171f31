// The real writer and reader, run through every interleaving of their accesses to memory: writers
// that interrupt each other and go on in any order (interrupts, and tasks that slept), and a reader
// beside them. Two states that are the same (memory, and what each has done and seen so far) go on
// the same way, so each is visited once; schedules are counted all the same.
//
// Memory is what all see at once here; models/ring.pml has the orders that weak memory allows.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

// A ring so small that writers lap each other. config.h wants at least 8 for what targets need (a
// window worth reading); the protocol does not.
#include "hangscope/abi/record.h"
#undef HANGSCOPE_LEAST_CAPACITY
#define HANGSCOPE_LEAST_CAPACITY 2u
#define HANGSCOPE_RING_CAPACITY 2
#define HANGSCOPE_MASK 0
#define HANGSCOPE_WATCH 0  // these are interleavings of records
#define HANGSCOPE_PORT "interleaving_port.h"
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

bool nobody_takes = false;
bool publishes_early = false;

namespace {

constexpr uint32_t kNone = 0xffffffff;

uint32_t Hash(uint32_t emission, uint32_t salt) { return (emission * 4 + salt + 1) * 0x9e3779b1u; }

// What the writers did, as they know it themselves.
struct Emission {
  uint64_t sequence = 0;
  bool reserved = false;
  bool refused = false;
  bool finished = false;
};

// One writer or reader: code that runs from point to point. A copy of what it is, with its stack's
// bytes, is all it takes to go back to an earlier point.
struct Coroutine {
  jmp_buf here;
  size_t used = 0;      // bytes of its stack
  std::string history;  // all that it saw: with its code, all that it is
  uint32_t points = 0;
  bool done = false;
  uint32_t emission = kNone;
};

constexpr size_t kStackBytes = 64 * 1024;

struct Totals {
  uint64_t states = 0;
  double schedules = 0;
  uint64_t returned = 0, overwritten = 0, torn = 0, refused = 0;  // over all ends that differ
  // by the reader beside the writers
  uint64_t accepted = 0, declined = 0;
  std::string violation;
};

struct Scenario {
  int writers = 2;
  int records = 1;      // of each writer
  int64_t reads = -1;   // the reader's record, counted from the first one; -1: no reader
  bool by_get = false;  // the reader asks hangscope_get for its oldest record
  uint64_t first = 0;   // sequence number at which it begins
  bool second_look_at_mark = true;
  bool second_look_at_head = true;
};

class Explorer {
 public:
  explicit Explorer(const Scenario& scenario) : scenario_(scenario) {}

  Totals Run() {
    current_explorer = this;
    Begin();
    totals_.schedules = Explore();
    current_explorer = nullptr;
    return totals_;
  }

  // Called from the code under test.
  void AtPoint() {
    if (current_ == nullptr) return;  // before it all begins, and at its end
    current_->points++;
    // What lies below this frame is of the calls from here on: a generous room for them.
    const size_t top = reinterpret_cast<size_t>(Stack(current_) + kStackBytes);
    current_->used = top - reinterpret_cast<size_t>(__builtin_frame_address(0)) + 1024;
    if (_setjmp(current_->here) == 0) _longjmp(scheduler_, 1);
  }
  void AtSaw(uint64_t value) {
    if (current_ != nullptr)
      current_->history.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void AtReserved(uint32_t ticket) {
    Emission& emission = ledger_[current_->emission];
    emission.reserved = true;
    // The ticket has 20 bits of it.
    const uint32_t from_first =
        ((ticket >> HANGSCOPE_TICKET_SHIFT) - static_cast<uint32_t>(scenario_.first)) & 0xfffff;
    emission.sequence = scenario_.first + from_first;
  }
  uint32_t Clock() const {
    return current_ == nullptr || current_->emission == kNone ? 0 : Hash(current_->emission, 0);
  }

  static Explorer* current_explorer;

 private:
  uint32_t Emissions() const {
    return static_cast<uint32_t>(scenario_.writers * scenario_.records);
  }

  void Write(uint32_t writer) {
    for (int i = 0; i < scenario_.records; i++) {
      const uint32_t emission =
          writer * static_cast<uint32_t>(scenario_.records) + static_cast<uint32_t>(i);
      current_->emission = emission;
      const hangscope_parameters parameters = {{emission, Hash(emission, 1)}};
      const uint32_t mark = hangscope_write(&hangscope_scope.cores[0],
                                            HANGSCOPE_FIRST_USER_ID + emission, &parameters, 0);
      ledger_[emission].refused = mark == 0;
      ledger_[emission].finished = true;
    }
  }

  // The rule of abi/record.h, each look a point of its own.
  bool Accepts(uint64_t sequence, uint32_t* record) {
    const hangscope_core& core = hangscope_scope.cores[0];
    const uint32_t* const words =
        &core.records[sequence % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
    for (int i = 0; i < 4; i++) record[i] = hangscope_port_load(&words[i]);
    const bool same = !scenario_.second_look_at_mark || hangscope_port_load(&words[0]) == record[0];
#if TEST_WORD_BYTES == 8
    Point();  // the 64 bits of the head are not read by the port
#endif
    const uint64_t head = hangscope_begun_by(&core);
    Saw(head);
    const bool room = !scenario_.second_look_at_head || head <= sequence + HANGSCOPE_RING_CAPACITY;
    return same && room && head > sequence && hangscope_is_committed(record[0], sequence);
  }

  void CheckRecord(uint64_t sequence, const uint32_t* record) {
    const uint32_t emission = record[2];
    const bool whole = emission < Emissions() && record[1] == Hash(emission, 0) &&
                       record[3] == Hash(emission, 1) &&
                       (record[0] & HANGSCOPE_ID_MASK) == HANGSCOPE_FIRST_USER_ID + emission;
    if (!whole)
      return Violation("a mixed record was accepted as number " + std::to_string(sequence));
    if (!ledger_[emission].reserved || ledger_[emission].sequence != sequence ||
        ledger_[emission].refused) {
      Violation("a record was accepted as number " + std::to_string(sequence) + " that it is not");
    }
  }

  void Read() {
    uint32_t record[4] = {};
    const uint64_t sequence = scenario_.first + static_cast<uint64_t>(scenario_.reads);
    if (scenario_.by_get) {
      hangscope_event event;
      const bool got =
          hangscope_get(0, static_cast<uint32_t>(scenario_.reads), &event) == HANGSCOPE_OK;
      if (!got) {
        totals_.declined++;
        return;
      }
      totals_.accepted++;
      const uint32_t words[4] = {event.id, event.time, event.parameters[0], event.parameters[1]};
      CheckRecord(event.sequence, words);
      return;
    }
    if (!Accepts(sequence, record)) {
      totals_.declined++;
      return;
    }
    totals_.accepted++;
    CheckRecord(sequence, record);
  }

  // All have finished: every record that was emitted is accounted for.
  void CheckEnd() {
    const hangscope_core& core = hangscope_scope.cores[0];
    const uint64_t begun = hangscope_begun_by(&core);
    if (begun != scenario_.first + Emissions())
      return Violation("not as many were begun as emitted");
#if TEST_WORD_BYTES == 4
    // Behind by more than half of the 2^20 that the head counts, and a number would be wrong: here
    // by none.
    if (core.ring.head[1] != (begun + HANGSCOPE_RING_CAPACITY - 1) / HANGSCOPE_RING_CAPACITY)
      Violation("a turn is not counted");
#endif
    std::map<uint64_t, uint32_t> by_sequence;
    uint32_t refused = 0;
    for (uint32_t e = 0; e < Emissions(); e++) {
      if (!ledger_[e].finished || !by_sequence.emplace(ledger_[e].sequence, e).second) {
        return Violation("two records have one number");
      }
      refused += ledger_[e].refused ? 1 : 0;
    }
    if (refused != core.ring.refused) return Violation("refused records are not counted");
    uint64_t returned = 0, overwritten = 0, torn = 0;
    for (const auto& [sequence, e] : by_sequence) {
      uint32_t record[4] = {};
      const bool accepted = Accepts(sequence, record);
      if (accepted) CheckRecord(sequence, record);
      const bool listed = RefusedIsListed(sequence);
      if (listed != ledger_[e].refused) Violation("the list of refused records is wrong");
      if (accepted) {
        returned++;
      } else if (listed) {
        // Counted above.
      } else if (sequence + HANGSCOPE_RING_CAPACITY < begun) {
        overwritten++;
      } else {
        // Overwritten late: an older one is in its place, and whole.
        if (!IsOlder(record[0], sequence)) Violation("a record is missing for no reason");
        torn++;
      }
    }
    if (returned + overwritten + torn + refused != Emissions())
      Violation("the account does not add up");
    totals_.returned += returned;
    totals_.overwritten += overwritten;
    totals_.torn += torn;
    totals_.refused += refused;
  }

  bool RefusedIsListed(uint64_t sequence) const {
    const hangscope_ring& ring = hangscope_scope.cores[0].ring;
    const uint32_t ticket = static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT);
    for (uint32_t i = 0; i < ring.refused && i < 8; i++) {
      if (ring.refused_tickets[i] == (ticket | 1)) return true;
    }
    return false;
  }

  bool IsOlder(uint32_t mark, uint64_t sequence) const {
    for (uint64_t other = scenario_.first; other < sequence; other++) {
      if (other % HANGSCOPE_RING_CAPACITY == sequence % HANGSCOPE_RING_CAPACITY &&
          hangscope_is_committed(mark, other))
        return true;
    }
    return false;
  }

  void Violation(const std::string& what) {
    if (!totals_.violation.empty()) return;
    totals_.violation = what + "; who ran:";
    for (const int choice : path_) totals_.violation += " " + std::to_string(choice);
  }

  void Begin() {
    current_ = nullptr;
    path_.clear();
    ledger_.assign(Emissions(), {});
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
    SetHead();
    coroutines_.resize(static_cast<size_t>(scenario_.writers) + (scenario_.reads >= 0 ? 1 : 0));
    stacks_ = std::make_unique<char[]>(coroutines_.size() * kStackBytes);
    for (Coroutine& coroutine : coroutines_) {
      current_ = &coroutine;
      if (_setjmp(scheduler_) == 0) Launch();
    }
    current_ = nullptr;
  }

  char* Stack(const Coroutine* coroutine) const {
    return stacks_.get() + static_cast<size_t>(coroutine - coroutines_.data()) * kStackBytes;
  }

  // On its own stack, to its first point.
  void Launch() {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = Stack(current_);
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, &Explorer::Enter, 0);
    setcontext(&context);
  }

  // All there is, for coming back to it.
  struct Snapshot {
    hangscope_core core;
    std::vector<Emission> ledger;
    std::vector<Coroutine> coroutines;
    std::vector<std::string> stacks;
    std::vector<int> path;
  };
  Snapshot Save() const {
    Snapshot now{hangscope_scope.cores[0], ledger_, coroutines_, {}, path_};
    for (const Coroutine& coroutine : coroutines_) {
      now.stacks.emplace_back(Stack(&coroutine) + kStackBytes - coroutine.used, coroutine.used);
    }
    return now;
  }
  void Restore(const Snapshot& then) {
    hangscope_scope.cores[0] = then.core;
    ledger_ = then.ledger;
    coroutines_ = then.coroutines;  // in the same places
    path_ = then.path;
    for (size_t i = 0; i < coroutines_.size(); i++) {
      const std::string& stack = then.stacks[i];
      std::memcpy(Stack(&coroutines_[i]) + kStackBytes - stack.size(), stack.data(), stack.size());
    }
  }

  void SetHead() {
    hangscope_ring& ring = hangscope_scope.cores[0].ring;
    const uint64_t ticket = scenario_.first << HANGSCOPE_TICKET_SHIFT;
    ring.head[0] = static_cast<uint32_t>(ticket);
#if TEST_WORD_BYTES == 4
    ring.head[1] = static_cast<uint32_t>((scenario_.first + HANGSCOPE_RING_CAPACITY - 1) /
                                         HANGSCOPE_RING_CAPACITY);
#else
    ring.head[1] = static_cast<uint32_t>(ticket >> 32);
#endif
    ring.base[0] = static_cast<uint32_t>(scenario_.first);
  }

  static void Enter() {
    Explorer* const self = current_explorer;
    self->AtPoint();
    const size_t number = static_cast<size_t>(self->current_ - self->coroutines_.data());
    if (number < static_cast<size_t>(self->scenario_.writers)) {
      self->Write(static_cast<uint32_t>(number));
    } else {
      self->Read();
    }
    self->current_->done = true;
    self->current_->used = 0;
    _longjmp(self->scheduler_, 1);
  }

  void Step(size_t choice) {
    path_.push_back(static_cast<int>(choice));
    current_ = &coroutines_[choice];
    if (_setjmp(scheduler_) == 0) _longjmp(current_->here, 1);
    current_ = nullptr;
  }

  std::string State() const {
    std::string state(reinterpret_cast<const char*>(&hangscope_scope.cores[0]),
                      sizeof hangscope_scope.cores[0]);
    for (const Coroutine& coroutine : coroutines_) {
      state.push_back(coroutine.done ? 'd' : 'r');
      state.push_back(static_cast<char>(coroutine.points));
      state += coroutine.history;
      state.push_back('|');
    }
    return state;
  }

  // How many schedules lead from here to an end.
  double Explore() {
    if (!totals_.violation.empty()) return 0;
    const std::string state = State();
    if (const auto known = known_.find(state); known != known_.end()) return known->second;
    totals_.states++;
    const Snapshot now = Save();
    double schedules = 0;
    bool moved = false;
    for (size_t i = 0; i < coroutines_.size(); i++) {
      if (now.coroutines[i].done) continue;
      if (moved) Restore(now);
      Step(i);
      moved = true;
      schedules += Explore();
    }
    if (!moved) {
      CheckEnd();
      schedules = 1;
    }
    known_.emplace(state, schedules);
    return schedules;
  }

  const Scenario scenario_;
  Totals totals_;
  std::vector<Emission> ledger_;
  std::vector<Coroutine> coroutines_;
  Coroutine* current_ = nullptr;
  std::unique_ptr<char[]> stacks_;
  jmp_buf scheduler_;
  std::vector<int> path_;
  std::unordered_map<std::string, double> known_;
};

Explorer* Explorer::current_explorer = nullptr;

}  // namespace

void Point() { Explorer::current_explorer->AtPoint(); }
void Saw(uint64_t value) { Explorer::current_explorer->AtSaw(value); }
void Reserved(uint32_t ticket) { Explorer::current_explorer->AtReserved(ticket); }
uint32_t ClockOfWriter() { return Explorer::current_explorer->Clock(); }

namespace {

class Interleavings : public testing::Test {
 protected:
  void TearDown() override {
    nobody_takes = false;
    publishes_early = false;
  }

  Totals Explore(const Scenario& scenario) {
    const Totals totals = Explorer(scenario).Run();
    std::printf(
        "%d writers x %d%s: %.6g schedules, %ju states; %ju returned, %ju overwritten, %ju torn, "
        "%ju refused; "
        "reader took %ju, declined %ju\n",
        scenario.writers, scenario.records, scenario.reads < 0 ? "" : " and a reader",
        totals.schedules, uintmax_t{totals.states}, uintmax_t{totals.returned},
        uintmax_t{totals.overwritten}, uintmax_t{totals.torn}, uintmax_t{totals.refused},
        uintmax_t{totals.accepted}, uintmax_t{totals.declined});
    return totals;
  }

  // With a reader of each of the records in turn.
  Totals ExploreReaders(Scenario scenario) {
    Totals sum;
    for (scenario.reads = 0; scenario.reads < scenario.writers * scenario.records;
         scenario.reads++) {
      const Totals totals = Explore(scenario);
      sum.schedules += totals.schedules;
      sum.accepted += totals.accepted;
      sum.declined += totals.declined;
      sum.refused += totals.refused;
      sum.torn += totals.torn;
      if (sum.violation.empty()) sum.violation = totals.violation;
    }
    return sum;
  }
};

#if HANGSCOPE_NESTING

TEST_F(Interleavings, TwoWritersAndAReaderOfEachRecord) {
  const Totals totals = ExploreReaders({.writers = 2, .records = 2});
  EXPECT_EQ(totals.violation, "");
  EXPECT_GT(totals.schedules, 1e6);
  EXPECT_GT(totals.accepted, 0u);
  EXPECT_GT(totals.declined, 0u);
  EXPECT_GT(totals.refused, 0u);
  EXPECT_GT(totals.torn, 0u);
}

TEST_F(Interleavings, ThreeWritersAndAReaderOfEachRecord) {
  // A 32-bit target's head takes more looks: there only the reader of the record that nobody laps.
  const Scenario scenario{.writers = 3, .records = 1};
  const Totals totals = TEST_WORD_BYTES == 8 ? ExploreReaders(scenario)
                                             : Explore({.writers = 3, .records = 1, .reads = 1});
  EXPECT_EQ(totals.violation, "");
  EXPECT_GT(totals.schedules, 1e6);
  EXPECT_GT(totals.accepted, 0u);
  EXPECT_GT(totals.refused, 0u);
}

TEST_F(Interleavings, ThreeWritersOfTwoRecords) {
  const Totals totals = Explore({.writers = 3, .records = 2});
  EXPECT_EQ(totals.violation, "");
  EXPECT_GT(totals.returned, 0u);
  EXPECT_GT(totals.overwritten, 0u);
  EXPECT_GT(totals.torn, 0u);
  EXPECT_GT(totals.refused, 0u);
}

TEST_F(Interleavings, TheSequenceWraps) {
  const Totals totals = Explore({.writers = 2, .records = 2, .reads = 1, .first = (1u << 20) - 2});
  EXPECT_EQ(totals.violation, "");
  EXPECT_GT(totals.accepted, 0u);
  EXPECT_EQ(Explore({.writers = 3, .records = 2, .first = (1u << 20) - 3}).violation, "");
}

TEST_F(Interleavings, TheTargetsOwnReader) {
  for (int64_t index = 0; index < 2; index++) {
    const int writers = TEST_WORD_BYTES == 8 ? 2 : 1;
    const Totals totals =
        Explore({.writers = writers, .records = 4 / writers, .reads = index, .by_get = true});
    EXPECT_EQ(totals.violation, "");
    EXPECT_GT(totals.accepted, 0u);
    EXPECT_GT(totals.declined, 0u);
  }
}

// What must be found.

TEST_F(Interleavings, AWriterThatTakesNoSlotIsFound) {
  nobody_takes = true;
  EXPECT_NE(ExploreReaders({.writers = 3, .records = 1}).violation, "");
}

TEST_F(Interleavings, AWriterThatPublishesEarlyIsFound) {
  publishes_early = true;
  EXPECT_NE(ExploreReaders({.writers = 2, .records = 1}).violation, "");
}

TEST_F(Interleavings, AReaderWithoutASecondLookAtTheMarkIsFound) {
  const Totals totals = ExploreReaders({.writers = 3, .records = 1, .second_look_at_mark = false});
  EXPECT_NE(totals.violation.find("mixed"), std::string::npos) << totals.violation;
}

#else

// Writers that do not interrupt each other: the reader has the head alone.

TEST_F(Interleavings, OneWriterAndAReaderOfEachRecord) {
  const Totals totals = ExploreReaders({.writers = 1, .records = 6});
  EXPECT_EQ(totals.violation, "");
  EXPECT_GT(totals.accepted, 0u);
  EXPECT_GT(totals.declined, 0u);
}

TEST_F(Interleavings, AReaderWithoutASecondLookAtTheHeadIsFound) {
  const Totals totals = ExploreReaders({.writers = 1, .records = 6, .second_look_at_head = false});
  EXPECT_NE(totals.violation.find("mixed"), std::string::npos) << totals.violation;
}

TEST_F(Interleavings, WritersThatInterruptEachOtherAreFound) {
  EXPECT_NE(ExploreReaders({.writers = 3, .records = 1}).violation, "");
}

#endif

}  // namespace

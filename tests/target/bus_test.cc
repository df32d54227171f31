// The bus check and the delays, on a target whose bus counts what is issued. Built several times:
// with cores that halt and cores that go on, inline and out of line.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define HANGSCOPE_PORT "bus_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_CORES 3
#define HANGSCOPE_NODES 2
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "hangscope/target/bus.h"

uint64_t test_now = 0;
uint32_t test_core = 0;

namespace {

constexpr uint64_t kTop = ~uint64_t{0};

uint32_t memory_object[64];

// Four columns, three rows: workers, a hole at (1, 1), memories in the last column.
constexpr uint32_t kWorker = 1, kMemory = 2;
const uint8_t types[] = {1, 1, 1, 2,  //
                         1, 0, 1, 2,  //
                         1, 1, 1, 2};
constexpr uint32_t kWorkers = 1u << kWorker, kMemories = 1u << kMemory;

constexpr uint64_t kRam = 0x10000, kRamBytes = 0x10000;
constexpr uint64_t kRegisters = 0x20000;  // right behind the memory
constexpr uint64_t kOwn = 0x30000, kOfFirst = 0x40000, kNoAtomics = 0x50000;
const hangscope_bus_region regions[] = {
    {HANGSCOPE_BUS_RANGE(kRam, kRamBytes), HANGSCOPE_BUS_MEMORY,
     HANGSCOPE_BUS_MAY_ALL & ~HANGSCOPE_BUS_MAY_INLINE, 16, 4, 16, HANGSCOPE_BUS_ANYWHERE,
     kWorkers},
    {HANGSCOPE_BUS_RANGE(kRegisters, 0x1000), HANGSCOPE_BUS_REGISTERS, HANGSCOPE_BUS_MAY_ALL, 4, 8,
     1, HANGSCOPE_BUS_ANYWHERE, kWorkers},
    {HANGSCOPE_BUS_RANGE(kOwn, 0x100), HANGSCOPE_BUS_MEMORY, HANGSCOPE_BUS_MAY_ALL, 0, 0, 0,
     HANGSCOPE_BUS_ITSELF, kWorkers},
    {HANGSCOPE_BUS_RANGE(kOfFirst, 0x100), HANGSCOPE_BUS_MEMORY, HANGSCOPE_BUS_MAY_ALL, 0, 0, 0,
     HANGSCOPE_BUS_AT(0, 0), kWorkers},
    {HANGSCOPE_BUS_RANGE(kNoAtomics, 0x100), HANGSCOPE_BUS_MEMORY, HANGSCOPE_BUS_MAY_READ, 0, 0, 0,
     HANGSCOPE_BUS_ANYWHERE, kWorkers},
    {HANGSCOPE_BUS_OBJECT(hangscope_scope), HANGSCOPE_BUS_MEMORY, HANGSCOPE_BUS_MAY_ALL, 0, 0, 0,
     HANGSCOPE_BUS_ANYWHERE, kWorkers},
    {HANGSCOPE_BUS_RANGE(kTop - 0xfff, 0x1000), HANGSCOPE_BUS_MEMORY,
     HANGSCOPE_BUS_MAY_READ | HANGSCOPE_BUS_MAY_WRITE, 0, 0, 0, HANGSCOPE_BUS_ANYWHERE, kMemories},
};
constexpr uint64_t kBuffer = kRam + 0x4000, kBufferBytes = 0x1000, kGuarded = kRam + 0x8000,
                   kGuardedBytes = 0x40;
const hangscope_bus_place local[] = {
    {HANGSCOPE_BUS_RANGE(kRam, kRamBytes), HANGSCOPE_BUS_ANYWHERE, 8},
    {HANGSCOPE_BUS_OBJECT(memory_object), HANGSCOPE_BUS_AT(0, 0), 0},
    {HANGSCOPE_BUS_OBJECT(hangscope_scope), HANGSCOPE_BUS_ANYWHERE, 0},
};
const hangscope_bus_place buffers[] = {
    {HANGSCOPE_BUS_RANGE(kBuffer, kBufferBytes), HANGSCOPE_BUS_ANYWHERE, 0}};
const hangscope_bus_place protected_places[] = {
    {HANGSCOPE_BUS_RANGE(kGuarded, kGuardedBytes), HANGSCOPE_BUS_AT(2, 0), 0}};
// Virtual coordinates leave out the second column: there is no hole among them. The third is of the
// memories, the fourth is none.
const uint8_t virtual_columns[] = {0, 2, 3, 0xff};
const uint8_t virtual_rows[] = {0, 1, 2};

struct Halted {};
int issued;
hangscope_transaction last_issued;
uint32_t delays_when_issued;
std::function<void(const uint32_t* mark, uint32_t value)> on_publish;

}  // namespace

const struct hangscope_bus_map hangscope_bus_map = {.width = 4,
                                                    .height = 3,
                                                    .types = types,
                                                    .multicast_types = kWorkers,
                                                    .inline_bytes = 8,
                                                    .virtual_width = 4,
                                                    .virtual_height = 3,
                                                    .virtual_columns = virtual_columns,
                                                    .virtual_rows = virtual_rows,
                                                    .regions = regions,
                                                    .region_count = std::size(regions),
                                                    .local_count = std::size(local),
                                                    .local = local,
                                                    .buffers = buffers,
                                                    .protected_places = protected_places,
                                                    .buffer_count = std::size(buffers),
                                                    .protected_count = std::size(protected_places),
                                                    .scope_node = HANGSCOPE_BUS_AT(0, 0)};

void hangscope_bus_issue(const hangscope_transaction* transaction) {
  ++issued;
  last_issued = *transaction;
  delays_when_issued = hangscope_scope.details[test_core].detail.delays_done[HANGSCOPE_DELAY_WRITE];
}
void test_halts() { throw Halted(); }
void test_publishes(const uint32_t* mark, uint32_t value) {
  if (on_publish) on_publish(mark, value);
}

namespace {

constexpr uint32_t kVirtual = HANGSCOPE_BUS_FLAG_VIRTUAL;

hangscope_transaction Of(hangscope_bus_kind kind, uint16_t x, uint16_t y, uint64_t address,
                         uint64_t local_end, uint32_t bytes, uint32_t flags = 0) {
  hangscope_transaction made{};
  made.kind = kind;
  made.flags = flags;
  made.x = x;
  made.y = y;
  made.address = address;
  made.local = local_end;
  made.bytes = bytes;
  return made;
}
hangscope_transaction Read(uint16_t x, uint16_t y, uint64_t address, uint64_t to, uint32_t bytes,
                           uint32_t flags = 0) {
  return Of(HANGSCOPE_BUS_READ, x, y, address, to, bytes, flags);
}
hangscope_transaction Write(uint16_t x, uint16_t y, uint64_t address, uint64_t from, uint32_t bytes,
                            uint32_t flags = 0) {
  return Of(HANGSCOPE_BUS_WRITE, x, y, address, from, bytes, flags);
}
hangscope_transaction Atomic(uint16_t x, uint16_t y, uint64_t address, uint32_t bytes) {
  return Of(HANGSCOPE_BUS_ATOMIC, x, y, address, 0, bytes);
}
hangscope_transaction Returning(uint16_t x, uint16_t y, uint64_t address, uint64_t to,
                                uint32_t bytes) {
  return Of(HANGSCOPE_BUS_ATOMIC, x, y, address, to, bytes, HANGSCOPE_BUS_FLAG_RETURNS);
}
hangscope_transaction Inline(uint16_t x, uint16_t y, uint64_t address, uint32_t bytes) {
  return Of(HANGSCOPE_BUS_INLINE_WRITE, x, y, address, 0, bytes);
}
hangscope_transaction Multicast(uint16_t x, uint16_t y, uint16_t x2, uint16_t y2, uint64_t address,
                                uint32_t bytes, uint32_t flags = 0) {
  hangscope_transaction made = Of(HANGSCOPE_BUS_MULTICAST, x, y, address, kRam, bytes, flags);
  made.x2 = x2;
  made.y2 = y2;
  return made;
}

class Bus : public testing::Test {
 protected:
  void SetUp() override {
    test_core = 0;
    on_publish = nullptr;
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
    hangscope_node_is(0, 0, 0);
    hangscope_node_is(1, 2, 0);
    hangscope_core_is(1, 1, 0);
    issued = 0;
  }
  static hangscope_detail& Detail() { return hangscope_scope.details[test_core].detail; }
  static const hangscope_fault& Fault() { return Detail().fault; }
  static hangscope_mailbox& Mailbox() { return hangscope_scope.mailboxes[test_core]; }

  // What becomes of it: the reason, however the build says it.
  static hangscope_bus_reason Do(const hangscope_transaction& transaction) {
    const int before = issued;
    const uint32_t faults = Detail().faults;
    try {
      const hangscope_bus_reason reason = hangscope_bus_do(&transaction);
      EXPECT_EQ(issued, before + (reason == HANGSCOPE_BUS_FINE ? 1 : 0));
      EXPECT_EQ(Detail().faults, faults + (reason == HANGSCOPE_BUS_FINE ? 0 : 1));
#if HANGSCOPE_HALT
      EXPECT_EQ(reason, HANGSCOPE_BUS_FINE) << "returned from a halted core";
#endif
      return reason;
    } catch (const Halted&) {
      EXPECT_TRUE(HANGSCOPE_HALT) << "halted";
      EXPECT_EQ(issued, before) << "issued, then halted";
      EXPECT_EQ(Detail().faults, faults + 1);
      return static_cast<hangscope_bus_reason>(Fault().reason);
    }
  }
};

struct Example {
  const char* name;
  hangscope_transaction transaction;
  hangscope_bus_reason reason;
  uint32_t core = 0;  // 0 on node (0, 0), 1 on node (2, 0)
};

const std::vector<Example>& Examples() {
  static const uint64_t scope = reinterpret_cast<uintptr_t>(&hangscope_scope);
  static const uint64_t object = reinterpret_cast<uintptr_t>(memory_object);
  static const std::vector<Example> examples = {
      {"Read", Read(1, 0, kRam, kRam + 0x100, 64), HANGSCOPE_BUS_FINE},
      {"WriteToItself", Write(0, 0, kRam + 0x200, kRam, 64), HANGSCOPE_BUS_FINE},
      {"AtomicOnAWord", Atomic(1, 0, kRam + 4, 4), HANGSCOPE_BUS_FINE},
      {"AllOfARegion", Read(1, 0, kRam, kRam, 0x4000), HANGSCOPE_BUS_FINE},
      {"OfNoBytes", Read(1, 0, kRam, kRam, 0), HANGSCOPE_BUS_ZERO_LENGTH},
      {"OfNoBytesToNowhere", Inline(99, 99, 0, 0), HANGSCOPE_BUS_ZERO_LENGTH},
      {"ToAddressZero", Read(1, 0, 0, kRam, 16), HANGSCOPE_BUS_UNDERFLOW},
      {"OneByteBelowAll", Read(1, 0, kRam - 1, kRam, 1), HANGSCOPE_BUS_UNDERFLOW},
      {"BelowAllIntoARegion", Read(1, 0, kRam - 16, kRam, 32), HANGSCOPE_BUS_UNDERFLOW},
      {"ExactlyToTheEnd", Write(1, 0, kRam + kRamBytes - 16, kRam, 16), HANGSCOPE_BUS_FINE},
      {"OneByteBehindTheEnd", Write(1, 0, kRam + kRamBytes - 16, kRam, 17), HANGSCOPE_BUS_OVERFLOW},
      {"BehindAllOfAWorker", Read(1, 0, kTop, kRam, 1), HANGSCOPE_BUS_OVERFLOW},
      {"LengthOf4G", Read(3, 0, kTop - 0xfff, kRam, 0xffffffffu), HANGSCOPE_BUS_OVERFLOW},
      {"TheLastByteOfAll", Read(3, 0, kTop, kRam, 1), HANGSCOPE_BUS_FINE},
      {"OverTheLastByteOfAll", Read(3, 0, kTop, kRam, 2), HANGSCOPE_BUS_OVERFLOW},
      {"WrapsToTheBeginning", Read(3, 0, kTop - 15, kRam, 64), HANGSCOPE_BUS_OVERFLOW},
      {"BetweenRegions", Read(1, 0, kRegisters + 0x1000, kRam, 4), HANGSCOPE_BUS_NO_REGION},
      {"WhatAnotherTypeOfNodeHas", Read(3, 0, kRam, kRam, 16), HANGSCOPE_BUS_UNDERFLOW},
      {"ColumnBehindTheLast", Read(4, 0, kRam, kRam, 16), HANGSCOPE_BUS_BAD_COORDINATES},
      {"RowBehindTheLast", Read(0, 3, kRam, kRam, 16), HANGSCOPE_BUS_BAD_COORDINATES},
      {"AHoleInTheGrid", Write(1, 1, kRam, kRam, 16), HANGSCOPE_BUS_BAD_COORDINATES},
      {"ALastCoordinateOfAll", Write(65535, 65535, kRam, kRam, 16), HANGSCOPE_BUS_BAD_COORDINATES},
      {"MulticastToOne", Multicast(2, 2, 2, 2, kRam + 0x100, 64), HANGSCOPE_BUS_FINE},
      {"MulticastToARow", Multicast(0, 2, 2, 2, kRam + 0x100, 64), HANGSCOPE_BUS_FINE},
      {"MulticastOverTheEdge", Multicast(2, 2, 4, 2, kRam, 64), HANGSCOPE_BUS_MULTICAST_RANGE},
      {"MulticastOverTheLowerEdge", Multicast(2, 2, 2, 3, kRam, 64), HANGSCOPE_BUS_MULTICAST_RANGE},
      {"MulticastTurnedRound", Multicast(2, 2, 0, 2, kRam, 64), HANGSCOPE_BUS_MULTICAST_RANGE},
      {"MulticastUpsideDown", Multicast(0, 2, 0, 0, kRam, 64), HANGSCOPE_BUS_MULTICAST_RANGE},
      {"MulticastOverAHole", Multicast(0, 0, 2, 1, kRam, 64), HANGSCOPE_BUS_MULTICAST_TARGET},
      {"MulticastToAMemory", Multicast(2, 0, 3, 0, kRam, 64), HANGSCOPE_BUS_MULTICAST_TARGET},
      {"MulticastOverAProtectedRangeOfOne", Multicast(0, 0, 2, 0, kGuarded, 16),
       HANGSCOPE_BUS_PROTECTED},
      {"MulticastBesideIt", Multicast(0, 0, 1, 0, kGuarded, 16), HANGSCOPE_BUS_FINE},
      {"Misaligned", Write(1, 0, kRam + 8, kRam + 8, 16), HANGSCOPE_BUS_MISALIGNED},
      {"AtomicMisaligned", Atomic(1, 0, kRam + 2, 4), HANGSCOPE_BUS_MISALIGNED},
      {"InlineMisaligned", Inline(1, 0, kRegisters + 4, 4), HANGSCOPE_BUS_MISALIGNED},
      {"RegistersInPart", Write(1, 0, kRegisters, kRam, 6), HANGSCOPE_BUS_MISALIGNED},
      {"RegistersInWhole", Write(1, 0, kRegisters, kRam, 8), HANGSCOPE_BUS_FINE},
      {"LocalMisaligned", Write(1, 0, kRegisters, kRam + 4, 8), HANGSCOPE_BUS_MISALIGNED},
      {"EndsNotAlignedToEachOther", Read(1, 0, kRam, kRam + 8, 16),
       HANGSCOPE_BUS_ALIGNMENT_MISMATCH},
      {"NearVirtualAlone", Read(1, 0, kRam, kRam, 16, HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL),
       HANGSCOPE_BUS_MIXED_COORDINATES},
      {"OwnVirtualAlone", Read(1, 0, kRam, kRam, 16, HANGSCOPE_BUS_FLAG_OWN_VIRTUAL),
       HANGSCOPE_BUS_MIXED_COORDINATES},
      {"FarVirtualAlone", Multicast(0, 0, 1, 0, kRam, 16, HANGSCOPE_BUS_FLAG_FAR_VIRTUAL),
       HANGSCOPE_BUS_MIXED_COORDINATES},
      {"FarPhysicalAlone",
       Multicast(0, 0, 1, 0, kRam, 16,
                 HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL | HANGSCOPE_BUS_FLAG_OWN_VIRTUAL),
       HANGSCOPE_BUS_MIXED_COORDINATES},
      {"AFarCornerThatIsNotThere", Read(1, 0, kRam, kRam, 16, HANGSCOPE_BUS_FLAG_FAR_VIRTUAL),
       HANGSCOPE_BUS_FINE},
      {"VirtualOverWhatIsPhysicallyAHole", Multicast(0, 0, 1, 2, kRam, 16, kVirtual),
       HANGSCOPE_BUS_FINE},
      {"VirtualBesideAHole", Read(1, 1, kRam, kRam, 16, kVirtual), HANGSCOPE_BUS_FINE},
      {"VirtualMemory", Read(2, 0, kTop, kRam, 1, kVirtual), HANGSCOPE_BUS_FINE},
      {"VirtualColumnThatIsNone", Read(3, 0, kRam, kRam, 16, kVirtual),
       HANGSCOPE_BUS_BAD_COORDINATES},
      {"VirtualColumnBehindTheLast", Read(4, 0, kRam, kRam, 16, kVirtual),
       HANGSCOPE_BUS_BAD_COORDINATES},
      {"VirtualOverTheEdge", Multicast(0, 0, 4, 0, kRam, 16, kVirtual),
       HANGSCOPE_BUS_MULTICAST_RANGE},
      {"VirtualOntoAMemory", Multicast(1, 0, 2, 0, kRam, 16, kVirtual),
       HANGSCOPE_BUS_MULTICAST_TARGET},
      {"VirtualIntoProtected", Write(1, 0, kGuarded, kRam, 16, kVirtual), HANGSCOPE_BUS_PROTECTED},
      {"InlineWhereTheyAre", Inline(1, 0, kRegisters, 8), HANGSCOPE_BUS_FINE},
      {"InlineTooLong", Inline(1, 0, kRegisters, 16), HANGSCOPE_BUS_INLINE_UNSUPPORTED},
      {"InlineIntoMemory", Inline(1, 0, kRam, 4), HANGSCOPE_BUS_INLINE_UNSUPPORTED},
      {"InlineWhereNobodyWrites", Inline(1, 0, kNoAtomics, 4), HANGSCOPE_BUS_RIGHTS},
      {"WriteWhereNobodyWrites", Write(1, 0, kNoAtomics, kRam, 8), HANGSCOPE_BUS_RIGHTS},
      {"AtomicWhereNobodyWrites", Atomic(1, 0, kNoAtomics, 4), HANGSCOPE_BUS_RIGHTS},
      {"MulticastWhereNobodyWrites", Multicast(0, 0, 1, 0, kNoAtomics, 4), HANGSCOPE_BUS_RIGHTS},
      {"OfNoKind", Of(static_cast<hangscope_bus_kind>(0), 1, 0, kRam, kRam, 4),
       HANGSCOPE_BUS_RIGHTS},
      {"OfAnUnknownKind", Of(static_cast<hangscope_bus_kind>(6), 1, 0, kRam, kRam, 4),
       HANGSCOPE_BUS_RIGHTS},
      {"FirstByteOfTheScope", Write(0, 0, scope, kRam, 1), HANGSCOPE_BUS_PROTECTED},
      {"LastByteOfTheScope", Inline(0, 0, scope + sizeof hangscope_scope - 1, 1),
       HANGSCOPE_BUS_PROTECTED},
      {"AtomicOnAMailbox",
       Atomic(0, 0, reinterpret_cast<uintptr_t>(&hangscope_scope.mailboxes[2]), 4),
       HANGSCOPE_BUS_PROTECTED},
      {"TheScopesAddressOfAnotherNode", Write(1, 0, scope, kRam, 8), HANGSCOPE_BUS_FINE},
      {"ReadOfTheScope", Read(0, 0, scope, kRam, 8), HANGSCOPE_BUS_FINE},
      {"ReadIntoTheScope", Read(1, 0, kOfFirst, scope, 8), HANGSCOPE_BUS_PROTECTED},
      {"ReturnIntoTheScope", Returning(1, 0, kRam, scope + 64, 4), HANGSCOPE_BUS_PROTECTED},
      {"WriteFromTheScope", Write(1, 0, kOfFirst, scope, 8), HANGSCOPE_BUS_FINE},
      {"JustBeforeAProtectedRange", Write(2, 0, kGuarded - 16, kRam, 16), HANGSCOPE_BUS_FINE},
      {"OneByteIntoAProtectedRange", Write(2, 0, kGuarded - 16, kRam, 17), HANGSCOPE_BUS_PROTECTED},
      {"JustBehindAProtectedRange", Write(2, 0, kGuarded + kGuardedBytes, kRam, 16),
       HANGSCOPE_BUS_FINE},
      {"RoundAProtectedRange", Write(2, 0, kGuarded - 16, kRam, 0x100), HANGSCOPE_BUS_PROTECTED},
      {"ReadOfAProtectedRange", Read(2, 0, kGuarded, kRam, 16), HANGSCOPE_BUS_FINE},
      {"ReadIntoAProtectedRange", Read(1, 0, kRam, kGuarded, 16), HANGSCOPE_BUS_PROTECTED, 1},
      {"LocalExactlyToTheEnd", Write(1, 0, kOfFirst, kRam + kRamBytes - 8, 8), HANGSCOPE_BUS_FINE},
      {"LocalOneByteBehindTheEnd", Write(1, 0, kOfFirst, kRam + kRamBytes - 8, 9),
       HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"LocalNowhere", Write(1, 0, kRam, 0, 16), HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"LocalBeforeTheBegin", Write(1, 0, kRam, kRam - 16, 32), HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"LocalAtTheLastByteOfAll", Read(1, 0, kNoAtomics, kTop, 1), HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"LocalWraps", Read(1, 0, kNoAtomics, kTop, 2), HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"LocalObject", Write(1, 0, kOfFirst, object, sizeof memory_object), HANGSCOPE_BUS_FINE},
      {"LocalObjectOfAnotherNode", Write(1, 0, kRegisters, object, 8), HANGSCOPE_BUS_LOCAL_OVERFLOW,
       1},
      {"LocalOfAReturn", Returning(1, 0, kRam, kRam, 4), HANGSCOPE_BUS_FINE},
      {"LocalOfAReturnNowhere", Returning(1, 0, kRam, 0x100, 4), HANGSCOPE_BUS_LOCAL_OVERFLOW},
      {"AllOfABuffer", Write(1, 0, kRam, kBuffer, kBufferBytes), HANGSCOPE_BUS_FINE},
      {"LastOfABuffer", Write(1, 0, kRam, kBuffer + kBufferBytes - 16, 16), HANGSCOPE_BUS_FINE},
      {"OneByteOutOfABuffer", Write(1, 0, kRam, kBuffer + kBufferBytes - 16, 17),
       HANGSCOPE_BUS_BUFFER_BOUNDS},
      {"IntoABuffer", Read(1, 0, kRam, kBuffer - 16, 32), HANGSCOPE_BUS_BUFFER_BOUNDS},
      {"RoundABuffer", Read(1, 0, kRam, kBuffer - 16, 0x2000), HANGSCOPE_BUS_BUFFER_BOUNDS},
      {"JustBeforeABuffer", Read(1, 0, kRam, kBuffer - 16, 16), HANGSCOPE_BUS_FINE},
      {"JustBehindABuffer", Read(1, 0, kRam, kBuffer + kBufferBytes, 16), HANGSCOPE_BUS_FINE},
      {"TheBufferOfAnotherNodeIsJustMemory", Write(1, 0, kBuffer + kBufferBytes - 16, kRam, 32),
       HANGSCOPE_BUS_FINE},
      {"OfTheOwnNode", Write(0, 0, kOwn, kRam, 8), HANGSCOPE_BUS_FINE},
      {"OfAnotherNode", Write(1, 0, kOwn, kRam, 8), HANGSCOPE_BUS_OWNER},
      {"OfTheFirstNode", Read(1, 0, kOfFirst, kRam, 8), HANGSCOPE_BUS_FINE},
      {"OfTheFirstNodeToAnother", Read(1, 0, kOfFirst, kRam, 8), HANGSCOPE_BUS_OWNER, 1},
  };
  return examples;
}

TEST_F(Bus, RefusesWhatIsWrongAndNothingElse) {
  std::set<uint32_t> seen;
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    SetUp();
    test_core = example.core;
    EXPECT_EQ(hangscope_bus_check(&example.transaction), example.reason);
    EXPECT_EQ(Detail().faults, 0u) << "a mere check is recorded";
    EXPECT_EQ(Do(example.transaction), example.reason);
    seen.insert(example.reason);
  }
  // All but the one that takes two transactions.
  for (uint32_t reason = 0; reason < HANGSCOPE_BUS_REASONS; ++reason) {
    EXPECT_EQ(seen.count(reason), reason == HANGSCOPE_BUS_LINKED ? 0u : 1u) << reason;
  }
}

TEST_F(Bus, ALinkIsGoneOnWithAndClosed) {
  const hangscope_transaction open = Multicast(0, 0, 1, 0, kRam, 64, HANGSCOPE_BUS_FLAG_LINKED);
  hangscope_transaction close = open;
  close.flags = 0;
  close.address += 0x1000;
  EXPECT_EQ(Do(open), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(open), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(close), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Read(1, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Write(2, 0, kRam, kRam, 16, HANGSCOPE_BUS_FLAG_LINKED)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Write(2, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
}

TEST_F(Bus, WhileALinkIsOpenNothingElseGoes) {
  const hangscope_transaction open = Multicast(0, 0, 1, 0, kRam, 64, HANGSCOPE_BUS_FLAG_LINKED);
  for (const hangscope_transaction& other :
       {Read(1, 0, kRam, kRam, 16), Write(0, 0, kRam, kRam, 16), Atomic(1, 0, kRam, 4),
        Inline(1, 0, kRegisters, 8), Multicast(0, 0, 2, 0, kRam, 64),
        Multicast(0, 0, 2, 0, kRam, 64, HANGSCOPE_BUS_FLAG_LINKED), Multicast(0, 2, 1, 2, kRam, 64),
        Multicast(1, 0, 1, 0, kRam, 64)}) {
    SetUp();
    EXPECT_EQ(Do(open), HANGSCOPE_BUS_FINE);
    EXPECT_EQ(Do(other), HANGSCOPE_BUS_LINKED);
    EXPECT_EQ(Fault().reason, static_cast<uint32_t>(HANGSCOPE_BUS_LINKED));
    test_core = 1;  // which has no link open
    EXPECT_EQ(Do(other), HANGSCOPE_BUS_FINE);
  }
}

// The same node by either kind of coordinates; the same numbers of either kind are not the same
// node.
TEST_F(Bus, ALinkIsToWhereItsCoordinatesLead) {
  EXPECT_EQ(Do(Multicast(2, 0, 2, 2, kRam, 64, HANGSCOPE_BUS_FLAG_LINKED)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Multicast(1, 0, 1, 2, kRam, 64, HANGSCOPE_BUS_FLAG_LINKED | kVirtual)),
            HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Multicast(0, 0, 0, 2, kRam, 64, kVirtual)), HANGSCOPE_BUS_LINKED);
}

TEST_F(Bus, ALinkOpenWhileTheCheckIsSwitchedOffIsForgotten) {
  EXPECT_EQ(Do(Write(1, 0, kRam, kRam, 16, HANGSCOPE_BUS_FLAG_LINKED)), HANGSCOPE_BUS_FINE);
  hangscope_scope.watch.switches &= ~static_cast<uint32_t>(HANGSCOPE_WATCH_BUS);
  EXPECT_EQ(Do(Write(1, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
  hangscope_scope.watch.switches |= HANGSCOPE_WATCH_BUS;
  EXPECT_EQ(Do(Read(0, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
}

TEST_F(Bus, SwitchedOffEverythingIsIssued) {
  hangscope_scope.watch.switches &= ~static_cast<uint32_t>(HANGSCOPE_WATCH_BUS);
  for (const Example& example : Examples())
    EXPECT_EQ(Do(example.transaction), HANGSCOPE_BUS_FINE) << example.name;
  EXPECT_EQ(issued, static_cast<int>(Examples().size()));
}

// Somewhere in a function: for the place of the call.
__attribute__((noinline, noclone)) hangscope_bus_reason Caller(
    const hangscope_transaction& transaction) {
  const hangscope_bus_reason reason = hangscope_bus_do(&transaction);
  __asm__ volatile("" ::: "memory");
  return reason;
}
__attribute__((noinline, noclone)) void CallerOfWrite() {
  (void)hangscope_bus_write(1, 65536, kRam + 0x123456780, kRam, 48);
  __asm__ volatile("" ::: "memory");
}

TEST_F(Bus, AViolationIsRecordedWithAllThereIsToKnow) {
  test_core = 1;
  test_now = (5ull << 32) + 77;
  try {
    CallerOfWrite();
  } catch (const Halted&) {
  }
  EXPECT_EQ(issued, 0);
  EXPECT_EQ(Mailbox().fault, static_cast<uint32_t>(HANGSCOPE_FAULT_BUS));
  const hangscope_fault& fault = Fault();
  EXPECT_EQ(fault.type, static_cast<uint32_t>(HANGSCOPE_FAULT_BUS));
  EXPECT_EQ(fault.reason, static_cast<uint32_t>(HANGSCOPE_BUS_BAD_COORDINATES));
  EXPECT_EQ(fault.kind, static_cast<uint32_t>(HANGSCOPE_BUS_WRITE));
  EXPECT_EQ(fault.address[0], static_cast<uint32_t>(kRam + 0x23456780));
  EXPECT_EQ(fault.address[1], 1u);
  EXPECT_EQ(fault.local[0], static_cast<uint32_t>(kRam));
  EXPECT_EQ(fault.local[1], 0u);
  EXPECT_EQ(fault.length, 48u);
  EXPECT_EQ(fault.where, 1u | 255u << 8) << "a coordinate that does not fit became another one";
  EXPECT_EQ(fault.line, 0u);
  EXPECT_EQ(fault.value[0] | fault.value[1], 0u);
  EXPECT_EQ(fault.time, 77u);
  EXPECT_EQ(fault.epoch, 20u);
  const uint64_t pc = fault.pc[0] | uint64_t{fault.pc[1]} << 32;
  const auto function = reinterpret_cast<uintptr_t>(&CallerOfWrite);
  EXPECT_GT(pc, function);
  EXPECT_LT(pc, function + 2000);
  EXPECT_EQ(hangscope_scope.nodes[1].first_fault, 2u);
  EXPECT_EQ(hangscope_scope.nodes[0].first_fault, 0u);
}

TEST_F(Bus, TheWhereOfAMulticastHasBothCornersAsTheyArePhysically) {
  EXPECT_EQ(Do(Multicast(1, 0, 2, 2, kRam, 16, kVirtual)), HANGSCOPE_BUS_MULTICAST_TARGET);
  EXPECT_EQ(Fault().where, 2u | 0u << 8 | 3u << 16 | 2u << 24);
}

// A host that sees the fault's code finds the rest complete; before, it sees no fault.
TEST_F(Bus, TheCodeIsWrittenLast) {
  int published = 0;
  on_publish = [&](const uint32_t* mark, uint32_t value) {
    if (mark != &Mailbox().fault) return;
    ++published;
    EXPECT_EQ(value, static_cast<uint32_t>(HANGSCOPE_FAULT_BUS));
    EXPECT_EQ(*mark, 0u);
    EXPECT_EQ(Fault().type, static_cast<uint32_t>(HANGSCOPE_FAULT_BUS));
    EXPECT_EQ(Fault().reason, static_cast<uint32_t>(HANGSCOPE_BUS_UNDERFLOW));
    EXPECT_EQ(Fault().length, 32u);
    EXPECT_EQ(Fault().where, 1u);
    EXPECT_EQ(issued, 0);
  };
  const hangscope_transaction wrong = Read(1, 0, 64, kRam, 32);
  try {
    Caller(wrong);
  } catch (const Halted&) {
  }
  EXPECT_EQ(published, 1);
}

TEST_F(Bus, TheFirstFaultStays) {
  EXPECT_EQ(Do(Read(1, 0, kRam, kRam, 0)), HANGSCOPE_BUS_ZERO_LENGTH);
  try {
    (void)Caller(Read(9, 0, kRam, kRam, 16));
  } catch (const Halted&) {
  }
  EXPECT_EQ(Fault().reason, static_cast<uint32_t>(HANGSCOPE_BUS_ZERO_LENGTH));
  EXPECT_EQ(Detail().faults, 2u);
}

TEST_F(Bus, EachCallAsksForWhatItsNameSays) {
  EXPECT_EQ(hangscope_bus_read(1, 2, kRam + 0x20, kRam, 32), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(last_issued.kind, static_cast<uint32_t>(HANGSCOPE_BUS_READ));
  EXPECT_EQ(last_issued.x * 10 + last_issued.y, 12);
  EXPECT_EQ(last_issued.address, kRam + 0x20);
  EXPECT_EQ(last_issued.local, kRam);
  EXPECT_EQ(last_issued.bytes, 32u);
  EXPECT_EQ(hangscope_bus_write(1, 2, kRam + 0x20, kRam, 32), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(last_issued.kind, static_cast<uint32_t>(HANGSCOPE_BUS_WRITE));
  EXPECT_EQ(hangscope_bus_atomic(2, 0, kRam + 4, 4, 7), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(last_issued.kind, static_cast<uint32_t>(HANGSCOPE_BUS_ATOMIC));
  EXPECT_EQ(last_issued.value, 7u);
  EXPECT_EQ(hangscope_bus_multicast(0, 0, 2, 0, kRam, kRam, 16), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(last_issued.kind, static_cast<uint32_t>(HANGSCOPE_BUS_MULTICAST));
  EXPECT_EQ(last_issued.x2 * 10 + last_issued.y2, 20);
  EXPECT_EQ(hangscope_bus_inline_write(2, 0, kRegisters, 8, 0x123456789ab), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(last_issued.kind, static_cast<uint32_t>(HANGSCOPE_BUS_INLINE_WRITE));
  EXPECT_EQ(last_issued.value, 0x123456789abu);
  EXPECT_EQ(issued, 5);
}

TEST_F(Bus, ADelayIsInFrontOfEachAccessOfItsKind) {
  Detail().delays[HANGSCOPE_DELAY_WRITE] = 3;
  EXPECT_EQ(Do(Write(1, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(delays_when_issued, 1u) << "issued before the delay";
  EXPECT_EQ(Do(Multicast(0, 0, 1, 0, kRam, 16)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Inline(1, 0, kRegisters, 8)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Read(1, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Do(Atomic(1, 0, kRam, 4)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_WRITE], 3u);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_READ], 0u);
  Detail().delays[HANGSCOPE_DELAY_READ] = 1;
  Detail().delays[HANGSCOPE_DELAY_ATOMIC] = 1;
  EXPECT_EQ(Do(Read(1, 0, kRam, kRam, 16)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_READ], 1u);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_ATOMIC], 0u);
  EXPECT_EQ(Do(Atomic(1, 0, kRam, 4)), HANGSCOPE_BUS_FINE);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_ATOMIC], 1u);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_WRITE], 3u);
}

class Delay : public Bus {
 protected:
  static std::vector<uint32_t> Draw(uint32_t core, uint32_t count, uint32_t most) {
    test_core = core;
    std::vector<uint32_t> drawn;
    for (uint32_t i = 0; i < count; ++i) drawn.push_back(hangscope_delay_draw(&Detail(), most));
    return drawn;
  }
};

TEST_F(Delay, OnlyWhereOneIsSet) {
  hangscope_delay(HANGSCOPE_DELAY_READ);
  EXPECT_EQ(Detail().delays_done[0], 0u);
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 100, 0);
  hangscope_delay(HANGSCOPE_DELAY_READ);
  hangscope_delay(HANGSCOPE_DELAY_WRITE);
  test_core = 1;
  hangscope_delay(HANGSCOPE_DELAY_READ);
  EXPECT_EQ(Detail().delays_done[0], 0u);
  test_core = 0;
  EXPECT_EQ(Detail().delays_done[0], 1u);
  EXPECT_EQ(Detail().delays_done[1], 0u);
  EXPECT_EQ(Detail().delay_state, 0u) << "a constant delay drew a number";
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 0, 0);
  hangscope_delay(HANGSCOPE_DELAY_READ);
  EXPECT_EQ(Detail().delays_done[0], 1u);
}

TEST_F(Delay, NotWhileSwitchedOff) {
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 100, 0);
  hangscope_scope.watch.switches &= ~static_cast<uint32_t>(HANGSCOPE_WATCH_DELAYS);
  hangscope_delay(HANGSCOPE_DELAY_READ);
  EXPECT_EQ(Detail().delays_done[0], 0u);
}

TEST_F(Delay, OfNoCoreOrKindIsIgnored) {
  static struct hangscope_scope before;
  std::memcpy(&before, &hangscope_scope, sizeof before);
  hangscope_delay_set(HANGSCOPE_CORES, HANGSCOPE_DELAY_READ, 1, 1);
  hangscope_delay_set(0, HANGSCOPE_DELAY_KINDS, 1, 1);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
}

TEST_F(Delay, TheSameSeedTheSameDelays) {
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 1000 | HANGSCOPE_DELAY_RANDOM, 7);
  const std::vector<uint32_t> first = Draw(0, 50, 1000);
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 1000 | HANGSCOPE_DELAY_RANDOM, 7);
  EXPECT_TRUE(Draw(0, 50, 1000) == first);
  hangscope_delay_set(1, HANGSCOPE_DELAY_READ, 1000 | HANGSCOPE_DELAY_RANDOM, 7);
  EXPECT_FALSE(Draw(1, 50, 1000) == first) << "two cores move in step";
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 1000 | HANGSCOPE_DELAY_RANDOM, 8);
  EXPECT_FALSE(Draw(0, 50, 1000) == first);
  SetUp();  // another run
  hangscope_delay_set(0, HANGSCOPE_DELAY_READ, 1000 | HANGSCOPE_DELAY_RANDOM, 7);
  EXPECT_TRUE(Draw(0, 50, 1000) == first);
}

// As a host sets them: it writes two words, and the core notices that the seed is another one.
TEST_F(Delay, AHostsSeedBeginsASequence) {
  Detail().delay_seed = 7;
  Detail().delays[HANGSCOPE_DELAY_WRITE] = 200 | HANGSCOPE_DELAY_RANDOM;
  for (int i = 0; i < 5; ++i) hangscope_delay(HANGSCOPE_DELAY_WRITE);
  EXPECT_EQ(Detail().delay_state, 5u);
  EXPECT_EQ(Detail().delay_seeded, 7u);
  EXPECT_EQ(Detail().delays_done[HANGSCOPE_DELAY_WRITE], 5u);
  const std::vector<uint32_t> next = Draw(0, 20, 200);
  Detail().delay_seed = 9;
  (void)Draw(0, 3, 200);
  EXPECT_EQ(Detail().delay_state, 3u);
  Detail().delay_seed = 7;
  (void)Draw(0, 5, 200);
  EXPECT_TRUE(Draw(0, 20, 200) == next);
}

TEST_F(Delay, RandomOnesReachFromZeroToTheMostAndAreSpread) {
  for (const uint32_t most : {1u, 6u, 99u}) {
    std::map<uint32_t, int> counted;
    for (const uint32_t number : Draw(0, (most + 1) * 1000, most)) ++counted[number];
    EXPECT_EQ(counted.size(), most + 1);
    EXPECT_EQ(counted.rbegin()->first, most);
    for (const auto& [number, count] : counted)
      EXPECT_NEAR(count, 1000, 250) << number << " of " << most;
  }
  uint32_t largest = 0;
  for (const uint32_t number : Draw(0, 1000, 0x7fffffff)) largest = std::max(largest, number);
  EXPECT_GT(largest, 0x7f000000u);
  EXPECT_LE(largest, 0x7fffffffu);
}

// Neighbouring seeds, as one tries them, and neighbouring cores have nothing to do with each other.
TEST_F(Delay, NeighbouringSeedsDiffer) {
  int same = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    for (uint32_t i = 0; i < 10; ++i) {
      same += hangscope_delay_random(seed, 0, i, 99) == hangscope_delay_random(seed + 1, 0, i, 99)
                  ? 1
                  : 0;
      same +=
          hangscope_delay_random(seed, 0, i, 99) == hangscope_delay_random(seed, 1, i, 99) ? 1 : 0;
      same += hangscope_delay_random(seed, 0, i, 99) == hangscope_delay_random(seed, 0, i + 1, 99)
                  ? 1
                  : 0;
    }
  }
  EXPECT_NEAR(same, 300, 100);
}

// Of 2^31 rounds, seconds long each, many more are done than there would be time for.
TEST_F(Delay, AChangeEndsADelayUnderWay) {
  std::atomic<bool> stops = false;
  std::thread core([&] {
    while (!stops) hangscope_delay(HANGSCOPE_DELAY_ATOMIC);
  });
  const uint32_t* done = &Detail().delays_done[HANGSCOPE_DELAY_ATOMIC];
  for (uint32_t i = 0; hangscope_port_load(done) < 100; ++i) {
    hangscope_delay_set(0, HANGSCOPE_DELAY_ATOMIC, 0x7fffffff - i % 2, 0);
    std::this_thread::yield();
  }
  stops = true;
  hangscope_delay_set(0, HANGSCOPE_DELAY_ATOMIC, 0, 0);
  core.join();
}

}  // namespace

// The bus check against another one that goes byte by byte, over random maps and transactions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define HANGSCOPE_PORT "bus_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "hangscope/target/bus.h"

uint64_t test_now = 0;
uint32_t test_core = 0;
const struct hangscope_bus_map hangscope_bus_map = {};
void hangscope_bus_issue(const hangscope_transaction*) {}
void test_halts() { throw 0; }
void test_publishes(const uint32_t*, uint32_t) {}

namespace {

constexpr uint64_t kTop = ~uint64_t{0};
constexpr uint32_t kVirtual = HANGSCOPE_BUS_FLAG_VIRTUAL;

// A map and a transaction, mostly near what the map has; and what is wrong with it, byte for byte,
// by somebody who is in no hurry.
class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  bool Is(uint32_t of_hundred) { return Below(100) < of_hundred; }
  template <typename T>
  T Of(std::initializer_list<T> of) {
    return of.begin()[Below(static_cast<uint32_t>(of.size()))];
  }

  uint32_t Node() { return HANGSCOPE_BUS_AT(Below(map.width), Below(map.height)); }

  void MakeMap() {
    map = {};
    map.width = 1 + Below(4);
    map.height = 1 + Below(3);
    types.clear();
    for (uint32_t i = 0; i < map.width * map.height; ++i)
      types.push_back(static_cast<uint8_t>(Is(85) ? 1 + Below(2) : 0));
    map.types = types.data();
    map.multicast_types = Of({2u, 6u, 6u, 6u});
    map.inline_bytes = 8;
    MakeVirtual();
    MakeRegions();
    MakePlaces(&local, 1 + Below(2), &map.local, &map.local_count);
    if (Is(20)) map.local_count = 0;
    MakePlaces(&buffers, Below(3), &map.buffers, &map.buffer_count);
    MakePlaces(&protected_places, Below(3), &map.protected_places, &map.protected_count);
    map.scope_node = Is(50) ? HANGSCOPE_BUS_ANYWHERE : Node();
    initiator = {Node(), 0, Is(50) ? 8u : 0u, base + Below(128)};
    if (Is(15)) {
      initiator.link = Below(map.width) | Below(map.height) << 7 | (1 + Below(5)) << 28;
      if (initiator.link >> 28 == HANGSCOPE_BUS_MULTICAST)
        initiator.link |= (initiator.link & 0x3fff) << 14;
    }
  }

  void MakeTransaction() {
    transaction = {};
    transaction.kind = Is(99) ? 1 + Below(5) : Of({0u, 6u, kNever});
    transaction.flags = ((Is(30) ? kVirtual : 0u) ^ (Is(3) ? 4u << Below(3) : 0u)) | Below(4);
    transaction.x = static_cast<uint16_t>(Below(map.width + (Is(10) ? 2 : 0)));
    transaction.y = static_cast<uint16_t>(Below(map.height + (Is(10) ? 2 : 0)));
    transaction.x2 = static_cast<uint16_t>(transaction.x + Below(2) - Below(10) / 9);
    transaction.y2 = static_cast<uint16_t>(transaction.y + Below(2) - Below(10) / 9);
    if (Is(1)) transaction.x2 = transaction.y2 = 65535;
    transaction.address =
        base + Below(Is(90) ? 128 : 300) / 4 * Of({4u, 4u, 1u}) - (Is(5) ? 40 : 0);
    transaction.local = Is(50) ? transaction.address : base + Below(128);
    transaction.bytes = Is(1) ? Of({0u, kNever, 0x80000000u}) : 1 + Below(Is(80) ? 8 : 40);
  }

  // All that is wrong. Where the first thing leaves the others without a meaning, that alone.
  std::set<hangscope_bus_reason> Wrong() const {
    const hangscope_transaction& t = transaction;
    if (t.bytes == 0) return {HANGSCOPE_BUS_ZERO_LENGTH};
    if (t.kind < 1 || t.kind > 5) return {HANGSCOPE_BUS_RIGHTS};
    const bool multicast = t.kind == HANGSCOPE_BUS_MULTICAST;
    const bool near = t.flags & 4, far = t.flags & 8, own = t.flags & 16;
    if (near != own || (multicast && near != far)) return {HANGSCOPE_BUS_MIXED_COORDINATES};
    std::set<hangscope_bus_reason> wrong;
    const int x2 = multicast ? t.x2 : t.x, y2 = multicast ? t.y2 : t.y;
    const int width = !near ? static_cast<int>(map.width) : static_cast<int>(columns.size());
    const int height = !near ? static_cast<int>(map.height) : static_cast<int>(rows.size());
    if (x2 < t.x || y2 < t.y || x2 >= width || y2 >= height) {
      return {multicast ? HANGSCOPE_BUS_MULTICAST_RANGE : HANGSCOPE_BUS_BAD_COORDINATES};
    }
    for (int y = t.y; y <= y2; ++y) {
      for (int x = t.x; x <= x2; ++x) WrongAt(near ? columns[x] : x, near ? rows[y] : y, &wrong);
    }
    WrongHere(&wrong);
    if (initiator.link != 0) {
      uint32_t link = t.kind << 28 | Seven(near, t.x, t.y);
      if (multicast) link |= Seven(near, t.x2, t.y2) << 14;
      if (initiator.link != link) wrong.insert(HANGSCOPE_BUS_LINKED);
    }
    return wrong;
  }

  struct hangscope_bus_map map;
  hangscope_bus_initiator initiator;
  hangscope_transaction transaction;

 private:
  using Wide = unsigned __int128;
  static constexpr uint32_t kNever = 0xffffffffu;

  // Physical coordinates as a link has them.
  uint32_t Seven(bool is_virtual, uint32_t x, uint32_t y) const {
    return is_virtual ? (columns[x] & 127u) | (rows[y] & 127u) << 7 : x | y << 7;
  }

  void MakeVirtual() {
    columns.clear();
    rows.clear();
    if (Is(20)) return;
    for (uint32_t x = 0; x < map.width; ++x) {
      if (Is(80)) columns.push_back(static_cast<uint8_t>(Is(95) ? x : 200));
    }
    for (uint32_t y = map.height; y-- > 0;) rows.push_back(static_cast<uint8_t>(y));
    map.virtual_width = static_cast<uint32_t>(columns.size());
    map.virtual_height = static_cast<uint32_t>(rows.size());
    map.virtual_columns = columns.data();
    map.virtual_rows = rows.data();
  }
  // Up to four, of 128 bytes in all, somewhere: at the end of all addresses, too.
  void MakeRegions() {
    base = Of({uint64_t{64}, uint64_t{0xffffffc0}, kTop - 127, kTop - 100});
    regions.clear();
    for (uint64_t at = Below(16); at < 100;) {
      const uint32_t bytes = 8 + Below(60);
      hangscope_bus_region region{};
      const uint64_t first = base + at;
      region.span = {nullptr, first, bytes - 1 > kTop - first ? kTop : first + (bytes - 1)};
      region.kind = Is(80) ? HANGSCOPE_BUS_MEMORY : HANGSCOPE_BUS_REGISTERS;
      region.rights = Is(70) ? static_cast<uint32_t>(HANGSCOPE_BUS_MAY_ALL) : Below(32);
      region.alignment = Of({0u, 1u, 1u, 2u, 4u});
      region.word_alignment = Of({0u, 1u, 4u});
      region.mutual = Of({0u, 1u, 1u, 2u, 4u});
      region.owner = Is(80) ? HANGSCOPE_BUS_ANYWHERE : Is(50) ? HANGSCOPE_BUS_ITSELF : Node();
      region.types = Is(70) ? 6u : 2u << Below(2);
      regions.push_back(region);
      at += bytes + Below(2) * Below(20);
      if (at > kTop - base) break;
    }
    map.regions = regions.data();
    map.region_count = static_cast<uint32_t>(regions.size());
  }
  void MakePlaces(std::vector<hangscope_bus_place>* places, uint32_t count,
                  const hangscope_bus_place** at, uint32_t* how_many) {
    places->clear();
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_local = places == &local;
      const uint64_t first = base + Below(is_local ? 30 : 100);
      const uint32_t bytes = 1 + Below(is_local ? 100 : 20);
      hangscope_bus_place place{};
      place.span = {nullptr, first, bytes - 1 > kTop - first ? kTop : first + (bytes - 1)};
      place.node = Is(80) ? HANGSCOPE_BUS_ANYWHERE : Node();
      place.alignment = is_local ? Of({0u, 1u, 1u, 2u}) : 0;
      places->push_back(place);
    }
    *at = places->data();
    *how_many = count;
  }

  static bool Has(const hangscope_bus_span& span, Wide address) {
    return address >= span.first && address <= span.last;
  }
  // Of the bytes of one end: how many are in the span, of how many.
  static std::pair<int, int> Count(const hangscope_bus_span& span, uint64_t address,
                                   uint32_t bytes) {
    // Spans have at most 128 bytes; behind 300 there is nothing more to be had.
    const int of = static_cast<int>(std::min(bytes, 300u));
    int in = 0;
    for (int i = 0; i < of; ++i) in += Has(span, Wide{address} + static_cast<unsigned>(i)) ? 1 : 0;
    return {in, of};
  }
  bool IsProtected(uint32_t node, uint64_t address) const {
    const auto& scope = initiator;
    const hangscope_bus_span of_scope{nullptr, scope.scope, scope.scope + (scope.scope_bytes - 1)};
    const bool scope_is_here = map.scope_node == HANGSCOPE_BUS_ANYWHERE || map.scope_node == node;
    if (scope.scope_bytes != 0 && scope_is_here &&
        Count(of_scope, address, transaction.bytes).first > 0)
      return true;
    for (const hangscope_bus_place& place : protected_places) {
      const bool here = place.node == HANGSCOPE_BUS_ANYWHERE || place.node == node;
      if (here && Count(place.span, address, transaction.bytes).first > 0) return true;
    }
    return false;
  }

  void WrongAt(int x, int y, std::set<hangscope_bus_reason>* wrong) const {
    const hangscope_transaction& t = transaction;
    const bool multicast = t.kind == HANGSCOPE_BUS_MULTICAST;
    const bool exists = x < static_cast<int>(map.width) && y < static_cast<int>(map.height);
    const uint32_t type =
        exists ? types[static_cast<uint32_t>(y) * map.width + static_cast<uint32_t>(x)] : 0;
    if (type == 0 || (multicast && (map.multicast_types & 1u << type) == 0)) {
      wrong->insert(multicast ? HANGSCOPE_BUS_MULTICAST_TARGET : HANGSCOPE_BUS_BAD_COORDINATES);
      return;
    }
    const uint32_t node = HANGSCOPE_BUS_AT(x, y);
    const hangscope_bus_region* found = nullptr;
    bool below = true, behind = true, any = false;
    for (const hangscope_bus_region& region : regions) {
      if ((region.types & 1u << type) == 0) continue;
      any = true;
      if (Has(region.span, t.address)) found = &region;
      below = below && t.address < region.span.first;
      behind = behind && t.address > region.span.last;
    }
    if (found == nullptr) {
      wrong->insert(!any     ? HANGSCOPE_BUS_NO_REGION
                    : below  ? HANGSCOPE_BUS_UNDERFLOW
                    : behind ? HANGSCOPE_BUS_OVERFLOW
                             : HANGSCOPE_BUS_NO_REGION);
      return;
    }
    const auto [in, of] = Count(found->span, t.address, t.bytes);
    if (in != of) wrong->insert(HANGSCOPE_BUS_OVERFLOW);
    WrongWith(*found, node, wrong);
    if (t.kind != HANGSCOPE_BUS_READ && IsProtected(node, t.address))
      wrong->insert(HANGSCOPE_BUS_PROTECTED);
  }

  void WrongWith(const hangscope_bus_region& region, uint32_t node,
                 std::set<hangscope_bus_reason>* wrong) const {
    const hangscope_transaction& t = transaction;
    const bool mine = region.owner == HANGSCOPE_BUS_ANYWHERE || region.owner == initiator.node ||
                      (region.owner == HANGSCOPE_BUS_ITSELF && initiator.node == node);
    if (!mine) wrong->insert(HANGSCOPE_BUS_OWNER);
    const std::map<uint32_t, uint32_t> rights = {
        {HANGSCOPE_BUS_READ, HANGSCOPE_BUS_MAY_READ},
        {HANGSCOPE_BUS_WRITE, HANGSCOPE_BUS_MAY_WRITE},
        {HANGSCOPE_BUS_ATOMIC, HANGSCOPE_BUS_MAY_ATOMIC},
        {HANGSCOPE_BUS_MULTICAST, HANGSCOPE_BUS_MAY_MULTICAST},
        {HANGSCOPE_BUS_INLINE_WRITE, HANGSCOPE_BUS_MAY_INLINE}};
    const bool may = (region.rights & rights.at(t.kind)) != 0;
    const bool word = t.kind == HANGSCOPE_BUS_ATOMIC || t.kind == HANGSCOPE_BUS_INLINE_WRITE;
    if (t.kind == HANGSCOPE_BUS_INLINE_WRITE) {
      if (!may && (region.rights & HANGSCOPE_BUS_MAY_WRITE) == 0)
        wrong->insert(HANGSCOPE_BUS_RIGHTS);
      if ((!may && (region.rights & HANGSCOPE_BUS_MAY_WRITE) != 0) || (may && t.bytes > 8)) {
        wrong->insert(HANGSCOPE_BUS_INLINE_UNSUPPORTED);
      }
    } else if (!may) {
      wrong->insert(HANGSCOPE_BUS_RIGHTS);
    }
    const uint32_t alignment = std::max(1u, word ? region.word_alignment : region.alignment);
    if (t.address % alignment != 0) wrong->insert(HANGSCOPE_BUS_MISALIGNED);
    if (region.kind == HANGSCOPE_BUS_REGISTERS && t.bytes % alignment != 0)
      wrong->insert(HANGSCOPE_BUS_MISALIGNED);
    const uint32_t mutual = std::max(1u, region.mutual);
    if (!word && t.address % mutual != t.local % mutual)
      wrong->insert(HANGSCOPE_BUS_ALIGNMENT_MISMATCH);
  }

  void WrongHere(std::set<hangscope_bus_reason>* wrong) const {
    const hangscope_transaction& t = transaction;
    const bool returns =
        t.kind == HANGSCOPE_BUS_ATOMIC && (t.flags & HANGSCOPE_BUS_FLAG_RETURNS) != 0;
    const bool written = t.kind == HANGSCOPE_BUS_READ || returns;
    if (!written && t.kind != HANGSCOPE_BUS_WRITE && t.kind != HANGSCOPE_BUS_MULTICAST) return;
    bool fits = map.local_count == 0 && Wide{t.local} + (t.bytes - 1) <= kTop;
    bool aligned = map.local_count == 0;
    for (uint32_t i = 0; i < map.local_count; ++i) {
      const bool here = local[i].node == HANGSCOPE_BUS_ANYWHERE || local[i].node == initiator.node;
      const auto [in, of] = Count(local[i].span, t.local, t.bytes);
      if (!here || in != of) continue;
      // The first place it fits into is the one that counts.
      if (!fits) aligned = t.local % std::max(1u, local[i].alignment) == 0;
      fits = true;
    }
    if (!fits) wrong->insert(HANGSCOPE_BUS_LOCAL_OVERFLOW);
    if (fits && !aligned) wrong->insert(HANGSCOPE_BUS_MISALIGNED);
    for (const hangscope_bus_place& buffer : buffers) {
      const bool here = buffer.node == HANGSCOPE_BUS_ANYWHERE || buffer.node == initiator.node;
      const auto [in, of] = Count(buffer.span, t.local, t.bytes);
      if (here && in > 0 && in != of) wrong->insert(HANGSCOPE_BUS_BUFFER_BOUNDS);
    }
    if (written && IsProtected(initiator.node, t.local)) wrong->insert(HANGSCOPE_BUS_PROTECTED);
  }

  std::mt19937 random_;
  uint64_t base = 0;
  std::vector<uint8_t> types, columns, rows;
  std::vector<hangscope_bus_region> regions;
  std::vector<hangscope_bus_place> local, buffers, protected_places;
};

std::string Said(const Random& random) {
  const hangscope_transaction& t = random.transaction;
  std::string said = "kind " + std::to_string(t.kind) + ", flags " + std::to_string(t.flags) +
                     ", (" + std::to_string(t.x) + ", " + std::to_string(t.y) + ") to (" +
                     std::to_string(t.x2) + ", " + std::to_string(t.y2) + "), address " +
                     std::to_string(t.address) + ", local " + std::to_string(t.local) + ", bytes " +
                     std::to_string(t.bytes) + "; wrong:";
  for (const hangscope_bus_reason reason : random.Wrong()) said += " " + std::to_string(reason);
  return said;
}

TEST(BusProperty, NothingLegalIsRefusedAndNothingIllegalPasses) {
  std::map<hangscope_bus_reason, int> counted;
  int fit_links = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    random.MakeMap();
    for (int i = 0; i < 60; ++i) {
      random.MakeTransaction();
      const hangscope_bus_reason reason =
          hangscope_bus_check_of(&random.map, &random.initiator, &random.transaction);
      const std::set<hangscope_bus_reason> wrong = random.Wrong();
      ++counted[reason];
      if (reason == HANGSCOPE_BUS_FINE) {
        fit_links += random.initiator.link != 0 ? 1 : 0;
        ASSERT_TRUE(wrong.empty()) << "passed; seed " << seed << ", " << i << ": " << Said(random);
      } else {
        ASSERT_TRUE(wrong.count(reason) == 1)
            << "refused for " << reason << "; seed " << seed << ", " << i << ": " << Said(random);
      }
    }
  }
  EXPECT_GT(counted[HANGSCOPE_BUS_FINE], 10000);
  EXPECT_GT(fit_links, 100) << "hardly a transaction belonged to an open link";
  for (uint32_t reason = 1; reason < HANGSCOPE_BUS_REASONS; ++reason) {
    EXPECT_GT(counted[static_cast<hangscope_bus_reason>(reason)], 50)
        << "reason " << reason << " was hardly tried";
  }
}

}  // namespace

// Who waits for whom, without time: what is stuck, and why.
#include "verdict/wait_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace hangscope {
namespace {

using Kind = WaitCause::Kind;
using Nodes = std::vector<WaitNode>;

constexpr uint32_t kLock = 100;
constexpr uint32_t kOtherLock = 200;

WaitNode Waits(uint32_t resource, ResourceKind kind = ResourceKind::kNone) {
  WaitNode node;
  node.role = WaitRole::kWaits;
  node.resource = resource;
  node.kind = kind;
  return node;
}
WaitNode Is(WaitRole role) {
  WaitNode node;
  node.role = role;
  return node;
}

std::vector<WaitCause> Causes(Nodes nodes, const std::vector<ClaimRow>& claims) {
  FindSuppliers(claims, &nodes);
  return FindCauses(nodes);
}

TEST(WaitGraph, TwoThatHoldWhatTheOtherWantsAreADeadlock) {
  const auto causes = Causes({Waits(kLock), Waits(kOtherLock), Is(WaitRole::kMoves)},
                             {{{kOtherLock}, {}, 0}, {{kLock}, {}, 0}, {}});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::kCycle);
  EXPECT_EQ(causes[0].members, (std::vector<uint32_t>{0, 1}));
}

TEST(WaitGraph, AHolderThatMovesMayLetGo) {
  EXPECT_TRUE(Causes({Waits(kLock), Is(WaitRole::kMoves)}, {{}, {{kLock}, {}, 0}}).empty());
}

TEST(WaitGraph, OfTwoProvidersOneThatMovesIsEnough) {
  const std::vector<ClaimRow> claims = {{}, {{}, {kLock}, 0}, {{}, {kLock}, 0}};
  EXPECT_TRUE(
      Causes({Waits(kLock, ResourceKind::kChannel), Is(WaitRole::kEnded), Is(WaitRole::kMoves)},
             claims)
          .empty());
  const auto causes = Causes(
      {Waits(kLock, ResourceKind::kChannel), Is(WaitRole::kEnded), Is(WaitRole::kEnded)}, claims);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::kSupplier);
  EXPECT_EQ(causes[0].members, (std::vector<uint32_t>{0}));
  EXPECT_EQ(causes[0].partners, (std::vector<uint32_t>{1, 2}));
}

// What a wait is for, where it does not say: by who claims it.
TEST(WaitGraph, AResourceOfNoKindIsALockIfSomebodyHoldsIt) {
  const struct {
    const char* what;
    ResourceKind kind;
    std::vector<uint32_t> holds, provides;  // core 1's
    std::vector<uint32_t> suppliers;
  } cases[] = {
      {"held", ResourceKind::kNone, {kLock}, {}, {1}},
      {"provided", ResourceKind::kNone, {}, {kLock}, {1}},
      {"neither", ResourceKind::kNone, {}, {}, {}},
      {"a lock that is only provided", ResourceKind::kExclusive, {}, {kLock}, {}},
      {"a channel that is only held", ResourceKind::kChannel, {kLock}, {}, {}},
  };
  for (const auto& c : cases) {
    Nodes nodes = {Waits(kLock, c.kind), Is(WaitRole::kMoves)};
    FindSuppliers({{}, {c.holds, c.provides, 0}}, &nodes);
    std::vector<uint32_t> found;
    for (const WaitEdge& edge : nodes[0].suppliers) found.push_back(edge.to);
    EXPECT_EQ(found, c.suppliers) << c.what;
  }
}

TEST(WaitGraph, TheHolderThatTheRecordNamesCountsAsOneThatClaims) {
  Nodes nodes = {Waits(kLock, ResourceKind::kExclusive), Is(WaitRole::kMoves),
                 Is(WaitRole::kMoves)};
  nodes[0].holder = 2;
  FindSuppliers({{}, {{kLock}, {}, 0}, {{kLock}, {}, 0}}, &nodes);
  ASSERT_EQ(nodes[0].suppliers.size(), 2u);
  EXPECT_EQ(nodes[0].suppliers[1].to, 2u);
}

TEST(WaitGraph, ACycleThatAFaultKeepsFromEndingIsTheFaultsDoing) {
  // 0 and 1 wait for each other; 2, who provides the same as 1, is halted.
  const auto causes = Causes(
      {Waits(1, ResourceKind::kChannel), Waits(2, ResourceKind::kChannel), Is(WaitRole::kHalted)},
      {{{}, {2}, 0}, {{}, {1}, 0}, {{}, {1}, 0}});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::kNode);
  EXPECT_EQ(causes[0].members, (std::vector<uint32_t>{2}));
  EXPECT_EQ(causes[0].victims, (std::vector<uint32_t>{0, 1}));
}

TEST(WaitGraph, AChainThatEndsInAnUnclaimedWaitHasOneCause) {
  const auto causes = Causes({Waits(1), Waits(2), Waits(3)}, {{}, {{1}, {}, 0}, {{2}, {}, 0}});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::kNobody);
  EXPECT_EQ(causes[0].members, (std::vector<uint32_t>{2}));
  EXPECT_EQ(causes[0].victims, (std::vector<uint32_t>{0, 1}));
}

TEST(WaitGraph, ExcusesAndCorruptionsReachAllWhoWaitForThem) {
  for (const WaitRole role : {WaitRole::kExcused, WaitRole::kUnknown}) {
    EXPECT_TRUE(Causes({Waits(1), Waits(2), Is(role)}, {{}, {{1}, {}, 0}, {{2}, {}, 0}}).empty());
  }
}

TEST(WaitGraph, AChainOfAHundredThousandIsNoRecursion) {
  constexpr uint32_t kLong = 100'000;
  Nodes nodes;
  std::vector<ClaimRow> claims(kLong);
  for (uint32_t i = 0; i < kLong; ++i) {
    nodes.push_back(Waits(i + 1, ResourceKind::kExclusive));
    claims[(i + 1) % kLong].holds = {i + 1};
  }
  const auto causes = Causes(nodes, claims);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].members.size(), kLong);
}

// Random small graphs against the definition, over all subsets.
class WaitGraphProperty : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kMost = 7;

  Nodes RandomNodes() {
    constexpr WaitRole kRoles[] = {WaitRole::kMoves,  WaitRole::kUnknown, WaitRole::kExcused,
                                   WaitRole::kHalted, WaitRole::kSilent,  WaitRole::kNeverRuns,
                                   WaitRole::kIdle,   WaitRole::kEnded};
    const uint32_t count = Below(kMost) + 1;
    Nodes nodes(count);
    for (WaitNode& node : nodes) {
      node.role = Below(5) != 0 ? WaitRole::kWaits : kRoles[Below(8)];
      if (node.role != WaitRole::kWaits) continue;
      node.resource = Below(4) + 1;
      std::set<uint32_t> to;
      for (uint32_t n = Below(3) == 0 ? Below(4) : 1; n > 0; --n) to.insert(Below(count));
      for (const uint32_t supplier : to) node.suppliers.push_back({supplier, Below(12) == 0});
    }
    return nodes;
  }
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  static bool Inert(const Nodes& nodes, const WaitEdge& edge) {
    const WaitNode& to = nodes[edge.to];
    const bool forsaken = to.role == WaitRole::kWaits && to.suppliers.empty();
    return edge.never_delivers || forsaken || to.role >= WaitRole::kHalted;
  }
  // Whether all in `set` (bits) wait, each only for members of it or, if `inert`, for who never
  // delivers.
  static bool IsClosed(const Nodes& nodes, uint32_t set, bool inert) {
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      if (nodes[i].role != WaitRole::kWaits || nodes[i].suppliers.empty()) return false;
      for (const WaitEdge& edge : nodes[i].suppliers) {
        if ((set >> edge.to & 1) == 0 && !(inert && Inert(nodes, edge))) return false;
      }
    }
    return true;
  }
  // Closed sets are closed under union: the union of all is the largest.
  static uint32_t Largest(const Nodes& nodes, bool inert) {
    uint32_t largest = 0;
    for (uint32_t set = 0; set < 1u << nodes.size(); ++set) {
      if (IsClosed(nodes, set, inert)) largest |= set;
    }
    return largest;
  }
  // Members of the smallest closed sets that are not empty: each waits for all others, and for
  // nobody else.
  static std::set<uint32_t> Knots(const Nodes& nodes) {
    std::set<uint32_t> knots;
    for (uint32_t set = 1; set < 1u << nodes.size(); ++set) {
      if (!IsClosed(nodes, set, false)) continue;
      const bool smallest = std::none_of(knots.begin(), knots.end(),
                                         [&](uint32_t knot) { return (knot & set) == knot; });
      if (!smallest) continue;
      std::erase_if(knots, [&](uint32_t knot) { return (knot & set) == set; });
      knots.insert(set);
    }
    return knots;
  }
  static bool Waits(const Nodes& nodes, uint32_t waiter, uint32_t supplier) {
    const auto& all = nodes[waiter].suppliers;
    return std::any_of(all.begin(), all.end(),
                       [&](const WaitEdge& edge) { return edge.to == supplier; });
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(WaitGraphProperty, EachStuckWaitIsInOneCauseAndNobodyElseIs) {
  for (int round = 0; round < 500; ++round) {
    const Nodes nodes = RandomNodes();
    const auto causes = FindCauses(nodes);
    const uint32_t stuck = Largest(nodes, true);
    uint32_t in_causes = 0;
    for (const WaitCause& cause : causes) {
      for (const auto* list : {&cause.members, &cause.victims}) {
        for (const uint32_t node : *list) {
          ASSERT_EQ(in_causes >> node & 1, 0u)
              << "in two causes: " << node << " in round " << round;
          in_causes |= 1u << node;
        }
      }
    }
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      const bool forsaken = nodes[i].role == WaitRole::kWaits && nodes[i].suppliers.empty();
      const bool reported = (in_causes >> i & 1) != 0;
      if (nodes[i].role == WaitRole::kWaits) {
        ASSERT_EQ(reported, forsaken || (stuck >> i & 1) != 0) << i << " in round " << round;
      } else if (reported) {
        ASSERT_GE(nodes[i].role, WaitRole::kHalted) << i << " in round " << round;
      }
    }
  }
}

TEST_P(WaitGraphProperty, ACycleIsReportedForEachKnotAndIsOne) {
  for (int round = 0; round < 500; ++round) {
    const Nodes nodes = RandomNodes();
    std::set<uint32_t> knots = Knots(nodes);
    for (const WaitCause& cause : FindCauses(nodes)) {
      if (cause.kind != Kind::kCycle) continue;
      uint32_t members = 0;
      for (size_t i = 0; i < cause.members.size(); ++i) {
        const uint32_t member = cause.members[i];
        ASSERT_TRUE(Waits(nodes, member, cause.members[(i + 1) % cause.members.size()]))
            << "round " << round;
        members |= 1u << member;
      }
      ASSERT_EQ(static_cast<size_t>(__builtin_popcount(members)), cause.members.size())
          << "round " << round;
      const auto knot = std::find_if(knots.begin(), knots.end(),
                                     [&](uint32_t all) { return (all & members) == members; });
      ASSERT_NE(knot, knots.end())
          << "a cycle that is in no knot, or the second of one; round " << round;
      knots.erase(knot);
    }
    ASSERT_TRUE(knots.empty()) << "a knot without a cycle, round " << round;
  }
}

TEST_P(WaitGraphProperty, ACauseHasWhatItsKindPromises) {
  for (int round = 0; round < 500; ++round) {
    const Nodes nodes = RandomNodes();
    for (const WaitCause& cause : FindCauses(nodes)) {
      ASSERT_FALSE(cause.members.empty());
      for (const uint32_t member : cause.members) {
        if (cause.kind == Kind::kNode) {
          ASSERT_TRUE(nodes[member].role == WaitRole::kHalted ||
                      nodes[member].role == WaitRole::kSilent ||
                      nodes[member].role == WaitRole::kNeverRuns);
          continue;
        }
        ASSERT_EQ(nodes[member].role, WaitRole::kWaits);
        ASSERT_TRUE(cause.kind == Kind::kCycle || nodes[member].resource == cause.resource);
        ASSERT_EQ(cause.kind == Kind::kNobody, nodes[member].suppliers.empty());
        if (cause.kind != Kind::kSupplier) continue;
        const auto named = [&](uint32_t partner) { return Waits(nodes, member, partner); };
        ASSERT_TRUE(std::any_of(cause.partners.begin(), cause.partners.end(), named))
            << "round " << round;
      }
      ASSERT_TRUE(cause.kind != Kind::kNode || !cause.victims.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WaitGraphProperty, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace hangscope

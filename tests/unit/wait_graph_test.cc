// Who waits for whom, without time: what is stuck, and why.
#include <gtest/gtest.h>

#include "verdict/wait_graph.h"

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
  const auto causes = Causes({Waits(kLock), Waits(kOtherLock), Is(WaitRole::kMoves)}, {{{kOtherLock}, {}, 0}, {{kLock}, {}, 0}, {}});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::kCycle);
  EXPECT_EQ(causes[0].members, (std::vector<uint32_t>{0, 1}));
}

TEST(WaitGraph, AHolderThatMovesMayLetGo) {
  EXPECT_TRUE(Causes({Waits(kLock), Is(WaitRole::kMoves)}, {{}, {{kLock}, {}, 0}}).empty());
}

}  // namespace
}  // namespace hangscope

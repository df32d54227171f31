#include <gtest/gtest.h>

#include "why/why.h"

namespace hangscope {
namespace {

ScopeFinding Found(FindingKind kind, std::vector<SubjectId> subjects, TimeNs since) {
  ScopeFinding finding;
  finding.kind = kind;
  finding.subjects = std::move(subjects);
  finding.since = since;
  return finding;
}

TEST(WhyFindings, AWaitThatEndedAndBeganAnewIsToldOnceAsItIsNow) {
  const std::vector<ScopeFinding> standing = {
      Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 3}}, 900)};
  const auto told = AsTheyStand({Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 3}}, 100),
                                 Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 3}}, 900)},
                                standing);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].since, 900);
}

TEST(WhyFindings, OthersAreToldEach) {
  const std::vector<ScopeFinding> standing = {
      Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 3}}, 900)};
  const auto told = AsTheyStand({Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 3}}, 100),
                                 Found(FindingKind::kDeadlock, {{SubjectId::Kind::kTask, 3}}, 50),
                                 Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 4}}, 200),
                                 Found(FindingKind::kStarved, {{SubjectId::Kind::kTask, 4}}, 300)},
                                standing);
  ASSERT_EQ(told.size(), 4u);  // two that are over were two
  EXPECT_EQ(told[0].since, 900);
  EXPECT_EQ(told[3].since, 300);
}

}  // namespace
}  // namespace hangscope

// Each pause is told once, and its end.
#include "watch/paused_cores.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

using PausedIds = std::vector<SubjectId>;

class PausedCoresTest : public ::testing::Test {
 protected:
  PausedCoresTest() : subjects_(3) {
    for (uint32_t core = 0; core < 3; ++core) subjects_[core].subject.index = core;
  }
  PausedCores::News Look() { return cores_.See(subjects_, 1, ++looks_ * kSecond); }
  void Pause(uint32_t core) { subjects_[core].sample.paused = PausedState::kByHost; }
  void Continue(uint32_t core) { subjects_[core].sample.paused = PausedState::kNot; }
  static SubjectId Core(uint32_t core) { return {SubjectId::Kind::kCore, core}; }

  std::vector<SubjectState> subjects_;
  PausedCores cores_;
  int looks_ = 0;
};

TEST_F(PausedCoresTest, CoresThatPauseAtOneLookAreToldTogetherAndOnce) {
  EXPECT_EQ(Look().paused, PausedIds());
  Pause(0);
  Pause(2);
  EXPECT_EQ(Look().paused, (PausedIds{Core(0), Core(2)}));
  EXPECT_EQ(Look().paused, PausedIds());
  Continue(0);
  const PausedCores::News news = Look();
  EXPECT_EQ(news.continued, PausedIds{Core(0)});
  EXPECT_EQ(news.longest, 2 * kSecond);
  EXPECT_EQ(Look().continued, PausedIds());
}

TEST_F(PausedCoresTest, OneThatWasResumedAndPausesAgainIsToldOnceItHadTimeToLeave) {
  Pause(1);
  Look();
  subjects_[1].sample.resumes = 1;
  EXPECT_EQ(Look().paused, PausedIds());
  EXPECT_EQ(Look().paused, PausedIds{Core(1)});
  EXPECT_EQ(Look().paused, PausedIds());
}

TEST_F(PausedCoresTest, ACoreThatCannotBeReadAnyMoreDoesNotGoOn) {
  Pause(1);
  Look();
  subjects_[1].sample.unread = true;
  EXPECT_EQ(Look().continued, PausedIds());
}

}  // namespace
}  // namespace hangscope

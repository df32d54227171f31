#include "runtime/bash/bash_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_bash.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMostShellFrames = 8;

std::vector<BashFrame> FramesIn(const FakeBash& bash, size_t most = kMostShellFrames) {
  auto reader = bash.Open();
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return reader.ok() ? reader->Frames(most) : std::vector<BashFrame>();
}

TEST(BashReader, EachFunctionIsWhereItCalledTheOneBefore) {
  const FakeBashStory story;
  EXPECT_THAT(FramesIn(story.bash), ElementsAre(BashFrame{"wait_for_lock", "deploy.sh", 6},
                                                BashFrame{"deploy_all", "/srv/lib.sh", 10},
                                                BashFrame{"source", "/srv/lib.sh", 2},
                                                BashFrame{"main", "deploy.sh", 15}));
  EXPECT_THAT(FramesIn(story.bash, 2), SizeIs(2));
}

TEST(BashReader, OutsideOfAllFunctionsItIsInTheScript) {
  FakeBash bash;
  bash.SetLine(4);
  bash.SetScript("/srv/deploy.sh");
  EXPECT_THAT(FramesIn(bash), ElementsAre(BashFrame{"main", "/srv/deploy.sh", 4}));
}

TEST(BashReader, ACommandLineHasFunctionsOfNoFile) {
  FakeBash bash;
  bash.SetLine(1);
  bash.SetCommand("f() { read x < fifo; }; f");
  EXPECT_THAT(FramesIn(bash), ElementsAre(BashFrame{"main", "-c", 1}));
  bash.SetArray("FUNCNAME", {"f", "g"});
  bash.SetArray("BASH_LINENO", {"2", "nonsense"});
  bash.SetArray("BASH_SOURCE", {"main", "environment"});
  EXPECT_THAT(FramesIn(bash), ElementsAre(BashFrame{"f", "-c", 1}, BashFrame{"g", "-c", 2}));
}

TEST(BashReader, WhoWaitsForACommandToBeTypedIsNowhere) {
  FakeBash bash;
  bash.SetLine(40);
  EXPECT_THAT(FramesIn(bash), IsEmpty());
  FakeBashStory story;
  story.bash.SetExecuting(false);
  EXPECT_THAT(FramesIn(story.bash), IsEmpty());
}

TEST(BashReader, OtherVersionsAreRefused) {
  FakeBashStory story;
  story.bash.SetVersion("5.3");
  EXPECT_EQ(story.bash.Open().status().message(),
            "bash 5.3 may keep its variables in another way than 5.2, which is understood");
  story.bash.hidden = "dist_version";
  EXPECT_EQ(story.bash.Open().status().message(),
            "bash of an unknown version may keep its variables in another way than 5.2, which is "
            "understood");
  story.bash.hidden = "line_number";
  EXPECT_EQ(story.bash.Open().status().message(), "it has no symbol line_number");
}

TEST(BashReader, FramesAreNamedAfterTheirFileAndLine) {
  const StackFrame frame = BashReader::Name({"deploy", "/srv/deploy.sh", 15});
  EXPECT_EQ(frame.function, "deploy");
  EXPECT_EQ(frame.source, "deploy.sh:15");
  EXPECT_EQ(frame.module, "/srv/deploy.sh");
  EXPECT_EQ(frame.language, FrameLanguage::kShell);
  EXPECT_FALSE(frame.of_system);
  EXPECT_EQ(BashReader::Name({"main", "-c", 1}).source, "bash -c:1");
  EXPECT_EQ(BashReader::Name({"main", "/srv/deploy.sh", 0}).source, "deploy.sh");
}

}  // namespace
}  // namespace hangscope

// The JSON of a perf.data takes time in proportion to what it tells.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "perf/perf_text.h"

namespace hangscope {
namespace {

// Of this thread, in which nothing else runs.
TimeNs CpuTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

class PerfJsonTest : public ::testing::Test {
 protected:
  PerfJsonTest() {
    story_.Switch(kSecond, 0, 0, 0, 7);
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", story_.image.File()).ok());
    auto file = PerfFile::Open(files_, "perf.data");
    EXPECT_TRUE(file.ok());
    file_ = std::move(*file);
  }
  // What JSON of so many spans, each decoded, takes: the least of three.
  TimeNs TimeOf(size_t spans) {
    const PerfActivity activity(file_->events());
    const PerfAnalysis analysis;
    const Window window;
    const std::vector<PerfBranch> branches;
    std::vector<PerfAuxRing> rings(1);
    rings[0].spans.resize(spans);
    std::vector<PerfSpanTrace> traces(spans);
    for (size_t i = 0; i < spans; ++i) traces[i].span = i;
    const PerfScene scene{"perf.data", file_.get(), &activity, &analysis, &rings,
                          &window,     false,       &traces,   "",        &branches};
    TimeNs least = kSecond * 1000;
    for (int i = 0; i < 3; ++i) {
      const TimeNs begin = CpuTime();
      EXPECT_GT(PerfJson(scene, 0).size(), spans * 100);
      least = std::min(least, CpuTime() - begin);
    }
    return least;
  }

  PerfStory story_;
  FakeFileSystem files_;
  std::unique_ptr<PerfFile> file_;
};

TEST_F(PerfJsonTest, TakesFourTimesAsLongForFourTimesAsManySpans) {
  constexpr size_t kSpans = 4000;
  const TimeNs one = TimeOf(kSpans);
  const TimeNs four = TimeOf(4 * kSpans);
  EXPECT_LT(four, 7 * one) << "16 times: each span looks through all";
}

}  // namespace
}  // namespace hangscope

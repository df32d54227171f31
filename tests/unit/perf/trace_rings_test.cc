// Spans of hardware traces that the file has only in part.
#include "perf/traces/trace_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"

namespace hangscope {
namespace {

constexpr uint64_t kSpanBytes = 64;

class TraceRingsTest : public ::testing::Test {
 protected:
  // `spans` of a ring that overwrites itself, and of each its newest `held` bytes.
  void Record(uint64_t spans, uint64_t held) {
    PerfStory story;
    for (uint64_t i = 0; i < spans; ++i) {
      const uint64_t end = (i + 1) * kSpanBytes;
      story.Aux(kSecond + static_cast<TimeNs>(i), 0, 7, end, kSpanBytes, PERF_AUX_FLAG_OVERWRITE);
      story.Auxtrace(0, end - held, held);
    }
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", story.image.File()).ok());
    auto opened = PerfFile::Open(files_, "perf.data");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    file_ = std::move(*opened);
    reader_.emplace(*file_, "tracer");
    TimeNs newest = -1;
    EXPECT_TRUE(file_
                    ->ForEach([&](const PerfRecord& record) {
                      newest = std::max(newest, record.time);
                      reader_->Add(record, newest);
                      return true;
                    })
                    .ok());
  }

  // CPU seconds to find the ring's history, of a recording that was read.
  double SecondsToFind(RingHistory* history) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double begin = now();
    reader_->Finish(0);
    *history = reader_->HistoryOf(reader_->rings().at(0), true);
    return now() - begin;
  }

  FakeFileSystem files_;
  std::unique_ptr<PerfFile> file_;
  std::optional<TraceRingsReader> reader_;
};

TEST_F(TraceRingsTest, SaysOfWhatIsMissingThatNewerBytesAreInItsPlace) {
  RingHistory history;
  Record(3, kSpanBytes / 2);
  SecondsToFind(&history);
  EXPECT_EQ(history.losses.size(), 0u) << "the hole in the offsets tells of it";
  ASSERT_EQ(history.held.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(history.held[i].begin_offset, i * kSpanBytes + kSpanBytes / 2);
    EXPECT_EQ(history.held[i].end_offset, (i + 1) * kSpanBytes);
  }
}

TEST_F(TraceRingsTest, SaysOfWhatNothingNewerIsThereThatItCannotBeRead) {
  PerfAuxSpan span;
  span.flags = PERF_AUX_FLAG_OVERWRITE;
  EXPECT_EQ(ReasonOfMissing(span), GapReason::kUnreadable);
  span.newer_held = true;
  EXPECT_EQ(ReasonOfMissing(span), GapReason::kOverwritten);
  span.flags = 0;
  EXPECT_EQ(ReasonOfMissing(span), GapReason::kUnreadable);
}

// Of spans that miss nothing no reason is looked for: the time grows with their number.
TEST_F(TraceRingsTest, TakesNoLongerWhereBytesAreMissing) {
  constexpr uint64_t kSpans = 40'000;
  RingHistory whole, half;
  Record(kSpans, kSpanBytes);
  const double of_whole = SecondsToFind(&whole);
  Record(kSpans, kSpanBytes / 2);
  const double of_half = SecondsToFind(&half);
  EXPECT_EQ(whole.held.size(), kSpans);
  EXPECT_EQ(half.held.size(), kSpans);
  EXPECT_LT(of_half, 5 * of_whole);
}

}  // namespace
}  // namespace hangscope

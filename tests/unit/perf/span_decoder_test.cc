// Spans of hardware traces in a perf.data: which of them are one stream, and what each of them
// gets.
#include "perf/traces/span_decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "fakes/etm_bytes.h"
#include "fakes/fake_file_system.h"
#include "fakes/frame_bytes.h"
#include "fakes/perf_story.h"
#include "fakes/pt_bytes.h"

namespace hangscope {
namespace {

size_t ReadA64(uint64_t address, std::span<char> bytes) {
  if (address < kA64Base || address >= kA64Base + sizeof kA64Code) return 0;
  const size_t count = std::min<size_t>(bytes.size(), kA64Base + sizeof kA64Code - address);
  std::memcpy(bytes.data(), reinterpret_cast<const char*>(kA64Code) + (address - kA64Base), count);
  return count;
}

class SpanDecoderTest : public ::testing::Test {
 protected:
  explicit SpanDecoderTest(const std::string& info) {
    story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, info));
  }

  // AUX records of these sizes, one behind the other.
  void Record(const std::vector<uint64_t>& sizes, uint64_t flags = 0) {
    for (const uint64_t size : sizes) {
      story_.Aux(time_ += 100, 0, 7, told_, size, flags);
      told_ += size;
    }
  }
  void Hold(uint64_t offset, const std::string& bytes) {
    story_.image.records.push_back(PerfRecordOf(kPerfAuxtrace, PerfWord(bytes.size()) +
                                                                   PerfWord(offset) + PerfWord(0) +
                                                                   PerfBytes(0u, 7, 0, 0u)) +
                                   bytes);
  }
  std::vector<std::optional<TraceSummary>> Decode(const SpanDecodeRequest& request,
                                                  uint64_t most_bytes = SpanDecoder::kMostBytes) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", story_.image.File()).ok());
    auto file = PerfFile::Open(files_, "perf.data");
    EXPECT_TRUE(file.ok()) << file.status().message();
    TraceRingsReader reader(**file, NameOfTracer(**file));
    TimeNs newest = -1;
    EXPECT_TRUE((*file)
                    ->ForEach([&](const PerfRecord& record) {
                      reader.Add(record, newest = std::max(newest, record.time));
                      return true;
                    })
                    .ok());
    reader.Finish(0);
    SpanDecoder decoder(**file, most_bytes);
    PerfAuxRing& ring = reader.rings().at(0);
    if (!shares_.empty()) ring.spans.at(0).shares = shares_;
    auto decoded = decoder.Decode(ring, request);
    EXPECT_TRUE(decoded.ok()) << decoded.status().message();
    left_out_ = decoder.left_out();
    return decoded.value_or({});
  }

  FakeFileSystem files_;
  PerfStory story_;
  TimeNs time_ = 0;
  uint64_t told_ = 0;
  bool left_out_ = false;
  std::vector<PerfTraceShare> shares_;  // of the first span, where it has some
};

class CoreSightSpansTest : public SpanDecoderTest {
 protected:
  CoreSightSpansTest() : SpanDecoderTest(EtmV4Info(1)) {}
};

class SharedSinkSpansTest : public SpanDecoderTest {
 protected:
  SharedSinkSpansTest() : SpanDecoderTest(EtmV4Info(3)) {}
};

// A trace unit synchronises wherever it is switched on.
TEST_F(CoreSightSpansTest, DecodesEachSpanAlone) {
  const std::string run = Framed(0x10, A64Run());
  Record({run.size(), run.size()});
  Hold(0, run + run);
  const auto spans = Decode({});
  ASSERT_EQ(spans.size(), 2u);
  for (const auto& span : spans) EXPECT_EQ(span.value().atoms, 7u);
}

TEST_F(CoreSightSpansTest, TakesTheNewestOfASpanThatIsTooLong) {
  const std::string run = Framed(0x10, A64Run());
  Record({2 * run.size()});
  Hold(0, run + run);
  const auto spans = Decode({}, run.size());
  EXPECT_EQ(spans.at(0).value().atoms, 7u);
  EXPECT_TRUE(left_out_);
}

// Whoever drained a shared sink has the bytes of others, who ran other code.
TEST_F(SharedSinkSpansTest, FollowsEachCpuThroughItsOwnCode) {
  FrameBytes frames;
  for (const uint8_t id : std::initializer_list<uint8_t>{0x10, 0x12, 0x14})
    frames.Put(id, A64Run());
  const std::string bytes = frames.Take();
  Record({bytes.size()});
  Hold(0, bytes);
  shares_ = {{0, 0x10, 1, {}, {}}, {1, 0x12, 1, {}, {}}, {2, 0x14, 1, {}, {}}};
  SpanDecodeRequest request;
  for (const int with_code : {-1, 1, 2}) {
    std::vector<int> asked;
    request.code = [&](const PerfAuxSpan&, int cpu) {
      asked.push_back(cpu);
      return cpu == with_code ? ReadCode(ReadA64)
                              : [](uint64_t, std::span<char>) { return size_t{0}; };
    };
    const auto spans = Decode(request);
    ASSERT_EQ(spans.size(), 1u);
    const TraceSummary& summary = spans[0].value();
    EXPECT_EQ(asked, (std::vector<int>{-1, 1, 2}));
    EXPECT_EQ(summary.instructions, 12u) << with_code;
    std::set<int> without;
    for (const Discontinuity& one : summary.discontinuities)
      if (one.reason == DiscontinuityReason::kNoCode) without.insert(one.cpu);
    std::set<int> others{0, 1, 2};
    others.erase(std::max(with_code, 0));
    EXPECT_EQ(without, others);
    ASSERT_FALSE(summary.last_branches.empty());
    for (const TraceBranch& branch : summary.last_branches)
      EXPECT_EQ(branch.cpu, std::max(with_code, 0));
  }
}

#if HANGSCOPE_HAS_LIBIPT

class PtSpansTest : public SpanDecoderTest {
 protected:
  PtSpansTest() : SpanDecoderTest(PtInfo()) {
    request_.code = [](const PerfAuxSpan&, int) { return ReadX86; };
  }

  uint64_t Sum(uint64_t TraceSummary::*count, uint64_t most_bytes = SpanDecoder::kMostBytes) {
    uint64_t sum = 0;
    for (const auto& span : Decode(request_, most_bytes)) sum += span ? (*span).*count : 0;
    return sum;
  }
  // Six runs, synchronised before the first, the third and the fifth.
  static std::string SixRuns() {
    PtBytes trace;
    for (int i = 0; i < 3; ++i) trace.Sync(1000 + 100 * i).Run().Run();
    return trace.bytes();
  }

  SpanDecodeRequest request_;
};

TEST_F(PtSpansTest, DecodesSpansWhoseOffsetsTouchAsOneStream) {
  const std::string bytes = SixRuns();
  Record({bytes.size() / 2 - 10, 0, 20, bytes.size() - bytes.size() / 2 - 10});
  Hold(0, bytes.substr(0, bytes.size() / 3));
  Hold(bytes.size() / 3, bytes.substr(bytes.size() / 3));
  const auto spans = Decode(request_);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_FALSE(spans[1]);
  for (const size_t i : {0, 2, 3}) EXPECT_GT(spans[i].value().instructions, 0u) << i;
  EXPECT_EQ(Sum(&TraceSummary::atoms), 6 * 4u);
  EXPECT_EQ(Sum(&TraceSummary::instructions), 6 * 14u);
  EXPECT_EQ(Sum(&TraceSummary::branches), 6 * 5u);
  EXPECT_EQ(Sum(&TraceSummary::bytes), bytes.size());
  EXPECT_FALSE(left_out_);
}

TEST_F(PtSpansTest, HoldsOnlyAPieceOfALongStreamInMemory) {
  const std::string bytes = SixRuns();
  Record({10, bytes.size() - 30, 20});
  Hold(0, bytes);
  for (uint64_t most = bytes.size() / 2; most < bytes.size(); ++most) {
    EXPECT_EQ(Sum(&TraceSummary::packets, most), Sum(&TraceSummary::packets)) << most;
    EXPECT_EQ(Sum(&TraceSummary::atoms, most), 6 * 4u) << most;
    EXPECT_EQ(Sum(&TraceSummary::instructions, most), 6 * 14u) << most;
    EXPECT_EQ(Sum(&TraceSummary::bytes, most), bytes.size()) << most;
    request_.last_branches = 9;
    const auto spans = Decode(request_, most);
    size_t branches = 0;
    for (const auto& span : spans) branches += span->last_branches.size();
    EXPECT_EQ(branches, 9u) << most;
    EXPECT_LT(spans[2]->last_branches.back().offset, 20u) << most;
    request_.last_branches = 64;
  }
}

TEST_F(PtSpansTest, BeginsAnewWhereBytesOrPacketsAreMissing) {
  PtBytes trace;
  trace.Sync(1000).Run();
  const uint64_t cut = trace.size();
  trace.Run();
  const std::string bytes = trace.bytes();
  Record({cut}, PERF_AUX_FLAG_TRUNCATED);
  Record({bytes.size() - cut});
  Hold(0, bytes);
  EXPECT_EQ(Decode(request_).at(1).value().packets, 0u) << "the tracer had no room";
  const auto again = [&](uint64_t offset) {
    story_.image.records.clear();
    story_.image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, PtInfo()));
    told_ = 1000;
    Record({cut});
    told_ = offset;
    Record({bytes.size() - cut});
    Hold(1000, bytes.substr(0, cut));
    Hold(offset, bytes.substr(cut));
    return Decode(request_).at(1).value().packets;
  };
  EXPECT_EQ(again(1000 + cut), 5u);
  EXPECT_EQ(again(1000 + cut + 1), 0u) << "a byte is missing";
  EXPECT_EQ(again(0), 0u) << "the ring's offsets began anew";
}

TEST_F(PtSpansTest, ReadsBytesBeforeTheFirstSpanThatIsWanted) {
  PtBytes trace;
  trace.Sync(1000).Run();
  const uint64_t cut = trace.size();
  trace.Run();
  Record({cut, trace.size() - cut});
  Hold(0, trace.bytes());
  request_.first_span = 1;
  const auto spans = Decode(request_);
  EXPECT_FALSE(spans.at(0));
  EXPECT_EQ(spans.at(1).value().instructions, 14u);
  EXPECT_EQ(spans.at(1)->bytes, trace.size() - cut);
}

TEST_F(PtSpansTest, CountsOffsetsFromTheSpansBegin) {
  PtBytes trace;
  trace.Sync(1000).Run().Tsc(3000);
  Record({50, trace.size()});
  Hold(50, trace.bytes());
  const auto spans = Decode(request_);
  ASSERT_EQ(spans.at(1).value().times.size(), 2u);
  EXPECT_EQ(spans[1]->times[1].offset, trace.size() - 8);
  story_.image.records.pop_back();
  Hold(53, trace.bytes().substr(3));  // what came first is missing, and with it a whole PSB
  const auto late = Decode(request_);
  EXPECT_EQ(late.at(1).value().discontinuities.at(0).offset, 3u);
}

#endif

}  // namespace
}  // namespace hangscope

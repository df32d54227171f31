// Whose the bytes in a formatter's frames are: counted here as libopencsd counts them.
#include "hwtrace/coresight_frames.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "fakes/etm_bytes.h"
#include "fakes/frame_bytes.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope {
namespace {

using IdBytes = std::map<int, uint64_t>;

CoreSightFrames FramesOf(std::string_view bytes, size_t part = std::string_view::npos) {
  CoreSightFrameReader reader;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size())))
    reader.Add(bytes.substr(0, part));
  return reader.frames();
}

// Without padding.
IdBytes BytesOfIds(const CoreSightFrames& frames) {
  IdBytes bytes;
  for (const auto& [id, of] : frames.ids) {
    if (id != 0) bytes[id] = of.bytes;
  }
  return bytes;
}

// The trace id of CPU i is 0x10 + 2 i.
IdBytes BytesByTheLibrary(const std::string& info, std::string_view bytes) {
  auto trace = OpenInstructionTrace(info, -1);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return trace.ok() ? (*trace)->Decode(bytes, {}).bytes_of_cpu : IdBytes{};
}

TEST(CoreSightFrames, SaysWhoseEachByteIs) {
  FrameBytes writer;
  writer.Put(0x10, "abc").Put(0x12, "d").Put(0x10, "e").Put(0x30, std::string(40, '\x01'));
  const std::string bytes = writer.Take();
  EXPECT_EQ(bytes.size() % kCoreSightFrameBytes, 0u);
  const CoreSightFrames frames = FramesOf(bytes);
  EXPECT_EQ(BytesOfIds(frames), (IdBytes{{0x10, 4}, {0x12, 1}, {0x30, 40}}));
  EXPECT_EQ(frames.ids.at(0x30).first_frame, 0u);
  EXPECT_EQ(frames.ids.at(0x30).last_frame, 48u);
  EXPECT_EQ(frames.ids.at(0x12).last_frame, 0u);
  EXPECT_FALSE(frames.begins_with_barrier);
}

TEST(CoreSightFrames, KnowsNobodyBehindABarrier) {
  const std::string data(14, '\x02');
  std::string bytes = kFrameBarrier + Framed(0x10, data) + kFrameBarrier;
  // A frame that goes on with an id that nobody said.
  bytes += std::string(16, '\x04') + Framed(0x12, data);
  const CoreSightFrames frames = FramesOf(bytes);
  EXPECT_TRUE(frames.begins_with_barrier);
  EXPECT_EQ(frames.barriers, 2u);
  EXPECT_EQ(BytesOfIds(frames), (IdBytes{{0x10, 14}, {0x12, 14}, {kUnknownTraceId, 15}}));
  EXPECT_FALSE(FramesOf(Framed(0x10, data) + kFrameBarrier).begins_with_barrier);
}

TEST(CoreSightFrames, CountsAsTheLibraryDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    FrameBytes writer;
    IdBytes written;
    for (int run = static_cast<int>(random() % 30); run >= 0; --run) {
      const int cpu = static_cast<int>(random() % 4);
      const size_t size = random() % (round % 2 == 0 ? 4 : 60);
      std::string trace;
      for (size_t i = 0; i < size; ++i) trace.push_back(static_cast<char>(random()));
      writer.Put(static_cast<uint8_t>(0x10 + 2 * cpu), trace);
      if (size > 0) written[0x10 + 2 * cpu] += size;
    }
    const std::string bytes = writer.Take();
    EXPECT_EQ(BytesOfIds(FramesOf(bytes)), written) << round;
    EXPECT_EQ(BytesOfIds(FramesOf(bytes, 1 + random() % 40)), written) << round;
    IdBytes by_library;
    for (const auto& [cpu, count] : BytesByTheLibrary(EtmV4Info(4), bytes))
      by_library[0x10 + 2 * cpu] = count;
    EXPECT_EQ(by_library, written) << round;
  }
}

TEST(CoreSightFrames, CountsRecordedTracesAsTheLibraryDoes) {
  const auto data = [](const std::string& name) {
    std::ifstream file(TEST_DATA "/coresight/" + name, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  for (const std::string name : {"thread.aux", "cpu0.aux", "cpu6.aux"}) {
    uint64_t by_library = 0;
    for (const auto& [cpu, count] : BytesByTheLibrary(data("thread.info"), data(name)))
      by_library += count;
    uint64_t counted = 0;
    for (const auto& [id, count] : BytesOfIds(FramesOf(data(name)))) counted += count;
    EXPECT_EQ(counted, by_library) << name;
    EXPECT_GT(counted, 0u) << name;
  }
}

TEST(CoreSightFrames, LooksIntoWholeFramesOnly) {
  const std::string bytes = Framed(0x10, std::string(28, '\x02'));
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const CoreSightFrames frames = FramesOf(std::string_view(bytes).substr(0, size), 5);
    EXPECT_EQ(frames.bytes, size);
    EXPECT_EQ(frames.ids.empty() ? 0 : frames.ids.at(0x10).bytes, size / 16 * 14);
  }
}

}  // namespace
}  // namespace hangscope

#include "proc/ipc/ring_requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace hangscope {
namespace {

// The fdinfo of a ring of four places.
RingCounts Counts(int taken, int offered, int completed, const std::string& polls) {
  const auto info = ParseDescriptorInfo(
      fmt::format("pos:\t0\nflags:\t02000002\nino:\t4711\nSqMask:\t0x3\nSqHead:\t{}\nSqTail:\t{}\n"
                  "CachedSqHead:\t{}\nCqMask:\t0x7\nCqHead:\t0\nCqTail:\t{}\nCachedCqTail:\t{}\n"
                  "SQEs:\t0\nCQEs:\t0\nSqThread:\t-1\n{}CqOverflowList:\n",
                  taken, offered, taken, completed, completed, polls));
  return info.ring.value_or(RingCounts());
}

struct Place {
  uint8_t operation = 0;
  uint8_t flags = 0;
  int fd = -1;
};

std::optional<std::vector<RingRequest>> Requests(const RingCounts& ring,
                                                 const std::vector<Place>& places) {
  std::string memory(4096, '\0');
  for (size_t i = 0; i < places.size(); ++i) {
    memory[64 * i] = static_cast<char>(places[i].operation);
    memory[64 * i + 1] = static_cast<char>(places[i].flags);
    std::memcpy(&memory[64 * i + 4], &places[i].fd, sizeof(int));
  }
  const auto mappings =
      ParseMemoryMappings("7000-8000 rw-s 10000000 00:0f 4711 anon_inode:[io_uring]\n");
  return OpenRequests(ring, mappings, [&](uint64_t address, void* into, size_t bytes) {
    std::memcpy(into, memory.data() + (address - 0x7000), bytes);
    return true;
  });
}

constexpr uint8_t kRead = 22;
constexpr uint8_t kWrite = 23;
constexpr uint8_t kTimeout = 11;

TEST(RingRequests, TheKernelTellsHowManyAndWhichKinds) {
  const RingCounts ring = Counts(2, 2, 1, "PollList:\n  op=22, task_works=0\n");
  EXPECT_EQ(ring.inode, 4711u);
  EXPECT_EQ(ring.entries, 4u);
  EXPECT_EQ(ring.taken, 2u);
  EXPECT_EQ(ring.completed, 1u);
  EXPECT_EQ(ring.polled, std::vector<int>{kRead});
  EXPECT_FALSE(WasGivenNothing(ring));
  EXPECT_TRUE(WasGivenNothing(Counts(0, 0, 0, "PollList:\n")));
  EXPECT_FALSE(WasGivenNothing(Counts(0, 1, 0, "PollList:\n")));
  EXPECT_FALSE(ParseDescriptorInfo("flags:\t02\n").ring.has_value());
}

TEST(RingRequests, TheMemoryTellsTheirFiles) {
  const RingCounts ring = Counts(1, 1, 0, "PollList:\n  op=22, task_works=0\n");
  const auto one = Requests(ring, {{kRead, 0, 5}});
  ASSERT_TRUE(one && one->size() == 1);
  EXPECT_EQ((*one)[0].fd, 5);
  EXPECT_TRUE((*one)[0].reads);
  // Which of two that are alike is open nobody can tell.
  const RingCounts second = Counts(2, 2, 1, "PollList:\n  op=22, task_works=0\n");
  EXPECT_EQ(Requests(second, {{kRead, 0, 5}, {kRead, 0, 6}}).value().size(), 2u);
  const RingCounts writes = Counts(1, 1, 0, "PollList:\n  op=23, task_works=0\n");
  EXPECT_FALSE(Requests(writes, {{kWrite, 0, 7}}).value()[0].reads);
}

TEST(RingRequests, WhatElseMayCompleteIsNotKnown) {
  const std::string reads = "PollList:\n  op=22, task_works=0\n";
  EXPECT_FALSE(Requests(Counts(2, 2, 0, reads), {{kRead, 0, 5}, {kTimeout, 0, -1}})) << "time";
  EXPECT_FALSE(Requests(Counts(1, 1, 0, "PollList:\n"), {{kRead, 0, 5}})) << "a worker has it";
  EXPECT_FALSE(Requests(Counts(1, 1, 0, ""), {{kRead, 0, 5}})) << "the list is not told";
  EXPECT_FALSE(Requests(Counts(1, 2, 0, reads), {{kRead, 0, 5}, {kRead, 0, 6}})) << "not taken yet";
  EXPECT_FALSE(Requests(Counts(5, 5, 4, reads), {{kRead, 0, 5}})) << "places were used again";
  EXPECT_FALSE(Requests(Counts(1, 1, 0, reads), {{kRead, 1, 0}})) << "a file by its index";
  EXPECT_FALSE(Requests(Counts(1, 1, 0, reads), {{kWrite, 0, 5}})) << "it was overwritten";
  const RingCounts two = Counts(2, 2, 0, reads + "  op=22, task_works=0\n");
  EXPECT_FALSE(Requests(two, {{kRead, 0, 5}})) << "its place was used again";
}

}  // namespace
}  // namespace hangscope

// Rings as the kernel writes them, on memory of our own with a writer that stands for the kernel.
#include "cpu/perf_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/clock.h"

namespace hangscope {
namespace {

// A record: header, then words that each carry its number. One that mixes two is found out.
constexpr uint32_t kRecordType = PERF_RECORD_SAMPLE;

// Writes as the kernel does: reserves, writes the words, publishes the head.
class SimulatedRing {
 public:
  explicit SimulatedRing(uint64_t capacity_bytes)
      : words_(capacity_bytes / 8), capacity_(capacity_bytes) {}

  PerfPages pages() { return {&control_, reinterpret_cast<const char*>(words_.data()), capacity_}; }

  void WriteBackward(uint64_t number, uint16_t size) {
    ReserveBackward(number, size);
    PublishBackward();
  }
  // As a record during whose writing an interrupt comes.
  void ReserveBackward(uint64_t number, uint16_t size) {
    reserved_ -= size;
    Put(reserved_, number, kRecordType, size);
  }
  // Pairs with BackwardRingReader's loads of data_head.
  void PublishBackward() { __atomic_store_n(&control_.data_head, reserved_, __ATOMIC_RELEASE); }

  bool WriteForward(uint64_t number, uint16_t size, uint32_t type = kRecordType) {
    // Pairs with DrainForwardRing's store of data_tail.
    const uint64_t tail = __atomic_load_n(&control_.data_tail, __ATOMIC_ACQUIRE);
    if (reserved_ + size - tail > capacity_) return false;
    Put(reserved_, number, type, size);
    reserved_ += size;
    __atomic_store_n(&control_.data_head, reserved_, __ATOMIC_RELEASE);
    return true;
  }
  void PutWord(uint64_t position, uint64_t word) {
    __atomic_store_n(&words_[position % capacity_ / 8], word, __ATOMIC_RELAXED);
  }
  // As a ring that has been running for long.
  void StartAt(uint64_t head) {
    reserved_ = head;
    control_.data_head = head;
    control_.data_tail = head;
  }
  uint64_t reserved() const { return reserved_; }

 private:
  void Put(uint64_t position, uint64_t number, uint32_t type, uint16_t size) {
    // The last word first: a header that is there before its record must do no harm.
    for (uint64_t at = size - 8u; at > 0; at -= 8) PutWord(position + at, number);
    const perf_event_header header{type, 0, size};
    uint64_t word;
    std::memcpy(&word, &header, 8);
    PutWord(position, word);
  }

  perf_event_mmap_page control_{};
  std::vector<uint64_t> words_;
  const uint64_t capacity_;
  uint64_t reserved_ = 0;
};

// The numbers of the records; a record that is not one, or mixes two, fails the test.
std::vector<uint64_t> Numbers(const std::string& records) {
  std::vector<uint64_t> numbers;
  for (size_t at = 0; at < records.size();) {
    perf_event_header header;
    std::memcpy(&header, records.data() + at, sizeof(header));
    if (header.type != kRecordType || header.size < 16 || header.size > records.size() - at) {
      ADD_FAILURE() << "no record at byte " << at << " of " << records.size() << ": type "
                    << header.type << ", size " << header.size;
      return numbers;
    }
    uint64_t first = 0;
    std::memcpy(&first, records.data() + at + 8, 8);
    for (size_t word = 16; word < header.size; word += 8) {
      uint64_t other = 0;
      std::memcpy(&other, records.data() + at + word, 8);
      if (other != first) {
        ADD_FAILURE() << "a record mixes " << first << " and " << other;
        return numbers;
      }
    }
    numbers.push_back(first);
    at += header.size;
  }
  return numbers;
}

bool Consecutive(const std::vector<uint64_t>& numbers) {
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] != numbers[i - 1] + 1) return false;
  }
  return true;
}

// As many bytes as a record with that number has: any multiple of 8.
uint16_t SizeOf(uint64_t number) {
  return static_cast<uint16_t>(16 + 8 * ((number * 2654435761u >> 7) % 20));
}
constexpr uint64_t kLargest = 16 + 8 * 19;

PerfRing Read(SimulatedRing& simulated) {
  SystemClock clock;
  PerfRing ring;
  BackwardRingReader(simulated.pages()).Read(clock, &ring);
  return ring;
}

TEST(BackwardRing, HoldsNothingBeforeTheFirstRecord) {
  SimulatedRing simulated(64 << 10);
  const PerfRing ring = Read(simulated);
  EXPECT_EQ(ring.head, 0u);
  EXPECT_EQ(ring.records, "");
  EXPECT_EQ(ring.discarded_bytes, 0u);
  EXPECT_FALSE(ring.lost_before);
  EXPECT_GT(ring.taken, 0);
}

TEST(BackwardRing, GivesTheOldestFirst) {
  SimulatedRing simulated(64 << 10);
  for (uint64_t number = 1; number <= 10; ++number) simulated.WriteBackward(number, SizeOf(number));
  const PerfRing ring = Read(simulated);
  EXPECT_EQ(Numbers(ring.records), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(ring.head, ring.records.size());
  EXPECT_EQ(ring.capacity_bytes, 64u << 10);
  EXPECT_FALSE(ring.lost_before);
}

TEST(BackwardRing, AccountsForEveryByteOfAFullOne) {
  SimulatedRing simulated(64 << 10);
  uint64_t written = 0;
  for (uint64_t number = 1; number <= 5000; ++number) {
    simulated.WriteBackward(number, SizeOf(number));
    written += SizeOf(number);
  }
  const PerfRing ring = Read(simulated);
  const std::vector<uint64_t> numbers = Numbers(ring.records);
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.back(), 5000u);
  EXPECT_TRUE(Consecutive(numbers));
  EXPECT_EQ(ring.head, written);
  EXPECT_TRUE(ring.lost_before);
  EXPECT_EQ(ring.records.size() + ring.discarded_bytes, ring.capacity_bytes);
  // A quarter may be in flight in a ring as small as this one, and one record is cut at the old
  // end.
  EXPECT_GE(ring.records.size(), ring.capacity_bytes * 3 / 4 - kLargest);
}

TEST(BackwardRing, LeavesWhatIsWrittenButNotPublished) {
  SimulatedRing simulated(1 << 20);
  uint64_t number = 0;
  while (-simulated.reserved() < 3 << 20) {
    ++number;
    simulated.WriteBackward(number, SizeOf(number));
  }
  const uint64_t newest = number;
  // Interrupts nest records behind one that is not finished, as many as there may be.
  const uint64_t published = simulated.reserved();
  while (published - simulated.reserved() < kInFlightBytes - kLargest) {
    ++number;
    simulated.ReserveBackward(number, SizeOf(number));
  }
  const std::vector<uint64_t> numbers = Numbers(Read(simulated).records);
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.back(), newest);
  EXPECT_TRUE(Consecutive(numbers));
}

TEST(BackwardRing, CountsIn64Bits) {
  SimulatedRing simulated(64 << 10);
  simulated.StartAt(-(uint64_t{1} << 32) + 24);
  for (uint64_t number = 1; number <= 3; ++number) simulated.WriteBackward(number, 16);
  const PerfRing ring = Read(simulated);
  EXPECT_EQ(ring.head, (uint64_t{1} << 32) + 24);
  EXPECT_TRUE(ring.lost_before);
}

TEST(BackwardRing, GivesNothingFromBeforeItsBegin) {
  SimulatedRing simulated(64 << 10);
  SystemClock clock;
  BackwardRingReader reader(simulated.pages());
  PerfRing ring;
  for (uint64_t number = 1; number <= 5; ++number) simulated.WriteBackward(number, 64);
  reader.Begin();
  reader.Read(clock, &ring);
  EXPECT_EQ(ring.head, 0u);
  EXPECT_EQ(ring.records, "");
  for (uint64_t number = 6; number <= 9; ++number) simulated.WriteBackward(number, 64);
  reader.Read(clock, &ring);
  EXPECT_EQ(ring.head, 4 * 64u);
  EXPECT_EQ(Numbers(ring.records), (std::vector<uint64_t>{6, 7, 8, 9}));
  EXPECT_FALSE(ring.lost_before);
}

// Several rings end at one instant, though one is copied after the other.
TEST(BackwardRing, EndsWhereItsHeadWasNoted) {
  SystemClock clock;
  SimulatedRing simulated(64 << 10);
  BackwardRingReader reader(simulated.pages());
  for (uint64_t number = 1; number <= 3; ++number) simulated.WriteBackward(number, SizeOf(number));
  reader.NoteHead(clock);
  const TimeNs noted = clock.Monotonic();
  for (uint64_t number = 4; number <= 6; ++number) simulated.WriteBackward(number, SizeOf(number));
  PerfRing ring;
  reader.Read(clock, &ring);
  EXPECT_EQ(Numbers(ring.records), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(ring.head, ring.records.size());
  EXPECT_LE(ring.taken, noted);
  reader.Read(clock, &ring);  // it was noted for one
  EXPECT_EQ(Numbers(ring.records), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(BackwardRing, StopsAtWhatIsNoRecord) {
  for (const uint64_t header :
       {uint64_t{0}, uint64_t{7} << 48, uint64_t{20} << 48, uint64_t{0xfff8} << 48}) {
    SimulatedRing simulated(64 << 10);
    for (uint64_t number = 1; number <= 9; ++number) simulated.WriteBackward(number, 64);
    simulated.PutWord(simulated.reserved() + 4 * 64, header);
    const PerfRing ring = Read(simulated);
    EXPECT_EQ(Numbers(ring.records), (std::vector<uint64_t>{6, 7, 8, 9})) << header;
    EXPECT_EQ(ring.discarded_bytes, 5 * 64u) << header;
  }
}

// A writer at full speed, in bursts that are published together: whatever is read was written, is
// whole and has no hole, and two looks agree with the heads that they say.
TEST(BackwardRing, IsReadWhileItIsWritten) {
  constexpr uint64_t kCapacity = 512 << 10;
  SimulatedRing simulated(kCapacity);
  std::atomic<uint64_t> written = 0;
  const std::jthread writer([&](std::stop_token stop) {
    std::minstd_rand random(1);
    for (uint64_t number = 0; !stop.stop_requested();) {
      const uint64_t burst = random() % 16 == 0 ? random() % 40 : 1;
      for (uint64_t i = 0; i < burst; ++i) {
        ++number;
        simulated.ReserveBackward(number, SizeOf(number));
      }
      simulated.PublishBackward();
      written.store(number, std::memory_order_relaxed);
    }
  });
  SystemClock clock;
  BackwardRingReader reader(simulated.pages());
  PerfRing ring;
  uint64_t last_newest = 0, last_head = 0;
  int looks_with_records = 0;
  const TimeNs end = clock.Monotonic() + kSecond / 2;
  for (int look = 0; looks_with_records < 100 || clock.Monotonic() < end; ++look) {
    const uint64_t at_least = written.load(std::memory_order_relaxed);
    reader.Read(clock, &ring);
    ASSERT_EQ(ring.records.size() + ring.discarded_bytes, std::min(ring.head, kCapacity));
    if (ring.records.empty()) continue;
    const std::vector<uint64_t> numbers = Numbers(ring.records);
    ASSERT_FALSE(numbers.empty());
    ASSERT_TRUE(Consecutive(numbers)) << "a hole in look " << look;
    ASSERT_GE(numbers.back(), at_least) << "the newest is missing";
    if (last_newest > 0) {  // as many bytes as the heads say lie between the newest of both looks
      uint64_t between = 0;
      for (uint64_t number = last_newest + 1; number <= numbers.back(); ++number)
        between += SizeOf(number);
      ASSERT_EQ(ring.head - last_head, between);
    }
    last_newest = numbers.back();
    last_head = ring.head;
    ++looks_with_records;
  }
}

TEST(ForwardRing, IsEmptiedAndCountsWhatTheKernelLost) {
  SimulatedRing simulated(4 << 10);
  simulated.StartAt((uint64_t{1} << 32) - 40);
  for (uint64_t number = 1; number <= 5; ++number) ASSERT_TRUE(simulated.WriteForward(number, 32));
  ASSERT_TRUE(simulated.WriteForward(7, 48, PERF_RECORD_LOST));
  std::string records = "";
  const ForwardRingCounts counts = DrainForwardRing(simulated.pages(), 1 << 20, &records);
  EXPECT_EQ(Numbers(records), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(counts.lost_records, 7u);
  EXPECT_EQ(counts.dropped_records, 0u);
  DrainForwardRing(simulated.pages(), 1 << 20, &records);
  EXPECT_EQ(Numbers(records).size(), 5u) << "the same records twice";
}

TEST(ForwardRing, MakesRoomForTheKernelAndKeepsItsBound) {
  SimulatedRing simulated(4 << 10);
  std::string records;
  ForwardRingCounts all;
  for (uint64_t number = 1; number <= 1000; ++number) {
    ASSERT_TRUE(simulated.WriteForward(number, 64)) << number;
    const ForwardRingCounts counts = DrainForwardRing(simulated.pages(), 6400, &records);
    all.dropped_records += counts.dropped_records;
  }
  EXPECT_EQ(Numbers(records).size(), 100u);
  EXPECT_EQ(all.dropped_records, 900u);
}

TEST(ForwardRing, EndsAtWhatIsNoRecord) {
  SimulatedRing simulated(4 << 10);
  ASSERT_TRUE(simulated.WriteForward(1, 64));
  ASSERT_TRUE(simulated.WriteForward(2, 64));
  simulated.PutWord(64, 0);
  std::string records;
  DrainForwardRing(simulated.pages(), 1 << 20, &records);
  EXPECT_EQ(Numbers(records), (std::vector<uint64_t>{1}));
}

TEST(ForwardRing, IsReadWhileItIsWritten) {
  SimulatedRing simulated(16 << 10);
  constexpr uint64_t kRecords = 100'000;
  const std::jthread writer([&](std::stop_token stop) {
    for (uint64_t number = 1; number <= kRecords && !stop.stop_requested();) {
      if (simulated.WriteForward(number, SizeOf(number))) {
        ++number;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t last = 0;
  while (last < kRecords) {
    std::string records;
    DrainForwardRing(simulated.pages(), 1 << 20, &records);
    for (const uint64_t number : Numbers(records)) ASSERT_EQ(number, ++last);
    if (records.empty()) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace hangscope

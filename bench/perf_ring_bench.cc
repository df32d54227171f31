// What it takes to read two full rings of 16 MiB, as a snapshot does, by size of their records:
//
//   Memcpy          the same bytes, copied into memory that was there: the floor
//   MemcpyToNew     into new memory, as everybody must who keeps what he took
//   Read            BackwardRingReader into memory that was there
//   ReadToNew       into new memory: what CpuRecorder::Take does
//
// records:0 is the mix of a program that makes system calls and switches (40 to 112 bytes).
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/clock.h"
#include "cpu/perf_ring.h"

namespace hangscope::bench {
namespace {

constexpr uint64_t kCapacity = 16 << 20;
constexpr size_t kRings = 2;

// A full ring, written backward as the kernel does.
class FullRing {
 public:
  explicit FullRing(uint16_t record_bytes) : bytes_(kCapacity) {
    constexpr uint16_t kMix[] = {40, 112, 40, 80, 64, 120, 64, 120};
    uint64_t head = 0;
    for (size_t i = 0; head < kCapacity; ++i) {
      const uint16_t size = record_bytes != 0 ? record_bytes : kMix[i % std::size(kMix)];
      if (head + size > kCapacity) break;
      head += size;
      const perf_event_header header{PERF_RECORD_SAMPLE, 0, size};
      std::memcpy(bytes_.data() + (kCapacity - head), &header, sizeof(header));
    }
    control_.data_head = -head;
  }
  PerfPages pages() { return {&control_, bytes_.data(), kCapacity}; }

 private:
  perf_event_mmap_page control_{};
  std::vector<char> bytes_;
};

std::vector<FullRing> Rings(uint16_t record_bytes) {
  return std::vector<FullRing>(kRings, FullRing(record_bytes));
}

void Count(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kRings * kCapacity));
}

void Memcpy(benchmark::State& state) {
  std::vector<FullRing> rings = Rings(0);
  std::vector<char> copy(kRings * kCapacity);
  for (auto _ : state) {
    for (size_t i = 0; i < kRings; ++i)
      std::memcpy(copy.data() + i * kCapacity, rings[i].pages().data, kCapacity);
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
  Count(state);
}

void MemcpyToNew(benchmark::State& state) {
  std::vector<FullRing> rings = Rings(0);
  for (auto _ : state) {
    std::vector<std::string> copies;
    for (FullRing& ring : rings) copies.emplace_back(ring.pages().data, kCapacity);
    benchmark::DoNotOptimize(copies.data());
  }
  Count(state);
}

void ReadRings(benchmark::State& state, bool into_new) {
  std::vector<FullRing> rings = Rings(static_cast<uint16_t>(state.range(0)));
  std::vector<BackwardRingReader> readers;
  for (FullRing& ring : rings) readers.emplace_back(ring.pages());
  SystemClock clock;
  std::vector<PerfRing> taken(kRings);
  for (auto _ : state) {
    if (into_new) taken = std::vector<PerfRing>(kRings);
    for (size_t i = 0; i < kRings; ++i) readers[i].Read(clock, &taken[i]);
    benchmark::DoNotOptimize(taken.data());
  }
  if (taken[0].records.size() < kCapacity * 9 / 10) state.SkipWithError("the ring was not read");
  Count(state);
}
void Read(benchmark::State& state) { ReadRings(state, false); }
void ReadToNew(benchmark::State& state) { ReadRings(state, true); }

BENCHMARK(Memcpy)->Unit(benchmark::kMillisecond);
BENCHMARK(MemcpyToNew)->Unit(benchmark::kMillisecond);
BENCHMARK(Read)->ArgName("records")->Arg(0)->Arg(40)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(ReadToNew)->ArgName("records")->Arg(0)->Arg(40)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hangscope::bench

// The least that a recorder of a 16-byte event can do on x86-64: read the clock, store four words,
// publish a head. It is no recorder: interrupted by a signal's writer it mixes records, it cannot
// be switched off, its times wrap, and it is not found after the process died.
#ifndef HANGSCOPE_BENCH_RECORD_FLOOR_H
#define HANGSCOPE_BENCH_RECORD_FLOOR_H

#include <cstdint>

struct FloorRing {
  static constexpr uint32_t kCapacity = 1024;

  alignas(64) uint64_t head = 0;
  alignas(64) uint32_t records[kCapacity][4] = {};
};

inline thread_local FloorRing floor_ring __attribute__((tls_model("initial-exec")));

__attribute__((always_inline)) static inline void RecordFloor(FloorRing* ring, uint32_t id,
                                                              uint32_t a, uint32_t b) {
  const uint64_t head = ring->head;
  volatile uint32_t* const record = ring->records[head % FloorRing::kCapacity];
  record[0] = static_cast<uint32_t>(__builtin_ia32_rdtsc());
  record[1] = id;
  record[2] = a;
  record[3] = b;
  // pairs with a reader's load of the head
  __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

#endif

// Writes a scope into a FakeTarget as a program on this machine would, one step of the protocol
// (abi/record.h) after the other, and keeps its own ledger of what it wrote.
#ifndef HANGSCOPE_TESTS_FAKES_SCOPE_WRITER_H
#define HANGSCOPE_TESTS_FAKES_SCOPE_WRITER_H

#include <cstddef>
#include <cstring>
#include <string>

#include "fakes/fake_target.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"

namespace hangscope {

class ScopeWriter {
 public:
  ScopeWriter(FakeTarget* target, uint32_t cores, uint32_t capacity, uint32_t word_bytes = 8)
      : target_(target) {
    header_.magic[0] = HANGSCOPE_MAGIC0;
    header_.magic[1] = HANGSCOPE_MAGIC1;
    header_.major = HANGSCOPE_ABI_MAJOR;
    header_.header_bytes = sizeof header_;
    header_.word_bytes = static_cast<uint8_t>(word_bytes);
    header_.record_bytes = 16;
    header_.features = HANGSCOPE_FEATURE_NESTING | HANGSCOPE_FEATURE_MASK;
    header_.core_count = cores;
    header_.ring_capacity = capacity;
    header_.rings_at = sizeof header_;
    header_.ring_stride = static_cast<uint32_t>(sizeof(hangscope_ring)) + capacity * 16;
    header_.scope_bytes = header_.rings_at + cores * header_.ring_stride;
    header_.clock_kind = HANGSCOPE_CLOCK_SHARED;
    header_.clock_hz = 1'000'000'000;
    header_.boots = 1;
    target->Set(std::string(header_.scope_bytes, '\0'));
    PutHeader();
    for (uint32_t core = 0; core < cores; ++core) {
      Put(core, offsetof(hangscope_ring, mask), 0x7fffffffu);
      Put(core, offsetof(hangscope_ring, ticks), 1u);
      Put(core, offsetof(hangscope_ring, state), uint32_t{HANGSCOPE_RING_LIVE});
    }
  }

  hangscope_header& header() { return header_; }
  void PutHeader() {
    header_.check = HANGSCOPE_CHECK_SEED;
    for (size_t i = 0; i < HANGSCOPE_CHECKED_BYTES; ++i) {
      header_.check =
          (header_.check ^ reinterpret_cast<const uint8_t*>(&header_)[i]) * HANGSCOPE_CHECK_PRIME;
    }
    std::memcpy(target_->memory.data(), &header_, sizeof header_);
  }

  // Step 1: reserves a record, and says which.
  uint64_t Reserve(uint32_t core) {
    const uint64_t sequence = Begun(core);
    SetBegun(core, sequence + 1);
    return sequence;
  }
  // Step 2: whether the slot is taken now; if not, the record is refused.
  bool Take(uint32_t core, uint64_t sequence) {
    if (hangscope_is_busy(Get(core, Slot(sequence))) != 0) {
      const uint32_t before = Get(core, offsetof(hangscope_ring, refused));
      Put(core, offsetof(hangscope_ring, refused), before + 1);
      Put(core, offsetof(hangscope_ring, refused_tickets) + 4 * (before % 8),
          static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1u);
      return false;
    }
    Put(core, Slot(sequence), HANGSCOPE_MARK_TAKEN);
    return true;
  }
  // Steps 3 and 4.
  void Finish(uint32_t core, uint64_t sequence, uint32_t id, uint64_t time, uint32_t first = 0,
              uint32_t second = 0) {
    Put(core, Slot(sequence) + 4, static_cast<uint32_t>(time));
    Put(core, Slot(sequence) + 8, first);
    Put(core, Slot(sequence) + 12, second);
    Put(core, Slot(sequence), static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) + id);
  }
  uint64_t Write(uint32_t core, uint32_t id, uint64_t time, uint32_t first = 0,
                 uint32_t second = 0) {
    const uint64_t sequence = Reserve(core);
    if (Take(core, sequence)) Finish(core, sequence, id, time, first, second);
    return sequence;
  }

  uint64_t Begun(uint32_t core) const {
    if (header_.word_bytes == 8)
      return (Get(core, 0) | uint64_t{Get(core, 4)} << 32) >> HANGSCOPE_TICKET_SHIFT;
    return hangscope_begun(Get(core, 0), Get(core, 4), header_.ring_capacity);
  }
  void SetBegun(uint32_t core, uint64_t begun) {
    const uint64_t ticket = begun << HANGSCOPE_TICKET_SHIFT;
    Put(core, 0, static_cast<uint32_t>(ticket));
    Put(core, 4,
        header_.word_bytes == 8
            ? static_cast<uint32_t>(ticket >> 32)
            : static_cast<uint32_t>((begun + header_.ring_capacity - 1) / header_.ring_capacity));
  }
  void Put(uint32_t core, size_t at, uint32_t value) {
    std::memcpy(Ring(core) + at, &value, sizeof value);
  }
  uint32_t Get(uint32_t core, size_t at) const {
    uint32_t value = 0;
    std::memcpy(&value, Ring(core) + at, sizeof value);
    return value;
  }
  size_t Slot(uint64_t sequence) const {
    return sizeof(hangscope_ring) + sequence % header_.ring_capacity * 16;
  }

 private:
  char* Ring(uint32_t core) const {
    return target_->memory.data() + header_.rings_at + core * header_.ring_stride;
  }

  FakeTarget* target_;
  hangscope_header header_{};
};

}  // namespace hangscope

#endif

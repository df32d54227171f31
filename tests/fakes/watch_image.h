// Writes a scope with mailboxes, claims, details and task records into a FakeTarget as a program of
// either byte order and word size would (abi/watch.h).
#ifndef HANGSCOPE_TESTS_FAKES_WATCH_IMAGE_H
#define HANGSCOPE_TESTS_FAKES_WATCH_IMAGE_H

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "fakes/fake_target.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/watch.h"

namespace hangscope {

struct WatchImageOptions {
  uint32_t cores = 4;
  uint32_t tasks = 0;
  uint32_t nodes = 1;
  uint32_t hold_slots = 4;
  uint32_t provide_slots = 4;
  uint32_t debug_slots = 8;
  uint32_t word_bytes = 8;
  uint32_t mailbox_stride = sizeof(hangscope_mailbox);
  uint32_t watch_bytes = sizeof(hangscope_watch);
  bool frames = false;
  ByteOrder order = ByteOrder::kLittle;
};

class WatchImage {
 public:
  WatchImage() : WatchImage(WatchImageOptions()) {}
  explicit WatchImage(const WatchImageOptions& options) : o_(options) {
    const uint32_t rows = o_.cores + o_.tasks;
    claim_stride_ = (o_.hold_slots + o_.provide_slots + 1 + 1) / 2 * 8;
    detail_stride_ = static_cast<uint32_t>(sizeof(hangscope_detail) +
                                           o_.debug_slots * sizeof(hangscope_debug_value));
    const uint32_t ring_bytes = sizeof(hangscope_ring) + 8 * 16;
    tasks_at_ = sizeof(hangscope_header);
    rings_at_ = tasks_at_ + static_cast<uint32_t>(o_.tasks * sizeof(hangscope_task));
    mailboxes_at_ = rings_at_ + o_.cores * ring_bytes;
    watch_at_ = mailboxes_at_ + o_.cores * o_.mailbox_stride;
    nodes_at_ = watch_at_ + o_.watch_bytes;
    claims_at_ = nodes_at_ + static_cast<uint32_t>(o_.nodes * sizeof(hangscope_node));
    details_at_ = claims_at_ + rows * claim_stride_;
    frames_at_ = details_at_ + o_.cores * detail_stride_;
    scope_bytes_ =
        frames_at_ + (o_.frames ? rows * static_cast<uint32_t>(sizeof(hangscope_frame)) : 0);
    target.Set(std::string(scope_bytes_, '\0'));
    PutHeader(ring_bytes);
    PutWatch();
    for (uint32_t core = 0; core < o_.cores; ++core) {
      Put32(rings_at_ + core * ring_bytes + offsetof(hangscope_ring, mask), 0x7fffffffu);
      Put32(rings_at_ + core * ring_bytes + offsetof(hangscope_ring, state), HANGSCOPE_RING_LIVE);
      Put(core, offsetof(hangscope_mailbox, stack_free), HANGSCOPE_NOT_KNOWN);
      Put(core, offsetof(hangscope_mailbox, guard), HANGSCOPE_MAILBOX_GUARD ^ core);
      PutDetail(core, offsetof(hangscope_detail, stack_lowest), HANGSCOPE_NOT_KNOWN);
    }
    ring_bytes_ = ring_bytes;
  }

  // `at`: offsetof(hangscope_mailbox, ...), of a 32-bit word.
  void Put(uint32_t core, size_t at, uint32_t value) { Put32(MailboxAt(core) + at, value); }
  uint32_t Get(uint32_t core, size_t at) const {
    return Load32(target.memory.data() + MailboxAt(core) + at, o_.order);
  }
  void PutDetail(uint32_t core, size_t at, uint32_t value) {
    Put32(details_at_ + core * detail_stride_ + at, value);
  }
  uint32_t GetDetail(uint32_t core, size_t at) const {
    return Load32(target.memory.data() + details_at_ + core * detail_stride_ + at, o_.order);
  }
  uint32_t GetRing(uint32_t core, size_t at) const {
    return Load32(target.memory.data() + rings_at_ + core * ring_bytes_ + at, o_.order);
  }
  uint32_t GetWatchWord(size_t at) const {
    return Load32(target.memory.data() + watch_at_ + at, o_.order);
  }
  void PutWatchWord(size_t at, uint32_t value) { Put32(watch_at_ + at, value); }
  void PutHeaderWord(size_t at, uint32_t value) { Put32(at, value); }
  void PutNode(uint32_t node, size_t at, uint32_t value) {
    Put32(nodes_at_ + node * sizeof(hangscope_node) + at, value);
  }
  void PutTask(uint32_t index, size_t at, uint32_t value) {
    Put32(tasks_at_ + index * sizeof(hangscope_task) + at, value);
  }
  uint32_t GetTask(uint32_t index, size_t at) const {
    return Load32(target.memory.data() + tasks_at_ + index * sizeof(hangscope_task) + at, o_.order);
  }
  // A row of claims: cores, then task records. Slot: holds, then provides, then how many were lost.
  void PutClaim(uint32_t row, uint32_t slot, uint32_t value) {
    Put32(claims_at_ + row * claim_stride_ + slot * 4, value);
  }
  // `at`: offsetof(hangscope_frame, ...), of a 64-bit word.
  void PutFrame(uint32_t row, size_t at, uint64_t value) {
    const size_t to = frames_at_ + row * sizeof(hangscope_frame) + at;
    const bool little = o_.order == ByteOrder::kLittle;
    Put32(to + (little ? 0 : 4), static_cast<uint32_t>(value));
    Put32(to + (little ? 4 : 0), static_cast<uint32_t>(value >> 32));
  }
  void PutDebug(uint32_t core, uint32_t slot, uint32_t order, uint32_t value) {
    const size_t at = details_at_ + core * detail_stride_ + sizeof(hangscope_detail) +
                      slot * sizeof(hangscope_debug_value);
    Put32(at, order);
    Put32(at + 4, value);
  }
  // `at`: offsetof(hangscope_ring, ...), of a 32-bit word.
  void PutRing(uint32_t core, size_t at, uint32_t value) {
    Put32(rings_at_ + core * ring_bytes_ + at, value);
  }
  // The core has recorded so many events.
  void PutEmitted(uint32_t core, uint32_t count) {
    PutRing(core, offsetof(hangscope_ring, head), count << HANGSCOPE_TICKET_SHIFT);
  }
  void PutRunning(uint32_t core, uint32_t task) {
    Put32(rings_at_ + core * ring_bytes_ + offsetof(hangscope_ring, last_task), task);
  }

  void Wait(uint32_t core, uint32_t resource, uint32_t kind, uint64_t since) {
    Put(core, offsetof(hangscope_mailbox, wait_resource), resource);
    Put(core, offsetof(hangscope_mailbox, wait_kind), kind);
    Put(core, offsetof(hangscope_mailbox, wait_since), static_cast<uint32_t>(since));
    Put(core, offsetof(hangscope_mailbox, wait_epoch), static_cast<uint32_t>(since >> 30));
    Put(core, offsetof(hangscope_mailbox, wait_sequence),
        (Get(core, offsetof(hangscope_mailbox, wait_sequence)) + 1) | 1u);
  }
  void WaitDone(uint32_t core) {
    Put(core, offsetof(hangscope_mailbox, wait_sequence),
        (Get(core, offsetof(hangscope_mailbox, wait_sequence)) + 1) & ~1u);
  }
  void TaskWaits(uint32_t index, uint32_t task, uint32_t kind, uint32_t resource, uint32_t holder) {
    PutTask(index, offsetof(hangscope_task, task), task);
    PutTask(index, offsetof(hangscope_task, state), HANGSCOPE_TASK_WAITING);
    PutTask(index, offsetof(hangscope_task, resource), resource);
    PutTask(index, offsetof(hangscope_task, kind), kind);
    PutTask(index, offsetof(hangscope_task, holder), holder);
    PutTask(index, offsetof(hangscope_task, sequence),
            GetTask(index, offsetof(hangscope_task, sequence)) + 2);
  }
  void TaskIsReady(uint32_t index, uint32_t task) {
    PutTask(index, offsetof(hangscope_task, task), task);
    PutTask(index, offsetof(hangscope_task, state), HANGSCOPE_TASK_READY);
    PutTask(index, offsetof(hangscope_task, sequence),
            GetTask(index, offsetof(hangscope_task, sequence)) + 2);
  }
  // After changes to the words that it covers.
  void SignWatch() {
    Put32(watch_at_, Fnv(watch_at_ + 4, watch_at_ + HANGSCOPE_WATCH_CHECKED_BYTES));
  }
  void SignHeader() { Put32(offsetof(hangscope_header, check), Fnv(0, HANGSCOPE_CHECKED_BYTES)); }

  uint32_t scope_bytes() const { return scope_bytes_; }
  size_t MailboxAt(uint32_t core) const { return mailboxes_at_ + size_t{core} * o_.mailbox_stride; }

  FakeTarget target;

 private:
  void Put32(size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) {
      target.memory[at + i] =
          static_cast<char>(value >> 8 * (o_.order == ByteOrder::kLittle ? i : 3 - i));
    }
  }
  void Put16(size_t at, uint32_t value) {
    for (size_t i = 0; i < 2; ++i) {
      target.memory[at + i] =
          static_cast<char>(value >> 8 * (o_.order == ByteOrder::kLittle ? i : 1 - i));
    }
  }
  uint32_t Fnv(size_t begin, size_t end) const {
    uint32_t check = HANGSCOPE_CHECK_SEED;
    for (size_t i = begin; i < end; ++i)
      check = (check ^ static_cast<uint8_t>(target.memory[i])) * HANGSCOPE_CHECK_PRIME;
    return check;
  }
#define HANGSCOPE_HEADER(field) offsetof(hangscope_header, field)
  void PutHeader(uint32_t ring_bytes) {
    Put32(0, HANGSCOPE_MAGIC0);
    Put32(4, HANGSCOPE_MAGIC1);
    Put16(HANGSCOPE_HEADER(major), HANGSCOPE_ABI_MAJOR);
    Put16(HANGSCOPE_HEADER(minor), HANGSCOPE_ABI_MINOR);
    Put16(HANGSCOPE_HEADER(header_bytes), sizeof(hangscope_header));
    target.memory[HANGSCOPE_HEADER(word_bytes)] = static_cast<char>(o_.word_bytes);
    target.memory[HANGSCOPE_HEADER(record_bytes)] = 16;
    Put32(HANGSCOPE_HEADER(scope_bytes), scope_bytes_);
    Put32(HANGSCOPE_HEADER(core_count), o_.cores);
    Put32(HANGSCOPE_HEADER(ring_capacity), 8);
    Put32(HANGSCOPE_HEADER(rings_at), rings_at_);
    Put32(HANGSCOPE_HEADER(ring_stride), ring_bytes);
    Put32(HANGSCOPE_HEADER(mailboxes_at), mailboxes_at_);
    Put32(HANGSCOPE_HEADER(mailbox_stride), o_.mailbox_stride);
    Put32(HANGSCOPE_HEADER(task_count), o_.tasks);
    Put32(HANGSCOPE_HEADER(tasks_at), o_.tasks == 0 ? 0 : tasks_at_);
    Put32(HANGSCOPE_HEADER(task_stride), o_.tasks == 0 ? 0 : sizeof(hangscope_task));
    Put32(HANGSCOPE_HEADER(clock_kind), HANGSCOPE_CLOCK_SHARED);
    Put32(HANGSCOPE_HEADER(clock_hz) + (o_.order == ByteOrder::kLittle ? 0 : 4), 1'000'000'000u);
    Put32(HANGSCOPE_HEADER(boots), 1);
    Put32(HANGSCOPE_HEADER(watch_at), watch_at_);
    SignHeader();
  }
#undef HANGSCOPE_HEADER
  void PutWatch() {
    PutWatchWord(offsetof(hangscope_watch, watch_bytes), o_.watch_bytes);
    if (o_.frames) {
      PutWatchWord(offsetof(hangscope_watch, frames_at), frames_at_);
      PutWatchWord(offsetof(hangscope_watch, frame_stride), sizeof(hangscope_frame));
    }
    PutWatchWord(offsetof(hangscope_watch, features), HANGSCOPE_WATCH_FEATURES);
    PutWatchWord(offsetof(hangscope_watch, node_count), o_.nodes);
    PutWatchWord(offsetof(hangscope_watch, nodes_at), nodes_at_);
    PutWatchWord(offsetof(hangscope_watch, node_stride), sizeof(hangscope_node));
    PutWatchWord(offsetof(hangscope_watch, details_at), details_at_);
    PutWatchWord(offsetof(hangscope_watch, detail_stride), detail_stride_);
    PutWatchWord(offsetof(hangscope_watch, claims_at), claims_at_);
    PutWatchWord(offsetof(hangscope_watch, claim_stride), claim_stride_);
    Put16(watch_at_ + offsetof(hangscope_watch, hold_slots), o_.hold_slots);
    Put16(watch_at_ + offsetof(hangscope_watch, provide_slots), o_.provide_slots);
    PutWatchWord(offsetof(hangscope_watch, debug_slots), o_.debug_slots);
    PutWatchWord(offsetof(hangscope_watch, switches), HANGSCOPE_WATCH_FEATURES);
    SignWatch();
  }

  WatchImageOptions o_;
  uint32_t claim_stride_ = 0;
  uint32_t detail_stride_ = 0;
  uint32_t tasks_at_ = 0;
  uint32_t rings_at_ = 0;
  uint32_t ring_bytes_ = 0;
  uint32_t mailboxes_at_ = 0;
  uint32_t watch_at_ = 0;
  uint32_t nodes_at_ = 0;
  uint32_t claims_at_ = 0;
  uint32_t details_at_ = 0;
  uint32_t frames_at_ = 0;
  uint32_t scope_bytes_ = 0;
};

}  // namespace hangscope

#endif

// The AUX area of a perf event: where a hardware tracer (cs_etm, intel_pt, arm_spe) leaves its
// trace, in overwrite mode. What is known of it, and what cannot be:
//
//  * aux_head counts all bytes ever written (cs_etm, since Linux 5.5), or is an offset within the
//    area that starts over (intel_pt, arm_spe): AuxHeadKind. The latter is followed round by round:
//    where it is smaller than it was, it went round once more. Where it is not, it may still have
//    gone round: a few bytes before the place where it was are kept and compared, for a full round
//    writes over them. A tracer that writes exactly the same bytes again, or goes round several
//    times between two looks, cannot be told from one that did not, or did once: the head is a
//    lower bound then, and `head_is_at_least` says so where it shows.
//  * At the first look an area whose head is an offset has gone round if there is anything but zero
//    behind the head: the kernel gives zeroed pages.
//  * A tracer may write beyond the head that it published. The kernel asks the reader to stop the
//    event before it copies; then the time is blind and the caller says so. Where the tracer
//    publishes as it writes, the newest is copied without stopping, and what was lapped meanwhile
//    is discarded.
//
// Plain memory: works on mapped pages and on simulated ones. One thread.
#ifndef HANGSCOPE_CPU_AUX_RING_H
#define HANGSCOPE_CPU_AUX_RING_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/perf_event.h"
#include "model/window.h"

namespace hangscope {

enum class AuxHeadKind { kCountsAll, kWithinArea };

// As the kernel maps it. `head` is perf_event_mmap_page::aux_head; both outlive the reader.
struct AuxArea {
  const unsigned char* bytes = nullptr;
  uint64_t capacity = 0;  // at least 1
  const uint64_t* head = nullptr;
  AuxHeadKind head_kind = AuxHeadKind::kCountsAll;
};

struct AuxSnapshot {
  AuxRing ring;
  uint64_t begin_offset = 0;      // of ring.bytes; they end at ring.head, unless some were lapped
  uint64_t lapped_bytes = 0;      // discarded: written over while they were copied
  bool head_is_at_least = false;  // it went round more often than can be known
};

class AuxReader {
 public:
  AuxReader(const AuxArea& area, int cpu, int tid);

  // Follows the head. With kWithinArea to be called more often than the tracer can go round.
  void ReadHead();

  // A PERF_RECORD_AUX: `offset` and `size` as it has them, `flags` PERF_AUX_FLAG_*: with
  // PERF_AUX_FLAG_OVERWRITE `offset` is the end of the bytes, as the kernel writes it in overwrite
  // mode, else their begin. `since`: when the tracer began to write these, as far as known (the
  // task came on the CPU). Keeps a bounded number; older ones are forgotten. Records come in the
  // order in which they were written. Where the head starts over it is followed from record to
  // record, so that it counts rounds however seldom somebody looks; from the first such record on
  // nothing else moves it.
  void HandleRecord(TimeNs since, TimeNs time, uint64_t offset, uint64_t size, uint64_t flags,
                    std::optional<int64_t> task);

  // Records are lost: whose the bytes up to the next one are, is not known.
  void LoseRecords(TimeSpan time);

  // The newest that the area holds. `since_last`: only what came after the last snapshot. `blind`:
  // when the caller had stopped the tracer for this; from == to: it had not.
  AuxSnapshot Take(bool since_last, TimeNs now, TimeSpan blind);

  // Of the records, as far as the area still held them at the last snapshot. Where only the end of
  // a record's bytes is left, nobody knows here when they were written: it is told as an instant at
  // its end.
  std::vector<AuxSpan> held() const;
  // Bounded, too.
  const std::vector<AuxLoss>& losses() const { return losses_; }

 private:
  uint64_t Load() const;
  void Advance(uint64_t head);
  void ReadBack();
  std::optional<uint64_t> EndOfRecord(uint64_t offset, uint64_t size, uint64_t flags);
  void Lose(TimeSpan time);
  bool ReferenceChanged(uint64_t advance) const;
  void KeepReference();
  std::string Copy(uint64_t begin, uint64_t end) const;

  const AuxArea area_;
  const int cpu_;
  const int tid_;
  bool looked_ = false;
  uint64_t head_ = 0;  // all bytes, as of the last look
  bool head_is_at_least_ = false;
  std::string reference_;  // the bytes that end at reference_head_, as they were then
  uint64_t reference_head_ = 0;
  uint64_t told_until_ = 0;  // by records
  bool follows_records_ = false;
  bool records_lost_ = false;  // since the last one
  uint64_t last_taken_ = 0;    // the head at the last snapshot
  uint64_t oldest_held_ = 0;   // at the last snapshot
  TimeNs last_record_ = 0;
  std::vector<AuxSpan> spans_;
  std::vector<AuxLoss> losses_;
};

}  // namespace hangscope

#endif

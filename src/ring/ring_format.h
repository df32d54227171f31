// The bytes of a stream ring on disk; docs/format.md tells the same for readers
// in other languages.
//
//   P.0 ... P.(n-1)   segments: stream bytes and nothing else; or
//   P.0.zst ...       the same compressed: zstd frames (ring/zstd_frames.h)
//   P.current         symbolic link to the segment being written
//   P.tail            compressed rings: the newest bytes, not yet a frame
//   P.index           this file: what the segments hold
//
// A ring is bounded by N x S bytes, P.index, P.tail and the link included. It is
// cut into n = 32 segments (64 from 64 MiB on) of equal size; the one that was
// filled longest ago is used next. A plain segment that comes round again is
// overwritten in place, so that what is not yet overwritten is still history; a
// compressed one, and one that a snapshot links to, is replaced by a new file.
//
// P.index, little-endian, every field aligned to its size:
//
//   offset  bytes
//        0    128   header         IndexHeader
//      128     64   tail           IndexTail
//      192   64 n   slots          IndexSlot, one per segment
//  192+64n 16 n K   stamps         K = stamps_per_segment of IndexStamp per segment
//
// A plain segment while it is overwritten (file offsets; both parts are history):
//
//        0            length      touched_end               prev_length
//        |  new bytes  |  doubtful  |  bytes of the round before  |
//        begin_offset ->            prev_begin + file offset ->
//
// Tail and slots are aligned to their size: none crosses a page, and a writer that is
// killed has written all of it or nothing.
//
// Order of writing, and what pairs with it: the writer publishes a slot whose
// touched_end covers the bytes it is about to write (a), writes the bytes (b),
// then publishes the slot with the new length (c). A reader reads the slot, the
// bytes, then the slot again, and takes only what both slots hold: a byte that
// (b) replaced was given up by (a) before. After SIGKILL between (b) and (c) the
// doubtful part is simply not history.
//
// The tail: the writer publishes a tail of length 0 (a), writes bytes to P.tail
// (b), then publishes the new length (c); later appends only (b) and (c). Once the
// bytes are in a frame whose slot is published, the next tail begins behind them.
// A reader looks at the tail before and after reading, too.
#ifndef HANGSCOPE_RING_RING_FORMAT_H
#define HANGSCOPE_RING_RING_FORMAT_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/hash.h"
#include "base/status.h"

namespace hangscope {

static_assert(std::endian::native == std::endian::little, "the index is written in memory order");

constexpr char kIndexMagic[8] = {'H', 'S', 'R', 'I', 'N', 'G', 'I', 'X'};
constexpr uint32_t kIndexVersion = 2;
constexpr uint64_t kIndexFinished = 1;  // flag: the stream ended and the writer closed the ring
constexpr uint64_t kIndexZstd = 2;      // flag: the ring is compressed ...
constexpr uint64_t kIndexAuto = 4;      // ... where that keeps up with the stream

struct IndexHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t segment_count;
  uint32_t stamps_per_segment;
  uint64_t segment_bytes;
  uint64_t bound_bytes;  // N x S
  uint64_t run_id;       // random; a segment belongs to the run whose index names it
  TimeNs start_monotonic;
  TimeNs start_wall;  // the same instant
  uint64_t flags;
  uint64_t lost_bytes;    // never written, all in all
  int64_t lost_errno;     // of the latest such loss
  uint64_t end_offset;    // of the stream when flags or losses were last written
  char name[16];          // of the stream, NUL-padded
  uint64_t first_offset;  // of a snapshot since the last one: what lies before is not its
  uint64_t check;         // HashBytes over all before
};
static_assert(sizeof(IndexHeader) == 128);
static_assert(offsetof(IndexHeader, segment_bytes) == 24);
static_assert(offsetof(IndexHeader, check) == 120);

constexpr uint32_t kMostSegments = 65536;
constexpr uint32_t kMostStamps = 65536;             // per segment
constexpr uint64_t kMostBytes = uint64_t{1} << 60;  // of a ring; offsets of a stream may be larger

// Whether a header whose check is right describes a ring that can be; whoever reads
// one asks before using a number of it.
bool IsSane(const IndexHeader& header);

// The newest bytes of a compressed ring, as they are in P.tail.
struct IndexTail {
  uint64_t begin_offset;  // stream offset of the first byte of P.tail
  uint64_t length;
  TimeNs time;             // monotonic: the first byte arrived then
  uint64_t recent_offset;  // stream offset of the bytes that were added last ...
  TimeNs recent_time;      // ... and when they arrived
  uint64_t unused[2];
  uint64_t check;  // HashBytes over all before
};
static_assert(sizeof(IndexTail) == 64);

enum class Encoding : uint32_t { kPlain = 0, kZstd = 1 };

struct IndexSlot {
  uint64_t sequence;      // 1 for the first segment ever filled, then 2, 3 ...; 0: never used
  uint64_t begin_offset;  // stream offset of the first byte in the file
  uint64_t length;        // stream bytes of this round
  uint64_t touched_end;   // file offset from which this round has not touched the file
  uint64_t prev_begin;    // stream offset that file offset 0 had in the round before
  uint64_t prev_length;   // 0: there was no round before, or its bytes are gone
  uint32_t closed;        // 1: nothing more will be added in this round
  Encoding encoding;
  uint64_t check;  // HashBytes over all before
};
static_assert(sizeof(IndexSlot) == 64);

// What this round has written into the file so far.
constexpr uint64_t FileBytesOf(const IndexSlot& slot) {
  return slot.encoding == Encoding::kZstd ? slot.touched_end : slot.length;
}

// The bytes from `offset` on arrived at `time` or later; time 0: unused.
struct IndexStamp {
  uint64_t offset;
  TimeNs time;  // monotonic
};
static_assert(sizeof(IndexStamp) == 16);

// Seals (writer) or tests (reader) the check at the end of a header or slot.
template <typename Record>
uint64_t CheckOf(const Record& record) {
  return HashBytes({reinterpret_cast<const char*>(&record), offsetof(Record, check)});
}

constexpr int kRecordReadTries = 16;

// Reads a slot or the tail. One that its writer is just changing is read again; false,
// and *record is empty, where it is damaged or not there.
template <typename Record>
bool ReadRecord(File& index, uint64_t offset, Record* record) {
  for (int tries = 0; tries < kRecordReadTries; ++tries) {
    auto got = index.ReadAt(offset, {reinterpret_cast<char*>(record), sizeof *record});
    if (got.value_or(0) < sizeof *record) break;
    if (record->check == CheckOf(*record)) return true;
  }
  *record = Record{};
  return false;
}

constexpr uint64_t kTailAt = sizeof(IndexHeader);
constexpr uint64_t SlotAt(uint32_t segment) {
  return kTailAt + sizeof(IndexTail) + sizeof(IndexSlot) * segment;
}
constexpr uint64_t StampsAt(uint32_t segment_count, uint32_t stamps_per_segment, uint32_t segment) {
  return SlotAt(segment_count) + sizeof(IndexStamp) * stamps_per_segment * segment;
}

inline std::string IndexPath(const std::string& prefix) { return prefix + ".index"; }
inline std::string CurrentPath(const std::string& prefix) { return prefix + ".current"; }
inline std::string TailPath(const std::string& prefix) { return prefix + ".tail"; }
inline std::string SegmentPath(const std::string& prefix, uint32_t segment, Encoding encoding) {
  return prefix + "." + std::to_string(segment) + (encoding == Encoding::kZstd ? ".zst" : "");
}

enum class Compress {
  kNone,
  kZstd,
  kAuto,  // zstd as long as it keeps up with the stream
};

// How N x S bytes are cut. Pure arithmetic, so that the bound can be reasoned
// about: index + tail + links + segment_count x segment_bytes <= bound_bytes.
struct RingGeometry {
  uint64_t bound_bytes = 0;
  uint32_t segment_count = 0;
  uint32_t stamps_per_segment = 0;
  uint64_t segment_bytes = 0;
  uint64_t reserve_bytes = 0;  // how far touched_end runs ahead of the writer
  Compress compress = Compress::kNone;
  uint64_t block_bytes = 0;  // stream bytes in a frame; 0: never compressed

  uint64_t index_bytes() const {
    return StampsAt(segment_count, stamps_per_segment, segment_count);
  }
};

constexpr uint64_t kSmallestRing = 64 * 1024;

// How far touched_end runs ahead in a ring of this size.
uint64_t ReserveBytes(uint64_t bound_bytes);

// `size_text` and `keep_text` are as given on the command line: "500M", "3".
// `name_bytes` is the length of the ring's file name, for the links' share.
// A ring whose segments would be too small for frames is plain under kAuto.
Result<RingGeometry> PlanRing(std::string_view size_text, std::string_view keep_text,
                              size_t name_bytes, Compress compress = Compress::kNone);

}  // namespace hangscope

#endif

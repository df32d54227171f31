// What a compressed segment holds. Any zstd reader takes it for what it is: each
// block of the stream is one zstd frame with a checksum of its own, and
// everything else is inside skippable frames (RFC 8878, 3.1.2).
//
//   offset       bytes
//        0           4   0x184D2A5D   skippable frame: says what follows
//        4           4   24 + pad     its length from here on
//        8           8   run id
//       16           8   stream offset of the first byte
//       24           4   stream bytes in the frame
//       28           4   bytes of the frame
//       32         pad   zeros, so that the next one is aligned to 8
//   32+pad           -   the zstd frame
//      ...               more of the same
//      end           4   0x184D2A5E   skippable frame: the unused rest of the file
//      end+4         4   its length from here on
//
// How a block is added, so that the file is valid zstd at every instant, after
// SIGKILL too: all of it but its first 8 bytes is written inside the unused rest,
// together with the header of the rest behind it (a); then the first 8 bytes, at
// an aligned offset, replace the header of the old rest (b). (b) pairs with any
// reader's reading of those 8 bytes.
#ifndef HANGSCOPE_RING_ZSTD_FRAMES_H
#define HANGSCOPE_RING_ZSTD_FRAMES_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hangscope {

struct FrameHead {
  uint32_t magic;
  uint32_t skip_bytes;  // 24 + pad
  uint64_t run_id;
  uint64_t begin_offset;
  uint32_t stream_bytes;
  uint32_t frame_bytes;
};
static_assert(sizeof(FrameHead) == 32);

constexpr uint64_t kSkippableHeaderBytes = 8;

// Where a block is in its segment's file.
struct FrameRef {
  uint64_t begin_offset = 0;  // of the stream
  uint32_t stream_bytes = 0;
  uint32_t frame_bytes = 0;
  uint64_t frame_at = 0;  // file offset of the zstd frame
  uint64_t next = 0;      // file offset behind it
};

// The most file bytes that a block of `stream_bytes` takes.
uint64_t LargestFramedBlock(uint64_t stream_bytes);

// The header of an unused rest of `bytes` in all (8 ... 2^32 + 7).
std::string UnusedRest(uint64_t bytes);

// `head_bytes` as read at file offset `at`; nothing if it is not the head of a
// block of this run, or contradicts itself.
std::optional<FrameRef> ParseFrameHead(std::string_view head_bytes, uint64_t at, uint64_t run_id);

// One thread each.
class FrameEncoder {
 public:
  FrameEncoder();
  ~FrameEncoder();
  // A framed block, a multiple of 8 bytes long; valid until the next call.
  // Empty: there is no memory for it.
  std::string_view Encode(uint64_t run_id, uint64_t begin_offset, std::string_view block);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::string framed_;
};

class FrameDecoder {
 public:
  FrameDecoder();
  ~FrameDecoder();
  // False unless `frame` is a whole frame of exactly `stream_bytes` with a correct
  // checksum.
  bool Decode(std::string_view frame, uint32_t stream_bytes, std::string* block);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace hangscope

#endif

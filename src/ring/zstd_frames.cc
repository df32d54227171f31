#include "ring/zstd_frames.h"

#include <zstd.h>

#include <cstring>

namespace hangscope {
namespace {

constexpr uint32_t kBlockMagic = 0x184D2A5D;
constexpr uint32_t kRestMagic = 0x184D2A5E;
constexpr uint32_t kHeadSkips = sizeof(FrameHead) - kSkippableHeaderBytes;
constexpr uint32_t kAlignment = 8;
// Of the fast levels the one that finds most in traces (docs/performance.md).
constexpr int kLevel = 3;
constexpr uint32_t kLargestFrame = 64u << 20;

}  // namespace

struct FrameEncoder::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  ~Context() { ZSTD_freeCCtx(zstd); }
};

struct FrameDecoder::Context {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  ~Context() { ZSTD_freeDCtx(zstd); }
};

uint64_t LargestFramedBlock(uint64_t stream_bytes) {
  return sizeof(FrameHead) + ZSTD_compressBound(stream_bytes) + kAlignment;
}

std::string UnusedRest(uint64_t bytes) {
  const uint32_t fields[2] = {kRestMagic, static_cast<uint32_t>(bytes - kSkippableHeaderBytes)};
  return {reinterpret_cast<const char*>(fields), sizeof fields};
}

std::optional<FrameRef> ParseFrameHead(std::string_view head_bytes, uint64_t at, uint64_t run_id) {
  FrameHead head{};
  if (head_bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, head_bytes.data(), sizeof head);
  const bool sane = head.magic == kBlockMagic && head.run_id == run_id &&
                    head.skip_bytes >= kHeadSkips && head.skip_bytes < kHeadSkips + kAlignment &&
                    head.stream_bytes > 0 && head.stream_bytes <= kLargestFrame &&
                    head.frame_bytes > 0 &&
                    head.frame_bytes <= LargestFramedBlock(head.stream_bytes);
  if (!sane) return std::nullopt;
  FrameRef ref;
  ref.begin_offset = head.begin_offset;
  ref.stream_bytes = head.stream_bytes;
  ref.frame_bytes = head.frame_bytes;
  ref.frame_at = at + kSkippableHeaderBytes + head.skip_bytes;
  ref.next = ref.frame_at + head.frame_bytes;
  return ref;
}

FrameEncoder::FrameEncoder() : context_(std::make_unique<Context>()) {
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_checksumFlag, 1);
}
FrameEncoder::~FrameEncoder() = default;

std::string_view FrameEncoder::Encode(uint64_t run_id, uint64_t begin_offset,
                                      std::string_view block) {
  // The pad goes before the frame, and its length is known only behind it: leave
  // room for the longest and begin the image where the shorter one needs it.
  constexpr size_t kFrameAt = sizeof(FrameHead) + kAlignment;
  framed_.resize(kFrameAt + ZSTD_compressBound(block.size()));
  const size_t frame_bytes = ZSTD_compress2(context_->zstd, framed_.data() + kFrameAt,
                                            framed_.size() - kFrameAt, block.data(), block.size());
  if (ZSTD_isError(frame_bytes) != 0) return {};  // no memory
  const uint32_t pad = static_cast<uint32_t>((kAlignment - frame_bytes % kAlignment) % kAlignment);
  const FrameHead head = {kBlockMagic,
                          kHeadSkips + pad,
                          run_id,
                          begin_offset,
                          static_cast<uint32_t>(block.size()),
                          static_cast<uint32_t>(frame_bytes)};
  char* begin = framed_.data() + kFrameAt - pad - sizeof head;
  std::memcpy(begin, &head, sizeof head);
  std::memset(begin + sizeof head, 0, pad);
  return {begin, sizeof head + pad + frame_bytes};
}

FrameDecoder::FrameDecoder() : context_(std::make_unique<Context>()) {}
FrameDecoder::~FrameDecoder() = default;

bool FrameDecoder::Decode(std::string_view frame, uint32_t stream_bytes, std::string* block) {
  // Both say how much it is, and memory is taken only if they agree: a damaged
  // segment may be full of heads that announce the most.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != stream_bytes) return false;
  block->resize(stream_bytes);
  const size_t got =
      ZSTD_decompressDCtx(context_->zstd, block->data(), block->size(), frame.data(), frame.size());
  return ZSTD_isError(got) == 0 && got == stream_bytes;
}

}  // namespace hangscope

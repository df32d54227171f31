// The frames in which a CoreSight formatter mixes the traces of several CPUs: whose is how much of
// a piece of a sink? Counts only; libopencsd decodes. Source: Arm IHI 0029, "Trace formatter".
//
//   byte   0       1      2       3     ...   14      15
//        | id/d | data | id/d | data | ... | id/d | extra |
//
// An even byte with bit 0 set says which trace id, bits 7 to 1, the data behind it has. With bit 0
// clear it is data itself, and its own bit 0 is kept in `extra`, at bit n for byte 2n. At the same
// place `extra` says of an id that it holds only from the byte after next on: the one behind it is
// still of the id before. The id goes on into the next frame. Id 0 is nobody's: padding.
//
// A frame of four frame synchronisations (ff ff ff 7f) is a barrier: Linux's drivers write it over
// the oldest frame of a sink whose older bytes were overwritten. Nothing is known of the id behind
// it.
#ifndef HANGSCOPE_HWTRACE_CORESIGHT_FRAMES_H
#define HANGSCOPE_HWTRACE_CORESIGHT_FRAMES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace hangscope {

// The bytes of a frame.
constexpr size_t kCoreSightFrameBytes = 16;
// Of bytes in front of which no frame said whose they are.
constexpr uint8_t kUnknownTraceId = 0xff;

struct CoreSightFrames {
  struct OfId {
    uint64_t bytes = 0;  // of its trace
    // of the frames that have its first and its last byte, in the piece
    uint64_t first_frame = 0;
    uint64_t last_frame = 0;
  };
  std::map<uint8_t, OfId> ids;  // with kUnknownTraceId, and 0: padding
  uint64_t bytes = 0;           // of the piece, cut frames with them
  bool begins_with_barrier = false;
  uint64_t barriers = 0;
};

// Reads a piece in as many parts as the caller likes; memory does not grow. What is no whole frame
// at the end is not looked into.
class CoreSightFrameReader {
 public:
  void Add(std::string_view bytes);
  const CoreSightFrames& frames() const { return frames_; }

 private:
  void TakeFrame(const char* frame);
  void Count(uint8_t id);

  CoreSightFrames frames_;
  uint8_t id_ = kUnknownTraceId;
  CoreSightFrames::OfId* counted_ = nullptr;  // of id_
  uint64_t frame_at_ = 0;
  std::array<char, kCoreSightFrameBytes> begun_;  // a frame of which not all has come
  size_t begun_bytes_ = 0;
};

}  // namespace hangscope

#endif

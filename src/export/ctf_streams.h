// The stream files of a CTF trace: one for each track, packets one behind the other.
//
//   | magic, uuid, stream class, track | begin, end, content size, packet size, discarded, CPU,
//   name | events ... |
//     header, 32 bytes                   context, 44 bytes and the track's name with its NUL
//                                        4 + 8 bytes and fields each
//
// Numbers are little-endian and aligned to bytes; sizes are in bits. ctf_metadata.cc says the same
// in TSDL.
#ifndef HANGSCOPE_EXPORT_CTF_STREAMS_H
#define HANGSCOPE_EXPORT_CTF_STREAMS_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

using CtfUuid = std::array<uint8_t, 16>;

// One thread. A packet of a track is kept in memory until it is full: 64 KiB, less where there are
// many tracks, so that all together take 16 MiB; an event that is larger gets a packet of its size.
// Times of a track only grow.
class CtfStreams {
 public:
  static constexpr size_t kEventHeaderBytes = 12;

  // `files` outlives it; `folder` exists.
  CtfStreams(FileSystem& files, std::string folder, const CtfUuid& uuid);

  // `name` is valid as CtfString makes it, and not empty.
  void AddTrack(uint32_t cpu, const std::string& name);
  size_t size() const { return tracks_.size(); }
  // The time before which nothing can be written any more.
  uint64_t last(size_t track) const { return tracks_[track].last; }
  bool has_packets(size_t track) const {
    return tracks_[track].used != 0 || tracks_[track].offset != 0;
  }

  // Where an event of `bytes` bytes, its header included, is to be written; 8 bytes more may be
  // overwritten there. Null: the packet before could not be written, failure() says why.
  char* Begin(size_t track, uint64_t time, size_t bytes) {
    Track& to = tracks_[track];
    if ((to.used == 0 || to.capacity - to.used < bytes) && !MakeRoom(track, time, bytes))
      return nullptr;
    to.last = time;
    char* at = to.buffer.get() + to.used;
    to.used += bytes;
    return at;
  }
  const Status& failure() const { return failure_; }
  // `count` more were discarded, between `from` and `to`: a packet without events lies there, whose
  // count is higher by them. Readers take the end of a packet and that of the next one for the time
  // in which the difference arose.
  Status Discard(size_t track, uint64_t from, uint64_t to, uint64_t count);
  // Writes the rest; a track without any gets a packet without events from `from` to `to`, to be
  // known of.
  Status Finish(uint64_t from, uint64_t to);

  uint64_t bytes() const { return bytes_; }  // written

 private:
  struct Track {
    uint32_t cpu = 0;
    std::string name;
    std::unique_ptr<char[]> buffer;  // capacity + 8 bytes
    size_t capacity = 0;
    size_t used = 0;     // 0: no packet is begun
    uint64_t begin = 0;  // of the packet
    uint64_t last = 0;
    uint64_t discarded = 0;
    uint64_t offset = 0;  // in the file
  };
  struct OpenFile {
    size_t track = 0;
    std::unique_ptr<File> file;
  };

  size_t HeadBytes(const Track& track) const;
  size_t PacketBytes() const;
  bool MakeRoom(size_t track, uint64_t time, size_t bytes);
  void BeginPacket(Track* track, uint64_t time, size_t bytes);
  Status EndPacket(size_t track, uint64_t time);
  Status WriteEmpty(size_t track, uint64_t from, uint64_t to);
  Result<File*> FileOf(size_t track);

  FileSystem& files_;
  const std::string folder_;
  const CtfUuid uuid_;
  std::vector<Track> tracks_;
  std::array<OpenFile, 64> open_;  // a thousand tracks are more than a process may have files open
  uint64_t bytes_ = 0;
  Status failure_;
};

}  // namespace hangscope

#endif

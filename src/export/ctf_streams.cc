#include "export/ctf_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace hangscope {
namespace {

static_assert(std::endian::native == std::endian::little,
              "written in this machine's order, which the metadata says is little");

constexpr uint32_t kMagic = 0xc1fc1fc1;
constexpr uint32_t kStreamClass = 0;
constexpr size_t kMemory = size_t{16} << 20;
constexpr size_t kMostPacket = size_t{64} << 10;
constexpr size_t kLeastPacket = size_t{1} << 10;
constexpr size_t kFixedHead = 4 + 16 + 4 + 8 + 5 * 8 + 4;
constexpr size_t kSlack = 8;

template <typename T>
char* Put(char* at, const T& value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

uint64_t AddUpTo(uint64_t a, uint64_t b) {
  return b > std::numeric_limits<uint64_t>::max() - a ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

CtfStreams::CtfStreams(FileSystem& files, std::string folder, const CtfUuid& uuid)
    : files_(files), folder_(std::move(folder)), uuid_(uuid) {}

void CtfStreams::AddTrack(uint32_t cpu, const std::string& name) {
  Track track;
  track.cpu = cpu;
  track.name = name;
  tracks_.push_back(std::move(track));
}

size_t CtfStreams::HeadBytes(const Track& track) const {
  return kFixedHead + track.name.size() + 1;
}

size_t CtfStreams::PacketBytes() const {
  return std::clamp(kMemory / std::max<size_t>(tracks_.size(), 1), kLeastPacket, kMostPacket);
}

void CtfStreams::BeginPacket(Track* track, uint64_t time, size_t bytes) {
  const size_t head = HeadBytes(*track);
  const size_t usual = std::max(PacketBytes(), head);
  const size_t needed = head + bytes;
  // What one large event needed is given back.
  if (track->buffer == nullptr || track->capacity < needed ||
      (track->capacity > usual && needed <= usual)) {
    track->capacity = std::max(usual, needed);
    track->buffer = std::make_unique_for_overwrite<char[]>(track->capacity + kSlack);
  }
  track->begin = std::max(time, track->last);
  track->used = head;
}

bool CtfStreams::MakeRoom(size_t track, uint64_t time, size_t bytes) {
  if (tracks_[track].used != 0) failure_ = EndPacket(track, tracks_[track].last);
  if (failure_.ok()) BeginPacket(&tracks_[track], time, bytes);
  return failure_.ok();
}

Status CtfStreams::EndPacket(size_t track, uint64_t time) {
  Track& from = tracks_[track];
  from.last = std::max(from.last, time);
  const uint64_t bits = uint64_t{from.used} * 8;
  char* at = Put(from.buffer.get(), kMagic);
  at = Put(at, uuid_);
  at = Put(at, kStreamClass);
  at = Put(at, uint64_t{track});
  for (const uint64_t word : {from.begin, from.last, bits, bits, from.discarded})
    at = Put(at, word);
  at = Put(at, from.cpu);
  std::memcpy(at, from.name.c_str(), from.name.size() + 1);
  auto file = FileOf(track);
  if (!file.ok()) return file.status();
  size_t written = 0;
  const Status status = (*file)->WriteAt(from.offset, {from.buffer.get(), from.used}, &written);
  from.offset += from.used;
  bytes_ += written;
  from.used = 0;
  return status;
}

Status CtfStreams::WriteEmpty(size_t track, uint64_t from, uint64_t to) {
  BeginPacket(&tracks_[track], from, 0);
  tracks_[track].last = tracks_[track].begin;
  return EndPacket(track, to);
}

Status CtfStreams::Discard(size_t track, uint64_t from, uint64_t to, uint64_t count) {
  Status status;
  if (tracks_[track].used != 0) {
    status = EndPacket(track, from);
  } else if (tracks_[track].offset == 0 || tracks_[track].last < from) {
    // of the first packet of all readers do not know since when its count counts
    status = WriteEmpty(track, from, from);
  }
  if (!status.ok()) return status;
  tracks_[track].discarded = AddUpTo(tracks_[track].discarded, count);
  return WriteEmpty(track, from, to);
}

Status CtfStreams::Finish(uint64_t from, uint64_t to) {
  for (size_t track = 0; track < tracks_.size(); ++track) {
    Status status;
    if (tracks_[track].used != 0) status = EndPacket(track, tracks_[track].last);
    if (!has_packets(track)) status = WriteEmpty(track, from, to);
    if (!status.ok()) return status;
  }
  return {};
}

Result<File*> CtfStreams::FileOf(size_t track) {
  OpenFile& open = open_[track % open_.size()];
  if (open.file == nullptr || open.track != track) {
    auto file = files_.Open(fmt::format("{}/stream_{}", folder_, track), FileSystem::Mode::kCreate);
    if (!file.ok()) return file.status();
    open = {track, std::move(*file)};
  }
  return open.file.get();
}

}  // namespace hangscope

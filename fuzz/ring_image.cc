#include "ring_image.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fuzz.h"
#include "ring/ring_format.h"

namespace hangscope::fuzz {
namespace {

constexpr uint8_t kLater = 0x80;
constexpr char kLeaveCheck = '\xff';

template <typename Record>
void Seal(std::string* bytes, size_t at) {
  Record record;
  if (at + sizeof record > bytes->size()) return;
  std::memcpy(&record, bytes->data() + at, sizeof record);
  if ((*bytes)[at + offsetof(Record, check)] == kLeaveCheck) return;
  record.check = CheckOf(record);
  std::memcpy(bytes->data() + at, &record, sizeof record);
}

void SealIndex(std::string* index) {
  IndexHeader header{};
  std::memcpy(&header, index->data(), std::min(index->size(), sizeof header));
  Seal<IndexHeader>(index, 0);
  Seal<IndexTail>(index, kTailAt);
  for (uint32_t k = 0; k < header.segment_count && SlotAt(k) < index->size(); ++k)
    Seal<IndexSlot>(index, SlotAt(k));
}

std::string PathOf(const Part& part) {
  switch (part.kind) {
    case PartKind::kIndex:
      return IndexPath(kRingPrefix);
    case PartKind::kPlain:
      return SegmentPath(kRingPrefix, part.segment, Encoding::kPlain);
    case PartKind::kZstd:
      return SegmentPath(kRingPrefix, part.segment, Encoding::kZstd);
    case PartKind::kTail:
      return TailPath(kRingPrefix);
    case PartKind::kScript:
      break;
  }
  return {};
}

}  // namespace

std::vector<Part> ParseParts(std::string_view input) {
  std::vector<Part> parts;
  Choices choices(input);
  while (!choices.empty()) {
    const auto kind = choices.Take<uint8_t>();
    Part part;
    part.kind = static_cast<PartKind>((kind & ~kLater) % kPartKinds);
    part.later = (kind & kLater) != 0;
    part.segment = choices.Take<uint8_t>();
    const auto length = choices.Take<uint16_t>();
    part.bytes = choices.ReadBytes(length);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string JoinParts(const std::vector<Part>& parts) {
  std::string input;
  for (const Part& part : parts) {
    const auto length = static_cast<uint16_t>(std::min<size_t>(part.bytes.size(), UINT16_MAX));
    input += static_cast<char>(static_cast<uint8_t>(part.kind) | (part.later ? kLater : 0));
    input += static_cast<char>(part.segment);
    input.append(reinterpret_cast<const char*>(&length), sizeof length);
    input.append(part.bytes, 0, length);
  }
  return input;
}

size_t RingImage::bytes() const {
  size_t sum = 0;
  for (const auto* some : {&files, &later}) {
    for (const auto& [path, bytes] : *some) sum += bytes.size();
  }
  return sum;
}

RingImage MakeRing(std::string_view input) {
  RingImage ring;
  for (const Part& part : ParseParts(input)) {
    std::string& bytes = part.kind == PartKind::kScript
                             ? ring.script
                             : (part.later ? ring.later : ring.files)[PathOf(part)];
    bytes += part.bytes;
  }
  for (auto* some : {&ring.files, &ring.later}) {
    const auto index = some->find(IndexPath(kRingPrefix));
    if (index != some->end()) SealIndex(&index->second);
  }
  return ring;
}

}  // namespace hangscope::fuzz

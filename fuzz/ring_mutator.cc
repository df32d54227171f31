// Mutates one part of a ring at a time, so that a byte more in one file does not
// turn the others into noise; and the numbers of an index as numbers.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>

#include "fuzz.h"
#include "ring_image.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace hangscope::fuzz {
namespace {

using Random = std::minstd_rand;

uint64_t NumberAt(const std::string& bytes, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// Another number of the same file, one near it, or one at the edge of something.
uint64_t SomeNumber(const std::string& bytes, uint64_t old, Random* random) {
  constexpr uint64_t kEdges[] = {
      0,     1,          2,          32,         64,         255,        4096,       65535,
      65536, UINT32_MAX, 1ull << 32, 1ull << 40, 1ull << 60, 1ull << 62, 1ull << 63, UINT64_MAX};
  const uint64_t near = (*random)() % 17 - 8;
  switch ((*random)() % 4) {
    case 0:
      return kEdges[(*random)() % std::size(kEdges)] + (near & 1);
    case 1:
      return old + near;
    case 2:
      return NumberAt(bytes, (*random)() % (bytes.size() / 8) * 8) + near;
    default:
      return old ^ uint64_t { 1 } << (*random)() % 64;
  }
}

void MutateNumber(std::string* bytes, Random* random) {
  const size_t at = (*random)() % (bytes->size() / 8) * 8;
  const uint64_t old = NumberAt(*bytes, at);
  const uint64_t fresh = SomeNumber(*bytes, old, random);
  const bool half = (*random)() % 4 == 0;
  std::memcpy(bytes->data() + at + (half ? 4 : 0), &fresh, half ? 4 : 8);
}

void MutateBytes(std::string* bytes, size_t room) {
  const size_t size = bytes->size();
  bytes->resize(size + std::min<size_t>(room, 4096));
  bytes->resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes->data()), size, bytes->size()));
}

void Mutate(std::vector<Part>* parts, size_t room, Random* random) {
  if (parts->empty()) parts->emplace_back();
  Part& part = (*parts)[(*random)() % parts->size()];
  const bool records = part.kind == PartKind::kIndex || part.kind == PartKind::kZstd;
  switch ((*random)() % 16) {
    case 0:
      part.later = !part.later;
      break;
    case 1:
      part.segment = static_cast<uint8_t>((*random)() % 5);
      break;
    case 2:
      part.kind = static_cast<PartKind>((*random)() % kPartKinds);
      break;
    case 3:
      if (part.bytes.size() <= room) parts->push_back(Part(part));
      break;
    case 4:
      if (parts->size() > 1) parts->erase(parts->begin() + (&part - parts->data()));
      break;
    default:
      if (records && part.bytes.size() >= 8 && (*random)() % 4 != 0)
        MutateNumber(&part.bytes, random);
      else if (room > 0 || !part.bytes.empty())
        MutateBytes(&part.bytes, room);
      break;
  }
}

size_t Put(const std::string& input, uint8_t* data, size_t max_size) {
  const size_t size = std::min(input.size(), max_size);
  std::memcpy(data, input.data(), size);
  return size;
}

}  // namespace
}  // namespace hangscope::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace hangscope::fuzz;
  Random random(seed);
  std::vector<Part> parts = ParseParts({reinterpret_cast<const char*>(data), size});
  const size_t room = max_size - std::min(max_size, JoinParts(parts).size() + 4);
  Mutate(&parts, room, &random);
  return Put(JoinParts(parts), data, max_size);
}

// Parts of two rings, by turns.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t max_size, unsigned seed) {
  using namespace hangscope::fuzz;
  Random random(seed);
  std::vector<Part> parts = ParseParts({reinterpret_cast<const char*>(first), first_size});
  for (Part& part : ParseParts({reinterpret_cast<const char*>(second), second_size})) {
    if (random() % 2 == 0) continue;
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& p) {
      return p.kind == part.kind && p.segment == part.segment && p.later == part.later;
    });
    if (same != parts.end() && random() % 4 != 0)
      *same = std::move(part);
    else
      parts.push_back(std::move(part));
  }
  return Put(JoinParts(parts), out, max_size);
}

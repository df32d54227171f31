// The files of a ring as one input: a sequence of parts, each
//
//   1 byte   kind, + 0x80: what the file becomes later, while a reader has it open
//   1 byte   of a segment: its number
//   2 bytes  length, little-endian; a longer one than is left means the rest
//   -        the bytes
//
// Parts of the same file follow one another in it. The checks in an index are put
// right, or else no mutation would get past them; one that begins with 0xff stays
// as it is, so that damage is seen, too.
#ifndef HANGSCOPE_FUZZ_RING_IMAGE_H
#define HANGSCOPE_FUZZ_RING_IMAGE_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope::fuzz {

enum class PartKind : uint8_t { kIndex, kPlain, kZstd, kTail, kScript };
constexpr uint8_t kPartKinds = 5;

struct Part {
  PartKind kind = PartKind::kScript;
  bool later = false;
  uint8_t segment = 0;
  std::string bytes;
};

std::vector<Part> ParseParts(std::string_view input);
std::string JoinParts(const std::vector<Part>& parts);

struct RingImage {
  using Files = std::map<std::string, std::string>;
  Files files;
  Files later;         // those that change
  std::string script;  // choices of whoever reads

  size_t bytes() const;
};

constexpr const char* kRingPrefix = "ring/fuzz";
RingImage MakeRing(std::string_view input);

}  // namespace hangscope::fuzz

#endif

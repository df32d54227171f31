// Checksums and hashes. FNV-1a, 64 bits: small and good enough for index checks and for telling
// machine states apart. Not for anything an adversary chooses.
// Source: Fowler, Noll, Vo, the constants of the 64-bit variant.
#ifndef HANGSCOPE_BASE_HASH_H
#define HANGSCOPE_BASE_HASH_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hangscope {

constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;

constexpr uint64_t HashBytes(std::string_view bytes, uint64_t hash = kHashSeed) {
  for (const char byte : bytes) {
    hash ^= static_cast<uint8_t>(byte);
    hash *= 0x100000001b3u;
  }
  return hash;
}

// Mixes one word into a hash (the finaliser of splitmix64 around an xor).
constexpr uint64_t HashWord(uint64_t word, uint64_t hash = kHashSeed) {
  uint64_t mixed = hash ^ (word + 0x9e3779b97f4a7c15u);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

constexpr std::array<uint32_t, 256> kCrcOfByte = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    table[byte] = crc;
  }
  return table;
}();

// CRC-32 of IEEE 802.3, as zlib's crc32(): `crc` is that of the bytes before, 0 at the beginning.
constexpr uint32_t Crc32(std::string_view bytes, uint32_t crc = 0) {
  crc = ~crc;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kCrcOfByte[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

}  // namespace hangscope

#endif

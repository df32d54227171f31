// FNV-1a, 64 bits: small and good enough for index checks and for telling
// machine states apart. Not for anything an adversary chooses.
// Source: Fowler, Noll, Vo, the constants of the 64-bit variant.
#ifndef HANGSCOPE_BASE_HASH_H
#define HANGSCOPE_BASE_HASH_H

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

}  // namespace hangscope

#endif

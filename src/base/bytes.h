// Numbers in bytes of either order, as another machine left them.
#ifndef HANGSCOPE_BASE_BYTES_H
#define HANGSCOPE_BASE_BYTES_H

#include <bit>
#include <cstdint>
#include <cstring>

namespace hangscope {

enum class ByteOrder { kLittle, kBig };

constexpr uint16_t Reversed(uint16_t number) { return __builtin_bswap16(number); }
constexpr uint32_t Reversed(uint32_t number) { return __builtin_bswap32(number); }
constexpr uint64_t Reversed(uint64_t number) { return __builtin_bswap64(number); }

template <typename Number>
Number LoadNumber(const char* bytes, ByteOrder order) {
  constexpr ByteOrder kOwn =
      std::endian::native == std::endian::little ? ByteOrder::kLittle : ByteOrder::kBig;
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return order == kOwn ? number : Reversed(number);
}

inline uint16_t Load16(const char* bytes, ByteOrder order) {
  return LoadNumber<uint16_t>(bytes, order);
}
inline uint32_t Load32(const char* bytes, ByteOrder order) {
  return LoadNumber<uint32_t>(bytes, order);
}
inline uint64_t Load64(const char* bytes, ByteOrder order) {
  return LoadNumber<uint64_t>(bytes, order);
}

}  // namespace hangscope

#endif

// Numbers in bytes of either order, as another machine left them.
#ifndef HANGSCOPE_BASE_BYTES_H
#define HANGSCOPE_BASE_BYTES_H

#include <cstdint>

namespace hangscope {

enum class ByteOrder { kLittle, kBig };

template <typename Number>
Number LoadNumber(const char* bytes, ByteOrder order) {
  Number number = 0;
  for (unsigned i = 0; i < sizeof(Number); ++i) {
    const unsigned at = order == ByteOrder::kLittle ? static_cast<unsigned>(sizeof(Number)) - 1 - i : i;
    number = static_cast<Number>(uint64_t{number} << 8 | static_cast<uint8_t>(bytes[at]));
  }
  return number;
}

inline uint16_t Load16(const char* bytes, ByteOrder order) { return LoadNumber<uint16_t>(bytes, order); }
inline uint32_t Load32(const char* bytes, ByteOrder order) { return LoadNumber<uint32_t>(bytes, order); }
inline uint64_t Load64(const char* bytes, ByteOrder order) { return LoadNumber<uint64_t>(bytes, order); }

}  // namespace hangscope

#endif

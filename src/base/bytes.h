// Numbers in bytes of either order, as another machine left them; and values in bytes, for another
// process of this program.
#ifndef HANGSCOPE_BASE_BYTES_H
#define HANGSCOPE_BASE_BYTES_H

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

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

inline void Store32(char* bytes, uint32_t number, ByteOrder order) {
  number = LoadNumber<uint32_t>(reinterpret_cast<const char*>(&number), order);
  std::memcpy(bytes, &number, sizeof number);
}

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Nothing where the bytes are fewer.
template <typename T>
std::optional<T> ValueOf(std::string_view bytes) {
  T value;
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// A number of this machine at `offset` of an object; 0 where that ends before.
template <typename Number>
Number NumberAt(std::string_view object, size_t offset) {
  if (offset > object.size()) return {};
  return ValueOf<Number>(object.substr(offset)).value_or(Number{});
}

}  // namespace hangscope

#endif

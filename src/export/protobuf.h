// Protocol Buffers' wire format, as far as writing it goes: a message is its fields one after the
// other, each a number and a type, then the value (protobuf.dev, "Encoding").
#ifndef HANGSCOPE_EXPORT_PROTOBUF_H
#define HANGSCOPE_EXPORT_PROTOBUF_H

#include <cstdint>
#include <string>
#include <string_view>

namespace hangscope {

class ProtobufMessage {
 public:
  // int32, int64, uint32, uint64, bool, enumerations; a negative number takes ten bytes.
  void Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
  }
  // A string (UTF-8), bytes.
  void Text(uint32_t field, std::string_view text) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(text.size());
    bytes_ += text;
  }
  void Message(uint32_t field, const ProtobufMessage& message) { Text(field, message.bytes_); }

  void Clear() { bytes_.clear(); }
  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace hangscope

#endif

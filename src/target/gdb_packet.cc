#include "target/gdb_packet.h"

#include <fmt/format.h>

#include "base/numbers.h"

namespace hangscope {
namespace {

constexpr int kTries = 3;
// what a count of repetitions is added to, so that it can be printed
constexpr int kLeastRepeat = 29;

uint8_t Checksum(std::string_view data) {
  unsigned sum = 0;
  for (const char c : data) sum += static_cast<uint8_t>(c);
  return static_cast<uint8_t>(sum);
}

}  // namespace

std::string FrameGdbPacket(std::string_view data) {
  return fmt::format("${}#{:02x}", data, Checksum(data));
}

std::optional<uint8_t> GdbHexByte(std::string_view two) {
  return two.size() == 2 ? ParseHex<uint8_t>(two) : std::nullopt;
}

std::optional<std::string> BytesOfGdbHex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    const auto byte = GdbHexByte(text.substr(0, 2));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return text.empty() ? std::optional(bytes) : std::nullopt;
}

GdbPacketKind KindOfGdbPacket(std::string_view packet) {
  if (packet.size() < 3) return GdbPacketKind::kAnswer;
  const bool has_number = GdbHexByte(packet.substr(1, 2)).has_value();
  switch (packet[0]) {
    case 'T':
    case 'S':
      return has_number ? GdbPacketKind::kStop : GdbPacketKind::kAnswer;
    case 'W':
    case 'X':
      return has_number ? GdbPacketKind::kEnd : GdbPacketKind::kAnswer;
    case 'O':
      return BytesOfGdbHex(packet.substr(1)) ? GdbPacketKind::kConsole : GdbPacketKind::kAnswer;
    case 'F':
      return packet.find(',') != std::string_view::npos ? GdbPacketKind::kRequest
                                                        : GdbPacketKind::kAnswer;
    default:
      return GdbPacketKind::kAnswer;
  }
}

std::optional<std::string> ExpandGdbPacket(std::string_view raw) {
  std::string data;
  for (size_t i = 0; i < raw.size(); ++i) {
    const bool has_next = i + 1 < raw.size();
    if (raw[i] == '}' && has_next) {
      data.push_back(static_cast<char>(raw[++i] ^ 0x20));
    } else if (raw[i] == '*' && has_next && !data.empty()) {
      const int count = static_cast<uint8_t>(raw[++i]) - kLeastRepeat;
      if (count > 0) data.append(static_cast<size_t>(count), data.back());
    } else {
      data.push_back(raw[i]);
    }
    if (data.size() > GdbPacketReader::kLongest) return std::nullopt;
  }
  return data;
}

Status GdbPacketReader::Byte(char* byte, TimeNs deadline) {
  switch (bytes_.Next(byte, deadline)) {
    case ByteChannel::Outcome::kDone:
      return {};
    case ByteChannel::Outcome::kLate:
      return Status::Io(
          fmt::format("{} does not answer; is it one, and does nobody else use it?", name_));
    case ByteChannel::Outcome::kClosed:
      break;
  }
  return Status::Io(fmt::format("{} has closed the connection", name_));
}

// What comes before is an acknowledgement, or left over.
Status GdbPacketReader::SkipToPacket(TimeNs deadline) {
  for (size_t skipped = 0; skipped <= kLongest; ++skipped) {
    char c = '\0';
    if (Status status = Byte(&c, deadline); !status.ok()) return status;
    if (c == '$') return {};
  }
  return Status::Corrupt(fmt::format(
      "{} sends no packet but other bytes without an end; is it a debug server?", name_));
}

Status GdbPacketReader::ReadRaw(std::string* raw, bool* sound, TimeNs deadline) {
  for (char c = '\0';;) {
    if (Status status = Byte(&c, deadline); !status.ok()) return status;
    if (c == '#') break;
    raw->push_back(c);
    if (raw->size() > kLongest)
      return Status::Corrupt(fmt::format("{} sends a packet without an end", name_));
  }
  char digits[2];
  for (char& digit : digits) {
    if (Status status = Byte(&digit, deadline); !status.ok()) return status;
  }
  *sound = GdbHexByte({digits, 2}) == Checksum(*raw);
  return {};
}

Result<std::string> GdbPacketReader::Next(TimeNs deadline) {
  for (int tries = 0; tries < kTries; ++tries) {
    std::string raw;
    bool sound = false;
    if (Status status = SkipToPacket(deadline); !status.ok()) return status;
    if (Status status = ReadRaw(&raw, &sound, deadline); !status.ok()) return status;
    (void)channel_.Send(sound ? "+" : "-", deadline);  // whether it arrived the next read tells
    if (!sound) continue;
    if (auto data = ExpandGdbPacket(raw)) return *data;
    return Status::Corrupt(
        fmt::format("{} sends a packet that repeats its characters without an end", name_));
  }
  return Status::Corrupt(fmt::format("{} sends packets whose checksums are wrong", name_));
}

}  // namespace hangscope

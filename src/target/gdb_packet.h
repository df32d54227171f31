// Packets of GDB's remote serial protocol, over any channel: $DATA#CC, where DATA may have } before
// an escaped character and * before a count of repetitions, and is acknowledged by + or -.
//
// Protocol: https://sourceware.org/gdb/current/onlinedocs/gdb.html/Remote-Protocol.html
#ifndef HANGSCOPE_TARGET_GDB_PACKET_H
#define HANGSCOPE_TARGET_GDB_PACKET_H

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "target/byte_channel.h"

namespace hangscope {

// "$m0,4#fd"
std::string FrameGdbPacket(std::string_view data);
// "7f" -> 127; nothing where these are not two hexadecimal digits.
std::optional<uint8_t> GdbHexByte(std::string_view two);
// What a packet is to somebody who has asked for something: servers send news unasked, before,
// between and in place of answers.
enum class GdbPacketKind {
  kAnswer,
  kStop,     // "T05thread:01;", "S02": the target has stopped
  kEnd,      // "W00", "X0b": the target has ended
  kConsole,  // "O48690a": it, or the server, prints something
  kRequest,  // "Fwrite,1,2000,5": the target asks the host for a system call
};
// Memory never looks like the others: no hexadecimal number begins with one of TSWXO, nor has a
// comma in it.
GdbPacketKind KindOfGdbPacket(std::string_view packet);
// The bytes that a text of hexadecimal digits stands for; nothing where it is none.
std::optional<std::string> BytesOfGdbHex(std::string_view text);
// Undoes escapes and repetitions; nothing where that would be longer than any packet.
std::optional<std::string> ExpandGdbPacket(std::string_view raw);

// One thread. After a failure the stream is out of step.
class GdbPacketReader {
 public:
  // Bytes of a packet, or between two, at most.
  static constexpr size_t kLongest = 1u << 20;

  // `name`: whose, for messages.
  GdbPacketReader(std::string name, ByteChannel& channel)
      : name_(std::move(name)), channel_(channel), bytes_(channel) {}

  // The next packet, acknowledged; one with a wrong checksum is asked for again, a few times.
  Result<std::string> Next(TimeNs deadline);

 private:
  Status Byte(char* byte, TimeNs deadline);
  Status SkipToPacket(TimeNs deadline);
  // Up to the #, and whether the checksum behind it is right.
  Status ReadRaw(std::string* raw, bool* sound, TimeNs deadline);

  const std::string name_;
  ByteChannel& channel_;
  ByteReader bytes_;
};

}  // namespace hangscope

#endif

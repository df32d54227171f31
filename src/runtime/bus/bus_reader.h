// Calls over a bus of D-Bus that have come back to the process which made them, from its memory.
//
// Little is known of where libraries keep what, but what a message looks like: it is as it was on
// the wire. What comes from the bus names its sender, what goes there does not. GLib reads each
// message into the memory of the one before, so the one that is there came last; a connection of it
// has, in this order, the number of the last message sent, a table, its name on the bus, and the
// bus's number. libdbus keeps each message as long as somebody has it, and often longer.
#ifndef HANGSCOPE_RUNTIME_BUS_BUS_READER_H
#define HANGSCOPE_RUNTIME_BUS_BUS_READER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proc/proc_text.h"
#include "proc/process_memory.h"

namespace hangscope {

enum class BusLibrary { kGlib, kLibdbus };

struct BusMessage {
  static constexpr uint8_t kCall = 1;
  uint8_t type = 0;
  bool wants_answer = false;
  uint32_t serial = 0;
  std::string path, interface, member, destination, sender;
};

// `bytes` begin with it; nothing: they do not look like one of this machine's byte order.
std::optional<BusMessage> ParseBusMessage(std::string_view bytes);

// The last message that the process has sent over a bus is a call that has come to itself, and no
// answer has come.
bool CalledItself(BusLibrary library, const std::vector<MemoryMapping>& mappings,
                  const ReadMemory& read);

}  // namespace hangscope

#endif

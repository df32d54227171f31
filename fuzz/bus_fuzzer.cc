// Messages of D-Bus in the memory of a process, damaged in any way: what is read stays within it.
#include <cstring>
#include <string>
#include <vector>

#include "fuzz.h"
#include "runtime/bus/bus_reader.h"

namespace hangscope::fuzz {

void FuzzBus(std::string_view input) {
  constexpr uint64_t kHeap = 64 << 20;
  if (const auto message = ParseBusMessage(input)) {
    FUZZ_REQUIRE(message->serial != 0 && message->type >= BusMessage::kCall);
    for (const std::string* text : {&message->path, &message->interface, &message->member,
                                    &message->destination, &message->sender})
      FUZZ_REQUIRE(text->size() <= input.size());
  }
  MemoryMapping heap;
  heap.begin = kHeap, heap.end = kHeap + input.size();
  heap.readable = heap.writable = true;
  heap.path = "[heap]";
  const ReadMemory read = [&](uint64_t address, void* into, size_t bytes) {
    const uint64_t at = address - kHeap;
    if (at > input.size() || bytes > input.size() - at) return false;
    if (bytes > 0) std::memcpy(into, input.data() + at, bytes);
    return true;
  };
  for (const BusLibrary library : {BusLibrary::kGlib, BusLibrary::kLibdbus})
    CalledItself(library, {heap}, read);
}

}  // namespace hangscope::fuzz

// A device that is simulated in this program's memory: three threads that pass blocks on. The last one stops
// to give the room back when it is told to, and then each waits for another one.
#ifndef HOST_WATCHER_DEVICE_H
#define HOST_WATCHER_DEVICE_H

#include <cstddef>
#include <cstdint>

// Begins to work; `blocks` until it is done, or hangs.
void StartDevice(uint32_t blocks, bool hangs);
// Whether all blocks have arrived.
bool DeviceIsDone();

// Its memory, as a host would see it: what its cores say of themselves lies in there.
const char* DeviceMemory();
size_t DeviceMemoryBytes();

#endif

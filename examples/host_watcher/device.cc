#include "device.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

namespace {

// What a block of the device waits for: numbers that are the same for all who use them.
constexpr uintptr_t kRaw = 1;
constexpr uintptr_t kCooked = 2;
constexpr uintptr_t kRoom = 3;
#define DEVICE_CHANNELS(NAME) NAME(1, "raw") NAME(2, "cooked") NAME(3, "room")
HANGSCOPE_NAMED(device_channels, HANGSCOPE_CATALOG_RESOURCE, DEVICE_CHANNELS);

constexpr unsigned kSlots = 4;
sem_t raw, cooked, room;
std::atomic<uint32_t> arrived{0};
uint32_t wanted = 0;
bool hangs_in_the_middle = false;

void Wait(sem_t* semaphore, uintptr_t channel) {
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, channel);
  while (sem_wait(semaphore) != 0) {
  }
  HANGSCOPE_WAIT_DONE();
}

void Begin(const char* name, uintptr_t provides) {
  pthread_setname_np(pthread_self(), name);
  HANGSCOPE_PROVIDES(provides);
  hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);
}

void Read() {
  Begin("reader", kRaw);
  for (uint32_t i = 0; i < wanted; ++i) {
    HANGSCOPE_WAYPOINT_NAMED("ROOW", "wait for room");
    Wait(&room, kRoom);
    sem_post(&raw);
    hangscope_heartbeat();
  }
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}

void Compute() {
  Begin("compute", kCooked);
  for (uint32_t i = 0; i < wanted; ++i) {
    HANGSCOPE_WAYPOINT_NAMED("RAWW", "wait for a raw block");
    Wait(&raw, kRaw);
    usleep(1000);
    sem_post(&cooked);
    hangscope_heartbeat();
  }
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}

void Write() {
  Begin("writer", kRoom);
  for (uint32_t i = 0; i < wanted; ++i) {
    HANGSCOPE_WAYPOINT_NAMED("COOW", "wait for a cooked block");
    Wait(&cooked, kCooked);
    arrived.fetch_add(1);
    const bool forgets = hangs_in_the_middle && i >= wanted / 2;
    if (!forgets) sem_post(&room);
    hangscope_heartbeat();
  }
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}

}  // namespace

void StartDevice(uint32_t blocks, bool hangs) {
  wanted = blocks;
  hangs_in_the_middle = hangs;
  sem_init(&raw, 0, 0);
  sem_init(&cooked, 0, 0);
  sem_init(&room, 0, kSlots);
  for (void (*const stage)() : {Read, Compute, Write}) std::thread(stage).detach();
}

bool DeviceIsDone() { return arrived.load() == wanted; }

const char* DeviceMemory() { return reinterpret_cast<const char*>(hangscope_mapped_scope); }
size_t DeviceMemoryBytes() { return sizeof(hangscope_scope); }

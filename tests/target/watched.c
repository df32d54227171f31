/* A piece of a program with calls of each feature that a watcher sees; valid C11 and C++20. CALLS:
 * of which features, as bits of enum hangscope_watch_feature; the others' are not in the source. */
#ifdef DEFINES
#define HANGSCOPE_DEFINE
#endif
#include "hangscope/hangscope.h"

#if CALLS & 1
#define WAYPOINTS(...) __VA_ARGS__
#else
#define WAYPOINTS(...)
#endif
#if CALLS & 2
#define WAITS(...) __VA_ARGS__
#else
#define WAITS(...)
#endif
#if CALLS & 4
#define ASSERTS(...) __VA_ARGS__
#else
#define ASSERTS(...)
#endif
#if CALLS & 8
#define PAUSES(...) __VA_ARGS__
#else
#define PAUSES(...)
#endif
#if CALLS & 16
#define DEBUG(...) __VA_ARGS__
#else
#define DEBUG(...)
#endif
#if CALLS & 128
#define STACKS(...) __VA_ARGS__
#else
#define STACKS(...)
#endif
#if CALLS & 256
#define GUARDS(...) __VA_ARGS__
#else
#define GUARDS(...)
#endif

#if CALLS & 512
#define COUNTS(...) __VA_ARGS__
#else
#define COUNTS(...)
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct channel {
  uint32_t words[16];
  volatile uint32_t pushed;
  uint32_t taken;
  uint32_t canary;
};

struct channel channels[4];
uint32_t outside(uint32_t word);
int main_loop(uint32_t rounds);
uint32_t take(uint32_t number);
void on_trap(uint32_t cause, uint32_t pc);

uint32_t take(uint32_t number) {
  ASSERTS(const uint32_t only_asserted = number * 3;)
  ASSERTS(HANGSCOPE_ASSERT(number < 4, "channel exists");)
  ASSERTS(HANGSCOPE_ASSERT_ARGUMENT(number * 5 == only_asserted + channels[0].taken, "three times",
                                    channels[1].taken);)
  struct channel* const channel = &channels[number % 4];
  WAITS(HANGSCOPE_HOLD(channel);)
  if (channel->pushed == channel->taken) {
    WAYPOINTS(HANGSCOPE_WAYPOINT_NAMED("TKW", "take waits");)
    WAITS(HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, channel);)
    while (channel->pushed == channel->taken) {
      PAUSES(HANGSCOPE_PAUSE_POINT();)
    }
    WAITS(HANGSCOPE_WAIT_DONE();)
    WAYPOINTS(HANGSCOPE_WAYPOINT("TKD");)
  }
  COUNTS(HANGSCOPE_COUNT(channel, channel->pushed - channel->taken);)
  const uint32_t word = channel->words[channel->taken++ % 16];
  DEBUG(HANGSCOPE_DEBUG(word ^ number);)
  WAITS(HANGSCOPE_RELEASE(channel);)
  return word + outside(word);
}

int main_loop(uint32_t rounds) {
  uint32_t sum = 0;
  STACKS((void)hangscope_stack_paint((void*)channels, 64);)
  GUARDS(hangscope_guard(0, &channels[1].canary, sum); hangscope_guard_null();)
  WAITS(HANGSCOPE_PROVIDES(&channels[2]); HANGSCOPE_WAIT(&channels[3]); HANGSCOPE_WAIT_DONE();)
  WAYPOINTS(hangscope_kernel_is(rounds); hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);)
  for (uint32_t i = 0; i < rounds; i++) {
    WAYPOINTS(hangscope_heartbeat();)
    sum += take(i % 4) ^ (sum >> 3);
    DEBUG(HANGSCOPE_DEBUG(sum);)
    GUARDS(hangscope_guards_look();)
  }
  PAUSES(HANGSCOPE_PAUSE(); hangscope_resume(2);)
  STACKS(hangscope_stack_look();)
  WAITS(HANGSCOPE_PROVIDES_NO_MORE(&channels[2]);)
  return (int)sum;
}

void on_trap(uint32_t cause, uint32_t pc) {
  channels[cause % 4].canary = pc;
  ASSERTS(hangscope_hardware_fault(cause, pc, channels[0].taken);)
}

#ifdef __cplusplus
}
#endif

/* A port of a test's own for machines on which nothing is atomic but a load or a store. Each thread
 * is a core. */
#ifndef HANGSCOPE_TESTS_NO_ATOMICS_PORT_H
#define HANGSCOPE_TESTS_NO_ATOMICS_PORT_H

#include "hangscope/config.h"

extern thread_local uint32_t test_core;
extern thread_local uint32_t test_time;

#define HANGSCOPE_PORT_MASKS_INTERRUPTS
HANGSCOPE_INLINE uintptr_t hangscope_port_enter(void) { return 0; }
HANGSCOPE_INLINE void hangscope_port_leave(uintptr_t) {}

HANGSCOPE_INLINE uint32_t hangscope_port_load(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE uint32_t hangscope_port_load_acquire(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
HANGSCOPE_INLINE void hangscope_port_store(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE void hangscope_port_publish(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
/* A load, then a store, and another core may come between. */
HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  const uint32_t was = hangscope_port_load(word);
  hangscope_port_store(word, was + value);
  return was;
}
HANGSCOPE_INLINE uint32_t hangscope_port_swap(uint32_t* word, uint32_t value) {
  const uint32_t was = hangscope_port_load(word);
  hangscope_port_store(word, value);
  return was;
}
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  if (hangscope_port_load(word) != expected) return 0;
  hangscope_port_store(word, value);
  return 1;
}
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
  uint64_t* const ticket = (uint64_t*)(void*)head;
  const uint64_t was = __atomic_load_n(ticket, __ATOMIC_RELAXED);
  __atomic_store_n(ticket, was + HANGSCOPE_TICKET_STEP, __ATOMIC_RELAXED);
  return (uint32_t)was;
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t*) { return 0; }
HANGSCOPE_INLINE void hangscope_port_stores_in_order() {}
HANGSCOPE_INLINE void hangscope_port_stores_behind_atomic() {}
HANGSCOPE_INLINE void hangscope_port_loads_in_order() {}
HANGSCOPE_INLINE void hangscope_port_relax() {}
HANGSCOPE_INLINE void hangscope_port_halt() {}

#define HANGSCOPE_PORT_CORE() test_core
#define HANGSCOPE_PORT_WIDE_CLOCK 1
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_SHARED
HANGSCOPE_INLINE uint64_t hangscope_port_clock64() { return test_time; }
HANGSCOPE_INLINE uint32_t hangscope_port_now(uint32_t* epoch) { return *epoch = 0, test_time; }

#endif

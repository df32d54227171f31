/* A port of a test's own: the test says what time it is, on which core a thread runs, what a halt
 * and a round of a pause are, and what happens between any two accesses to memory that others see.
 */
#ifndef HANGSCOPE_TESTS_WATCH_PORT_H
#define HANGSCOPE_TESTS_WATCH_PORT_H

#include <atomic>

#include "hangscope/config.h"

#if TEST_WORD_BYTES == 4
/* The form of a 32-bit target. */
#undef __SIZEOF_POINTER__
#define __SIZEOF_POINTER__ 4
#endif

extern std::atomic<uint64_t> test_now;
extern thread_local uint32_t test_core;
/* Before each access: what interrupts the calling core here, or what another does meanwhile. */
void test_between();
/* An atomic add was done to `word`, which is `value` now. */
void test_added(const uint32_t* word, uint32_t value);
void test_relax();
[[noreturn]] void test_halt();

HANGSCOPE_INLINE uint32_t hangscope_port_load(const uint32_t* word) {
  test_between();
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE uint32_t hangscope_port_load_acquire(const uint32_t* word) {
  test_between();
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
HANGSCOPE_INLINE void hangscope_port_store(uint32_t* word, uint32_t value) {
  test_between();
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE void hangscope_port_publish(uint32_t* word, uint32_t value) {
  test_between();
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
#if TEST_WORD_BYTES == 4
  return __atomic_fetch_add(head, HANGSCOPE_TICKET_STEP, __ATOMIC_ACQUIRE);
#else
  return (uint32_t)__atomic_fetch_add((uint64_t*)(void*)head, HANGSCOPE_TICKET_STEP,
                                      __ATOMIC_ACQUIRE);
#endif
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  return __atomic_exchange_n(mark, HANGSCOPE_MARK_TAKEN, __ATOMIC_ACQUIRE) == HANGSCOPE_MARK_TAKEN;
}
/* ThreadSanitizer knows no fences. */
HANGSCOPE_INLINE void hangscope_port_stores_in_order() {
#ifndef __SANITIZE_THREAD__
  __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}
HANGSCOPE_INLINE void hangscope_port_stores_behind_atomic() { hangscope_port_stores_in_order(); }
HANGSCOPE_INLINE void hangscope_port_loads_in_order() {
#ifndef __SANITIZE_THREAD__
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}
HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  test_between();
  const uint32_t was = __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
  test_added(word, was + value);
  return was;
}
HANGSCOPE_INLINE uint32_t hangscope_port_swap(uint32_t* word, uint32_t value) {
  test_between();
  return __atomic_exchange_n(word, value, __ATOMIC_ACQUIRE);
}
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  test_between();
  return __atomic_compare_exchange_n(word, &expected, value, true, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE void hangscope_port_relax() { test_relax(); }
[[noreturn]] HANGSCOPE_INLINE void hangscope_port_halt() { test_halt(); }

#define HANGSCOPE_PORT_CORE() test_core
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#define HANGSCOPE_PORT_WIDE_CLOCK 0
HANGSCOPE_INLINE uint64_t hangscope_port_clock64() { return test_now; }
HANGSCOPE_INLINE uint32_t hangscope_port_clock() { return static_cast<uint32_t>(test_now); }

#endif

/* A port of a test's own: the test says what time it is, on which core a thread runs, what happens
 * between two steps, what a halt and a round of a pause are. */
#ifndef HANGSCOPE_TESTS_WATCH_PORT_H
#define HANGSCOPE_TESTS_WATCH_PORT_H

#include <atomic>

#if TEST_WORD_BYTES == 4
/* The form of a 32-bit target. */
#undef __SIZEOF_POINTER__
#define __SIZEOF_POINTER__ 4
#endif

#define HANGSCOPE_PORT_ADD_IS_PORTED
#define HANGSCOPE_PORT_SWAP_IS_PORTED
#define HANGSCOPE_PORT_RELAX_IS_PORTED
#define HANGSCOPE_PORT_HALT_IS_PORTED

extern std::atomic<uint64_t> test_now;
extern thread_local uint32_t test_core;
/* What interrupts the calling core here, if anything does. */
void test_between();
/* An atomic add was done to `word`, which is `value` now. */
void test_added(const uint32_t* word, uint32_t value);
void test_relax();
[[noreturn]] void test_halt();

HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  test_between();
  const uint32_t was = __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
  test_added(word, was + value);
  test_between();
  return was;
}
HANGSCOPE_INLINE uint32_t hangscope_port_swap(uint32_t* word, uint32_t value) {
  test_between();
  const uint32_t was = __atomic_exchange_n(word, value, __ATOMIC_ACQUIRE);
  test_between();
  return was;
}
HANGSCOPE_INLINE void hangscope_port_relax() { test_relax(); }
[[noreturn]] HANGSCOPE_INLINE void hangscope_port_halt() { test_halt(); }

#include "hangscope/port/generic.h"

#define HANGSCOPE_PORT_CORE() test_core
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#define HANGSCOPE_PORT_WIDE_CLOCK 0

HANGSCOPE_INLINE uint64_t hangscope_port_clock64() {
  test_between();
  return test_now;
}
HANGSCOPE_INLINE uint32_t hangscope_port_clock() { return static_cast<uint32_t>(test_now); }

#endif

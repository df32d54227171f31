/* A port of a test's own, as clock_port.h; and the test sees what is published and which core
 * halts. */
#ifndef HANGSCOPE_TESTS_BUS_PORT_H
#define HANGSCOPE_TESTS_BUS_PORT_H

#define HANGSCOPE_PORT_HALT_IS_PORTED
#define HANGSCOPE_PORT_PUBLISH_IS_PORTED
#include "hangscope/config.h"

[[noreturn]] void test_halts(void);
void test_publishes(const uint32_t* mark, uint32_t value); /* before it is there */

[[noreturn]] HANGSCOPE_INLINE void hangscope_port_halt(void) { test_halts(); }
HANGSCOPE_INLINE void hangscope_port_publish(uint32_t* mark, uint32_t value) {
  test_publishes(mark, value);
  __atomic_store_n(mark, value, __ATOMIC_RELEASE);
}

#include "clock_port.h"

#endif

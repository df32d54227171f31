/* A port of a test's own: the test says what time it is, and on which core it runs. */
#ifndef HANGSCOPE_TESTS_CLOCK_PORT_H
#define HANGSCOPE_TESTS_CLOCK_PORT_H

#if TEST_WORD_BYTES == 4
/* The form of a 32-bit target: a head of 20 bits, and turns that are counted beside it. */
#undef __SIZEOF_POINTER__
#define __SIZEOF_POINTER__ 4
#endif

#include "hangscope/port/generic.h"

extern uint64_t test_now;
extern uint32_t test_core;

#define HANGSCOPE_PORT_CORE() test_core
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#define HANGSCOPE_PORT_WIDE_CLOCK 0

HANGSCOPE_INLINE uint32_t hangscope_port_clock(void) { return (uint32_t)test_now; }
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) { return test_now; }

#endif

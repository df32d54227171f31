/* A port to copy: what a platform supplies, and nothing else. A test compiles it. Here: a
 * single-core microcontroller with a compiler that knows atomic instructions, and a free-running
 * timer of 32 bits at a fixed address, whose overflow interrupt counts the wraps.
 *
 * Name it on the command line: -DHANGSCOPE_PORT='"hangscope/port/example.h"'. port/riscv.h shows a
 * platform without atomic instructions, port/linux.h one with threads. */
#ifndef HANGSCOPE_PORT_EXAMPLE_H
#define HANGSCOPE_PORT_EXAMPLE_H

#include "hangscope/config.h"

/* 1. Slots: atomically enough for whoever may interrupt whom. Define
 *    HANGSCOPE_PORT_RESERVE_IS_PORTED and so on before this to bring your own. */
#include "hangscope/port/generic.h"

/* 2. Which core this is, 0 to HANGSCOPE_CORES - 1. */
#define HANGSCOPE_PORT_CORE() 0u

/* 3. The clock. HANGSCOPE_CLOCK_CYCLES or HANGSCOPE_CLOCK_TICKS: of each core;
 *    HANGSCOPE_CLOCK_SHARED: the same for all. HANGSCOPE_CLOCK_HZ, on the command line, if it is
 *    known. */
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_SHARED

#ifndef EXAMPLE_TIMER
#define EXAMPLE_TIMER 0x40000024u
#endif
extern volatile uint32_t example_timer_wraps;

/*    1 where all 64 bits are as cheap as 32: then hangscope_port_now gives the low half and, in
 *    *epoch, time >> 30. 0 otherwise: then hangscope_port_clock gives the low half, and
 *    hangscope_tick is called from the tick interrupt. */
#define HANGSCOPE_PORT_WIDE_CLOCK 0
HANGSCOPE_INLINE uint32_t hangscope_port_clock(void) {
  return *(volatile uint32_t*)(uintptr_t)EXAMPLE_TIMER;
}

/*    All 64 bits; rarely. Not torn by a wrap in between. */
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  const uint32_t wraps = example_timer_wraps;
  const uint32_t low = hangscope_port_clock();
  const uint32_t again = example_timer_wraps;
  /* A wrap in between: it is counted already, and `low` is from after it if it is small. */
  return (uint64_t)(again != wraps && low < 0x80000000u ? again : wraps) << 32 | low;
}

#endif

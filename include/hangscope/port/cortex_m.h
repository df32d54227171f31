/* Arm Cortex-M, any of them, with one core that records: privileged code in Thumb state.
 *
 * A writer masks interrupts (PRIMASK) from its reservation to its commit: cheaper than LDREX and
 * STREX, wait-free, and there on Cortex-M0, too. No writer in an NMI or a fault handler may
 * interrupt another one in the three instructions of its reservation; neither does, unless those
 * fault themselves.
 *
 * The clock is a word that counts up and wraps at 32 bits: DWT's cycle counter, which the program
 * switches on (DEMCR.TRCENA, DWT_CTRL.CYCCNTENA), or another one, as of a timer, at
 * HANGSCOPE_PORT_CLOCK_ADDRESS. Cortex-M0 has no DWT counter, and QEMU counts nothing there.
 * hangscope_tick() counts the wraps: call it at least once in a quarter of one. */
#ifndef HANGSCOPE_PORT_CORTEX_M_H
#define HANGSCOPE_PORT_CORTEX_M_H

#include "hangscope/config.h"

#if HANGSCOPE_CORES > 1
#error "hangscope/port/cortex_m.h is for one core: write a port after hangscope/port/example.h"
#endif

#define HANGSCOPE_PORT_RESERVE_IS_PORTED
#define HANGSCOPE_PORT_TAKE_IS_PORTED
#define HANGSCOPE_PORT_ADD_IS_PORTED
#define HANGSCOPE_PORT_SWAP_IS_PORTED
#define HANGSCOPE_PORT_SWAP_IF_IS_PORTED
#define HANGSCOPE_PORT_HALT_IS_PORTED
#define HANGSCOPE_PORT_ATOMICS_ORDER_STORES /* by a barrier */
#define HANGSCOPE_PORT_MASKS_INTERRUPTS

HANGSCOPE_INLINE void hangscope_port_order_stores(void) { __asm__ volatile("dmb" ::: "memory"); }

/* Returns what to give to leave. */
HANGSCOPE_INLINE uintptr_t hangscope_port_enter(void) {
  uintptr_t before;
  __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
  return before;
}
HANGSCOPE_INLINE void hangscope_port_leave(uintptr_t before) {
  __asm__ volatile("msr primask, %0" ::"r"(before) : "memory");
}

#include "hangscope/port/masked.h"

__attribute__((noreturn)) HANGSCOPE_INLINE void hangscope_port_halt(void) {
  __asm__ volatile("cpsid i" ::: "memory");
  for (;;) __asm__ volatile("wfi" ::: "memory");
}

#include "hangscope/port/generic.h"

#define HANGSCOPE_PORT_CORE() 0u

#ifndef HANGSCOPE_CLOCK_KIND
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#endif
#ifndef HANGSCOPE_PORT_CLOCK_ADDRESS
#define HANGSCOPE_PORT_CLOCK_ADDRESS 0xe0001004u
#endif

#define HANGSCOPE_PORT_WIDE_CLOCK 0
HANGSCOPE_INLINE uint32_t hangscope_port_clock(void) {
  return *(volatile uint32_t*)(uintptr_t)(HANGSCOPE_PORT_CLOCK_ADDRESS);
}

extern uint32_t hangscope_port_last_clock[2]; /* low half, wraps */
#ifdef HANGSCOPE_DEFINE
uint32_t hangscope_port_last_clock[2];
#endif
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  const uintptr_t before = hangscope_port_enter();
  const uint32_t low = hangscope_port_clock();
  const uint32_t wraps = hangscope_port_last_clock[1] + (low < hangscope_port_last_clock[0]);
  hangscope_port_last_clock[0] = low;
  hangscope_port_last_clock[1] = wraps;
  hangscope_port_leave(before);
  return (uint64_t)wraps << 32 | low;
}

#endif

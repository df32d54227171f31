/* Bare-metal RISC-V in machine mode, RV32 and RV64.
 *
 * With the A extension nothing is masked: amoadd reserves, amoswap takes, a fence publishes.
 * Without it a writer masks interrupts (mstatus.MIE) from its reservation to its commit, 15
 * instructions; one hart per ring, and no writer in an NMI.
 *
 * Cores are harts: with HANGSCOPE_CORES above 1, mhartid numbers the rings. HANGSCOPE_PORT_CORE()
 * may be given instead, for harts that do not begin at 0. The clock is mcycle;
 * HANGSCOPE_PORT_CLOCK_CSR names another CSR that counts, as "time". */
#ifndef HANGSCOPE_PORT_RISCV_H
#define HANGSCOPE_PORT_RISCV_H

#include "hangscope/config.h"

#define HANGSCOPE_PORT_RESERVE_IS_PORTED
#define HANGSCOPE_PORT_TAKE_IS_PORTED
#define HANGSCOPE_PORT_SWAP_IF_IS_PORTED
#define HANGSCOPE_PORT_ATOMICS_ORDER_STORES /* by .aq, or a fence */

#ifdef __riscv_atomic

/* What __atomic_fetch_add and __atomic_exchange_n do, with one register less each. */
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
  uint32_t was; /* of 64 bits, too: a cast would cost an instruction */
#if __riscv_xlen == 64
  __asm__ volatile("amoadd.d.aq %0, %2, %1"
                   : "=r"(was), "+A"(*(uint64_t*)(void*)head)
                   : "r"((uintptr_t)HANGSCOPE_TICKET_STEP)
                   : "memory");
#else
  __asm__ volatile("amoadd.w.aq %0, %2, %1"
                   : "=r"(was), "+A"(*head)
                   : "r"(HANGSCOPE_TICKET_STEP)
                   : "memory");
#endif
  return was;
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  /* the whole register, as amoswap.w extends it: a narrower one would be extended again */
  uintptr_t was;
  __asm__ volatile("amoswap.w.aq %0, %2, %1"
                   : "=r"(was), "+A"(*mark)
                   : "r"((uintptr_t)HANGSCOPE_MARK_TAKEN)
                   : "memory");
  return was == HANGSCOPE_MARK_TAKEN;
}
/* Once: GCC 12 makes a loop of what it calls a weak exchange. */
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  uintptr_t was;
  uintptr_t failed = 1;
  __asm__ volatile(
      "lr.w.aq %0, %2\n\t"
      "bne %0, %3, 1f\n\t"
      "sc.w %1, %4, %2\n"
      "1:"
      : "=&r"(was), "+&r"(failed), "+A"(*word)
      : "r"((intptr_t)(int32_t)expected), "r"(value) /* lr.w extends the sign */
      : "memory");
  return failed == 0;
}

#else

#define HANGSCOPE_PORT_ADD_IS_PORTED
#define HANGSCOPE_PORT_SWAP_IS_PORTED
#define HANGSCOPE_PORT_MASKS_INTERRUPTS

/* Returns what to give to leave. */
HANGSCOPE_INLINE uintptr_t hangscope_port_enter(void) {
  uintptr_t before;
  __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before)::"memory");
  return before & 8;
}
HANGSCOPE_INLINE void hangscope_port_leave(uintptr_t before) {
  __asm__ volatile("csrs mstatus, %0" ::"r"(before) : "memory");
}

HANGSCOPE_INLINE void hangscope_port_order_stores(void) {
  __asm__ volatile("fence w, w" ::: "memory");
}

#include "hangscope/port/masked.h"

#endif

/* Asleep, with nothing to wake it: a pending interrupt would end every wfi at once. */
#define HANGSCOPE_PORT_HALT_IS_PORTED
__attribute__((noreturn)) HANGSCOPE_INLINE void hangscope_port_halt(void) {
  __asm__ volatile("csrw mie, zero" ::: "memory");
  for (;;) __asm__ volatile("wfi" ::: "memory");
}

#include "hangscope/port/generic.h"

/* The registers at this very place. The compiler may have put anything else into ra and s0; the
 * call frame information of the place says where their values are then. */
#define HANGSCOPE_PORT_NOTES_FRAMES
#if __riscv_xlen == 64
#define HANGSCOPE_PORT_SAVE "sd %0, 0(%1)\n\tsd ra, 8(%1)\n\tsd sp, 16(%1)\n\tsd s0, 24(%1)"
#else
#define HANGSCOPE_PORT_SAVE "sw %0, 0(%1)\n\tsw ra, 8(%1)\n\tsw sp, 16(%1)\n\tsw s0, 24(%1)"
#endif
HANGSCOPE_INLINE void hangscope_port_note_frame(struct hangscope_frame* frame) {
  uintptr_t pc;
  __asm__ volatile("auipc %0, 0\n\t" HANGSCOPE_PORT_SAVE : "=&r"(pc) : "r"(frame) : "memory");
}

#ifndef HANGSCOPE_PORT_CLOCK_CSR
#define HANGSCOPE_PORT_CLOCK_CSR "mcycle"
#endif
#ifndef HANGSCOPE_CLOCK_KIND
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#endif

#if __riscv_xlen == 64

/* One instruction reads all of the clock, so each record's writer looks after the anchor. */
#define HANGSCOPE_PORT_WIDE_CLOCK 1
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  uint64_t now;
  __asm__ volatile("csrr %0, " HANGSCOPE_PORT_CLOCK_CSR : "=r"(now));
  return now;
}
HANGSCOPE_INLINE uint32_t hangscope_port_now(uint32_t* epoch) {
  const uint64_t now = hangscope_port_clock64();
  *epoch = (uint32_t)(now >> 30);
  return (uint32_t)now;
}

#else

#define HANGSCOPE_PORT_WIDE_CLOCK 0
HANGSCOPE_INLINE uint32_t hangscope_port_clock(void) {
  uint32_t now;
  __asm__ volatile("csrr %0, " HANGSCOPE_PORT_CLOCK_CSR : "=r"(now));
  return now;
}
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  uint32_t high;
  uint32_t low;
  uint32_t again;
  __asm__ volatile("csrr %0, " HANGSCOPE_PORT_CLOCK_CSR "h" : "=r"(high));
  __asm__ volatile("csrr %0, " HANGSCOPE_PORT_CLOCK_CSR : "=r"(low));
  __asm__ volatile("csrr %0, " HANGSCOPE_PORT_CLOCK_CSR "h" : "=r"(again));
  /* The low half wrapped in between: it did so just now, or after it was read. */
  if (again != high && low < 0x80000000u) high = again;
  return ((uint64_t)high << 32) | low;
}

#endif

#ifndef HANGSCOPE_PORT_CORE
#if HANGSCOPE_CORES > 1
HANGSCOPE_INLINE uintptr_t hangscope_port_hart(void) {
  uintptr_t hart;
  __asm__("csrr %0, mhartid" : "=r"(hart)); /* not volatile: it never changes */
  return hart;
}
#define HANGSCOPE_PORT_CORE() hangscope_port_hart()
#else
#define HANGSCOPE_PORT_CORE() 0u
#endif
#endif

#endif

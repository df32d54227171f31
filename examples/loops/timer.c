/* A hang with a live interrupt: the timer handler counts on, the loop below it does not end. */
#include "loops.h"

#define TICK_MS 1

#define MSTATUS_MIE 0x8u
#define MIE_MTIE 0x80u
#define MTVEC_VECTORED 1u

extern const char timer_vectors[];

static volatile uint32_t word;
static volatile uint32_t ticks[MAX_HARTS];

/* Called by timer_entry with all caller-saved registers saved. */
void timer_interrupt(unsigned hart) {
  ticks[hart]++;
  platform_set_timer(hart, platform_mtime() + platform_ms_to_ticks(TICK_MS));
}

static void start_timer(unsigned hart) {
  __asm__ volatile("csrw mtvec, %0" : : "r"((uintptr_t)timer_vectors + MTVEC_VECTORED));
  platform_set_timer(hart, platform_mtime() + platform_ms_to_ticks(TICK_MS));
  __asm__ volatile("csrs mie, %0" : : "r"(MIE_MTIE));
  __asm__ volatile("csrs mstatus, %0" : : "r"(MSTATUS_MIE));
}

SPIN_FUNCTION static void spin_under_timer(void) {
  while (word == 0) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    start_timer(hart);
    spin_under_timer();
  }
}

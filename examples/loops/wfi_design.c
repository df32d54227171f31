/* No hang: hart 0 works for ever, the others sleep until it needs them, which is never. */
#include "loops.h"

#define MIE_MSIE 0x8u

static volatile uint32_t jobs;

/* mstatus.MIE stays 0: a software interrupt would end wfi without a trap. */
SPIN_FUNCTION static void wait_for_work(void) {
  __asm__ volatile("csrs mie, %0" : : "r"(MIE_MSIE));
  while (jobs == 0) {
    __asm__ volatile("wfi");
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == 0) {
    work_for_ever(hart);
  }
  wait_for_work();
}

/* Every hart ends asleep with no interrupt enabled: the trace falls silent. */
#include "loops.h"

SPIN_FUNCTION static void sleep_for_ever(void) {
  __asm__ volatile("csrw mie, zero");
  for (;;) {
    __asm__ volatile("wfi");
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  sleep_for_ever();
}

/* Hart 2 spins (the last hart, where there are fewer than three); all others park in wfi. */
#include "loops.h"

#define SPINNING_HART 2u

static volatile uint32_t partner_ready;

SPIN_FUNCTION static void wait_for_partner(void) {
  while (partner_ready == 0) {
  }
}

void hart_main(unsigned hart) {
  unsigned last = platform_hart_count() - 1;
  unsigned spinning = last < SPINNING_HART ? last : SPINNING_HART;
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == spinning) {
    wait_for_partner();
  }
}

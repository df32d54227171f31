/* One translation block per round. */
#include "loops.h"

static volatile uint32_t word;

SPIN_FUNCTION static void spin_on_word(void) {
  while (word == 0) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    spin_on_word();
  }
}

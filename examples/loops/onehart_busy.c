/* Hart 1 hangs while hart 0 goes on for ever: traffic of one hart must not hide the other. */
#include "loops.h"

static volatile uint32_t result_ready;

SPIN_FUNCTION static void wait_for_result(void) {
  while (result_ready == 0) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == 0) {
    work_for_ever(hart);
  } else if (hart == 1) {
    wait_for_result();
  }
}

/* No hang: hart 0 waits for the clock for 8 s and then works on; the others sleep. */
#include "loops.h"

#define DELAY_MS 8000
#define CLINT_MTIME 0x0200bff8u

/* The lower half is enough for the difference of two near times. */
SPIN_FUNCTION static void wait_for_clock(unsigned ms) {
  const volatile uint32_t *now = (const volatile uint32_t *)CLINT_MTIME;
  uint32_t end = *now + (uint32_t)platform_ms_to_ticks(ms);
  while ((int32_t)(*now - end) < 0) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == 0) {
    wait_for_clock(DELAY_MS);
    work_for_ever(hart);
  }
}

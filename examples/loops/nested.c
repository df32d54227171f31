/* A poll with a short delay between two looks: a loop inside the loop. */
#include "loops.h"

#define DELAY 20

static volatile uint32_t word;

SPIN_FUNCTION static void poll_with_delay(void) {
  while (word == 0) {
    for (int i = 0; i < DELAY; i++) {
      __asm__ volatile("nop"); /* Keeps the compiler from dropping the loop. */
    }
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    poll_with_delay();
  }
}

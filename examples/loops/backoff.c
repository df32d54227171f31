/* A poll with a long delay between two looks: a round of 20001 blocks. */
#include "loops.h"

#define DELAY 20000

static volatile uint32_t word;

SPIN_FUNCTION static void poll_with_backoff(void) {
  while (word == 0) {
    for (int i = 0; i < DELAY; i++) {
      __asm__ volatile("nop"); /* Keeps the compiler from dropping the loop. */
    }
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    poll_with_backoff();
  }
}

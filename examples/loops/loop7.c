/* Seven translation blocks per round: each branch ends one. */
#include "loops.h"

static volatile uint32_t words[7];

#define POLL(i)      \
  if (words[i] != 0) \
    goto changed

SPIN_FUNCTION static void poll_seven_words(void) {
  for (;;) {
    POLL(0);
    POLL(1);
    POLL(2);
    POLL(3);
    POLL(4);
    POLL(5);
    POLL(6);
  }
changed:
  return;
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    poll_seven_words();
  }
}

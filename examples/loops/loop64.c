/* Sixty-four translation blocks per round: each branch ends one. */
#include "loops.h"

static volatile uint32_t words[64];

#define POLL(i)      \
  if (words[i] != 0) \
    goto changed

SPIN_FUNCTION static void poll_sixty_four_words(void) {
  for (;;) {
    POLL(0); POLL(1); POLL(2); POLL(3);
    POLL(4); POLL(5); POLL(6); POLL(7);
    POLL(8); POLL(9); POLL(10); POLL(11);
    POLL(12); POLL(13); POLL(14); POLL(15);
    POLL(16); POLL(17); POLL(18); POLL(19);
    POLL(20); POLL(21); POLL(22); POLL(23);
    POLL(24); POLL(25); POLL(26); POLL(27);
    POLL(28); POLL(29); POLL(30); POLL(31);
    POLL(32); POLL(33); POLL(34); POLL(35);
    POLL(36); POLL(37); POLL(38); POLL(39);
    POLL(40); POLL(41); POLL(42); POLL(43);
    POLL(44); POLL(45); POLL(46); POLL(47);
    POLL(48); POLL(49); POLL(50); POLL(51);
    POLL(52); POLL(53); POLL(54); POLL(55);
    POLL(56); POLL(57); POLL(58); POLL(59);
    POLL(60); POLL(61); POLL(62); POLL(63);
  }
changed:
  return;
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    poll_sixty_four_words();
  }
}

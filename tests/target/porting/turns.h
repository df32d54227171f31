/* What the stand-ins need to work for a while, as kernels do, and to say what they did wrong
 * (tests/system/watched_targets.py). */
#ifndef TESTS_TARGET_PORTING_TURNS_H
#define TESTS_TARGET_PORTING_TURNS_H

#include "print.h"

enum { kTick_us = 500, kRoundsBeforeFault = 200 };

static inline void spend_us(uint32_t us) {
  const uint64_t end = platform_mtime() + 10 * us;
  while (platform_mtime() < end) {
  }
}

/* Two tasks that wait for each other's mutex. */
static inline void tell_crosswise(uint32_t task, uint32_t other) {
  print_text("planted: task ");
  print_number(task);
  print_text(" other ");
  print_number(other);
  print_text("\n");
}

#endif

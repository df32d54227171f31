/* What the stand-ins need to work for a while, as kernels do, and to say what they did wrong
 * (tests/system/watched_targets.py). */
#ifndef TESTS_TARGET_PORTING_TURNS_H
#define TESTS_TARGET_PORTING_TURNS_H

#include "platform.h"

enum { kTick_us = 500, kRoundsBeforeFault = 200 };

static inline void spend_us(uint32_t us) {
  const uint64_t end = platform_mtime() + 10 * us;
  while (platform_mtime() < end) {
  }
}

static inline void print(const char* text) {
  while (*text != 0) platform_put(*text++);
}

static inline void print_number(uint32_t number) {
  char digits[11];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  print(at);
}

/* Two tasks that wait for each other's mutex. */
static inline void tell_crosswise(uint32_t task, uint32_t other) {
  print("planted: task ");
  print_number(task);
  print(" other ");
  print_number(other);
  print("\n");
}

#endif

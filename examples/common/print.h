/* Texts and numbers on the serial console. */
#ifndef EXAMPLES_COMMON_PRINT_H
#define EXAMPLES_COMMON_PRINT_H

#include "platform.h"

static inline void print_text(const char* text) {
  while (*text != '\0') platform_put(*text++);
}
static inline void print_number(uint32_t number) {
  if (number >= 10) print_number(number / 10);
  platform_put((char)('0' + number % 10));
}

#endif

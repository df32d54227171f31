/* No hang, but for some seconds it looks like one: hart 0 patterns memory in one small loop before
   it turns to varied work. The other harts park. */
#include "loops.h"

#define DEFAULT_MS 6000
#define CHUNK_WORDS 4096

extern uint32_t scratch_start[];
extern uint32_t scratch_end[];

SPIN_FUNCTION static void pattern_memory(volatile uint32_t *words, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    words[i] = i;
  }
}

static void pattern_until(uint64_t end) {
  uint32_t *chunk = scratch_start;
  /* The clock is read between chunks only. */
  while (platform_mtime() < end) {
    pattern_memory(chunk, CHUNK_WORDS);
    chunk += CHUNK_WORDS;
    if (chunk >= scratch_end) {
      chunk = scratch_start;
    }
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == 0) {
    uint32_t ms = platform_time_parameter_ms(DEFAULT_MS);
    pattern_until(platform_mtime() + platform_ms_to_ticks(ms));
    work_for_ever(hart);
  }
}

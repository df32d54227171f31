#include "timed_crc.h"

#include "platform.h"
#include "work.h"

#define DEFAULT_MS 30000
#define BLOCK_BYTES 4096

static struct barrier done;
static uint8_t data[BLOCK_BYTES];

/* For whoever looks with a debugger. */
static volatile uint32_t result_crc;
static volatile uint32_t result_blocks;

static void compute_until(uint64_t end) {
  uint32_t crc = 0;
  /* The clock is read between blocks only, so that the trace is the CRC loop and little else. */
  for (uint32_t blocks = 1; platform_mtime() < end; blocks++) {
    data[blocks % BLOCK_BYTES]++;
    crc = crc32_update(crc, data, BLOCK_BYTES);
    result_crc = crc;
    result_blocks = blocks;
  }
}

void timed_crc(unsigned hart, unsigned harts) {
  if (hart == 0) {
    uint32_t ms = platform_time_parameter_ms(DEFAULT_MS);
    compute_until(platform_mtime() + platform_ms_to_ticks(ms));
  }
  barrier_wait(&done, harts);
  if (hart == 0) {
    platform_power_off();
  }
}

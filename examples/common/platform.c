#include "platform.h"

#define CLINT_MTIME 0x0200bff8u
#define SIFIVE_TEST 0x00100000u
#define UART 0x10000000u

#define TEST_PASS 0x5555u
#define TEST_FAIL 0x3333u
#define TEST_RESET 0x7777u

#define UART_LINE_STATUS 5
#define UART_READY 0x20u

#define TICKS_PER_MS 10000u

static unsigned hart_count;

static volatile uint32_t *reg32(uintptr_t address) {
  return (volatile uint32_t *)address;
}

void platform_init(void) {
  /* mtimecmp of a hart that does not exist ignores writes, so no device tree is needed. All ones
     also means that no timer fires before a firmware sets one. */
  while (hart_count < MAX_HARTS) {
    volatile uint32_t *compare = reg32(CLINT_MTIMECMP + 8 * hart_count);
    compare[1] = UINT32_MAX;
    compare[0] = UINT32_MAX;
    if (compare[1] != UINT32_MAX) {
      break;
    }
    hart_count++;
  }
}

unsigned platform_hart_count(void) {
  return hart_count;
}

_Noreturn void park(void) {
  __asm__ volatile("csrw mie, zero");
  for (;;) {
    __asm__ volatile("wfi");
  }
}

uint64_t platform_mtime(void) {
  volatile uint32_t *mtime = reg32(CLINT_MTIME);
  uint32_t high, low;
  do {
    high = mtime[1];
    low = mtime[0];
  } while (mtime[1] != high); /* The low half wrapped between the two loads. */
  return (uint64_t)high << 32 | low;
}

uint64_t platform_ms_to_ticks(uint32_t ms) {
  return (uint64_t)ms * TICKS_PER_MS;
}

void platform_set_timer(unsigned hart, uint64_t mtime) {
  volatile uint32_t *compare = reg32(CLINT_MTIMECMP + 8 * hart);
  compare[1] = UINT32_MAX; /* No half-written value may lie in the past. */
  compare[0] = (uint32_t)mtime;
  compare[1] = (uint32_t)(mtime >> 32);
}

uint32_t platform_time_parameter_ms(uint32_t default_ms) {
  uint32_t ms = *reg32(TIME_PARAMETER);
  return ms != 0 ? ms : default_ms;
}

void platform_put(char character) {
  volatile uint8_t *uart = (volatile uint8_t *)(uintptr_t)UART;
  while ((uart[UART_LINE_STATUS] & UART_READY) == 0) {
  }
  uart[0] = (uint8_t)character;
}

_Noreturn void platform_reset(void) {
  *reg32(SIFIVE_TEST) = TEST_RESET;
  park();
}

_Noreturn void platform_power_off(void) {
  *reg32(SIFIVE_TEST) = TEST_PASS;
  park();
}

_Noreturn void platform_fail(uint32_t exit_status) {
  *reg32(SIFIVE_TEST) = exit_status << 16 | TEST_FAIL;
  park();
}

#ifdef __riscv_atomic /* Without, there is one hart. */
void barrier_wait(struct barrier *barrier, uint32_t count) {
  uint32_t generation = LOAD_ACQUIRE(&barrier->generation);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == count) {
    /* Nobody arrives for the next round before the generation changes. */
    barrier->arrived = 0;
    STORE_RELEASE(&barrier->generation, generation + 1);
    return;
  }
  while (LOAD_ACQUIRE(&barrier->generation) == generation) {
  }
}
#endif

/* A scope that survives resets (HANGSCOPE_NOINIT=1, section .noinit). What it does at each start is
 * up to the word that the test leaves at 0x83f00000:
 *
 *   1          records 5, resets the machine; records 3, jumps to the reset vector; ends
 *   2          RESETS times: records until a timer interrupt, at any instruction, jumps to the
 *              reset vector; ends
 *   3 + 256 n  records 5, inverts bit n of the scope's header, resets; ends
 *
 * Each start prints what it found. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "platform.h"
#include "work.h"

#define RESETS 60u
#define MIE_TIMER 0x80u
#define MSTATUS_MIE 8u
#define MAGIC 0x5ca1ab1eu

#define NOINIT_EVENTS(EVENT) EVENT(noinit_step, USER, "start %u, step %u", u32, start, u32, step)
HANGSCOPE_EVENTS(noinit, HANGSCOPE_FIRST_USER_ID, NOINIT_EVENTS);

/* The firmware's own memory of its starts. */
static struct {
  uint32_t magic;
  uint32_t starts;
  uint32_t random;
  uint32_t found_unfinished; /* records that a reset caught in the middle */
} life __attribute__((section(".noinit")));

_Noreturn void _start(void);

static void print(const char* text) {
  while (*text != '\0') platform_put(*text++);
}

static void print_number(const char* what, uint32_t number) {
  print(what);
  hangscope_put_decimal(platform_put, number);
}

static void record_steps(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) hangscope_noinit_step(life.starts, i);
}

static uint32_t count_unfinished(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < HANGSCOPE_RING_CAPACITY; i++) {
    count +=
        (uint32_t)hangscope_is_busy(hangscope_scope.cores[0].records[i * HANGSCOPE_RECORD_WORDS]);
  }
  return count;
}

/* Entered by the timer interrupt; does not return. */
__attribute__((aligned(4))) static void reset_by_jump(void) { _start(); }

static void record_until_reset(void) {
  __asm__ volatile("csrw mtvec, %0" ::"r"((uintptr_t)reset_by_jump));
  platform_set_timer(0, platform_mtime() + 500 + next_random(&life.random) % 100);
  __asm__ volatile("csrs mie, %0" ::"r"((uintptr_t)MIE_TIMER));
  __asm__ volatile("csrsi mstatus, %0" ::"i"(MSTATUS_MIE) : "memory");
  for (uint32_t i = 0;; i++) hangscope_noinit_step(life.starts, i);
}

void hart_main(unsigned hart) {
  if (hart != 0) park();
  if (life.magic != MAGIC) {
    life.magic = MAGIC;
    life.starts = 0;
    life.random = 1;
    life.found_unfinished = 0;
  }
  life.starts++;
  if (life.starts > 1) life.found_unfinished += count_unfinished();
  print_number("start ", life.starts);
  print_number(": kept ", hangscope_init());
  print_number(", boots ", hangscope_scope.header.boots);
  print_number(", unfinished ", count_unfinished());
  print("\n");
  const uint32_t mode = platform_time_parameter_ms(1);
  if (mode == 1 && life.starts == 1) {
    record_steps(5);
    platform_reset();
  }
  if (mode == 1 && life.starts == 2) {
    record_steps(3);
    _start();
  }
  if (mode == 2 && life.starts <= RESETS) record_until_reset();
  if ((mode & 0xff) == 3 && life.starts == 1) {
    const uint32_t bit = mode >> 8;
    record_steps(5);
    ((uint32_t*)&hangscope_scope)[bit / 32] ^= (uint32_t)1 << bit % 32;
    platform_reset();
  }
  print_number("found unfinished ", life.found_unfinished);
  print_number(", refused ", hangscope_refusals(0));
  print("\n");
  platform_power_off();
}

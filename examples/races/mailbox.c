/* A race that no run shows until delays move the program against its interrupts: docs/races.md.
 *
 * The program hands numbered blocks to its timer's interrupt handler through a slot of one block. The handler looks each
 * TICK. The program waits for the slot to be empty, so that it always fills it just after a look, and long
 * before the next. It announces a block before the block is there.
 *
 * The words at 0x83f00000 are the seed of the delays, how many rounds of a loop a delay has at most (0: there
 * are none), and how many blocks to hand over. Ends with status 0 after these, or with 1 at the first wrong
 * one. FIXED: in the right order. One hart. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

#include "platform.h"

#define PARAMETERS ((const volatile uint32_t *)0x83f00000u)
#define TICK 500u /* of mtime: 50 us */

static struct {
  uint32_t full;
  uint32_t block;
} slot;
static uint32_t taken;
static uint64_t next_look;

static void put(uint32_t block) {
  while (LOAD_ACQUIRE(&slot.full) != 0) {
  }
  hangscope_delay(HANGSCOPE_DELAY_WRITE);
#ifdef FIXED
  hangscope_port_store(&slot.block, block);
  hangscope_delay(HANGSCOPE_DELAY_WRITE);
  STORE_RELEASE(&slot.full, 1);
#else
  STORE_RELEASE(&slot.full, 1); /* too early */
  hangscope_delay(HANGSCOPE_DELAY_WRITE);
  hangscope_port_store(&slot.block, block);
#endif
}

static void say(const char *text) {
  while (*text != 0) platform_put(*text++);
}
static void say_number(uint32_t number) {
  if (number >= 10) say_number(number / 10);
  platform_put((char)('0' + number % 10));
}
static void say_delays(void) {
  say(", delays: ");
  say_number(hangscope_scope.details[0].detail.delays_done[HANGSCOPE_DELAY_WRITE]);
  say("\n");
}

static void check(uint32_t found, uint32_t wanted) {
  if (found == wanted) return;
  say("block ");
  say_number(wanted);
  say(" was announced, and it was block ");
  say_number(found);
  say_delays();
  platform_fail(1);
}

__attribute__((interrupt("machine"), aligned(4))) static void look(void) {
  next_look += TICK;
  platform_set_timer(0, next_look);
  if (LOAD_ACQUIRE(&slot.full) == 0) return;
  check(hangscope_port_load(&slot.block), taken + 1);
  taken++;
  STORE_RELEASE(&slot.full, 0);
}

static void begin_looking(void) {
  next_look = platform_mtime() + TICK;
  platform_set_timer(0, next_look);
  __asm__ volatile("csrw mtvec, %0\n\tcsrs mie, %1\n\tcsrsi mstatus, 8" ::"r"(look), "r"(1u << 7) : "memory");
}

void hart_main(unsigned hart) {
  if (hart != 0) return;
  (void)hangscope_init();
  const uint32_t most = PARAMETERS[1];
  if (most != 0) hangscope_delay_set(0, HANGSCOPE_DELAY_WRITE, most | HANGSCOPE_DELAY_RANDOM, PARAMETERS[0]);
  const uint32_t blocks = PARAMETERS[2];
  begin_looking();
  for (uint32_t block = 1; block <= blocks; block++) put(block);
  while (hangscope_port_load(&taken) != blocks) {
  }
  say_number(blocks);
  say(" blocks");
  say_delays();
  platform_power_off();
}

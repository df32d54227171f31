/* What an event costs on RISC-V: EVENTS events on each hart in each way there is, each way in a
 * function of its own that is not inlined, for `hangscope cost` to count. An event's two parameters
 * are in registers when the function begins; its `ret` is not the event's.
 *
 * The records of one round of the ring stay clear of its first slot, unless the ring is small
 * (HANGSCOPE_RING_CAPACITY): then the turns count, too. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "hangscope/target/mark.h"

#define EVENTS 1000u
#define SIFIVE_TEST ((volatile uint32_t*)0x00100000u)
#define SIFIVE_TEST_PASS 0x5555u

#define HANGSCOPE_CLASS_COST HANGSCOPE_CLASS(5)
#define COST_EVENTS(EVENT) EVENT(cost, COST, "%u of %u", u32, index, u32, hart)
HANGSCOPE_EVENTS(cost, HANGSCOPE_FIRST_USER_ID, COST_EVENTS);

#define COUNTED __attribute__((noinline, noclone, noipa))

COUNTED void emit_recorded(uint32_t index, uint32_t hart) { hangscope_cost(index, hart); }
#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
COUNTED void emit_raw(uint32_t index, uint32_t hart) { hangscope_cost_raw(index, hart); }
#endif
#if HANGSCOPE_MASK
COUNTED void emit_masked_out(uint32_t index, uint32_t hart) { hangscope_cost(index, hart); }
COUNTED void emit_frozen(uint32_t index, uint32_t hart) { hangscope_cost(index, hart); }
#endif

/* One after the other; without the A extension nothing else is to be had. */
static volatile uint32_t phase;
static volatile uint32_t arrived[HANGSCOPE_CORES];

/* All harts are done with what came before; hart 0 does what comes between. */
static void meet(uint32_t hart, uint32_t next, void (*between)(void)) {
  __asm__ volatile("fence" ::: "memory");
  arrived[hart] = next;
  if (hart == 0) {
    for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {
      while (arrived[i] != next) {
      }
    }
    between();
    __asm__ volatile("fence" ::: "memory");
    phase = next;
  }
  while (phase != next) {
  }
  __asm__ volatile("fence" ::: "memory");
}

static void begin(void) { (void)hangscope_init(); }
#if HANGSCOPE_MASK
static void mask_out(void) { (void)hangscope_set_mask(0x7fffffff & ~HANGSCOPE_CLASS_COST); }
static void freeze(void) {
  (void)hangscope_set_mask(0x7fffffff);
  hangscope_freeze();
}
#endif
static void end(void) { *SIFIVE_TEST = SIFIVE_TEST_PASS; }

void hart_main(uint32_t hart) {
  meet(hart, 1, begin);
#if HANGSCOPE_RING_CAPACITY > 2 * EVENTS
  hangscope_cost(0, hart); /* in the first slot */
#endif
  for (uint32_t i = 0; i < EVENTS; i++) emit_recorded(i, hart);
#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
  for (uint32_t i = 0; i < EVENTS; i++) emit_raw(i, hart); /* interrupts are off here */
#endif
  for (uint32_t i = 0; i < EVENTS; i++) {
    HANGSCOPE_MARK_BEGIN(inlined);
    hangscope_cost(i, hart);
    HANGSCOPE_MARK_END(inlined);
  }
#if HANGSCOPE_MASK
  meet(hart, 2, mask_out);
  for (uint32_t i = 0; i < EVENTS; i++) emit_masked_out(i, hart);
  meet(hart, 3, freeze);
  for (uint32_t i = 0; i < EVENTS; i++) emit_frozen(i, hart);
#endif
  meet(hart, 4, end);
}

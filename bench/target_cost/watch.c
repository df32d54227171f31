/* What a watcher's features cost on RISC-V: ROUNDS rounds of each on each hart, between two marks,
 * for `hangscope cost` to count. The first round, before the marks, leaves nothing to be done for
 * the first time. */
#include "hangscope/target/mark.h"
#include "watch_uses.h"

#define ROUNDS 20u
#define SIFIVE_TEST ((volatile uint32_t*)0x00100000u)
#define SIFIVE_TEST_PASS 0x5555u

static uint32_t prepared;
static uint32_t arrivals;

/* All harts do the same at a time: what one switches, another does not count. */
static void meet(uint32_t times) {
  (void)hangscope_port_add(&arrivals, 1);
  while (hangscope_port_load_acquire(&arrivals) < times * HANGSCOPE_CORES) {
  }
}

#define RUN(name)                         \
  meet(++met);                            \
  prepare_##name();                       \
  use_##name();                           \
  for (uint32_t i = 0; i < ROUNDS; i++) { \
    HANGSCOPE_MARK_BEGIN(name);           \
    use_##name();                         \
    HANGSCOPE_MARK_END(name);             \
  }

void hart_main(uint32_t hart) {
  uint32_t met = 0;
  if (hart == 0) {
    (void)hangscope_init();
    prepare_uses();
    hangscope_port_publish(&prepared, 1); /* pairs with the load below */
  }
  while (hangscope_port_load_acquire(&prepared) == 0) {
  }
  USES(RUN)
  meet(++met);
  if (hart == 0) *SIFIVE_TEST = SIFIVE_TEST_PASS;
}

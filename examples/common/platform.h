/* The few things of QEMU's virt machine that the examples use: hart count, clock, power. */
#ifndef EXAMPLES_COMMON_PLATFORM_H
#define EXAMPLES_COMMON_PLATFORM_H

#include <stdint.h>

#include "layout.h"

/* A loop that a test looks for keeps its symbol (no inlining, no clone with a suffix) and lies in
   one page: a page boundary would split a translation block and change the count per round. */
#define SPIN_FUNCTION __attribute__((noinline, noclone, noipa, aligned(1024)))

/* Where the machine has each hart's timer, 64 bits, and where the user leaves words for a firmware. */
#define CLINT_MTIMECMP 0x02004000u
#define TIME_PARAMETER 0x83f00000u

/* Of hart 0, then of the others: 1 << STACK_SHIFT bytes each. */
extern char hart_stacks[];

/* Every firmware defines it; each hart enters once. */
void hart_main(unsigned hart);

/* Called once, by hart 0, before any other hart leaves the boot code. */
void platform_init(void);

/* Harts that the machine has, at most MAX_HARTS. */
unsigned platform_hart_count(void);

/* Sleeps for ever: wfi with no interrupt enabled. */
_Noreturn void park(void);

/* 10 MHz ticks since power-on. */
uint64_t platform_mtime(void);
uint64_t platform_ms_to_ticks(uint32_t ms);

/* Raises the machine timer interrupt of a hart once mtime reaches the value. */
void platform_set_timer(unsigned hart, uint64_t mtime);

/* The run time that the user left at 0x83f00000 with QEMU's -device loader. */
uint32_t platform_time_parameter_ms(uint32_t default_ms);

/* Prints on the serial console. */
void platform_put(char character);

/* Resets the machine, which keeps its RAM but for what the loaded file has in it. */
_Noreturn void platform_reset(void);

/* End QEMU, with exit status 0 or with the given one (1 to 255). */
_Noreturn void platform_power_off(void);
_Noreturn void platform_fail(uint32_t exit_status);

/* Reusable: the last of `count` harts to arrive lets the others go. Waiting is polling. */
struct barrier {
  uint32_t arrived;
  uint32_t generation;
};
void barrier_wait(struct barrier *barrier, uint32_t count);

/* What was written before the store is seen after a load that finds its value. Macros, so that the
   line of a polling loop in the debug information is the loop's own. */
#define LOAD_ACQUIRE(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)

#endif

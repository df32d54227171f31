/* The loop calls a function that itself calls one, so each round stores ra to the stack. */
#include "loops.h"

#define NO_INLINE __attribute__((noinline, noclone, noipa))

static volatile uint32_t device_status;

NO_INLINE static uint32_t read_register(volatile uint32_t *address) {
  return *address;
}

NO_INLINE static int poll_device(void) {
  return (read_register(&device_status) & 1) != 0;
}

SPIN_FUNCTION static void wait_for_device(void) {
  while (!poll_device()) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart < ACTIVE_HARTS) {
    wait_for_device();
  }
}

#include "noc.h"

#include "platform.h"

void noc_semaphore_inc(uint32_t *semaphore, uint32_t by) {
  __atomic_fetch_add(semaphore, by, __ATOMIC_RELEASE);
}

SPIN_FUNCTION void noc_semaphore_wait(const uint32_t *semaphore, uint32_t value) {
  /* Signed, so that the comparison survives the wrap. Pairs with noc_semaphore_inc. */
  while ((int32_t)(LOAD_ACQUIRE(semaphore) - value) < 0) {
  }
}

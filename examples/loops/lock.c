/* Harts 0 and 1 take two locks, at first in the same order, then in opposite order. */
#include "loops.h"

#define GOOD_ROUNDS 20

static uint32_t lock_a;
static uint32_t lock_b;
static uint32_t shared_count;
static struct barrier both_here;

SPIN_FUNCTION static void lock_acquire(uint32_t *lock) {
  while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0) { /* amoswap.w.aq */
  }
}

static void lock_release(uint32_t *lock) {
  STORE_RELEASE(lock, 0);
}

static void count_under_both(uint32_t *first, uint32_t *second) {
  lock_acquire(first);
  lock_acquire(second);
  shared_count++;
  lock_release(second);
  lock_release(first);
}

static void deadlock(uint32_t *first, uint32_t *second) {
  /* First both finish the good rounds, then each holds one lock before either wants the other's.
     Without the two barriers the deadlock would be likely, but not certain. */
  barrier_wait(&both_here, 2);
  lock_acquire(first);
  barrier_wait(&both_here, 2);
  lock_acquire(second);
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart >= 2 || platform_hart_count() < 2) {
    return;
  }
  for (int i = 0; i < GOOD_ROUNDS; i++) {
    count_under_both(&lock_a, &lock_b);
  }
  if (hart == 0) {
    deadlock(&lock_a, &lock_b);
  } else {
    deadlock(&lock_b, &lock_a);
  }
}

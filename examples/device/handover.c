/* Two cores hand a ball to and fro: each waits for what the other provides, all the time, and at every
 * instant one of them goes on. The giver has its lock until it has given, and the taker wants it at
 * once; so they wait for each other's lock, too, now this way round and now that. */
#include "faults.h"
#include "noc.h"
#include "sync.h"

static uint32_t balls[2]; /* how often each side was given the ball */

static uint32_t ball_resource(struct place place, uint32_t side) {
  return HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_BALL + side);
}

static void give(struct place place, uint32_t other, uint32_t side) {
  lock_acquire(place, place.role);
  STORE_RELEASE(&balls[side], balls[side] + 1); /* pairs with semaphore_wait */
  wake(core_at(place.node, other));
  lock_release(place, place.role);
}

static void take(struct place place, uint32_t other, uint32_t side, uint32_t number) {
  semaphore_wait(place, ball_resource(place, side), &balls[side], number - 1);
  lock_acquire(place, other);
  lock_release(place, other);
}

void run_handover(struct place place) {
  const struct plan* const plan = the_plan();
  const uint32_t side = place.core == plan->core ? 0 : 1;
  const uint32_t other = side == 0 ? plan->other : place_of(plan->core).role;
  hangscope_kernel_is(KERNEL_HANDOVER);
  HANGSCOPE_PROVIDES(ball_resource(place, 1 - side));
  if (side == 0) {
    tell_planted(place, 0);
  }
  for (uint32_t number = 1; number <= plan->value; number++) {
    hangscope_heartbeat();
    if (side == 0) {
      give(place, other, 1);
      take(place, other, 0, number);
    } else {
      take(place, other, 1, number);
      give(place, other, 0);
    }
  }
}

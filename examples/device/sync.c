#include "sync.h"

#include "faults.h"

#define CLINT_MSIP 0x02000000u
#define MIE_SOFTWARE 0x8u
#define MIE_TIMER 0x80u
#define HEARTBEAT_MS 5u

static volatile uint32_t* software_interrupt(uint32_t core) {
  return (volatile uint32_t*)(uintptr_t)(CLINT_MSIP + 4 * core);
}

/* mstatus.MIE stays 0: an interrupt ends a wfi, and nobody jumps anywhere. */
void sync_init(void) { __asm__ volatile("csrw mie, %0" ::"r"((uintptr_t)MIE_SOFTWARE)); }

/* What was stored before is seen by whoever wakes: pairs with the fence of doze. */
void wake(uint32_t core) {
  __asm__ volatile("fence rw, ow" ::: "memory");
  *software_interrupt(core) = 1;
}

void doze(uint32_t core) {
  __asm__ volatile("wfi" ::: "memory");
  *software_interrupt(core) = 0;
  /* Whoever wakes this core from here on is heard by the next doze. */
  __asm__ volatile("fence iorw, iorw" ::: "memory");
}

static void sleep_until(uint32_t core, uint64_t time) {
  platform_set_timer(core, time);
  __asm__ volatile("csrs mie, %0" ::"r"((uintptr_t)MIE_TIMER));
  while (platform_mtime() < time) {
    __asm__ volatile("wfi" ::: "memory");
    /* A wake-up for later must not end each wfi at once; the wait that follows looks first. */
    *software_interrupt(core) = 0;
  }
  __asm__ volatile("csrc mie, %0" ::"r"((uintptr_t)MIE_TIMER));
  platform_set_timer(core, UINT64_MAX);
}

void wait_until(uint32_t core, uint64_t time) {
  if (platform_mtime() >= time) {
    return;
  }
  HANGSCOPE_WAYPOINT_NAMED("TIMW", "until it is time");
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_TIME, 1);
  sleep_until(core, time);
  HANGSCOPE_WAIT_DONE();
  HANGSCOPE_WAYPOINT("TIMD");
}

void work_until(uint32_t core, uint64_t time) {
  HANGSCOPE_WAYPOINT_NAMED("WRKR", "works slowly");
  while (platform_mtime() < time) {
    hangscope_heartbeat();
    sleep_until(core, platform_mtime() + platform_ms_to_ticks(HEARTBEAT_MS));
  }
}

/* Not inlined: a report names the function in which a core waits. */
#define SYNC __attribute__((noinline))

static uint32_t resource_of(struct place place, uint32_t number) { return HANGSCOPE_NODE_RESOURCE(place.node, number); }

/* Circular buffers. */

static struct block* block_of(struct cb* cb, uint32_t count) { return &cb->blocks[count % CB_BLOCKS]; }

SYNC struct block* cb_reserve_back(struct place place, uint32_t number) {
  struct cb* const cb = &memory_of(place)->own.cbs[number];
  HANGSCOPE_WAYPOINT_NAMED("CRBW", "circular buffer, reserve at the back");
  if (cb->pushed - LOAD_ACQUIRE(&cb->popped) == CB_BLOCKS) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, resource_of(place, RESOURCE_CB_ROOM + number));
    while (cb->pushed - LOAD_ACQUIRE(&cb->popped) == CB_BLOCKS) { /* pairs with cb_pop_front */
      doze(place.core);
    }
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("CRBD");
  return block_of(cb, cb->pushed);
}

SYNC void cb_push_back(struct place place, uint32_t number) {
  struct cb* const cb = &memory_of(place)->own.cbs[number];
  STORE_RELEASE(&cb->pushed, cb->pushed + 1); /* pairs with the load in cb_wait_front */
  HANGSCOPE_COUNT(resource_of(place, RESOURCE_CB + number), cb->pushed - LOAD_ACQUIRE(&cb->popped));
  if (is_planned_from(FAULT_LOST_WAKEUP, place, cb->pushed)) {
    return;
  }
  wake(core_at(place.node, number + 1));
}

SYNC const struct block* cb_wait_front(struct place place, uint32_t number) {
  struct cb* const cb = &memory_of(place)->own.cbs[number];
  HANGSCOPE_WAYPOINT_NAMED("CWFW", "circular buffer, wait at the front");
  if (LOAD_ACQUIRE(&cb->pushed) == cb->popped) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, resource_of(place, RESOURCE_CB + number));
    while (LOAD_ACQUIRE(&cb->pushed) == cb->popped) { /* pairs with cb_push_back */
      doze(place.core);
    }
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("CWFD");
  return block_of(cb, cb->popped);
}

SYNC void cb_pop_front(struct place place, uint32_t number) {
  struct cb* const cb = &memory_of(place)->own.cbs[number];
  STORE_RELEASE(&cb->popped, cb->popped + 1); /* pairs with the load in cb_reserve_back */
  HANGSCOPE_COUNT(resource_of(place, RESOURCE_CB + number), LOAD_ACQUIRE(&cb->pushed) - cb->popped);
  wake(core_at(place.node, number));
}

/* Semaphores. */

SYNC void semaphore_wait(struct place place, uint32_t resource, const uint32_t* word, uint32_t taken) {
  HANGSCOPE_WAYPOINT_NAMED("NSW", "semaphore wait");
  if (LOAD_ACQUIRE(word) == taken) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, resource);
    while (LOAD_ACQUIRE(word) == taken) { /* pairs with the atomic addition of the bus */
      doze(place.core);
    }
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("NSD");
}

/* Locks: one for each role of a node. */

static int try_lock(uint32_t* lock, uint32_t core) {
  uint32_t expected = 0;
  return __atomic_compare_exchange_n(lock, &expected, core + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

SYNC void lock_acquire(struct place place, uint32_t number) {
  uint32_t* const lock = &memory_of(place)->own.locks[number];
  const uint32_t resource = resource_of(place, RESOURCE_LOCK + number);
  HANGSCOPE_WAYPOINT_NAMED("LCKW", "lock, acquire");
  if (!try_lock(lock, place.core)) {
    uint32_t* const wanted = &memory_of(place)->own.locks_wanted[number];
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_EXCLUSIVE, resource);
    /* Said before the lock is tried again: either that succeeds, or its holder looks later and wakes. */
    (void)__atomic_fetch_or(wanted, 1u << place.role, __ATOMIC_SEQ_CST);
    while (!try_lock(lock, place.core)) { /* pairs with lock_release */
      doze(place.core);
    }
    (void)__atomic_fetch_and(wanted, ~(1u << place.role), __ATOMIC_SEQ_CST);
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_HOLD(resource);
  HANGSCOPE_WAYPOINT("LCKD");
}

SYNC void lock_release(struct place place, uint32_t number) {
  struct node_memory* const memory = memory_of(place);
  HANGSCOPE_RELEASE(resource_of(place, RESOURCE_LOCK + number));
  __atomic_store_n(&memory->own.locks[number], 0u, __ATOMIC_SEQ_CST); /* pairs with try_lock */
  const uint32_t wanted = __atomic_load_n(&memory->own.locks_wanted[number], __ATOMIC_SEQ_CST);
  for (uint32_t role = 0; role < ROLES; role++) {
    if ((wanted & 1u << role) != 0) {
      wake(core_at(place.node, role));
    }
  }
}

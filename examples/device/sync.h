/* How cores wait for each other: circular buffers, counters, locks; all asleep until somebody wakes them. */
#ifndef EXAMPLES_DEVICE_SYNC_H
#define EXAMPLES_DEVICE_SYNC_H

#include "device.h"

/* Before the first wait. */
void sync_init(void);

/* Ends the core's doze, or its next one. */
void wake(uint32_t core);
/* Sleeps until somebody wakes this core; may return without that. */
void doze(uint32_t core);
/* Until a time: waits, or is at work, with a heartbeat each few milliseconds. */
void wait_until(uint32_t core, uint64_t mtime);
void work_until(uint32_t core, uint64_t mtime);

/* Room for a block: the place is the producer's until it pushes. */
struct block* cb_reserve_back(struct place place, uint32_t cb);
void cb_push_back(struct place place, uint32_t cb);
/* The oldest block: the consumer's until it pops. */
const struct block* cb_wait_front(struct place place, uint32_t cb);
void cb_pop_front(struct place place, uint32_t cb);

/* Until *word - taken is not 0; numbers only grow. `resource` is what the node of the core calls it. */
void semaphore_wait(struct place place, uint32_t resource, const uint32_t* word, uint32_t taken);

void lock_acquire(struct place place, uint32_t lock);
void lock_release(struct place place, uint32_t lock);

#endif

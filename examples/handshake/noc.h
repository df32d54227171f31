/* Counting semaphores in shared memory, as cores on a network on chip use them. A semaphore only
   ever grows; who waits for it knows how far it has to get. */
#ifndef EXAMPLES_HANDSHAKE_NOC_H
#define EXAMPLES_HANDSHAKE_NOC_H

#include <stdint.h>

void noc_semaphore_inc(uint32_t *semaphore, uint32_t by);

/* Waits until the semaphore is at least `value`. */
void noc_semaphore_wait(const uint32_t *semaphore, uint32_t value);

#endif

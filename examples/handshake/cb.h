/* A circular buffer of blocks between one producer hart and one consumer hart.

   pushed and popped run freely and wrap; pushed - popped blocks are ready, the rest is free. Only
   the producer writes pushed, only the consumer writes popped:

     producer                      consumer
     cb_reserve_back  waits for    cb_pop_front
     fills the block
     cb_push_back     lets go on   cb_wait_front
                                   uses the block */
#ifndef EXAMPLES_HANDSHAKE_CB_H
#define EXAMPLES_HANDSHAKE_CB_H

#include <stdint.h>

#define CB_BLOCKS 4 /* A power of two, so that the index survives the wrap of the counters. */
#define BLOCK_WORDS 16

struct block {
  uint32_t round;
  uint32_t index;
  uint32_t crc; /* Of words[]. */
  uint32_t words[BLOCK_WORDS];
};

struct cb {
  uint32_t pushed;
  uint32_t popped;
  struct block blocks[CB_BLOCKS];
};

/* Wait until a block is free, and return it. */
struct block *cb_reserve_back(struct cb *cb);
void cb_push_back(struct cb *cb);

/* Wait until a block is ready, and return it. */
struct block *cb_wait_front(struct cb *cb);
void cb_pop_front(struct cb *cb);

#endif

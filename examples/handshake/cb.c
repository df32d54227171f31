#include "cb.h"

#include "platform.h"

SPIN_FUNCTION struct block *cb_reserve_back(struct cb *cb) {
  uint32_t pushed = cb->pushed;
  /* Pairs with cb_pop_front: the consumer is done with the block before it is filled again. */
  while (pushed - LOAD_ACQUIRE(&cb->popped) >= CB_BLOCKS) {
  }
  return &cb->blocks[pushed % CB_BLOCKS];
}

void cb_push_back(struct cb *cb) {
  STORE_RELEASE(&cb->pushed, cb->pushed + 1);
}

SPIN_FUNCTION struct block *cb_wait_front(struct cb *cb) {
  uint32_t popped = cb->popped;
  /* Pairs with cb_push_back: the words are there once the count is. */
  while (LOAD_ACQUIRE(&cb->pushed) == popped) {
  }
  return &cb->blocks[popped % CB_BLOCKS];
}

void cb_pop_front(struct cb *cb) {
  STORE_RELEASE(&cb->popped, cb->popped + 1);
}

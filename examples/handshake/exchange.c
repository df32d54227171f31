#include "exchange.h"

#include "cb.h"
#include "noc.h"
#include "platform.h"
#include "work.h"

#define GRANTS 8
#define GRANT_BATCH 4

#define LONG_ROUND 8
#define SHORT_ROUND 7
#define SHORT_EVERY 2

/* Neither inlined nor cloned, so that a trace names it. */
#define KERNEL __attribute__((noinline, noclone))

enum { EXIT_BAD_CHECKSUM = 2, EXIT_BAD_ORDER = 3 };

/* buffers[h] leads from hart h to hart h + 1. */
static struct cb buffers[MAX_HARTS];
static uint32_t grants;
static uint32_t received[LONG_ROUND][BLOCK_WORDS];

/* Every second round is short, as the tail of a message is. */
static uint32_t blocks_in_round(uint32_t round) {
  return round % SHORT_EVERY == SHORT_EVERY - 1 ? SHORT_ROUND : LONG_ROUND;
}

static uint32_t block_crc(const struct block *block) {
  return crc32_update(0, block->words, sizeof(block->words));
}

static void verify(const struct block *block) {
  if (block_crc(block) != block->crc) {
    platform_fail(EXIT_BAD_CHECKSUM);
  }
}

/* The next free block, for the sent-th one of this hart. */
static struct block *next_free(unsigned hart, unsigned harts, uint32_t sent) {
  if (hart + 2 == harts) {
    noc_semaphore_wait(&grants, sent + 1 - GRANTS);
  }
  return cb_reserve_back(&buffers[hart]);
}

KERNEL static void reader_kernel(unsigned hart, unsigned harts) {
  uint32_t random = 1;
  uint32_t sent = 0;
  for (uint32_t round = 0;; round++) {
    for (uint32_t index = 0; index < blocks_in_round(round); index++) {
      struct block *block = next_free(hart, harts, sent++);
      block->round = round;
      block->index = index;
      for (uint32_t i = 0; i < BLOCK_WORDS; i++) {
        block->words[i] = next_random(&random);
      }
      block->crc = block_crc(block);
      cb_push_back(&buffers[hart]);
    }
  }
}

KERNEL static void compute_kernel(unsigned hart, unsigned harts) {
  for (uint32_t sent = 0;; sent++) {
    struct block *from = cb_wait_front(&buffers[hart - 1]);
    struct block *to = next_free(hart, harts, sent);
    verify(from);
    to->round = from->round;
    to->index = from->index;
    copy_words(to->words, from->words, BLOCK_WORDS);
    cb_pop_front(&buffers[hart - 1]);
    sort_words(to->words, BLOCK_WORDS);
    to->crc = block_crc(to);
    cb_push_back(&buffers[hart]);
  }
}

static void receive(struct cb *cb, uint32_t round, uint32_t index) {
  struct block *block = cb_wait_front(cb);
  verify(block);
  if (block->round != round || block->index != index) {
    platform_fail(EXIT_BAD_ORDER);
  }
  copy_words(received[index], block->words, BLOCK_WORDS);
  cb_pop_front(cb);
}

KERNEL static void writer_kernel(unsigned hart) {
  for (uint32_t round = 0;; round++) {
    uint32_t owed = 0;
    for (uint32_t index = 0; index < blocks_in_round(round); index++) {
      receive(&buffers[hart - 1], round, index);
      if (++owed == GRANT_BATCH) {
        noc_semaphore_inc(&grants, owed);
        owed = 0;
      }
    }
#ifndef HANDSHAKE_HANG
    /* A short round ends within a batch. The hang is this return forgotten: each short round
       loses three grants, until fewer than a batch are left and the writer never gives back any. */
    noc_semaphore_inc(&grants, owed);
#endif
  }
}

void exchange(unsigned hart, unsigned harts) {
  if (harts < 2) {
    return;
  }
  if (hart == 0) {
    reader_kernel(hart, harts);
  } else if (hart + 1 < harts) {
    compute_kernel(hart, harts);
  } else {
    writer_kernel(hart);
  }
}

/* The three stages between the data movers: each takes from one buffer and fills the next. */
#include "faults.h"
#include "noc.h"
#include "sync.h"

#define INPUT_SEED 0x9e3779b9u

static uint32_t compute_word(enum role role, uint32_t word, uint32_t number) {
  switch (role) {
    case UNPACK:
      return word ^ number;
    case MATH:
      return word * 5 + 1;
    default:
      return word << 7 | word >> 25;
  }
}

static void compute(enum role role, struct block* to, const struct block* from) {
  to->number = from->number;
  for (uint32_t i = 0; i < BLOCK_WORDS - 1; i++) {
    to->words[i] = compute_word(role, from->words[i], from->number);
  }
}

void compute_block(struct place place, uint32_t number) {
  const uint32_t in = (uint32_t)place.role - 1;
  const struct block* const from = cb_wait_front(place, in);
  struct block* const to = cb_reserve_back(place, place.role);
  HANGSCOPE_WAYPOINT_NAMED("CMPR", "compute");
  maybe_fail(place, number);
  compute(place.role, to, from);
  cb_pop_front(place, in);
  push_block(place, place.role, number);
}

void make_block(struct block* block, uint32_t number) {
  uint32_t word = INPUT_SEED * (1 + input_slot(number));
  block->number = number;
  for (uint32_t i = 0; i < BLOCK_WORDS - 1; i++) {
    word = word * 1664525u + 1013904223u;
    block->words[i] = word;
  }
}

int is_result(const struct block* block, uint32_t nodes) {
  struct block wanted;
  make_block(&wanted, block->number);
  for (uint32_t i = 0; i < nodes; i++) {
    for (enum role role = UNPACK; role <= PACK; role++) {
      compute(role, &wanted, &wanted);
    }
  }
  for (uint32_t i = 0; i < BLOCK_WORDS - 1; i++) {
    if (block->words[i] != wanted.words[i]) {
      return 0;
    }
  }
  return 1;
}

/* Delays before accesses, to move a program's cores against each other and find what their order
 * breaks.
 *
 *   hangscope_delay(HANGSCOPE_DELAY_WRITE);   in front of the access; target/bus.h has it in front
 *                                             of each
 *
 * How long is set while the target runs, by a host or by hangscope_delay_set: rounds of a loop,
 * always as many, or with HANGSCOPE_DELAY_RANDOM from 0 to so many. Random ones are drawn from the
 * seed, the core's number and how many the core drew since the seed was set: the same seed, the
 * same delays. A seed that differs from the one before begins anew. */
#ifndef HANGSCOPE_TARGET_DELAY_H
#define HANGSCOPE_TARGET_DELAY_H

#include "hangscope/target/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the words of hangscope_detail.delays. */
enum hangscope_delay_kind {
  HANGSCOPE_DELAY_READ = 0,
  HANGSCOPE_DELAY_WRITE = 1,
  HANGSCOPE_DELAY_ATOMIC = 2,
  HANGSCOPE_DELAY_KINDS = 3,
};

#if HANGSCOPE_ENABLE && HANGSCOPE_DELAYS

/* What a core waits where its word is not 0. Out of line. */
void hangscope_delay_now(enum hangscope_delay_kind kind);

/* Sets a core's delays of one kind: `rounds`, at most 2^31 - 1, 0 for none, |
 * HANGSCOPE_DELAY_RANDOM; and begins the sequence of `seed`, whatever the seed before was. Any
 * context, any core; while the other core draws, it may still draw one of the old sequence. Ignored
 * where there is no such core or kind. */
void hangscope_delay_set(uint32_t core, enum hangscope_delay_kind kind, uint32_t rounds,
                         uint32_t seed);

/* Any context. One load and a branch where there is no delay. Ends early when its word changes. */
HANGSCOPE_INLINE void hangscope_delay(enum hangscope_delay_kind kind) {
#if HANGSCOPE_OUT_OF_LINE
  hangscope_delay_now(kind);
#else
  const struct hangscope_detail* const detail = hangscope_this_detail();
#if defined(HANGSCOPE_PORT_THREADS)
  if (detail == 0) return;
#endif
  if (HANGSCOPE_UNLIKELY(hangscope_port_load(&detail->delays[kind]) != 0))
    hangscope_delay_now(kind);
#endif
}

#ifdef HANGSCOPE_DEFINE

/* Spreads what differs in a few bits over all of them. */
HANGSCOPE_INLINE uint32_t hangscope_delay_mix(uint32_t word) {
  word = (word ^ word >> 16) * 0x7feb352du;
  word = (word ^ word >> 15) * 0x846ca68bu;
  return word ^ word >> 16;
}
/* Number `drawn` of a core's sequence: 0 to `most`, which is below 2^31. */
HANGSCOPE_INLINE uint32_t hangscope_delay_random(uint32_t seed, uint32_t core, uint32_t drawn,
                                                 uint32_t most) {
  const uint32_t start = hangscope_delay_mix(hangscope_delay_mix(seed) + core);
  return (uint32_t)((uint64_t)hangscope_delay_mix(start + drawn * 0x9e3779b9u) * (most + 1) >> 32);
}

/* The next of the calling core's sequence. What interrupts this draws a number of its own. */
HANGSCOPE_INLINE uint32_t hangscope_delay_draw(struct hangscope_detail* detail, uint32_t most) {
  /* pairs with hangscope_delay_set, and a host that writes the seed first */
  hangscope_port_loads_in_order();
  const uint32_t seed = hangscope_port_load(&detail->delay_seed);
  if (hangscope_port_load(&detail->delay_seeded) != seed) {
    hangscope_port_store(&detail->delay_state, 0);
    hangscope_port_store(&detail->delay_seeded, seed);
  }
  const uint32_t drawn = hangscope_port_add(&detail->delay_state, 1);
  return hangscope_delay_random(seed, hangscope_core_of(hangscope_this_mailbox()), drawn, most);
}

HANGSCOPE_COLD void hangscope_delay_now(enum hangscope_delay_kind kind) {
  struct hangscope_detail* const detail = hangscope_this_detail();
  if (detail == 0) return;
  const uint32_t* const word = &detail->delays[kind];
  const uint32_t set = hangscope_port_load(word);
  if (set == 0 || !hangscope_is_on(HANGSCOPE_WATCH_DELAYS)) return;
  const uint32_t most = set & ~HANGSCOPE_DELAY_RANDOM;
  const uint32_t rounds = most == set ? most : hangscope_delay_draw(detail, most);
  for (uint32_t i = 0; i < rounds && hangscope_port_load(word) == set; i++) {
  }
  (void)hangscope_port_add(&detail->delays_done[kind], 1);
}

HANGSCOPE_COLD void hangscope_delay_set(uint32_t core, enum hangscope_delay_kind kind,
                                        uint32_t rounds, uint32_t seed) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0 || core >= HANGSCOPE_CORES || (uint32_t)kind >= HANGSCOPE_DELAY_KINDS) return;
  struct hangscope_detail* const detail = &scope->details[core].detail;
  hangscope_port_store(&detail->delay_seed, seed);
  hangscope_port_store(&detail->delay_seeded, seed);
  hangscope_port_store(&detail->delay_state, 0);
  /* Publishes the seed: pairs with the look at the word before the seed is read. */
  hangscope_port_publish(&detail->delays[kind], rounds);
}

#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_delay(enum hangscope_delay_kind kind) { (void)kind; }
HANGSCOPE_OFF void hangscope_delay_set(uint32_t core, enum hangscope_delay_kind kind,
                                       uint32_t rounds, uint32_t seed) {
  (void)core, (void)kind, (void)rounds, (void)seed;
}
HANGSCOPE_OFF_END
#define hangscope_delay(...) HANGSCOPE_NOT_DONE((hangscope_delay)(__VA_ARGS__))
#define hangscope_delay_set(...) HANGSCOPE_NOT_DONE((hangscope_delay_set)(__VA_ARGS__))

#endif

#ifdef __cplusplus
}
#endif

#endif

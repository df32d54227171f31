/* Control over the rings and a look into them, from the target itself. A host does the same from
 * outside (`hangscope set`, `hangscope show`).
 *
 * Any context. What changes the masks acts on all cores; the others record on for as long as it
 * takes them to see it. */
#ifndef HANGSCOPE_TARGET_CONTROL_H
#define HANGSCOPE_TARGET_CONTROL_H

#include "hangscope/target/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hangscope_result {
  HANGSCOPE_OK = 0,
  HANGSCOPE_NULL = -1,         /* the pointer is null */
  HANGSCOPE_OUT_OF_RANGE = -2, /* no such core, or it holds no such record */
  HANGSCOPE_UNREADABLE = -3,   /* it was refused, is not finished, or was overwritten meanwhile */
};

struct hangscope_event {
  uint64_t sequence; /* how many its core began before */
  uint32_t id;
  uint32_t time; /* low half of the clock */
  uint32_t parameters[HANGSCOPE_PARAMETERS];
};

#if HANGSCOPE_ENABLE

/* Before the first event, once, on one core. With HANGSCOPE_NOINIT the records of an earlier start
 * are kept if they are sound; the newest say `boot`. Returns how many records of earlier starts
 * there are, over all cores; 0 after power-on. Threads of a process need not call it. */
uint32_t hangscope_init(void);

void hangscope_epoch_ticked(struct hangscope_core* core, uint32_t epoch);

/* The host reads times over silences of any length if this comes on each core at least once in a
 * quarter-wrap of the clock, from the tick interrupt for example. Costs 10 to 14 instructions. */
HANGSCOPE_INLINE void hangscope_tick(void) {
#if !defined(HANGSCOPE_PORT_THREADS)
  struct hangscope_core* const core = hangscope_this_core();
  const uint32_t epoch = (uint32_t)(hangscope_port_clock64() >> 30);
  hangscope_port_store(&core->ring.ticks, hangscope_port_load(&core->ring.ticks) + 1);
  if (HANGSCOPE_UNLIKELY(epoch != hangscope_port_load(&core->ring.epoch)))
    hangscope_epoch_ticked(core, epoch);
#endif
}

/* Which classes are recorded; 0 freezes. Returns what was before, of core 0. No effect with
 * HANGSCOPE_MASK=0. */
uint32_t hangscope_set_mask(uint32_t classes);
/* Each core records `records` more, of the classes it records now, and freezes: what led up to a
 * trigger and what came of it. 0 to 2^31-1. No effect with HANGSCOPE_MASK=0. */
void hangscope_freeze_after(uint32_t records);
/* Forgets what is recorded, of all cores. */
void hangscope_clear(void);
HANGSCOPE_INLINE void hangscope_freeze(void) { hangscope_freeze_after(0); }

/* Of one core, 0 to HANGSCOPE_CORES - 1, since the latest clear; 0 for any other. */
uint32_t hangscope_count(uint32_t core);      /* records that get can be asked for */
uint64_t hangscope_overwrites(uint32_t core); /* records that made room for newer ones */
/* records given up, see abi/record.h; since the start */
uint32_t hangscope_refusals(uint32_t core);

/* The core's record number `index`, 0 the oldest. While writers are at work the numbers move on. */
enum hangscope_result hangscope_get(uint32_t core, uint32_t index, struct hangscope_event* event);

#ifdef HANGSCOPE_DEFINE

/* A ring that is frozen stays as it is. */
HANGSCOPE_COLD void hangscope_epoch_ticked(struct hangscope_core* core, uint32_t epoch) {
  const uint32_t recorded =
      hangscope_port_load(&core->ring.mask) | hangscope_port_load(&core->ring.armed);
  if (recorded != 0 || !HANGSCOPE_MASK) hangscope_new_epoch(core, epoch);
}

HANGSCOPE_INLINE struct hangscope_core* hangscope_core_at(uint32_t core) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  return scope == 0 || core >= HANGSCOPE_CORES ? 0 : &scope->cores[core];
}

HANGSCOPE_INLINE uint64_t hangscope_base_of(const struct hangscope_core* core) {
  return (uint64_t)hangscope_port_load(&core->ring.base[1]) << 32 |
         hangscope_port_load(&core->ring.base[0]);
}

uint32_t hangscope_set_mask(uint32_t classes) {
  uint32_t before = 0;
  for (uint32_t i = HANGSCOPE_CORES; i-- > 0;) {
    struct hangscope_core* const core = hangscope_core_at(i);
    if (core == 0) return 0;
    before = hangscope_port_load(&core->ring.mask);
    hangscope_port_store(&core->ring.armed, 0);
    hangscope_port_store(&core->ring.mask, classes);
  }
  return before;
}

void hangscope_freeze_after(uint32_t records) {
  if (!HANGSCOPE_MASK) return;
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {
    struct hangscope_core* const core = hangscope_core_at(i);
    if (core == 0) return;
    const uint32_t mask = hangscope_port_load(&core->ring.mask);
    if (mask == 0) continue; /* frozen already, or about to */
    hangscope_port_store(&core->ring.remaining, records);
    hangscope_port_store(&core->ring.armed, records == 0 ? 0 : mask);
    hangscope_port_store(&core->ring.mask, 0); /* from here on each record looks at `armed` */
  }
}

void hangscope_clear(void) {
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {
    struct hangscope_core* const core = hangscope_core_at(i);
    if (core == 0) return;
    const uint64_t begun = hangscope_begun_by(core);
    hangscope_port_store(&core->ring.base[0], (uint32_t)begun);
    hangscope_port_store(&core->ring.base[1], (uint32_t)(begun >> 32));
  }
}

uint32_t hangscope_count(uint32_t number) {
  const struct hangscope_core* const core = hangscope_core_at(number);
  if (core == 0) return 0;
  const uint64_t count = hangscope_begun_by(core) - hangscope_base_of(core);
  return count < HANGSCOPE_RING_CAPACITY ? (uint32_t)count : HANGSCOPE_RING_CAPACITY;
}

uint64_t hangscope_overwrites(uint32_t number) {
  const struct hangscope_core* const core = hangscope_core_at(number);
  if (core == 0) return 0;
  const uint64_t count = hangscope_begun_by(core) - hangscope_base_of(core);
  return count < HANGSCOPE_RING_CAPACITY ? 0 : count - HANGSCOPE_RING_CAPACITY;
}

uint32_t hangscope_refusals(uint32_t number) {
  const struct hangscope_core* const core = hangscope_core_at(number);
  return core == 0 ? 0 : hangscope_port_load(&core->ring.refused);
}

enum hangscope_result hangscope_get(uint32_t number, uint32_t index,
                                    struct hangscope_event* event) {
  if (event == 0) return HANGSCOPE_NULL;
  struct hangscope_core* const core = hangscope_core_at(number);
  if (core == 0 || index >= hangscope_count(number)) return HANGSCOPE_OUT_OF_RANGE;
  const uint64_t begun = hangscope_begun_by(core);
  const uint64_t sequence = hangscope_base_of(core) + hangscope_overwrites(number) + index;
  const uint32_t* const record =
      hangscope_slot(core, (uint32_t)(sequence << HANGSCOPE_TICKET_SHIFT));
  const uint32_t mark = hangscope_port_load_acquire(&record[0]);
  event->sequence = sequence;
  event->id = mark & HANGSCOPE_ID_MASK;
  event->time = hangscope_port_load(&record[1]);
  for (int i = 0; i < HANGSCOPE_PARAMETERS; i++)
    event->parameters[i] = hangscope_port_load(&record[2 + i]);
  hangscope_port_loads_in_order();
  const int same = hangscope_port_load(&record[0]) == mark &&
                   hangscope_begun_by(core) <= sequence + HANGSCOPE_RING_CAPACITY;
  return sequence < begun && same && hangscope_is_committed(mark, sequence) ? HANGSCOPE_OK
                                                                            : HANGSCOPE_UNREADABLE;
}

#endif /* HANGSCOPE_DEFINE */

#else /* not enabled: nothing is recorded, and whoever asks is told so */

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF uint32_t hangscope_init(void) { return 0; }
HANGSCOPE_OFF void hangscope_tick(void) {}
HANGSCOPE_OFF uint32_t hangscope_set_mask(uint32_t classes) {
  (void)classes;
  return 0;
}
HANGSCOPE_OFF void hangscope_freeze_after(uint32_t records) { (void)records; }
HANGSCOPE_OFF void hangscope_freeze(void) {}
HANGSCOPE_OFF void hangscope_clear(void) {}
HANGSCOPE_OFF uint32_t hangscope_count(uint32_t core) {
  (void)core;
  return 0;
}
HANGSCOPE_OFF uint64_t hangscope_overwrites(uint32_t core) {
  (void)core;
  return 0;
}
HANGSCOPE_OFF uint32_t hangscope_refusals(uint32_t core) {
  (void)core;
  return 0;
}
HANGSCOPE_INLINE enum hangscope_result hangscope_get(uint32_t core, uint32_t index,
                                                     struct hangscope_event* event) {
  (void)core;
  (void)index;
  return event == 0 ? HANGSCOPE_NULL : HANGSCOPE_OUT_OF_RANGE;
}
HANGSCOPE_OFF_END
#define hangscope_freeze_after(...) HANGSCOPE_NOT_DONE((hangscope_freeze_after)(__VA_ARGS__))
#ifndef __clang__
/* Nobody is warned for letting their results be. */
#define hangscope_init()                               \
  __extension__({                                      \
    const uint32_t hangscope_was = (hangscope_init)(); \
    hangscope_was;                                     \
  })
#define hangscope_set_mask(classes)                               \
  __extension__({                                                 \
    const uint32_t hangscope_was = (hangscope_set_mask)(classes); \
    hangscope_was;                                                \
  })
#endif

#endif

#ifdef __cplusplus
}
#endif

#endif

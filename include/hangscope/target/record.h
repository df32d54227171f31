/* How a record is written: abi/record.h has the protocol. Any context, interrupt and signal
 * handlers included; wait-free: no lock, no loop.
 *
 * Use the typed writers of target/events.h; they end here. */
#ifndef HANGSCOPE_TARGET_RECORD_H
#define HANGSCOPE_TARGET_RECORD_H

#include "hangscope/target/scope.h"

#if HANGSCOPE_ENABLE

#ifdef __cplusplus
extern "C" {
#endif

struct hangscope_parameters {
  uint32_t words[HANGSCOPE_PARAMETERS];
};

HANGSCOPE_INLINE void hangscope_no_parameters(struct hangscope_parameters* parameters) {
#if HANGSCOPE_PARAMETERS == 2
  parameters->words[0] = parameters->words[1] = 0;
#else
  /* One by one: there is no memset to call. */
  for (int i = 0; i < HANGSCOPE_PARAMETERS; i++) hangscope_port_store(&parameters->words[i], 0);
#endif
}

/* The rare ways, out of line. Two parameters go in registers: a pointer to them would cost every
 * writer a stack frame. */
#if HANGSCOPE_PARAMETERS == 2
#define HANGSCOPE_COLD_PARAMETERS uint32_t word0, uint32_t word1
#define HANGSCOPE_COLD_ARGUMENTS(parameters) (parameters)->words[0], (parameters)->words[1]
#define HANGSCOPE_COLD_RECEIVED()                                       \
  const struct hangscope_parameters hangscope_words = {{word0, word1}}; \
  const struct hangscope_parameters* const parameters = &hangscope_words
#else
#define HANGSCOPE_COLD_PARAMETERS const struct hangscope_parameters* parameters
#define HANGSCOPE_COLD_ARGUMENTS(parameters) (parameters)
#define HANGSCOPE_COLD_RECEIVED() (void)0
#endif
void hangscope_refused(struct hangscope_core* core, uint32_t ticket);
void hangscope_turn_began(struct hangscope_core* core);
void hangscope_new_epoch(struct hangscope_core* core, uint32_t epoch);
uint32_t hangscope_write_anew(struct hangscope_core* core, uint32_t id, HANGSCOPE_COLD_PARAMETERS);
void hangscope_masked(struct hangscope_core* core, uint32_t id, uint32_t classes,
                      HANGSCOPE_COLD_PARAMETERS);
#ifdef HANGSCOPE_PORT_THREADS
struct hangscope_core* hangscope_enter_thread(void); /* target/linux.h */
#endif

HANGSCOPE_INLINE void hangscope_fill(uint32_t* record, uint32_t time,
                                     const struct hangscope_parameters* parameters) {
  hangscope_port_store(&record[1], time);
  hangscope_port_store(&record[2], parameters->words[0]);
  hangscope_port_store(&record[3], parameters->words[1]);
#if HANGSCOPE_PARAMETERS > 2
  hangscope_port_store(&record[4], parameters->words[2]);
  hangscope_port_store(&record[5], parameters->words[3]);
#endif
#if HANGSCOPE_PARAMETERS > 4
#pragma GCC unroll 16
  for (int i = 4; i < HANGSCOPE_PARAMETERS; i++)
    hangscope_port_store(&record[2 + i], parameters->words[i]);
#endif
}

/* Records with this time, whatever the mask says. Returns the record's mark; 0 if it was refused.
 * `raw`, a constant: nothing can interrupt this, and so nothing is masked. */
HANGSCOPE_INLINE uint32_t hangscope_write_at(struct hangscope_core* core, uint32_t id,
                                             const struct hangscope_parameters* parameters,
                                             uint32_t time, int raw) {
#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
  const uintptr_t before = raw ? 0 : hangscope_port_enter();
#else
  (void)raw;
#endif
  const uint32_t ticket = hangscope_port_reserve(core->ring.head);
  uint32_t* const record = hangscope_slot(core, ticket);
#if HANGSCOPE_NESTING
  if (HANGSCOPE_UNLIKELY(hangscope_port_take(&record[0]))) {
    hangscope_refused(core, ticket);
    return 0;
  }
#endif
  hangscope_port_stores_behind_atomic();
#if !HANGSCOPE_PORT_WIDE_CLOCK
  time = hangscope_port_clock(); /* the later the better: it is the order of records for a reader */
#endif
  hangscope_fill(record, time, parameters);
  hangscope_port_publish(&record[0], ticket + id);
#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
  if (!raw) hangscope_port_leave(before);
#endif
#if __SIZEOF_POINTER__ != 8
  if (HANGSCOPE_UNLIKELY(hangscope_place(ticket) == 0)) {
    if (id == HANGSCOPE_ID_ANCHOR) {
      (void)hangscope_port_add(&core->ring.head[1], 1); /* nothing to date: it does that itself */
    } else {
      hangscope_turn_began(core);
    }
  }
#endif
  return ticket + id;
}

HANGSCOPE_INLINE uint32_t hangscope_write(struct hangscope_core* core, uint32_t id,
                                          const struct hangscope_parameters* parameters, int raw) {
#if HANGSCOPE_PORT_WIDE_CLOCK
  uint32_t epoch;
  const uint32_t time = hangscope_port_now(&epoch);
  if (HANGSCOPE_UNLIKELY(epoch != hangscope_port_load(&core->ring.epoch))) {
    return hangscope_write_anew(core, id, HANGSCOPE_COLD_ARGUMENTS(parameters));
  }
  return hangscope_write_at(core, id, parameters, time, raw);
#else
  return hangscope_write_at(core, id, parameters, 0, raw);
#endif
}

/* Records if one of `classes` is switched on. `id`: 1 to 2047. */
HANGSCOPE_INLINE void hangscope_record(uint32_t id, uint32_t classes,
                                       const struct hangscope_parameters* parameters, int raw) {
  struct hangscope_core* const core = hangscope_this_core();
#if HANGSCOPE_MASK || \
    defined(HANGSCOPE_PORT_THREADS) /* a thread's first event finds the mask of no ring */
  if (HANGSCOPE_UNLIKELY((hangscope_port_load(&core->ring.mask) & classes) == 0)) {
    hangscope_masked(core, id, classes, HANGSCOPE_COLD_ARGUMENTS(parameters));
    return;
  }
#endif
  (void)classes;
  (void)hangscope_write(core, id, parameters, raw);
}

#ifdef HANGSCOPE_DEFINE

/* `ticket`'s slot holds a record that is not finished. */
HANGSCOPE_COLD void hangscope_refused(struct hangscope_core* core, uint32_t ticket) {
  const uint32_t before = hangscope_port_add(&core->ring.refused, 1);
  hangscope_port_store(&core->ring.refused_tickets[before % 8], ticket | 1u);
#if __SIZEOF_POINTER__ != 8
  if (hangscope_place(ticket) == 0) hangscope_turn_began(core);
#endif
}

/* The newest record dates those that follow. Where it is an anchor already, it is renewed: a long
 * silence must not push history out of the ring. `epoch` is stored last: until then, whoever
 * interrupts this writes an anchor of its own, and so none of its records lies before the one that
 * dates it. */
HANGSCOPE_COLD void hangscope_new_epoch(struct hangscope_core* core, uint32_t epoch) {
  const uint32_t previous = hangscope_port_load(&core->ring.epoch);
  const uint32_t anchor = hangscope_port_load(&core->ring.anchor);
  const uint32_t ticket = anchor & ~(HANGSCOPE_TICKET_STEP - 1);
  if (anchor != 0 && hangscope_port_load(&core->ring.head[0]) - ticket == HANGSCOPE_TICKET_STEP) {
    uint32_t* const record = hangscope_slot(core, ticket);
    if (hangscope_port_swap_if(&record[0], anchor, HANGSCOPE_MARK_TAKEN)) {
      hangscope_port_stores_in_order();
      hangscope_port_store(&record[2], epoch);
      hangscope_port_publish(&record[0], anchor);
      hangscope_port_store(&core->ring.epoch, epoch);
      return;
    }
  }
  struct hangscope_parameters parameters;
  hangscope_no_parameters(&parameters);
  parameters.words[0] = epoch;
  parameters.words[1] = previous;
  hangscope_port_store(&core->ring.anchor,
                       hangscope_write_at(core, HANGSCOPE_ID_ANCHOR, &parameters,
                                          (uint32_t)hangscope_port_clock64(), 0));
  hangscope_port_store(&core->ring.epoch, epoch);
}

#if HANGSCOPE_PORT_WIDE_CLOCK
/* The first record in a new epoch: behind an anchor. */
HANGSCOPE_COLD uint32_t hangscope_write_anew(struct hangscope_core* core, uint32_t id,
                                             HANGSCOPE_COLD_PARAMETERS) {
  HANGSCOPE_COLD_RECEIVED();
  uint32_t epoch;
  const uint32_t time = hangscope_port_now(&epoch);
  hangscope_new_epoch(core, epoch);
  return hangscope_write_at(core, id, parameters, time, 0);
}
#endif

#if __SIZEOF_POINTER__ != 8
/* The record in the first slot was begun: one more turn. */
HANGSCOPE_COLD void hangscope_turn_began(struct hangscope_core* core) {
  (void)hangscope_port_add(&core->ring.head[1], 1);
#if !HANGSCOPE_PORT_WIDE_CLOCK
  const uint32_t epoch = (uint32_t)(hangscope_port_clock64() >> 30);
  if (epoch != hangscope_port_load(&core->ring.epoch)) hangscope_new_epoch(core, epoch);
#endif
}
#endif

/* The mask does not have the class: unless the ring is armed to freeze after some more. */
HANGSCOPE_COLD void hangscope_masked(struct hangscope_core* core, uint32_t id, uint32_t classes,
                                     HANGSCOPE_COLD_PARAMETERS) {
  HANGSCOPE_COLD_RECEIVED();
#ifdef HANGSCOPE_PORT_THREADS
  if (core == &hangscope_no_core) {
    core = hangscope_enter_thread();
    if (core == &hangscope_no_core) return;
    if ((hangscope_port_load(&core->ring.mask) & classes) != 0) {
      (void)hangscope_write(core, id, parameters, 0);
      return;
    }
  }
#endif
  if ((hangscope_port_load(&core->ring.armed) & classes) == 0) return;
  if ((int32_t)hangscope_port_add(&core->ring.remaining, ~0u) <= 0) {
    hangscope_port_store(&core->ring.armed, 0);
    return;
  }
  (void)hangscope_write(core, id, parameters, 0);
}

#endif /* HANGSCOPE_DEFINE */

#ifdef __cplusplus
}
#endif
#endif

#endif

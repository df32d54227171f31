/* The port of the test of interleavings: each access to memory that others see is a point at which
 * the scheduler may let another writer, or the reader, go on. In between nothing is seen by
 * anybody, so to stop only here is to stop everywhere. */
#ifndef HANGSCOPE_TESTS_INTERLEAVING_PORT_H
#define HANGSCOPE_TESTS_INTERLEAVING_PORT_H

#include "hangscope/config.h"

#if TEST_WORD_BYTES == 4
/* The form of a 32-bit target: a head of 20 bits, and turns that are counted beside it. */
#undef __SIZEOF_POINTER__
#define __SIZEOF_POINTER__ 4
#endif

/* Defined by the test. */
void Point();             /* the scheduler chooses who goes on */
void Saw(uint64_t value); /* whoever runs knows this now */
void Reserved(uint32_t ticket);
uint32_t ClockOfWriter();
extern bool nobody_takes;    /* a writer that takes no slot: for the test to find */
extern bool publishes_early; /* one that publishes before it has written its last word */

HANGSCOPE_INLINE uint32_t hangscope_port_load(const uint32_t* word) {
  Point();
  Saw(*word);
  return *word;
}
HANGSCOPE_INLINE void hangscope_port_store(uint32_t* word, uint32_t value) {
  Point();
  *word = value;
}
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
  Point();
#if TEST_WORD_BYTES == 4
  const uint32_t ticket = head[0];
  head[0] += HANGSCOPE_TICKET_STEP;
#else
  uint64_t* const wide = (uint64_t*)(void*)head;
  const uint32_t ticket = (uint32_t)*wide;
  *wide += HANGSCOPE_TICKET_STEP;
#endif
  Saw(ticket);
  Reserved(ticket);
  return ticket;
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  if (nobody_takes) return 0;
  Point();
  const bool busy = *mark == HANGSCOPE_MARK_TAKEN;
  *mark = HANGSCOPE_MARK_TAKEN;
  Saw(busy);
  return busy;
}
HANGSCOPE_INLINE void hangscope_port_publish(uint32_t* mark, uint32_t value) {
  if (publishes_early) {
    const uint32_t last = mark[3];
    mark[3] = 0;
    Point();
    *mark = value;
    Point();
    mark[3] = last;
    return;
  }
  Point();
  *mark = value;
}
HANGSCOPE_INLINE void hangscope_port_stores_in_order() {}
HANGSCOPE_INLINE void hangscope_port_stores_behind_atomic() {}
HANGSCOPE_INLINE void hangscope_port_loads_in_order() {}
HANGSCOPE_INLINE uint32_t hangscope_port_load_acquire(const uint32_t* word) {
  return hangscope_port_load(word);
}
HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  Point();
  const uint32_t was = *word;
  *word += value;
  Saw(was);
  return was;
}
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  Point();
  const bool same = *word == expected;
  if (same) *word = value;
  Saw(same);
  return same;
}

#define HANGSCOPE_PORT_CORE() 0u
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_CYCLES
#define HANGSCOPE_PORT_WIDE_CLOCK 0
HANGSCOPE_INLINE uint32_t hangscope_port_clock() { return ClockOfWriter(); }
HANGSCOPE_INLINE uint64_t hangscope_port_clock64() { return 0; }

#endif

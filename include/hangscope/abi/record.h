/* A record, and the rule by which it counts as committed. C11 and C++20.
 *
 *        31              12 11         0
 *       +------------------+-+----------+
 *   +0  | sequence, 20 bits|b| event id |  mark
 *       +------------------+-+----------+
 *   +4  | time, low 32 bits             |
 *       +-------------------------------+
 *   +8  | parameter 0                   |
 *       +-------------------------------+
 *   +12 | parameter 1                   |  and so on up to record_bytes
 *       +-------------------------------+
 *
 * The n-th record that a core began (from 0) lies in slot n % ring_capacity. It is committed when
 * its mark says so: the low 20 bits of n, an event id of 1 to 2047, the busy bit b not set. All
 * else in its place is something else: zero (never used), a busy mark (a writer is, or was, in the
 * middle of it), another record's mark (this one was refused, or overwritten late by one whose
 * writer slept).
 *
 * A writer, on its core, possibly interrupted by others of the same core at any instruction:
 *
 *   1. ticket = head; head += HANGSCOPE_TICKET_STEP   atomically      reserves slot n
 *   2. mark -> busy, atomically; was it busy already?  give up: refused
 *   3. time, parameters                               after 2 in memory
 *   4. mark = ticket + event id                       after 3 in memory: publishes
 *
 * A reader, who does not stop the writers, for the n-th record:
 *
 *   1. m = mark           acquires what 4 published
 *   2. time, parameters
 *   3. the mark again, then the head, both after 2 in memory: the pair of the writer's 2 and 1
 *   4. it is n's if m is n's committed mark, the mark is still m, and head <= n + ring_capacity
 *
 * Where writers do not interrupt each other, step 2 is left out (HANGSCOPE_FEATURE_NESTING says):
 * then the head alone tells the reader, as 1 comes before 3 in memory. */
#ifndef HANGSCOPE_ABI_RECORD_H
#define HANGSCOPE_ABI_RECORD_H

/* A kernel with types of these names of its own says where they are:
 * -DHANGSCOPE_STDINT='"kernel/types.h"'. uint8_t to uint64_t, int8_t to int64_t, uintptr_t and
 * intptr_t are wanted. */
#ifdef HANGSCOPE_STDINT
#include HANGSCOPE_STDINT
#else
#include <stdint.h>
#endif

#define HANGSCOPE_TICKET_SHIFT 12
#define HANGSCOPE_TICKET_STEP 4096u /* 1 << HANGSCOPE_TICKET_SHIFT */
#define HANGSCOPE_ID_MASK 2047u
#define HANGSCOPE_MARK_BUSY 2048u /* set, or HANGSCOPE_MARK_TAKEN in place of the mark */
/* A mark without an event id is that of no record: a step in memory that saves an instruction. */
#define HANGSCOPE_MARK_TAKEN HANGSCOPE_TICKET_STEP

/* Ids: 0 is none; the kernel set and what hangscope itself says come first. */
#define HANGSCOPE_FIRST_USER_ID 64
/* An anchor dates: parameter 0 is the epoch, time >> 30 (a quarter-wrap of the 32 bits a record
 * keeps), of itself and of the records after it; parameter 1 the epoch of those before. One is
 * written whenever a look at the clock finds a new epoch; if the newest record is an anchor, its
 * parameter 0 is renewed instead, so that silence takes no room. Records with no anchor anywhere
 * around them are of the ring's own `epoch`. A record's time is the one nearest to its epoch's
 * beginning that has these low 32 bits. */
#define HANGSCOPE_ID_ANCHOR 1u
#define HANGSCOPE_ID_BOOT 2u /* parameters: starts so far, records that the earlier ones left */

#define HANGSCOPE_LEAST_CAPACITY 8u
#define HANGSCOPE_MOST_CAPACITY 65536u

/* The sequence number, of which a mark and a 32-bit head keep 20 bits. */
static inline uint32_t hangscope_mark_sequence(uint32_t mark) {
  return mark >> HANGSCOPE_TICKET_SHIFT;
}

static inline int hangscope_is_committed(uint32_t mark, uint64_t sequence) {
  return (mark & HANGSCOPE_ID_MASK) != 0 && (mark & HANGSCOPE_MARK_BUSY) == 0 &&
         hangscope_mark_sequence(mark) == (uint32_t)(sequence & 0xfffffu);
}

static inline int hangscope_is_busy(uint32_t mark) {
  return (mark & HANGSCOPE_MARK_BUSY) != 0 || mark == HANGSCOPE_MARK_TAKEN;
}

/* How many records were begun, from a 32-bit target's head and its count of turns begun. The one
 * who begins a turn counts it a little later, so the count is only near; the head's own bits,
 * which are exact, decide. `capacity`: of the ring, a power of two up to HANGSCOPE_MOST_CAPACITY.
 */
static inline uint64_t hangscope_begun(uint32_t head, uint32_t turns, uint32_t capacity) {
  const uint32_t next = head >> HANGSCOPE_TICKET_SHIFT; /* modulo 2^20 */
  const uint32_t period = (1u << 20) / capacity;        /* turns until the head repeats */
  const uint32_t seen = (next + capacity - 1) / capacity % period; /* turns begun, modulo period */
  const uint32_t off = (seen - turns) % period;
  const int64_t real = (int64_t)turns + (off < period / 2 ? (int64_t)off : (int64_t)off - period);
  const uint32_t in_turn = next % capacity;
  const int64_t before = in_turn == 0 ? real : real - 1;
  return before < 0 ? next : (uint64_t)before * capacity + in_turn;
}

#endif

/* The scope's memory, as this build lays it out, and who is who in it.
 *
 * One file of the program defines HANGSCOPE_DEFINE before it includes hangscope/hangscope.h: that is
 * where the scope and the rarely used functions are. */
#ifndef HANGSCOPE_TARGET_SCOPE_H
#define HANGSCOPE_TARGET_SCOPE_H

#include "hangscope/target/config.h"

#if HANGSCOPE_ENABLE
#include "hangscope/port/choose.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hangscope_core {
  struct hangscope_ring ring;
  uint32_t records[HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
};

struct hangscope_scope {
  struct hangscope_header header;
#if HANGSCOPE_TASKS > 0
  struct hangscope_task tasks[HANGSCOPE_TASKS];
#endif
  struct hangscope_core cores[HANGSCOPE_CORES];
};

#if defined(HANGSCOPE_PORT_THREADS)

/* Mapped from a file when the program starts. Null before that, and when there was no file to be had. */
extern struct hangscope_scope* hangscope_mapped_scope;
/* Where threads record that have no ring (yet): its mask is 0. */
extern struct hangscope_core hangscope_no_core;
extern __thread struct hangscope_core* hangscope_thread_core __attribute__((tls_model("initial-exec")));

HANGSCOPE_INLINE struct hangscope_core* hangscope_this_core(void) { return hangscope_thread_core; }
HANGSCOPE_INLINE struct hangscope_scope* hangscope_the_scope(void) { return hangscope_mapped_scope; }

#else

/* Found by this name in the ELF. */
extern struct hangscope_scope hangscope_scope;

HANGSCOPE_INLINE struct hangscope_core* hangscope_this_core(void) {
  struct hangscope_core* core = &hangscope_scope.cores[HANGSCOPE_PORT_CORE()];
  __asm__("" : "+r"(core)); /* one address in one register, where the compiler would make three */
  return core;
}
HANGSCOPE_INLINE struct hangscope_scope* hangscope_the_scope(void) { return &hangscope_scope; }

#endif

/* Where a ticket's record lies: bytes behind core->records. */
HANGSCOPE_INLINE uint32_t hangscope_place(uint32_t ticket) {
#if HANGSCOPE_RECORD_WORDS == 4 || HANGSCOPE_RECORD_WORDS == 8 || HANGSCOPE_RECORD_WORDS == 16
  /* Two shifts: the slot's number to the top, then down to where it counts bytes. */
  const unsigned capacity_bits = (unsigned)__builtin_ctz(HANGSCOPE_RING_CAPACITY);
  const unsigned record_bits = 2 + (unsigned)__builtin_ctz(HANGSCOPE_RECORD_WORDS);
  return ticket << (32 - HANGSCOPE_TICKET_SHIFT - capacity_bits) >> (32 - capacity_bits - record_bits);
#else
  return (ticket >> HANGSCOPE_TICKET_SHIFT) % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS * 4;
#endif
}

HANGSCOPE_INLINE uint32_t* hangscope_slot(struct hangscope_core* core, uint32_t ticket) {
  /* In this order, so that where the records begin goes into the offsets of the stores. */
  struct hangscope_core* const moved = (struct hangscope_core*)(void*)((char*)core + hangscope_place(ticket));
  return moved->records;
}

/* How many records a core began since its ring was made. Any context; exact when no writer is at work. */
HANGSCOPE_INLINE uint64_t hangscope_begun_by(const struct hangscope_core* core) {
#if __SIZEOF_POINTER__ == 8
  return __atomic_load_n((const uint64_t*)(const void*)core->ring.head, __ATOMIC_ACQUIRE) >> HANGSCOPE_TICKET_SHIFT;
#else
  const uint32_t turns = hangscope_port_load_acquire(&core->ring.head[1]);
  return hangscope_begun(hangscope_port_load_acquire(&core->ring.head[0]), turns, HANGSCOPE_RING_CAPACITY);
#endif
}

#ifdef __cplusplus
}
#endif
#endif

#endif

/* The scope's memory, as this build lays it out, and who is who in it.
 *
 * One file of the program defines HANGSCOPE_DEFINE before it includes hangscope/hangscope.h: that
 * is where the scope and the rarely used functions are. */
#ifndef HANGSCOPE_TARGET_SCOPE_H
#define HANGSCOPE_TARGET_SCOPE_H

#include "hangscope/config.h"

#if HANGSCOPE_ENABLE
#include "hangscope/port/choose.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hangscope_core {
  struct hangscope_ring ring;
  uint32_t records[HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
};

#define HANGSCOPE_CLAIM_WORDS ((HANGSCOPE_HOLD_SLOTS + HANGSCOPE_PROVIDE_SLOTS + 1 + 1) / 2 * 2)
struct hangscope_claims {
  uint32_t holds[HANGSCOPE_HOLD_SLOTS];
  /* after PROVIDES_MOST: how many did not fit */
  uint32_t provides[HANGSCOPE_CLAIM_WORDS - HANGSCOPE_HOLD_SLOTS];
};

/* Out of line the function that notes them has returned, and its frame is gone, when a host reads
 * the stack. */
#if defined(HANGSCOPE_PORT_NOTES_FRAMES) && HANGSCOPE_WAIT_FRAMES && HANGSCOPE_WAITS && \
    !HANGSCOPE_OUT_OF_LINE && !defined(HANGSCOPE_PORT_THREADS)
#define HANGSCOPE_HAS_FRAMES 1
#else
#define HANGSCOPE_HAS_FRAMES 0
#endif

struct hangscope_core_detail {
  struct hangscope_detail detail;
#if HANGSCOPE_DEBUG_RING
  struct hangscope_debug_value debug[HANGSCOPE_DEBUG_RING];
#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
  uint32_t debug_order[2]; /* the order of this core's newest value; padding */
#endif
#endif
};

/* No two cores write to one cache line, where there are caches. */
#if HANGSCOPE_CORES > 1
#define HANGSCOPE_LINE __attribute__((aligned(64)))
#else
#define HANGSCOPE_LINE
#endif

/* The rings first: from there an event's stores reach all they need with one address. */
struct hangscope_scope {
  struct hangscope_header header;
#if HANGSCOPE_TASKS > 0
  struct hangscope_task tasks[HANGSCOPE_TASKS];
#endif
  struct hangscope_core cores[HANGSCOPE_CORES];
#if HANGSCOPE_HAS_MAILBOXES
  struct hangscope_mailbox mailboxes[HANGSCOPE_CORES] HANGSCOPE_LINE;
  struct hangscope_watch watch;
  struct hangscope_node nodes[HANGSCOPE_NODES];
#endif
#if HANGSCOPE_HAS_CLAIMS
  struct hangscope_claims claims[HANGSCOPE_CORES + HANGSCOPE_TASKS];
#endif
#if HANGSCOPE_HAS_DETAILS
  struct hangscope_core_detail details[HANGSCOPE_CORES];
#endif
#if HANGSCOPE_HAS_FRAMES
  struct hangscope_frame frames[HANGSCOPE_CORES + HANGSCOPE_TASKS];
#endif
#if HANGSCOPE_NAME_SLOTS > 0
  struct hangscope_name names[HANGSCOPE_NAME_SLOTS];
#endif
};

#if defined(HANGSCOPE_PORT_THREADS)

/* Mapped from a file when the program starts. Null before that, and when there was no file to be
 * had. */
extern struct hangscope_scope* hangscope_mapped_scope;
/* Where threads record that have no ring (yet): its mask is 0. */
extern struct hangscope_core hangscope_no_core;
extern __thread struct hangscope_core* hangscope_thread_core
    __attribute__((tls_model("initial-exec")));

HANGSCOPE_INLINE struct hangscope_core* hangscope_this_core(void) { return hangscope_thread_core; }
HANGSCOPE_INLINE struct hangscope_scope* hangscope_the_scope(void) {
  return hangscope_mapped_scope;
}

#if HANGSCOPE_HAS_MAILBOXES
/* Where threads write that have none (yet), all of them; nobody reads it. */
extern struct hangscope_mailbox hangscope_no_mailbox;
extern __thread struct hangscope_mailbox* hangscope_thread_mailbox
    __attribute__((tls_model("initial-exec")));
struct hangscope_mailbox* hangscope_enter_mailbox(void); /* target/linux.h */

/* The calling thread's; from its first look on, if there is one to be had. Never null. */
HANGSCOPE_INLINE struct hangscope_mailbox* hangscope_this_mailbox(void) {
  struct hangscope_mailbox* const mailbox = hangscope_thread_mailbox;
  return HANGSCOPE_UNLIKELY(mailbox == &hangscope_no_mailbox) ? hangscope_enter_mailbox() : mailbox;
}
/* Whose mailbox it is; HANGSCOPE_CORES where it is nobody's. */
HANGSCOPE_INLINE uint32_t hangscope_core_of(const struct hangscope_mailbox* mailbox) {
  return mailbox == &hangscope_no_mailbox ? HANGSCOPE_CORES
                                          : (uint32_t)(mailbox - hangscope_mapped_scope->mailboxes);
}
#endif

#else

/* Found by this name in the ELF. */
extern struct hangscope_scope hangscope_scope;

HANGSCOPE_INLINE struct hangscope_core* hangscope_this_core(void) {
  struct hangscope_core* core = &hangscope_scope.cores[HANGSCOPE_PORT_CORE()];
  __asm__("" : "+r"(core)); /* one address in one register, where the compiler would make three */
  return core;
}
HANGSCOPE_INLINE struct hangscope_scope* hangscope_the_scope(void) { return &hangscope_scope; }

#if HANGSCOPE_HAS_MAILBOXES
HANGSCOPE_INLINE struct hangscope_mailbox* hangscope_this_mailbox(void) {
  return &hangscope_scope.mailboxes[HANGSCOPE_PORT_CORE()];
}
HANGSCOPE_INLINE uint32_t hangscope_core_of(const struct hangscope_mailbox* mailbox) {
  return (uint32_t)(mailbox - hangscope_scope.mailboxes);
}
#endif

#endif

#if HANGSCOPE_HAS_DETAILS
/* The calling core's details; null where it has none. Never null but with threads. */
HANGSCOPE_INLINE struct hangscope_detail* hangscope_this_detail(void) {
#if defined(HANGSCOPE_PORT_THREADS)
  const uint32_t core = hangscope_core_of(hangscope_this_mailbox());
  return core >= HANGSCOPE_CORES ? 0 : &hangscope_mapped_scope->details[core].detail;
#else
  return &hangscope_scope.details[HANGSCOPE_PORT_CORE()].detail;
#endif
}
#endif

#if HANGSCOPE_HAS_MAILBOXES
/* Whether a feature is switched on: enum hangscope_watch_feature. Where there is no scope, it is
 * not. */
HANGSCOPE_INLINE int hangscope_is_on(uint32_t feature) {
  const struct hangscope_scope* const scope = hangscope_the_scope();
  return scope != 0 && (hangscope_port_load(&scope->watch.switches) & feature) != 0;
}
#endif

/* Where a ticket's record lies: bytes behind core->records. */
HANGSCOPE_INLINE uint32_t hangscope_place(uint32_t ticket) {
#if HANGSCOPE_RECORD_WORDS == 4 || HANGSCOPE_RECORD_WORDS == 8 || HANGSCOPE_RECORD_WORDS == 16
  /* Two shifts: the slot's number to the top, then down to where it counts bytes. */
  const unsigned capacity_bits = (unsigned)__builtin_ctz(HANGSCOPE_RING_CAPACITY);
  const unsigned record_bits = 2 + (unsigned)__builtin_ctz(HANGSCOPE_RECORD_WORDS);
  return ticket << (32 - HANGSCOPE_TICKET_SHIFT - capacity_bits) >>
         (32 - capacity_bits - record_bits);
#else
  return (ticket >> HANGSCOPE_TICKET_SHIFT) % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS * 4;
#endif
}

HANGSCOPE_INLINE uint32_t* hangscope_slot(struct hangscope_core* core, uint32_t ticket) {
  /* In this order, so that where the records begin goes into the offsets of the stores. */
  struct hangscope_core* const moved =
      (struct hangscope_core*)(void*)((char*)core + hangscope_place(ticket));
  return moved->records;
}

/* How many records a core began since its ring was made. Any context; exact when no writer is at
 * work. */
HANGSCOPE_INLINE uint64_t hangscope_begun_by(const struct hangscope_core* core) {
#if __SIZEOF_POINTER__ == 8
  return __atomic_load_n((const uint64_t*)(const void*)core->ring.head, __ATOMIC_ACQUIRE) >>
         HANGSCOPE_TICKET_SHIFT;
#else
  const uint32_t turns = hangscope_port_load_acquire(&core->ring.head[1]);
  return hangscope_begun(hangscope_port_load_acquire(&core->ring.head[0]), turns,
                         HANGSCOPE_RING_CAPACITY);
#endif
}

#ifdef __cplusplus
}
#endif
#endif

#endif

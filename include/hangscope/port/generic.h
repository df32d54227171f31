/* A port for any GCC or Clang target with atomic read-modify-write instructions, and the contract
 * of every port.
 *
 * Who may interrupt whom: every function here may be called from any context, interrupt handlers
 * and signal handlers included, and interrupted at any instruction. None loops or waits.
 *
 * Orders are stated for an observer on another core; writers of one core see each other in program
 * order. A port overrides a function by a macro of its name + _IS_PORTED before it includes this.
 */
#ifndef HANGSCOPE_PORT_GENERIC_H
#define HANGSCOPE_PORT_GENERIC_H

#include "hangscope/config.h"

/* Words that another core may write or read at the same time: one access each. Volatile is what a
 * compiler makes one plain instruction of; GCC 12 stores atomically with amoswap on RISC-V. */
#ifdef __SANITIZE_THREAD__
HANGSCOPE_INLINE uint32_t hangscope_port_load(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
HANGSCOPE_INLINE void hangscope_port_store(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
#else
HANGSCOPE_INLINE uint32_t hangscope_port_load(const uint32_t* word) {
  return *(const volatile uint32_t*)word;
}
HANGSCOPE_INLINE void hangscope_port_store(uint32_t* word, uint32_t value) {
  *(volatile uint32_t*)word = value;
}
#endif

HANGSCOPE_INLINE void hangscope_port_stores_in_order(void) {
#ifndef __SANITIZE_THREAD__
  __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* Where an atomic instruction is ordered as a whole (.aq on RISC-V, any on x86), that is enough;
 * elsewhere, as on Arm, acquire orders its load alone, its store may still come late, and a fence
 * behind it does both. */
#if defined(HANGSCOPE_PORT_ATOMICS_ORDER_STORES) || defined(__SANITIZE_THREAD__)
#define HANGSCOPE_PORT_ATOMIC __ATOMIC_ACQUIRE
#else
#define HANGSCOPE_PORT_ATOMIC __ATOMIC_RELAXED
#endif

/* Behind one of the atomic instructions below, before stores that are to come later for a reader.
 */
HANGSCOPE_INLINE void hangscope_port_stores_behind_atomic(void) {
#ifndef HANGSCOPE_PORT_ATOMICS_ORDER_STORES
  hangscope_port_stores_in_order();
#endif
}

/* Reserves a slot: adds a step to the head and returns what it was, its low half where it is wider.
 * What the writer stores behind hangscope_port_stores_behind_atomic() comes later for a reader.
 * Pairs with the reader's second look at the head. */
#ifndef HANGSCOPE_PORT_RESERVE_IS_PORTED
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
#if __SIZEOF_POINTER__ == 8
  return (uint32_t)__atomic_fetch_add((uint64_t*)(void*)head, HANGSCOPE_TICKET_STEP,
                                      HANGSCOPE_PORT_ATOMIC);
#else
  return __atomic_fetch_add(head, HANGSCOPE_TICKET_STEP, HANGSCOPE_PORT_ATOMIC);
#endif
}
#endif

/* Takes a slot: makes its mark a busy one; not 0 if it was busy already. What the writer stores
 * behind hangscope_port_stores_behind_atomic() comes later for a reader. Pairs with the reader's
 * second look at the mark. */
#ifndef HANGSCOPE_PORT_TAKE_IS_PORTED
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  return __atomic_exchange_n(mark, HANGSCOPE_MARK_TAKEN, HANGSCOPE_PORT_ATOMIC) ==
         HANGSCOPE_MARK_TAKEN;
}
#endif

/* Publishes: what the writer did before comes before. Pairs with the reader's first look at the
 * mark. */
#ifndef HANGSCOPE_PORT_PUBLISH_IS_PORTED
HANGSCOPE_INLINE void hangscope_port_publish(uint32_t* mark, uint32_t value) {
#ifdef __SANITIZE_THREAD__
  __atomic_store_n(mark, value, __ATOMIC_RELEASE);
#else
  __atomic_thread_fence(__ATOMIC_RELEASE);
  hangscope_port_store(mark, value);
#endif
}
#endif

/* The reader's sides of these. */
HANGSCOPE_INLINE uint32_t hangscope_port_load_acquire(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
HANGSCOPE_INLINE void hangscope_port_loads_in_order(void) {
#ifndef __SANITIZE_THREAD__ /* which knows no fences, and checks each access by itself */
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/* What rarely happens; all atomic. add and swap return what was there; what is stored behind a swap
 * comes later for a reader, too. swap_if says whether `expected` was and now is `value`, and orders
 * no stores. It may fail where it could have done it: where the hardware tries and fails, trying
 * again would be a loop. */
#ifndef HANGSCOPE_PORT_ADD_IS_PORTED
HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
#endif
#ifndef HANGSCOPE_PORT_SWAP_IS_PORTED
HANGSCOPE_INLINE uint32_t hangscope_port_swap(uint32_t* word, uint32_t value) {
  const uint32_t was = __atomic_exchange_n(word, value, HANGSCOPE_PORT_ATOMIC);
  hangscope_port_stores_behind_atomic();
  return was;
}
#endif
#ifndef HANGSCOPE_PORT_SWAP_IF_IS_PORTED
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  return __atomic_compare_exchange_n(word, &expected, value, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
#endif

/* What a core does that is halted, for ever; and in each round of a loop that waits for a host, who
 * may be slow. */
#ifndef HANGSCOPE_PORT_RELAX_IS_PORTED
HANGSCOPE_INLINE void hangscope_port_relax(void) { __asm__ volatile("" ::: "memory"); }
#endif
#ifndef HANGSCOPE_PORT_HALT_IS_PORTED
__attribute__((noreturn)) HANGSCOPE_INLINE void hangscope_port_halt(void) {
  for (;;) hangscope_port_relax();
}
#endif

#endif

/* Words that must not change: the ends of buffers, what a program builds on, address 0.
 *
 *   #define GUARDS(NAME) NAME(0, "end of the receive buffer")
 *   HANGSCOPE_NAMED(device_guards, HANGSCOPE_CATALOG_GUARD, GUARDS);
 *
 *   hangscope_guard(0, &receive.canary, 0x5afe5afe);
 *   hangscope_guards_look();      now and then: at a kernel's end, in an idle loop
 *
 * A word that changed is a fault of the core that looked, with the word's address and what was
 * found; that core goes on. Each is reported once, then guarded no longer until hangscope_guard
 * asks for it again. Nothing here writes to the words.
 *
 * The guards are the program's, not a core's. Each number is set by one core at a time; any core
 * may look, in any context. */
#ifndef HANGSCOPE_TARGET_GUARD_H
#define HANGSCOPE_TARGET_GUARD_H

#include "hangscope/target/catalog.h"
#include "hangscope/target/fault.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_GUARDS

/* `number`: 0 to HANGSCOPE_GUARDS - 1, others are ignored. `address`: aligned, and readable for
 * ever, since a core that looks just now may do so once more; null: this one is guarded no longer.
 * `wanted`: what is there, and must stay. */
void hangscope_guard(uint32_t number, const void* address, uint32_t wanted);
/* Guards address 0, where that is memory, with what is there now: a write through a null pointer.
 * It has a number of its own, HANGSCOPE_GUARD_NULL. */
void hangscope_guard_null(void);
/* Reports the first that changed; the next look reports the next. */
void hangscope_guards_look(void);

#ifdef HANGSCOPE_DEFINE

struct hangscope_guarded {
  uintptr_t address;
  uint32_t wanted;
  uint32_t set; /* which time it was set, from 1; 0: not guarded */
  uint32_t times;
};
/* The last is address 0's. */
static struct hangscope_guarded hangscope_guard_table[HANGSCOPE_GUARDS + 1];

HANGSCOPE_INLINE void hangscope_guard_no_longer(struct hangscope_guarded* guard) {
  hangscope_port_store(&guard->set, 0);
  /* what comes next comes later for who looks: see hangscope_guards_look */
  hangscope_port_stores_in_order();
}
HANGSCOPE_INLINE void hangscope_guard_as(struct hangscope_guarded* guard, uintptr_t address,
                                         uint32_t wanted) {
  hangscope_guard_no_longer(guard);
  __atomic_store_n(&guard->address, address, __ATOMIC_RELAXED);
  hangscope_port_store(&guard->wanted, wanted);
  /* pairs with hangscope_guards_look's first load */
  hangscope_port_publish(&guard->set, ++guard->times);
}

HANGSCOPE_COLD void hangscope_guard(uint32_t number, const void* address, uint32_t wanted) {
  if (number >= HANGSCOPE_GUARDS) return;
  if (address == 0) {
    hangscope_guard_no_longer(&hangscope_guard_table[number]);
  } else {
    hangscope_guard_as(&hangscope_guard_table[number], (uintptr_t)address, wanted);
  }
}

/* An address that the compiler does not know: it takes a look at address 0 for an error. */
HANGSCOPE_INLINE uint32_t hangscope_guard_found(uintptr_t address) {
  __asm__("" : "+r"(address));
  return hangscope_port_load((const uint32_t*)address);
}

HANGSCOPE_COLD void hangscope_guard_null(void) {
  hangscope_guard_as(&hangscope_guard_table[HANGSCOPE_GUARDS], 0, hangscope_guard_found(0));
}

HANGSCOPE_COLD void hangscope_guards_look(void) {
  if (hangscope_core_of(hangscope_this_mailbox()) >= HANGSCOPE_CORES ||
      !hangscope_is_on(HANGSCOPE_WATCH_GUARDS))
    return;
  for (uint32_t i = 0; i <= HANGSCOPE_GUARDS; i++) {
    struct hangscope_guarded* const guard = &hangscope_guard_table[i];
    const uint32_t set = hangscope_port_load_acquire(&guard->set);
    if (set == 0) continue;
    const uintptr_t address = __atomic_load_n(&guard->address, __ATOMIC_RELAXED);
    const uint32_t found = hangscope_guard_found(address);
    if (found == hangscope_port_load(&guard->wanted)) continue;
    /* Of cores that find it at the same time, one reports it; and none if it was set anew
     * meanwhile. */
    if (!hangscope_port_swap_if(&guard->set, set, 0)) continue;
    struct hangscope_fault fault;
    hangscope_no_fault(&fault);
    fault.kind = i < HANGSCOPE_GUARDS ? i : HANGSCOPE_GUARD_NULL;
    fault.address[0] = (uint32_t)address;
    fault.address[1] = (uint32_t)((uint64_t)address >> 32);
    fault.value[0] = found;
    hangscope_fault_is(HANGSCOPE_FAULT_GUARD, &fault);
    return;
  }
}

#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_guard(uint32_t number, const void* address, uint32_t wanted) {
  (void)number, (void)address, (void)wanted;
}
HANGSCOPE_OFF void hangscope_guard_null(void) {}
HANGSCOPE_OFF void hangscope_guards_look(void) {}
HANGSCOPE_OFF_END
#define hangscope_guard(...) HANGSCOPE_NOT_DONE((hangscope_guard)(__VA_ARGS__))

#endif

#ifdef __cplusplus
}
#endif

#endif

/* Numbers that somebody wants to see afterwards: the debug ring of a node.
 *
 *   HANGSCOPE_DEBUG(state << 16 | count);      32 bits are kept, with who wrote them and in which
 *                                              order
 *
 * Each core of the node keeps its latest HANGSCOPE_DEBUG_RING values; the host puts them in order.
 * Any context: handlers and tasks that preempt each other on one core do not mix their values. One
 * that laps an unfinished one gives up and is counted. Values of two cores that were written at the
 * same time may have one order where there are no atomic instructions (port/riscv.h). */
#ifndef HANGSCOPE_TARGET_DEBUG_H
#define HANGSCOPE_TARGET_DEBUG_H

#include "hangscope/target/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_DEBUG_RING

#define HANGSCOPE_DEBUG(value) hangscope_debug((uint32_t)(uintptr_t)(value))

HANGSCOPE_CALLED void hangscope_debug(uint32_t value);

#if !HANGSCOPE_OUT_OF_LINE || defined(HANGSCOPE_DEFINE)

#ifdef HANGSCOPE_PORT_MASKS_INTERRUPTS
/* One more than that of any value which a core of the node has written: each core tells its own,
 * and looks at all, as those who come into Lamport's bakery draw their numbers. */
HANGSCOPE_INLINE uint32_t hangscope_debug_draw(struct hangscope_scope* scope, uint32_t core,
                                               uint32_t node) {
  const uintptr_t before = hangscope_port_enter();
  uint32_t newest = hangscope_port_load(&scope->details[core].debug_order[0]);
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {
    const uint32_t order = hangscope_port_load(&scope->details[i].debug_order[0]);
    if (scope->mailboxes[i].node == node && (int32_t)(order - newest) > 0) newest = order;
  }
  if (++newest == 0) newest = 1; /* 0 is that of none */
  hangscope_port_store(&scope->details[core].debug_order[0], newest);
  hangscope_port_store(&scope->nodes[node].debug_order, newest);
  hangscope_port_leave(before);
  return newest;
}
#else
HANGSCOPE_INLINE uint32_t hangscope_debug_draw(struct hangscope_scope* scope, uint32_t core,
                                               uint32_t node) {
  (void)core;
  return hangscope_port_add(&scope->nodes[node].debug_order, 1) + 1;
}
#endif

/* A slot's order is 0 while it is written. It is, too, before its first use, when nobody can be at
 * it: that is where `number` is small. The order is taken late, so that none is taken for nothing.
 */
HANGSCOPE_CALLED void hangscope_debug(uint32_t value) {
  const struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  const uint32_t core = hangscope_core_of(mailbox);
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (core >= HANGSCOPE_CORES || !hangscope_is_on(HANGSCOPE_WATCH_DEBUG)) return;
  struct hangscope_core_detail* const mine = &scope->details[core];
  const uint32_t node = mailbox->node < HANGSCOPE_NODES ? mailbox->node : 0;
  const uint32_t number = hangscope_port_add(&mine->detail.debug_next, 1);
  struct hangscope_debug_value* const slot = &mine->debug[number % HANGSCOPE_DEBUG_RING];
  /* Pairs with the reader's second look at the order: before the value changes, it is 0. */
  if (hangscope_port_swap(&slot->order, 0) == 0 && number >= HANGSCOPE_DEBUG_RING) {
    (void)hangscope_port_add(&mine->detail.debug_refused, 1);
    return;
  }
  hangscope_port_store(&slot->value, value);
  const uint32_t order = hangscope_debug_draw(scope, core, node);
  /* Publishes the value: pairs with the reader's first look at the order. */
  hangscope_port_publish(&slot->order, order);
}

#endif

#else

#define HANGSCOPE_DEBUG(value) ((void)0)

#endif

#ifdef __cplusplus
}
#endif

#endif

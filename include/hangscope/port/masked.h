/* What a port does without atomic instructions, on one core: with interrupts masked. A writer masks
 * them from its reservation to its commit, the others for the few instructions that they take.
 *
 * For ports, which have hangscope_port_enter and _leave before they include it, and
 * hangscope_port_order_stores: the stores before it are seen before those after it, by a reader on
 * another core or a debugger's probe. */
#ifndef HANGSCOPE_PORT_MASKED_H
#define HANGSCOPE_PORT_MASKED_H

/* Between enter and leave, both. */
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
  volatile uintptr_t* const ticket = (volatile uintptr_t*)(void*)head;
  const uintptr_t was = *ticket;
  *ticket = was + HANGSCOPE_TICKET_STEP;
  hangscope_port_order_stores(); /* the head is seen first */
  return (uint32_t)was;
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  (void)mark; /* nobody interrupts */
  return 0;
}

HANGSCOPE_INLINE uint32_t hangscope_port_add(uint32_t* word, uint32_t value) {
  const uintptr_t before = hangscope_port_enter();
  const uint32_t was = *(volatile uint32_t*)word;
  *(volatile uint32_t*)word = was + value;
  hangscope_port_leave(before);
  return was;
}
HANGSCOPE_INLINE uint32_t hangscope_port_swap(uint32_t* word, uint32_t value) {
  const uintptr_t before = hangscope_port_enter();
  const uint32_t was = *(volatile uint32_t*)word;
  *(volatile uint32_t*)word = value;
  hangscope_port_order_stores(); /* what comes later comes later for a reader, too */
  hangscope_port_leave(before);
  return was;
}
HANGSCOPE_INLINE int hangscope_port_swap_if(uint32_t* word, uint32_t expected, uint32_t value) {
  const uintptr_t before = hangscope_port_enter();
  const int same = *(volatile uint32_t*)word == expected;
  if (same) *(volatile uint32_t*)word = value;
  hangscope_port_leave(before);
  return same;
}

#endif

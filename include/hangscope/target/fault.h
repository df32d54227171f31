/* A core's first fault, and what becomes of the core. What asserts, the bus, stacks and guard words
 * use.
 *
 * Each core keeps its first fault and counts the others; its node keeps which of its cores was
 * first. */
#ifndef HANGSCOPE_TARGET_FAULT_H
#define HANGSCOPE_TARGET_FAULT_H

#include "hangscope/target/scope.h"

#if HANGSCOPE_ENABLE && HANGSCOPE_HAS_FAULTS

#ifdef __cplusplus
extern "C" {
#endif

/* There is no memset to call. */
HANGSCOPE_INLINE void hangscope_no_fault(struct hangscope_fault* fault) {
  for (uint32_t i = 0; i < sizeof *fault / 4; i++) ((volatile uint32_t*)(void*)fault)[i] = 0;
}

/* Records the calling core's fault: `found` has what is known of it, but for type, time and epoch.
 * Any context. A fault inside a handler of the same core, in the middle of this, is counted only.
 */
void hangscope_fault_is(enum hangscope_fault_type type, const struct hangscope_fault* found);

/* The calling core does nothing more; what it holds stays as it is. The rest of the target goes on.
 */
#define hangscope_halt() hangscope_port_halt()

#ifdef HANGSCOPE_DEFINE

HANGSCOPE_COLD void hangscope_fault_is(enum hangscope_fault_type type,
                                       const struct hangscope_fault* found) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  const uint32_t core = hangscope_core_of(mailbox);
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0 || core >= HANGSCOPE_CORES) return;
  struct hangscope_detail* const detail = &scope->details[core].detail;
  if (hangscope_port_add(&detail->faults, 1) != 0) return;
  const uint32_t node = mailbox->node < HANGSCOPE_NODES ? mailbox->node : 0;
  /* Tried again where the hardware failed for no reason; whoever came first stays. */
  for (int i = 0; i < 8 && hangscope_port_load(&scope->nodes[node].first_fault) == 0; i++) {
    if (hangscope_port_swap_if(&scope->nodes[node].first_fault, 0, core + 1)) break;
  }
  const uint64_t now = hangscope_port_clock64();
  const uint32_t* const from = (const uint32_t*)(const void*)found;
  uint32_t* const to = (uint32_t*)(void*)&detail->fault;
  for (uint32_t i = 1; i < sizeof detail->fault / 4 - 2; i++) hangscope_port_store(&to[i], from[i]);
  hangscope_port_store(&detail->fault.time, (uint32_t)now);
  hangscope_port_store(&detail->fault.epoch, (uint32_t)(now >> 30));
  hangscope_port_store(&detail->fault.type, type);
  /* Publishes the fault: pairs with the host's look at the mailbox before it reads the details. */
  hangscope_port_publish(&mailbox->fault, type);
}

#endif

#ifdef __cplusplus
}
#endif

#endif

#endif

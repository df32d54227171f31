/* How much of each core's stack was never used.
 *
 *   hangscope_stack_paint(stack, sizeof stack);   early, on that stack, by the core whose stack it
 *                                                 is
 *   hangscope_stack_look();                       at a kernel's end, or each so many rounds
 *
 * A look searches from the lowest byte up for the first that lost its paint, so it takes the longer
 * the less was used: it belongs in no heartbeat and in no interrupt handler. A stack that has not
 * one painted word left has overflowed, or is about to: a fault, once; the core goes on. What was
 * used and holds the paint's pattern by chance counts as free.
 *
 * Painted again, for the next kernel, it counts anew; details[].stack_lowest keeps the least of
 * all. */
#ifndef HANGSCOPE_TARGET_STACK_H
#define HANGSCOPE_TARGET_STACK_H

#include "hangscope/target/fault.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As FreeRTOS paints, so that a stack that it painted can be looked at, too. */
#define HANGSCOPE_STACK_PAINT 0xa5a5a5a5u
/* Bytes below the frame of the function that paints, of which it uses some itself. */
#define HANGSCOPE_STACK_MARGIN 256u

#if HANGSCOPE_ENABLE && HANGSCOPE_STACKS

/* Paints the calling core's stack of so many bytes, from its lowest one to where it is in use.
 * Whole words count. Returns 1, or 0 where it did nothing: the caller runs on another stack, the
 * thread has no mailbox, or there is no whole word. */
int hangscope_stack_paint(void* lowest, uint32_t bytes);
/* The same, where the kernel has painted it already, with HANGSCOPE_STACK_PAINT; which stack the
 * caller is on is not looked at. */
int hangscope_stack_is(void* lowest, uint32_t bytes);
/* Writes how many bytes are free to the calling core's mailbox and details; does nothing for a
 * stack that is not painted, or when stacks are switched off. */
void hangscope_stack_look(void);

#ifdef HANGSCOPE_DEFINE

#define HANGSCOPE_UNCHECKED __attribute__((no_sanitize_address, no_sanitize_thread))

/* Not in the scope, where addresses of 64 bits would have no place that a host needs. */
struct hangscope_stack {
  const volatile uint32_t* lowest; /* null: not painted */
  uint32_t words;
};
#ifdef HANGSCOPE_PORT_THREADS
static __thread struct hangscope_stack hangscope_own_stack
    __attribute__((tls_model("initial-exec")));
HANGSCOPE_INLINE struct hangscope_stack* hangscope_stack_of(uint32_t core) {
  return (void)core, &hangscope_own_stack;
}
#else
static struct hangscope_stack hangscope_stacks[HANGSCOPE_CORES];
HANGSCOPE_INLINE struct hangscope_stack* hangscope_stack_of(uint32_t core) {
  return &hangscope_stacks[core];
}
#endif

HANGSCOPE_COLD int hangscope_stack_is(void* lowest, uint32_t bytes) {
  const uint32_t core = hangscope_core_of(hangscope_this_mailbox());
  const uint32_t skipped = (uint32_t)(-(uintptr_t)lowest & 3u); /* to the first whole word */
  if (core >= HANGSCOPE_CORES || bytes < skipped + 4) return 0;
  struct hangscope_stack* const stack = hangscope_stack_of(core);
  stack->lowest = (const volatile uint32_t*)(void*)((char*)lowest + skipped);
  stack->words = (bytes - skipped) / 4;
  hangscope_port_store(&hangscope_the_scope()->mailboxes[core].stack_free, HANGSCOPE_NOT_KNOWN);
  hangscope_port_store(&hangscope_the_scope()->details[core].detail.stack_bytes, stack->words * 4);
  return 1;
}

/* Sanitizers know nothing of a stack's unused part. An interrupt's frames come and go below this
 * one's: what they leave there is painted over. */
HANGSCOPE_UNCHECKED HANGSCOPE_COLD int hangscope_stack_paint(void* lowest, uint32_t bytes) {
  const uintptr_t begin = (uintptr_t)lowest;
  const uintptr_t used = (uintptr_t)__builtin_frame_address(0);
  if (used < begin || used - begin > bytes || !hangscope_stack_is(lowest, bytes)) return 0;
  for (uintptr_t at = (begin + 3) & ~(uintptr_t)3; at + 4 + HANGSCOPE_STACK_MARGIN <= used;
       at += 4) {
    *(volatile uint32_t*)at = HANGSCOPE_STACK_PAINT;
  }
  return 1;
}

HANGSCOPE_UNCHECKED HANGSCOPE_COLD void hangscope_stack_look(void) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  const uint32_t core = hangscope_core_of(mailbox);
  if (core >= HANGSCOPE_CORES || !hangscope_is_on(HANGSCOPE_WATCH_STACKS)) return;
  const struct hangscope_stack* const stack = hangscope_stack_of(core);
  if (stack->lowest == 0) return;
  uint32_t words = 0;
  while (words < stack->words && stack->lowest[words] == HANGSCOPE_STACK_PAINT) words++;
  struct hangscope_detail* const detail = &hangscope_the_scope()->details[core].detail;
  const int was_free = hangscope_port_load(&mailbox->stack_free) != 0;
  if (words * 4 < hangscope_port_load(&detail->stack_lowest)) {
    hangscope_port_store(&detail->stack_lowest, words * 4);
    hangscope_port_store(&detail->stack_kernel, hangscope_port_load(&mailbox->kernel));
  }
  /* a child of fork has other details */
  hangscope_port_store(&detail->stack_bytes, stack->words * 4);
  /* Publishes the details: pairs with a host's look at the mailbox before it reads them. */
  hangscope_port_publish(&mailbox->stack_free, words * 4);
  if (words == 0 && was_free) {
    struct hangscope_fault found;
    hangscope_no_fault(&found);
    found.address[0] = (uint32_t)(uintptr_t)stack->lowest;
    found.address[1] = (uint32_t)((uint64_t)(uintptr_t)stack->lowest >> 32);
    hangscope_fault_is(HANGSCOPE_FAULT_STACK, &found);
  }
}

#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF int hangscope_stack_paint(void* lowest, uint32_t bytes) {
  return (void)lowest, (void)bytes, 0;
}
HANGSCOPE_OFF int hangscope_stack_is(void* lowest, uint32_t bytes) {
  return (void)lowest, (void)bytes, 0;
}
HANGSCOPE_OFF void hangscope_stack_look(void) {}
HANGSCOPE_OFF_END

#endif

#ifdef __cplusplus
}
#endif

#endif

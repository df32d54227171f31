/* What kernel.c and sync.c share. */
#ifndef EXAMPLES_TRACE_SCHED_INTERNAL_H
#define EXAMPLES_TRACE_SCHED_INTERNAL_H

#include "hangscope/hangscope.h"
#include "kernel.h"

/* Interrupts off; returns what to give to kernel_unlock. Nests. */
static inline uintptr_t kernel_lock(void) {
  uintptr_t before;
  __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before)::"memory");
  return before & 8;
}
static inline void kernel_unlock(uintptr_t before) {
  __asm__ volatile("csrs mstatus, %0" ::"r"(before) : "memory");
}

/* Locked, both: the caller waits for `object` until kernel_wake(object) picks it. */
void kernel_block(const void* object, enum hangscope_resource_kind kind, task_id holder);
/* The most urgent task that waits for `object`, the longest waiting among equals; KERNEL_NO_TASK if
 * none does. The caller preempts itself when it has finished. */
task_id kernel_wake(const void* object);
/* Reschedules if a task is ready that is more urgent than the caller. */
void kernel_preempt(void);

/* What an object is called in records. */
static inline uint32_t kernel_name(const void* object) { return (uint32_t)(uintptr_t)object; }

#endif

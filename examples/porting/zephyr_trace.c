/* Zephyr: add this file to the application, with CONFIG_TRACING=y and CONFIG_TRACING_USER=y. It replaces
 * the weak functions of the user tracing format (subsys/tracing/user). Call hangscope_init() early in
 * main: what comes before is not recorded.
 *
 * A thread's id is its address. The hooks do not say which interrupt it is, nor for what a thread
 * pends: interrupt 0, and no wait records. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

#include <zephyr/kernel.h>

#if HANGSCOPE_ENABLE

static uint32_t id_of(const struct k_thread *thread) { return (uint32_t)(uintptr_t)thread; }

void sys_trace_thread_create_user(struct k_thread *thread) {
  /* Zephyr's idle thread has CONFIG_NUM_PREEMPT_PRIORITIES, and who is more urgent a smaller number;
   * in a record it is the other way. */
  hangscope_task_create(id_of(thread), (uint32_t)(CONFIG_NUM_PREEMPT_PRIORITIES - k_thread_priority_get(thread)));
}
void sys_trace_thread_abort_user(struct k_thread *thread) { hangscope_task_destroy(id_of(thread), 0); }
void sys_trace_thread_suspend_user(struct k_thread *thread) { hangscope_task_suspend(id_of(thread)); }
void sys_trace_thread_resume_user(struct k_thread *thread) { hangscope_task_resume(id_of(thread)); }

/* The thread that ran before is known here only. */
void sys_trace_thread_switched_in_user(void) {
  static uint32_t runs[HANGSCOPE_CORES];
  uint32_t *const here = &runs[HANGSCOPE_PORT_CORE()];
  const uint32_t next = id_of(k_sched_current_thread_query());
  if (next == *here) return;
  hangscope_task_switch(*here, next);
  *here = next;
}

void sys_trace_isr_enter_user(void) { hangscope_isr_enter(0); }
void sys_trace_isr_exit_user(void) { hangscope_isr_exit(0); }

#endif

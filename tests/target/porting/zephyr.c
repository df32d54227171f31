/* Stands in for Zephyr: calls the hooks as its tracing_user.c does. */
#include <zephyr/kernel.h>

#include "hangscope/hangscope.h"
#include "platform.h"

static struct k_thread one = {5}, two = {6};
static struct k_thread* current = &one;

int k_thread_priority_get(k_tid_t thread) { return thread->priority; }
k_tid_t k_sched_current_thread_query(void) { return current; }

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
  (void)two;
#if HANGSCOPE_ENABLE
  sys_trace_thread_create_user(&one);
  sys_trace_thread_create_user(&two);
  sys_trace_thread_switched_in_user();
  sys_trace_isr_enter_user();
  current = &two;
  sys_trace_isr_exit_user();
  sys_trace_thread_switched_in_user();
  sys_trace_thread_switched_in_user();
  sys_trace_thread_suspend_user(&one);
  sys_trace_thread_resume_user(&one);
  sys_trace_thread_abort_user(&one);
  hangscope_dump(platform_put, 0);
#endif
  platform_power_off();
}

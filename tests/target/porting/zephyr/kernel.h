/* Stands in for Zephyr's, as far as examples/porting/zephyr_trace.c uses it. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stdint.h>

struct k_thread {
  int priority;
};
typedef struct k_thread* k_tid_t;

#define CONFIG_NUM_PREEMPT_PRIORITIES 15

int k_thread_priority_get(k_tid_t thread);
k_tid_t k_sched_current_thread_query(void);

/* subsys/tracing/user/tracing_user.h */
void sys_trace_thread_create_user(struct k_thread* thread);
void sys_trace_thread_abort_user(struct k_thread* thread);
void sys_trace_thread_suspend_user(struct k_thread* thread);
void sys_trace_thread_resume_user(struct k_thread* thread);
void sys_trace_thread_switched_in_user(void);
void sys_trace_isr_enter_user(void);
void sys_trace_isr_exit_user(void);

#endif

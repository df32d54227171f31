/* Stands in for Zephyr's, as far as examples/porting/zephyr_trace.c uses it. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stdint.h>

struct k_thread {
  struct {
    void* pended_on; /* the wait queue, which mutexes and semaphores begin with */
  } base;
  int priority;
  const char* name;
};
typedef struct k_thread* k_tid_t;
typedef struct {
  int32_t ticks;
} k_timeout_t;
#define K_FOREVER ((k_timeout_t){-1})
#define K_TIMEOUT_EQ(a, b) ((a).ticks == (b).ticks)

struct k_mutex {
  struct k_thread* owner;
  uint32_t lock_count;
};
struct k_sem {
  unsigned count;
};
struct k_msgq {
  uint32_t used_msgs;
};
struct k_condvar {
  int waiters;
};
struct k_event {
  uint32_t events;
};
struct k_mbox {
  int messages;
};
struct k_mem_slab {
  uint32_t used;
};

#define CONFIG_NUM_PREEMPT_PRIORITIES 15

int k_thread_priority_get(k_tid_t thread);
k_tid_t k_sched_current_thread_query(void);
const char* k_thread_name_get(k_tid_t thread);

/* subsys/tracing/user/tracing_user.h */
void sys_trace_thread_create_user(struct k_thread* thread);
void sys_trace_thread_name_set_user(struct k_thread* thread);
void sys_trace_thread_abort_user(struct k_thread* thread);
void sys_trace_thread_suspend_user(struct k_thread* thread);
void sys_trace_thread_resume_user(struct k_thread* thread);
void sys_trace_thread_sched_ready_user(struct k_thread* thread);
void sys_trace_thread_switched_in_user(void);
void sys_trace_isr_enter_user(void);
void sys_trace_isr_exit_user(void);
void sys_trace_k_mutex_lock_blocking_user(struct k_mutex* mutex, k_timeout_t timeout);
void sys_trace_k_mutex_lock_exit_user(struct k_mutex* mutex, k_timeout_t timeout, int ret);
void sys_trace_k_mutex_unlock_enter_user(struct k_mutex* mutex);
void sys_trace_k_sem_give_exit_user(struct k_sem* sem);
void sys_trace_k_sem_take_blocking_user(struct k_sem* sem, k_timeout_t timeout);
void sys_trace_k_sem_take_exit_user(struct k_sem* sem, k_timeout_t timeout, int ret);
void sys_trace_k_msgq_put_blocking_user(struct k_msgq* queue, k_timeout_t timeout);
void sys_trace_k_msgq_get_blocking_user(struct k_msgq* queue, k_timeout_t timeout);
void sys_trace_k_msgq_put_exit_user(struct k_msgq* queue, k_timeout_t timeout, int ret);
void sys_trace_k_msgq_get_exit_user(struct k_msgq* queue, k_timeout_t timeout, int ret);
void sys_trace_k_condvar_wait_enter_user(struct k_condvar* condvar, k_timeout_t timeout);
void sys_trace_k_event_wait_blocking_user(struct k_event* event, uint32_t events, uint32_t options,
                                          k_timeout_t timeout);
void sys_trace_k_mbox_get_blocking_user(struct k_mbox* mbox, k_timeout_t timeout);
void sys_trace_k_mbox_message_put_blocking_user(struct k_mbox* mbox, k_timeout_t timeout);
void sys_trace_k_mem_slab_alloc_blocking_user(struct k_mem_slab* slab, k_timeout_t timeout);
void sys_trace_k_thread_join_blocking_user(struct k_thread* thread, k_timeout_t timeout);
void sys_trace_k_thread_sleep_enter_user(k_timeout_t timeout);
void sys_trace_k_thread_msleep_enter_user(int32_t ms);
void sys_trace_k_thread_usleep_enter_user(int32_t us);

#endif

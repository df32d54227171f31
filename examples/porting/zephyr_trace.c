/* Zephyr: add this file to the application, with CONFIG_TRACING=y, CONFIG_TRACING_USER=y and -DHANGSCOPE_TASKS=N, as many
 * as there are threads: it is 0 by default, and then no host finds a deadlock. It replaces the weak functions of the user
 * tracing format (subsys/tracing/user). Call hangscope_init() early in main: what comes before is not recorded.
 *
 * A thread's id is its address, and its name that of k_thread_name_set. The hooks do not say which interrupt it is:
 * interrupt 0.
 *
 * What a thread waits for is known by the hooks of mutexes, semaphores, message queues, condition variables, events, mailboxes,
 * memory slabs, joins and sleeps, which the user format has since the version that brought sys_trace_k_mutex_lock_blocking_user.
 * Of other objects, and in older versions, it is the wait queue that the thread pends on, seen when another one runs in its
 * place: which object has that queue is not known, nor who holds it. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

#include <zephyr/kernel.h>

#if HANGSCOPE_ENABLE

static uint32_t id_of(const struct k_thread *thread) { return (uint32_t)(uintptr_t)thread; }
static uint32_t address_of(const void *object) { return (uint32_t)(uintptr_t)object; }
static uint32_t self(void) { return id_of(k_sched_current_thread_query()); }

static void waits(uint32_t thread, enum hangscope_resource_kind kind, uint32_t resource, uint32_t holder) {
  hangscope_task_waits(hangscope_task_slot_of(thread), thread, kind, resource, holder);
}
static void waits_for(const void *channel) {
  waits(self(), HANGSCOPE_RESOURCE_CHANNEL, address_of(channel), HANGSCOPE_NO_TASK);
}
static void sleeps(int for_ever) {
  waits(self(), for_ever ? HANGSCOPE_RESOURCE_SUSPENDED : HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);
}
static int is_idle(struct k_thread *thread) { return k_thread_priority_get(thread) >= CONFIG_NUM_PREEMPT_PRIORITIES; }
/* Nobody misses the idle thread. */
static void is_ready(struct k_thread *thread) {
  const uint32_t slot = hangscope_task_slot(id_of(thread));
  if (is_idle(thread))
    hangscope_task_waits(slot, id_of(thread), HANGSCOPE_RESOURCE_OUTSIDE, 0, HANGSCOPE_NO_TASK);
  else
    hangscope_task_ready(slot, id_of(thread));
}

/* The thread that runs on each core; 0: none yet, or it is gone. */
static struct k_thread *runs[HANGSCOPE_CORES];

void sys_trace_thread_create_user(struct k_thread *thread) {
  /* Zephyr's idle thread has CONFIG_NUM_PREEMPT_PRIORITIES, and who is more urgent a smaller number;
   * in a record it is the other way. */
  hangscope_task_create(id_of(thread), (uint32_t)(CONFIG_NUM_PREEMPT_PRIORITIES - k_thread_priority_get(thread)));
  /* Until it is started, which makes it ready. */
  hangscope_task_waits(hangscope_task_slot(id_of(thread)), id_of(thread),
                       is_idle(thread) ? HANGSCOPE_RESOURCE_OUTSIDE : HANGSCOPE_RESOURCE_SUSPENDED, 0, HANGSCOPE_NO_TASK);
}
void sys_trace_thread_name_set_user(struct k_thread *thread) {
  hangscope_task_is_named(id_of(thread), k_thread_name_get(thread));
}
void sys_trace_thread_abort_user(struct k_thread *thread) {
  const uint32_t id = id_of(thread);
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
    if (runs[core] == thread) runs[core] = 0;
  }
  hangscope_task_destroy(id, 0);
  hangscope_task_is_named(id, 0);
  hangscope_task_gone(hangscope_task_slot_of(id), id);
}
void sys_trace_thread_suspend_user(struct k_thread *thread) {
  hangscope_task_suspend(id_of(thread));
  waits(id_of(thread), HANGSCOPE_RESOURCE_SUSPENDED, 0, HANGSCOPE_NO_TASK);
}
/* One that waited when it was suspended waits on. */
void sys_trace_thread_resume_user(struct k_thread *thread) {
  hangscope_task_resume(id_of(thread));
  if (thread->base.pended_on != 0)
    waits(id_of(thread), HANGSCOPE_RESOURCE_CHANNEL, address_of(thread->base.pended_on), HANGSCOPE_NO_TASK);
}
void sys_trace_thread_sched_ready_user(struct k_thread *thread) { is_ready(thread); }

/* The thread that ran before is known here only; so is its wait, where no hook of its object told. A thread that was there
 * before hangscope_init has no record until it runs. */
static void left(struct k_thread *thread) {
#if HANGSCOPE_TASKS > 0
  const uint32_t slot = hangscope_task_slot_of(id_of(thread));
  const struct hangscope_task *const record = hangscope_task_record(slot);
  if (thread->base.pended_on == 0 || record == 0 || hangscope_port_load(&record->state) != HANGSCOPE_TASK_READY) return;
  hangscope_task_waits(slot, id_of(thread), HANGSCOPE_RESOURCE_CHANNEL, address_of(thread->base.pended_on), HANGSCOPE_NO_TASK);
#else
  (void)thread;
#endif
}
static void comes(struct k_thread *thread) {
#if HANGSCOPE_TASKS > 0
  if (hangscope_task_slot_of(id_of(thread)) == HANGSCOPE_TASKS) is_ready(thread);
#endif
  hangscope_task_runs(id_of(thread));
}
void sys_trace_thread_switched_in_user(void) {
  struct k_thread **const here = &runs[HANGSCOPE_PORT_CORE()];
  struct k_thread *const next = k_sched_current_thread_query();
  if (next == *here) return;
  if (*here != 0) left(*here);
  hangscope_task_switch(*here == 0 ? 0 : id_of(*here), id_of(next));
  comes(next);
  *here = next;
}

void sys_trace_isr_enter_user(void) { hangscope_isr_enter(0); }
void sys_trace_isr_exit_user(void) { hangscope_isr_exit(0); }

/* Mutexes. While a mutex is handed on nobody is said to have it: its new owner may run, and wait, before unlock returns. */
void sys_trace_k_mutex_lock_blocking_user(struct k_mutex *mutex, k_timeout_t timeout) {
  (void)timeout;
  waits(self(), HANGSCOPE_RESOURCE_EXCLUSIVE, address_of(mutex), mutex->owner == 0 ? HANGSCOPE_NO_TASK : id_of(mutex->owner));
}
void sys_trace_k_mutex_lock_exit_user(struct k_mutex *mutex, k_timeout_t timeout, int result) {
  (void)timeout;
  if (result != 0) return;
  hangscope_mutex_lock(address_of(mutex), self());
  hangscope_holder_is(address_of(mutex), self());
}
void sys_trace_k_mutex_unlock_enter_user(struct k_mutex *mutex) {
  if (mutex->lock_count != 1 || mutex->owner != k_sched_current_thread_query()) return;
  hangscope_mutex_unlock(address_of(mutex));
  hangscope_holder_is(address_of(mutex), HANGSCOPE_NO_TASK);
}

/* Semaphores and message queues, with what is in them. */
void sys_trace_k_sem_give_exit_user(struct k_sem *sem) { hangscope_semaphore_post(address_of(sem), (int32_t)sem->count); }
void sys_trace_k_sem_take_blocking_user(struct k_sem *sem, k_timeout_t timeout) { (void)timeout, waits_for(sem); }
void sys_trace_k_sem_take_exit_user(struct k_sem *sem, k_timeout_t timeout, int result) {
  (void)timeout;
  if (result == 0) hangscope_semaphore_wait(address_of(sem), (int32_t)sem->count);
}
void sys_trace_k_msgq_put_blocking_user(struct k_msgq *queue, k_timeout_t timeout) { (void)timeout, waits_for(queue); }
void sys_trace_k_msgq_get_blocking_user(struct k_msgq *queue, k_timeout_t timeout) { (void)timeout, waits_for(queue); }
void sys_trace_k_msgq_put_exit_user(struct k_msgq *queue, k_timeout_t timeout, int result) {
  (void)timeout;
  if (result == 0) hangscope_queue_send(address_of(queue), queue->used_msgs);
}
void sys_trace_k_msgq_get_exit_user(struct k_msgq *queue, k_timeout_t timeout, int result) {
  (void)timeout;
  if (result == 0) hangscope_queue_receive(address_of(queue), queue->used_msgs);
}

/* A condition variable's mutex is given up behind this. */
void sys_trace_k_condvar_wait_enter_user(struct k_condvar *condvar, k_timeout_t timeout) { (void)timeout, waits_for(condvar); }
void sys_trace_k_event_wait_blocking_user(struct k_event *event, uint32_t events, uint32_t options, k_timeout_t timeout) {
  (void)events, (void)options, (void)timeout;
  waits_for(event);
}
void sys_trace_k_mbox_get_blocking_user(struct k_mbox *mbox, k_timeout_t timeout) { (void)timeout, waits_for(mbox); }
void sys_trace_k_mbox_message_put_blocking_user(struct k_mbox *mbox, k_timeout_t timeout) { (void)timeout, waits_for(mbox); }
void sys_trace_k_mem_slab_alloc_blocking_user(struct k_mem_slab *slab, k_timeout_t timeout) { (void)timeout, waits_for(slab); }
/* For another thread's end: as if that one held it. */
void sys_trace_k_thread_join_blocking_user(struct k_thread *thread, k_timeout_t timeout) {
  (void)timeout;
  waits(self(), HANGSCOPE_RESOURCE_EXCLUSIVE, id_of(thread), id_of(thread));
}

void sys_trace_k_thread_sleep_enter_user(k_timeout_t timeout) {
  hangscope_task_delay((uint32_t)timeout.ticks);
  sleeps(K_TIMEOUT_EQ(timeout, K_FOREVER));
}
void sys_trace_k_thread_msleep_enter_user(int32_t ms) {
  hangscope_task_delay((uint32_t)ms);
  sleeps(0);
}
void sys_trace_k_thread_usleep_enter_user(int32_t us) {
  hangscope_task_delay((uint32_t)us);
  sleeps(0);
}

#endif

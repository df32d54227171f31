/* Stands in for Zephyr: calls the hooks as its kernel does by way of tracing_user.c. */
#include <zephyr/kernel.h>

#include "hangscope/hangscope.h"
#include "platform.h"
#include "turns.h"

static struct k_thread* current;

int k_thread_priority_get(k_tid_t thread) { return thread->priority; }
k_tid_t k_sched_current_thread_query(void) { return current; }
const char* k_thread_name_get(k_tid_t thread) { return thread->name; }

#if HANGSCOPE_ENABLE
static void switch_to(struct k_thread* thread) {
  current = thread;
  sys_trace_thread_switched_in_user();
}

static void records(void) {
  static struct k_thread one = {.priority = 5}, two = {.priority = 6};
  sys_trace_thread_create_user(&one);
  sys_trace_thread_create_user(&two);
  switch_to(&one);
  sys_trace_isr_enter_user();
  current = &two;
  sys_trace_isr_exit_user();
  switch_to(&two);
  switch_to(&two);
  sys_trace_thread_suspend_user(&one);
  sys_trace_thread_resume_user(&one);
  static struct k_sem sem;
  sem.count = 1;
  sys_trace_k_sem_give_exit_user(&sem);
  sem.count = 0;
  sys_trace_k_sem_take_exit_user(&sem, K_FOREVER, 0);
  sys_trace_k_sem_take_exit_user(&sem, K_FOREVER, -11); /* its time was over */
  static struct k_msgq queue;
  queue.used_msgs = 1;
  sys_trace_k_msgq_put_exit_user(&queue, K_FOREVER, 0);
  queue.used_msgs = 0;
  sys_trace_k_msgq_get_exit_user(&queue, K_FOREVER, 0);
  sys_trace_k_thread_msleep_enter_user(7);
  sys_trace_thread_abort_user(&one);
}

static void lock(struct k_mutex* mutex) {
  mutex->owner = current;
  mutex->lock_count++;
  sys_trace_k_mutex_lock_exit_user(mutex, K_FOREVER, 0);
}
static void unlock(struct k_mutex* mutex, struct k_thread* next) {
  sys_trace_k_mutex_unlock_enter_user(mutex);
  if (--mutex->lock_count > 0) return;
  mutex->owner = next;
  mutex->lock_count = next != 0;
}

/* In the end one and two wait for each other's mutex; three waits for a mutex that one gave to two,
 * four for an object without hooks, five for the end of four, six sleeps, seven was never started,
 * eight is the idle thread. */
static void leave_waits(void) {
  static struct k_thread threads[8];
  static struct k_mutex a, b, c;
  static char fifo;
  for (int i = 0; i < 8; i++) {
    threads[i].priority = i < 7 ? i : CONFIG_NUM_PREEMPT_PRIORITIES;
    sys_trace_thread_create_user(&threads[i]);
    if (i != 6) sys_trace_thread_sched_ready_user(&threads[i]);
  }
  threads[1].name = "radio";
  sys_trace_thread_name_set_user(&threads[1]);
  switch_to(&threads[0]);
  lock(&a);
  lock(&c);
  lock(&c);
  switch_to(&threads[2]);
  sys_trace_k_mutex_lock_blocking_user(&c, K_FOREVER);
  switch_to(&threads[1]);
  lock(&b);
  sys_trace_k_mutex_lock_blocking_user(&c, K_FOREVER);
  switch_to(&threads[0]);
  unlock(&c, 0); /* one has it still */
  unlock(&c, &threads[1]);
  sys_trace_thread_sched_ready_user(&threads[1]);
  switch_to(&threads[1]);
  sys_trace_k_mutex_lock_exit_user(&c, K_FOREVER, 0);
  sys_trace_k_mutex_lock_blocking_user(&a, K_FOREVER);
  switch_to(&threads[0]);
  sys_trace_k_mutex_lock_blocking_user(&b, K_FOREVER);
  switch_to(&threads[3]);
  threads[3].base.pended_on = &fifo;
  switch_to(&threads[4]);
  sys_trace_k_thread_join_blocking_user(&threads[3], K_FOREVER);
  switch_to(&threads[5]);
  sys_trace_k_thread_sleep_enter_user((k_timeout_t){500});
  switch_to(&threads[7]);
}

static void wake(struct k_thread* thread) {
  thread->base.pended_on = 0;
  sys_trace_thread_sched_ready_user(thread);
}

static void idle_for_a_tick(struct k_thread* idle) {
  switch_to(idle);
  spend_us(kTick_us);
  sys_trace_isr_enter_user();
  sys_trace_isr_exit_user();
}

/* One sleeps for a tick with neither mutex, and finds the second taken; so does two. */
static void take_turns(struct k_thread* who, struct k_thread* other, struct k_thread* idle,
                       struct k_mutex* first, struct k_mutex* second) {
  switch_to(who);
  lock(first);
  lock(second);
  switch_to(other);
  sys_trace_k_mutex_lock_blocking_user(second, K_FOREVER);
  other->base.pended_on = second;
  switch_to(who);
  spend_us(kTick_us);
  unlock(second, other);
  wake(other);
  unlock(first, 0);
  sys_trace_k_thread_sleep_enter_user((k_timeout_t){1});
  switch_to(other);
  sys_trace_k_mutex_lock_exit_user(second, K_FOREVER, 0);
  unlock(second, 0);
  idle_for_a_tick(idle);
  wake(who);
}

/* For ever, or until each has a mutex and waits for that of the other, while interrupts go on. */
static void work(int is_healthy) {
  static struct k_thread threads[3];
  static struct k_mutex first, second;
  struct k_thread *const one = &threads[0], *const two = &threads[1], *const idle = &threads[2];
  idle->priority = CONFIG_NUM_PREEMPT_PRIORITIES;
  for (int i = 0; i < 3; i++) {
    sys_trace_thread_create_user(&threads[i]);
    sys_trace_thread_sched_ready_user(&threads[i]);
  }
  for (uint32_t round = 0; is_healthy || round < kRoundsBeforeFault; round++) {
    take_turns(one, two, idle, &first, &second);
    take_turns(two, one, idle, &first, &second);
  }
  switch_to(one);
  lock(&first);
  switch_to(two);
  lock(&second);
  sys_trace_k_mutex_lock_blocking_user(&first, K_FOREVER);
  two->base.pended_on = &first;
  switch_to(one);
  sys_trace_k_mutex_lock_blocking_user(&second, K_FOREVER);
  one->base.pended_on = &second;
  tell_crosswise((uint32_t)(uintptr_t)one, (uint32_t)(uintptr_t)two);
  for (;;) idle_for_a_tick(idle);
}
#endif

enum { kRecords = 1, kWaits, kHealthy, kCrosswise };

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
#if HANGSCOPE_ENABLE
  const uint32_t mode = platform_time_parameter_ms(kRecords);
  if (mode == kHealthy || mode == kCrosswise) work(mode == kHealthy);
  if (mode == kWaits)
    leave_waits();
  else
    records();
  hangscope_dump(platform_put, 0);
#endif
  platform_power_off();
}

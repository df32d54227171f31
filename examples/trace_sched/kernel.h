/* A small preemptive kernel for one hart: priorities, round robin among equals, a tick of 1 ms. It is
 * there to show where a kernel records what it does: look for hangscope_.
 *
 * All functions are for tasks, not for interrupt handlers. */
#ifndef EXAMPLES_TRACE_SCHED_KERNEL_H
#define EXAMPLES_TRACE_SCHED_KERNEL_H

#include <stdint.h>

#define KERNEL_TASKS 8
#define KERNEL_STACK_BYTES 4096

/* Ids are never used twice. They begin above 16 bits: who records them must not cut them. */
typedef uint32_t task_id;
#define KERNEL_FIRST_ID 70001u
#define KERNEL_NO_TASK 0u

enum task_state {
  TASK_FREE = 0,
  TASK_READY = 1, /* or running */
  TASK_DELAYED = 2,
  TASK_BLOCKED = 3,
  TASK_SUSPENDED = 4, /* whatever it was before */
};

/* Creates a task; one of a higher priority (a larger number) than the caller's runs at once. Its return
 * destroys it. KERNEL_NO_TASK: there is no room. Before kernel_start, too. */
task_id task_create(void (*entry)(void* argument), void* argument, uint32_t priority);

/* -1: there is no such task. A task may destroy or suspend itself. One that waits for something, or
 * has a mutex, must not be destroyed: the others would wait for ever. */
int task_destroy(task_id id);
int task_suspend(task_id id);
int task_resume(task_id id);

void task_delay(uint32_t ticks);
void task_yield(void);
task_id task_self(void);

/* Lets the tasks run, and an idle one when none is ready. */
_Noreturn void kernel_start(void);

/* How task_yield gives up the hart: kernel_reschedule, unless the program defines another one. */
void kernel_yield_hook(void);
/* Runs the most urgent task that is ready; among equals, the next one. Any interrupt state. */
void kernel_reschedule(void);

/* Semaphore: a negative count is the number of tasks that wait. */
struct semaphore {
  int32_t count;
};
void semaphore_wait(struct semaphore* semaphore);
void semaphore_post(struct semaphore* semaphore);

/* Mutex: only its owner unlocks it (-1 otherwise), and it goes to the most urgent task that waits. */
struct mutex {
  task_id owner;
};
void mutex_lock(struct mutex* mutex);
int mutex_unlock(struct mutex* mutex);

#define QUEUE_LENGTH 4
struct queue {
  uint32_t messages[QUEUE_LENGTH];
  uint32_t sent;
  uint32_t received;
};
void queue_send(struct queue* queue, uint32_t message);
uint32_t queue_receive(struct queue* queue);

#define PIPE_BYTES 16
struct pipe {
  uint8_t bytes[PIPE_BYTES];
  uint32_t written;
  uint32_t read;
};
/* Writes all of it, in portions as there is room. */
void pipe_write(struct pipe* pipe, const void* data, uint32_t count);
/* Reads what there is, at most `count` bytes and at least one. */
uint32_t pipe_read(struct pipe* pipe, void* data, uint32_t count);

#endif

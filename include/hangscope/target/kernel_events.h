/* The events of an operating system's kernel, ready-made: hangscope_task_create(id, priority) and so
 * on. docs/porting.md shows where a kernel calls them. Ids 16 to 63 are theirs for good: new ones are
 * added at the end.
 *
 * yield is the API call only; a switch that the scheduler makes by itself is a switch. */
#ifndef HANGSCOPE_TARGET_KERNEL_EVENTS_H
#define HANGSCOPE_TARGET_KERNEL_EVENTS_H

#include "hangscope/target/events.h"

#define HANGSCOPE_KERNEL_EVENTS(EVENT)                                                          \
  EVENT(task_create, TASK, "task %u, priority %u", u32, task, u32, priority)                    \
  EVENT(task_destroy, TASK, "task %u, was in state %u", u32, task, u32, previous_state)         \
  EVENT(task_switch, TASK, "from task %u to task %u", u32, previous, u32, next)                 \
  EVENT(task_suspend, TASK, "task %u", u32, task)                                               \
  EVENT(task_resume, TASK, "task %u", u32, task)                                                \
  EVENT(task_delay, TASK, "%u ticks", u32, ticks)                                               \
  EVENT(task_yield, TASK, "")                                                                   \
  EVENT(semaphore_wait, SYNC, "semaphore %x, count %d", u32, semaphore, i32, count)             \
  EVENT(semaphore_post, SYNC, "semaphore %x, count %d", u32, semaphore, i32, count)             \
  EVENT(mutex_lock, SYNC, "mutex %x, holder %u", u32, mutex, u32, holder)                       \
  EVENT(mutex_unlock, SYNC, "mutex %x", u32, mutex)                                             \
  EVENT(pipe_read, SYNC, "pipe %x, %u bytes", u32, pipe, u32, bytes)                            \
  EVENT(pipe_write, SYNC, "pipe %x, %u bytes", u32, pipe, u32, bytes)                           \
  EVENT(queue_send, SYNC, "queue %x, %u waiting", u32, queue, u32, length)                      \
  EVENT(queue_receive, SYNC, "queue %x, %u waiting", u32, queue, u32, length)                   \
  EVENT(isr_enter, ISR, "interrupt %u", u32, interrupt)                                         \
  EVENT(isr_exit, ISR, "interrupt %u", u32, interrupt)                                          \
  EVENT(exception, ISR, "cause %u at %x", u32, cause, u32, pc)

/* What hangscope itself says. */
#define HANGSCOPE_OWN_EVENTS(EVENT)                                   \
  EVENT(anchor, META, "epoch %u, before %u", u32, epoch, u32, previous) \
  EVENT(boot, META, "start %u, %u records of earlier ones", u32, boots, u32, records)

HANGSCOPE_EVENTS(own, 1, HANGSCOPE_OWN_EVENTS);
HANGSCOPE_EVENTS(kernel, 16, HANGSCOPE_KERNEL_EVENTS);

#endif

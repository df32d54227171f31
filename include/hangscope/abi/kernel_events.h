/* The events that every target and every host knows without a catalog: those of an operating
 * system's kernel, and what hangscope itself records. Lists only: EVENT(name, class, format, type,
 * field, ...), in the order of their ids. Ids 1 to 63 are theirs for good: new ones are added at
 * the end. C11 and C++20. */
#ifndef HANGSCOPE_ABI_KERNEL_EVENTS_H
#define HANGSCOPE_ABI_KERNEL_EVENTS_H

#define HANGSCOPE_FIRST_OWN_ID 1
#define HANGSCOPE_FIRST_HISTORY_ID 3
#define HANGSCOPE_FIRST_KERNEL_ID 16
#define HANGSCOPE_ID_TASK_SWITCH 18u /* parameters: the task before, the task after */

#define HANGSCOPE_KERNEL_EVENTS(EVENT)                                                  \
  EVENT(task_create, TASK, "task %u, priority %u", u32, task, u32, priority)            \
  EVENT(task_destroy, TASK, "task %u, was in state %u", u32, task, u32, previous_state) \
  EVENT(task_switch, TASK, "from task %u to task %u", u32, previous, u32, next)         \
  EVENT(task_suspend, TASK, "task %u", u32, task)                                       \
  EVENT(task_resume, TASK, "task %u", u32, task)                                        \
  EVENT(task_delay, TASK, "%u ticks", u32, ticks)                                       \
  EVENT(task_yield, TASK, "")                                                           \
  EVENT(semaphore_wait, SYNC, "semaphore %x, count %d", u32, semaphore, i32, count)     \
  EVENT(semaphore_post, SYNC, "semaphore %x, count %d", u32, semaphore, i32, count)     \
  EVENT(mutex_lock, SYNC, "mutex %x, holder %u", u32, mutex, u32, holder)               \
  EVENT(mutex_unlock, SYNC, "mutex %x", u32, mutex)                                     \
  EVENT(pipe_read, SYNC, "pipe %x, %u bytes", u32, pipe, u32, bytes)                    \
  EVENT(pipe_write, SYNC, "pipe %x, %u bytes", u32, pipe, u32, bytes)                   \
  EVENT(queue_send, SYNC, "queue %x, %u waiting", u32, queue, u32, length)              \
  EVENT(queue_receive, SYNC, "queue %x, %u waiting", u32, queue, u32, length)           \
  EVENT(isr_enter, ISR, "interrupt %u", u32, interrupt)                                 \
  EVENT(isr_exit, ISR, "interrupt %u", u32, interrupt)                                  \
  EVENT(exception, ISR, "cause %u at %x", u32, cause, u32, pc)

/* What hangscope itself says. */
#define HANGSCOPE_OWN_EVENTS(EVENT)                                     \
  EVENT(anchor, META, "epoch %u, before %u", u32, epoch, u32, previous) \
  EVENT(boot, META, "start %u, %u records of earlier ones", u32, boots, u32, records)

/* The history of what a mailbox has now (abi/watch.h), of programs built with HANGSCOPE_HISTORY.
 * Each end says what ended: where its begin is not in the ring, it ends nothing else. Behind the
 * time a record has two words:
 *
 *                 +8                               +12
 *   waypoint      the mailbox's word from now on   0
 *   wait_begin    resource                         enum hangscope_resource_kind, or 0
 *   wait_end      resource                         wait_since of the wait, low half of the clock
 *   counter       resource                         how much is in it now
 *   bus_*_begin   address at the destination,      bytes
 *   bus_end         low half: the same of both     bytes
 *
 * A transaction's id is HANGSCOPE_ID_BEFORE_BUS and its enum hangscope_bus_kind. It begins after
 * the checks and the delay, and ends when hangscope_bus_issue returns. */
#define HANGSCOPE_ID_WAYPOINT 3u
#define HANGSCOPE_ID_WAIT_BEGIN 4u
#define HANGSCOPE_ID_WAIT_END 5u
#define HANGSCOPE_ID_COUNTER 6u
#define HANGSCOPE_ID_BEFORE_BUS 6u
#define HANGSCOPE_ID_BUS_END 12u
#define HANGSCOPE_HISTORY_EVENTS(EVENT)                                                    \
  EVENT(waypoint, HISTORY, "at %s", char4, waypoint)                                       \
  EVENT(wait_begin, HISTORY, "resource %x, kind %u", u32, resource, u32, kind)             \
  EVENT(wait_end, HISTORY, "resource %x, began at %u", u32, resource, u32, began)          \
  EVENT(counter, HISTORY, "resource %x holds %u", u32, resource, u32, amount)              \
  EVENT(bus_read_begin, HISTORY, "address %x, %u bytes", u32, address, u32, bytes)         \
  EVENT(bus_write_begin, HISTORY, "address %x, %u bytes", u32, address, u32, bytes)        \
  EVENT(bus_atomic_begin, HISTORY, "address %x, %u bytes", u32, address, u32, bytes)       \
  EVENT(bus_multicast_begin, HISTORY, "address %x, %u bytes", u32, address, u32, bytes)    \
  EVENT(bus_inline_write_begin, HISTORY, "address %x, %u bytes", u32, address, u32, bytes) \
  EVENT(bus_end, HISTORY, "address %x, %u bytes", u32, address, u32, bytes)

#endif

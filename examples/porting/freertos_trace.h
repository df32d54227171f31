/* FreeRTOS: include this at the end of FreeRTOSConfig.h, with configUSE_TRACE_FACILITY 1 before it. One
 * other file of the program defines HANGSCOPE_DEFINE, includes hangscope/hangscope.h and this, and
 * calls hangscope_init() before it creates the first task. Two cores need HANGSCOPE_CORES=2.
 *
 * The macros run inside tasks.c and queue.c, in the kernel's own critical sections. A task's id is
 * its uxTCBNumber, which is never used twice; a copy lies where queue.c can ask for it. The first
 * HANGSCOPE_TASKS tasks have a record of what they wait for. */
#ifndef FREERTOS_TRACE_H
#define FREERTOS_TRACE_H

#ifndef __ASSEMBLER__

#include "hangscope/hangscope.h"

#if HANGSCOPE_ENABLE

/* The task that runs on each core. */
extern uint32_t hangscope_freertos_current[HANGSCOPE_CORES];
#ifdef HANGSCOPE_DEFINE
uint32_t hangscope_freertos_current[HANGSCOPE_CORES];
#endif
#define HANGSCOPE_FREERTOS_SELF() hangscope_freertos_current[HANGSCOPE_PORT_CORE()]
#define HANGSCOPE_FREERTOS_ADDRESS(object) ((uint32_t)(uintptr_t)(object))

HANGSCOPE_INLINE void hangscope_freertos_switched_in(uint32_t next) {
  const uint32_t previous = HANGSCOPE_FREERTOS_SELF();
  if (next == previous) return;
  HANGSCOPE_FREERTOS_SELF() = next;
  hangscope_task_switch(previous, next);
  hangscope_task_runs(next);
}
HANGSCOPE_INLINE void hangscope_freertos_waits(enum hangscope_resource_kind kind, uint32_t resource, uint32_t holder) {
  const uint32_t self = HANGSCOPE_FREERTOS_SELF();
  hangscope_task_waits(self - 1, self, kind, resource, holder);
}

/* A queue is a mutex, a semaphore or a queue: queue.h's numbers for ucQueueType. */
HANGSCOPE_INLINE int hangscope_freertos_is_mutex(uint32_t type) { return type == 1 || type == 4; }
HANGSCOPE_INLINE int hangscope_freertos_is_semaphore(uint32_t type) { return type == 2 || type == 3; }

/* `count`: afterwards. */
HANGSCOPE_INLINE void hangscope_freertos_sent(uint32_t type, uint32_t queue, uint32_t count) {
  if (hangscope_freertos_is_mutex(type)) {
    hangscope_mutex_unlock(queue);
  } else if (hangscope_freertos_is_semaphore(type)) {
    hangscope_semaphore_post(queue, (int32_t)count);
  } else {
    hangscope_queue_send(queue, count);
  }
}
HANGSCOPE_INLINE void hangscope_freertos_received(uint32_t type, uint32_t queue, uint32_t count) {
  if (hangscope_freertos_is_mutex(type)) {
    hangscope_mutex_lock(queue, HANGSCOPE_FREERTOS_SELF());
    hangscope_holder_is(queue, HANGSCOPE_FREERTOS_SELF()); /* whoever else waits for it, waits for this one */
  } else if (hangscope_freertos_is_semaphore(type)) {
    hangscope_semaphore_wait(queue, (int32_t)count);
  } else {
    hangscope_queue_receive(queue, count);
  }
}

/* tasks.c */
#define traceTASK_CREATE(tcb)                                                                  \
  do {                                                                                         \
    (tcb)->uxTaskNumber = (tcb)->uxTCBNumber;                                                  \
    hangscope_task_create((uint32_t)(tcb)->uxTCBNumber, (uint32_t)(tcb)->uxPriority);          \
  } while (0)
#define traceTASK_DELETE(tcb)                                                                  \
  do { /* the state is not known here */                                                       \
    hangscope_task_destroy((uint32_t)(tcb)->uxTCBNumber, 0);                                   \
    hangscope_task_gone((uint32_t)(tcb)->uxTCBNumber - 1, (uint32_t)(tcb)->uxTCBNumber);       \
  } while (0)
#define traceTASK_SWITCHED_IN() hangscope_freertos_switched_in((uint32_t)pxCurrentTCB->uxTCBNumber)
#define traceTASK_SUSPEND(tcb) hangscope_task_suspend((uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_RESUME(tcb) hangscope_task_resume((uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_RESUME_FROM_ISR(tcb) hangscope_task_resume((uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_DELAY()                                                                      \
  do { /* in vTaskDelay(xTicksToDelay) */                                                      \
    hangscope_task_delay((uint32_t)xTicksToDelay);                                             \
    hangscope_freertos_waits(HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);                   \
  } while (0)
#define traceTASK_DELAY_UNTIL(wake)                                                            \
  do {                                                                                         \
    hangscope_task_delay((uint32_t)((wake) - xTickCount));                                     \
    hangscope_freertos_waits(HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);                   \
  } while (0)
#define traceMOVED_TASK_TO_READY_STATE(tcb)                                                    \
  hangscope_task_ready((uint32_t)(tcb)->uxTCBNumber - 1, (uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_INCREMENT_TICK(count) hangscope_tick()

/* queue.c: called before the count changes. */
#define traceQUEUE_SEND(queue)                                                                 \
  hangscope_freertos_sent((queue)->ucQueueType, HANGSCOPE_FREERTOS_ADDRESS(queue), (uint32_t)(queue)->uxMessagesWaiting + 1)
#define traceQUEUE_SEND_FROM_ISR(queue) traceQUEUE_SEND(queue)
#define traceQUEUE_RECEIVE(queue)                                                              \
  hangscope_freertos_received((queue)->ucQueueType, HANGSCOPE_FREERTOS_ADDRESS(queue), (uint32_t)(queue)->uxMessagesWaiting - 1)
#define traceQUEUE_RECEIVE_FROM_ISR(queue) traceQUEUE_RECEIVE(queue)
#define traceBLOCKING_ON_QUEUE_SEND(queue)                                                     \
  hangscope_freertos_waits(HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_FREERTOS_ADDRESS(queue), HANGSCOPE_NO_TASK)
#define traceBLOCKING_ON_QUEUE_RECEIVE(queue)                                                  \
  do {                                                                                         \
    if (hangscope_freertos_is_mutex((queue)->ucQueueType)) {                                   \
      hangscope_freertos_waits(HANGSCOPE_RESOURCE_EXCLUSIVE, HANGSCOPE_FREERTOS_ADDRESS(queue), \
                               (uint32_t)uxTaskGetTaskNumber((queue)->u.xSemaphore.xMutexHolder)); \
    } else {                                                                                   \
      hangscope_freertos_waits(HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_FREERTOS_ADDRESS(queue), HANGSCOPE_NO_TASK); \
    }                                                                                          \
  } while (0)

#endif
#endif
#endif

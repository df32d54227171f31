/* FreeRTOS: include this at the end of FreeRTOSConfig.h, with configUSE_TRACE_FACILITY 1 before it. One
 * other file of the program defines HANGSCOPE_DEFINE, includes hangscope/hangscope.h and this, and
 * calls hangscope_init() before it creates the first task. Two cores need HANGSCOPE_CORES=2.
 *
 * The macros run inside tasks.c and queue.c, in the kernel's own critical sections. A task's id is
 * its uxTCBNumber, which is never used twice; a copy lies where queue.c can ask for it. HANGSCOPE_TASKS
 * tasks at a time have a record of what they wait for; it is 0 by default, and then no host finds a deadlock. Tasks have the
 * names that xTaskCreate was given, and queues and locks those of the queue registry.
 *
 * configASSERT becomes an assert of hangscope where FreeRTOSConfig.h has none of its own. With HANGSCOPE_FREERTOS_HOOKS
 * beside HANGSCOPE_DEFINE this also defines what reports a stack overflow, a failed pvPortMalloc and an exception (in the
 * kernel's RISC-V port; HardFault_Handler on Cortex-M): for programs without such hooks. Hooks of a program's own begin with
 *
 *   HANGSCOPE_ASSERT(0, "malloc failed");
 *   HANGSCOPE_FREERTOS_EXCEPTION();         in freertos_risc_v_application_exception_handler
 *   hangscope_freertos_exception(frame);    in a fault handler of Cortex-M, with the frame that the core pushed
 *
 * HANGSCOPE_FREERTOS_FIRST_ID is the id of the first event that only FreeRTOS has. */
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
  hangscope_task_waits(hangscope_task_slot_of(self), self, kind, resource, holder);
}

/* What the kernel set does not have. */
#ifndef HANGSCOPE_FREERTOS_FIRST_ID
#define HANGSCOPE_FREERTOS_FIRST_ID 2000
#endif
#define HANGSCOPE_FREERTOS_EVENTS(EVENT)                                                       \
  EVENT(task_priority, TASK, "task %u, priority %u from now on", u32, task, u32, priority)     \
  EVENT(task_notify, SYNC, "task %u, notification %u", u32, task, u32, index)                  \
  EVENT(event_bits_set, SYNC, "event group %x, bits %x", u32, group, u32, bits)
HANGSCOPE_EVENTS(freertos, HANGSCOPE_FREERTOS_FIRST_ID, HANGSCOPE_FREERTOS_EVENTS);

/* The task that runs says that it is about to block, or that it did not have to after all. */
HANGSCOPE_INLINE int hangscope_freertos_is_waiting(void) {
#if HANGSCOPE_TASKS > 0
  const struct hangscope_task* const record = hangscope_task_record(hangscope_task_slot_of(HANGSCOPE_FREERTOS_SELF()));
  return record != 0 && hangscope_port_load(&record->state) == HANGSCOPE_TASK_WAITING;
#else
  return 0;
#endif
}
HANGSCOPE_INLINE void hangscope_freertos_waits_for_channel(uint32_t resource) {
  hangscope_freertos_waits(HANGSCOPE_RESOURCE_CHANNEL, resource, HANGSCOPE_NO_TASK);
}
HANGSCOPE_INLINE void hangscope_freertos_goes_on(void) {
  const uint32_t self = HANGSCOPE_FREERTOS_SELF();
  if (hangscope_freertos_is_waiting()) hangscope_task_ready(hangscope_task_slot_of(self), self);
}

/* A queue is a mutex, a semaphore or a queue: queue.h's numbers for ucQueueType. */
HANGSCOPE_INLINE int hangscope_freertos_is_mutex(uint32_t type) { return type == 1 || type == 4; }
HANGSCOPE_INLINE int hangscope_freertos_is_semaphore(uint32_t type) { return type == 2 || type == 3; }

/* `count`: afterwards. `holder`: of a mutex; a new one is given, too, and nobody had it. */
HANGSCOPE_INLINE void hangscope_freertos_sent(uint32_t type, uint32_t queue, uint32_t count, const void* holder) {
  if (hangscope_freertos_is_mutex(type)) {
    if (holder == 0) return;
    hangscope_mutex_unlock(queue);
    hangscope_holder_is(queue, HANGSCOPE_NO_TASK); /* until one of those who wait runs and takes it */
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

#define traceQUEUE_REGISTRY_ADD(queue, name) hangscope_resource_is_named(HANGSCOPE_FREERTOS_ADDRESS(queue), name)

/* tasks.c */
#define traceTASK_CREATE(tcb)                                                                  \
  do {                                                                                         \
    (tcb)->uxTaskNumber = (tcb)->uxTCBNumber;                                                  \
    hangscope_task_create((uint32_t)(tcb)->uxTCBNumber, (uint32_t)(tcb)->uxPriority);          \
    hangscope_task_ready(hangscope_task_slot((uint32_t)(tcb)->uxTCBNumber), (uint32_t)(tcb)->uxTCBNumber); \
    hangscope_task_is_named((tcb)->uxTCBNumber, (tcb)->pcTaskName);                            \
  } while (0)
#define traceTASK_DELETE(tcb)                                                                  \
  do { /* the state is not known here */                                                       \
    hangscope_task_destroy((uint32_t)(tcb)->uxTCBNumber, 0);                                   \
    hangscope_task_is_named((tcb)->uxTCBNumber, 0);                                            \
    hangscope_task_gone(hangscope_task_slot_of((uint32_t)(tcb)->uxTCBNumber), (uint32_t)(tcb)->uxTCBNumber); \
  } while (0)
#define traceTASK_SWITCHED_IN() hangscope_freertos_switched_in((uint32_t)pxCurrentTCB->uxTCBNumber)
/* The idle task of each core, which nobody misses. */
#define traceSTARTING_SCHEDULER(idle_tasks)                                                    \
  do {                                                                                         \
    for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {                                           \
      hangscope_task_waits(hangscope_task_slot_of((uint32_t)(idle_tasks)[i]->uxTCBNumber), (uint32_t)(idle_tasks)[i]->uxTCBNumber, \
                           HANGSCOPE_RESOURCE_OUTSIDE, 0, HANGSCOPE_NO_TASK);                  \
    }                                                                                          \
  } while (0)
#define traceTASK_SUSPEND(tcb)                                                                 \
  do {                                                                                         \
    hangscope_task_suspend((uint32_t)(tcb)->uxTCBNumber);                                      \
    hangscope_task_waits(hangscope_task_slot_of((uint32_t)(tcb)->uxTCBNumber), (uint32_t)(tcb)->uxTCBNumber,       \
                         HANGSCOPE_RESOURCE_SUSPENDED, 0, HANGSCOPE_NO_TASK);                  \
  } while (0)
#define traceTASK_RESUME(tcb) hangscope_task_resume((uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_RESUME_FROM_ISR(tcb) hangscope_task_resume((uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_DELAY()                                                                      \
  do { /* in vTaskDelay(xTicksToDelay) */                                                      \
    hangscope_task_delay((uint32_t)xTicksToDelay);                                             \
    hangscope_freertos_waits(HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);                   \
  } while (0)
/* The task of the timers comes here, too, and where it has no timer it waits for commands only. */
#define traceTASK_DELAY_UNTIL(wake)                                                            \
  do {                                                                                         \
    const uint32_t hangscope_ticks = (uint32_t)((wake) - xTickCount);                          \
    if (hangscope_ticks == (uint32_t)portMAX_DELAY) {                                          \
      hangscope_freertos_waits(HANGSCOPE_RESOURCE_OUTSIDE, 0, HANGSCOPE_NO_TASK);              \
    } else {                                                                                   \
      hangscope_task_delay(hangscope_ticks);                                                   \
      hangscope_freertos_waits(HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);                 \
    }                                                                                          \
  } while (0)
#define traceMOVED_TASK_TO_READY_STATE(tcb)                                                    \
  hangscope_task_ready(hangscope_task_slot_of((uint32_t)(tcb)->uxTCBNumber), (uint32_t)(tcb)->uxTCBNumber)
#define traceTASK_INCREMENT_TICK(count) hangscope_tick()
#define traceTASK_PRIORITY_SET(tcb, priority)                                                  \
  hangscope_task_priority((uint32_t)(tcb)->uxTCBNumber, (uint32_t)(priority))
#define traceTASK_PRIORITY_INHERIT(tcb, priority) traceTASK_PRIORITY_SET(tcb, priority)
#define traceTASK_PRIORITY_DISINHERIT(tcb, priority) traceTASK_PRIORITY_SET(tcb, priority)
/* A task that waits for a stream buffer waits for a notification: the buffer says more. */
#define traceTASK_NOTIFY_TAKE_BLOCK(index)                                                     \
  do {                                                                                         \
    if (!hangscope_freertos_is_waiting())                                                      \
      hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(&pxCurrentTCB->ulNotifiedValue[index])); \
  } while (0)
#define traceTASK_NOTIFY_WAIT_BLOCK(index) traceTASK_NOTIFY_TAKE_BLOCK(index)
#define traceTASK_NOTIFY_TAKE(index) hangscope_freertos_goes_on()
#define traceTASK_NOTIFY_WAIT(index) hangscope_freertos_goes_on()
#define traceTASK_NOTIFY(index) /* of pxTCB */                                                 \
  hangscope_task_notify((uint32_t)pxTCB->uxTCBNumber, (uint32_t)(index))
#define traceTASK_NOTIFY_FROM_ISR(index) traceTASK_NOTIFY(index)
#define traceTASK_NOTIFY_GIVE_FROM_ISR(index) traceTASK_NOTIFY(index)

/* queue.c: called before the count changes. */
#define traceQUEUE_SEND(queue)                                                                 \
  hangscope_freertos_sent((queue)->ucQueueType, HANGSCOPE_FREERTOS_ADDRESS(queue), (uint32_t)(queue)->uxMessagesWaiting + 1, \
                          (queue)->u.xSemaphore.xMutexHolder)
#define traceQUEUE_SEND_FROM_ISR(queue) traceQUEUE_SEND(queue)
#define traceQUEUE_RECEIVE(queue)                                                              \
  hangscope_freertos_received((queue)->ucQueueType, HANGSCOPE_FREERTOS_ADDRESS(queue), (uint32_t)(queue)->uxMessagesWaiting - 1)
#define traceQUEUE_RECEIVE_FROM_ISR(queue) traceQUEUE_RECEIVE(queue)
#define traceBLOCKING_ON_QUEUE_SEND(queue) hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(queue))
#define traceBLOCKING_ON_QUEUE_PEEK(queue) hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(queue))
#define traceBLOCKING_ON_QUEUE_RECEIVE(queue)                                                  \
  do {                                                                                         \
    if (hangscope_freertos_is_mutex((queue)->ucQueueType)) {                                   \
      hangscope_mutex_lock(HANGSCOPE_FREERTOS_ADDRESS(queue),                                  \
                           HANGSCOPE_FREERTOS_HOLDER((queue)->u.xSemaphore.xMutexHolder));     \
      hangscope_freertos_waits(HANGSCOPE_RESOURCE_EXCLUSIVE, HANGSCOPE_FREERTOS_ADDRESS(queue), \
                               HANGSCOPE_FREERTOS_HOLDER((queue)->u.xSemaphore.xMutexHolder)); \
    } else {                                                                                   \
      hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(queue));                 \
    }                                                                                          \
  } while (0)
#define HANGSCOPE_FREERTOS_HOLDER(task) ((task) == 0 ? HANGSCOPE_NO_TASK : (uint32_t)uxTaskGetTaskNumber(task))

/* event_groups.c */
#define traceEVENT_GROUP_WAIT_BITS_BLOCK(group, bits) hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(group))
#define traceEVENT_GROUP_SYNC_BLOCK(group, set, bits) traceEVENT_GROUP_WAIT_BITS_BLOCK(group, bits)
#define traceEVENT_GROUP_SET_BITS(group, bits) hangscope_event_bits_set(HANGSCOPE_FREERTOS_ADDRESS(group), (uint32_t)(bits))

/* stream_buffer.c: stream and message buffers. */
#define traceBLOCKING_ON_STREAM_BUFFER_SEND(buffer) hangscope_freertos_waits_for_channel(HANGSCOPE_FREERTOS_ADDRESS(buffer))
#define traceBLOCKING_ON_STREAM_BUFFER_RECEIVE(buffer) traceBLOCKING_ON_STREAM_BUFFER_SEND(buffer)
#define traceSTREAM_BUFFER_SEND(buffer, bytes) hangscope_pipe_write(HANGSCOPE_FREERTOS_ADDRESS(buffer), (uint32_t)(bytes))
#define traceSTREAM_BUFFER_SEND_FROM_ISR(buffer, bytes) traceSTREAM_BUFFER_SEND(buffer, bytes)
#define traceSTREAM_BUFFER_RECEIVE(buffer, bytes) hangscope_pipe_read(HANGSCOPE_FREERTOS_ADDRESS(buffer), (uint32_t)(bytes))
#define traceSTREAM_BUFFER_RECEIVE_FROM_ISR(buffer, bytes) traceSTREAM_BUFFER_RECEIVE(buffer, bytes)

/* What must not happen. */
#ifndef configASSERT
#define configASSERT(condition) HANGSCOPE_ASSERT(condition, "configASSERT")
#endif
#ifdef __riscv
#define HANGSCOPE_FREERTOS_EXCEPTION()                                                         \
  do {                                                                                         \
    uintptr_t hangscope_cause, hangscope_pc, hangscope_value;                                  \
    __asm__ volatile("csrr %0, mcause\n\tcsrr %1, mepc\n\tcsrr %2, mtval"                      \
                     : "=r"(hangscope_cause), "=r"(hangscope_pc), "=r"(hangscope_value));      \
    hangscope_exception((uint32_t)hangscope_cause, (uint32_t)hangscope_pc);                    \
    hangscope_hardware_fault(hangscope_cause, hangscope_pc, hangscope_value);                  \
  } while (0)
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* `frame`: the eight words that the core pushed. The cause is CFSR, which ARMv6-M lacks: there it is the exception's number. */
HANGSCOPE_INLINE void hangscope_freertos_exception(const uint32_t* frame) {
  uint32_t cause, value = 0;
#if __ARM_ARCH >= 7
  cause = *(volatile uint32_t*)0xe000ed28u;
  if (cause & 1u << 7) value = *(volatile uint32_t*)0xe000ed34u;  /* MMFAR is valid */
  if (cause & 1u << 15) value = *(volatile uint32_t*)0xe000ed38u; /* BFAR is */
#else
  __asm__ volatile("mrs %0, ipsr" : "=r"(cause));
#endif
  hangscope_exception(cause, frame[6]);
  hangscope_hardware_fault(cause, frame[6], value);
}
#endif
#if defined(HANGSCOPE_DEFINE) && defined(HANGSCOPE_FREERTOS_HOOKS)
struct tskTaskControlBlock;
void vApplicationStackOverflowHook(struct tskTaskControlBlock* task, char* name);
void vApplicationStackOverflowHook(struct tskTaskControlBlock* task, char* name) {
  (void)task, (void)name;
  HANGSCOPE_ASSERT(0, "stack overflow"); /* of the task that still has the core */
}
void vApplicationMallocFailedHook(void);
void vApplicationMallocFailedHook(void) { HANGSCOPE_ASSERT(0, "malloc failed"); }
#ifdef __riscv
void freertos_risc_v_application_exception_handler(void);
void freertos_risc_v_application_exception_handler(void) { HANGSCOPE_FREERTOS_EXCEPTION(); }
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
void hangscope_freertos_fault(const uint32_t* frame);
__attribute__((used)) void hangscope_freertos_fault(const uint32_t* frame) { hangscope_freertos_exception(frame); }
void HardFault_Handler(void);
__attribute__((naked)) void HardFault_Handler(void) { /* bit 2 of lr: which stack has the frame */
  __asm__ volatile(
      ".syntax unified\n\t"
      "mov r0, lr\n\t"
      "lsls r0, r0, #29\n\t"
      "bmi 1f\n\t"
      "mrs r0, msp\n\t"
      "b 2f\n"
      "1: mrs r0, psp\n"
      "2: ldr r1, =hangscope_freertos_fault\n\t"
      "bx r1\n\t"
      ".ltorg");
}
#endif
#endif

#endif
#endif
#endif

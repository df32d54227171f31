/* Stands in for FreeRTOS: its types as far as examples/porting/freertos_trace.h uses them, and the
 * macros called as tasks.c and queue.c call them. */
#include "platform.h"

typedef uint32_t UBaseType_t;
typedef uint32_t TickType_t;

typedef struct tskTaskControlBlock {
  UBaseType_t uxPriority;
  UBaseType_t uxTCBNumber;
  UBaseType_t uxTaskNumber;
} TCB_t;
typedef TCB_t* TaskHandle_t;

typedef struct QueueDefinition {
  union {
    struct {
      TaskHandle_t xMutexHolder;
    } xSemaphore;
  } u;
  UBaseType_t uxMessagesWaiting;
  uint8_t ucQueueType;
} Queue_t;

static TCB_t* volatile pxCurrentTCB;
static TickType_t xTickCount;

static inline UBaseType_t uxTaskGetTaskNumber(TaskHandle_t task) {
  return task == 0 ? 0 : task->uxTaskNumber;
}

#define HANGSCOPE_DEFINE
#include "freertos_trace.h"

#if HANGSCOPE_ENABLE
static void switch_to(TCB_t* task) {
  pxCurrentTCB = task;
  traceTASK_SWITCHED_IN();
}

static void vTaskDelay(const TickType_t xTicksToDelay) { traceTASK_DELAY(); }
#endif

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
  (void)xTickCount, (void)pxCurrentTCB, (void)uxTaskGetTaskNumber(0);
#if HANGSCOPE_ENABLE
  static TCB_t one = {5, 1, 0}, two = {6, 2, 0}, three = {7, 3, 0};
  static Queue_t mutex = {.uxMessagesWaiting = 1, .ucQueueType = 1}, semaphore = {.ucQueueType = 3},
                 queue;
  traceTASK_CREATE(&one);
  traceTASK_CREATE(&two);
  switch_to(&one);
  vTaskDelay(7);
  switch_to(&two);
  switch_to(&two);
  traceMOVED_TASK_TO_READY_STATE(&one);
  xTickCount = 100;
  traceTASK_DELAY_UNTIL((TickType_t)109);
  traceMOVED_TASK_TO_READY_STATE(&two);
  traceTASK_SUSPEND(&one);
  traceTASK_RESUME(&one);
  traceTASK_RESUME_FROM_ISR(&one);
  traceTASK_INCREMENT_TICK(xTickCount);
  traceQUEUE_RECEIVE(&mutex);
  traceQUEUE_SEND(&mutex);
  traceQUEUE_SEND(&semaphore);
  semaphore.uxMessagesWaiting = 1;
  traceQUEUE_RECEIVE_FROM_ISR(&semaphore);
  traceQUEUE_SEND_FROM_ISR(&queue);
  queue.uxMessagesWaiting = 1;
  traceQUEUE_RECEIVE(&queue);
  traceTASK_DELETE(&one);
  traceTASK_CREATE(&one);
  /* In the end two waits for a mutex that one has, and then three. */
  mutex.u.xSemaphore.xMutexHolder = &one;
  traceBLOCKING_ON_QUEUE_SEND(&queue);
  traceBLOCKING_ON_QUEUE_RECEIVE(&semaphore);
  traceBLOCKING_ON_QUEUE_RECEIVE(&mutex);
  /* One gives it back, and three is quicker. */
  traceTASK_CREATE(&three);
  switch_to(&three);
  traceQUEUE_RECEIVE(&mutex);
  hangscope_dump(platform_put, 0);
#endif
  platform_power_off();
}

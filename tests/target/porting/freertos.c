/* Stands in for FreeRTOS: its types as far as examples/porting/freertos_trace.h uses them, and the
 * macros called as tasks.c and queue.c call them. */
#include "platform.h"
#include "turns.h"

typedef uint32_t UBaseType_t;
typedef uint32_t TickType_t;
#define portMAX_DELAY ((TickType_t)0xffffffffUL)

typedef struct tskTaskControlBlock {
  UBaseType_t uxPriority;
  UBaseType_t uxTCBNumber;
  UBaseType_t uxTaskNumber;
  uint32_t ulNotifiedValue[2];
  char pcTaskName[8];
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
#define HANGSCOPE_FREERTOS_HOOKS
#include "freertos_trace.h"

#if HANGSCOPE_ENABLE
static void switch_to(TCB_t* task) {
  pxCurrentTCB = task;
  traceTASK_SWITCHED_IN();
}

static void vTaskDelay(const TickType_t xTicksToDelay) { traceTASK_DELAY(); }

static void xTaskNotify(TCB_t* pxTCB, UBaseType_t uxIndexToNotify) {
  traceTASK_NOTIFY(uxIndexToNotify);
  traceTASK_NOTIFY_FROM_ISR(uxIndexToNotify);
  traceTASK_NOTIFY_GIVE_FROM_ISR(uxIndexToNotify);
}

/* In the end one waits for a mutex that two has, and two, through a stream buffer, for nobody.
 * Three is suspended, four waits for an event group, five for a notification, six is the idle task,
 * seven that of the timers. */
static void leave_waits(void) {
  static TCB_t tasks[7];
  static Queue_t mutex = {.ucQueueType = 4}, queue;
  static char group, buffer;
  for (UBaseType_t i = 0; i < 7; i++) {
    tasks[i].uxTCBNumber = i + 1;
    traceTASK_CREATE(&tasks[i]);
    traceMOVED_TASK_TO_READY_STATE(&tasks[i]);
  }
  TCB_t* const idle[] = {&tasks[5]};
  switch_to(&tasks[0]);
  traceSTARTING_SCHEDULER(idle);
  traceQUEUE_RECEIVE(&mutex);
  mutex.u.xSemaphore.xMutexHolder = &tasks[0];
  switch_to(&tasks[1]);
  traceBLOCKING_ON_QUEUE_RECEIVE(&mutex);
  traceTASK_PRIORITY_INHERIT(&tasks[0], 4);
  /* One gives the mutex: until two runs, nobody has it. */
  switch_to(&tasks[0]);
  traceQUEUE_SEND(&mutex);
  traceTASK_PRIORITY_DISINHERIT(&tasks[0], 2);
  mutex.u.xSemaphore.xMutexHolder = 0;
  traceMOVED_TASK_TO_READY_STATE(&tasks[1]);
  traceBLOCKING_ON_QUEUE_RECEIVE(&mutex);
  switch_to(&tasks[1]);
  traceQUEUE_RECEIVE(&mutex);
  /* The buffer is what two waits for, and its notification how. */
  traceSTREAM_BUFFER_SEND(&buffer, 12);
  traceSTREAM_BUFFER_RECEIVE(&buffer, 12);
  traceBLOCKING_ON_STREAM_BUFFER_RECEIVE(&buffer);
  traceTASK_NOTIFY_WAIT(0); /* one was there already */
  traceBLOCKING_ON_STREAM_BUFFER_RECEIVE(&buffer);
  traceTASK_NOTIFY_WAIT_BLOCK(0);
  switch_to(&tasks[2]);
  traceTASK_SUSPEND(&tasks[2]);
  switch_to(&tasks[3]);
  traceEVENT_GROUP_SET_BITS(&group, 5);
  traceEVENT_GROUP_WAIT_BITS_BLOCK(&group, 8);
  switch_to(&tasks[4]);
  traceBLOCKING_ON_QUEUE_PEEK(&queue);
  traceMOVED_TASK_TO_READY_STATE(&tasks[4]);
  xTaskNotify(&tasks[0], 1);
  traceTASK_NOTIFY_TAKE(1);
  traceTASK_NOTIFY_TAKE_BLOCK(1);
  switch_to(&tasks[6]);
  traceTASK_DELAY_UNTIL(xTickCount + portMAX_DELAY);
}

static void take(Queue_t* mutex) {
  traceQUEUE_RECEIVE(mutex);
  mutex->u.xSemaphore.xMutexHolder = pxCurrentTCB;
}
static void give(Queue_t* mutex, TCB_t* next) {
  traceQUEUE_SEND(mutex);
  mutex->u.xSemaphore.xMutexHolder = 0;
  if (next != 0) traceMOVED_TASK_TO_READY_STATE(next);
}

static void idle_for_a_tick(TCB_t* idle) {
  switch_to(idle);
  spend_us(kTick_us);
  traceTASK_INCREMENT_TICK(xTickCount);
  xTickCount++;
}

/* One sleeps for a tick with neither mutex, and finds the second taken; so does two. */
static void take_turns(TCB_t* who, TCB_t* other, TCB_t* idle, Queue_t* first, Queue_t* second) {
  switch_to(who);
  take(first);
  take(second);
  switch_to(other);
  traceBLOCKING_ON_QUEUE_RECEIVE(second);
  switch_to(who);
  spend_us(kTick_us);
  give(second, other);
  give(first, 0);
  vTaskDelay(1);
  switch_to(other);
  take(second);
  give(second, 0);
  idle_for_a_tick(idle);
  traceMOVED_TASK_TO_READY_STATE(who);
}

/* For ever, or until each has a mutex and waits for that of the other, while the tick goes on. */
static void work(int is_healthy) {
  static TCB_t tasks[3] = {{.uxTCBNumber = 1}, {.uxTCBNumber = 2}, {.uxTCBNumber = 3}};
  static Queue_t first = {.ucQueueType = 1}, second = {.ucQueueType = 1};
  TCB_t *const one = &tasks[0], *const two = &tasks[1], *const idle = &tasks[2];
  TCB_t* const idle_tasks[] = {idle};
  for (int i = 0; i < 3; i++) {
    traceTASK_CREATE(&tasks[i]);
    traceMOVED_TASK_TO_READY_STATE(&tasks[i]);
  }
  traceSTARTING_SCHEDULER(idle_tasks);
  for (uint32_t round = 0; is_healthy || round < kRoundsBeforeFault; round++) {
    take_turns(one, two, idle, &first, &second);
    take_turns(two, one, idle, &first, &second);
  }
  switch_to(one);
  take(&first);
  switch_to(two);
  take(&second);
  traceBLOCKING_ON_QUEUE_RECEIVE(&first);
  switch_to(one);
  traceBLOCKING_ON_QUEUE_RECEIVE(&second);
  tell_crosswise(one->uxTCBNumber, two->uxTCBNumber);
  for (;;) idle_for_a_tick(idle);
}

static void trip_all(TCB_t* task, char* name) {
  configASSERT(task == 0);
  vApplicationStackOverflowHook(task, name);
  vApplicationMallocFailedHook();
#ifdef __riscv
  freertos_risc_v_application_exception_handler();
#else /* compiled only */
  HardFault_Handler();
#endif
}

static const char* name_of(uint32_t id) {
  return id == HANGSCOPE_ID_task_priority    ? "task_priority"
         : id == HANGSCOPE_ID_task_notify    ? "task_notify"
         : id == HANGSCOPE_ID_event_bits_set ? "event_bits_set"
                                             : 0;
}

enum { kEvents = 1, kWaits, kFaults, kHealthy, kCrosswise };
#endif

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
  (void)xTickCount, (void)pxCurrentTCB, (void)uxTaskGetTaskNumber(0);
#if HANGSCOPE_ENABLE
  static TCB_t one = {.uxPriority = 5, .uxTCBNumber = 1},
               two = {.uxPriority = 6, .uxTCBNumber = 2, .pcTaskName = "radio"},
               three = {.uxPriority = 7, .uxTCBNumber = 3};
  static Queue_t mutex = {.uxMessagesWaiting = 1, .ucQueueType = 1}, semaphore = {.ucQueueType = 3},
                 queue;
  const uint32_t mode = platform_time_parameter_ms(kEvents);
  if (mode == kWaits) leave_waits();
  if (mode == kFaults) trip_all(&one, "one");
  if (mode == kHealthy || mode == kCrosswise) work(mode == kHealthy);
  if (mode != kEvents) {
    hangscope_dump(platform_put, name_of);
    platform_power_off();
  }
  traceTASK_CREATE(&one);
  traceTASK_CREATE(&two);
  traceQUEUE_SEND(&mutex); /* it is made */
  traceQUEUE_REGISTRY_ADD(&mutex, "antenna");
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
  take(&mutex);
  give(&mutex, 0);
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

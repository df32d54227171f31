/* Checks, inside the machine, that the kernel records what it does: each of the 18 events with its
 * parameters, their order, what is overwritten, times, the errors of hangscope_get. Prints what it
 * found, and `Overall: PASS` if that was right. Built with HANGSCOPE_ENABLE=0 it does the same things
 * and prints `Tracing disabled build: PASS`.
 *
 * At the end two tasks wait for each other, for whoever looks from outside. */
#include "hangscope/hangscope.h"

#include "internal.h"
#include "kernel.h"
#include "platform.h"
#include "print.h"
#ifdef YIELD_HOOK
#include "yield_hook.h"
#endif

#define PRIORITY 5u
#define CAUSE_TIMER 7u
#define CAUSE_BREAKPOINT 3u
#define FLOOD (HANGSCOPE_RING_CAPACITY + 8u)

static int failures;

static void check(const char* what, int right) {
  print_text(what);
  print_text(right ? ": PASS\n" : ": FAIL\n");
  if (!right) failures++;
}

/* What there is to wait for. */
static struct semaphore worked = {0}; /* by the worker */
static struct semaphore hold = {0};   /* the worker, in the end */
static struct mutex mutex, first, second;
static struct queue queue;
static struct pipe pipe;

static task_id validator, worker, partner, faulty, one, other;

/* The tasks that the validator creates. */

static void work(void* argument) {
  task_yield();
  task_delay(2);
  semaphore_post(argument);
  for (;;) task_yield(); /* until it is suspended */
}

static void take_part(void* argument) {
  uint8_t bytes[4];
  mutex_lock(&mutex); /* the validator has it */
  queue_send(&queue, 42);
  (void)mutex_unlock(&mutex);
  const uint32_t count = pipe_read(&pipe, bytes, sizeof bytes);
  *(uint32_t*)argument = count == 3 && bytes[2] == 'c';
  semaphore_wait(&hold);
}

static void do_what_it_must_not(void* argument) {
  (void)argument;
  __asm__ volatile(".option push\n.option norvc\nebreak\n.option pop");
}

static void lock_in_turn(struct mutex* mine, struct mutex* others) {
  mutex_lock(mine);
  task_delay(2);
  mutex_lock(others);
}
static void lock_first(void* argument) {
  (void)argument;
  lock_in_turn(&first, &second);
}
static void lock_second(void* argument) {
  (void)argument;
  lock_in_turn(&second, &first);
}

/* A task with a name. */
static task_id named(task_id task, const char* name) {
  hangscope_task_is_named(task, name);
  return task;
}

/* Everything once. */
static void run_scenario(void) {
  static uint32_t pipe_was_right;
  hangscope_resource_is_named(&first, "first");
  hangscope_resource_is_named(&second, "second");
  worker = named(task_create(work, &worked, PRIORITY), "worker");
  semaphore_wait(&worked);
  (void)task_suspend(worker);
  (void)task_resume(worker);
  (void)task_suspend(worker);
  (void)task_destroy(worker);

  mutex_lock(&mutex);
  partner = task_create(take_part, &pipe_was_right, PRIORITY + 1);
  (void)mutex_unlock(&mutex); /* the partner goes on at once */
  check("queue", queue_receive(&queue) == 42);
  pipe_write(&pipe, "abc", 3);
  check("pipe", pipe_was_right == 1);
  semaphore_post(&hold); /* the partner ends */

  faulty = task_create(do_what_it_must_not, 0, PRIORITY + 1);
  check("a task that faults is destroyed", task_suspend(faulty) == -1);

  one = named(task_create(lock_first, 0, PRIORITY + 1), "locks first");
  other = named(task_create(lock_second, 0, PRIORITY + 1), "locks second");
  task_delay(5); /* until they wait for each other */
#ifdef YIELD_HOOK
  check("the program's own yield is called", yield_hook_calls >= FLOOD + 2);
#endif
}

#if HANGSCOPE_ENABLE

static struct hangscope_event events[HANGSCOPE_RING_CAPACITY];
static uint32_t event_count;

/* The first that fits, from `from` on; -1 if there is none. */
static int find(uint32_t from, uint32_t id, uint32_t p0, uint32_t p1) {
  for (uint32_t i = from; i < event_count; i++) {
    if (events[i].id == id && events[i].parameters[0] == p0 && events[i].parameters[1] == p1) return (int)i;
  }
  return -1;
}

static void expect(const char* name, uint32_t id, uint32_t p0, uint32_t p1) { check(name, find(0, id, p0, p1) >= 0); }

static void check_flood(void) {
  (void)hangscope_set_mask(HANGSCOPE_CLASS_TASK); /* interrupts come when they want */
  hangscope_clear();
  for (uint32_t i = 0; i < FLOOD; i++) task_yield();
  hangscope_freeze();
  check("flood: the ring is full", hangscope_count(0) == HANGSCOPE_RING_CAPACITY);
  check("flood: 8 overwritten", hangscope_overwrites(0) == 8);
  check("flood: none refused", hangscope_refusals(0) == 0);
  struct hangscope_event event;
  uint32_t yields = 0;
  for (uint32_t i = 0; hangscope_get(0, i, &event) == HANGSCOPE_OK; i++) yields += event.id == HANGSCOPE_ID_task_yield;
  check("flood: yields only", yields == HANGSCOPE_RING_CAPACITY);
  hangscope_clear();
  check("clear", hangscope_count(0) == 0 && hangscope_overwrites(0) == 0);
  (void)hangscope_set_mask(HANGSCOPE_FIRST_MASK);
}

static void check_get(void) {
  struct hangscope_event event;
  check("get: the last one", hangscope_get(0, hangscope_count(0) - 1, &event) == HANGSCOPE_OK);
  check("get: no event", hangscope_get(0, 0, 0) == HANGSCOPE_NULL);
  check("get: behind the last one", hangscope_get(0, hangscope_count(0), &event) == HANGSCOPE_OUT_OF_RANGE);
  check("get: no such core", hangscope_get(HANGSCOPE_CORES, 0, &event) == HANGSCOPE_OUT_OF_RANGE);
}

static void check_time(void) {
  int grows = 1;
  for (uint32_t i = 1; i < event_count; i++) grows &= (int32_t)(events[i].time - events[i - 1].time) >= 0;
  check("time grows", grows);
  check("time passed", event_count > 0 && events[event_count - 1].time != events[0].time);
}

static void check_presence(void) {
  const uint32_t faults_at = (uint32_t)(uintptr_t)do_what_it_must_not;
  expect("task_create", HANGSCOPE_ID_task_create, worker, PRIORITY);
  expect("task_destroy", HANGSCOPE_ID_task_destroy, worker, TASK_SUSPENDED);
  expect("task_switch, there", HANGSCOPE_ID_task_switch, validator, worker);
  expect("task_switch, back", HANGSCOPE_ID_task_switch, worker, validator);
  expect("task_suspend", HANGSCOPE_ID_task_suspend, worker, 0);
  expect("task_resume", HANGSCOPE_ID_task_resume, worker, 0);
  expect("task_delay", HANGSCOPE_ID_task_delay, 2, 0);
  expect("task_yield", HANGSCOPE_ID_task_yield, 0, 0);
  expect("semaphore_wait", HANGSCOPE_ID_semaphore_wait, kernel_name(&worked), (uint32_t)-1);
  expect("semaphore_post", HANGSCOPE_ID_semaphore_post, kernel_name(&worked), 0);
  expect("mutex_lock, free", HANGSCOPE_ID_mutex_lock, kernel_name(&mutex), validator);
  const int own = find(0, HANGSCOPE_ID_mutex_lock, kernel_name(&first), one);
  check("mutex_lock, of another", own >= 0 && find((uint32_t)own + 1, HANGSCOPE_ID_mutex_lock, kernel_name(&first), one) >= 0);
  expect("mutex_unlock", HANGSCOPE_ID_mutex_unlock, kernel_name(&mutex), 0);
  expect("pipe_write", HANGSCOPE_ID_pipe_write, kernel_name(&pipe), 3);
  expect("pipe_read", HANGSCOPE_ID_pipe_read, kernel_name(&pipe), 3);
  expect("queue_send", HANGSCOPE_ID_queue_send, kernel_name(&queue), 1);
  expect("queue_receive", HANGSCOPE_ID_queue_receive, kernel_name(&queue), 0);
  expect("isr_enter", HANGSCOPE_ID_isr_enter, CAUSE_TIMER, 0);
  expect("isr_exit", HANGSCOPE_ID_isr_exit, CAUSE_TIMER, 0);
  expect("exception", HANGSCOPE_ID_exception, CAUSE_BREAKPOINT, faults_at);
  expect("task ids above 16 bits", HANGSCOPE_ID_task_destroy, faulty, TASK_READY);
}

static void check_order(void) {
  const int create = find(0, HANGSCOPE_ID_task_create, worker, PRIORITY);
  const int yield = create < 0 ? -1 : find((uint32_t)create, HANGSCOPE_ID_task_yield, 0, 0);
  const int delay = yield < 0 ? -1 : find((uint32_t)yield, HANGSCOPE_ID_task_delay, 2, 0);
  const int suspend = delay < 0 ? -1 : find((uint32_t)delay, HANGSCOPE_ID_task_suspend, worker, 0);
  const int resume = suspend < 0 ? -1 : find((uint32_t)suspend, HANGSCOPE_ID_task_resume, worker, 0);
  const int destroy = resume < 0 ? -1 : find((uint32_t)resume, HANGSCOPE_ID_task_destroy, worker, TASK_SUSPENDED);
  check("order: create, yield, delay, suspend, resume, destroy", destroy >= 0);
}

/* Each switch begins with the task that the one before ended with; the first and the last with the
 * validator, who looks on. */
static void check_switches(void) {
  task_id runs = validator;
  int connected = 1;
  for (uint32_t i = 0; i < event_count; i++) {
    if (events[i].id != HANGSCOPE_ID_task_switch) continue;
    connected &= events[i].parameters[0] == runs;
    runs = events[i].parameters[1];
  }
  check("each switch goes on from the one before", connected && runs == validator);
}

static void validate(void* argument) {
  (void)argument;
  check_flood();
  run_scenario();
  hangscope_freeze();
  check("nothing was overwritten", hangscope_overwrites(0) == 0);
  event_count = 0;
  while (hangscope_get(0, event_count, &events[event_count]) == HANGSCOPE_OK) event_count++;
  check("each record can be read", event_count == hangscope_count(0));
  check_get();
  check_time();
  check_presence();
  check_order();
  check_switches();

  (void)kernel_lock(); /* the scope stays as it is printed */
  print_text("dump:\n");
#if HANGSCOPE_NAMES
  hangscope_dump(platform_put, 0);
#endif
  hangscope_hexdump(platform_put);
  print_text(failures == 0 ? "Overall: PASS\n" : "Overall: FAIL\n");
  platform_power_off();
}

#else

static void validate(void* argument) {
  (void)argument;
  for (uint32_t i = 0; i < FLOOD; i++) task_yield();
  run_scenario();
  struct hangscope_event event;
  check("nothing is recorded", hangscope_count(0) == 0 && hangscope_overwrites(0) == 0);
  check("get: out of range", hangscope_get(0, 0, &event) == HANGSCOPE_OUT_OF_RANGE);
  check("get: no event", hangscope_get(0, 0, 0) == HANGSCOPE_NULL);
  print_text(failures == 0 ? "Tracing disabled build: PASS\n" : "Tracing disabled build: FAIL\n");
  platform_power_off();
}

#endif

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
  validator = task_create(validate, 0, PRIORITY);
  kernel_start();
}

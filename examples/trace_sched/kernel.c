#define HANGSCOPE_DEFINE
#include "internal.h"
#include "platform.h"

#define TICK_MS 1
#define CAUSE_TIMER 7u
#define CAUSE_ECALL 11u
#define CAUSE_IS_INTERRUPT ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 1))
#define MIE_TIMER 0x80u
#define MSTATUS_NEW_TASK 0x1880u /* machine mode, interrupts on after mret */

#define KERNEL_INTERRUPTS(NAME) NAME(7, "timer")
HANGSCOPE_NAMED(kernel_interrupts, HANGSCOPE_CATALOG_INTERRUPT, KERNEL_INTERRUPTS);
#define KERNEL_EXCEPTIONS(NAME) NAME(2, "illegal instruction") NAME(3, "breakpoint") NAME(11, "system call")
HANGSCOPE_NAMED(kernel_exceptions, HANGSCOPE_CATALOG_EXCEPTION, KERNEL_EXCEPTIONS);
#define KERNEL_STATES(NAME) NAME(1, "ready") NAME(2, "delayed") NAME(3, "blocked") NAME(4, "suspended")
HANGSCOPE_NAMED(kernel_states, HANGSCOPE_CATALOG_TASK_STATE, KERNEL_STATES);

/* As switch.S saves it. */
struct frame {
  uintptr_t x1;
  uintptr_t x5_to_x31[27];
  uintptr_t mepc;
  uintptr_t mstatus;
  uintptr_t unused[2];
};
#define X5_TO_X31_A0 5 /* x10 */

struct task {
  task_id id;
  enum task_state state; /* without regard to `suspended` */
  int suspended;
  uint32_t priority;
  uint32_t wake_tick;      /* TASK_DELAYED */
  const void* waits_for;   /* TASK_BLOCKED */
  uint32_t waiting_number; /* grows: who waits longest has the smallest */
  struct frame* frame;     /* while it does not run */
};

static struct task tasks[KERNEL_TASKS];
static _Alignas(16) uint8_t stacks[KERNEL_TASKS][KERNEL_STACK_BYTES];
static struct task* current;
static task_id ids;
static uint32_t ticks;
static uint32_t waits;

void kernel_trap_entry(void);
_Noreturn void kernel_resume(struct frame* frame);

static uint32_t index_of(const struct task* task) { return (uint32_t)(task - tasks); }

static int is_ready(const struct task* task) { return task->state == TASK_READY && !task->suspended; }

static struct task* find(task_id id) {
  for (uint32_t i = 0; i < KERNEL_TASKS; i++) {
    if (tasks[i].state != TASK_FREE && tasks[i].id == id) return &tasks[i];
  }
  return 0;
}

/* The idle task is always ready. */
static struct task* most_urgent(void) {
  struct task* best = 0;
  for (uint32_t i = 1; i <= KERNEL_TASKS; i++) {
    struct task* const task = &tasks[(index_of(current) + i) % KERNEL_TASKS];
    if (is_ready(task) && (best == 0 || task->priority > best->priority)) best = task;
  }
  return best;
}

void kernel_preempt(void) {
  if (most_urgent()->priority > current->priority) kernel_reschedule();
}

void kernel_reschedule(void) { __asm__ volatile("ecall" ::: "memory"); }

void kernel_yield_hook(void) __attribute__((weak, alias("kernel_reschedule")));

/* Tasks. */

static void finish(void) { (void)task_destroy(task_self()); }

task_id task_create(void (*entry)(void* argument), void* argument, uint32_t priority) {
  const uintptr_t before = kernel_lock();
  struct task* task = 0;
  for (uint32_t i = 0; i < KERNEL_TASKS && task == 0; i++) {
    if (tasks[i].state == TASK_FREE) task = &tasks[i];
  }
  if (task == 0) {
    kernel_unlock(before);
    return KERNEL_NO_TASK;
  }
  const task_id id = KERNEL_FIRST_ID + ids++;
  task->id = id;
  task->state = TASK_READY;
  task->suspended = 0;
  task->priority = priority;
  task->frame = (struct frame*)(void*)&stacks[index_of(task) + 1][0] - 1;
  task->frame->x1 = (uintptr_t)finish;
  task->frame->x5_to_x31[X5_TO_X31_A0] = (uintptr_t)argument;
  task->frame->mepc = (uintptr_t)entry;
  task->frame->mstatus = MSTATUS_NEW_TASK;
  hangscope_task_create(id, priority);
  hangscope_task_ready(index_of(task), id);
  if (current != 0) kernel_preempt();
  kernel_unlock(before);
  return id;
}

/* What the state is called outside. */
static enum task_state state_of(const struct task* task) {
  return task->suspended ? TASK_SUSPENDED : task->state;
}

int task_destroy(task_id id) {
  const uintptr_t before = kernel_lock();
  struct task* const task = find(id);
  if (task != 0) {
    hangscope_task_destroy(id, state_of(task));
    hangscope_task_is_named(id, 0);
    hangscope_task_gone(index_of(task), id);
    task->state = TASK_FREE;
    if (task == current) kernel_reschedule();
  }
  kernel_unlock(before);
  return task != 0 ? 0 : -1;
}

int task_suspend(task_id id) {
  const uintptr_t before = kernel_lock();
  struct task* const task = find(id);
  if (task != 0 && !task->suspended) {
    hangscope_task_suspend(id);
    task->suspended = 1;
    /* A task that waited already goes on to show for what. */
    if (task->state == TASK_READY) {
      hangscope_task_waits(index_of(task), id, HANGSCOPE_RESOURCE_SUSPENDED, id, HANGSCOPE_NO_TASK);
    }
    if (task == current) kernel_reschedule();
  }
  kernel_unlock(before);
  return task != 0 ? 0 : -1;
}

int task_resume(task_id id) {
  const uintptr_t before = kernel_lock();
  struct task* const task = find(id);
  if (task != 0 && task->suspended) {
    hangscope_task_resume(id);
    task->suspended = 0;
    if (task->state == TASK_READY) hangscope_task_ready(index_of(task), id);
    kernel_preempt();
  }
  kernel_unlock(before);
  return task != 0 ? 0 : -1;
}

void task_delay(uint32_t count) {
  const uintptr_t before = kernel_lock();
  hangscope_task_delay(count);
  hangscope_task_waits(index_of(current), current->id, HANGSCOPE_RESOURCE_TIME, count, HANGSCOPE_NO_TASK);
  current->state = TASK_DELAYED;
  current->wake_tick = ticks + count;
  kernel_reschedule();
  kernel_unlock(before);
}

void task_yield(void) {
  hangscope_task_yield();
  kernel_yield_hook();
}

task_id task_self(void) { return current->id; }

/* Waiting, for sync.c. */

static void make_ready(struct task* task) {
  task->state = TASK_READY;
  if (!task->suspended) {
    hangscope_task_ready(index_of(task), task->id);
  } else {
    hangscope_task_waits(index_of(task), task->id, HANGSCOPE_RESOURCE_SUSPENDED, task->id, HANGSCOPE_NO_TASK);
  }
}

void kernel_block(const void* object, enum hangscope_resource_kind kind, task_id holder) {
  hangscope_task_waits(index_of(current), current->id, kind, kernel_name(object), holder);
  current->state = TASK_BLOCKED;
  current->waits_for = object;
  current->waiting_number = waits++;
  kernel_reschedule();
}

task_id kernel_wake(const void* object) {
  struct task* best = 0;
  for (uint32_t i = 0; i < KERNEL_TASKS; i++) {
    struct task* const task = &tasks[i];
    if (task->state != TASK_BLOCKED || task->waits_for != object) continue;
    if (best == 0 || task->priority > best->priority ||
        (task->priority == best->priority && (int32_t)(task->waiting_number - best->waiting_number) < 0)) {
      best = task;
    }
  }
  if (best == 0) return KERNEL_NO_TASK;
  make_ready(best);
  return best->id;
}

/* Traps. */

static void set_timer(void) { platform_set_timer(0, platform_mtime() + platform_ms_to_ticks(TICK_MS)); }

static void tick(void) {
  set_timer();
  ticks++;
  hangscope_tick();
  for (uint32_t i = 0; i < KERNEL_TASKS; i++) {
    struct task* const task = &tasks[i];
    if (task->state == TASK_DELAYED && (int32_t)(ticks - task->wake_tick) >= 0) make_ready(task);
  }
}

/* From switch.S, interrupts off: `frame` is where the task stopped. Returns where to go on. */
struct frame* kernel_trap(struct frame* frame, uintptr_t cause) {
  if (cause == CAUSE_ECALL) {
    frame->mepc += 4;
  } else if ((cause & CAUSE_IS_INTERRUPT) != 0) {
    hangscope_isr_enter((uint32_t)cause & 0xff);
    tick(); /* the only one that is switched on */
    hangscope_isr_exit((uint32_t)cause & 0xff);
  } else {
    /* A task that does what it must not is destroyed. */
    hangscope_exception((uint32_t)cause, (uint32_t)frame->mepc);
    hangscope_task_destroy(current->id, state_of(current));
    hangscope_task_gone(index_of(current), current->id);
    current->state = TASK_FREE;
  }
  struct task* const next = most_urgent();
  if (next != current) {
    hangscope_task_switch(current->id, next->id);
    hangscope_task_runs(next->id);
    current->frame = frame;
    current = next;
    frame = next->frame;
  }
  return frame;
}

static void idle(void* argument) {
  (void)argument;
  for (;;) __asm__ volatile("wfi");
}

_Noreturn void kernel_start(void) {
  const task_id id = task_create(idle, 0, 0);
  __asm__ volatile("csrw mtvec, %0" ::"r"((uintptr_t)kernel_trap_entry));
  set_timer();
  __asm__ volatile("csrs mie, %0" ::"r"((uintptr_t)MIE_TIMER));
  current = find(id);
  current = most_urgent();
  hangscope_task_switch(KERNEL_NO_TASK, current->id);
  hangscope_task_runs(current->id);
  kernel_resume(current->frame);
}

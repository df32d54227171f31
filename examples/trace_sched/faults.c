/* Five tasks pass rounds on by semaphores, and go wrong as the words at 0x83f00000 say, where QEMU's
 * -device loader leaves them:
 *
 *   task 0 --filled[1]--> task 1 --filled[2]--> ... task 4 --credit--> task 0
 *
 * Each has a mutex. What is done wrong is printed when it is done. tests/system/test_matrix.py reads the
 * numbers of the faults from this file. */
#include "hangscope/hangscope.h"

#include "internal.h"
#include "kernel.h"
#include "platform.h"
#include "print.h"

#define WORKERS 5u
#define CREDITS 4
#define PRIORITY 5u
#define HIGH_PRIORITY 6u
#define PLAN_AT 0x83f00000u

enum sched_fault {
  SCHED_NONE = 0,
  SCHED_DEADLOCK2 = 1,    /* `task` and `other` each have a mutex and want the other's */
  SCHED_DEADLOCK5 = 2,    /* task 4 keeps the credits: all five wait in a circle */
  SCHED_LOST_POST = 3,    /* one post is forgotten */
  SCHED_STARVATION = 4,   /* the task is the most urgent one, and never waits again */
  SCHED_SLOW = 5,         /* control: each round takes `value` ms of work */
  SCHED_SLEEPS = 6,       /* control: each round takes `value` ms of sleep */
  SCHED_HANDOVER = 7,     /* control: `task` and `other` post to each other, `value` times */
  SCHED_KEPT_MUTEX = 8,   /* the task ends with its mutex, which `other` then wants */
  SCHED_SUSPENDED = 9,    /* the task suspends itself with its mutex, which `other` then wants */
  SCHED_ASSERT = 10,
  SCHED_CORRUPT = 11,     /* word number `other` of the task's record becomes `value` */
  SCHED_STUCK = 12,       /* the task loops with interrupts off */
  SCHED_INVERSION = 13,   /* the task, the least urgent one, has the mutex that `other`, the most
                             urgent one, wants, and the first of the rest computes for `value` ms */
};

struct sched_plan {
  uint32_t fault; /* enum sched_fault */
  uint32_t task;  /* 0 to 4 */
  uint32_t other;
  uint32_t value;
  uint32_t round;   /* at which it happens; one more than there are: when the last is done */
  uint32_t rounds;  /* 0: no end */
  uint32_t pace_ms; /* between rounds */
};

static struct semaphore filled[WORKERS]; /* the first is not used */
static struct semaphore credit = {CREDITS};
static struct semaphore balls[2];
static struct mutex mutexes[WORKERS];
static uint32_t has_mutex; /* a bit for each worker that has its own, to keep it */
static uint32_t workers_done;
static uint32_t rounds_done;

static const struct sched_plan* the_plan(void) { return (const struct sched_plan*)(uintptr_t)PLAN_AT; }

static task_id id_of(uint32_t worker) { return KERNEL_FIRST_ID + worker; }
static uint32_t worker_of(task_id id) { return id - KERNEL_FIRST_ID; }

static void tell_planted(uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  const uintptr_t before = kernel_lock();
  print_text("planted: fault ");
  print_number(plan->fault);
  print_text(" task ");
  print_number(id_of(plan->task));
  print_text(" other ");
  print_number(id_of(plan->other));
  print_text(" value ");
  print_number(plan->value);
  print_text(" round ");
  print_number(round);
  print_text("\n");
  kernel_unlock(before);
}

static uint32_t first_of_the_rest(void) {
  uint32_t worker = 0;
  while (worker == the_plan()->task || worker == the_plan()->other) worker++;
  return worker;
}

static int is_planned(enum sched_fault fault, uint32_t worker, uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  return plan->fault == (uint32_t)fault && plan->task == worker && plan->round == round;
}
static int is_planned_from(enum sched_fault fault, uint32_t worker, uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  return plan->fault == (uint32_t)fault && plan->task == worker && plan->round <= round;
}

/* Until the other one has its mutex. */
static void keep_mutex(uint32_t worker, uint32_t other) {
  mutex_lock(&mutexes[worker]);
  has_mutex |= 1u << worker; /* no task preempts another of its priority but at a tick, and that is no matter */
  while ((has_mutex & 1u << other) == 0) task_delay(1);
}

/* The one further on comes at the planned round, the one before it at the next: so neither waits for the
 * other's posts. */
static void maybe_deadlock(uint32_t worker, uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  if (plan->fault != SCHED_DEADLOCK2) return;
  if (worker == plan->task && round == plan->round) {
    keep_mutex(worker, plan->other);
    tell_planted(round);
    mutex_lock(&mutexes[plan->other]);
  } else if (worker == plan->other && round == plan->round + 1) {
    keep_mutex(worker, plan->task);
    mutex_lock(&mutexes[plan->task]);
  }
}

static void work_ms(uint32_t ms) {
  const uint64_t end = platform_mtime() + platform_ms_to_ticks(ms);
  while (platform_mtime() < end) {
  }
}

__attribute__((noinline)) static void loop_for_ever(void) {
  for (volatile uint32_t rounds = 0;; rounds++) {
  }
}

static void corrupt_record(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  ((volatile uint32_t*)(void*)&hangscope_scope.tasks[worker])[plan->other] = plan->value;
}

static void maybe_fail(uint32_t worker, uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  maybe_deadlock(worker, round);
  if (is_planned_from(SCHED_SLOW, worker, round) || is_planned_from(SCHED_SLEEPS, worker, round)) {
    if (round == plan->round) tell_planted(round);
    if (plan->fault == SCHED_SLOW) {
      work_ms(plan->value);
    } else {
      task_delay(plan->value);
    }
  }
  if (is_planned(SCHED_STARVATION, worker, round)) {
    tell_planted(round);
    loop_for_ever();
  }
  if (is_planned(SCHED_STUCK, worker, round)) {
    tell_planted(round);
    (void)kernel_lock();
    loop_for_ever();
  }
  if (is_planned(SCHED_ASSERT, worker, round)) {
    tell_planted(round);
    HANGSCOPE_ASSERT(plan->fault != SCHED_ASSERT, "the round is in order");
  }
}

/* When its last round is done. */
static void maybe_fail_at_end(uint32_t worker, uint32_t round) {
  const struct sched_plan* const plan = the_plan();
  if (plan->fault != SCHED_KEPT_MUTEX && plan->fault != SCHED_SUSPENDED) return;
  if (worker == plan->task) {
    mutex_lock(&mutexes[worker]);
    has_mutex |= 1u << worker;
    tell_planted(round);
    if (plan->fault == SCHED_SUSPENDED) (void)task_suspend(task_self());
  } else if (worker == plan->other) {
    while ((has_mutex & 1u << plan->task) == 0) task_delay(1);
    mutex_lock(&mutexes[plan->task]);
  }
}

/* One round: takes what the task before has passed on, passes it on. */
static void take(uint32_t worker) {
  if (worker != 0) {
    semaphore_wait(&filled[worker]);
    return;
  }
  if (the_plan()->pace_ms != 0) task_delay(the_plan()->pace_ms);
  semaphore_wait(&credit);
}
static void give(uint32_t worker, uint32_t round) {
  if (is_planned(SCHED_LOST_POST, worker, round)) {
    tell_planted(round);
    return;
  }
  if (is_planned_from(SCHED_DEADLOCK5, worker, round)) {
    if (round == the_plan()->round) tell_planted(round);
    return;
  }
  semaphore_post(worker + 1 < WORKERS ? &filled[worker + 1] : &credit);
}

static void hand_over(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  const uint32_t side = worker == plan->task ? 0 : 1;
  if (side == 0) tell_planted(0);
  for (uint32_t i = 0; i < plan->value; i++) {
    if (side == 0) semaphore_post(&balls[1]);
    semaphore_wait(&balls[side]);
    if (side == 1) semaphore_post(&balls[0]);
  }
}

static void invert(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  const uint32_t both = 1u << plan->other | 1u << first_of_the_rest();
  if (worker == plan->task) {
    mutex_lock(&mutexes[worker]);
    has_mutex |= 1u << worker;
    tell_planted(0);
    while ((__atomic_load_n(&has_mutex, __ATOMIC_RELAXED) & both) != both) {
    }
    (void)mutex_unlock(&mutexes[worker]);
    return;
  }
  while ((has_mutex & 1u << plan->task) == 0) task_delay(1);
  has_mutex |= 1u << worker; /* it wants it, or keeps who has it from going on */
  if (worker == plan->other) {
    mutex_lock(&mutexes[plan->task]);
    (void)mutex_unlock(&mutexes[plan->task]);
  } else if (worker == first_of_the_rest()) {
    work_ms(plan->value);
  }
}

static void run_rounds(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  for (uint32_t round = 1; plan->rounds == 0 || round <= plan->rounds; round++) {
    hangscope_heartbeat();
    take(worker);
    maybe_fail(worker, round);
    mutex_lock(&mutexes[worker]);
    rounds_done += worker == WORKERS - 1;
    (void)mutex_unlock(&mutexes[worker]);
    give(worker, round);
  }
  maybe_fail_at_end(worker, plan->rounds + 1);
}

static void finish(void) {
  if (++workers_done < WORKERS) return;
  print_text("sched: ");
  print_number(rounds_done);
  print_text(" rounds\n");
  platform_power_off();
}

static void work(void* argument) {
  const struct sched_plan* const plan = the_plan();
  const uint32_t worker = worker_of(task_self());
  (void)argument;
  if (plan->fault == SCHED_INVERSION) {
    invert(worker);
  } else if (plan->fault != SCHED_HANDOVER) {
    run_rounds(worker);
  } else if (worker == plan->task || worker == plan->other) {
    hand_over(worker);
  }
  finish();
}

static uint32_t priority_of(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  if (plan->fault == SCHED_STARVATION && plan->task == worker) return HIGH_PRIORITY;
  if (plan->fault != SCHED_INVERSION) return PRIORITY;
  return plan->task == worker ? PRIORITY - 1 : plan->other == worker ? HIGH_PRIORITY : PRIORITY;
}

/* In the order of their records. */
static void create_worker(uint32_t worker) {
  const struct sched_plan* const plan = the_plan();
  const task_id id = task_create(work, 0, priority_of(worker));
  const uint32_t index = worker_of(id);
  hangscope_task_provides(index, kernel_name(worker + 1 < WORKERS ? &filled[worker + 1] : &credit));
  if (plan->fault != SCHED_HANDOVER) return;
  if (worker == plan->task) hangscope_task_provides(index, kernel_name(&balls[1]));
  if (worker == plan->other) hangscope_task_provides(index, kernel_name(&balls[0]));
}

void hart_main(unsigned hart) {
  if (hart != 0) park();
  (void)hangscope_init();
  for (uint32_t worker = 0; worker < WORKERS; worker++) create_worker(worker);
  const struct sched_plan* const plan = the_plan();
  if (plan->fault == SCHED_CORRUPT) {
    tell_planted(0);
    corrupt_record(plan->task);
  }
  kernel_start();
}

/* What cores and tasks wait for, hold and provide, for the host to find out who waits for whom.
 *
 * Cores (threads, harts) say so where they wait:
 *
 *   HANGSCOPE_WAIT(resource);                       before the loop; HANGSCOPE_WAIT_FOR also says
 *                                                   the kind
 *   while (!ready()) {}
 *   HANGSCOPE_WAIT_DONE();
 *   HANGSCOPE_HOLD(lock); ... HANGSCOPE_RELEASE(lock);   of what one at a time can have
 *   HANGSCOPE_PROVIDES(channel);                    this core fills it, posts it: once, for as long
 *                                                   as it does
 *
 * A resource is any number but 0 that is the same for all who use it: its address, for example, of
 * which 32 bits are kept. A core waits for one thing at a time: an interrupt handler that waits
 * while its core does says nothing. Each core writes its own words only.
 *
 * Tasks of an OS have a record each. The kernel calls these on the blocking path only: a lock that
 * is free costs nothing.
 *
 * `index` is the task's record, 0 to HANGSCOPE_TASKS - 1, any other is ignored; only one context
 * writes a record at a time, which is so where a kernel blocks a task. A kernel that keeps its
 * tasks in a table of fixed places gives the place; any other has hangscope_task_slot choose. A
 * resource is any number that is the same for all who use it: its address, for example. */
#ifndef HANGSCOPE_TARGET_WAIT_H
#define HANGSCOPE_TARGET_WAIT_H

#include "hangscope/target/history.h"
#include "hangscope/target/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_WAITS

#define HANGSCOPE_WAIT(resource) \
  hangscope_wait_begins((uint32_t)(uintptr_t)(resource), (enum hangscope_resource_kind)0)
#define HANGSCOPE_WAIT_FOR(kind, resource) \
  hangscope_wait_begins((uint32_t)(uintptr_t)(resource), kind)
#define HANGSCOPE_WAIT_DONE() hangscope_wait_ends()
#define HANGSCOPE_HOLD(resource) hangscope_holds((uint32_t)(uintptr_t)(resource))
#define HANGSCOPE_RELEASE(resource) hangscope_releases((uint32_t)(uintptr_t)(resource))
#define HANGSCOPE_PROVIDES(resource) hangscope_provides((uint32_t)(uintptr_t)(resource))
#define HANGSCOPE_PROVIDES_NO_MORE(resource) \
  hangscope_provides_no_more((uint32_t)(uintptr_t)(resource))

/* Any context that is not inside another wait of its core. */
HANGSCOPE_CALLED void hangscope_wait_begins(uint32_t resource, enum hangscope_resource_kind kind);
HANGSCOPE_CALLED void hangscope_wait_ends(void);

#if !HANGSCOPE_OUT_OF_LINE || defined(HANGSCOPE_DEFINE)
HANGSCOPE_CALLED void hangscope_wait_begins(uint32_t resource, enum hangscope_resource_kind kind) {
  if (HANGSCOPE_UNLIKELY(!hangscope_is_on(HANGSCOPE_WATCH_WAITS))) return;
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
#if HANGSCOPE_HAS_FRAMES
  struct hangscope_frame* const frame = &hangscope_scope.frames[HANGSCOPE_PORT_CORE()];
#endif
  const uint64_t now = hangscope_port_clock64();
  /* behind the store that ended the wait before: a reader looks at that last */
  hangscope_port_stores_in_order();
  hangscope_port_store(&mailbox->wait_resource, resource);
  hangscope_port_store(&mailbox->wait_kind, kind);
  hangscope_port_store(&mailbox->wait_since, (uint32_t)now);
  hangscope_port_store(&mailbox->wait_epoch, (uint32_t)(now >> 30));
#if HANGSCOPE_HAS_FRAMES
  hangscope_port_note_frame(frame);
#endif
  /* Publishes the wait. Pairs with the reader's look at the sequence before it reads the rest, and
   * after. */
  hangscope_port_publish(&mailbox->wait_sequence,
                         (hangscope_port_load(&mailbox->wait_sequence) + 1) | 1u);
#if HANGSCOPE_HISTORY
  hangscope_wait_begin(resource, kind);
#endif
}
/* Switched off or not: what began before ends. */
HANGSCOPE_CALLED void hangscope_wait_ends(void) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
#if HANGSCOPE_HISTORY
  if ((hangscope_port_load(&mailbox->wait_sequence) & 1) != 0) {
    hangscope_wait_end(hangscope_port_load(&mailbox->wait_resource),
                       hangscope_port_load(&mailbox->wait_since));
  }
#endif
  hangscope_port_store(&mailbox->wait_sequence,
                       (hangscope_port_load(&mailbox->wait_sequence) + 1) & ~1u);
}
#endif

/* Out of line: a handful of slots is searched. What does not fit is counted. */
void hangscope_claim_in(uint32_t* slots, uint32_t count, uint32_t* lost, uint32_t resource);
void hangscope_unclaim_in(uint32_t* slots, uint32_t count, uint32_t resource);

/* Of core or, behind them, task record `row`; null: there is none. */
HANGSCOPE_INLINE struct hangscope_claims* hangscope_claims_of(uint32_t row) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  return scope == 0 || row >= HANGSCOPE_CORES + HANGSCOPE_TASKS ? 0 : &scope->claims[row];
}
HANGSCOPE_INLINE struct hangscope_claims* hangscope_my_claims(void) {
  const uint32_t core = hangscope_core_of(hangscope_this_mailbox());
  return core >= HANGSCOPE_CORES ? 0 : hangscope_claims_of(core);
}
HANGSCOPE_INLINE void hangscope_claims_hold(struct hangscope_claims* claims, uint32_t resource) {
  if (claims != 0)
    hangscope_claim_in(claims->holds, HANGSCOPE_HOLD_SLOTS,
                       &claims->provides[HANGSCOPE_PROVIDE_SLOTS], resource);
}
HANGSCOPE_INLINE void hangscope_claims_provide(struct hangscope_claims* claims, uint32_t resource) {
  if (claims != 0) {
    hangscope_claim_in(claims->provides, HANGSCOPE_PROVIDE_SLOTS,
                       &claims->provides[HANGSCOPE_PROVIDE_SLOTS], resource);
  }
}
/* Switched off, nothing new is held; what is released or provided is still said: what is not known
 * then is not known when it is switched on. */
HANGSCOPE_INLINE void hangscope_holds(uint32_t resource) {
  if (hangscope_is_on(HANGSCOPE_WATCH_WAITS))
    hangscope_claims_hold(hangscope_my_claims(), resource);
}
HANGSCOPE_INLINE void hangscope_provides(uint32_t resource) {
  hangscope_claims_provide(hangscope_my_claims(), resource);
}
HANGSCOPE_INLINE void hangscope_releases(uint32_t resource) {
  struct hangscope_claims* const claims = hangscope_my_claims();
  if (claims != 0) hangscope_unclaim_in(claims->holds, HANGSCOPE_HOLD_SLOTS, resource);
}
HANGSCOPE_INLINE void hangscope_provides_no_more(uint32_t resource) {
  struct hangscope_claims* const claims = hangscope_my_claims();
  if (claims != 0) hangscope_unclaim_in(claims->provides, HANGSCOPE_PROVIDE_SLOTS, resource);
}

#ifdef HANGSCOPE_DEFINE

HANGSCOPE_COLD void hangscope_claim_in(uint32_t* slots, uint32_t count, uint32_t* lost,
                                       uint32_t resource) {
  for (uint32_t i = 0; i < count; i++) {
    if (hangscope_port_load(&slots[i]) == 0) {
      hangscope_port_store(&slots[i], resource);
      return;
    }
  }
  hangscope_port_store(lost, hangscope_port_load(lost) + 1);
}
HANGSCOPE_COLD void hangscope_unclaim_in(uint32_t* slots, uint32_t count, uint32_t resource) {
  for (uint32_t i = count; i-- > 0;) { /* the latest first: locks nest */
    if (hangscope_port_load(&slots[i]) == resource) {
      hangscope_port_store(&slots[i], 0);
      return;
    }
  }
}

#endif

#else

#define HANGSCOPE_WAIT(resource) ((void)0)
#define HANGSCOPE_WAIT_FOR(kind, resource) ((void)0)
#define HANGSCOPE_WAIT_DONE() ((void)0)
#define HANGSCOPE_HOLD(resource) ((void)0)
#define HANGSCOPE_RELEASE(resource) ((void)0)
#define HANGSCOPE_PROVIDES(resource) ((void)0)
#define HANGSCOPE_PROVIDES_NO_MORE(resource) ((void)0)

#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_TASKS > 0

HANGSCOPE_INLINE struct hangscope_task* hangscope_task_record(uint32_t index) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  return scope == 0 || index >= HANGSCOPE_TASKS ? 0 : &scope->tasks[index];
}

/* Which record the task has; HANGSCOPE_TASKS if it has none. It is the first one looked at, as long
 * as ids count up and no more tasks live than there are records. `task`: not 0. */
HANGSCOPE_INLINE uint32_t hangscope_task_slot_of(uint32_t task) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0) return HANGSCOPE_TASKS;
  uint32_t slot = (task - 1) % HANGSCOPE_TASKS;
  for (uint32_t i = 0; i < HANGSCOPE_TASKS; i++) {
    if (hangscope_port_load(&scope->tasks[slot].task) == task &&
        hangscope_port_load(&scope->tasks[slot].state) != HANGSCOPE_TASK_NONE)
      return slot;
    slot = slot + 1 < HANGSCOPE_TASKS ? slot + 1 : 0;
  }
  return HANGSCOPE_TASKS;
}

/* A record for a new task: one that nobody uses, or whose task is gone. HANGSCOPE_TASKS, and
 * counted, if there is none. hangscope_task_ready or _waits takes it; one context at a time. */
uint32_t hangscope_task_slot(uint32_t task);

#ifdef HANGSCOPE_DEFINE
HANGSCOPE_COLD uint32_t hangscope_task_slot(uint32_t task) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  uint32_t slot = hangscope_task_slot_of(task);
  if (scope == 0 || slot < HANGSCOPE_TASKS) return slot;
  slot = (task - 1) % HANGSCOPE_TASKS;
  for (uint32_t i = 0; i < HANGSCOPE_TASKS; i++) {
    if (hangscope_port_load(&scope->tasks[slot].state) == HANGSCOPE_TASK_NONE) return slot;
    slot = slot + 1 < HANGSCOPE_TASKS ? slot + 1 : 0;
  }
  hangscope_port_store(&scope->header.lost_tasks,
                       hangscope_port_load(&scope->header.lost_tasks) + 1);
  return HANGSCOPE_TASKS;
}
#endif

/* Odd while it changes. Pairs with the reader's look at the sequence before and after. */
HANGSCOPE_INLINE void hangscope_task_changes(struct hangscope_task* record) {
  hangscope_port_store(&record->sequence, hangscope_port_load(&record->sequence) + 1);
  hangscope_port_stores_in_order();
}
HANGSCOPE_INLINE void hangscope_task_changed(struct hangscope_task* record) {
  hangscope_port_publish(&record->sequence, hangscope_port_load(&record->sequence) + 1);
}

#if HANGSCOPE_HAS_FRAMES
/* Of the task that runs here, as the kernel has said on its switch; another's stack is not this
 * one: it is then not known. */
HANGSCOPE_INLINE void hangscope_task_frame_is_here(uint32_t index, uint32_t task) {
  struct hangscope_frame* const frame = &hangscope_scope.frames[HANGSCOPE_CORES + index];
  if (hangscope_port_load(&hangscope_this_core()->ring.last_task) == task)
    hangscope_port_note_frame(frame);
  else
    frame->pc = 0;
}
#endif

/* The task is about to block. `holder`: the task that has the resource, HANGSCOPE_NO_TASK if the
 * kernel does not know or nobody has it. */
HANGSCOPE_INLINE void hangscope_task_waits(uint32_t index, uint32_t task,
                                           enum hangscope_resource_kind kind, uint32_t resource,
                                           uint32_t holder) {
  struct hangscope_task* const record = hangscope_task_record(index);
  if (record == 0) return;
  const uint64_t now = hangscope_port_clock64();
  hangscope_task_changes(record);
  hangscope_port_store(&record->task, task);
  hangscope_port_store(&record->state, HANGSCOPE_TASK_WAITING);
  hangscope_port_store(&record->resource, resource);
  hangscope_port_store(&record->kind, kind);
  hangscope_port_store(&record->holder, holder);
#if HANGSCOPE_HAS_FRAMES
  hangscope_task_frame_is_here(index, task);
#endif
  hangscope_port_store(&record->since, (uint32_t)now);
  hangscope_port_store(&record->since_epoch, (uint32_t)(now >> 30));
  hangscope_task_changed(record);
}

HANGSCOPE_INLINE void hangscope_task_state_is(uint32_t index, uint32_t task,
                                              enum hangscope_task_state state) {
  struct hangscope_task* const record = hangscope_task_record(index);
  if (record == 0) return;
  const uint64_t now = hangscope_port_clock64();
  hangscope_task_changes(record);
  hangscope_port_store(&record->task, task);
  hangscope_port_store(&record->state, state);
  hangscope_port_store(&record->since, (uint32_t)now);
  hangscope_port_store(&record->since_epoch, (uint32_t)(now >> 30));
  hangscope_task_changed(record);
}

/* It waits no longer; or it was created. */
HANGSCOPE_INLINE void hangscope_task_ready(uint32_t index, uint32_t task) {
  hangscope_task_state_is(index, task, HANGSCOPE_TASK_READY);
}
/* It was destroyed; the record is free. */
HANGSCOPE_INLINE void hangscope_task_gone(uint32_t index, uint32_t task) {
  hangscope_task_state_is(index, task, HANGSCOPE_TASK_NONE);
}

/* An exclusive resource that others wait for went to another task. Only where there are waiters. */
HANGSCOPE_INLINE void hangscope_holder_is(uint32_t resource, uint32_t holder) {
  for (uint32_t i = 0; i < HANGSCOPE_TASKS; i++) {
    struct hangscope_task* const record = hangscope_task_record(i);
    if (record == 0) return;
    if (hangscope_port_load(&record->state) != HANGSCOPE_TASK_WAITING ||
        hangscope_port_load(&record->kind) != HANGSCOPE_RESOURCE_EXCLUSIVE ||
        hangscope_port_load(&record->resource) != resource) {
      continue;
    }
    hangscope_task_changes(record);
    hangscope_port_store(&record->holder, holder);
    hangscope_task_changed(record);
  }
}

/* The kernel gave this core to the task: on the switch itself. One that is ready and never runs is
 * starved. */
HANGSCOPE_INLINE void hangscope_task_runs(uint32_t task) {
  hangscope_port_store(&hangscope_this_core()->ring.last_task, task);
}

#if HANGSCOPE_WAITS
/* The task fills, posts or otherwise provides `resource`, from now on. Only the task itself, or
 * whoever makes it. */
HANGSCOPE_INLINE void hangscope_task_provides(uint32_t index, uint32_t resource) {
  if (index < HANGSCOPE_TASKS)
    hangscope_claims_provide(hangscope_claims_of(HANGSCOPE_CORES + index), resource);
}
#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF uint32_t hangscope_task_slot_of(uint32_t task) { return (void)task, 0; }
HANGSCOPE_OFF uint32_t hangscope_task_slot(uint32_t task) { return (void)task, 0; }
HANGSCOPE_OFF void hangscope_task_runs(uint32_t task) { (void)task; }
HANGSCOPE_OFF void hangscope_task_waits(uint32_t index, uint32_t task,
                                        enum hangscope_resource_kind kind, uint32_t resource,
                                        uint32_t holder) {
  (void)index, (void)task, (void)kind, (void)resource, (void)holder;
}
HANGSCOPE_OFF void hangscope_task_ready(uint32_t index, uint32_t task) { (void)index, (void)task; }
HANGSCOPE_OFF void hangscope_task_gone(uint32_t index, uint32_t task) { (void)index, (void)task; }
HANGSCOPE_OFF void hangscope_holder_is(uint32_t resource, uint32_t holder) {
  (void)resource, (void)holder;
}
HANGSCOPE_OFF_END
#define hangscope_task_runs(...) HANGSCOPE_NOT_DONE((hangscope_task_runs)(__VA_ARGS__))
#define hangscope_task_waits(...) HANGSCOPE_NOT_DONE((hangscope_task_waits)(__VA_ARGS__))
#define hangscope_task_ready(...) HANGSCOPE_NOT_DONE((hangscope_task_ready)(__VA_ARGS__))
#define hangscope_task_gone(...) HANGSCOPE_NOT_DONE((hangscope_task_gone)(__VA_ARGS__))
#define hangscope_holder_is(...) HANGSCOPE_NOT_DONE((hangscope_holder_is)(__VA_ARGS__))

#endif

#if !HANGSCOPE_ENABLE || !HANGSCOPE_WAITS || HANGSCOPE_TASKS == 0
HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_task_provides(uint32_t index, uint32_t resource) {
  (void)index, (void)resource;
}
HANGSCOPE_OFF_END
#define hangscope_task_provides(...) HANGSCOPE_NOT_DONE((hangscope_task_provides)(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif

#endif

/* What each task of an OS waits for, for the host to find out who waits for whom. The kernel calls
 * these on the blocking path only: a lock that is free costs nothing.
 *
 * `index` is the task's record, 0 to HANGSCOPE_TASKS - 1, any other is ignored; only one context
 * writes a record at a time, which is so where a kernel blocks a task. A resource is any number that
 * is the same for all who use it: its address, for example. */
#ifndef HANGSCOPE_TARGET_WAIT_H
#define HANGSCOPE_TARGET_WAIT_H

#include "hangscope/target/record.h"

#if HANGSCOPE_ENABLE && HANGSCOPE_TASKS > 0

HANGSCOPE_INLINE struct hangscope_task* hangscope_task_record(uint32_t index) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  return scope == 0 || index >= HANGSCOPE_TASKS ? 0 : &scope->tasks[index];
}

/* Odd while it changes. Pairs with the reader's look at the sequence before and after. */
HANGSCOPE_INLINE void hangscope_task_changes(struct hangscope_task* record) {
  hangscope_port_store(&record->sequence, hangscope_port_load(&record->sequence) + 1);
  hangscope_port_stores_in_order();
}
HANGSCOPE_INLINE void hangscope_task_changed(struct hangscope_task* record) {
  hangscope_port_publish(&record->sequence, hangscope_port_load(&record->sequence) + 1);
}

/* The task is about to block. `holder`: the task that has the resource, HANGSCOPE_NO_TASK if the kernel
 * does not know or nobody has it. */
HANGSCOPE_INLINE void hangscope_task_waits(uint32_t index, uint32_t task, enum hangscope_resource_kind kind,
                                           uint32_t resource, uint32_t holder) {
  struct hangscope_task* const record = hangscope_task_record(index);
  if (record == 0) return;
  const uint64_t now = hangscope_port_clock64();
  hangscope_task_changes(record);
  hangscope_port_store(&record->task, task);
  hangscope_port_store(&record->state, HANGSCOPE_TASK_WAITING);
  hangscope_port_store(&record->resource, resource);
  hangscope_port_store(&record->kind, kind);
  hangscope_port_store(&record->holder, holder);
  hangscope_port_store(&record->since, (uint32_t)now);
  hangscope_port_store(&record->since_epoch, (uint32_t)(now >> 30));
  hangscope_task_changed(record);
}

HANGSCOPE_INLINE void hangscope_task_state_is(uint32_t index, uint32_t task, enum hangscope_task_state state) {
  struct hangscope_task* const record = hangscope_task_record(index);
  if (record == 0) return;
  hangscope_task_changes(record);
  hangscope_port_store(&record->task, task);
  hangscope_port_store(&record->state, state);
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

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_task_waits(uint32_t index, uint32_t task, enum hangscope_resource_kind kind,
                                        uint32_t resource, uint32_t holder) {
  (void)index, (void)task, (void)kind, (void)resource, (void)holder;
}
HANGSCOPE_OFF void hangscope_task_ready(uint32_t index, uint32_t task) { (void)index, (void)task; }
HANGSCOPE_OFF void hangscope_task_gone(uint32_t index, uint32_t task) { (void)index, (void)task; }
HANGSCOPE_OFF void hangscope_holder_is(uint32_t resource, uint32_t holder) { (void)resource, (void)holder; }
HANGSCOPE_OFF_END

#endif

#endif

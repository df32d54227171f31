#include "faults.h"

#include "noc.h"
#include "sync.h"

const struct plan* the_plan(void) { return (const struct plan*)(uintptr_t)PLAN_AT; }

int is_planned_from(enum fault fault, struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  if (plan->fault != (uint32_t)fault || plan->core != place.core || number < plan->block) {
    return 0;
  }
  if (number == plan->block) {
    tell_planted(place, number);
  }
  return 1;
}
/* Of every core: the last of each node first, so that none waits for a block before its turn comes. */
int is_planned(enum fault fault, struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  const uint32_t turn = plan->core == EVERY_CORE ? ROLES - 1 - place.role : 0;
  return plan->fault == (uint32_t)fault && (plan->core == EVERY_CORE || plan->core == place.core) &&
         number == plan->block + turn;
}

void tell_planted(struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  console_take();
  print_text("planted: fault ");
  print_number(plan->fault);
  print_text(" core ");
  print_number(place.core);
  print_text(" other ");
  print_number(plan->other);
  print_text(" value ");
  print_number(plan->value);
  print_text(" block ");
  print_number(number);
  print_text("\n");
  console_give();
}

/* Until that core was here, of the node or of another. */
static void meet_at(struct node_memory* memory, struct place place, uint32_t core, uint32_t role) {
  (void)__atomic_fetch_or(&memory->own.at_rendezvous, 1u << place.role, __ATOMIC_RELEASE);
  wake(core);
  while ((LOAD_ACQUIRE(&memory->own.at_rendezvous) & 1u << role) == 0) {
    doze(place.core);
  }
}
static void meet(struct place place, uint32_t other) {
  meet_at(memory_of(place), place, core_at(place.node, other), other);
}

/* Both have their own lock when each asks for the other's: the one further on at the planned block, the
 * one before it at the next, so that neither waits for the other's blocks. */
static void lock_in_turn(struct place place, uint32_t other, uint32_t number) {
  lock_acquire(place, place.role);
  meet(place, other);
  if (the_plan()->core == place.core) {
    tell_planted(place, number);
  }
  lock_acquire(place, other);
}

static void maybe_deadlock(struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  const struct place culprit = place_of(plan->core);
  if (plan->fault != FAULT_DEADLOCK2 || culprit.node != place.node) {
    return;
  }
  if (place.role == culprit.role && number == plan->block) {
    lock_in_turn(place, plan->other, number);
  } else if (place.role == plan->other && number == plan->block + 1) {
    lock_in_turn(place, culprit.role, number);
  }
}

/* The reader has its lock before the block comes that the writer never hands on. */
static void maybe_deadlock_across(struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  const uint32_t node = plan->core / ROLES;
  const int is_writer = place.core == core_at(node, WRITER) && number == plan->block;
  const int is_reader = place.core == core_at(node + 1, READER) && number == plan->block - 1;
  if (plan->fault != FAULT_DEADLOCK_NODES || (!is_writer && !is_reader)) {
    return;
  }
  const uint32_t other = is_writer ? READER : WRITER;
  const struct place there = {place.core, is_writer ? node + 1 : node, place.role};
  lock_acquire(place, place.role);
  meet_at(&node_memories[node], place, core_at(there.node, other), other);
  if (is_writer) {
    tell_planted(place, number);
  }
  lock_acquire(there, other);
}

__attribute__((noinline)) static void loop_for_ever(void) {
  for (volatile uint32_t rounds = 0;; rounds++) {
  }
}

void push_block(struct place place, uint32_t cb, uint32_t number) {
  if (is_planned(FAULT_MISSING_PUSH, place, number)) {
    tell_planted(place, number);
    return;
  }
  cb_push_back(place, cb);
}

static void trip_assert(void) {
  const struct plan* const plan = the_plan();
  if (plan->fault == FAULT_ASSERT) {
    HANGSCOPE_ASSERT(plan->fault != FAULT_ASSERT, "the block is in order");
  } else {
    HANGSCOPE_ASSERT_ARGUMENT(plan->value < CB_BLOCKS, "there is such a buffer", plan->value);
  }
}

/* QEMU's virt machine has nothing there; of tiles it is memory. */
__attribute__((noinline)) static void write_to_null(void) {
  __asm__ volatile("sw zero, 0(zero)" ::: "memory");
}

/* Down to all but `bytes`; and looks what that left. */
__attribute__((noinline)) static void use_stack(struct place place, uint32_t bytes) {
  char* const lowest_used = &hart_stacks[place.core << STACK_SHIFT] + bytes;
  volatile char* const room = __builtin_alloca((uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest_used - 128);
  room[0] = 1;
  *(volatile uint32_t*)(void*)lowest_used = 1; /* below what it asked for by a few bytes; nothing runs here meanwhile */
}

static void corrupt_mailbox(struct place place) {
  const struct plan* const plan = the_plan();
  ((volatile uint32_t*)(void*)&hangscope_scope.mailboxes[place.core])[plan->other] = plan->value;
}

static void fail_now(struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  tell_planted(place, number);
  switch (plan->fault) {
    case FAULT_BUS:
      spoil_bus(place);
      break;
    case FAULT_ASSERT:
    case FAULT_ARGUMENT:
      trip_assert();
      break;
    case FAULT_STACK:
      use_stack(place, plan->value);
      hangscope_stack_look();
      break;
    case FAULT_GUARD:
      memory_of(place)->own.guarded = plan->value;
      break;
    case FAULT_NULL_WRITE:
      write_to_null();
      break;
    case FAULT_PENDING:
      hangscope_kernel_ends_with(0, 0, 0, plan->value);
      break;
    case FAULT_ENDLESS:
      loop_for_ever();
      break;
    case FAULT_CORRUPT:
      corrupt_mailbox(place);
      break;
    default:
      break;
  }
}

void maybe_fail(struct place place, uint32_t number) {
  const struct plan* const plan = the_plan();
  HANGSCOPE_DEBUG((uint32_t)place.role << 24 | number);
  maybe_deadlock(place, number);
  maybe_deadlock_across(place, number);
  if (is_planned_from(FAULT_SLOW, place, number)) {
    work_until(place.core, platform_mtime() + platform_ms_to_ticks(plan->value));
  }
  if (plan->fault > FAULT_HANDOVER && plan->fault != FAULT_DEADLOCK_NODES && is_planned((enum fault)plan->fault, place, number)) {
    fail_now(place, number);
  }
}

void maybe_fail_at_end(struct place place) {
  const struct plan* const plan = the_plan();
  const uint32_t past = plan->blocks + 1;
  const struct place culprit = place_of(plan->core);
  if (plan->block != past) {
    return;
  }
  if (plan->core == place.core && plan->fault == FAULT_CORRUPT) {
    tell_planted(place, past);
    corrupt_mailbox(place);
  }
  if (plan->fault == FAULT_KEPT_LOCK && place.core == plan->core) {
    lock_acquire(place, place.role);
    tell_planted(place, past);
    (void)__atomic_fetch_or(&memory_of(place)->own.at_rendezvous, 1u << place.role, __ATOMIC_RELEASE);
    wake(core_at(place.node, plan->other));
  }
  if (plan->fault == FAULT_KEPT_LOCK && culprit.node == place.node && place.role == plan->other) {
    meet(place, culprit.role);
    lock_acquire(place, culprit.role);
    lock_release(place, culprit.role);
  }
}

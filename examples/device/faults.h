/* What goes wrong, where and when: as the eight words at 0x83f00000 say, which QEMU's -device loader
 * leaves there. tests/system/device_target.py reads the numbers from this file. */
#ifndef EXAMPLES_DEVICE_FAULTS_H
#define EXAMPLES_DEVICE_FAULTS_H

#include "device.h"

enum fault {
  FAULT_NONE = 0,
  FAULT_DEADLOCK2 = 1,     /* role and `other` each have a lock and want the other's */
  FAULT_DEADLOCK5 = 2,     /* the writer keeps the credits: all five wait in a circle */
  FAULT_MISSING_PUSH = 3,  /* one block is filled and not pushed */
  FAULT_LOST_WAKEUP = 4,   /* blocks are pushed and nobody is woken */
  FAULT_SLOW = 5,          /* control: each block takes `value` ms */
  FAULT_HANDOVER = 6,      /* control: `role` and `other` hand a ball to and fro, `value` times, in both orders */
  FAULT_BUS = 7,           /* `value` is the enum hangscope_bus_reason */
  FAULT_STACK = 8,         /* all of the stack but `value` bytes is used */
  FAULT_NULL_WRITE = 9,    /* a store to address 0: a trap; on tiles, unnoticed until the guard there is looked at */
  FAULT_GUARD = 10,        /* the guard word is written to */
  FAULT_ASSERT = 11,
  FAULT_ARGUMENT = 12,     /* `value` where less than CB_BLOCKS is possible */
  FAULT_PENDING = 13,      /* the kernel ends with `value` transactions under way */
  FAULT_ENDLESS = 14,      /* a loop without a waypoint */
  FAULT_CORRUPT = 15,      /* word number `other` of the core's mailbox becomes `value` */
  FAULT_KEPT_LOCK = 16,    /* the core ends with its lock, which `other` then wants */
  FAULT_DEADLOCK_NODES = 17, /* the writer and the reader of the next node each have a lock and want the other's */
};

#define PLAN_AT 0x83f00000u /* in memory; what starts the device puts it there */
#define EVERY_CORE 0xffffffffu
struct plan {
  uint32_t fault; /* enum fault */
  uint32_t core;  /* whose; EVERY_CORE: of an assert, all cores', one after the other */
  uint32_t other; /* a role, or a word */
  uint32_t value;
  uint32_t block;   /* the number of the block at which it happens */
  uint32_t blocks;  /* how many there are; 0: no end */
  uint32_t pace_us; /* at most one block in so many */
  uint32_t flags;   /* enum plan_flag */
};
enum plan_flag {
  PLAN_POWER_OFF = 1, /* when all is done */
};

const struct plan* the_plan(void);

/* Whether `fault` is to happen at this core and block. */
int is_planned(enum fault fault, struct place place, uint32_t number);
/* From this block on. */
int is_planned_from(enum fault fault, struct place place, uint32_t number);

/* Says on the console what was done wrong: at the time and by the core that does it. */
void tell_planted(struct place place, uint32_t number);

/* What goes wrong in the middle of a role's round, if anything does. */
void maybe_fail(struct place place, uint32_t number);

/* The same when its last block is done: `block` is then one more than there are. */
void maybe_fail_at_end(struct place place);

/* Pushes it to the buffer, unless that is to be forgotten. */
void push_block(struct place place, uint32_t cb, uint32_t number);

/* A transaction that is wrong for the reason that is planned: bus_faults.c. */
void spoil_bus(struct place place);

/* What the two cores of FAULT_HANDOVER do: handover.c. */
void run_handover(struct place place);

#endif

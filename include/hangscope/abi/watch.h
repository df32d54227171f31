/* What a watcher looks at: the state of each core now, as the core itself says it. C11 and C++20.
 *
 * Of the scope (abi/scope.h), where header.mailboxes_at is not 0:
 *
 *   watch_at       watch           72 bytes         what there is, and where
 *   nodes_at       node records    32 bytes each    places whose cores share memory
 *   mailboxes_at   mailboxes       64 bytes each    one per core, contiguous: what a poll reads
 *   claims_at      claims          one row per core, then one per task record: what it holds and
 *                                  provides
 *   details_at     details         one per core: its fault, delays, stack, part of the debug ring
 *   frames_at      frames          one per core, then one per task record: where its wait began
 *
 * Each has one writer, its core, but for words marked (h), which a host or another core writes, and
 * (n), which the cores of a node write with atomic instructions. */
#ifndef HANGSCOPE_ABI_WATCH_H
#define HANGSCOPE_ABI_WATCH_H

#include "hangscope/abi/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a program was built with; and of these, what is switched on. Waypoints are single stores,
 * less than a look at a switch: a program writes them even when they are switched off, and a host
 * does not look at them then. */
enum hangscope_watch_feature {
  HANGSCOPE_WATCH_WAYPOINTS = 1u << 0, /* and heartbeat, kernel, launch state */
  HANGSCOPE_WATCH_WAITS = 1u << 1,
  HANGSCOPE_WATCH_ASSERTS = 1u << 2,
  HANGSCOPE_WATCH_PAUSES = 1u << 3,
  HANGSCOPE_WATCH_DEBUG = 1u << 4,
  HANGSCOPE_WATCH_DELAYS = 1u << 5,
  HANGSCOPE_WATCH_BUS = 1u << 6,
  HANGSCOPE_WATCH_STACKS = 1u << 7,
  HANGSCOPE_WATCH_GUARDS = 1u << 8,
  HANGSCOPE_WATCH_FEATURES = (1u << 9) - 1,
};

struct hangscope_watch {
  /* FNV-1a of bytes 4 to HANGSCOPE_WATCH_CHECKED_BYTES - 1; written last, 0 before */
  uint32_t check;
  uint32_t watch_bytes; /* sizeof (struct hangscope_watch) */
  uint32_t features;    /* built in: enum hangscope_watch_feature */
  uint32_t node_count;
  uint32_t nodes_at;
  uint32_t node_stride;
  uint32_t details_at; /* 0: none */
  uint32_t detail_stride;
  uint32_t claims_at; /* 0: none */
  uint32_t claim_stride;
  uint16_t hold_slots; /* of each row of claims, these come first */
  uint16_t provide_slots;
  /* values that each core's part of its node's debug ring keeps; 0: none */
  uint32_t debug_slots;
  /* where the ELF's address 0 lies: low half, high half; 0: where it says */
  uint32_t program_at[2];
  uint32_t switches;       /* (h) features that are on */
  uint32_t switch_changes; /* (h) how often a host changed something: settings, switches */
  /* Where watch_bytes is 72 or more; not covered by `check`. */
  uint32_t frames_at; /* 0: none */
  uint32_t frame_stride;
};
#define HANGSCOPE_WATCH_LEAST_BYTES 64u /* before there were frames */
#define HANGSCOPE_WATCH_CHECKED_BYTES 56u

/* What a core does now. A word that can only have some values is reported as corrupt when it has
 * another one. */
struct hangscope_mailbox {
  /* up to four characters, the first in the low byte, then zeros; 0: none yet */
  uint32_t waypoint;
  uint32_t heartbeat; /* grows with each round of the core's main loop */
  /* Odd while the core waits. Two looks that find the same odd number saw the same wait. The three
   * words behind it are written while it is even, and published by the store that makes it odd. */
  uint32_t wait_sequence;
  uint32_t wait_resource; /* any number but 0 that is the same for all who use it */
  uint32_t wait_kind;     /* enum hangscope_resource_kind, or 0: the host finds out */
  uint32_t wait_since;    /* time when it began, low half */
  uint32_t wait_epoch;    /* quarter-wraps then */
  uint32_t kernel;        /* id of the program that the core runs; 0: none, or the only one */
  uint32_t launch;        /* enum hangscope_launch */
  uint32_t pause;         /* (h) 1: pause at the next pause point */
  uint32_t resumes;       /* (h) a change lets a paused core go on */
  uint32_t paused;        /* enum hangscope_paused */
  /* enum hangscope_fault_type; written behind the details, publishes them */
  uint32_t fault;
  uint32_t stack_free; /* bytes of the stack that were never used; HANGSCOPE_NOT_KNOWN */
  uint16_t node;
  uint16_t role;
  uint32_t guard; /* HANGSCOPE_MAILBOX_GUARD ^ core */
};
#define HANGSCOPE_MAILBOX_GUARD 0x686d6278u /* as bytes, little-endian: "xbmh" */
#define HANGSCOPE_NOT_KNOWN 0xffffffffu

enum hangscope_launch {
  HANGSCOPE_LAUNCH_NONE = 0, /* it does not say */
  HANGSCOPE_LAUNCH_IDLE = 1, /* has nothing to do, by design */
  HANGSCOPE_LAUNCH_RUNNING = 2,
  HANGSCOPE_LAUNCH_DONE = 3,  /* its program ended */
  HANGSCOPE_LAUNCH_ENDED = 4, /* the core itself is no more: a thread that returned */
};

/* To pause a core: pause = 1. To resume it: pause = 0, then resumes + 1, in this order; both also
 * where its own code paused it. A core that pauses looks at `resumes` first, and at `pause` only
 * then, so it misses none. Resuming a core that does not pause does nothing but end what `pause`
 * asks for. */
enum hangscope_paused {
  HANGSCOPE_PAUSED_NOT = 0,
  HANGSCOPE_PAUSED_BY_CODE = 1,
  HANGSCOPE_PAUSED_BY_HOST = 2,
};

enum hangscope_fault_type {
  HANGSCOPE_FAULT_NONE = 0,
  HANGSCOPE_FAULT_ASSERT = 1,   /* tripped */
  HANGSCOPE_FAULT_ARGUMENT = 2, /* argument out of bounds */
  HANGSCOPE_FAULT_HARDWARE = 3, /* cause, pc, value */
  /* the kernel ended with pending transactions: length says how many, value of which kind */
  HANGSCOPE_FAULT_PENDING = 4,
  HANGSCOPE_FAULT_BUS = 5,   /* a bus access that was not issued */
  HANGSCOPE_FAULT_STACK = 6, /* no byte of the stack is left */
  HANGSCOPE_FAULT_GUARD = 7, /* a guard word changed */
};

enum hangscope_bus_kind {
  HANGSCOPE_BUS_READ = 1,
  HANGSCOPE_BUS_WRITE = 2,
  HANGSCOPE_BUS_ATOMIC = 3,
  HANGSCOPE_BUS_MULTICAST = 4,
  HANGSCOPE_BUS_INLINE_WRITE = 5,
};

enum hangscope_bus_reason {
  HANGSCOPE_BUS_FINE = 0,
  HANGSCOPE_BUS_ZERO_LENGTH = 1,
  HANGSCOPE_BUS_UNDERFLOW = 2,          /* below every region of the destination */
  HANGSCOPE_BUS_OVERFLOW = 3,           /* begins in a region, ends behind it; or behind all */
  HANGSCOPE_BUS_NO_REGION = 4,          /* between regions */
  HANGSCOPE_BUS_BAD_COORDINATES = 5,    /* no such node */
  HANGSCOPE_BUS_MULTICAST_RANGE = 6,    /* a rectangle over the edge, or turned round */
  HANGSCOPE_BUS_MULTICAST_TARGET = 7,   /* a node in it cannot be a multicast's destination */
  HANGSCOPE_BUS_MISALIGNED = 8,         /* an address is not aligned as its region wants */
  HANGSCOPE_BUS_ALIGNMENT_MISMATCH = 9, /* source and destination are not aligned to each other */
  HANGSCOPE_BUS_MIXED_COORDINATES = 10, /* physical and virtual in one transaction */
  HANGSCOPE_BUS_INLINE_UNSUPPORTED = 11,
  HANGSCOPE_BUS_PROTECTED = 12,      /* the scope itself, or another protected range */
  HANGSCOPE_BUS_LINKED = 13,         /* another transaction while a linked one is open */
  HANGSCOPE_BUS_LOCAL_OVERFLOW = 14, /* the local end is not in local memory */
  HANGSCOPE_BUS_BUFFER_BOUNDS = 15,  /* the local end leaves the circular buffer it is in */
  HANGSCOPE_BUS_RIGHTS = 16,         /* the region is not to be read, or written, so */
  HANGSCOPE_BUS_OWNER = 17,          /* the region belongs to another node */
  HANGSCOPE_BUS_REASONS = 18,
};

/* The first fault of a core; `hangscope_mailbox.fault` publishes it. What a type does not use is 0.
 */
struct hangscope_fault {
  uint32_t type; /* as in the mailbox */
  /* bus: enum hangscope_bus_reason; hardware: the cause, interrupt bit and all */
  uint32_t reason;
  uint32_t line; /* assert: in the source; with pc it finds the text in the catalog */
  /* bus: enum hangscope_bus_kind; guard: which, or HANGSCOPE_GUARD_NULL; pending: 1 where value
   * says which */
  uint32_t kind;
  uint32_t pc[2]; /* low half, high half */
  /* bus: at the destination (read: source) node; guard: of the word; stack: its lowest */
  uint32_t address[2];
  uint32_t local[2]; /* bus: at this end */
  uint32_t length;   /* bus: bytes; pending: transactions */
  /* bus: x | y << 8 of the node, the far corner of a multicast << 16 and << 24 */
  uint32_t where;
  /* hardware: trap value; guard: what was found; argument: what it was; pending, where kind is 1:
   * reads | writes << 16, atomics | posted writes << 16, 65535 of one at most */
  uint32_t value[2];
  uint32_t time; /* low half */
  uint32_t epoch;
};

#define HANGSCOPE_GUARD_NULL 0xffffu /* address 0, where that is memory */

struct hangscope_debug_value {
  uint32_t order; /* of the node's values, from 1; 0: none, or being written */
  uint32_t value;
};

struct hangscope_detail {
  struct hangscope_fault fault;
  uint32_t faults; /* how many there were; the first is kept */
  /* (h) before reads, writes, atomics: rounds of a loop; with HANGSCOPE_DELAY_RANDOM, 0 to so many
   */
  uint32_t delays[3];
  uint32_t delay_seed;     /* (h) */
  uint32_t delays_done[3]; /* how many were */
  uint32_t delay_state;    /* of the random numbers */
  uint32_t delay_seeded;   /* the seed that state began with */
  uint32_t stack_bytes;    /* of the stack that is painted; 0: none is */
  uint32_t stack_lowest;   /* the least that was ever free; HANGSCOPE_NOT_KNOWN */
  uint32_t stack_kernel;   /* the kernel that it was with */
  uint32_t debug_next;     /* how many values this core began to write */
  uint32_t debug_refused;  /* of these, given up because an unfinished one was in their place */
  /* linked transactions that are open: x | y << 7 | x2 << 14 | y2 << 21, kind << 28; 0: none */
  uint32_t link;
  /* followed by debug_slots struct hangscope_debug_value, value n in slot n % debug_slots */
};
#define HANGSCOPE_DELAY_RANDOM 0x80000000u

struct hangscope_node {
  uint16_t x;
  uint16_t y;
  uint32_t first_fault; /* (n) core + 1 whose fault came first; 0: none */
  uint32_t debug_order; /* (n) how many values its cores wrote */
  uint32_t reserved[5];
};

/* The registers of a core or task at the place where its wait began, from which a host unwinds its
 * stack. A 32-bit target writes the low halves; the high ones are 0 from the start.
 *
 *  0      4      8      12     16     20     24     28
 * +------+------+------+------+------+------+------+------+
 * | pc          | ra          | sp          | fp          |
 * +------+------+------+------+------+------+------+------+
 *
 * It has no sequence of its own. A core writes it while its wait_sequence is even, behind the store
 * that made it so, and before the store that makes it odd: a host that reads the same odd
 * wait_sequence before and after has the frame of that wait. A task's is written while the
 * sequence of its record is odd: it is that of the wait where the host reads the same even sequence
 * before and after, and the state is WAITING. What lies on the stack from sp on is that wait's in
 * the same way, as long as the function at pc has not returned. */
struct hangscope_frame {
  uint64_t pc; /* 0: not known: the task did not run where the kernel said that it waits */
  uint64_t ra; /* the link register, which need not hold a return address any more */
  uint64_t sp;
  uint64_t fp; /* s0: the frame pointer, where the program has one */
};

/* What a program begins with, where it was built with HANGSCOPE_START_SETTINGS: initialised data,
 * found by the ELF symbol `hangscope_start`. Whoever loads the program, or has it stopped before
 * its first instruction, may write other values; hangscope_init takes them. */
struct hangscope_start {
  uint32_t magic;    /* HANGSCOPE_START_MAGIC */
  uint32_t switches; /* of enum hangscope_watch_feature: which are on */
  uint32_t core_count;
  uint32_t reserved;
  /* followed by core_count times: delays before reads, writes, atomics, and their seed, as in
   * struct hangscope_detail */
};
#define HANGSCOPE_START_MAGIC 0x74737368u /* as bytes, little-endian: "hsst" */

HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_watch) == 72, "the watch is 72 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_frame) == 32, "a frame is 32 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_mailbox) == 64, "a mailbox is 64 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_fault) == 64, "a fault is 64 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_detail) == 128,
                        "a core's details are 128 bytes and its debug values");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_node) == 32, "a node record is 32 bytes");

/* Row of claims: hold_slots resources that are held, provide_slots that are provided, then how many
 * did not fit; 0: an empty slot. A 32-bit word each, padded to 8 bytes. */

#ifdef __cplusplus
}
#endif

#endif

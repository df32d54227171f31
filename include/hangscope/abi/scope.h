/* The scope: one contiguous, position-independent block of memory inside a target that says
 * what the target did last. A host finds it by the ELF symbol `hangscope_scope`, as a file, or
 * by scanning memory for the magic; it needs nothing else to read it. C11 and C++20.
 *
 *   offset 0       header           192 bytes   what there is, and where
 *   tasks_at       task records     32 bytes each   what each task of an OS waits for
 *   watch_at ...   the state of each core now: abi/watch.h
 *   rings_at       core 0's ring    128 bytes of control, then ring_capacity records
 *                  core 1's ring    ring_stride bytes later, and so on
 *
 * All numbers are of the target's byte order, which the magic tells; all offsets count bytes
 * from the scope's first one. docs/format.md says how a host reads all this.
 *
 * Minor versions add fields where there was padding (zero), or blocks with an offset of their
 * own in the header; a reader accepts any minor version. A new major version breaks readers. */
#ifndef HANGSCOPE_ABI_SCOPE_H
#define HANGSCOPE_ABI_SCOPE_H

#include "hangscope/abi/record.h"

#ifdef __cplusplus
extern "C" {
#define HANGSCOPE_STATIC_ASSERT(condition, what) static_assert(condition, what)
#else
#define HANGSCOPE_STATIC_ASSERT(condition, what) _Static_assert(condition, what)
#endif

/* As bytes, little-endian: "hangscop"; big-endian: "gnahpocs". */
#define HANGSCOPE_MAGIC0 0x676e6168u
#define HANGSCOPE_MAGIC1 0x706f6373u
#define HANGSCOPE_ABI_MAJOR 1
#define HANGSCOPE_ABI_MINOR 1 /* 1: abi/watch.h */

enum hangscope_features {
  HANGSCOPE_FEATURE_NESTING = 1u << 0, /* writers may interrupt each other */
  HANGSCOPE_FEATURE_MASK = 1u << 1,    /* the class mask is obeyed */
  HANGSCOPE_FEATURE_NOINIT = 1u << 2,  /* the scope survives a reset */
  HANGSCOPE_FEATURE_THREADS = 1u << 3, /* cores are threads of a process */
  /* no atomic instruction orders cores: a node's first fault is that of the earliest time */
  HANGSCOPE_FEATURE_NO_ATOMICS = 1u << 4,
};

enum hangscope_clock {
  HANGSCOPE_CLOCK_CYCLES = 1, /* of a core, its own origin */
  HANGSCOPE_CLOCK_TICKS = 2,  /* of the OS: many records share one */
  HANGSCOPE_CLOCK_SHARED = 3, /* one counter for all cores */
};

/*  0      4      8      12     16     20     24     28
 * +------+------+------+------+------+------+------+------+
 * |magic0|magic1|mj  mn|hb w r|bytes |featrs|cores |capac.|   hb header_bytes, w word_bytes,
 * |rings |stride|mailbx|stride|tasks |   at |stride|clock |   r record_bytes
 * |clock_hz     |boots | pid  |build_id                   |
 * |  ..  |      |sync_time    |sync_ns      |last_time    |
 * |last_ns      |lost  |seq   |watch |unkn. | res..     ..|
 * |..                                              |check |
 * +------+------+------+------+------+------+------+------+  */
struct hangscope_header {
  uint32_t magic[2];
  uint16_t major;
  uint16_t minor;
  uint16_t header_bytes; /* sizeof (struct hangscope_header) */
  uint8_t word_bytes;    /* 4 or 8: of the target, and which of the two forms a ring's head has */
  uint8_t record_bytes;  /* 16, 24, 32, ... 64 */
  uint32_t scope_bytes;  /* all of it */
  uint32_t features;     /* enum hangscope_features */
  uint32_t core_count;
  uint32_t ring_capacity; /* records in each ring; a power of two, 8 to 65536 */
  uint32_t rings_at;
  uint32_t ring_stride;
  uint32_t mailboxes_at; /* 0: none, and no watch_at either */
  uint32_t mailbox_stride;
  uint32_t task_count; /* of task records; 0: none */
  uint32_t tasks_at;
  uint32_t task_stride;
  uint32_t clock_kind;  /* enum hangscope_clock */
  uint64_t clock_hz;    /* 0: not known; sync_ and last_ tell it where there are any */
  uint32_t boots;       /* starts of the target with this memory, this one included */
  uint32_t pid;         /* of a process; 0: none */
  uint8_t build_id[20]; /* of the target's ELF; zero: not known */
  uint32_t reserved0;
  /* Two moments at which somebody read both clocks: the record's and CLOCK_MONOTONIC. */
  uint64_t sync_time;
  uint64_t sync_ns;
  uint64_t last_time;     /* changes; not covered by `check` */
  uint64_t last_ns;       /* changes; not covered by `check` */
  uint32_t lost_threads;  /* that found no ring; changes; not covered by `check` */
  uint32_t last_sequence; /* odd while last_ changes; changes; not covered by `check` */
  /* struct hangscope_watch, which has a check of its own; not covered by `check` */
  uint32_t watch_at;
  /* words of $HANGSCOPE_FEATURES that mean nothing; not covered by `check` */
  uint32_t unknown_settings;
  /* 1: the process ends by itself: exit, or a return from main; not covered by `check` */
  uint32_t exiting;
  /* tasks that found no record; changes; not covered by `check` */
  uint32_t lost_tasks;
  /* Names that the target gave while it ran, struct hangscope_name each; 0: none. Not covered by
   * `check`, this and the three below. */
  uint32_t names_at;
  uint32_t name_count;
  uint32_t name_changes; /* odd while a name changes; changes */
  uint32_t lost_names;   /* that found no place; changes */
  uint32_t reserved[3];
  uint32_t check; /* HANGSCOPE_CHECK of the first HANGSCOPE_CHECKED_BYTES; written last, 0 before */
};

/* FNV-1a, 32 bits, over the header up to what changes while the target runs. */
#define HANGSCOPE_CHECKED_BYTES 120u
#define HANGSCOPE_CHECK_SEED 0x811c9dc5u
#define HANGSCOPE_CHECK_PRIME 0x01000193u

/* What a core's ring is about, in the order of its bytes; the records follow. A word marked (w)
 * is written by the core, (h) by whoever controls it: the target's own code, or a host. */
struct hangscope_ring {
  /* (w) Where the next record goes, as a ticket (abi/record.h). word_bytes 8: one 64-bit ticket.
   * word_bytes 4: head[0] is the ticket, head[1] counts the turns of the ring that began. */
  uint32_t head[2];
  uint32_t mask; /* (h) classes that are recorded; 0: frozen */
  /* (h) classes that are still recorded while `remaining` lasts; 0: not armed */
  uint32_t armed;
  uint32_t remaining; /* (w) records to come before the ring freezes, as a signed number */
  uint32_t refused;   /* (w) records given up because an unfinished one was in their place */
  uint32_t refused_tickets[8]; /* (w) of the latest of them, | 1; entry `count before` % 8 */
  uint32_t epoch;              /* (w) quarter-wraps of the clock at the latest look: time >> 30 */
  uint32_t ticks;              /* (w) looks at the clock by hangscope_tick; 0: there are none */
  uint32_t anchor;             /* (w) mark of the newest anchor record; 0: none */
  uint32_t state;              /* (w) enum hangscope_ring_state */
  /* (h) sequence number of the first record after the latest clear: low, high */
  uint32_t base[2];
  uint32_t boot[2]; /* (w) the same of the latest start: what is before it is of an earlier one */
  uint32_t owner;   /* (w) hart id, thread id */
  uint32_t generation; /* (w) how many owners the ring has had */
  uint32_t last_task;  /* (w) task that runs, where the port says so; 0: not known */
  uint32_t reserved[3];
  char name[16]; /* (w) of the owner, NUL-padded */
};

enum hangscope_ring_state {
  HANGSCOPE_RING_FREE = 0,
  HANGSCOPE_RING_CLAIMED = 1, /* by a thread that fills in who it is */
  HANGSCOPE_RING_LIVE = 2,
};

/* What a task waits for, written by the kernel on the task's blocking path. `sequence` is odd while
 * the record changes: a reader takes it when it is even and the same before and after. Two
 * reads with the same sequence are the same wait. */
struct hangscope_task {
  uint32_t sequence;
  uint32_t task;        /* id, full width */
  uint32_t state;       /* enum hangscope_task_state */
  uint32_t resource;    /* what it waits for: any number that is the same for all who use it */
  uint32_t kind;        /* enum hangscope_resource_kind */
  uint32_t holder;      /* task that has it, where the kernel knows; HANGSCOPE_NO_TASK otherwise */
  uint32_t since;       /* time when it began to wait, or became ready; low half */
  uint32_t since_epoch; /* quarter-wraps then */
};

#define HANGSCOPE_NO_TASK 0xffffffffu

enum hangscope_task_state {
  HANGSCOPE_TASK_NONE = 0, /* nobody uses this record */
  HANGSCOPE_TASK_READY = 1,
  HANGSCOPE_TASK_WAITING = 2,
};

enum hangscope_resource_kind {
  HANGSCOPE_RESOURCE_EXCLUSIVE = 1, /* a lock: has a holder */
  HANGSCOPE_RESOURCE_CHANNEL = 2,   /* a semaphore, a queue, a pipe: has providers */
  HANGSCOPE_RESOURCE_TIME = 3,      /* a delay: ends by itself */
  HANGSCOPE_RESOURCE_SUSPENDED = 4, /* until another task resumes it */
  HANGSCOPE_RESOURCE_OUTSIDE = 5,   /* a device, a host, a user: it may take for ever, by design */
};

/* A name that is not known when the program is built: of a task, of a queue. A reader takes all of
 * them when name_changes is even and the same before and after.
 *
 *        31 30        16 15          0
 *       +--+------------+-------------+
 *   +0  |r |     0      |    kind     |  0: nobody uses this one; r: what it names is gone
 *       +--+------------+-------------+
 *   +4  |             id              |
 *       +-----------------------------+
 *   +8  | text, 24 bytes, NUL-padded  |
 *       +-----------------------------+
 */
struct hangscope_name {
  uint32_t kind; /* as in the catalog (abi/catalog.h) */
  uint32_t id;
  char text[24];
};
#define HANGSCOPE_NAME_RETIRED 0x80000000u

HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_name) == 32, "a name is 32 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_header) == 192, "the header is 192 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_ring) == 128, "a ring's control is 128 bytes");
HANGSCOPE_STATIC_ASSERT(sizeof(struct hangscope_task) == 32, "a task record is 32 bytes");

#ifdef __cplusplus
}
#endif

#endif

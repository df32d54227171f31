/* What a build chooses. Each may be given on the compiler's command line, the same for every file
 * of the program; the scope's header tells the host. */
#ifndef HANGSCOPE_CONFIG_H
#define HANGSCOPE_CONFIG_H

#include "hangscope/abi/record.h"
#include "hangscope/abi/watch.h"

/* 0: every call is an empty inline function, and not one allocated byte is left. */
#ifndef HANGSCOPE_ENABLE
#define HANGSCOPE_ENABLE 1
#endif

/* How many cores record, each into a ring of its own: harts, or threads of a process. */
#ifndef HANGSCOPE_CORES
#if defined(__linux__) && !defined(HANGSCOPE_PORT)
#define HANGSCOPE_CORES 64
#else
#define HANGSCOPE_CORES 1
#endif
#endif

/* Records in each ring; a power of two. */
#ifndef HANGSCOPE_RING_CAPACITY
#if defined(__linux__) && !defined(HANGSCOPE_PORT)
#define HANGSCOPE_RING_CAPACITY 1024
#else
#define HANGSCOPE_RING_CAPACITY 256
#endif
#endif

/* 32-bit parameters in each record: 2, 4, ... 14. A record takes 8 bytes and 4 for each. */
#ifndef HANGSCOPE_PARAMETERS
#define HANGSCOPE_PARAMETERS 2
#endif

/* 1: writers of one core may interrupt each other (interrupts, signals, preempted tasks). */
#ifndef HANGSCOPE_NESTING
#define HANGSCOPE_NESTING 1
#endif

/* 1: classes of events can be switched off, and recording frozen, while the target runs. */
#ifndef HANGSCOPE_MASK
#define HANGSCOPE_MASK 1
#endif

/* 1: each change of a waypoint, each begin and end of a wait and of a bus transaction is a record,
 * too, and HANGSCOPE_COUNT (target/history.h) does something. */
#ifndef HANGSCOPE_HISTORY
#define HANGSCOPE_HISTORY 0
#endif

/* The classes that are recorded from the start. */
#ifndef HANGSCOPE_FIRST_MASK
#if HANGSCOPE_HISTORY
#define HANGSCOPE_FIRST_MASK 0xffffffffu
#else
#define HANGSCOPE_FIRST_MASK 0x7fffffffu
#endif
#endif

/* Tasks of an OS that get a record of what they wait for. */
#ifndef HANGSCOPE_TASKS
#define HANGSCOPE_TASKS 0
#endif

/* Names that the target gives while it runs (target/names.h): of tasks, queues, locks. */
#ifndef HANGSCOPE_NAME_SLOTS
#define HANGSCOPE_NAME_SLOTS (2 * (HANGSCOPE_TASKS))
#endif

/* 1: the scope lies in the section .noinit, which the startup code leaves alone, and survives a
 * reset. */
#ifndef HANGSCOPE_NOINIT
#define HANGSCOPE_NOINIT 0
#endif

/* 1: what the catalog says of places in the code, and marks, are kept by --gc-sections wherever the
 * code is. Wants an assembler that knows section flag "o" (GNU binutils 2.35, of 2020). */
#ifndef HANGSCOPE_LINK_ORDER
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define HANGSCOPE_LINK_ORDER 1
#else
#define HANGSCOPE_LINK_ORDER 0
#endif
#endif

/* Where the ELF's address 0 lies, of a program that does not run where it was linked to. */
#ifndef HANGSCOPE_PROGRAM_AT
#define HANGSCOPE_PROGRAM_AT 0
#endif

/* What a watcher sees of each core (abi/watch.h): 1 or 0 for all of it, and for each part by
 * itself. */
#ifndef HANGSCOPE_WATCH
#define HANGSCOPE_WATCH 1
#endif
#ifndef HANGSCOPE_WAYPOINTS /* and heartbeat, kernel, launch state */
#define HANGSCOPE_WAYPOINTS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_WAITS
#define HANGSCOPE_WAITS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_WAIT_FRAMES /* a wait stores registers, where the port can (abi/watch.h) */
#define HANGSCOPE_WAIT_FRAMES HANGSCOPE_WAITS
#endif
#ifndef HANGSCOPE_ASSERTS
#define HANGSCOPE_ASSERTS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_PAUSES
#define HANGSCOPE_PAUSES HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_DEBUG_RING /* values that each core keeps; a power of two, or 0 */
#define HANGSCOPE_DEBUG_RING (HANGSCOPE_WATCH * 32)
#endif
#ifndef HANGSCOPE_DELAYS
#define HANGSCOPE_DELAYS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_BUS
#define HANGSCOPE_BUS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_START_SETTINGS /* what is on, and delayed, from the start (abi/watch.h) */
#define HANGSCOPE_START_SETTINGS 0
#endif
#ifndef HANGSCOPE_STACKS
#define HANGSCOPE_STACKS HANGSCOPE_WATCH
#endif
#ifndef HANGSCOPE_GUARDS /* words that are guarded, at most; 0: none */
#define HANGSCOPE_GUARDS (HANGSCOPE_WATCH * 4)
#endif

/* Of what is built in (abi/watch.h), what is switched on from the start. */
#ifndef HANGSCOPE_FIRST_FEATURES
#define HANGSCOPE_FIRST_FEATURES HANGSCOPE_WATCH_FEATURES
#endif

/* Nodes: places with coordinates, whose cores share memory. */
#ifndef HANGSCOPE_NODES
#define HANGSCOPE_NODES 1
#endif
/* Exclusive resources that a core or task can hold, and channels that it can provide, at a time. */
#ifndef HANGSCOPE_HOLD_SLOTS
#ifdef HANGSCOPE_HOLDS /* its former name, which goes with the next version */
#define HANGSCOPE_HOLD_SLOTS HANGSCOPE_HOLDS
#else
#define HANGSCOPE_HOLD_SLOTS 4
#endif
#endif
#ifndef HANGSCOPE_PROVIDE_SLOTS
#ifdef HANGSCOPE_PROVIDES_MOST /* likewise */
#define HANGSCOPE_PROVIDE_SLOTS HANGSCOPE_PROVIDES_MOST
#else
#define HANGSCOPE_PROVIDE_SLOTS 4
#endif
#endif
/* 1: what a feature does is in functions instead of in each place that uses it: smaller, slower. */
#ifndef HANGSCOPE_OUT_OF_LINE
#define HANGSCOPE_OUT_OF_LINE 0
#endif
/* 1: a core whose assert tripped, or that was about to do what its bus forbids, does nothing more.
 * 0: it is recorded, and the core goes on. */
#ifndef HANGSCOPE_HALT
#define HANGSCOPE_HALT 1
#endif

#define HANGSCOPE_WATCH_BUILT_IN                                        \
  (((HANGSCOPE_WAYPOINTS) != 0) * (uint32_t)HANGSCOPE_WATCH_WAYPOINTS | \
   ((HANGSCOPE_WAITS) != 0) * (uint32_t)HANGSCOPE_WATCH_WAITS |         \
   ((HANGSCOPE_ASSERTS) != 0) * (uint32_t)HANGSCOPE_WATCH_ASSERTS |     \
   ((HANGSCOPE_PAUSES) != 0) * (uint32_t)HANGSCOPE_WATCH_PAUSES |       \
   ((HANGSCOPE_DEBUG_RING) != 0) * (uint32_t)HANGSCOPE_WATCH_DEBUG |    \
   ((HANGSCOPE_DELAYS) != 0) * (uint32_t)HANGSCOPE_WATCH_DELAYS |       \
   ((HANGSCOPE_BUS) != 0) * (uint32_t)HANGSCOPE_WATCH_BUS |             \
   ((HANGSCOPE_STACKS) != 0) * (uint32_t)HANGSCOPE_WATCH_STACKS |       \
   ((HANGSCOPE_GUARDS) != 0) * (uint32_t)HANGSCOPE_WATCH_GUARDS)
/* Which blocks of the scope a build has. */
#define HANGSCOPE_HAS_FAULTS \
  (HANGSCOPE_ASSERTS || HANGSCOPE_BUS || HANGSCOPE_STACKS || HANGSCOPE_GUARDS != 0)
#define HANGSCOPE_HAS_DETAILS \
  (HANGSCOPE_HAS_FAULTS || HANGSCOPE_DEBUG_RING != 0 || HANGSCOPE_DELAYS)
#define HANGSCOPE_HAS_CLAIMS HANGSCOPE_WAITS
#define HANGSCOPE_HAS_MAILBOXES \
  (HANGSCOPE_HAS_DETAILS || HANGSCOPE_WAYPOINTS || HANGSCOPE_WAITS || HANGSCOPE_PAUSES)

#define HANGSCOPE_RECORD_WORDS (2 + HANGSCOPE_PARAMETERS)

HANGSCOPE_STATIC_ASSERT((HANGSCOPE_RING_CAPACITY & (HANGSCOPE_RING_CAPACITY - 1)) == 0 &&
                            HANGSCOPE_RING_CAPACITY >= HANGSCOPE_LEAST_CAPACITY &&
                            HANGSCOPE_RING_CAPACITY <= HANGSCOPE_MOST_CAPACITY,
                        "HANGSCOPE_RING_CAPACITY is a power of two from 8 to 65536");
HANGSCOPE_STATIC_ASSERT(HANGSCOPE_PARAMETERS % 2 == 0 && HANGSCOPE_PARAMETERS >= 2 &&
                            HANGSCOPE_PARAMETERS <= 14,
                        "HANGSCOPE_PARAMETERS is an even number from 2 to 14");
HANGSCOPE_STATIC_ASSERT(HANGSCOPE_CORES >= 1, "HANGSCOPE_CORES is at least 1");
HANGSCOPE_STATIC_ASSERT(HANGSCOPE_NODES >= 1, "HANGSCOPE_NODES is at least 1");
HANGSCOPE_STATIC_ASSERT((HANGSCOPE_DEBUG_RING & (HANGSCOPE_DEBUG_RING - 1)) == 0,
                        "HANGSCOPE_DEBUG_RING is a power of two, or 0");

/* Classes: an event is recorded while the mask has its class's bit. Bits 4 to
 * 30 are the user's: #define HANGSCOPE_CLASS_NET HANGSCOPE_CLASS(5). No suffixes: the assembler
 * reads these, too. */
#define HANGSCOPE_CLASS_TASK 1
#define HANGSCOPE_CLASS_SYNC 2
#define HANGSCOPE_CLASS_ISR 4
#define HANGSCOPE_CLASS_META 8
#define HANGSCOPE_CLASS_USER 16
#define HANGSCOPE_CLASS_HISTORY 0x80000000
#define HANGSCOPE_CLASS(n) (1 << (n))

#define HANGSCOPE_INLINE static inline __attribute__((always_inline, unused))
/* Around and in front of the functions of a hangscope that is switched off. `const` has GCC drop
 * their calls as it reads them (not what their arguments do): the call of an empty function is gone
 * after inlining, too, but by then other functions' copies have got other registers. GCC finds the
 * attribute odd where nothing is returned. */
#ifdef __clang__
#define HANGSCOPE_OFF HANGSCOPE_INLINE
#else
#define HANGSCOPE_OFF HANGSCOPE_INLINE __attribute__((const))
#endif
#define HANGSCOPE_OFF_BEGIN \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wattributes\"")
#define HANGSCOPE_OFF_END _Pragma("GCC diagnostic pop")
/* What a call becomes where it is switched off: it is compiled, so that its arguments are checked
 * and count as used, and nothing of it is done, not even what the arguments would do. */
#define HANGSCOPE_NOT_DONE(call) (0 ? call : (void)0)
#define HANGSCOPE_COLD __attribute__((cold, noinline))
/* Of what its callers may know nothing but its name: not even that it never returns. */
#ifdef __clang__
#define HANGSCOPE_OPAQUE __attribute__((cold, noinline, optnone))
#else
#define HANGSCOPE_OPAQUE __attribute__((cold, noipa))
#endif
/* In front of what HANGSCOPE_OUT_OF_LINE moves out of the code that uses it. Its body is then
 * compiled only where HANGSCOPE_DEFINE is defined. */
#if HANGSCOPE_OUT_OF_LINE
#define HANGSCOPE_CALLED __attribute__((noinline))
#else
#define HANGSCOPE_CALLED HANGSCOPE_INLINE
#endif
#define HANGSCOPE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#endif

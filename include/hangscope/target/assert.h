/* What must be so; what a trap handler says; what a kernel leaves behind.
 *
 *   HANGSCOPE_ASSERT(count < capacity, "count below capacity");
 *   HANGSCOPE_ASSERT_ARGUMENT(channel < 4, "channel exists", channel);
 *
 * The message, the file and the line lie in the catalog: the target's memory has no text. One that
 * trips records a fault (abi/watch.h) and halts its core softly; what that core holds stays as it
 * is, the others go on. With HANGSCOPE_HALT=0 it goes on after the record.
 *
 * The condition is evaluated only if asserts are built in and switched on: it may not do what the
 * program needs. A message is a literal without a quote, a backslash or a percent sign.
 *
 * Any context, handlers included. A thread that has no mailbox (target/linux.h) goes on: nobody
 * could tell why it stopped. */
#ifndef HANGSCOPE_TARGET_ASSERT_H
#define HANGSCOPE_TARGET_ASSERT_H

#include "hangscope/target/catalog.h"
#include "hangscope/target/fault.h"
#include "hangscope/target/waypoint.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_ASSERTS

HANGSCOPE_STATIC_ASSERT(HANGSCOPE_FAULT_ASSERT == 1 && HANGSCOPE_FAULT_ARGUMENT == 2,
                        "the assembler is given the numbers");
#define HANGSCOPE_ASSERT(condition, message) \
  HANGSCOPE_ASSERT_OF("1", HANGSCOPE_FAULT_ASSERT, condition, message, 0)
/* The argument is out of bounds. `value`, an integer, is what it was. */
#define HANGSCOPE_ASSERT_ARGUMENT(condition, message, value) \
  HANGSCOPE_ASSERT_OF("2", HANGSCOPE_FAULT_ARGUMENT, condition, message, value)

/* The host looks up the catalog's entry of that line that is the nearest before the call's return
 * address. What stands behind the call keeps a compiler from sharing one call among several
 * asserts, which would have one return address, and from making a jump of it. */
#define HANGSCOPE_ASSERT_OF(type_text, type, condition, message, value)                 \
  do {                                                                                  \
    if (hangscope_is_on(HANGSCOPE_WATCH_ASSERTS) && HANGSCOPE_UNLIKELY(!(condition))) { \
      const uint64_t hangscope_value = (uint64_t)(value);                               \
      HANGSCOPE_CATALOG_HERE(HANGSCOPE_CATALOG_ASSERT, "1b", type_text, "", message);   \
      hangscope_assert_fails(type, __LINE__, hangscope_value);                          \
      __asm__ volatile("/* assert " HANGSCOPE_TEXT(__COUNTER__) " */");                 \
    }                                                                                   \
  } while (0)

/* Only for the macros: the return address says where. */
void hangscope_assert_fails(enum hangscope_fault_type type, uint32_t line, uint64_t value);

/* For trap handlers: the hardware says that the program cannot go on. `cause` as the hardware gives
 * it, of which the lower 31 bits and the topmost are kept; `value`: the trap value, a bad address
 * for example. Returns only if asserts are switched off, or HANGSCOPE_HALT is 0. */
void hangscope_hardware_fault(uintptr_t cause, uintptr_t pc, uintptr_t value);

void hangscope_fault_is_pending(uint32_t transactions);
void hangscope_fault_is_pending_of(uint32_t reads, uint32_t writes, uint32_t atomics,
                                   uint32_t posted);

/* The core's kernel ended. `pending`: transactions that it began and did not wait for; if there are
 * any, that is a fault, and the core halts as for an assert. */
HANGSCOPE_INLINE void hangscope_kernel_ends(uint32_t pending) {
  if (HANGSCOPE_UNLIKELY(pending != 0)) {
    hangscope_fault_is_pending(pending);
  } else {
    hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
  }
}
/* The same where the kernel counts by kind: reads, writes that are acknowledged, atomics, and
 * posted writes, which nobody acknowledges, that have not left. */
HANGSCOPE_INLINE void hangscope_kernel_ends_with(uint32_t reads, uint32_t writes, uint32_t atomics,
                                                 uint32_t posted) {
  if (HANGSCOPE_UNLIKELY((reads | writes | atomics | posted) != 0)) {
    hangscope_fault_is_pending_of(reads, writes, atomics, posted);
  } else {
    hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
  }
}

#ifdef HANGSCOPE_DEFINE

/* Halts if that is chosen, and if somebody can see why. */
HANGSCOPE_INLINE void hangscope_fault_stops(enum hangscope_fault_type type,
                                            const struct hangscope_fault* found) {
  hangscope_fault_is(type, found);
#if HANGSCOPE_HALT
  if (hangscope_core_of(hangscope_this_mailbox()) < HANGSCOPE_CORES) hangscope_halt();
#endif
}

HANGSCOPE_OPAQUE void hangscope_assert_fails(enum hangscope_fault_type type, uint32_t line,
                                             uint64_t value) {
  const uint64_t pc = (uintptr_t)__builtin_return_address(0);
  struct hangscope_fault found;
  hangscope_no_fault(&found);
  found.line = line;
  found.pc[0] = (uint32_t)pc;
  found.pc[1] = (uint32_t)(pc >> 32);
  found.value[0] = (uint32_t)value;
  found.value[1] = (uint32_t)(value >> 32);
  hangscope_fault_stops(type, &found);
}

HANGSCOPE_COLD void hangscope_hardware_fault(uintptr_t cause, uintptr_t pc, uintptr_t value) {
  struct hangscope_fault found;
  if (!hangscope_is_on(HANGSCOPE_WATCH_ASSERTS)) return;
  hangscope_no_fault(&found);
  found.reason = ((uint32_t)cause & 0x7fffffffu) | (uint32_t)(cause >> (8 * sizeof cause - 1))
                                                       << 31;
  found.pc[0] = (uint32_t)pc;
  found.pc[1] = (uint32_t)((uint64_t)pc >> 32);
  found.value[0] = (uint32_t)value;
  found.value[1] = (uint32_t)((uint64_t)value >> 32);
  hangscope_fault_stops(HANGSCOPE_FAULT_HARDWARE, &found);
}

HANGSCOPE_COLD void hangscope_fault_is_pending(uint32_t transactions) {
  struct hangscope_fault found;
  if (hangscope_is_on(HANGSCOPE_WATCH_ASSERTS)) {
    hangscope_no_fault(&found);
    found.length = transactions;
    hangscope_fault_stops(HANGSCOPE_FAULT_PENDING, &found);
  }
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE); /* all the same */
}

HANGSCOPE_INLINE uint32_t hangscope_pending_pair(uint32_t low, uint32_t high) {
  return (low < 0xffffu ? low : 0xffffu) | (high < 0xffffu ? high : 0xffffu) << 16;
}
HANGSCOPE_COLD void hangscope_fault_is_pending_of(uint32_t reads, uint32_t writes, uint32_t atomics,
                                                  uint32_t posted) {
  struct hangscope_fault found;
  if (hangscope_is_on(HANGSCOPE_WATCH_ASSERTS)) {
    hangscope_no_fault(&found);
    found.length = reads + writes + atomics + posted;
    found.kind = 1;
    found.value[0] = hangscope_pending_pair(reads, writes);
    found.value[1] = hangscope_pending_pair(atomics, posted);
    hangscope_fault_stops(HANGSCOPE_FAULT_PENDING, &found);
  }
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}

#endif

#else

/* Not evaluated, and what is only used in there is used. */
#define HANGSCOPE_ASSERT(condition, message) ((void)sizeof(!(condition)))
#define HANGSCOPE_ASSERT_ARGUMENT(condition, message, value) \
  ((void)sizeof(!(condition)), (void)sizeof(value))
HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_hardware_fault(uintptr_t cause, uintptr_t pc, uintptr_t value) {
  (void)cause, (void)pc, (void)value;
}
HANGSCOPE_OFF_END
#define hangscope_hardware_fault(...) HANGSCOPE_NOT_DONE((hangscope_hardware_fault)(__VA_ARGS__))
HANGSCOPE_INLINE void hangscope_kernel_ends(uint32_t pending) {
  (void)pending;
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}
HANGSCOPE_INLINE void hangscope_kernel_ends_with(uint32_t reads, uint32_t writes, uint32_t atomics,
                                                 uint32_t posted) {
  (void)reads, (void)writes, (void)atomics, (void)posted;
  hangscope_launch_is(HANGSCOPE_LAUNCH_DONE);
}
#if !HANGSCOPE_ENABLE || !HANGSCOPE_WAYPOINTS
#define hangscope_kernel_ends(...) HANGSCOPE_NOT_DONE((hangscope_kernel_ends)(__VA_ARGS__))
#define hangscope_kernel_ends_with(...) \
  HANGSCOPE_NOT_DONE((hangscope_kernel_ends_with)(__VA_ARGS__))
#endif

#endif

#ifdef __cplusplus
}
#endif

#endif

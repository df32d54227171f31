/* The history of waypoints, waits and bus transactions: with HANGSCOPE_HISTORY=1 each change is a
 * record of the class HISTORY in the core's ring, beside the word in its mailbox.
 * abi/kernel_events.h lists the records; exports and reports draw slices from them.
 *
 *   HANGSCOPE_COUNT(resource, amount);          how much is in a buffer, a queue, a pool now
 *
 * `resource` is the number that HANGSCOPE_WAIT has for it, and is named like it. Exports and
 * reports draw how the amount changes. With HANGSCOPE_HISTORY=0 nothing is done or evaluated.
 *
 * Any context. */
#ifndef HANGSCOPE_TARGET_HISTORY_H
#define HANGSCOPE_TARGET_HISTORY_H

#include "hangscope/abi/kernel_events.h"
#include "hangscope/target/events.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_HISTORY

HANGSCOPE_EVENTS(history, HANGSCOPE_FIRST_HISTORY_ID, HANGSCOPE_HISTORY_EVENTS);
HANGSCOPE_STATIC_ASSERT((uint32_t)HANGSCOPE_ID_bus_end == HANGSCOPE_ID_BUS_END &&
                            (uint32_t)HANGSCOPE_ID_bus_read_begin ==
                                HANGSCOPE_ID_BEFORE_BUS + (uint32_t)HANGSCOPE_BUS_READ,
                        "abi/kernel_events.h has them in this order");

#define HANGSCOPE_COUNT(resource, amount) hangscope_counts((uint32_t)(uintptr_t)(resource), amount)

HANGSCOPE_CALLED void hangscope_counts(uint32_t resource, uint32_t amount);
HANGSCOPE_CALLED void hangscope_bus_begins(uint32_t kind, uint64_t address, uint32_t bytes);
HANGSCOPE_CALLED void hangscope_bus_ends(uint64_t address, uint32_t bytes);

#if !HANGSCOPE_OUT_OF_LINE || defined(HANGSCOPE_DEFINE)
HANGSCOPE_CALLED void hangscope_counts(uint32_t resource, uint32_t amount) {
  hangscope_counter(resource, amount);
}
/* A kind that there is not is none to record. */
HANGSCOPE_CALLED void hangscope_bus_begins(uint32_t kind, uint64_t address, uint32_t bytes) {
  if (kind - 1 >= HANGSCOPE_BUS_INLINE_WRITE) return;
  struct hangscope_parameters said;
  hangscope_no_parameters(&said);
  said.words[0] = (uint32_t)address;
  said.words[1] = bytes;
  hangscope_record(HANGSCOPE_ID_BEFORE_BUS + kind, (uint32_t)HANGSCOPE_CLASS_HISTORY, &said, 0);
}
HANGSCOPE_CALLED void hangscope_bus_ends(uint64_t address, uint32_t bytes) {
  hangscope_bus_end((uint32_t)address, bytes);
}
#endif

#if HANGSCOPE_WAYPOINTS
HANGSCOPE_CALLED void hangscope_waypoint_is(uint32_t waypoint);
#if !HANGSCOPE_OUT_OF_LINE || defined(HANGSCOPE_DEFINE)
/* A round of a loop that says where it is again changes nothing. */
HANGSCOPE_CALLED void hangscope_waypoint_is(uint32_t waypoint) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  if (hangscope_port_load(&mailbox->waypoint) == waypoint) return;
  hangscope_port_store(&mailbox->waypoint, waypoint);
  hangscope_waypoint(waypoint);
}
#endif
#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_counts(uint32_t resource, uint32_t amount) {
  (void)resource, (void)amount;
}
HANGSCOPE_OFF_END
#define HANGSCOPE_COUNT(resource, amount) \
  HANGSCOPE_NOT_DONE(hangscope_counts((uint32_t)(uintptr_t)(resource), amount))

#endif

#ifdef __cplusplus
}
#endif

#endif

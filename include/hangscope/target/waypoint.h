/* Where a core is, in four characters; that it goes round; which program it runs.
 *
 *   HANGSCOPE_WAYPOINT("CRBW");                          one 32-bit store
 *   HANGSCOPE_WAYPOINT_NAMED("CRBW", "reserve back");    the same; the catalog has the long name
 *
 * By convention the last character says what the core does there: W waits at a loop's top, D is
 * done, R runs. The catalog knows the line and function of each. A waypoint's text is one to four
 * characters in quotes, none of them a quote, a backslash or a percent sign; a long name's neither.
 *
 * Any context; each core writes its own mailbox only. */
#ifndef HANGSCOPE_TARGET_WAYPOINT_H
#define HANGSCOPE_TARGET_WAYPOINT_H

#include "hangscope/target/catalog.h"
#include "hangscope/target/pause.h"
#include "hangscope/target/scope.h"
#if HANGSCOPE_HISTORY /* else nothing moves: functions lie in the order of the headers */
#include "hangscope/target/history.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The first character in the low byte. `text` is a literal: all of this is a constant. */
#define HANGSCOPE_WAYPOINT_WORD(text)                                  \
  ((uint32_t)(unsigned char)(text)[0] |                                \
   (uint32_t)(unsigned char)(sizeof(text) > 2 ? (text)[1] : 0) << 8 |  \
   (uint32_t)(unsigned char)(sizeof(text) > 3 ? (text)[2] : 0) << 16 | \
   (uint32_t)(unsigned char)(sizeof(text) > 4 ? (text)[3] : 0) << 24)

#define HANGSCOPE_WAYPOINT(text) HANGSCOPE_WAYPOINT_NAMED(text, "")

#if HANGSCOPE_ENABLE && HANGSCOPE_WAYPOINTS

#define HANGSCOPE_WAYPOINT_NAMED(text, long_name)                                   \
  do {                                                                              \
    HANGSCOPE_STATIC_ASSERT(sizeof(text) >= 2 && sizeof(text) <= 5,                 \
                            "a waypoint has one to four characters");               \
    HANGSCOPE_CATALOG_HERE(HANGSCOPE_CATALOG_WAYPOINT, "1b", "0", text, long_name); \
    HANGSCOPE_STORE_WAYPOINT_WORD(HANGSCOPE_WAYPOINT_WORD(text));                   \
  } while (0)
#if HANGSCOPE_HISTORY
#define HANGSCOPE_STORE_WAYPOINT_WORD(word) hangscope_waypoint_is(word)
#else
#define HANGSCOPE_STORE_WAYPOINT_WORD(word) \
  hangscope_port_store(&hangscope_this_mailbox()->waypoint, word)
#endif

/* Once in each round of a core's main loop: a core whose heartbeat stands still while it does not
 * wait is stuck. A pause point, too, where pauses are built in. */
HANGSCOPE_INLINE void hangscope_heartbeat(void) {
  struct hangscope_mailbox* const mailbox = hangscope_this_mailbox();
  hangscope_port_store(&mailbox->heartbeat, hangscope_port_load(&mailbox->heartbeat) + 1);
#if HANGSCOPE_PAUSES
  hangscope_pause_point_of(mailbox);
#endif
}

/* Which program the core runs, for one that is given several; 0: none. */
HANGSCOPE_INLINE void hangscope_kernel_is(uint32_t kernel) {
  hangscope_port_store(&hangscope_this_mailbox()->kernel, kernel);
}
HANGSCOPE_INLINE void hangscope_launch_is(enum hangscope_launch state) {
  hangscope_port_store(&hangscope_this_mailbox()->launch, state);
}

#else

#define HANGSCOPE_WAYPOINT_NAMED(text, long_name) ((void)0)
HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_heartbeat(void) {}
HANGSCOPE_OFF void hangscope_kernel_is(uint32_t kernel) { (void)kernel; }
HANGSCOPE_OFF void hangscope_launch_is(enum hangscope_launch state) { (void)state; }
HANGSCOPE_OFF_END
#define hangscope_kernel_is(...) HANGSCOPE_NOT_DONE((hangscope_kernel_is)(__VA_ARGS__))
#define hangscope_launch_is(...) HANGSCOPE_NOT_DONE((hangscope_launch_is)(__VA_ARGS__))

#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_HAS_MAILBOXES

/* Who is where: on one core, after hangscope_init and before the others begin, or each for itself.
 * Numbers that do not exist are ignored. */
HANGSCOPE_INLINE void hangscope_core_is(uint32_t core, uint32_t node, uint32_t role) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0 || core >= HANGSCOPE_CORES || node >= HANGSCOPE_NODES) return;
  scope->mailboxes[core].node = (uint16_t)node;
  scope->mailboxes[core].role = (uint16_t)role;
}
HANGSCOPE_INLINE void hangscope_node_is(uint32_t node, uint32_t x, uint32_t y) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0 || node >= HANGSCOPE_NODES) return;
  scope->nodes[node].x = (uint16_t)x;
  scope->nodes[node].y = (uint16_t)y;
}

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_core_is(uint32_t core, uint32_t node, uint32_t role) {
  (void)core, (void)node, (void)role;
}
HANGSCOPE_OFF void hangscope_node_is(uint32_t node, uint32_t x, uint32_t y) {
  (void)node, (void)x, (void)y;
}
HANGSCOPE_OFF_END
#define hangscope_core_is(...) HANGSCOPE_NOT_DONE((hangscope_core_is)(__VA_ARGS__))
#define hangscope_node_is(...) HANGSCOPE_NOT_DONE((hangscope_node_is)(__VA_ARGS__))

#endif

#ifdef __cplusplus
}
#endif

#endif

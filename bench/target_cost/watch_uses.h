/* What a watcher's features cost: a function for each, which does nothing else. The firmware of
 * watch.c and the program of ../watch_steps.cc count what is executed from the call to the return.
 *
 * Others have a baseline, without the feature: `nothing`; `condition`, what an assert compares;
 * `issue`, a transaction that nobody checks. */
#ifndef HANGSCOPE_BENCH_WATCH_USES_H
#define HANGSCOPE_BENCH_WATCH_USES_H

#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "hangscope/target/bus.h"

#define COUNTED __attribute__((noinline, noclone, noipa))

/* clang-format breaks this row elsewhere each time. */
/* clang-format off */
#define USES(USE)                                                                                  \
  USE(nothing) USE(condition) USE(issue) USE(waypoint) USE(heartbeat) USE(kernel) USE(wait)        \
  USE(hold) USE(assert_holds) USE(pause_point) USE(debug) USE(delay_off) USE(delay_100)            \
  USE(waypoints) USE(count) USE(bus_write) USE(stack_look) USE(stack_look_1024) USE(guards_look)   \
  USE(bus_off)
/* clang-format on */

static uint32_t cost_number;
static uint32_t cost_memory[64];
static uint32_t cost_stack[2][258]; /* as if painted but for the last, 4 and 1028 bytes */
static uint32_t cost_guarded[HANGSCOPE_GUARDS];

/* One region, one local memory, one protected place: three ranges to look at. */
static const uint8_t cost_types[] = {1};
static const struct hangscope_bus_region cost_region = {{cost_memory, 0, sizeof cost_memory - 1},
                                                        HANGSCOPE_BUS_MEMORY,
                                                        HANGSCOPE_BUS_MAY_ALL,
                                                        16,
                                                        4,
                                                        16,
                                                        HANGSCOPE_BUS_ANYWHERE,
                                                        2};
static const struct hangscope_bus_place cost_local = {
    {cost_memory, 0, sizeof cost_memory - 1}, HANGSCOPE_BUS_ANYWHERE, 0};
static const struct hangscope_bus_place cost_protected = {{0, 0, 63}, HANGSCOPE_BUS_ANYWHERE, 0};
#ifdef __cplusplus
extern "C"
#endif
    const struct hangscope_bus_map hangscope_bus_map = {1,
                                                        1,
                                                        cost_types,
                                                        2,
                                                        8,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        &cost_region,
                                                        1,
                                                        1,
                                                        &cost_local,
                                                        0,
                                                        &cost_protected,
                                                        0,
                                                        1,
                                                        HANGSCOPE_BUS_ANYWHERE};

#ifdef __cplusplus
extern "C"
#endif
    COUNTED void
    hangscope_bus_issue(const struct hangscope_transaction* transaction) {
  (void)transaction;
}
COUNTED static void cost_aborts(void) {}

COUNTED static void use_nothing(void) {}
COUNTED static void use_condition(void) {
  if (HANGSCOPE_UNLIKELY(!(hangscope_port_load(&cost_number) < 4))) cost_aborts();
}
COUNTED static void use_issue(void) {
  struct hangscope_transaction write;
  hangscope_bus_fill(&write, HANGSCOPE_BUS_WRITE, 0, 0, (uintptr_t)cost_memory,
                     (uintptr_t)cost_memory + 128, 64, 0);
  hangscope_bus_issue(&write);
}
COUNTED static void use_waypoint(void) { HANGSCOPE_WAYPOINT("CRBW"); }
COUNTED static void use_waypoints(void) {
  HANGSCOPE_WAYPOINT("CRBW");
  HANGSCOPE_WAYPOINT("CRBD");
}
COUNTED static void use_count(void) { HANGSCOPE_COUNT(cost_memory, 3); }
COUNTED static void use_heartbeat(void) { hangscope_heartbeat(); }
COUNTED static void use_kernel(void) { hangscope_kernel_is(3); }
COUNTED static void use_wait(void) {
  HANGSCOPE_WAIT(cost_memory);
  HANGSCOPE_WAIT_DONE();
}
COUNTED static void use_hold(void) {
  HANGSCOPE_HOLD(cost_memory);
  HANGSCOPE_RELEASE(cost_memory);
}
COUNTED static void use_assert_holds(void) {
  HANGSCOPE_ASSERT(hangscope_port_load(&cost_number) < 4, "number below 4");
}
COUNTED static void use_pause_point(void) { HANGSCOPE_PAUSE_POINT(); }
COUNTED static void use_debug(void) { HANGSCOPE_DEBUG(7); }
COUNTED static void use_delay_off(void) { hangscope_delay(HANGSCOPE_DELAY_READ); }
COUNTED static void use_delay_100(void) { hangscope_delay(HANGSCOPE_DELAY_ATOMIC); }
COUNTED static void use_bus_write(void) {
  (void)hangscope_bus_write(0, 0, (uintptr_t)cost_memory, (uintptr_t)cost_memory + 128, 64);
}
COUNTED static void use_bus_off(void) {
  (void)hangscope_bus_write(0, 0, (uintptr_t)cost_memory, (uintptr_t)cost_memory + 128, 64);
}
COUNTED static void use_stack_look(void) { hangscope_stack_look(); }
COUNTED static void use_stack_look_1024(void) { hangscope_stack_look(); }
COUNTED static void use_guards_look(void) { hangscope_guards_look(); }

/* On one core, before the others. */
static void prepare_uses(void) {
  for (uint32_t i = 0; i < 258; i++) cost_stack[0][i] = cost_stack[1][i] = HANGSCOPE_STACK_PAINT;
  cost_stack[0][1] = 0;
  cost_stack[1][257] = 0;
  for (uint32_t i = 0; i < HANGSCOPE_GUARDS; i++) hangscope_guard(i, &cost_guarded[i], 0);
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++)
    hangscope_delay_set(i, HANGSCOPE_DELAY_ATOMIC, 100, 0);
}

/* Each core, before it counts what follows. */
#define prepare_nothing()
#define prepare_condition()
#define prepare_issue()
#define prepare_waypoint()
#define prepare_waypoints()
#define prepare_count()
#define prepare_heartbeat()
#define prepare_kernel()
#define prepare_wait()
#define prepare_hold()
#define prepare_assert_holds()
#define prepare_pause_point()
#define prepare_debug()
#define prepare_delay_off()
#define prepare_delay_100()
#define prepare_bus_write()
#define prepare_bus_off() (hangscope_the_scope()->watch.switches &= ~(uint32_t)HANGSCOPE_WATCH_BUS)
#define prepare_stack_look() (void)hangscope_stack_is(cost_stack[0], sizeof cost_stack[0])
#define prepare_stack_look_1024() (void)hangscope_stack_is(cost_stack[1], sizeof cost_stack[1])
#define prepare_guards_look()

#endif

/* The events of an operating system's kernel, ready-made: hangscope_task_create(id, priority) and
 * so on. docs/porting.md shows where a kernel calls them. abi/kernel_events.h lists them.
 *
 * yield is the API call only; a switch that the scheduler makes by itself is a switch. */
#ifndef HANGSCOPE_TARGET_KERNEL_EVENTS_H
#define HANGSCOPE_TARGET_KERNEL_EVENTS_H

#include "hangscope/abi/kernel_events.h"
#include "hangscope/target/events.h"

HANGSCOPE_EVENTS(own, HANGSCOPE_FIRST_OWN_ID, HANGSCOPE_OWN_EVENTS);
HANGSCOPE_EVENTS(kernel, HANGSCOPE_FIRST_KERNEL_ID, HANGSCOPE_KERNEL_EVENTS);

#endif

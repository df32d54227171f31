#ifndef EXAMPLES_TRACE_SCHED_YIELD_HOOK_H
#define EXAMPLES_TRACE_SCHED_YIELD_HOOK_H

#include <stdint.h>

extern uint32_t yield_hook_calls;

#endif

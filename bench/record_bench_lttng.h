/* The event for LTTng-UST, as its macros want it: this file is included several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER hangscope_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "record_bench_lttng.h"

#if !defined(HANGSCOPE_BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define HANGSCOPE_BENCH_LTTNG_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(hangscope_bench, event,
                           LTTNG_UST_TP_ARGS(unsigned, number, unsigned, thread),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, number, number)
                                                   lttng_ust_field_integer(unsigned, thread,
                                                                           thread)))

#endif
#include <lttng/tracepoint-event.h>

// What LTTng-UST generates for the event, compiled once.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "record_bench_lttng.h"

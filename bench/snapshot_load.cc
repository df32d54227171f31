// What lttng_snapshot.py takes snapshots of: each event goes into hangscope's ring of this process
// and to LTTng-UST, from the same place of the program.
//
// usage: snapshot_load
// A line with a number on standard input: records so many events, then prints "done". It ends with
// its input.
#define HANGSCOPE_DEFINE
#define HANGSCOPE_CORES 1
#define HANGSCOPE_RING_CAPACITY 65536
#include <cstdint>
#include <cstdio>

#include "hangscope/hangscope.h"
#include "record_bench_lttng.h"

#define HANGSCOPE_CLASS_BENCH HANGSCOPE_CLASS(5)
#define BENCH_EVENTS(EVENT) EVENT(bench, BENCH, "%u of %u", u32, index, u32, thread)
HANGSCOPE_EVENTS(bench, HANGSCOPE_FIRST_USER_ID, BENCH_EVENTS);

int main() {
  unsigned count = 0;
  while (std::scanf("%u", &count) == 1) {
    for (uint32_t i = 0; i < count; ++i) {
      hangscope_bench(i, count);
      lttng_ust_tracepoint(hangscope_bench, event, i, count);
    }
    if (hangscope_scope_path() == nullptr) return 1;
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}

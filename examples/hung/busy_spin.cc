// Spins until another thread sets a flag, which that one forgot on one of its ways out.
#include <pthread.h>

#include "hung.h"

static volatile int table_ready;

static void* load_table(void* nothing_to_load) {
  if (nothing_to_load != nullptr) return nullptr; // missing here: table_ready = 1
  table_ready = 1;
  return nullptr;
}

static void wait_for_table() {
  while (!table_ready) {
  }
}

int main() {
  pthread_t loader;
  int nothing_to_load = 1;
  must(pthread_create(&loader, nullptr, load_table, &nothing_to_load) == 0, "pthread_create");
  pthread_detach(loader);
  say("loading");
  wait_for_table();
  say("done");
}

// Waits in a lock of GLib, whose headers are not needed for that.
#include <stdio.h>

typedef struct {
  void* word;
} Lock;
extern void g_mutex_lock(Lock* lock);
static Lock lock;
static volatile int taken;

__attribute__((noinline)) static void take(void) {
  g_mutex_lock(&lock);  // waits
  ++taken;
}

int main(void) {
  take();
  puts("ready");
  fflush(stdout);
  take();
  ++taken;
}

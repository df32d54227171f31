// A handler interrupts a function that calls nothing, and waits for ever.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long rounds;

__attribute__((noinline)) static void take(void) {
  pthread_mutex_lock(&lock);
  ++rounds;
}

static void on_alarm(int signal) {
  (void)signal;
  take();
  ++rounds;
}

__attribute__((noinline)) static void compute(void) {
  for (;;) ++rounds;
}

int main(void) {
  signal(SIGALRM, on_alarm);
  take();
  puts("ready");
  fflush(stdout);
  ualarm(1000, 0);
  compute();
}

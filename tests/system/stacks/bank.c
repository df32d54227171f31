// Two threads want each other's mutex, under calls of functions of several kinds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t red = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t green = PTHREAD_MUTEX_INITIALIZER;
static volatile int began;
static volatile int sum;

__attribute__((noinline)) static void transfer(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  __atomic_add_fetch(&began, 1, __ATOMIC_SEQ_CST);
  while (began < 2) {
  }
  pthread_mutex_lock(second);  // waits
  ++sum;
}

__attribute__((noinline)) static void relay(pthread_mutex_t* first, pthread_mutex_t* second,
                                            int depth) {
  volatile char room[200];
  room[depth] = 1;
  switch (depth) {
    case 0:
      transfer(first, second);
      break;
    case 1:
      relay(first, second, 0);
      break;
    case 2:
      relay(first, second, 1);
      sum += 3;
      break;
    default:
      relay(first, second, depth - 1);
      sum += depth;
  }
  sum += room[depth];
}

__attribute__((noinline)) static int compare(const void* a, const void* b) {
  (void)a;
  (void)b;
  relay(&red, &green, 3);
  return sum;
}

// By way of the C library.
static void* sorts(void* unused) {
  int numbers[2] = {2, 1};
  qsort(numbers, 2, sizeof numbers[0], compare);
  sum += numbers[0];
  return unused;
}

static void* relays(void* unused) {
  relay(&green, &red, 5);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  puts("ready");
  fflush(stdout);
  pthread_create(&threads[0], NULL, sorts, NULL);
  pthread_create(&threads[1], NULL, relays, NULL);
  pthread_join(threads[0], NULL);  // joins
  pthread_join(threads[1], NULL);
  return sum;
}

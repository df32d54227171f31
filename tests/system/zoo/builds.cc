/* usage: zoo_builds_HOW NAME
   The same few programs in every way that a program is built: C and C++ at once, so that compilers
   for C alone make it, and without anything of the zoo's. Names of functions and locks are there
   unless it is stripped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t inner_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
sem_t items;
volatile int ready_flag = 0;
volatile int came = 0;
volatile unsigned long sum = 0;
long counter = 0;

static void Ready(void) {
  if (write(1, "ready\n", 6) != 6) _exit(99);
}

static void Nap(long milliseconds) {
  struct timespec left;
  left.tv_sec = milliseconds / 1000;
  left.tv_nsec = milliseconds % 1000 * 1000000;
  while (nanosleep(&left, &left) != 0) {
  }
}

static void Come(int count) {
  __atomic_fetch_add(&came, 1, __ATOMIC_SEQ_CST);
  while (came < count) Nap(1);
}

static pthread_t Start(const char* name, void* (*what)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, what, NULL) != 0) _exit(99);
  pthread_setname_np(thread, name);
  return thread;
}

__attribute__((noinline)) void TakeBoth(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  Come(2);
  pthread_mutex_lock(second);
  ++counter;
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}

void* TakeLeft(void* unused) {
  TakeBoth(&lock_a, &lock_b);
  return unused;
}

void* TakeRight(void* unused) {
  TakeBoth(&lock_b, &lock_a);
  return unused;
}

static void Abba(void) {
  const pthread_t left = Start("left", TakeLeft);
  const pthread_t right = Start("right", TakeRight);
  Ready();
  pthread_join(left, NULL);
  pthread_join(right, NULL);
}

__attribute__((noinline)) void WaitForFlag(void) {
  while (ready_flag == 0) {
  }
}

static void Spin(void) {
  Ready();
  WaitForFlag();
}

__attribute__((noinline)) void WaitForWork(void) {
  pthread_mutex_lock(&inner_lock);
  while (ready_flag == 0) pthread_cond_wait(&not_empty, &inner_lock);
  pthread_mutex_unlock(&inner_lock);
}

static void ConditionLost(void) {
  Ready();
  WaitForWork();
}

__attribute__((noinline)) void WaitForItem(void) {
  while (sem_wait(&items) != 0) {
  }
}

static void SemaphoreLost(void) {
  sem_init(&items, 0, 0);
  Ready();
  WaitForItem();
}

/* It waits for the end of a thread that wants its lock. */
static void* LockInThread(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock_a);
  return NULL;
}

__attribute__((noinline)) void JoinWithLock(pthread_t thread) {
  pthread_join(thread, NULL);
  pthread_mutex_unlock(&lock_a);
}

static void JoinedWithLock(void) {
  pthread_t thread;
  pthread_mutex_lock(&lock_a);
  if (pthread_create(&thread, NULL, LockInThread, NULL) != 0) _exit(99);
  Ready();
  JoinWithLock(thread);
}

__attribute__((noinline)) void ReadOwnPipe(int file) {
  char byte;
  while (read(file, &byte, 1) == 1) {
  }
}

static void OwnPipe(void) {
  int ends[2];
  if (pipe(ends) != 0) _exit(99);
  Ready();
  ReadOwnPipe(ends[0]);
}

/* Controls. */

static void* CountUnderLock(void* unused) {
  for (;;) {
    pthread_mutex_lock(&lock_a);
    ++counter;
    pthread_mutex_unlock(&lock_a);
  }
  return unused;
}

static void Contended(void) {
  Start("counter", CountUnderLock);
  Start("counter", CountUnderLock);
  Ready();
  Nap(600000);
}

static unsigned long Step(unsigned long value) {
  return value * 2862933555777941757UL + 3037000493UL;
}

static void Compute(void) {
  Ready();
  unsigned long value = 1;
  for (;;) {
    unsigned long i;
    for (i = 0; i < 50000000; ++i) value = Step(value ^ i);
    sum = value;
  }
}

volatile unsigned long prime = 2147483647UL;

/* Nothing is stored until the end of each. */
static void ComputePrime(void) {
  Ready();
  for (;;) {
    const unsigned long number = prime;
    unsigned long divisor = 2;
    while (number % divisor != 0) ++divisor;
    if (divisor != number) _exit(99);
    sum = divisor;
  }
}

static void* WaitForJobs(void* unused) {
  pthread_mutex_lock(&inner_lock);
  for (;;) pthread_cond_wait(&not_empty, &inner_lock);
  return unused;
}

static void Pool(void) {
  Start("worker", WaitForJobs);
  Start("worker", WaitForJobs);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  listen(listening, 4);
  Ready();
  for (;;) {
    close(accept(listening, NULL, NULL));
    pthread_cond_signal(&not_empty);
  }
}

static void* HoldAndNap(void* unused) {
  pthread_mutex_lock(&lock_a);
  Come(2);
  Nap(600000);
  pthread_mutex_unlock(&lock_a);
  return unused;
}

static void Held(void) {
  Start("holder", HoldAndNap);
  Come(2);
  Ready();
  pthread_mutex_lock(&lock_a);
}

static void Ticker(void) {
  Ready();
  for (;;) {
    Nap(20);
    ++counter;
  }
}

struct Program {
  const char* name;
  void (*run)(void);
};

static const struct Program kPrograms[] = {
    {"abba", Abba},
    {"spin", Spin},
    {"cond-lost", ConditionLost},
    {"sem-lost", SemaphoreLost},
    {"own-pipe", OwnPipe},
    {"joined", JoinedWithLock},
    /* Controls. */
    {"contended", Contended},
    {"compute", Compute},
    {"prime", ComputePrime},
    {"pool", Pool},
    {"held", Held},
    {"ticker", Ticker},
};

int main(int count, char** arguments) {
  size_t i;
  struct rlimit ten_minutes;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ten_minutes.rlim_cur = ten_minutes.rlim_max = 600;
  setrlimit(RLIMIT_CPU, &ten_minutes);
  for (i = 0; i < sizeof kPrograms / sizeof kPrograms[0]; ++i) {
    if (count < 2 || strcmp(kPrograms[i].name, arguments[1]) != 0) continue;
    kPrograms[i].run();
    return 0;
  }
  return 2;
}

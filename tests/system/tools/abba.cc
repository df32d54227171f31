// usage: abba [SECONDS]
// Two threads that take two locks in opposite orders, and say so; a third that waits for the first
// of them. Prints "stuck" when they are, and waits.
#define HANGSCOPE_DEFINE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "hangscope/hangscope.h"

namespace {

#define ABBA_NAMES(NAME) NAME(0x101, "lock_a") NAME(0x102, "lock_b") NAME(0x103, "results")
HANGSCOPE_NAMED(abba_resources, HANGSCOPE_CATALOG_RESOURCE, ABBA_NAMES);

constexpr uintptr_t kLockA = 0x101;
constexpr uintptr_t kLockB = 0x102;
constexpr uintptr_t kResults = 0x103;

pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
pthread_barrier_t both_hold_one;

void Take(int index, uintptr_t resource) {
  HANGSCOPE_WAYPOINT_NAMED("LOCW", "take a lock");
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_EXCLUSIVE, resource);
  hangscope_mutex_lock(static_cast<uint32_t>(resource), 0);
  pthread_mutex_lock(&locks[index]);
  HANGSCOPE_WAIT_DONE();
  HANGSCOPE_HOLD(resource);
}

void* Left(void*) {
  pthread_setname_np(pthread_self(), "left");
  HANGSCOPE_PROVIDES(kResults);
  Take(0, kLockA);
  pthread_barrier_wait(&both_hold_one);
  Take(1, kLockB);
  return nullptr;
}

void* Right(void*) {
  pthread_setname_np(pthread_self(), "right");
  Take(1, kLockB);
  pthread_barrier_wait(&both_hold_one);
  Take(0, kLockA);
  return nullptr;
}

void* Reader(void*) {
  pthread_setname_np(pthread_self(), "reader");
  HANGSCOPE_WAYPOINT("RESW");
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, kResults);
  for (;;) pause();
}

// Whether all three wait, and two of them for the second time.
bool IsStuck() {
  int waits = 0;
  int again = 0;
  for (const hangscope_mailbox& mailbox : hangscope_mapped_scope->mailboxes) {
    const uint32_t sequence = __atomic_load_n(&mailbox.wait_sequence, __ATOMIC_ACQUIRE);
    waits += sequence % 2 == 1;
    again += sequence == 3;
  }
  return waits == 3 && again == 2;
}

}  // namespace

int main(int count, char** words) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  pthread_barrier_init(&both_hold_one, nullptr, 2);
  pthread_t thread;
  for (void* (*const run)(void*) : {Left, Right, Reader})
    pthread_create(&thread, nullptr, run, nullptr);
  while (!IsStuck()) usleep(1000);
  puts("stuck");
  fflush(stdout);
  sleep(count > 1 ? static_cast<unsigned>(atoi(words[1])) : 60);
  return 0;
}

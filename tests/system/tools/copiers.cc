// Two threads that copy blocks and take two locks for it: `copiers deadlock` in opposite orders,
// otherwise in the same. Prints the path of its scope; a byte on standard input ends it: e with
// status 3, a by abort, others well.
#define HANGSCOPE_DEFINE
#include <hangscope/hangscope.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { QUEUE = 101, TABLE = 102 };
#define LOCKS(NAME) NAME(101, "queue") NAME(102, "table")
HANGSCOPE_NAMED(locks, HANGSCOPE_CATALOG_RESOURCE, LOCKS);
#define ROLES(NAME) NAME(1, "copier")
HANGSCOPE_NAMED(roles, HANGSCOPE_CATALOG_ROLE, ROLES);
#define APP_EVENTS(EVENT) EVENT(copied, USER, "block %u", u32, block)
HANGSCOPE_EVENTS(app, HANGSCOPE_FIRST_USER_ID, APP_EVENTS);
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;
static pthread_barrier_t all;
static const char* how;
static void take(int which) {
  if (pthread_mutex_trylock(&locks[which]) != 0) {
    HANGSCOPE_WAYPOINT_NAMED("LCKW", "take a lock");
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_EXCLUSIVE, QUEUE + which);
    pthread_mutex_lock(&locks[which]);
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_HOLD(QUEUE + which);
}
static void give(int which) {
  HANGSCOPE_RELEASE(QUEUE + which);
  pthread_mutex_unlock(&locks[which]);
}
static void* copier(void* argument) {
  const char* const name = static_cast<const char*>(argument);
  const int second = strcmp(name, "beta") == 0;
  pthread_setname_np(pthread_self(), name);
  hangscope_core_is(hangscope_core_of(hangscope_this_mailbox()), 0, 1);
  HANGSCOPE_WAYPOINT("COPR");
  pthread_barrier_wait(&all);
  for (uint32_t block = 0;; block++) {
    HANGSCOPE_WAYPOINT("COPR");
    hangscope_heartbeat();
    usleep(1000);
    hangscope_copied(block);
    HANGSCOPE_DEBUG(0xb10c0000u | block);
    const int crossed = strcmp(how, "deadlock") == 0;
    take(crossed && second);
    if (crossed) pthread_barrier_wait(&both);
    take(!(crossed && second));
    give(!(crossed && second));
    give(crossed && second);
    HANGSCOPE_WAYPOINT("REST");
    usleep(1000);
  }
  return nullptr;
}
int main(int argc, char** argv) {
  pthread_t threads[2];
  how = argc > 1 ? argv[1] : "";
  pthread_barrier_init(&both, nullptr, 2);
  pthread_barrier_init(&all, nullptr, 3);
  HANGSCOPE_WAYPOINT("MAIN");
  pthread_create(&threads[0], nullptr, copier, const_cast<char*>("alpha"));
  pthread_create(&threads[1], nullptr, copier, const_cast<char*>("beta"));
  pthread_barrier_wait(&all);  // both are in use, and known by name and role
  puts(hangscope_scope_path());
  fflush(stdout);
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_OUTSIDE, 1);
  const int word = getchar();
  HANGSCOPE_WAIT_DONE();
  if (word == 'a') abort();
  return word == 'e' ? 3 : 0;
}

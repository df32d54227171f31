// usage: queue_lock hang|gives-up|lets-go
// A thread waits in its mailbox for what another one is to put into a queue, and that one waits, in
// a library that records nothing, for a mutex: the first one's (hang), the first one's who gives up
// after a while (gives-up), or the main thread's, who gives it back then (lets-go). Another thread
// naps beside them. What ends by itself ends with status 7.
#define HANGSCOPE_DEFINE
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "hangscope/hangscope.h"

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

namespace {

#define QUEUE_NAMES(NAME) NAME(0x201, "queue")
HANGSCOPE_NAMED(queue_resources, HANGSCOPE_CATALOG_RESOURCE, QUEUE_NAMES);

constexpr uintptr_t kQueue = 0x201;
constexpr int kPatience = 3;  // seconds

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
pthread_barrier_t all_begun;
bool is_filled = false;
const char* how = "";

bool Is(const char* word) { return strcmp(how, word) == 0; }

void CallLibrary() {
  pthread_mutex_lock(&library_lock);
  pthread_mutex_unlock(&library_lock);
}

void* Asker(void*) {
  pthread_setname_np(pthread_self(), "asker");
  if (!Is("lets-go")) pthread_mutex_lock(&library_lock);
  pthread_barrier_wait(&all_begun);
  HANGSCOPE_WAYPOINT("QUEW");
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, kQueue);
  pthread_mutex_lock(&queue_lock);
  timespec until = {};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += kPatience;
  int status = 0;
  while (!is_filled && status == 0)
    status = Is("gives-up") ? pthread_cond_timedwait(&queue_filled, &queue_lock, &until)
                            : pthread_cond_wait(&queue_filled, &queue_lock);
  pthread_mutex_unlock(&queue_lock);
  HANGSCOPE_WAIT_DONE();
  if (!Is("lets-go")) pthread_mutex_unlock(&library_lock);
  return nullptr;
}

void* Server(void*) {
  pthread_setname_np(pthread_self(), "server");
  HANGSCOPE_PROVIDES(kQueue);
  HANGSCOPE_WAYPOINT("SRVR");
  hangscope_heartbeat();
  pthread_barrier_wait(&all_begun);
  CallLibrary();
  pthread_mutex_lock(&queue_lock);
  is_filled = true;
  pthread_cond_broadcast(&queue_filled);
  pthread_mutex_unlock(&queue_lock);
  return nullptr;
}

void* Ticker(void*) {
  pthread_setname_np(pthread_self(), "ticker");
  for (;;) usleep(50000);
}

}  // namespace

int main(int count, char** words) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (count > 1) how = words[1];
  pthread_barrier_init(&all_begun, nullptr, 3);
  if (Is("lets-go")) pthread_mutex_lock(&library_lock);
  pthread_t asker;
  pthread_t server;
  pthread_t ticker;
  pthread_create(&ticker, nullptr, Ticker, nullptr);
  pthread_create(&asker, nullptr, Asker, nullptr);
  pthread_create(&server, nullptr, Server, nullptr);
  pthread_barrier_wait(&all_begun);
  if (Is("lets-go")) {
    sleep(kPatience);
    pthread_mutex_unlock(&library_lock);
  }
  pthread_join(asker, nullptr);
  pthread_join(server, nullptr);
  return 7;
}

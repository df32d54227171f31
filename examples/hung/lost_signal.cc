// A condition variable that is signalled before anybody waits for it, and a wait that looks at nothing first:
// the signal is lost, and no other one comes.
#include <pthread.h>

#include "hung.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;

static void* consume(void* unused) {
  pthread_mutex_lock(&lock);
  pthread_cond_wait(&work_came, &lock); // right: while (work == 0) pthread_cond_wait(...);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main() {
  pthread_t consumer;
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&work_came); // for a consumer that is not there yet
  pthread_mutex_unlock(&lock);

  must(pthread_create(&consumer, nullptr, consume, nullptr) == 0, "pthread_create");
  pthread_setname_np(consumer, "consumer");
  say("work was announced");
  pthread_join(consumer, nullptr);
  say("done");
}

// A thread that ends while it holds a mutex; whoever wants it next waits for ever.
#include <pthread.h>

#include "hung.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void* update(void* failed) {
  pthread_mutex_lock(&table_lock);
  if (failed != nullptr) return nullptr; // missing here: pthread_mutex_unlock(&table_lock)
  pthread_mutex_unlock(&table_lock);
  return nullptr;
}

static void look_up() {
  pthread_mutex_lock(&table_lock);
  pthread_mutex_unlock(&table_lock);
}

int main() {
  pthread_t updater;
  int failed = 1;
  must(pthread_create(&updater, nullptr, update, &failed) == 0, "pthread_create");
  pthread_join(updater, nullptr);
  say("the table was updated");
  look_up();
  say("done");
}

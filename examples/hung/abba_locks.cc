// Two mutexes, taken in the opposite order by two threads: each holds what the other wants.
#include <pthread.h>

#include <barrier>
#include <mutex>
#include <thread>

#include "hung.h"

std::mutex lock_a;
std::mutex lock_b;
std::barrier<> both_hold_one(2);  // makes the rare case happen each time
int money_a = 100;
int money_b = 100;

void Transfer(std::mutex& from, std::mutex& to, int* paid, int* received) {
  from.lock();
  both_hold_one.arrive_and_wait();
  to.lock();
  --*paid;
  ++*received;
  to.unlock();
  from.unlock();
}

int main() {
  std::thread one([] {
    pthread_setname_np(pthread_self(), "a-to-b");
    Transfer(lock_a, lock_b, &money_a, &money_b);
  });
  std::thread other([] {
    pthread_setname_np(pthread_self(), "b-to-a");
    Transfer(lock_b, lock_a, &money_b, &money_a);
  });
  say("two transfers have begun");
  one.join();
  other.join();
  say("done");
}

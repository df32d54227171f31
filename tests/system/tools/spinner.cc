// Runs in one of several ways, for ever; or until its standard input ends, which a thread of its
// own looks out for.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

volatile int flag = 0;
std::atomic<int> spin_lock{1};
volatile unsigned long sum = 0;
volatile double approximation = 1;

namespace {

void SpinOnFlag() {
  while (flag == 0) {
  }
}
void YieldOnFlag() {
  while (flag == 0) sched_yield();
}
void SpinOnLock() {
  while (spin_lock.exchange(1) != 0) {
  }
}
void SpinOnNothing() {
  for (;;) asm volatile("");
}
void Compute() {
  for (unsigned long i = 0;; ++i) sum = sum * 7 + i;
}
// All that changes is in memory: every round has the same registers.
void Count() {
  for (;;) sum = sum + 1;
}
// All that changes is in a vector register.
void ComputeFloat() {
  double x = 1;
  const double factor = approximation + 1e-12;
  while (x > 0) x *= factor;
}

void* Nothing(void*) { return nullptr; }
void StartThreads() {
  for (;;) {
    pthread_t threads[4];
    for (pthread_t& thread : threads) pthread_create(&thread, nullptr, Nothing, nullptr);
    for (pthread_t& thread : threads) pthread_join(thread, nullptr);
  }
}

void* EndWithInput(void*) {
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  _exit(0);
}

struct Way {
  const char* name;
  void (*run)();
};
const Way kWays[] = {{"flag", SpinOnFlag},      {"yield", YieldOnFlag},    {"lock", SpinOnLock},
                     {"compute", Compute},      {"count", Count},          {"float", ComputeFloat},
                     {"threads", StartThreads}, {"nothing", SpinOnNothing}};

}  // namespace

int main(int count, char** arguments) {
  pthread_t thread;
  pthread_create(&thread, nullptr, EndWithInput, nullptr);
  for (const Way& way : kWays) {
    if (count < 2 || strcmp(way.name, arguments[1]) != 0) continue;
    printf("spinner %d\nready\n", getpid());
    fflush(stdout);
    way.run();
  }
  return 2;
}

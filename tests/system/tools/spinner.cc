// Runs in one of several ways, for ever; or until its standard input ends, which a thread of its
// own looks out for. A second argument says what it does with signals: "blocks" all, though it has
// a handler for SIGTRAP, or only "handles" or "ignores" SIGTRAP.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
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

void OnTrap(int) {}
void SetSignals(const char* what) {
  signal(SIGTRAP, strcmp(what, "ignores") == 0 ? SIG_IGN : OnTrap);
  if (strcmp(what, "blocks") != 0) return;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
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
    if (count > 2) SetSignals(arguments[2]);  // before it says that it is ready
    printf("spinner %d\nready\n", getpid());
    fflush(stdout);
    way.run();
  }
  return 2;
}

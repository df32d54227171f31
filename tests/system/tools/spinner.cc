// Runs in one of several ways, for ever; or until its standard input ends, which a thread of its
// own looks out for. A second argument says what it does with signals: "blocks" all, though it has
// a handler for SIGTRAP, or only "handles" or "ignores" SIGTRAP.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

volatile int flag = 0;
std::atomic<int> spin_lock{1};
volatile unsigned long sum = 0;
volatile double approximation = 1;
volatile int flickering = 0;
volatile int futex_word = 1;

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
// Most rounds write to another word.
void Fill() {
  static volatile unsigned long table[4096];
  for (unsigned long i = 0;; ++i) table[i % 4096] = table[i % 4096] + i + 1;
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

// Two threads take turns: each spins for as long as the other one computes.
void* TakeTurns(void*) {
  for (;;) {
    SpinOnLock();
    for (int i = 0; i < 2'000'000; ++i) sum = sum + 1;
    spin_lock.store(0);
  }
}
void TakeTurnsWithAnother() {
  spin_lock.store(0);
  pthread_t thread;
  pthread_create(&thread, nullptr, TakeTurns, nullptr);
  TakeTurns(nullptr);
}

void* SpinBeside(void*) {
  SpinOnLock();
  return nullptr;
}
void SpinBoth() {
  pthread_t thread;
  pthread_create(&thread, nullptr, SpinBeside, nullptr);
  SpinOnFlag();
}

// A pipe that nobody writes, and another one with a byte that nobody reads.
int empty_pipe[2];
int full_pipe[2];
void MakePipes() {
  if (pipe2(empty_pipe, O_NONBLOCK) != 0 || pipe2(full_pipe, O_NONBLOCK) != 0 ||
      write(full_pipe[1], "x", 1) != 1)
    abort();
}
int EpollOf(int fd) {
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) abort();
  return epoll;
}
void ReadNothing() {
  char byte;
  while (read(empty_pipe[0], &byte, 1) < 0) {
  }
}
void PollNothing() {
  pollfd file = {empty_pipe[0], POLLIN, 0};
  while (poll(&file, 1, 0) == 0) {
  }
}
void LeaveReady() {
  const int epoll = EpollOf(full_pipe[0]);
  epoll_event events[4];
  while (epoll_wait(epoll, events, 4, -1) == 1) {
  }
}
void AskForChild() {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  while (waitpid(child, nullptr, WNOHANG) == 0) {
  }
}
void WaitForAnotherWord() {
  while (futex_word != 0) syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, nullptr);
}
// What it does changes the world, though its own state is the same each time.
void PassAByte() {
  char byte = 'x';
  while (write(empty_pipe[1], &byte, 1) == 1 && read(empty_pipe[0], &byte, 1) == 1) {
  }
}
// Ends where a call does not end by itself.
void Nap() {
  const int epoll = EpollOf(empty_pipe[0]);
  epoll_event event;
  while (epoll_wait(epoll, &event, 1, 5) == 0) {
    for (int i = 0; i < 200000; ++i) sum = sum + 1;
  }
  _exit(3);
}
void FindInCircle() {
  struct Node {
    Node* next;
    int key;
  };
  constexpr int kNodes = 1500;
  static Node nodes[kNodes];
  for (int i = 0; i < kNodes; ++i) nodes[i] = {&nodes[(i + 7) % kNodes], 1};
  for (const Node* node = nodes; node->key != 0;) node = node->next;
}
void AskForTime() {
  while (time(nullptr) != 0) {
  }
}
void Flicker() {
  while (flag == 0) {
    flickering = 1;
    flickering = 0;
  }
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
const Way kWays[] = {{"flag", SpinOnFlag},
                     {"yield", YieldOnFlag},
                     {"lock", SpinOnLock},
                     {"compute", Compute},
                     {"fill", Fill},
                     {"count", Count},
                     {"float", ComputeFloat},
                     {"threads", StartThreads},
                     {"nothing", SpinOnNothing},
                     {"read", ReadNothing},
                     {"poll", PollNothing},
                     {"ready", LeaveReady},
                     {"child", AskForChild},
                     {"pass", PassAByte},
                     {"nap", Nap},
                     {"list", FindInCircle},
                     {"time", AskForTime},
                     {"flicker", Flicker},
                     {"futex", WaitForAnotherWord},
                     {"turns", TakeTurnsWithAnother},
                     {"both", SpinBoth}};

}  // namespace

int main(int count, char** arguments) {
  MakePipes();
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

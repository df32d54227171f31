// usage: named_locks WAY
// Two threads that wait for each other's locks, which lie in other places of the program each WAY.
// Prints "main TID", "other TID" and "ready"; ends with its input.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Account {
  long balance = 0;
  std::mutex lock;
};

std::mutex start;
pthread_barrier_t both;

void Take(std::mutex& first, std::mutex& second) {
  first.lock();
  pthread_barrier_wait(&both);
  second.lock();
}

// Not inlined, so that each has a frame of its own.
[[gnu::noinline]] void Transfer(Account& from, Account& to) { Take(from.lock, to.lock); }

void Speak(const char* name) {
  printf("%s %ld\n", name, syscall(SYS_gettid));
  fflush(stdout);
}

template <typename Other, typename Mine>
void Run(const Other& other, const Mine& mine) {
  pthread_barrier_init(&both, nullptr, 2);
  start.lock();
  std::thread thread([&] {
    Speak("other");
    start.unlock();
    other();
  });
  start.lock();
  Speak("main");
  printf("ready\n");
  fflush(stdout);
  mine();
  thread.join();
}

// Parts of a variable.
struct Cache {
  int uses = 0;
  Account accounts[4];
  std::array<std::mutex, 3> stripes;
} cache;

void OfVariable() {
  Run([] { Transfer(cache.accounts[1], cache.accounts[3]); },
      [] { Transfer(cache.accounts[3], cache.accounts[1]); });
}
void OfArray() {
  Run([] { Take(cache.stripes[1], cache.stripes[2]); },
      [] { Take(cache.stripes[2], cache.stripes[1]); });
}

// On the stack of a function.
void OfFunction() {
  Account checking, savings;
  Run([&] { Transfer(checking, savings); }, [&] { Transfer(savings, checking); });
}

// Behind pointers of variables.
std::vector<std::unique_ptr<Account>> accounts;
void OfVector() {
  for (int i = 0; i < 3; ++i) accounts.push_back(std::make_unique<Account>());
  Run([] { Transfer(*accounts[0], *accounts[2]); }, [] { Transfer(*accounts[2], *accounts[0]); });
}

struct Queue {
  int length = 0;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
};
struct Server {
  char name[16] = "";
  Queue* queues[2] = {};
};
[[gnu::noinline]] void Move(Server* server, int from, int to) {
  pthread_mutex_lock(&server->queues[from]->lock);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&server->queues[to]->lock);
}
void OfPointers() {
  auto* const server = static_cast<Server*>(calloc(1, sizeof(Server)));
  for (Queue*& queue : server->queues) queue = new Queue;
  Run([&] { Move(server, 0, 1); }, [&] { Move(server, 1, 0); });
}

// That of a FILE.
void OfFile() {
  std::mutex lock;
  FILE* const log = fopen("/dev/null", "w");
  Run(
      [&] {
        flockfile(log);
        pthread_barrier_wait(&both);
        lock.lock();
      },
      [&] {
        lock.lock();
        pthread_barrier_wait(&both);
        fputs("x", log);
      });
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
const Way kWays[] = {{"variable", OfVariable}, {"array", OfArray},       {"function", OfFunction},
                     {"vector", OfVector},     {"pointers", OfPointers}, {"file", OfFile}};

}  // namespace

int main(int count, char** arguments) {
  pthread_t thread;
  pthread_create(&thread, nullptr, EndWithInput, nullptr);
  for (const Way& way : kWays) {
    if (count == 2 && strcmp(arguments[1], way.name) == 0) way.run();
  }
  fprintf(stderr, "usage: named_locks WAY\n");
  return 2;
}

// A program that would notice if somebody stopped it: system calls that a stop may end too early,
// and a loop that measures its longest pause. Prints "ready", then for each line on stdin:
// "PAUSE_US INTERRUPTED", since the line before.
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace {

std::atomic<long> longest_us{0};
std::atomic<long> interrupted{0};

// None of these is restarted after a signal with a handler; who is stopped without one must not see
// it.
void WaitInEpoll() {
  const int epoll = epoll_create1(0);
  for (epoll_event event;;) {
    if (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR) ++interrupted;
  }
}

void WaitForSemaphore() {
  sem_t never;
  sem_init(&never, 0, 0);
  for (;;) {
    if (sem_wait(&never) < 0 && errno == EINTR) ++interrupted;
  }
}

void Nap() {
  for (const timespec time = {1000, 0};;) {
    if (nanosleep(&time, nullptr) < 0 && errno == EINTR) ++interrupted;
  }
}

void MeasurePauses() {
  using Clock = std::chrono::steady_clock;
  for (auto before = Clock::now();;) {
    const auto now = Clock::now();
    const long us = std::chrono::duration_cast<std::chrono::microseconds>(now - before).count();
    if (us > longest_us) longest_us = us;
    before = now;
  }
}

}  // namespace

int main() {
  for (const auto what : {WaitInEpoll, WaitForSemaphore, Nap, MeasurePauses})
    std::thread(what).detach();
  puts("ready");
  fflush(stdout);
  for (int byte; (byte = getchar()) != EOF;) {
    if (byte != '\n') continue;
    printf("%ld %ld\n", longest_us.exchange(0), interrupted.exchange(0));
    fflush(stdout);
  }
  _exit(0);
}

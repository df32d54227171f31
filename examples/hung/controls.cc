// Programs that look hung and are not: nothing may be said of them.
//
//   controls server    a thread waits for connections, others for work: idle, as servers are
//   controls compute   a computation that takes its time and calls nobody
//   controls terminal  waits for somebody to type a line
//   controls busy      two threads hand a ball to and fro; one more naps
//   controls sleep     sleeps
//   controls pool      a hundred threads that wait for work, and one that waits for connections
//   controls job       waits for a child that computes
//   controls poll      waits for a flag that another thread sets, which naps first
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "hung.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;
static int work;

static void* wait_for_work(void* unused) {
  pthread_mutex_lock(&lock);
  while (work == 0) pthread_cond_wait(&work_came, &lock);
  pthread_mutex_unlock(&lock);
  return unused;
}

static void start(void* (*what)(void*), const char* name) {
  pthread_t thread;
  must(pthread_create(&thread, nullptr, what, nullptr) == 0, "pthread_create");
  pthread_setname_np(thread, name);
  pthread_detach(thread);
}

static void wait_for_connections() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 && listen(listening, 8) == 0, "listen");
  const int poll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  must(epoll_ctl(poll, EPOLL_CTL_ADD, listening, &event) == 0, "epoll_ctl");
  say("ready");
  for (;;) {
    if (epoll_wait(poll, &event, 1, -1) == 1) close(accept(listening, nullptr, nullptr));
  }
}

static void serve(int threads) {
  for (int i = 0; i < threads; ++i) start(wait_for_work, "worker");
  wait_for_connections();
}

// Each round differs from the one before.
static unsigned compute() {
  unsigned value = 1;
  for (;;) {
    for (unsigned i = 0; i < 1000000; ++i) value = value * 1664525 + 1013904223;
    if (value == 0) return value; // so that no compiler leaves it out
  }
}

static void read_line() {
  char line[80];
  while (fgets(line, sizeof line, stdin) != nullptr) {
  }
}

static int ball[2][2];

static void* play(void* unused) {
  char byte;
  while (read(ball[0][0], &byte, 1) == 1 && write(ball[1][1], &byte, 1) == 1) {
  }
  return unused;
}

static void* nap(void* unused) {
  for (;;) usleep(1000);
  return unused;
}

static void keep_busy() {
  char byte = 0;
  must(pipe(ball[0]) == 0 && pipe(ball[1]) == 0, "pipe");
  start(play, "player");
  start(nap, "napper");
  say("ready");
  while (write(ball[0][1], &byte, 1) == 1 && read(ball[1][0], &byte, 1) == 1) {
  }
}

static void wait_for_job() {
  const pid_t job = fork();
  must(job >= 0, "fork");
  if (job == 0) {
    end_with_parent();
    _exit(static_cast<int>(compute()));
  }
  say("ready");
  waitpid(job, nullptr, 0);
}

static void* nap_and_work(void* unused) {
  sleep(1000);
  pthread_mutex_lock(&lock);
  work = 1;
  pthread_cond_broadcast(&work_came);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(int count, char** words) {
  const char* const mode = count == 2 ? words[1] : "";
  if (strcmp(mode, "server") == 0) serve(3);
  if (strcmp(mode, "pool") == 0) serve(100);
  if (strcmp(mode, "busy") == 0) keep_busy();
  if (strcmp(mode, "job") == 0) wait_for_job();
  if (strcmp(mode, "poll") == 0) start(nap_and_work, "napper");
  say("ready");
  if (strcmp(mode, "compute") == 0) return static_cast<int>(compute());
  if (strcmp(mode, "terminal") == 0) read_line();
  if (strcmp(mode, "sleep") == 0) sleep(1000);
  if (strcmp(mode, "poll") == 0) wait_for_work(nullptr);
  return 0;
}

// usage: zoo_daemons NAME
// Programs without symbols, as they are shipped, that wait for the day when somebody ends them or
// comes to them. None of them hangs.
#include <fcntl.h>
#include <pty.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

constexpr long kFarAway = 550;  // seconds
volatile sig_atomic_t is_running = 1;
std::mutex mutex;
std::condition_variable work_came;
int work = 0;

void StopRunning(int) { is_running = 0; }

void NapUntil(int signal_number, useconds_t microseconds) {
  Handle(signal_number, StopRunning);
  Ready();
  while (is_running) usleep(microseconds);
}

void NapUntilEnd(long) { NapUntil(SIGTERM, 1'000'000 - 1); }
void NapShortlyUntilEnd(long) { NapUntil(SIGINT, 10'000); }
void NapUntilHangup(long) { NapUntil(SIGHUP, 200'000); }

void DoWork() {
  std::unique_lock<std::mutex> lock(mutex);
  while (is_running) {
    work_came.wait(lock, [] { return work > 0 || !is_running; });
    work = 0;
  }
}

void PoolUntilEnd(long) {
  std::thread first(DoWork), second(DoWork);
  NapUntil(SIGTERM, 200'000);
  work_came.notify_all();
  first.join();
  second.join();
}

void SpinUntil(int signal_number) {
  Handle(signal_number, StopRunning);
  Ready();
  while (is_running) {
  }
}

void SpinUntilInterrupt(long) { SpinUntil(SIGINT); }
void SpinUntilEnd(long) { SpinUntil(SIGTERM); }

void SpinForTimeOfProcessor(long) {
  const itimerval far = {{0, 0}, {kFarAway, 0}};
  Must(setitimer(ITIMER_PROF, &far, nullptr) == 0, "setitimer");
  SpinUntil(SIGPROF);
}

void SpinToTheLimit(long) {
  const rlimit far = {kFarAway, 600};
  Must(setrlimit(RLIMIT_CPU, &far) == 0, "setrlimit");
  SpinUntil(SIGXCPU);
}

// What a child has open, and maps when it has loaded what it draws.
struct Frame {
  sem_t ready;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

Frame* Map(int file) {
  void* const memory = mmap(nullptr, sizeof(Frame), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Must(memory != MAP_FAILED, "mmap");
  return static_cast<Frame*>(memory);
}

Frame* ShareLater(int file) {
  Must(ftruncate(file, sizeof(Frame)) == 0, "ftruncate");
  if (Fork() == 0) {
    NapForLong();
    Frame* const frame = Map(file);
    sem_post(&frame->ready);
    pthread_cond_signal(&frame->changed);
    _exit(0);
  }
  return Map(file);
}

void AwaitFrame(long) {
  Frame* const frame = ShareLater(memfd_create("frame", 0));
  sem_init(&frame->ready, 1, 0);
  Ready();
  sem_wait(&frame->ready);
}

void AwaitChange(long) {
  char name[64];
  snprintf(name, sizeof name, "/zoo-daemons-%d", getpid());
  const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  shm_unlink(name);
  Frame* const frame = ShareLater(file);
  pthread_mutexattr_t of_lock;
  pthread_mutexattr_init(&of_lock);
  pthread_mutexattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&frame->lock, &of_lock);
  pthread_condattr_t of_condition;
  pthread_condattr_init(&of_condition);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&frame->changed, &of_condition);
  Ready();
  pthread_mutex_lock(&frame->lock);
  pthread_cond_wait(&frame->changed, &frame->lock);
}

// A modem without one: whoever opens the name of its terminal talks to it.
void ServeTerminal(long) {
  int own = -1, of_clients = -1;
  Must(openpty(&own, &of_clients, nullptr, nullptr, nullptr) == 0, "openpty");
  Ready();
  ReadByte(own);
}

// --- What hangs, with as few names.

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
Meeting meeting;

void* LockBoth(void* is_first) {
  pthread_mutex_t* const first = Number(is_first) != 0 ? &lock_a : &lock_b;
  pthread_mutex_t* const second = first == &lock_a ? &lock_b : &lock_a;
  pthread_mutex_lock(first);
  meeting.Come(2);
  pthread_mutex_lock(second);
  return nullptr;
}

void Crosswise(long) {
  Handle(SIGTERM, StopRunning);
  const pthread_t left = Start("left", LockBoth, 1);
  const pthread_t right = Start("right", LockBoth, 0);
  Ready();
  Join({left, right});
}

void SpinForNobody(long) {
  Ready();
  while (is_running) {
  }
}

// Nobody else has the memory, or the file that it is of.
void AwaitNobody(long) {
  const int file = memfd_create("frame", 0);
  Must(ftruncate(file, sizeof(Frame)) == 0, "ftruncate");
  Frame* const frame = Map(file);
  sem_init(&frame->ready, 1, 0);
  Ready();
  sem_wait(&frame->ready);
}

constexpr Program kPrograms[] = {
    {"crosswise", Crosswise},
    {"spins-for-nobody", SpinForNobody},
    {"semaphore-of-nobody", AwaitNobody},
    {"naps", NapUntilEnd},
    {"naps-shortly", NapShortlyUntilEnd},
    {"naps-until-hangup", NapUntilHangup},
    {"pool", PoolUntilEnd},
    {"spins-until-interrupt", SpinUntilInterrupt},
    {"spins-until-end", SpinUntilEnd},
    {"spins-for-time", SpinForTimeOfProcessor},
    {"spins-to-limit", SpinToTheLimit},
    {"semaphore-mapped-later", AwaitFrame},
    {"condition-mapped-later", AwaitChange},
    {"terminal", ServeTerminal},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

// usage: zoo_naps NAME
// All of a process waits, but for one thread that naps, wakes, and naps again: it has nothing to do
// with that wait, or is the one that ends it now and then.
#include <linux/futex.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/syscall.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

sem_t work_came;
sem_t answer_came;
pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_mutex_t beat_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t beat_stops = PTHREAD_COND_INITIALIZER;
std::atomic<long> beats{0};
volatile int stop = 0;
std::atomic<int> word{0};
int work_pipe[2];

constexpr double kLongNap = 2;
constexpr double kShortNap = 0.3;

// --- Those who only count.

void* Count(void*) {
  for (;;) {
    Nap(kLongNap);
    ++beats;
  }
}

void* CountAndPrint(void*) {
  for (;;) {
    sleep(1);
    fprintf(stderr, "%ld beats at %ld\n", ++beats, static_cast<long>(time(nullptr)));
  }
}

void* CountUntilStopped(void*) {
  while (stop == 0) {
    Nap(1);
    ++beats;
  }
  return nullptr;
}

// A metrics thread that would be told to end by a condition, and counts whenever that has not come.
void* CountWithTimeout(void*) {
  pthread_mutex_lock(&beat_lock);
  for (;;) {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    if (pthread_cond_timedwait(&beat_stops, &beat_lock, &until) == ETIMEDOUT) ++beats;
  }
}

void CountOne() { ++beats; }

void (*volatile each_beat)() = CountOne;

void* CountByPointer(void*) {
  for (;;) {
    Nap(kLongNap);
    each_beat();
  }
}

// --- Who waits.

void* WaitForWork(void*) {
  for (;;) sem_wait(&work_came);
}

void* WaitInQueue(void*) {
  pthread_mutex_lock(&queue_lock);
  for (;;) pthread_cond_wait(&not_empty, &queue_lock);
}

void AwaitAnswer() {
  Ready();
  for (;;) sem_wait(&answer_came);
}

// Of two that wait for each other's semaphore, the other one.
void* AnswerWork(void*) {
  for (;;) {
    sem_wait(&work_came);
    sem_post(&answer_came);
  }
}

// --- Hangs.

void SemBeside(void* (*helper)(void*)) {
  Start("worker", AnswerWork);
  Start("metrics", helper);
  Nap(0.05);
  AwaitAnswer();
}

void Sem(long) { SemBeside(Count); }
void SemPrint(long) { SemBeside(CountAndPrint); }
void SemUntilStopped(long) { SemBeside(CountUntilStopped); }
void SemTimeout(long) { SemBeside(CountWithTimeout); }
void SemPointer(long) { SemBeside(CountByPointer); }

void Pool(long) {
  pthread_t workers[4];
  for (pthread_t& worker : workers) worker = Start("worker", WaitInQueue);
  Start("metrics", Count);
  Nap(0.05);
  Ready();
  for (const pthread_t worker : workers) Join(worker);
}

void Condition(long) {
  Start("metrics", Count);
  Ready();
  WaitInQueue(nullptr);
}

void Future(long) {
  std::promise<int> answer;
  std::future<int> given = answer.get_future();
  std::thread metrics([] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      ++beats;
    }
  });
  Ready();
  printf("%d\n", given.get());
  metrics.join();
}

void TwoHelpers(long) {
  Start("heartbeat", CountWithTimeout);
  Sem(0);
}

// --- Controls.

void* PostEveryThird(void*) {
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 == 0) sem_post(&answer_came);
  }
}

void PostOne() { sem_post(&answer_came); }

void (*volatile give)() = PostOne;

void* PostByPointer(void*) {
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 == 0) give();
  }
}

struct Giver {
  virtual ~Giver() = default;
  virtual void Give() { ++beats; }
};

struct Poster : Giver {
  void Give() override {
    if (++beats % 3 == 0) sem_post(&answer_came);
  }
};

Giver* volatile giver = nullptr;

void* PostByVirtual(void*) {
  for (;;) {
    Nap(kShortNap);
    giver->Give();
  }
}

void PostDeep(int depth) {
  if (depth > 0) return PostDeep(depth - 1);
  if (beats % 3 == 0) sem_post(&answer_came);
}

void* PostFromDeep(void*) {
  for (;;) {
    Nap(kShortNap);
    ++beats;
    PostDeep(5);
  }
}

// After some rounds it leaves the loop, and gives what is waited for behind that; others begin it.
void* PostAtEnd(void*) {
  for (int i = 0; i < 3; ++i) {
    Nap(kShortNap);
    ++beats;
  }
  sem_post(&answer_came);
  return nullptr;
}

void* StartPosters(void*) {
  for (;;) Join(Start("poster", PostAtEnd));
}

struct PostsWhenGone {
  PostsWhenGone() { ++beats; }
  long rounds = 0;
  ~PostsWhenGone() { sem_post(&answer_came); }
};

// What is the thread's own is destroyed when it ends, if it was ever made.
void* PostByDestructor(void*) {
  thread_local PostsWhenGone its;
  for (; its.rounds < 3; ++its.rounds) Nap(kShortNap);
  return nullptr;
}

void* StartDestructors(void*) {
  for (;;) Join(Start("poster", PostByDestructor));
}

void* WakeByCall(void*) {
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 != 0) continue;
    ++word;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

void* SignalByTimeout(void*) {
  pthread_mutex_lock(&beat_lock);
  for (;;) {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 300'000'000;
    if (until.tv_nsec >= 1'000'000'000) ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
    pthread_cond_timedwait(&beat_stops, &beat_lock, &until);
    if (++beats % 3 == 0) pthread_cond_broadcast(&not_empty);
  }
}

void* WritePipe(void*) {
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 == 0) WriteByte(work_pipe[1]);
  }
}

void* PostWhatIsRead(void*) {
  for (;;) {
    ReadByte(work_pipe[0]);
    sem_post(&answer_came);
  }
}

void PostInHandler(int) { sem_post(&answer_came); }

void* RaiseSignal(void*) {
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 == 0) raise(SIGUSR1);
  }
}

int PostInComparison(const void* a, const void* b) {
  Nap(kShortNap);
  if (++beats % 3 == 0) sem_post(&answer_came);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

// It naps in a function that a library has called, and will call again.
void* PostFromLibrary(void*) {
  for (;;) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], PostInComparison);
  }
}

// It naps in a function without a loop, and who called that gives.
void NapAndCount() {
  Nap(kShortNap);
  ++beats;
}

void* PostInCaller(void*) {
  for (;;) {
    NapAndCount();
    NapAndCount();
    sem_post(&answer_came);
  }
}

// It ends in a fault every sixth time, whose handler gives.
volatile int divisor = 1;
sigjmp_buf before_fault;

void PostInFault(int) {
  sem_post(&answer_came);
  siglongjmp(before_fault, 1);
}

void* PostByFault(void*) {
  sigsetjmp(before_fault, 1);
  for (;;) {
    Nap(kShortNap);
    divisor = static_cast<int>(++beats % 6);
    volatile const int part = 100 / divisor;
    (void)part;
  }
}

void ControlBeside(void* (*helper)(void*)) {
  Start("helper", helper);
  AwaitAnswer();
}

void PostsThird(long) { ControlBeside(PostEveryThird); }
void PostsByPointer(long) { ControlBeside(PostByPointer); }
void PostsDeep(long) { ControlBeside(PostFromDeep); }
void PostsAtEnd(long) { ControlBeside(StartPosters); }
void PostsByDestructor(long) { ControlBeside(StartDestructors); }
void PostsFromLibrary(long) { ControlBeside(PostFromLibrary); }
void PostsByFault(long) {
  Handle(SIGFPE, PostInFault, 0);
  ControlBeside(PostByFault);
}
void PostsInCaller(long) { ControlBeside(PostInCaller); }

void PostsByVirtual(long) {
  giver = new Poster;
  ControlBeside(PostByVirtual);
}

void PostsByHandler(long) {
  Handle(SIGUSR1, PostInHandler, SA_RESTART);
  ControlBeside(RaiseSignal);
}

void PostsByPipe(long) {
  MakePipe(work_pipe);
  Start("reader", PostWhatIsRead);
  ControlBeside(WritePipe);
}

void WakesWord(long) {
  Start("helper", WakeByCall);
  Ready();
  for (;;) {
    const int now = word;
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, now, nullptr, nullptr, 0);
  }
}

void SignalsByTimeout(long) {
  Start("helper", SignalByTimeout);
  Ready();
  WaitInQueue(nullptr);
}

// A pool that idles while the main thread naps: it will give them work.
void MainGives(long) {
  for (int i = 0; i < 4; ++i) Start("worker", WaitForWork);
  Ready();
  for (;;) {
    Nap(kShortNap);
    if (++beats % 3 == 0) sem_post(&work_came);
  }
}

void MainNaps(long) {
  for (int i = 0; i < 4; ++i) Start("worker", WaitInQueue);
  Start("metrics", Count);
  Ready();
  for (;;) Nap(1);
}

// The promise goes with the thread's function.
void BreaksPromise(long) {
  Ready();
  for (;;) {
    std::promise<int> answer;
    std::future<int> given = answer.get_future();
    std::thread helper([kept = std::move(answer)] {
      for (int i = 0; i < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    });
    given.wait();
    helper.join();
  }
}

void KeepsPromise(long) {
  Ready();
  for (;;) {
    std::promise<int> answer;
    std::future<int> given = answer.get_future();
    std::thread helper([&answer] {
      for (int i = 0; i < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      answer.set_value(1);
    });
    given.wait();
    helper.join();
  }
}

void NotifiesByFunction(long) {
  std::mutex mutex;
  std::condition_variable came;
  const std::function<void()> tell = [&] {
    if (++beats % 3 == 0) came.notify_one();
  };
  std::thread helper([&tell] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      tell();
    }
  });
  Ready();
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) came.wait(lock);
}

const Program kPrograms[] = {
    {"sem", Sem},
    {"sem-print", SemPrint},
    {"sem-until-stopped", SemUntilStopped},
    {"sem-timeout", SemTimeout},
    {"sem-pointer", SemPointer},
    {"pool", Pool},
    {"condition", Condition},
    {"future", Future},
    {"two-helpers", TwoHelpers},
    {"posts-third", PostsThird},
    {"posts-by-pointer", PostsByPointer},
    {"posts-by-virtual", PostsByVirtual},
    {"posts-deep", PostsDeep},
    {"posts-at-end", PostsAtEnd},
    {"posts-by-destructor", PostsByDestructor},
    {"posts-from-library", PostsFromLibrary},
    {"posts-in-caller", PostsInCaller},
    {"posts-by-fault", PostsByFault},
    {"posts-by-handler", PostsByHandler},
    {"posts-by-pipe", PostsByPipe},
    {"wakes-word", WakesWord},
    {"signals-by-timeout", SignalsByTimeout},
    {"main-gives", MainGives},
    {"main-naps", MainNaps},
    {"breaks-promise", BreaksPromise},
    {"keeps-promise", KeepsPromise},
    {"notifies-by-function", NotifiesByFunction},
};

}  // namespace

int main(int count, char** arguments) {
  sem_init(&work_came, 0, 0);
  sem_init(&answer_came, 0, 0);
  return RunProgram(kPrograms, count, arguments);
}

// usage: zoo_partial NAME
// Some threads of many hang for good, while a server accepts, a heartbeat ticks and a third
// computes. Or they only wait for these.
#include <linux/futex.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_c = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_d = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t ring_locks[8];
pthread_mutex_t inner_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t table_a = PTHREAD_RWLOCK_INITIALIZER;
std::shared_mutex config_lock;
std::once_flag once_a;
std::once_flag once_b;
std::atomic<int> word_a{0};
std::atomic<int> word_b{0};
std::promise<int> answer;
sem_t sem_a;
sem_t sem_b;
int work_pipe[2];
volatile int ready_flag = 0;
volatile unsigned long sum = 0;
long heartbeats = 0;
pthread_t joined[2];

struct Node {
  Node* next;
  long value;
};
Node* list_head;

Meeting have_first;
Meeting have_second;

// --- The innocent.

int Listen() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
           listen(listening, 8) == 0,
       "listen");
  return listening;
}

void* Serve(void*) {
  const int listening = Listen();
  for (;;) close(accept(listening, nullptr, nullptr));
}

void* Tick(void*) {
  for (;;) {
    Nap(0.02);
    pthread_mutex_lock(&log_lock);
    ++heartbeats;
    pthread_mutex_unlock(&log_lock);
  }
}

void* Compute(void*) {
  for (unsigned long i = 0;; ++i) sum = sum * 7 + i % 13;
}

void* WaitForJobs(void*) {
  pthread_mutex_lock(&inner_lock);
  for (;;) pthread_cond_wait(&not_empty, &inner_lock);
}

void StartCrowd() {
  Start("server", Serve);
  Start("heartbeat", Tick);
  Start("computer", Compute);
}

void StartQuietCrowd() {
  Start("server", Serve);
  Start("heartbeat", Tick);
}

// --- Those that hang.

void TakeBoth(pthread_mutex_t* first, pthread_mutex_t* second, Meeting* meeting) {
  pthread_mutex_lock(first);
  meeting->Come(2);
  pthread_mutex_lock(second);
}

void* TakeLeft(void*) {
  TakeBoth(&lock_a, &lock_b, &have_first);
  return nullptr;
}

void* TakeRight(void*) {
  TakeBoth(&lock_b, &lock_a, &have_first);
  return nullptr;
}

void* TakeUp(void*) {
  TakeBoth(&lock_c, &lock_d, &have_second);
  return nullptr;
}

void* TakeDown(void*) {
  TakeBoth(&lock_d, &lock_c, &have_second);
  return nullptr;
}

void StayReady() {
  Ready();
  for (;;) Nap(0.1);  // as a main thread that looks after others
}

void StayQuiet() {
  Ready();
  Serve(nullptr);
}

void Abba(long) {
  StartCrowd();
  Start("left", TakeLeft);
  Start("right", TakeRight);
  StayReady();
}

void AbbaOfPool(long) {
  StartQuietCrowd();
  for (int i = 0; i < 30; ++i) Start("worker", WaitForJobs);
  Start("left", TakeLeft);
  Start("right", TakeRight);
  StayQuiet();
}

void TwoAbbas(long) {
  StartQuietCrowd();
  Start("left", TakeLeft);
  Start("right", TakeRight);
  Start("up", TakeUp);
  Start("down", TakeDown);
  StayQuiet();
}

void* TakeNext(void* seat) {
  TakeBoth(&ring_locks[Number(seat)], &ring_locks[(Number(seat) + 1) % 2], &have_first);
  return nullptr;
}

void AbbaInherit(long) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  for (pthread_mutex_t& lock : ring_locks) pthread_mutex_init(&lock, &attributes);
  StartQuietCrowd();
  Start("left", TakeNext, 0);
  Start("right", TakeNext, 1);
  StayQuiet();
}

// Who waits for one of the two stands in the verdict, or is counted there.
void AbbaWithVictims(long) {
  StartQuietCrowd();
  Start("left", TakeLeft);
  Start("right", TakeRight);
  Nap(0.1);
  for (int i = 0; i < 5; ++i) {
    Start("victim", [](void*) -> void* {
      pthread_mutex_lock(&lock_a);
      return nullptr;
    });
  }
  StayQuiet();
}

void* LockTwice(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void SelfLock(long) {
  StartCrowd();
  Start("worker", LockTwice);
  StayReady();
}

void* ReadThenLock(void*) {
  pthread_rwlock_rdlock(&table_a);
  have_first.Come(2);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void* LockThenWrite(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  pthread_rwlock_wrlock(&table_a);
  return nullptr;
}

void ReadAgainstMutex(long) {
  StartQuietCrowd();
  Start("report", ReadThenLock);
  Start("refresh", LockThenWrite);
  StayQuiet();
}

void* UpgradeConfig(void*) {
  config_lock.lock_shared();
  config_lock.lock();
  return nullptr;
}

void SharedUpgrade(long) {
  StartQuietCrowd();
  Start("reloader", UpgradeConfig);
  StayQuiet();
}

void* DownLeft(void*) {
  sem_wait(&sem_a);
  have_first.Come(2);
  sem_wait(&sem_b);
  return nullptr;
}

void* DownRight(void*) {
  sem_wait(&sem_b);
  have_first.Come(2);
  sem_wait(&sem_a);
  return nullptr;
}

void SemaphoresCrossed(long) {
  sem_init(&sem_a, 0, 1);
  sem_init(&sem_b, 0, 1);
  StartQuietCrowd();
  Start("left", DownLeft);
  Start("right", DownRight);
  StayQuiet();
}

long Futex(std::atomic<int>* word, int operation, int value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void LockWord(std::atomic<int>* word) {
  int free = 0;
  if (word->compare_exchange_strong(free, 1)) return;
  while (word->exchange(2) != 0) Futex(word, FUTEX_WAIT, 2);
}

void UnlockWord(std::atomic<int>* word) {
  if (word->exchange(0) == 2) Futex(word, FUTEX_WAKE, 1);
}

void* UpdateIndex(void*) {
  LockWord(&word_a);
  have_first.Come(2);
  LockWord(&word_b);
  return nullptr;
}

void* CompactStore(void*) {
  LockWord(&word_b);
  have_first.Come(2);
  LockWord(&word_a);
  return nullptr;
}

void WordsCrossed(long) {
  StartQuietCrowd();
  Start("index", UpdateIndex);
  Start("store", CompactStore);
  StayQuiet();
}

void InitialiseLog();

void InitialiseConfig() {
  have_first.Come(2);
  std::call_once(once_b, InitialiseLog);
}

void InitialiseLog() {
  have_first.Come(2);
  std::call_once(once_a, InitialiseConfig);
}

void* OnceLeft(void*) {
  std::call_once(once_a, InitialiseConfig);
  return nullptr;
}

void* OnceRight(void*) {
  std::call_once(once_b, InitialiseLog);
  return nullptr;
}

void OnceCrossed(long) {
  StartQuietCrowd();
  Start("left", OnceLeft);
  Start("right", OnceRight);
  StayQuiet();
}

void* FindInCircle(void*) {
  Node* node = list_head;
  while (node != nullptr && node->value != -1) node = node->next;
  return node;
}

void CircularList(long) {
  auto* const first = new Node{nullptr, 1};
  first->next = new Node{new Node{first, 3}, 2};
  list_head = first;
  StartQuietCrowd();
  Start("searcher", FindInCircle);
  StayQuiet();
}

void* JoinOther(void* seat) {
  have_first.Come(3);
  Join(joined[1 - Number(seat)]);
  return nullptr;
}

void JoinRing(long) {
  StartQuietCrowd();
  joined[0] = Start("one", JoinOther, 0);
  joined[1] = Start("other", JoinOther, 1);
  have_first.Come(3);
  StayQuiet();
}

void* LockAndEnd(void*) {
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void* LockAfterEnd(void*) {
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void OwnerEnded(long) {
  StartCrowd();
  Join(Start("owner", LockAndEnd));
  Start("worker", LockAfterEnd);
  StayReady();
}

void* ReadWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  ReadByte(work_pipe[0]);
  return nullptr;
}

void* LockBeforeWrite(void*) {
  have_first.Come(2);
  pthread_mutex_lock(&lock_a);
  WriteByte(work_pipe[1]);
  return nullptr;
}

void PipeAgainstMutex(long) {
  MakePipe(work_pipe);
  StartQuietCrowd();
  Start("reader", ReadWithLock);
  Start("writer", LockBeforeWrite);
  StayQuiet();
}

void* WaitForChild(void* child) {
  waitpid(static_cast<pid_t>(Number(child)), nullptr, 0);
  return nullptr;
}

// One thread waits for a child that hangs, and its server goes on.
void ChildOfServer(long) {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    const pthread_t left = Start("left", TakeLeft);
    const pthread_t right = Start("right", TakeRight);
    Join({left, right});
  }
  StartQuietCrowd();
  Start("reaper", WaitForChild, child);
  StayQuiet();
}

// Each of many threads counts under a lock of its own, but two have hung.
void* CountWithTwo(void*) {
  for (;;) {
    pthread_mutex_lock(&lock_c);
    pthread_mutex_lock(&lock_d);
    ++heartbeats;
    pthread_mutex_unlock(&lock_d);
    pthread_mutex_unlock(&lock_c);
    usleep(100);
  }
}

void AbbaAmongWorkers(long) {
  for (int i = 0; i < 8; ++i) Start("worker", CountWithTwo);
  Start("left", TakeLeft);
  Start("right", TakeRight);
  StayReady();
}

// --- Controls: they wait for the innocent.

void PoolOfCrowd(long) {
  for (int i = 0; i < 30; ++i) Start("worker", WaitForJobs);
  StartCrowd();
  StayReady();
}

void* ComputeWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  return Compute(nullptr);
}

void* ServeWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  return Serve(nullptr);
}

void* NapWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  NapForLong();
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void* TakeLate(void*) {
  have_first.Come(2);
  pthread_mutex_lock(&lock_a);
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void HeldBy(void* (*holder)(void*)) {
  StartQuietCrowd();
  Start("holder", holder);
  Start("waiter", TakeLate);
  StayQuiet();
}

void HeldByComputer(long) { HeldBy(ComputeWithLock); }
void HeldByServer(long) { HeldBy(ServeWithLock); }
void HeldBySleeper(long) { HeldBy(NapWithLock); }

void ReadHeldByServer(long) {
  StartQuietCrowd();
  pthread_rwlock_rdlock(&table_a);
  Start("writer", [](void*) -> void* {
    pthread_rwlock_wrlock(&table_a);
    return nullptr;
  });
  StayQuiet();
}

void* PostNowAndThen(void*) {
  for (;;) {
    Nap(0.4);
    sem_post(&sem_a);
    sem_post(&sem_b);
  }
}

void SemaphoresPosted(long) {
  sem_init(&sem_a, 0, 1);
  sem_init(&sem_b, 0, 1);
  StartQuietCrowd();
  Start("left", DownLeft);
  Start("right", DownRight);
  Start("poster", PostNowAndThen);
  StayQuiet();
}

void* ComputeWithWord(void*) {
  LockWord(&word_a);
  have_first.Come(2);
  return Compute(nullptr);
}

void* ServeWithWord(void*) {
  LockWord(&word_a);
  have_first.Come(2);
  return Serve(nullptr);
}

void* TakeWordLate(void*) {
  have_first.Come(2);
  LockWord(&word_a);
  UnlockWord(&word_a);
  return nullptr;
}

void WordHeldByComputer(long) {
  StartQuietCrowd();
  Start("holder", ComputeWithWord);
  Start("waiter", TakeWordLate);
  StayQuiet();
}

void WordHeldByServer(long) {
  StartQuietCrowd();
  Start("holder", ServeWithWord);
  Start("waiter", TakeWordLate);
  StayQuiet();
}

void OnceServes(long) {
  StartQuietCrowd();
  for (int i = 0; i < 2; ++i) {
    Start("first-user", [](void*) -> void* {
      std::call_once(once_a, [] { Serve(nullptr); });
      return nullptr;
    });
  }
  StayQuiet();
}

void FutureOfServer(long) {
  StartQuietCrowd();
  Start("asker", [](void*) -> void* {
    answer.get_future().wait();
    return nullptr;
  });
  Ready();
  close(accept(Listen(), nullptr, nullptr));
  answer.set_value(7);
}

void FlagOfHeartbeat(long) {
  Start("spinner", [](void*) -> void* {
    for (int seen = 0;; seen = ready_flag) {
      while (ready_flag == seen) {
      }
    }
  });
  StartQuietCrowd();
  Ready();
  for (;;) {
    Nap(0.1);
    ready_flag = ready_flag + 1;
  }
}

void PipeOfHeartbeat(long) {
  MakePipe(work_pipe);
  StartQuietCrowd();
  Start("reader", [](void*) -> void* {
    for (;;) ReadByte(work_pipe[0]);
  });
  Ready();
  for (;;) {
    Nap(0.3);
    WriteByte(work_pipe[1]);
  }
}

void SlowTurns(long) {
  StartCrowd();
  for (int i = 0; i < 3; ++i) {
    Start("turn", [](void*) -> void* {
      for (;;) {
        pthread_mutex_lock(&lock_a);
        Nap(0.5);
        pthread_mutex_unlock(&lock_a);
        Nap(0.001);
      }
    });
  }
  StayReady();
}

void ChildOfServerSleeps(long) {
  const pid_t child = Fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  StartQuietCrowd();
  Start("reaper", WaitForChild, child);
  StayQuiet();
}

void WorkersInOrder(long) {
  for (int i = 0; i < 10; ++i) Start("worker", CountWithTwo);
  StartQuietCrowd();
  StayReady();
}

void ConditionOfServer(long) {
  StartQuietCrowd();
  Start("consumer", WaitForJobs);
  Ready();
  const int listening = Listen();
  for (;;) {
    close(accept(listening, nullptr, nullptr));
    pthread_cond_signal(&not_empty);
  }
}

const Program kPrograms[] = {
    {"abba", Abba},
    {"abba-pool", AbbaOfPool},
    {"two-abbas", TwoAbbas},
    {"abba-inherit", AbbaInherit},
    {"abba-victims", AbbaWithVictims},
    {"abba-workers", AbbaAmongWorkers},
    {"self-lock", SelfLock},
    {"rwlock-mutex", ReadAgainstMutex},
    {"shared-upgrade", SharedUpgrade},
    {"sem-crossed", SemaphoresCrossed},
    {"words-crossed", WordsCrossed},
    {"once-crossed", OnceCrossed},
    {"circular-list", CircularList},
    {"join-ring", JoinRing},
    {"owner-ended", OwnerEnded},
    {"pipe-mutex", PipeAgainstMutex},
    {"child", ChildOfServer},
    // Controls.
    {"pool", PoolOfCrowd},
    {"held-computer", HeldByComputer},
    {"held-server", HeldByServer},
    {"held-sleeper", HeldBySleeper},
    {"read-held-server", ReadHeldByServer},
    {"sem-posted", SemaphoresPosted},
    {"word-computer", WordHeldByComputer},
    {"word-server", WordHeldByServer},
    {"once-serves", OnceServes},
    {"future-server", FutureOfServer},
    {"flag-heartbeat", FlagOfHeartbeat},
    {"pipe-heartbeat", PipeOfHeartbeat},
    {"slow-turns", SlowTurns},
    {"child-sleeps", ChildOfServerSleeps},
    {"workers-in-order", WorkersInOrder},
    {"cond-server", ConditionOfServer},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

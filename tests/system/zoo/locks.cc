// usage: zoo_locks NAME [NUMBER]
// Locks, conditions, semaphores, barriers, futures and joins of threads of one process, that hang,
// and such as only wait or are handed over. The names of globals and of functions are what
// `hangscope why` has to say.
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t lock_a;
pthread_mutex_t lock_b;
pthread_mutex_t ring_locks[64];
pthread_mutex_t outer_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t inner_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t table_a = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t table_b = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t fair_table = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_barrier_t phase;
sem_t sem_a;
sem_t sem_b;
std::mutex accounts;
std::mutex journal;
std::recursive_mutex parser_lock;
std::recursive_mutex symbols_lock;
std::timed_mutex disk_lock;
std::timed_mutex cache_lock;
std::shared_mutex config_lock;
std::shared_mutex routes_lock;
std::condition_variable work_came;
std::condition_variable_any any_work_came;
std::latch all_started(3);
std::barrier<> round_done(4);
std::counting_semaphore<8> slots_a(1);
std::counting_semaphore<8> slots_b(1);
std::binary_semaphore go_signal(0);
std::once_flag once_a;
std::once_flag once_b;
std::promise<int> answer;
std::promise<int> left_result;
std::promise<int> right_result;
std::atomic<int> generation{0};
std::atomic<int> word_a{0};
std::atomic<int> word_b{0};
#ifdef _OPENMP
omp_lock_t omp_a;
omp_lock_t omp_b;
#endif
int hand_pipe[2];
int hand_event;
volatile bool stop = false;
volatile unsigned long sum = 0;
long counter = 0;
FILE* log_a;
FILE* log_b;
pthread_t ring_threads[8];

Meeting have_first;
Meeting are_there;

// --- Mutexes.

struct MutexKind {
  int type = PTHREAD_MUTEX_NORMAL;
  int robust = PTHREAD_MUTEX_STALLED;
  int protocol = PTHREAD_PRIO_NONE;
  int shared = PTHREAD_PROCESS_PRIVATE;
};

void Make(pthread_mutex_t* mutex, MutexKind kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind.type);
  pthread_mutexattr_setrobust(&attributes, kind.robust);
  pthread_mutexattr_setprotocol(&attributes, kind.protocol);
  pthread_mutexattr_setpshared(&attributes, kind.shared);
  pthread_mutex_init(mutex, &attributes);
}

void* TakeLeft(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  pthread_mutex_lock(&lock_b);
  return nullptr;
}

void* TakeRight(void*) {
  pthread_mutex_lock(&lock_b);
  have_first.Come(2);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void Abba(MutexKind kind) {
  Make(&lock_a, kind);
  Make(&lock_b, kind);
  const pthread_t left = Start("left", TakeLeft);
  const pthread_t right = Start("right", TakeRight);
  Ready();
  Join({left, right});
}

void AbbaNormal(long) { Abba({}); }
void AbbaRecursive(long) { Abba({PTHREAD_MUTEX_RECURSIVE}); }
void AbbaErrorCheck(long) { Abba({PTHREAD_MUTEX_ERRORCHECK}); }
void AbbaAdaptive(long) { Abba({PTHREAD_MUTEX_ADAPTIVE_NP}); }
void AbbaRobust(long) { Abba({PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST}); }
void AbbaInherit(long) {
  Abba({PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT});
}
void AbbaShared(long) {
  Abba({PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED});
}

long ring_size = 0;

void* TakeNext(void* seat) {
  const long own = Number(seat);
  pthread_mutex_lock(&ring_locks[own]);
  have_first.Come(static_cast<int>(ring_size));
  pthread_mutex_lock(&ring_locks[(own + 1) % ring_size]);
  return nullptr;
}

void Ring(long size) {
  ring_size = size;
  std::vector<pthread_t> threads;
  for (long i = 0; i < size; ++i) threads.push_back(Start("guest", TakeNext, i));
  Ready();
  for (const pthread_t thread : threads) Join(thread);
}

void LockTwice(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  Ready();
  pthread_mutex_lock(mutex);
}

void SelfLock(long) { LockTwice(&lock_a); }

void SelfLockInherit(long) {
  Make(&lock_a, {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT});
  LockTwice(&lock_a);
}

// The lock is member of what a thread has on its heap.
struct Account {
  long balance = 100;
  std::mutex guard;
};
Account* savings;
Account* current;

void Transfer(Account* from, Account* to) {
  const std::lock_guard<std::mutex> first(from->guard);
  have_first.Come(2);
  const std::lock_guard<std::mutex> second(to->guard);
  to->balance += 1;
}

void AbbaOnHeap(long) {
  savings = new Account;
  current = new Account;
  std::thread left([] { Transfer(savings, current); });
  std::thread right([] { Transfer(current, savings); });
  Ready();
  left.join();
  right.join();
}

void* LockAndJoin(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

namespace {

void PayIn() {
  const std::lock_guard<std::mutex> first(accounts);
  have_first.Come(2);
  const std::lock_guard<std::mutex> second(journal);
}

void PayOut() {
  const std::lock_guard<std::mutex> first(journal);
  have_first.Come(2);
  const std::lock_guard<std::mutex> second(accounts);
}

}  // namespace

// Most functions of C++ have no external linkage.
void AbbaAnonymous(long) {
  std::thread left(PayIn);
  std::thread right(PayOut);
  Ready();
  left.join();
  right.join();
}

void JoinWithLock(long) {
  pthread_mutex_lock(&lock_a);
  const pthread_t worker = Start("worker", LockAndJoin);
  Ready();
  Join(worker);
}

// --- Locks of the standard library.

template <typename Mutex>
void CrossTwo(Mutex* one, Mutex* other) {
  const auto take = [](Mutex* first, Mutex* second) {
    first->lock();
    have_first.Come(2);
    second->lock();
  };
  std::thread left(take, one, other);
  std::thread right(take, other, one);
  Ready();
  left.join();
  right.join();
}

void StdMutex(long) { CrossTwo(&accounts, &journal); }
void StdRecursive(long) { CrossTwo(&parser_lock, &symbols_lock); }
void StdTimed(long) { CrossTwo(&disk_lock, &cache_lock); }
void StdShared(long) { CrossTwo(&config_lock, &routes_lock); }

void ReloadConfig() {
  const std::shared_lock<std::shared_mutex> reading(config_lock);
  Ready();
  const std::unique_lock<std::shared_mutex> writing(config_lock);
}

void StdSharedUpgrade(long) { ReloadConfig(); }

void ScopedAgainstLock(long) {
  std::thread left([] {
    const std::unique_lock<std::mutex> first(accounts);
    have_first.Come(2);
    const std::shared_lock<std::shared_mutex> second(config_lock);
  });
  std::thread right([] {
    const std::unique_lock<std::shared_mutex> first(config_lock);
    have_first.Come(2);
    const std::unique_lock<std::mutex> second(accounts);
  });
  Ready();
  left.join();
  right.join();
}

// --- Read-write locks.

void* WriteBoth(void* reversed) {
  pthread_rwlock_wrlock(Number(reversed) ? &table_b : &table_a);
  have_first.Come(2);
  pthread_rwlock_wrlock(Number(reversed) ? &table_a : &table_b);
  return nullptr;
}

void WriteLocks(long) {
  const pthread_t left = Start("left", WriteBoth, 0);
  const pthread_t right = Start("right", WriteBoth, 1);
  Ready();
  Join({left, right});
}

void UpgradeTable(pthread_rwlock_t* table, int count) {
  pthread_rwlock_rdlock(table);
  have_first.Come(count);
  pthread_rwlock_wrlock(table);
}

void SelfUpgrade(long) {
  Ready();
  UpgradeTable(&table_a, 1);
}

void* UpgradeInThread(void*) {
  UpgradeTable(&table_a, 2);
  return nullptr;
}

void TwoUpgrade(long) {
  const pthread_t left = Start("left", UpgradeInThread);
  const pthread_t right = Start("right", UpgradeInThread);
  Ready();
  Join({left, right});
}

void* WriteFairTable(void*) {
  pthread_rwlock_wrlock(&fair_table);
  pthread_rwlock_unlock(&fair_table);
  return nullptr;
}

void ReadFairTableAgain() { pthread_rwlock_rdlock(&fair_table); }

void ReadTwice(long) {
  pthread_rwlock_rdlock(&fair_table);
  Start("writer", WriteFairTable);
  Nap(0.1);  // until the writer waits; a reader that comes later has to wait behind it
  Ready();
  ReadFairTableAgain();
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
  const pthread_t report = Start("report", ReadThenLock);
  const pthread_t refresh = Start("refresh", LockThenWrite);
  Ready();
  Join({report, refresh});
}

// --- Semaphores.

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
  const pthread_t left = Start("left", DownLeft);
  const pthread_t right = Start("right", DownRight);
  Ready();
  Join({left, right});
}

// Of a name that nobody can open any more.
sem_t* OwnNamedSemaphore(int value) {
  char name[64];
  snprintf(name, sizeof name, "/hangscope-zoo-%d-%d", getpid(), value);
  sem_t* const semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, value);
  Must(semaphore != SEM_FAILED, "sem_open");
  sem_unlink(name);
  return semaphore;
}

void WaitForToken(sem_t* semaphore) { sem_wait(semaphore); }

void SemaphoreUnlinked(long) {
  sem_t* const token = OwnNamedSemaphore(0);
  Ready();
  WaitForToken(token);
}

void WaitForItem() { sem_wait(&sem_a); }

void SemaphoreNeverPosted(long) {
  sem_init(&sem_a, 0, 0);
  Ready();
  WaitForItem();
}

void* PostUnderLock(void*) {
  pthread_mutex_lock(&lock_a);
  sem_post(&sem_a);
  return nullptr;
}

void SemaphoreAgainstMutex(long) {
  sem_init(&sem_a, 0, 0);
  pthread_mutex_lock(&lock_a);
  Start("poster", PostUnderLock);
  Ready();
  WaitForItem();
}

void AcquireBoth(std::counting_semaphore<8>* first, std::counting_semaphore<8>* second) {
  first->acquire();
  have_first.Come(2);
  second->acquire();
}

void CountingCrossed(long) {
  std::thread left(AcquireBoth, &slots_a, &slots_b);
  std::thread right(AcquireBoth, &slots_b, &slots_a);
  Ready();
  left.join();
  right.join();
}

void WaitForGo() { go_signal.acquire(); }

void BinaryNeverReleased(long) {
  Ready();
  WaitForGo();
}

// --- Conditions.

void* ConsumeOne(void*) {
  pthread_mutex_lock(&inner_lock);
  are_there.Come(1);
  pthread_cond_wait(&not_empty, &inner_lock);
  return nullptr;
}

void ConditionLost(long) {
  pthread_cond_signal(&not_empty);  // before anybody waits
  const pthread_t consumer = Start("consumer", ConsumeOne);
  Ready();
  Join(consumer);
}

void* ProduceOne(void*) {
  pthread_mutex_lock(&inner_lock);
  for (;;) pthread_cond_wait(&not_full, &inner_lock);
}

// Each waits for what the other would signal after that.
void ConditionsCrossed(long) {
  const pthread_t consumer = Start("consumer", ConsumeOne);
  const pthread_t producer = Start("producer", ProduceOne);
  Ready();
  Join({consumer, producer});
}

void* PutUnderOuter(void*) {
  pthread_mutex_lock(&outer_lock);
  pthread_mutex_lock(&inner_lock);
  pthread_cond_signal(&not_empty);
  return nullptr;
}

void* GetUnderOuter(void*) {
  pthread_mutex_lock(&outer_lock);
  pthread_mutex_lock(&inner_lock);
  are_there.Come(1);
  for (;;) pthread_cond_wait(&not_empty, &inner_lock);
}

// The producer needs the lock that the consumer keeps in its wait.
void NestedMonitor(long) {
  const pthread_t getter = Start("getter", GetUnderOuter);
  Nap(0.05);
  const pthread_t putter = Start("putter", PutUnderOuter);
  Ready();
  Join({getter, putter});
}

void WaitForWork() {
  std::unique_lock<std::mutex> lock(accounts);
  work_came.wait(lock);
}

void StdConditionLost(long) {
  work_came.notify_all();
  std::thread worker(WaitForWork);
  Ready();
  worker.join();
}

void WaitForAnyWork() {
  std::shared_lock<std::shared_mutex> lock(config_lock);
  any_work_came.wait(lock);
}

void StdAnyLost(long) {
  Ready();
  WaitForAnyWork();
}

template <typename Item>
struct BoundedQueue {
  void Push(Item item) {
    std::unique_lock<std::mutex> lock(guard);
    has_room.wait(lock, [&] { return items.size() < 4; });
    items.push_back(item);
    has_items.notify_one();
  }
  Item Pop() {
    std::unique_lock<std::mutex> lock(guard);
    has_items.wait(lock, [&] { return !items.empty(); });
    const Item item = items.front();
    items.pop_front();
    has_room.notify_one();
    return item;
  }
  std::mutex guard;
  std::condition_variable has_room;
  std::condition_variable has_items;
  std::deque<Item> items;
};
BoundedQueue<int> requests;
BoundedQueue<int> replies;

void AskForEver() {
  for (int i = 0;; ++i) requests.Push(i);  // and only then read the replies
}

void ReplyForEver() {
  for (;;) {
    const int request = requests.Pop();
    replies.Push(2 * request);
  }
}

void QueuesFull(long) {
  std::thread asker(AskForEver);
  std::thread replier(ReplyForEver);
  Ready();
  asker.join();
  replier.join();
}

BoundedQueue<std::packaged_task<int()>*> tasks;

void RunTasks() {
  for (;;) (*tasks.Pop())();
}

int RunOuterTask() {
  std::packaged_task<int()> inner([] { return 7; });
  std::future<int> result = inner.get_future();
  have_first.Come(2);
  tasks.Push(&inner);
  return result.get();  // for which no worker is left
}

void PoolExhausted(long) {
  std::packaged_task<int()> one(RunOuterTask);
  std::packaged_task<int()> other(RunOuterTask);
  std::future<int> done = one.get_future();
  std::thread worker_1(RunTasks);
  std::thread worker_2(RunTasks);
  tasks.Push(&one);
  tasks.Push(&other);
  Ready();
  done.get();
}

// --- Latches, barriers, once, statics.

void ArriveAndWait() { all_started.arrive_and_wait(); }

void LatchShort(long) {
  std::thread one(ArriveAndWait);
  std::thread other(ArriveAndWait);
  Ready();
  one.join();
  other.join();
}

void FinishRound() { round_done.arrive_and_wait(); }

void StdBarrierShort(long) {
  std::thread threads[3] = {std::thread(FinishRound), std::thread(FinishRound),
                            std::thread(FinishRound)};
  Ready();
  for (std::thread& thread : threads) thread.join();
}

void* EndPhase(void*) {
  pthread_barrier_wait(&phase);
  return nullptr;
}

void BarrierShort(long) {
  pthread_barrier_init(&phase, nullptr, 4);
  const pthread_t one = Start("one", EndPhase);
  const pthread_t two = Start("two", EndPhase);
  const pthread_t three = Start("three", EndPhase);
  Ready();
  Join({one, two, three});
}

void* EndPhaseWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_barrier_wait(&phase);
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

// Who waits in the barrier has the lock without which the other does not come there.
void BarrierAgainstMutex(long) {
  pthread_barrier_init(&phase, nullptr, 2);
  const pthread_t one = Start("one", EndPhaseWithLock);
  const pthread_t two = Start("two", EndPhaseWithLock);
  Ready();
  Join({one, two});
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

void OnceCrossed(long) {
  std::thread left([] { std::call_once(once_a, InitialiseConfig); });
  std::thread right([] { std::call_once(once_b, InitialiseLog); });
  Ready();
  left.join();
  right.join();
}

void InitialiseAgain() { std::call_once(once_a, InitialiseAgain); }

void OnceItself(long) {
  Ready();
  std::call_once(once_a, InitialiseAgain);
}

struct Registry;
struct Plugin;
Registry& TheRegistry();
Plugin& ThePlugin();

struct Registry {
  Registry() {
    have_first.Come(2);
    ThePlugin();
  }
};

struct Plugin {
  Plugin() {
    have_first.Come(2);
    TheRegistry();
  }
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

Plugin& ThePlugin() {
  static Plugin plugin;
  return plugin;
}

void StaticsCrossed(long) {
  std::thread left([] { TheRegistry(); });
  std::thread right([] { ThePlugin(); });
  Ready();
  left.join();
  right.join();
}

struct Settings {
  Settings() {
    have_first.Come(2);
    const std::lock_guard<std::mutex> lock(journal);
  }
};

void TheSettings() { static Settings settings; }

void StaticAgainstMutex(long) {
  std::thread left(TheSettings);
  std::thread right([] {
    const std::lock_guard<std::mutex> lock(journal);
    have_first.Come(2);
    TheSettings();
  });
  Ready();
  left.join();
  right.join();
}

// --- OpenMP.

#ifdef _OPENMP

void OmpLocks(long) {
  omp_init_lock(&omp_a);
  omp_init_lock(&omp_b);
  Ready();
#pragma omp parallel num_threads(2)
  {
    const bool first = omp_get_thread_num() == 0;
    omp_set_lock(first ? &omp_a : &omp_b);
    have_first.Come(2);
    omp_set_lock(first ? &omp_b : &omp_a);
  }
}

void UpdateTotals() {
#pragma omp critical(totals)
  {
    have_first.Come(2);
#pragma omp critical(details)
    sum = sum + 1;
  }
}

void UpdateDetails() {
#pragma omp critical(details)
  {
    have_first.Come(2);
#pragma omp critical(totals)
    sum = sum + 1;
  }
}

void OmpCritical(long) {
  Ready();
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0)
      UpdateTotals();
    else
      UpdateDetails();
  }
}

void OmpReduce() {
#pragma omp barrier
}

// One thread waits for another one's lock, and does not come to the barrier.
void OmpBarrier(long) {
  omp_init_lock(&omp_a);
  Ready();
#pragma omp parallel num_threads(3)
  {
    if (omp_get_thread_num() == 2) {
      omp_set_lock(&omp_a);
      have_first.Come(2);
    } else if (omp_get_thread_num() == 1) {
      have_first.Come(2);
      omp_set_lock(&omp_a);
    }
    OmpReduce();
  }
}

void OmpLoop(long) {
  Ready();
  for (int pass = 0;; ++pass) {
    unsigned long total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(2)
    for (long i = 0; i < 1'000'000; ++i) total += static_cast<unsigned long>(i);
    Must(total == 499999500000, "sum");
  }
}

#else

void SkipOmp(long) {
  puts("skip: no OpenMP here");
  fflush(stdout);
}
constexpr auto OmpLocks = SkipOmp;
constexpr auto OmpCritical = SkipOmp;
constexpr auto OmpBarrier = SkipOmp;
constexpr auto OmpLoop = SkipOmp;

#endif

// --- Futures and joins.

int GetAnswer() { return answer.get_future().get(); }

void FutureNeverSet(long) {
  std::thread asker(GetAnswer);
  Ready();
  asker.join();
}

void ComputeLeft() { left_result.set_value(right_result.get_future().get()); }
void ComputeRight() { right_result.set_value(left_result.get_future().get()); }

void FuturesCrossed(long) {
  std::thread left(ComputeLeft);
  std::thread right(ComputeRight);
  Ready();
  left.join();
  right.join();
}

std::shared_future<int> own_future;

int WaitForOwnResult() {
  have_first.Come(2);
  return own_future.get();
}

void FutureOfItself(long) {
  std::packaged_task<int()> task(WaitForOwnResult);
  own_future = task.get_future().share();
  std::thread worker(std::move(task));
  have_first.Come(2);
  Ready();
  own_future.get();
}

void* JoinNext(void* seat) {
  have_first.Come(static_cast<int>(ring_size) + 1);
  Join(ring_threads[(Number(seat) + 1) % ring_size]);
  return nullptr;
}

void JoinRing(long size) {
  ring_size = size;
  for (long i = 0; i < size; ++i) ring_threads[i] = Start("joiner", JoinNext, i);
  have_first.Come(static_cast<int>(size) + 1);
  Ready();
  pthread_exit(nullptr);
}

void* JoinMain(void* main_thread) {
  Join(reinterpret_cast<pthread_t>(main_thread));
  return nullptr;
}

void JoinMutually(long) {
  const pthread_t worker = Start("worker", JoinMain, static_cast<long>(pthread_self()));
  Ready();
  Join(worker);
}

// --- A lock of its own, of one word that says locked or not, as Rust's and parking_lot's.

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

void UpdateIndex() {
  LockWord(&word_a);
  have_first.Come(2);
  LockWord(&word_b);
}

void CompactStore() {
  LockWord(&word_b);
  have_first.Come(2);
  LockWord(&word_a);
}

void WordsCrossed(long) {
  std::thread left(UpdateIndex);
  std::thread right(CompactStore);
  Ready();
  left.join();
  right.join();
}

void LockWordAgain() { LockWord(&word_a); }

void WordTwice(long) {
  LockWord(&word_a);
  Ready();
  LockWordAgain();
}

void WaitForGeneration() { generation.wait(0); }

void AtomicWait(long) {
  std::thread one(WaitForGeneration);
  Ready();
  one.join();
}

// The value has changed, and nobody was told.
void AtomicNotNotified(long) {
  std::thread one(WaitForGeneration);
  Nap(0.1);
  generation = 1;
  Ready();
  one.join();
}

// --- Locks whose holder is gone.

void* LockAndEnd(void* mutex) {
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
  return nullptr;
}

void LockAfterEnd(pthread_mutex_t* mutex) { pthread_mutex_lock(mutex); }

void OwnerEnded(MutexKind kind) {
  Make(&lock_a, kind);
  Join(Start("owner", LockAndEnd, reinterpret_cast<long>(&lock_a)));
  Ready();
  LockAfterEnd(&lock_a);
}

void OwnerEndedNormal(long) { OwnerEnded({}); }
void OwnerEndedRecursive(long) { OwnerEnded({PTHREAD_MUTEX_RECURSIVE}); }

void* WriteLockAndEnd(void*) {
  pthread_rwlock_wrlock(&table_a);
  return nullptr;
}

void ReadAfterEnd() { pthread_rwlock_rdlock(&table_a); }

void WriterEnded(long) {
  Join(Start("owner", WriteLockAndEnd));
  Ready();
  ReadAfterEnd();
}

void* LockAndNap(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  for (;;) Nap(1);
}

void OwnerCancelled(long) {
  Make(&lock_a, {});
  const pthread_t owner = Start("owner", LockAndNap);
  have_first.Come(2);
  pthread_cancel(owner);
  Join(owner);
  Ready();
  LockAfterEnd(&lock_a);
}

// Forgotten by a thread that goes on: it waits for work, with the lock.
void* KeepLockAndWait(void*) {
  pthread_mutex_lock(&lock_a);
  have_first.Come(2);
  sem_wait(&sem_a);
  return nullptr;
}

void PostWithLock() {
  pthread_mutex_lock(&lock_a);
  sem_post(&sem_a);
}

void ForgottenUnlock(long) {
  Make(&lock_a, {});
  sem_init(&sem_a, 0, 0);
  Start("worker", KeepLockAndWait);
  have_first.Come(2);
  Ready();
  PostWithLock();
}

// --- A lock, and something else of the process.

void* LockBeforeWrite(void*) {
  pthread_mutex_lock(&lock_a);
  WriteByte(hand_pipe[1]);
  return nullptr;
}

void ReadWithLock() { ReadByte(hand_pipe[0]); }

void PipeAgainstMutex(long) {
  MakePipe(hand_pipe);
  pthread_mutex_lock(&lock_a);
  Start("writer", LockBeforeWrite);
  Ready();
  ReadWithLock();
}

void* LockBeforeEvent(void*) {
  pthread_mutex_lock(&lock_a);
  eventfd_write(hand_event, 1);
  return nullptr;
}

void ReadEventWithLock() {
  eventfd_t value;
  eventfd_read(hand_event, &value);
}

void EventAgainstMutex(long) {
  hand_event = eventfd(0, 0);
  pthread_mutex_lock(&lock_a);
  Start("notifier", LockBeforeEvent);
  Ready();
  ReadEventWithLock();
}

void WriteLogs(FILE* first, FILE* second) {
  flockfile(first);
  have_first.Come(2);
  flockfile(second);
}

void StdioCrossed(long) {
  log_a = fopen("/dev/null", "w");
  log_b = fopen("/dev/null", "w");
  std::thread left(WriteLogs, log_a, log_b);
  std::thread right(WriteLogs, log_b, log_a);
  Ready();
  left.join();
  right.join();
}

// --- Controls: who waits is waited for by somebody who comes.

void* WaitForJobs(void*) {
  pthread_mutex_lock(&inner_lock);
  for (;;) pthread_cond_wait(&not_empty, &inner_lock);
}

void StartPool() {
  for (int i = 0; i < 4; ++i) Start("worker", WaitForJobs);
}

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

void Serve() {
  const int listening = Listen();
  for (;;) {
    close(accept(listening, nullptr, nullptr));
    pthread_cond_signal(&not_empty);
  }
}

void PoolOfServer(long) {
  StartPool();
  Ready();
  Serve();
}

void PoolOfTimer(long) {
  StartPool();
  Ready();
  for (;;) {
    Nap(0.7);
    pthread_cond_signal(&not_empty);
  }
}

void PoolOfInput(long) {
  StartPool();
  Ready();
  char byte;
  while (read(0, &byte, 1) == 1) pthread_cond_signal(&not_empty);
}

void PoolOfSigwait(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  StartPool();
  Ready();
  int number;
  while (sigwait(&set, &number) == 0 && number != SIGTERM) pthread_cond_signal(&not_empty);
}

void PostSemaphore(int) { sem_post(&sem_a); }

void SemaphoreOfHandler(long) {
  sem_init(&sem_a, 0, 0);
  Handle(SIGUSR1, PostSemaphore);
  Ready();
  while (sem_wait(&sem_a) != 0) {
  }
}

// All of them take the lock a thousand times, and the sum must be right.
void* CountUnderLock(void*) {
  while (!stop) {
    for (int i = 0; i < 1000; ++i) {
      pthread_mutex_lock(&lock_a);
      const long before = counter;
      counter = before + 1;
      Must(counter == before + 1, "lost an addition");
      pthread_mutex_unlock(&lock_a);
    }
  }
  return nullptr;
}

void Contend(MutexKind kind) {
  Make(&lock_a, kind);
  for (int i = 0; i < 4; ++i) Start("counter", CountUnderLock);
  Ready();
  NapForLong();
}

void ContendedNormal(long) { Contend({}); }
void ContendedInherit(long) {
  Contend({PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT});
}
void ContendedRobust(long) { Contend({PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST}); }

void* CountWithNaps(void*) {
  for (;;) {
    pthread_mutex_lock(&lock_a);
    Nap(0.02);
    ++counter;
    pthread_mutex_unlock(&lock_a);
  }
}

void SlowHandOver(long) {
  Make(&lock_a, {});
  for (int i = 0; i < 4; ++i) Start("counter", CountWithNaps);
  Ready();
  NapForLong();
}

// Two locks, always in the same order.
void* TakeInOrder(void*) {
  for (;;) {
    pthread_mutex_lock(&lock_a);
    pthread_mutex_lock(&lock_b);
    ++counter;
    pthread_mutex_unlock(&lock_b);
    pthread_mutex_unlock(&lock_a);
  }
}

void InOrder(long) {
  Make(&lock_a, {});
  Make(&lock_b, {});
  for (int i = 0; i < 3; ++i) Start("counter", TakeInOrder);
  Ready();
  NapForLong();
}

void TransferWithBoth(bool reversed) {
  for (;;) {
    const std::scoped_lock both(reversed ? accounts : journal, reversed ? journal : accounts);
    ++counter;
  }
}

void ScopedLock(long) {
  std::thread left(TransferWithBoth, false);
  std::thread right(TransferWithBoth, true);
  Ready();
  left.join();
  right.join();
}

void TryWithBackOff(std::mutex* first, std::mutex* second) {
  for (;;) {
    const std::lock_guard<std::mutex> lock(*first);
    if (second->try_lock()) {
      ++counter;
      second->unlock();
    }
  }
}

void TryLock(long) {
  std::thread left(TryWithBackOff, &accounts, &journal);
  std::thread right(TryWithBackOff, &journal, &accounts);
  Ready();
  left.join();
  right.join();
}

void* Echo(void*) {
  for (;;) {
    sem_wait(&sem_a);
    sem_post(&sem_b);
  }
}

void SemaphorePingPong(long pause_ms) {
  sem_init(&sem_a, 0, 0);
  sem_init(&sem_b, 0, 0);
  Start("echo", Echo);
  Ready();
  for (;;) {
    sem_post(&sem_a);
    sem_wait(&sem_b);
    if (pause_ms > 0) Nap(static_cast<double>(pause_ms) / 1000);
  }
}

void ConditionPingPong(long) {
  const auto play = [](bool mine) {
    for (;;) {
      std::unique_lock<std::mutex> lock(accounts);
      work_came.wait(lock, [&] { return (counter % 2 == 1) == mine; });
      ++counter;
      work_came.notify_one();
    }
  };
  std::thread left(play, true);
  std::thread right(play, false);
  Ready();
  left.join();
  right.join();
}

void QueuesFlow(long) {
  std::thread replier(ReplyForEver);
  Ready();
  for (int i = 0;; ++i) {
    requests.Push(i);
    Must(replies.Pop() == 2 * i, "another reply");
  }
}

void AtomicPingPong(long) {
  const auto play = [](int mine) {
    for (;;) {
      int seen = generation;
      while (seen % 2 != mine) {
        generation.wait(seen);
        seen = generation;
      }
      generation = seen + 1;
      generation.notify_all();
    }
  };
  std::thread left(play, 1);
  std::thread right(play, 0);
  Ready();
  left.join();
  right.join();
}

void WordsContended(long) {
  const auto count = [] {
    for (;;) {
      LockWord(&word_a);
      ++counter;
      UnlockWord(&word_a);
    }
  };
  std::thread left(count);
  std::thread right(count);
  Ready();
  left.join();
  right.join();
}

void BarrierRounds(long) {
  const auto work = [](double nap) {
    for (;;) {
      Nap(nap);
      round_done.arrive_and_wait();
    }
  };
  std::thread threads[4] = {std::thread(work, 0.001), std::thread(work, 0.002),
                            std::thread(work, 0.01), std::thread(work, 0.1)};
  Ready();
  for (std::thread& thread : threads) thread.join();
}

void* EndPhaseLate(void*) {
  NapForLong();
  pthread_barrier_wait(&phase);
  return nullptr;
}

void BarrierLastLate(long) {
  pthread_barrier_init(&phase, nullptr, 4);
  Start("one", EndPhase);
  Start("two", EndPhase);
  Start("three", EndPhase);
  const pthread_t late = Start("late", EndPhaseLate);
  Ready();
  Join(late);
}

void ReadersAndWriter(long) {
  const auto read = [] {
    for (;;) {
      pthread_rwlock_rdlock(&table_a);
      sum = static_cast<unsigned long>(counter);
      pthread_rwlock_unlock(&table_a);
    }
  };
  std::thread reader_1(read);
  std::thread reader_2(read);
  Ready();
  for (;;) {
    Nap(0.005);
    pthread_rwlock_wrlock(&table_a);
    ++counter;
    pthread_rwlock_unlock(&table_a);
  }
}

// The lock is held by who waits for the outside, for a time or for a child, or computes.
void* TakeOnce(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void HeldInNap(long) {
  Make(&lock_a, {});
  pthread_mutex_lock(&lock_a);
  Start("waiter", TakeOnce);
  Ready();
  NapForLong();
  pthread_mutex_unlock(&lock_a);
}

void HeldInAccept(long) {
  Make(&lock_a, {});
  pthread_mutex_lock(&lock_a);
  Start("waiter", TakeOnce);
  Ready();
  close(accept(Listen(), nullptr, nullptr));
  pthread_mutex_unlock(&lock_a);
}

void HeldInComputation(long) {
  Make(&lock_a, {});
  pthread_mutex_lock(&lock_a);
  Start("waiter", TakeOnce);
  Ready();
  for (unsigned long i = 0; i < 400'000'000'000; ++i) sum = sum * 7 + i;
  pthread_mutex_unlock(&lock_a);
}

void HeldForChild(long) {
  Make(&lock_a, {});
  pthread_mutex_lock(&lock_a);
  Start("waiter", TakeOnce);
  const pid_t child = Fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  Ready();
  waitpid(child, nullptr, 0);
  pthread_mutex_unlock(&lock_a);
}

void ReadHeldInAccept(long) {
  pthread_rwlock_rdlock(&table_a);
  std::thread writer([] { pthread_rwlock_wrlock(&table_a); });
  Ready();
  close(accept(Listen(), nullptr, nullptr));
  pthread_rwlock_unlock(&table_a);
  writer.join();
}

void ConditionTimed(long) {
  std::unique_lock<std::mutex> lock(accounts);
  Ready();
  for (;;) {
    work_came.wait_for(lock, std::chrono::milliseconds(30));
    if (++counter > 1'000'000) return;
  }
}

void ConditionTimedLong(long) {
  std::unique_lock<std::mutex> lock(accounts);
  Ready();
  work_came.wait_for(lock, std::chrono::seconds(600));
}

// Gives up, and says so.
void TimedLock(long) {
  disk_lock.lock();
  std::thread other([] {
    if (!disk_lock.try_lock_for(std::chrono::seconds(600))) puts("gave up");
  });
  Ready();
  other.join();
}

void SemaphoreTimed(long) {
  sem_init(&sem_a, 0, 0);
  timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 600;
  Ready();
  sem_timedwait(&sem_a, &end);
}

void OnceSlow(long) {
  const auto slow = [] { NapForLong(); };
  std::thread first([&] { std::call_once(once_a, slow); });
  std::thread second([&] { std::call_once(once_a, slow); });
  Ready();
  first.join();
  second.join();
}

struct SlowSettings {
  SlowSettings() { NapForLong(); }
};

void TheSlowSettings() { static SlowSettings settings; }

void StaticSlow(long) {
  std::thread first(TheSlowSettings);
  std::thread second(TheSlowSettings);
  Ready();
  first.join();
  second.join();
}

void FutureLate(long) {
  std::thread setter([] {
    NapForLong();
    answer.set_value(7);
  });
  Ready();
  Must(GetAnswer() == 7, "answer");
  setter.join();
}

void FutureOfComputation(long) {
  std::future<unsigned long> result = std::async(std::launch::async, [] {
    unsigned long total = 0;
    for (unsigned long i = 0; i < 400'000'000'000; ++i) total = total * 7 + i % 13;
    return total;
  });
  Ready();
  sum = result.get();
}

void JoinSleeper(long) {
  std::thread sleeper(NapForLong);
  Ready();
  sleeper.join();
}

void RobustRecovers(long) {
  Make(&lock_a, {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST});
  Join(Start("owner", LockAndEnd, reinterpret_cast<long>(&lock_a)));
  Must(pthread_mutex_lock(&lock_a) == EOWNERDEAD, "robust");
  pthread_mutex_consistent(&lock_a);
  pthread_mutex_unlock(&lock_a);
  Ready();
  Serve();
}

void ErrorCheckRecovers(long) {
  Make(&lock_a, {PTHREAD_MUTEX_ERRORCHECK});
  pthread_mutex_lock(&lock_a);
  Must(pthread_mutex_lock(&lock_a) == EDEADLK, "errorcheck");
  Ready();
  Serve();
}

void RecursiveTwice(long) {
  parser_lock.lock();
  parser_lock.lock();
  Ready();
  Serve();
}

void PipeBetweenThreads(long) {
  MakePipe(hand_pipe);
  std::thread writer([] {
    for (;;) {
      Nap(0.05);
      WriteByte(hand_pipe[1]);
    }
  });
  Ready();
  for (;;) ReadByte(hand_pipe[0]);
}

void StdioShared(long) {
  log_a = fopen("/dev/null", "w");
  const auto print = [] {
    for (int i = 0;; ++i) fprintf(log_a, "line %d\n", i);
  };
  std::thread left(print);
  std::thread right(print);
  Ready();
  left.join();
  right.join();
}

void LatchLate(long) {
  std::thread one(ArriveAndWait);
  std::thread other(ArriveAndWait);
  Ready();
  NapForLong();
  all_started.count_down();
  one.join();
  other.join();
}

void SelfPipePool(long) {
  StartPool();
  MakePipe(hand_pipe);
  Handle(
      SIGTERM, [](int) { WriteByte(hand_pipe[1]); }, SA_RESTART);
  Ready();
  ReadByte(hand_pipe[0]);
}

const Program kPrograms[] = {
    {"abba", AbbaNormal},
    {"abba-recursive", AbbaRecursive},
    {"abba-errorcheck", AbbaErrorCheck},
    {"abba-adaptive", AbbaAdaptive},
    {"abba-robust", AbbaRobust},
    {"abba-inherit", AbbaInherit},
    {"abba-shared", AbbaShared},
    {"ring", Ring},
    {"self-lock", SelfLock},
    {"self-lock-inherit", SelfLockInherit},
    {"abba-heap", AbbaOnHeap},
    {"abba-anonymous", AbbaAnonymous},
    {"join-with-lock", JoinWithLock},
    {"std-mutex", StdMutex},
    {"std-recursive", StdRecursive},
    {"std-timed", StdTimed},
    {"std-shared", StdShared},
    {"std-shared-upgrade", StdSharedUpgrade},
    {"std-shared-mutex", ScopedAgainstLock},
    {"rwlock-write", WriteLocks},
    {"rwlock-self-upgrade", SelfUpgrade},
    {"rwlock-two-upgrade", TwoUpgrade},
    {"rwlock-read-twice", ReadTwice},
    {"rwlock-mutex", ReadAgainstMutex},
    {"sem-crossed", SemaphoresCrossed},
    {"sem-unlinked", SemaphoreUnlinked},
    {"sem-never", SemaphoreNeverPosted},
    {"sem-mutex", SemaphoreAgainstMutex},
    {"counting-crossed", CountingCrossed},
    {"binary-never", BinaryNeverReleased},
    {"cond-lost", ConditionLost},
    {"cond-crossed", ConditionsCrossed},
    {"nested-monitor", NestedMonitor},
    {"std-cond-lost", StdConditionLost},
    {"std-any-lost", StdAnyLost},
    {"queues-full", QueuesFull},
    {"pool-exhausted", PoolExhausted},
    {"latch-short", LatchShort},
    {"std-barrier-short", StdBarrierShort},
    {"barrier-short", BarrierShort},
    {"barrier-mutex", BarrierAgainstMutex},
    {"once-crossed", OnceCrossed},
    {"once-itself", OnceItself},
    {"statics-crossed", StaticsCrossed},
    {"static-mutex", StaticAgainstMutex},
    {"omp-locks", OmpLocks},
    {"omp-critical", OmpCritical},
    {"omp-barrier", OmpBarrier},
    {"future-never", FutureNeverSet},
    {"futures-crossed", FuturesCrossed},
    {"future-itself", FutureOfItself},
    {"join-ring", JoinRing},
    {"join-mutual", JoinMutually},
    {"words-crossed", WordsCrossed},
    {"word-twice", WordTwice},
    {"atomic-wait", AtomicWait},
    {"atomic-not-notified", AtomicNotNotified},
    {"owner-ended", OwnerEndedNormal},
    {"owner-ended-recursive", OwnerEndedRecursive},
    {"writer-ended", WriterEnded},
    {"owner-cancelled", OwnerCancelled},
    {"forgotten-unlock", ForgottenUnlock},
    {"pipe-mutex", PipeAgainstMutex},
    {"event-mutex", EventAgainstMutex},
    {"stdio-crossed", StdioCrossed},
    // Controls.
    {"pool-server", PoolOfServer},
    {"pool-timer", PoolOfTimer},
    {"pool-input", PoolOfInput},
    {"pool-sigwait", PoolOfSigwait},
    {"pool-self-pipe", SelfPipePool},
    {"sem-handler", SemaphoreOfHandler},
    {"contended", ContendedNormal},
    {"contended-inherit", ContendedInherit},
    {"contended-robust", ContendedRobust},
    {"slow-hand-over", SlowHandOver},
    {"in-order", InOrder},
    {"scoped-lock", ScopedLock},
    {"try-lock", TryLock},
    {"sem-ping-pong", SemaphorePingPong},
    {"cond-ping-pong", ConditionPingPong},
    {"queues-flow", QueuesFlow},
    {"atomic-ping-pong", AtomicPingPong},
    {"words-contended", WordsContended},
    {"barrier-rounds", BarrierRounds},
    {"barrier-late", BarrierLastLate},
    {"readers-writer", ReadersAndWriter},
    {"held-nap", HeldInNap},
    {"held-accept", HeldInAccept},
    {"held-computation", HeldInComputation},
    {"held-child", HeldForChild},
    {"read-held-accept", ReadHeldInAccept},
    {"cond-timed", ConditionTimed},
    {"cond-timed-long", ConditionTimedLong},
    {"timed-lock", TimedLock},
    {"sem-timed", SemaphoreTimed},
    {"once-slow", OnceSlow},
    {"static-slow", StaticSlow},
    {"future-late", FutureLate},
    {"future-computation", FutureOfComputation},
    {"join-sleeper", JoinSleeper},
    {"omp-loop", OmpLoop},
    {"robust-recovers", RobustRecovers},
    {"errorcheck-recovers", ErrorCheckRecovers},
    {"recursive-twice", RecursiveTwice},
    {"pipe-threads", PipeBetweenThreads},
    {"stdio-shared", StdioShared},
    {"latch-late", LatchLate},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

// usage: zoo_spins NAME [NUMBER]
// Threads that use a processor, or wake again and again, and get nowhere; and such as do get
// somewhere, or wait in this way for something that comes. The names of globals and of functions
// are what `hangscope why` has to say.
#include <fcntl.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

volatile int ready_flag = 0;
std::atomic<int> atomic_flag_word{0};
std::atomic<int> spin_lock{0};
std::atomic_flag busy_flag = ATOMIC_FLAG_INIT;
std::atomic<unsigned> sequence{0};
std::atomic<unsigned> next_ticket{0};
std::atomic<unsigned> now_serving{0};
std::atomic<int> turn_left{0};
std::atomic<int> turn_right{0};
std::atomic<int> futex_word{0};
pthread_spinlock_t spin_a;
pthread_spinlock_t spin_b;
pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t round_begins;
pthread_barrier_t round_ends;
pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;
sem_t items;
std::promise<int> answer;
int work_pipe[2];
int work_event;
volatile unsigned long sum = 0;
volatile double accumulated = 0;
long counter = 0;

struct Node {
  Node* next = nullptr;
  long value = 0;
};
Node* list_head;
Node* hash_table[64];

struct SharedWords {
  std::atomic<int> left;
  std::atomic<int> right;
};
SharedWords* shared;

Meeting are_there;

template <typename Type>
Type* SharedMemory() {
  void* const memory =
      mmap(nullptr, sizeof(Type), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Must(memory != MAP_FAILED, "mmap");
  return new (memory) Type();
}

void MakeNonBlocking(int fd) { fcntl(fd, F_SETFL, O_NONBLOCK); }

// --- Loops over memory.

void WaitForFlag() {
  while (ready_flag == 0) {
  }
}

void Flag(long) {
  Ready();
  WaitForFlag();
}

void WaitForAtomic() {
  while (atomic_flag_word.load(std::memory_order_acquire) == 0) _mm_pause();
}

void AtomicPause(long) {
  Ready();
  WaitForAtomic();
}

void SpinLock(std::atomic<int>* lock) {
  int free = 0;
  while (!lock->compare_exchange_weak(free, 1)) free = 0;
}

void SpinUnlock(std::atomic<int>* lock) { lock->store(0); }

void CompareAndSwap(long) {
  std::thread([] { SpinLock(&spin_lock); }).join();  // and forgot it
  Ready();
  SpinLock(&spin_lock);
}

void TestAndSet(long) {
  (void)busy_flag.test_and_set();
  Ready();
  while (busy_flag.test_and_set(std::memory_order_acquire)) _mm_pause();
}

void ReadSequence() {
  for (;;) {
    const unsigned before = sequence.load(std::memory_order_acquire);
    if (before % 2 == 0) return;
    _mm_pause();
  }
}

// The writer ended in the middle of its work.
void Seqlock(long) {
  std::thread([] { ++sequence; }).join();
  Ready();
  ReadSequence();
}

void TakeTicket() {
  const unsigned mine = next_ticket++;
  while (now_serving.load() != mine) _mm_pause();
}

void ServeNext() { ++now_serving; }

void Ticket(long) {
  std::thread(TakeTicket).join();  // and does not serve the next
  Ready();
  TakeTicket();
}

void YieldForFlag() {
  while (ready_flag == 0) sched_yield();
}

void Yield(long) {
  Ready();
  YieldForFlag();
}

void CrossSpin(pthread_spinlock_t* first, pthread_spinlock_t* second) {
  pthread_spin_lock(first);
  are_there.Come(2);
  pthread_spin_lock(second);
}

void SpinLocksCrossed(long) {
  pthread_spin_init(&spin_a, 0);
  pthread_spin_init(&spin_b, 0);
  std::thread left(CrossSpin, &spin_a, &spin_b);
  std::thread right(CrossSpin, &spin_b, &spin_a);
  Ready();
  left.join();
  right.join();
}

void SpinLockTwice(long) {
  pthread_spin_init(&spin_a, 0);
  pthread_spin_lock(&spin_a);
  Ready();
  pthread_spin_lock(&spin_a);
}

// Each sets the other's word only when its own is set.
void WaitForTurn(std::atomic<int>* own, std::atomic<int>* other) {
  while (own->load() == 0) {
  }
  other->store(1);
}

void Mutual(long) {
  std::thread left(WaitForTurn, &turn_left, &turn_right);
  std::thread right(WaitForTurn, &turn_right, &turn_left);
  Ready();
  left.join();
  right.join();
}

void AwaitDepth(int depth, std::atomic<int>* own, std::atomic<int>* other) {
  if (depth > 0) {
    AwaitDepth(depth - 1, own, other);
    sum = sum + 1;
    return;
  }
  WaitForTurn(own, other);
}

void MutualRecursive(long) {
  std::thread left(AwaitDepth, 20, &turn_left, &turn_right);
  std::thread right(AwaitDepth, 30, &turn_right, &turn_left);
  Ready();
  left.join();
  right.join();
}

void MutualShared(long) {
  shared = SharedMemory<SharedWords>();
  if (Fork() == 0) {
    Rename("second");
    WaitForTurn(&shared->right, &shared->left);
    _exit(0);
  }
  Rename("first");
  Ready();
  WaitForTurn(&shared->left, &shared->right);
}

void MakeList(long length, bool cyclic) {
  auto* const nodes = new Node[length];
  for (long i = 0; i < length; ++i) {
    nodes[i].next = i + 1 < length ? &nodes[i + 1] : cyclic ? &nodes[0] : nullptr;
    nodes[i].value = i;
  }
  list_head = nodes;
}

const Node* FindValue(long value) {
  const Node* node = list_head;
  while (node != nullptr && node->value != value) node = node->next;
  return node;
}

void CyclicList(long length) {
  MakeList(length, true);
  Ready();
  FindValue(-1);
}

const Node* LookUp(long key) {
  const Node* node = hash_table[key % 64];
  for (; node != nullptr; node = node->next) {
    if (node->value == key) return node;
  }
  return nullptr;
}

// Two inserts at the same time made a circle of a chain.
void HashChain(long) {
  auto* const first = new Node{nullptr, 7};
  auto* const second = new Node{first, 71};
  first->next = second;
  hash_table[7] = first;
  Ready();
  LookUp(135);
}

void CountToOdd() {
  unsigned long number = 0;
  while (number != 101) number += 2;  // is never odd
  sum = number;
}

void NeverTrue(long) {
  Ready();
  CountToOdd();
}

// mov eax, [rdi]; test eax, eax; je back; ret
void Jit(long) {
  const unsigned char code[] = {0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa, 0xc3};
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Must(memory != MAP_FAILED, "mmap");
  memcpy(memory, code, sizeof code);
  Ready();
  reinterpret_cast<void (*)(volatile int*)>(memory)(&ready_flag);
}

void LocalFlag(long) {
  volatile bool done = false;
  Ready();
  while (!done) {
  }
}

// One of two that work: what it waits for comes from nobody.
void* WaitInThread(void*) {
  WaitForFlag();
  return nullptr;
}

void JoinSpinner(long) {
  const pthread_t poller = Start("poller", WaitInThread);
  Ready();
  Join(poller);
}

void* SpinWithLock(void*) {
  pthread_mutex_lock(&lock_a);
  are_there.Come(2);
  WaitForFlag();
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void SetFlagUnderLock() {
  pthread_mutex_lock(&lock_a);
  ready_flag = 1;
}

// Who would set the flag waits for the lock of who waits for the flag.
void SpinAgainstMutex(long) {
  Start("spinner", SpinWithLock);
  are_there.Come(2);
  Ready();
  SetFlagUnderLock();
}

// --- Loops with calls that change nothing.

void FutexAgain() {
  // Compares with a value that the word does not have, and so never sleeps.
  while (futex_word.load() != 2)
    syscall(SYS_futex, &futex_word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

void FutexRetry(long) {
  Ready();
  FutexAgain();
}

void ReadUntilThere() {
  char byte;
  while (read(work_pipe[0], &byte, 1) != 1) {
  }
}

void ReadAgain(long) {
  MakePipe(work_pipe);
  MakeNonBlocking(work_pipe[0]);
  Ready();
  ReadUntilThere();
}

void WriteUntilRoom() {
  const char block[4096] = {};
  for (;;) {
    if (write(work_pipe[1], block, sizeof block) < 0 && errno != EAGAIN) return;
  }
}

void WriteAgain(long) {
  MakePipe(work_pipe);
  MakeNonBlocking(work_pipe[1]);
  Ready();
  WriteUntilRoom();
}

void PollUntilThere() {
  pollfd file = {work_pipe[0], POLLIN, 0};
  while (poll(&file, 1, 0) == 0) {
  }
}

void PollZero(long) {
  MakePipe(work_pipe);
  Ready();
  PollUntilThere();
}

void SelectZero(long) {
  MakePipe(work_pipe);
  Ready();
  for (;;) {
    fd_set files;
    FD_ZERO(&files);
    FD_SET(work_pipe[0], &files);
    timeval none = {0, 0};
    if (select(work_pipe[0] + 1, &files, nullptr, nullptr, &none) != 0) return;
  }
}

// What is ready is never read.
void DispatchEvents(int epoll) {
  epoll_event event;
  while (epoll_wait(epoll, &event, 1, -1) == 1) {
    if (event.data.fd != work_pipe[0]) return;
  }
}

void EpollLevel(long) {
  MakePipe(work_pipe);
  WriteByte(work_pipe[1]);
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = work_pipe[0];
  epoll_ctl(epoll, EPOLL_CTL_ADD, work_pipe[0], &event);
  Ready();
  DispatchEvents(epoll);
}

// The other end is closed, which poll says for ever.
void PollHangUp(long) {
  MakePipe(work_pipe);
  close(work_pipe[1]);
  pollfd file = {work_pipe[0], POLLIN, 0};
  Ready();
  while (poll(&file, 1, -1) == 1 && (file.revents & POLLIN) == 0) {
  }
}

void WaitForEvent() {
  eventfd_t value;
  while (eventfd_read(work_event, &value) != 0) {
  }
}

void EventAgain(long) {
  work_event = eventfd(0, EFD_NONBLOCK);
  Ready();
  WaitForEvent();
}

void ReceiveUntilThere(int socket) {
  char byte;
  while (recv(socket, &byte, 1, MSG_DONTWAIT) != 1) sched_yield();
}

void ReceiveAgain(long) {
  int ends[2];
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  Ready();
  ReceiveUntilThere(ends[0]);
}

void ReapChild(pid_t child) {
  while (waitpid(child, nullptr, WNOHANG) == 0) {
  }
}

// The child waits for its input, which the parent would close after its end.
void WaitNoHang(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("reader");
    close(work_pipe[1]);
    ReadByte(work_pipe[0]);
    _exit(0);
  }
  Ready();
  ReapChild(child);
}

// The same by the existence of the process.
void KillZero(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("reader");
    close(work_pipe[1]);
    ReadByte(work_pipe[0]);
    _exit(0);
  }
  Ready();
  while (kill(child, 0) == 0) sched_yield();
}

void* LockAndEnd(void*) {
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void TryUntilFree(pthread_mutex_t* mutex) {
  while (pthread_mutex_trylock(mutex) != 0) _mm_pause();
}

void TryLock(long) {
  Join(Start("owner", LockAndEnd));
  Ready();
  TryUntilFree(&lock_a);
}

void TrySemaphore(long) {
  sem_init(&items, 0, 0);
  Ready();
  while (sem_trywait(&items) != 0) {
  }
}

void* SleepForSemaphore(void*) {
  sem_wait(&items);
  return nullptr;
}

void TryJoin(long) {
  sem_init(&items, 0, 0);
  const pthread_t stuck = Start("stuck", SleepForSemaphore);
  Ready();
  while (pthread_tryjoin_np(stuck, nullptr) == EBUSY) sched_yield();
}

void PollFuture(long) {
  std::future<int> result = answer.get_future();
  Ready();
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
  }
}

void PollQueue(long) {
  char name[64];
  snprintf(name, sizeof name, "/hangscope-zoo-%d", getpid());
  mq_attr attributes = {};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attributes);
  Must(queue >= 0, "mq_open");
  mq_unlink(name);
  Ready();
  char message[8];
  while (mq_receive(queue, message, sizeof message, nullptr) < 0) {
  }
}

// --- Loops that nap.

void NapForFlag() {
  while (ready_flag == 0) usleep(2000);
}

void NapFlag(long) {
  Ready();
  NapForFlag();
}

void RetryLock() {
  for (;;) {
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 10'000'000;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    if (pthread_mutex_timedlock(&lock_a, &end) == 0) return;
  }
}

void TimedRetry(long) {
  Join(Start("owner", LockAndEnd));
  Ready();
  RetryLock();
}

// Keep the one, and nap until the other is free.
void KeepAndRetry(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  are_there.Come(2);
  while (pthread_mutex_trylock(second) != 0) usleep(3000);
}

void BackOffCrossed(long) {
  std::thread left(KeepAndRetry, &lock_a, &lock_b);
  std::thread right(KeepAndRetry, &lock_b, &lock_a);
  Ready();
  left.join();
  right.join();
}

void KeepAndRetryTimed(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  are_there.Come(2);
  for (;;) {
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 5'000'000;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    if (pthread_mutex_timedlock(second, &end) == 0) return;
  }
}

void TimedCrossed(long) {
  std::thread left(KeepAndRetryTimed, &lock_a, &lock_b);
  std::thread right(KeepAndRetryTimed, &lock_b, &lock_a);
  Ready();
  left.join();
  right.join();
}

// Both are polite at the same time, for ever: each takes its own lock, finds the other's taken, and
// gives its own back.
void BePolite(pthread_mutex_t* first, pthread_mutex_t* second) {
  for (;;) {
    pthread_mutex_lock(first);
    pthread_barrier_wait(&round_begins);
    const bool both = pthread_mutex_trylock(second) == 0;
    pthread_barrier_wait(&round_ends);
    pthread_mutex_unlock(first);
    if (both) return;
    usleep(1000);
  }
}

void Livelock(long) {
  pthread_barrier_init(&round_begins, nullptr, 2);
  pthread_barrier_init(&round_ends, nullptr, 2);
  std::thread left(BePolite, &lock_a, &lock_b);
  std::thread right(BePolite, &lock_b, &lock_a);
  Ready();
  left.join();
  right.join();
}

void WaitWithTimeouts() {
  pthread_mutex_lock(&lock_a);
  while (ready_flag == 0) {
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 5'000'000;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    pthread_cond_timedwait(&work_came, &lock_a, &end);
  }
}

void ConditionRetry(long) {
  Ready();
  WaitWithTimeouts();
}

// --- Loops that read a clock.

void WaitForFlagTimed() {
  timespec now = {};
  while (ready_flag == 0) clock_gettime(CLOCK_MONOTONIC, &now);
  sum = static_cast<unsigned long>(now.tv_sec);
}

void ClockFlag(long) {
  Ready();
  WaitForFlagTimed();
}

// The unit is wrong: it waits until the year 292 billion.
void ClockDeadline(long) {
  Ready();
  timespec now = {};
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec != -1);
}

// --- Controls: something comes of it.

void* SetFlagLate(void*) {
  for (unsigned long i = 0; i < 400'000'000'000; ++i) sum = sum * 7 + i;
  ready_flag = 1;
  return nullptr;
}

void FlagOfComputation(long) {
  Start("computer", SetFlagLate);
  Ready();
  WaitForFlag();
}

void* SetFlagAfterNap(void*) {
  NapForLong();
  ready_flag = 1;
  return nullptr;
}

void FlagOfSleeper(long) {
  Start("sleeper", SetFlagAfterNap);
  Ready();
  YieldForFlag();
}

void SetFlag(int) { ready_flag = 1; }

void FlagOfHandler(long) {
  Handle(SIGUSR1, SetFlag);
  Ready();
  WaitForFlag();
}

void NapForHandler(long) {
  Handle(SIGTERM, SetFlag);
  Ready();
  while (ready_flag == 0) usleep(100'000);
}

void PauseForHandler(long) {
  Handle(SIGTERM, SetFlag);
  Ready();
  while (ready_flag == 0) pause();
}

void SpinLockContended(long) {
  const auto count = [] {
    for (;;) {
      SpinLock(&spin_lock);
      const long before = counter;
      counter = before + 1;
      Must(counter == before + 1, "lost an addition");
      SpinUnlock(&spin_lock);
    }
  };
  std::thread left(count);
  std::thread right(count);
  Ready();
  left.join();
  right.join();
}

void TicketContended(long) {
  const auto count = [] {
    for (;;) {
      TakeTicket();
      ++counter;
      ServeNext();
    }
  };
  std::thread left(count);
  std::thread right(count);
  Ready();
  left.join();
  right.join();
}

void SeqlockMoving(long) {
  std::thread writer([] {
    for (;;) {
      ++sequence;
      ++counter;
      ++sequence;
      Nap(0.0005);
    }
  });
  Ready();
  for (;;) {
    ReadSequence();
    sum = sum + 1;
  }
}

void YieldTurns(long) {
  const auto play = [](int mine) {
    for (;;) {
      while (atomic_flag_word.load() % 2 != mine) sched_yield();
      ++atomic_flag_word;
    }
  };
  std::thread left(play, 1);
  std::thread right(play, 0);
  Ready();
  left.join();
  right.join();
}

void TryLockContended(long) {
  const auto count = [] {
    for (;;) {
      TryUntilFree(&lock_a);
      ++counter;
      pthread_mutex_unlock(&lock_a);
    }
  };
  std::thread left(count);
  std::thread right(count);
  Ready();
  left.join();
  right.join();
}

void* WriteNowAndThen(void*) {
  for (;;) {
    Nap(0.01);
    WriteByte(work_pipe[1]);
  }
}

void PollWithProducer(long) {
  MakePipe(work_pipe);
  Start("producer", WriteNowAndThen);
  Ready();
  for (;;) {
    PollUntilThere();
    ReadByte(work_pipe[0]);
    ++counter;
  }
}

void ReadAgainWithProducer(long) {
  MakePipe(work_pipe);
  MakeNonBlocking(work_pipe[0]);
  Start("producer", WriteNowAndThen);
  Ready();
  for (;;) ReadUntilThere();
}

void EpollBusy(long) {
  MakePipe(work_pipe);
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = work_pipe[0];
  epoll_ctl(epoll, EPOLL_CTL_ADD, work_pipe[0], &event);
  Start("producer", WriteNowAndThen);
  Ready();
  for (;;) {
    if (epoll_wait(epoll, &event, 1, 0) == 1) ReadByte(work_pipe[0]);
  }
}

void EventPingPong(long) {
  work_event = eventfd(0, EFD_NONBLOCK);
  std::thread producer([] {
    for (;;) {
      eventfd_write(work_event, 1);
      Nap(0.001);
    }
  });
  Ready();
  for (;;) WaitForEvent();
}

pid_t Sleeper() {
  const pid_t child = Fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  return child;
}

void ReapSleeper(long) {
  const pid_t child = Sleeper();
  Ready();
  ReapChild(child);
}

void ReapSleeperNapping(long) {
  const pid_t child = Sleeper();
  Ready();
  while (waitpid(child, nullptr, WNOHANG) == 0) usleep(20'000);
}

// Others may make the file, or connect.
void NapForFile(long) {
  Ready();
  struct stat status;
  while (stat("/tmp/hangscope-zoo-is-never-made", &status) != 0) usleep(5000);
}

void SpinForFile(long) {
  Ready();
  while (access("/tmp/hangscope-zoo-is-never-made", F_OK) != 0) sched_yield();
}

void AcceptAgain(long napping) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
           listen(listening, 8) == 0,
       "listen");
  Ready();
  while (accept(listening, nullptr, nullptr) < 0) {
    if (napping != 0) usleep(10'000);
  }
}

void SpinForOtherProcess(long) {
  shared = SharedMemory<SharedWords>();
  if (Fork() == 0) {
    Rename("producer");
    for (;;) {
      Nap(0.02);
      ++shared->left;
    }
  }
  Ready();
  for (int seen = 0;;) {
    while (shared->left.load() == seen) _mm_pause();
    ++seen;
  }
}

void SpinForSleepingProcess(long) {
  shared = SharedMemory<SharedWords>();
  if (Fork() == 0) {
    Rename("producer");
    NapForLong();
    shared->left = 1;
    _exit(0);
  }
  Ready();
  while (shared->left.load() == 0) _mm_pause();
}

// Reads a file through its memory; a process that opens it by its name writes to it.
void SpinForFile(int sharing) {
  const int file = open("flag.bin", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Must(file >= 0 && ftruncate(file, 4096) == 0, "flag.bin");
  auto* const words =
      static_cast<const volatile int*>(mmap(nullptr, 4096, PROT_READ, sharing, file, 0));
  Must(words != MAP_FAILED, "mmap");
  close(file);
  if (Fork() == 0) {
    Rename("writer");
    NapForLong();
    const int again = open("flag.bin", O_WRONLY | O_CLOEXEC);
    const int one = 1;
    _exit(pwrite(again, &one, sizeof one, 0) == sizeof one ? 0 : 1);
  }
  Ready();
  while (*words == 0) _mm_pause();
}

void SpinForSharedFile(long) { SpinForFile(MAP_SHARED); }
void SpinForPrivateFile(long) { SpinForFile(MAP_PRIVATE); }

void WalkWithUpdates(long length) {
  MakeList(length, false);
  Ready();
  for (;;) {
    unsigned long total = 0;
    for (Node* node = list_head; node != nullptr; node = node->next) total += ++node->value > 0;
    Must(total == static_cast<unsigned long>(length), "length");
  }
}

// Nothing is written but how often it found it at the end.
void SearchAgain(long length) {
  MakeList(length, false);
  Ready();
  for (;;) {
    Must(FindValue(length - 1) != nullptr, "search");
    ++counter;
  }
}

// Searches for another one each time.
void SearchAll(long length) {
  MakeList(length, false);
  Ready();
  for (long i = 0;; i = (i + 1) % length) Must(FindValue(i)->value == i, "search");
}

void HashLookUps(long) {
  std::unordered_map<long, long> table;
  for (long i = 0; i < 1000; ++i) table[i * 7] = i;
  Ready();
  for (long i = 0;; i = (i + 1) % 1000) Must(table.find(i * 7)->second == i, "hash");
}

void MapLookUps(long) {
  std::map<std::string, long> table;
  for (long i = 0; i < 500; ++i) table[std::to_string(i * i)] = i;
  Ready();
  for (long i = 0;; i = (i + 1) % 500) Must(table.at(std::to_string(i * i)) == i, "map");
}

bool IsPrime(unsigned long number) {
  for (unsigned long divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

void Primes(long) {
  Ready();
  for (unsigned long number = 1'000'000'000'039;; number += 2) {
    if (IsPrime(number)) sum = number;
  }
}

// One number, which it takes minutes to factor; nothing is written on the way.
void OnePrime(long) {
  Ready();
  for (;;) Must(IsPrime(9223372036854775783UL), "prime");
}

void Fnv(long) {
  Ready();
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0;; ++i) {
    hash = (hash ^ (i & 255)) * 0x100000001b3;
    if (hash == 42) sum = i;
  }
}

// All in registers: nothing stands in memory until the end.
void RandomNumbers(long) {
  Ready();
  uint64_t state = 88172645463325252;
  do {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  } while (state != 1);  // which comes after 2^64 - 1 steps
  sum = state;
}

void CountDown(long) {
  Ready();
  unsigned long left = 4'000'000'000'000;
  while (left != 0) --left;
  sum = left;
  for (unsigned long i = 0; i < 4'000'000'000'000; ++i) sum = i;
}

void CopyMemory(long) {
  std::vector<char> from(1 << 22, 'x');
  std::vector<char> to(1 << 22);
  Ready();
  for (;;) {
    memcpy(to.data(), from.data(), from.size());
    Must(to.back() == 'x', "copy");
  }
}

// The same each time, and stops nobody: it counts nothing.
void CompareMemory(long) {
  const std::vector<char> one(1 << 20, 'x');
  const std::vector<char> other(1 << 20, 'x');
  Ready();
  for (int i = 0; i < 100'000'000; ++i)
    Must(memcmp(one.data(), other.data(), 1 << 20) == 0, "same");
}

void Matrix(long) {
  constexpr int kSize = 64;
  static double a[kSize][kSize], b[kSize][kSize], c[kSize][kSize];
  for (int i = 0; i < kSize; ++i) a[i][i] = b[i][i] = 2;
  Ready();
  for (;;) {
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        c[i][j] = 0;
        for (int k = 0; k < kSize; ++k) c[i][j] += a[i][k] * b[k][j];
      }
    }
    Must(c[5][5] == 4, "matrix");
  }
}

void Sort(long) {
  Ready();
  unsigned seed = 1;
  for (;;) {
    std::vector<unsigned> numbers(20000);
    for (unsigned& number : numbers) number = seed = seed * 1664525 + 1013904223;
    std::sort(numbers.begin(), numbers.end());
    Must(std::is_sorted(numbers.begin(), numbers.end()), "sort");
  }
}

void Regex(long) {
  const std::regex pattern("(a+)+b");
  const std::string text(22, 'a');
  Ready();
  for (;;) Must(!std::regex_match(text, pattern), "regex");
}

unsigned long Fibonacci(unsigned number) {
  return number < 2 ? number : Fibonacci(number - 1) + Fibonacci(number - 2);
}

void Recursion(long) {
  Ready();
  for (;;) Must(Fibonacci(32) == 2178309, "fibonacci");
}

void Collatz(long) {
  Ready();
  for (uint64_t start = 1;; ++start) {
    uint64_t number = start;
    while (number != 1) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
  }
}

void Sieve(long) {
  Ready();
  for (;;) {
    std::vector<bool> composite(1'000'000);
    int primes = 0;
    for (size_t i = 2; i < composite.size(); ++i) {
      if (composite[i]) continue;
      ++primes;
      for (size_t j = 2 * i; j < composite.size(); j += i) composite[j] = true;
    }
    Must(primes == 78498, "primes");
  }
}

void Floating(long) {
  Ready();
  double x = 0.1;
  for (long i = 0; i < 4'000'000'000'000; ++i) x = 3.9 * x * (1 - x);
  accumulated = x;
}

void BusyClock(long) {
  Ready();
  for (;;) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) {
    }
    ++counter;
  }
}

void BusyClockLong(long) {
  Ready();
  timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  timespec now = begin;
  while (now.tv_sec < begin.tv_sec + 600) clock_gettime(CLOCK_MONOTONIC, &now);
}

void BusyCycles(long) {
  Ready();
  const unsigned long long end = __rdtsc() + 3'000'000'000'000ULL;
  while (__rdtsc() < end) {
  }
}

// Counts in code that is in no file. mov rax, 4e12; back: dec rax; jne back; ret
void JitComputing(long) {
  const unsigned char code[] = {0x48, 0xb8, 0x00, 0x40, 0x94, 0x52, 0xa3, 0x03,
                                0x00, 0x00, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Must(memory != MAP_FAILED, "mmap");
  memcpy(memory, code, sizeof code);
  Ready();
  reinterpret_cast<void (*)()>(memory)();
}

void PollWithTimeout(long) {
  MakePipe(work_pipe);
  pollfd file = {work_pipe[0], POLLIN, 0};
  Ready();
  while (poll(&file, 1, 50) == 0) ++counter;
}

// The progress is outside: what it counts goes to the screen.
void PrintNumbers(long) {
  Ready();
  const int null = open("/dev/null", O_WRONLY);
  for (int i = 0;; ++i) dprintf(null, "line %d\n", i);
}

void BackOffProgress(long) {
  const auto take = [](pthread_mutex_t* first, pthread_mutex_t* second) {
    for (;;) {
      pthread_mutex_lock(first);
      if (pthread_mutex_trylock(second) == 0) {
        ++counter;
        pthread_mutex_unlock(second);
      }
      pthread_mutex_unlock(first);
      usleep(500);
    }
  };
  std::thread left(take, &lock_a, &lock_b);
  std::thread right(take, &lock_b, &lock_a);
  Ready();
  left.join();
  right.join();
}

void* HoldAndNap(void*) {
  for (;;) {
    pthread_mutex_lock(&lock_a);
    Nap(0.5);
    pthread_mutex_unlock(&lock_a);
    Nap(0.01);
  }
}

void TimedRetryProgress(long) {
  Start("holder", HoldAndNap);
  Nap(0.1);
  Ready();
  for (;;) {
    RetryLock();
    ++counter;
    pthread_mutex_unlock(&lock_a);
  }
}

void MakeFiles(long) {
  Ready();
  for (;;) close(open("/dev/null", O_RDONLY));
}

// --- Loops that nap, or count, and get somewhere; and such as do not.

std::atomic<unsigned long> beats{0};

void Beat(long) {
  Ready();
  for (;;) {
    usleep(2000);
    ++beats;
  }
}

// By turns, each naps until the other has set its word.
void NapForTurn(std::atomic<int>* own, std::atomic<int>* other) {
  for (;;) {
    while (own->load() == 0) usleep(700);
    own->store(0);
    other->store(1);
  }
}

void NapByTurns(long) {
  turn_left = 1;
  std::thread left(NapForTurn, &turn_left, &turn_right);
  std::thread right(NapForTurn, &turn_right, &turn_left);
  Ready();
  left.join();
  right.join();
}

void NapBothForTurn(long) {
  std::thread left(NapForTurn, &turn_left, &turn_right);
  std::thread right(NapForTurn, &turn_right, &turn_left);
  Ready();
  left.join();
  right.join();
}

void NapUntilDeadline(long) {
  Ready();
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const time_t end = now.tv_sec + 600;
  while (ready_flag == 0 && now.tv_sec < end) {
    usleep(2000);
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
}

void NapSoOften(long) {
  Ready();
  for (int times = 0; ready_flag == 0 && times < 1'000'000; ++times) usleep(1000);
}

void NapLonger(long) {
  Ready();
  for (useconds_t time = 1000; ready_flag == 0; time += time / 64 + 1) usleep(time);
}

// A job each time that the wait for work is over without any.
void WorkWithTimeouts(long) {
  Ready();
  pthread_mutex_lock(&lock_a);
  while (ready_flag == 0) {
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 5'000'000;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    pthread_cond_timedwait(&work_came, &lock_a, &end);
    sum = sum * 7 + 1;
  }
}

// Two processes, each of which naps until there is a byte from the other.
void NapForBytes(int from, int to) {
  for (;;) {
    char byte;
    while (read(from, &byte, 1) != 1) usleep(700);
    WriteByte(to);
  }
}

void NapForBytesByTurns(long) {
  int back[2];
  MakePipe(work_pipe);
  MakePipe(back);
  MakeNonBlocking(work_pipe[0]);
  MakeNonBlocking(back[0]);
  WriteByte(work_pipe[1]);
  if (Fork() == 0) NapForBytes(work_pipe[0], back[1]);
  Ready();
  NapForBytes(back[0], work_pipe[1]);
}

void NapForNothing(long) {
  Ready();
  for (;;) usleep(3000);
}

// How many of a list there are until a value, which is not in it, nor is its end.
__attribute__((noinline)) long PlaceOf(long value) {
  long place = 0;
  for (const Node* node = list_head; node != nullptr; node = node->next) {
    ++place;
    if (node->value == value) return place;
  }
  return -1;
}

void CountInCircle(long length) {
  MakeList(length, true);
  Ready();
  sum = static_cast<unsigned long>(PlaceOf(-1));
}

void CountInList(long length) {
  MakeList(length, false);
  Ready();
  for (;;) sum = sum + static_cast<unsigned long>(PlaceOf(-1));
}

const Program kPrograms[] = {
    {"flag", Flag},
    {"atomic-pause", AtomicPause},
    {"cas", CompareAndSwap},
    {"test-and-set", TestAndSet},
    {"seqlock", Seqlock},
    {"ticket", Ticket},
    {"yield", Yield},
    {"spin-locks-crossed", SpinLocksCrossed},
    {"spin-lock-twice", SpinLockTwice},
    {"mutual", Mutual},
    {"mutual-recursive", MutualRecursive},
    {"mutual-shared", MutualShared},
    {"cyclic-list", CyclicList},
    {"hash-chain", HashChain},
    {"never-true", NeverTrue},
    {"jit", Jit},
    {"local-flag", LocalFlag},
    {"join-spinner", JoinSpinner},
    {"spin-mutex", SpinAgainstMutex},
    {"futex-retry", FutexRetry},
    {"read-again", ReadAgain},
    {"write-again", WriteAgain},
    {"poll-zero", PollZero},
    {"select-zero", SelectZero},
    {"epoll-level", EpollLevel},
    {"poll-hang-up", PollHangUp},
    {"event-again", EventAgain},
    {"receive-again", ReceiveAgain},
    {"wait-no-hang", WaitNoHang},
    {"kill-zero", KillZero},
    {"try-lock", TryLock},
    {"try-semaphore", TrySemaphore},
    {"try-join", TryJoin},
    {"poll-future", PollFuture},
    {"poll-queue", PollQueue},
    {"nap-flag", NapFlag},
    {"timed-retry", TimedRetry},
    {"back-off-crossed", BackOffCrossed},
    {"timed-crossed", TimedCrossed},
    {"livelock", Livelock},
    {"condition-retry", ConditionRetry},
    {"clock-flag", ClockFlag},
    {"clock-deadline", ClockDeadline},
    // Controls.
    {"flag-computation", FlagOfComputation},
    {"flag-sleeper", FlagOfSleeper},
    {"flag-handler", FlagOfHandler},
    {"nap-handler", NapForHandler},
    {"pause-handler", PauseForHandler},
    {"spin-lock-contended", SpinLockContended},
    {"ticket-contended", TicketContended},
    {"seqlock-moving", SeqlockMoving},
    {"yield-turns", YieldTurns},
    {"try-lock-contended", TryLockContended},
    {"poll-producer", PollWithProducer},
    {"read-producer", ReadAgainWithProducer},
    {"epoll-busy", EpollBusy},
    {"event-ping-pong", EventPingPong},
    {"reap-sleeper", ReapSleeper},
    {"reap-sleeper-napping", ReapSleeperNapping},
    {"nap-file", NapForFile},
    {"spin-file", SpinForFile},
    {"accept-again", AcceptAgain},
    {"spin-process", SpinForOtherProcess},
    {"spin-sleeping-process", SpinForSleepingProcess},
    {"walk-updates", WalkWithUpdates},
    {"search-again", SearchAgain},
    {"search-all", SearchAll},
    {"hash-look-ups", HashLookUps},
    {"map-look-ups", MapLookUps},
    {"primes", Primes},
    {"one-prime", OnePrime},
    {"fnv", Fnv},
    {"random", RandomNumbers},
    {"count-down", CountDown},
    {"copy-memory", CopyMemory},
    {"compare-memory", CompareMemory},
    {"matrix", Matrix},
    {"sort", Sort},
    {"regex", Regex},
    {"recursion", Recursion},
    {"collatz", Collatz},
    {"sieve", Sieve},
    {"floating", Floating},
    {"busy-clock", BusyClock},
    {"busy-clock-long", BusyClockLong},
    {"busy-cycles", BusyCycles},
    {"jit-computing", JitComputing},
    {"poll-timeout", PollWithTimeout},
    {"print-numbers", PrintNumbers},
    {"back-off-progress", BackOffProgress},
    {"timed-retry-progress", TimedRetryProgress},
    {"make-files", MakeFiles},
    {"beat", Beat},
    {"nap-by-turns", NapByTurns},
    {"nap-both-for-turn", NapBothForTurn},
    {"nap-until-deadline", NapUntilDeadline},
    {"nap-so-often", NapSoOften},
    {"nap-longer", NapLonger},
    {"work-with-timeouts", WorkWithTimeouts},
    {"nap-for-bytes-by-turns", NapForBytesByTurns},
    {"nap-for-nothing", NapForNothing},
    {"count-in-circle", CountInCircle},
    {"count-in-list", CountInList},
    {"spin-shared-file", SpinForSharedFile},
    {"spin-private-file", SpinForPrivateFile},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

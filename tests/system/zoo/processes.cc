// usage: zoo_processes NAME [NUMBER]
// Processes that wait for each other, or for one that is stuck, and such as only wait for one that
// works.
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
int to_child[2];
int to_parent[2];
int ends[2];
volatile unsigned long sum = 0;

struct SharedState {
  std::atomic<int> came{0};
  pthread_mutex_t mutex_a;
  pthread_mutex_t mutex_b;
  pthread_rwlock_t table;
  pthread_cond_t not_empty;
  pthread_barrier_t phase;
  sem_t sem_a;
  sem_t sem_b;
  long counter = 0;
};
SharedState* shared;

void ShareMemory(int robust = PTHREAD_MUTEX_STALLED) {
  void* const memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Must(memory != MAP_FAILED, "mmap");
  shared = new (memory) SharedState();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, robust);
  pthread_mutex_init(&shared->mutex_a, &attributes);
  pthread_mutex_init(&shared->mutex_b, &attributes);
  pthread_rwlockattr_t table_attributes;
  pthread_rwlockattr_init(&table_attributes);
  pthread_rwlockattr_setpshared(&table_attributes, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared->table, &table_attributes);
  pthread_condattr_t condition_attributes;
  pthread_condattr_init(&condition_attributes);
  pthread_condattr_setpshared(&condition_attributes, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->not_empty, &condition_attributes);
  pthread_barrierattr_t barrier_attributes;
  pthread_barrierattr_init(&barrier_attributes);
  pthread_barrierattr_setpshared(&barrier_attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->phase, &barrier_attributes, 2);
  sem_init(&shared->sem_a, 1, 1);
  sem_init(&shared->sem_b, 1, 1);
}

void Come(int count) {
  ++shared->came;
  while (shared->came < count) Nap(0.0005);
}

// Runs the first in this process and the second in a child, by these names.
void AsTwo(void (*first)(), void (*second)()) {
  if (shared == nullptr) ShareMemory();
  Ready();
  if (Fork() == 0) {
    Rename("second");
    second();
    _exit(0);
  }
  Rename("first");
  first();
}

[[noreturn]] void SleepInChild() {
  execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
  _exit(98);
}

// A child with a pipe to its standard input and one from its output.
pid_t OpenTwo(std::vector<const char*> words) {
  MakePipe(to_child);
  MakePipe(to_parent);
  fcntl(to_child[1], F_SETFD, FD_CLOEXEC);
  fcntl(to_parent[0], F_SETFD, FD_CLOEXEC);
  const pid_t child = Fork();
  if (child == 0) {
    dup2(to_child[0], 0);
    dup2(to_parent[1], 1);
    close(to_child[0]);
    close(to_parent[1]);
    words.push_back(nullptr);
    execvp(words[0], const_cast<char**>(words.data()));
    _exit(98);
  }
  close(to_child[0]);
  close(to_parent[1]);
  return child;
}

void WriteMuch(int fd) {
  static const char block[65536] = {};
  for (int i = 0; i < 200; ++i) Must(write(fd, block, sizeof block) > 0, "write");
}

// --- Two processes.

void AwaitReply() {
  close(to_child[0]);
  close(to_parent[1]);
  ReadByte(to_parent[0]);
}

void AwaitRequest() {
  close(to_child[1]);
  close(to_parent[0]);
  ReadByte(to_child[0]);
}

void TwoPipes(long) {
  MakePipe(to_child);
  MakePipe(to_parent);
  AsTwo(AwaitReply, AwaitRequest);
}

void SocketPair(long) {
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  AsTwo(
      [] {
        close(ends[1]);
        ReadByte(ends[0]);
      },
      [] {
        close(ends[0]);
        ReadByte(ends[1]);
      });
}

void ReapReader(pid_t child) { waitpid(child, nullptr, 0); }

// The parent closes the pipe after the child's end.
void WaitForReader(long) {
  MakePipe(to_child);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("reader");
    close(to_child[1]);
    ReadByte(to_child[0]);
    _exit(0);
  }
  close(to_child[0]);
  Ready();
  ReapReader(child);
}

// Sorts when its input ends, and that is still open.
void ReadFromSort() { ReadByte(to_parent[0]); }

void OpenSort(long) {
  OpenTwo({"sort"});
  WriteByte(to_child[1]);
  Ready();
  ReadFromSort();
}

void FeedCat() {
  WriteMuch(to_child[1]);
  ReadByte(to_parent[0]);
}

void CatIsFull(long) {
  OpenTwo({"cat"});
  Ready();
  FeedCat();
}

// Reads the child's errors to the end, while the child writes its output.
void ReadErrors() { ReadByte(to_child[0]); }

void OutputFirst(long) {
  MakePipe(to_child);  // its errors
  MakePipe(to_parent);
  if (Fork() == 0) {
    Rename("talker");
    close(to_child[0]);
    close(to_parent[0]);
    WriteMuch(to_parent[1]);
    WriteByte(to_child[1]);
    _exit(0);
  }
  close(to_child[1]);
  close(to_parent[1]);
  Ready();
  ReadErrors();
}

void LockFirst() {
  pthread_mutex_lock(&shared->mutex_a);
  Come(2);
  pthread_mutex_lock(&shared->mutex_b);
}

void LockSecond() {
  pthread_mutex_lock(&shared->mutex_b);
  Come(2);
  pthread_mutex_lock(&shared->mutex_a);
}

void SharedAbba(long) { AsTwo(LockFirst, LockSecond); }

void LockAfterDeath() { pthread_mutex_lock(&shared->mutex_a); }

void SharedOwnerDied(long) {
  ShareMemory();
  const pid_t child = Fork();
  if (child == 0) {
    pthread_mutex_lock(&shared->mutex_a);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Ready();
  LockAfterDeath();
}

void ReadTableAfterDeath() { pthread_rwlock_rdlock(&shared->table); }

void SharedWriterDied(long) {
  ShareMemory();
  const pid_t child = Fork();
  if (child == 0) {
    pthread_rwlock_wrlock(&shared->table);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Ready();
  ReadTableAfterDeath();
}

void DownFirst() {
  sem_wait(&shared->sem_a);
  Come(2);
  sem_wait(&shared->sem_b);
}

void DownSecond() {
  sem_wait(&shared->sem_b);
  Come(2);
  sem_wait(&shared->sem_a);
}

void SharedSemaphores(long) { AsTwo(DownFirst, DownSecond); }

void ConsumeShared() {
  pthread_mutex_lock(&shared->mutex_a);
  for (;;) pthread_cond_wait(&shared->not_empty, &shared->mutex_a);
}

void SharedCondition(long) { AsTwo(ConsumeShared, ConsumeShared); }

void EndSharedPhase() { pthread_barrier_wait(&shared->phase); }

// The other one of the two has died before it came there.
void SharedBarrier(long) {
  ShareMemory();
  const pid_t child = Fork();
  if (child == 0) _exit(1);
  waitpid(child, nullptr, 0);
  Ready();
  EndSharedPhase();
}

void LockAndReadPipe() {
  close(to_parent[1]);
  pthread_mutex_lock(&shared->mutex_a);
  Come(2);
  ReadByte(to_parent[0]);
}

void LockAndWritePipe() {
  Come(2);
  pthread_mutex_lock(&shared->mutex_a);
  WriteByte(to_parent[1]);
}

void MutexAndPipe(long) {
  MakePipe(to_parent);
  AsTwo(LockAndReadPipe, LockAndWritePipe);
}

// --- More processes.

std::vector<int> ring_ends;

void ReadFromPrevious(int own, int size) {
  for (int i = 0; i < size; ++i) {
    if (i != own) close(ring_ends[2 * i]);
    if (i != (own + 1) % size) close(ring_ends[2 * i + 1]);
  }
  ReadByte(ring_ends[2 * own]);
}

void Ring(long size) {
  for (long i = 0; i < size; ++i) {
    int pair[2];
    Must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    ring_ends.push_back(pair[0]);
    ring_ends.push_back(pair[1]);
  }
  const int count = static_cast<int>(size);
  for (int i = 1; i < count; ++i) {
    if (Fork() != 0) continue;
    Rename("member");
    ReadFromPrevious(i, count);
    _exit(0);
  }
  Rename("member");
  Ready();
  ReadFromPrevious(0, count);
}

void AwaitSibling() { ReadByte(to_child[0]); }
void AwaitOther() { ReadByte(to_parent[0]); }

// Two children wait for each other, and the parent for both.
void Siblings(long) {
  MakePipe(to_child);
  MakePipe(to_parent);
  if (Fork() == 0) {
    Rename("elder");
    close(to_child[1]);
    close(to_parent[0]);
    AwaitSibling();
    _exit(0);
  }
  if (Fork() == 0) {
    Rename("younger");
    close(to_child[0]);
    close(to_parent[1]);
    AwaitOther();
    _exit(0);
  }
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void* TakeLeft(void*) {
  pthread_mutex_lock(&lock_a);
  Come(2);
  pthread_mutex_lock(&lock_b);
  return nullptr;
}

void* TakeRight(void*) {
  pthread_mutex_lock(&lock_b);
  Come(2);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void Abba(long) {
  ShareMemory();
  const pthread_t left = Start("left", TakeLeft);
  const pthread_t right = Start("right", TakeRight);
  Ready();
  Join({left, right});
}

// Its input, for ever; but who has the other end has forgotten it.
void ReadInput(long) {
  Ready();
  char byte;
  while (read(0, &byte, 1) == 1) {
  }
}

// Make's end of the pipe does not block.
void TakeToken(int reads) {
  char byte;
  do {
    pollfd file = {reads, POLLIN, 0};
    poll(&file, 1, -1);
  } while (read(reads, &byte, 1) != 1);
}

// Takes so many tokens of make's jobserver, and gives none back.
void TakeTokens(long count) {
  const char* const flags = getenv("MAKEFLAGS");
  const char* const found =
      flags == nullptr ? nullptr : strstr(const_cast<char*>(flags), "--jobserver-auth=");
  Must(found != nullptr, "no jobserver");
  const int reads = atoi(found + strlen("--jobserver-auth="));
  Rename("tokens");
  Ready();
  for (long i = 0; i < count; ++i) TakeToken(reads);
}

// Of a jobserver of its own: one client has the token, and waits for the other one's end, which
// waits for the token.
void LostToken(long) {
  int tokens[2];
  MakePipe(tokens);
  WriteByte(tokens[1]);
  MakePipe(to_parent);
  if (Fork() == 0) {
    Rename("linker");
    ReadByte(tokens[0]);
    close(to_parent[1]);
    close(tokens[0]);
    const int keeps = tokens[1];
    ReadByte(to_parent[0]);
    WriteByte(keeps);
    _exit(0);
  }
  Nap(0.2);
  if (Fork() == 0) {
    Rename("compiler");
    close(tokens[1]);
    ReadByte(tokens[0]);
    WriteByte(to_parent[1]);
    _exit(0);
  }
  for (const int end : {tokens[0], tokens[1], to_parent[0], to_parent[1]}) close(end);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

// Leaves a child that keeps its standard output, in the background; and that is stuck, or serves.
void Daemonise(long serves) {
  if (fork() != 0) return;
  EndWithParent();
  prctl(PR_SET_PDEATHSIG, 0);
  setsid();
  Rename("daemon");
  if (serves != 0) {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    listen(listening, 1);
    accept(listening, nullptr, nullptr);
  } else {
    pthread_mutex_lock(&lock_a);
    pthread_mutex_lock(&lock_a);
  }
}

// Says what a script is to say.
void SayReady(long) { Ready(); }

// --- Terminals, and semaphores with names.

// Runs it in a terminal of its own, whose other side is this process's alone.
pid_t InTerminal(int* ours, void (*does)()) {
  const pid_t child = forkpty(ours, nullptr, nullptr, nullptr);
  Must(child >= 0, "forkpty");
  if (child != 0) return child;
  EndWithParent();
  Rename("talker");
  does();
  _exit(0);
}

void FillTerminal() { WriteMuch(1); }

void ReapTalker(pid_t child) { waitpid(child, nullptr, 0); }

// As a script that waits for a command in a terminal before it reads what that says.
void TerminalFull(long) {
  int ours;
  const pid_t child = InTerminal(&ours, FillTerminal);
  Nap(0.2);
  Ready();
  ReapTalker(child);
}

sem_t* free_slots;
sem_t* full_slots;
char semaphore_names[2][64];

sem_t* OpenSemaphore(int which, const char* name) {
  char(&all)[64] = semaphore_names[which];
  snprintf(all, sizeof all, "/hangscope-zoo-%s-%d", name, getpid());
  sem_t* const semaphore = sem_open(all, O_CREAT | O_EXCL, 0600, 0);
  Must(semaphore != SEM_FAILED, "sem_open");
  return semaphore;
}

// What outlives its users is removed after their end by a process that is none of theirs: it has
// forgotten the environment by which test_zoo.py knows those, and has no semaphore.
void OpenSemaphores() {
  int alive[2];
  MakePipe(alive);
  const pid_t owner = getpid();
  if (fork() == 0) {
    if (fork() == 0) {
      close(alive[1]);
      close(1);
      close(2);
      setsid();
      for (char** text = environ; *text != nullptr; ++text) memset(*text, 'x', strlen(*text));
      char byte;
      if (read(alive[0], &byte, 1) <= 0) {
        for (const char* name : {"free", "full"}) {
          char all[64];
          snprintf(all, sizeof all, "/hangscope-zoo-%s-%d", name, owner);
          sem_unlink(all);
        }
      }
    }
    _exit(0);
  }
  wait(nullptr);
  close(alive[0]);
  free_slots = OpenSemaphore(0, "free");
  full_slots = OpenSemaphore(1, "full");
}

void Produce() {
  for (;;) {
    sem_wait(free_slots);
    sem_post(full_slots);
  }
}

void Consume() {
  for (;;) {
    sem_wait(full_slots);
    sem_post(free_slots);
  }
}

// No slot is free, and none is full.
void NamedSemaphores(long) {
  OpenSemaphores();
  AsTwo(Produce, Consume);
}

// --- Controls.

void PipesByTurns(long) {
  MakePipe(to_child);
  MakePipe(to_parent);
  AsTwo(
      [] {
        for (;;) {
          WriteByte(to_child[1]);
          ReadByte(to_parent[0]);
        }
      },
      [] {
        for (;;) {
          ReadByte(to_child[0]);
          Nap(0.02);
          WriteByte(to_parent[1]);
        }
      });
}

void RingPasses(long size) {
  for (long i = 0; i < size; ++i) {
    int pair[2];
    Must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    ring_ends.push_back(pair[0]);
    ring_ends.push_back(pair[1]);
  }
  const auto pass = [size](long own) {
    for (;;) {
      ReadByte(ring_ends[2 * own]);
      Nap(0.05);
      WriteByte(ring_ends[2 * ((own + 1) % size) + 1]);
    }
  };
  for (long i = 1; i < size; ++i) {
    if (Fork() == 0) pass(i);
  }
  WriteByte(ring_ends[1]);
  Ready();
  pass(0);
}

void SharedContended(long) {
  const auto count = [] {
    for (;;) {
      pthread_mutex_lock(&shared->mutex_a);
      const long before = shared->counter;
      shared->counter = before + 1;
      Must(shared->counter == before + 1, "lost an addition");
      pthread_mutex_unlock(&shared->mutex_a);
    }
  };
  AsTwo(count, count);
}

void SharedHeldInNap(long) {
  AsTwo(
      [] {
        Come(2);
        pthread_mutex_lock(&shared->mutex_a);
      },
      [] {
        pthread_mutex_lock(&shared->mutex_a);
        Come(2);
        NapForLong();
      });
}

void SharedRobust(long) {
  ShareMemory(PTHREAD_MUTEX_ROBUST);
  const pid_t child = Fork();
  if (child == 0) {
    pthread_mutex_lock(&shared->mutex_a);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Must(pthread_mutex_lock(&shared->mutex_a) == EOWNERDEAD, "robust");
  pthread_mutex_consistent(&shared->mutex_a);
  Ready();
  NapForLong();
}

void SharedConditionTicks(long) {
  AsTwo(ConsumeShared, [] {
    for (;;) {
      Nap(0.1);
      pthread_cond_signal(&shared->not_empty);
    }
  });
}

void SharedSemaphoreOfComputer(long) {
  ShareMemory();
  sem_wait(&shared->sem_a);
  AsTwo([] { sem_wait(&shared->sem_a); },
        [] {
          for (unsigned long i = 0; i < 400'000'000'000; ++i) sum = sum * 7 + i;
          sem_post(&shared->sem_a);
        });
}

void WaitForComputer(long) {
  AsTwo([] { wait(nullptr); },
        [] {
          for (unsigned long i = 0; i < 400'000'000'000; ++i) sum = sum * 7 + i;
        });
}

void WaitForServer(long) {
  AsTwo([] { wait(nullptr); },
        [] {
          const int listening = socket(AF_INET, SOCK_STREAM, 0);
          listen(listening, 1);
          accept(listening, nullptr, nullptr);
        });
}

void SortOfSlowInput(long) {
  MakePipe(to_child);
  if (Fork() == 0) {
    dup2(to_child[0], 0);
    close(to_child[0]);
    close(to_child[1]);
    execlp("sort", "sort", static_cast<char*>(nullptr));
    _exit(98);
  }
  close(to_child[0]);
  Ready();
  for (;;) {
    WriteByte(to_child[1]);
    Nap(0.3);
  }
}

void ReadsFromServer(long) {
  MakePipe(to_parent);
  AsTwo(
      [] {
        close(to_parent[1]);
        ReadByte(to_parent[0]);
      },
      [] {
        const int listening = socket(AF_INET, SOCK_STREAM, 0);
        listen(listening, 1);
        accept(listening, nullptr, nullptr);
      });
}

void TwoSleepers(long) {
  if (Fork() == 0) SleepInChild();
  if (Fork() == 0) SleepInChild();
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void Sleeper(long) {
  Ready();
  NapForLong();
}

void TerminalSlowReader(long) {
  int ours;
  InTerminal(&ours, FillTerminal);
  Ready();
  char block[1024];
  for (;;) {
    Nap(0.1);
    Must(read(ours, block, sizeof block) > 0, "read");
  }
}

// A talker that is silent for long.
void TerminalSilent(long) {
  int ours;
  const pid_t child = InTerminal(&ours, NapForLong);
  Ready();
  ReapTalker(child);
}

void NamedSemaphoresByTurns(long) {
  OpenSemaphores();
  sem_post(free_slots);
  AsTwo(
      [] {
        for (;;) {
          sem_wait(free_slots);
          Nap(0.1);
          sem_post(full_slots);
        }
      },
      Consume);
}

// Workers that idle on one semaphore: whoever has work posts it by its name.
void NamedSemaphoreOfWorkers(long) {
  OpenSemaphores();
  const auto work = [] {
    for (;;) sem_wait(full_slots);
  };
  AsTwo(work, work);
}

const Program kPrograms[] = {
    {"two-pipes", TwoPipes},
    {"socket-pair", SocketPair},
    {"wait-reader", WaitForReader},
    {"open-sort", OpenSort},
    {"cat-full", CatIsFull},
    {"output-first", OutputFirst},
    {"shared-abba", SharedAbba},
    {"shared-owner-died", SharedOwnerDied},
    {"shared-writer-died", SharedWriterDied},
    {"shared-semaphores", SharedSemaphores},
    {"shared-condition", SharedCondition},
    {"shared-barrier", SharedBarrier},
    {"mutex-pipe", MutexAndPipe},
    {"ring", Ring},
    {"siblings", Siblings},
    {"abba", Abba},
    {"read-input", ReadInput},
    {"take-tokens", TakeTokens},
    {"lost-token", LostToken},
    {"daemonise", Daemonise},
    {"say-ready", SayReady},
    {"terminal-full", TerminalFull},
    {"named-semaphores", NamedSemaphores},
    // Controls.
    {"pipes-turns", PipesByTurns},
    {"ring-passes", RingPasses},
    {"shared-contended", SharedContended},
    {"shared-held-nap", SharedHeldInNap},
    {"shared-robust", SharedRobust},
    {"shared-condition-ticks", SharedConditionTicks},
    {"shared-semaphore-computer", SharedSemaphoreOfComputer},
    {"wait-computer", WaitForComputer},
    {"wait-server", WaitForServer},
    {"sort-slow", SortOfSlowInput},
    {"read-server", ReadsFromServer},
    {"two-sleepers", TwoSleepers},
    {"terminal-slow-reader", TerminalSlowReader},
    {"terminal-silent", TerminalSilent},
    {"named-semaphores-turns", NamedSemaphoresByTurns},
    {"named-semaphore-workers", NamedSemaphoreOfWorkers},
    {"sleeper", Sleeper},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

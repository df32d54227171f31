// usage: zoo_file_locks NAME
// Locks of files that are asked for again and again, with a nap in between; that were inherited;
// and mutexes in files whose owner has ended.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <tuple>
#include <utility>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

int OpenFile(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Must(file >= 0, "open");
  return file;
}

bool TryRange(int file, int command, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_len = 10;
  return fcntl(file, command, &range) == 0;
}

// As programs do that would like to give up after a while.
void PollFlock(int file) {
  while (flock(file, LOCK_EX | LOCK_NB) != 0) usleep(100'000);
}

void PollRange(int file, int command) {
  while (!TryRange(file, command, F_WRLCK)) usleep(100'000);
}

// Two processes, and their parent, which waits for both.
void AsTwo(void (*first)(), void (*second)()) {
  for (const auto& [name, run] : {std::pair("first", first), std::pair("second", second)}) {
    if (Fork() != 0) continue;
    Rename(name);
    run();
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
}

// Each has its own lock by then.
void MeetAtFiles() { Nap(0.2); }

void PollBoth(const char* own, const char* other) {
  const int one = OpenFile(own);
  const int two = OpenFile(other);
  flock(one, LOCK_EX);
  MeetAtFiles();
  PollFlock(two);
}

void PollBothRanges(const char* own, const char* other, int set) {
  const int one = OpenFile(own);
  const int two = OpenFile(other);
  Must(TryRange(one, set, F_WRLCK), "lock");
  MeetAtFiles();
  PollRange(two, set);
}

// --- Hangs.

void FlockCrossed(long) {
  Ready();
  AsTwo([] { PollBoth("a.lock", "b.lock"); }, [] { PollBoth("b.lock", "a.lock"); });
}

void RangesCrossed(long) {
  Ready();
  AsTwo([] { PollBothRanges("a.lock", "b.lock", F_SETLK); },
        [] { PollBothRanges("b.lock", "a.lock", F_SETLK); });
}

void FlockTwice(long) {
  const int one = OpenFile("a.lock");
  const int other = OpenFile("a.lock");
  flock(one, LOCK_EX);
  Ready();
  PollFlock(other);
}

// It holds the lock, and reads a pipe that only itself could write.
void HoldAndRead() {
  const int file = OpenFile("a.lock");
  flock(file, LOCK_EX);
  int own[2];
  MakePipe(own);
  ReadByte(own[0]);
}

void FlockOfStuck(long) {
  Ready();
  AsTwo(HoldAndRead, [] {
    MeetAtFiles();
    PollFlock(OpenFile("a.lock"));
  });
}

// Each of three has the lock that the one before it polls for.
void FlockCircle(long) {
  Ready();
  for (const auto& [name, own, other] :
       {std::tuple("first", "a.lock", "b.lock"), std::tuple("second", "b.lock", "c.lock"),
        std::tuple("third", "c.lock", "a.lock")}) {
    if (Fork() != 0) continue;
    Rename(name);
    PollBoth(own, other);
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
}

// One polls, the other waits in the kernel.
void FlockHalfPolled(long) {
  Ready();
  AsTwo([] { PollBoth("a.lock", "b.lock"); },
        [] {
          flock(OpenFile("b.lock"), LOCK_EX);
          MeetAtFiles();
          flock(OpenFile("a.lock"), LOCK_EX);
        });
}

// Without a nap.
void SpinForFlock(const char* own, const char* other) {
  flock(OpenFile(own), LOCK_EX);
  const int two = OpenFile(other);
  MeetAtFiles();
  while (flock(two, LOCK_EX | LOCK_NB) != 0) sched_yield();
}

void FlockSpunCrossed(long) {
  Ready();
  AsTwo([] { SpinForFlock("a.lock", "b.lock"); }, [] { SpinForFlock("b.lock", "a.lock"); });
}

// The daemon has the lock from who started it, and waits for who wants it.
void FlockInherited(long) {
  int to_daemon[2];
  MakePipe(to_daemon);
  if (Fork() == 0) {
    const int file = open("a.lock", O_RDWR | O_CREAT, 0600);
    flock(file, LOCK_EX);
    if (fork() != 0) _exit(0);
    Rename("daemon");
    close(to_daemon[1]);
    ReadByte(to_daemon[0]);
    _exit(0);
  }
  wait(nullptr);
  close(to_daemon[0]);
  Nap(0.1);
  Ready();
  flock(OpenFile("a.lock"), LOCK_EX);
  WriteByte(to_daemon[1]);
}

pthread_mutex_t* SharedMutex(const char* path, bool is_robust) {
  const int file = OpenFile(path);
  Must(ftruncate(file, 4096) == 0, "ftruncate");
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Must(memory != MAP_FAILED, "mmap");
  close(file);
  auto* const mutex = static_cast<pthread_mutex_t*>(memory);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (is_robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  return mutex;
}

// Who held the mutex of the file has ended with it.
void OwnerEnded(long) {
  pthread_mutex_t* const mutex = SharedMutex("counts.shm", false);
  const pid_t child = Fork();
  if (child == 0) {
    pthread_mutex_lock(mutex);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Ready();
  pthread_mutex_lock(mutex);
}

// --- Controls.

void HoldAndNap() {
  const int file = OpenFile("a.lock");
  flock(file, LOCK_EX);
  NapForLong();
}

void HoldRangeAndNap() {
  const int file = OpenFile("a.lock");
  Must(TryRange(file, F_SETLK, F_WRLCK), "lock");
  NapForLong();
}

void HoldAndServe() {
  const int file = OpenFile("a.lock");
  flock(file, LOCK_EX);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
           listen(listening, 8) == 0,
       "listen");
  for (;;) close(accept(listening, nullptr, nullptr));
}

volatile unsigned long sum = 0;

void HoldAndCompute() {
  const int file = OpenFile("a.lock");
  flock(file, LOCK_EX);
  for (unsigned long i = 0;; ++i) sum = sum * 7 + i % 13;
}

void PollIt() {
  MeetAtFiles();
  PollFlock(OpenFile("a.lock"));
}

void PollRangeOfIt() {
  MeetAtFiles();
  PollRange(OpenFile("a.lock"), F_SETLK);
}

void PolledOf(void (*holder)(), void (*poller)() = PollIt) {
  Ready();
  AsTwo(holder, poller);
}

void PolledSleeper(long) { PolledOf(HoldAndNap); }
void PolledServer(long) { PolledOf(HoldAndServe); }
void PolledComputer(long) { PolledOf(HoldAndCompute); }
void PolledRange(long) { PolledOf(HoldRangeAndNap, PollRangeOfIt); }

void TakeTurns() {
  const int file = OpenFile("a.lock");
  for (;;) {
    PollFlock(file);
    Nap(0.3);
    flock(file, LOCK_UN);
    Nap(0.05);
  }
}

void PolledTurns(long) { PolledOf(TakeTurns, TakeTurns); }

// The lock is had by the child of who took it, which has ended, and that child naps.
void PolledHeir(long) {
  if (Fork() == 0) {
    const int file = open("a.lock", O_RDWR | O_CREAT, 0600);
    flock(file, LOCK_EX);
    if (fork() != 0) _exit(0);
    Rename("daemon");
    NapForLong();
  }
  wait(nullptr);
  Ready();
  PollFlock(OpenFile("a.lock"));
}

// Two threads of one process, by two descriptors; the one that has it gives it back in time.
void* HoldForAWhile(void* argument) {
  const int file = static_cast<int>(Number(argument));
  for (;;) {
    PollFlock(file);
    Nap(0.5);
    flock(file, LOCK_UN);
    Nap(0.1);
  }
}

void PolledThread(long) {
  Start("one", HoldForAWhile, OpenFile("a.lock"));
  Ready();
  HoldForAWhile(reinterpret_cast<void*>(static_cast<long>(OpenFile("a.lock"))));
}

// Who ended with a robust mutex leaves it to the next.
void RobustOwnerEnded(long) {
  pthread_mutex_t* const mutex = SharedMutex("counts.shm", true);
  Ready();
  for (;;) {
    const pid_t child = Fork();
    if (child == 0) {
      if (pthread_mutex_lock(mutex) == EOWNERDEAD) pthread_mutex_consistent(mutex);
      Nap(0.3);
      _exit(0);
    }
    Nap(0.1);
    if (pthread_mutex_lock(mutex) == EOWNERDEAD) pthread_mutex_consistent(mutex);
    pthread_mutex_unlock(mutex);
    waitpid(child, nullptr, 0);
  }
}

void MutexOfSleeper(long) {
  pthread_mutex_t* const mutex = SharedMutex("counts.shm", false);
  if (Fork() == 0) {
    pthread_mutex_lock(mutex);
    NapForLong();
  }
  Nap(0.2);
  Ready();
  pthread_mutex_lock(mutex);
}

// Each gives back its own lock after a number of tries, and begins anew.
void PollSomeTimes(const char* own, const char* other, int tries) {
  const int one = OpenFile(own);
  const int two = OpenFile(other);
  for (;;) {
    PollFlock(one);
    for (int i = 0; i < tries && flock(two, LOCK_EX | LOCK_NB) != 0; ++i) usleep(100'000);
    flock(two, LOCK_UN);
    flock(one, LOCK_UN);
    usleep(50'000);
  }
}

void CrossedGivesUp(long) {
  Ready();
  AsTwo([] { PollSomeTimes("a.lock", "b.lock", 25); },
        [] { PollSomeTimes("b.lock", "a.lock", 40); });
}

double SecondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Likewise when a time has passed.
void PollForAWhile(const char* own, const char* other) {
  const int one = OpenFile(own);
  const int two = OpenFile(other);
  for (;;) {
    PollFlock(one);
    const double until = SecondsNow() + 4;
    while (flock(two, LOCK_EX | LOCK_NB) != 0 && SecondsNow() < until) usleep(100'000);
    flock(two, LOCK_UN);
    flock(one, LOCK_UN);
    usleep(50'000);
  }
}

void CrossedUntil(long) {
  Ready();
  AsTwo([] { PollForAWhile("a.lock", "b.lock"); }, [] { PollForAWhile("b.lock", "a.lock"); });
}

// Another thread of the first gives its lock back after a while.
void* GiveBackLater(void* argument) {
  for (;;) {
    Nap(3);
    flock(static_cast<int>(Number(argument)), LOCK_UN);
  }
}

void CrossedBesideThread(long) {
  Ready();
  AsTwo(
      [] {
        const int one = OpenFile("a.lock");
        flock(one, LOCK_EX);
        Start("returner", GiveBackLater, one);
        MeetAtFiles();
        PollFlock(OpenFile("b.lock"));
        NapForLong();
      },
      [] {
        PollBoth("b.lock", "a.lock");
        NapForLong();
      });
}

int given_by_handler = -1;

// So does the handler of a timer's signal.
void CrossedWithTimer(long) {
  Ready();
  AsTwo(
      [] {
        given_by_handler = OpenFile("a.lock");
        flock(given_by_handler, LOCK_EX);
        Handle(SIGALRM, [](int) { flock(given_by_handler, LOCK_UN); });
        alarm(60);
        MeetAtFiles();
        PollFlock(OpenFile("b.lock"));
        NapForLong();
      },
      [] { PollBoth("b.lock", "a.lock"); });
}

// The lock that both poll for is a third one's, who naps.
void OneForBoth(const char* own) {
  flock(OpenFile(own), LOCK_EX);
  MeetAtFiles();
  PollFlock(OpenFile("a.lock"));
}

void BothPollThird(long) {
  if (Fork() == 0) HoldAndNap();
  Nap(0.1);
  PolledOf([] { OneForBoth("b.lock"); }, [] { OneForBoth("c.lock"); });
}

// Readers share a lock of the file that a writer polls for, and one of them naps.
void SharedAndPolled(long) {
  if (Fork() == 0) {
    flock(OpenFile("b.lock"), LOCK_SH);
    NapForLong();
  }
  Nap(0.1);
  PolledOf([] { PollBoth("a.lock", "b.lock"); },
           [] {
             flock(OpenFile("b.lock"), LOCK_SH);
             MeetAtFiles();
             PollFlock(OpenFile("a.lock"));
           });
}

const Program kPrograms[] = {
    {"flock-crossed", FlockCrossed},
    {"ranges-crossed", RangesCrossed},
    {"flock-twice", FlockTwice},
    {"flock-of-stuck", FlockOfStuck},
    {"flock-inherited", FlockInherited},
    {"owner-ended", OwnerEnded},
    {"polled-sleeper", PolledSleeper},
    {"polled-server", PolledServer},
    {"polled-computer", PolledComputer},
    {"polled-range", PolledRange},
    {"polled-turns", PolledTurns},
    {"polled-heir", PolledHeir},
    {"polled-thread", PolledThread},
    {"robust-owner-ended", RobustOwnerEnded},
    {"mutex-of-sleeper", MutexOfSleeper},
    {"flock-circle", FlockCircle},
    {"flock-half-polled", FlockHalfPolled},
    {"flock-spun-crossed", FlockSpunCrossed},
    {"crossed-gives-up", CrossedGivesUp},
    {"crossed-until", CrossedUntil},
    {"crossed-beside-thread", CrossedBesideThread},
    {"crossed-with-timer", CrossedWithTimer},
    {"both-poll-third", BothPollThird},
    {"shared-and-polled", SharedAndPolled},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

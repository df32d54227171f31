// usage: zoo_signals_fork NAME
// Handlers of signals that need what they have interrupted, children of fork() that need what it
// did not copy, and waits for signals that cannot come. And programs that do the same without harm.
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <mutex>
#include <thread>
#include <vector>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table_a = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
std::mutex journal;
std::atomic<int> spin_lock{0};
std::atomic<int> arena_word{0};
std::atomic<long> entered{0};
std::atomic<long> left_again{0};
sem_t sem_a;
sigjmp_buf retry_point;
int work_pipe[2];
volatile sig_atomic_t ready_flag = 0;
volatile unsigned long sum = 0;
pthread_t main_thread;

Meeting have_first;

// --- Handlers.

// Sends a signal to the main thread again and again, until its handler does not come back.
void* SendUntilStuck(void*) {
  for (int still = 0; still < 100;) {
    const long before = left_again;
    if (entered == before) pthread_kill(main_thread, SIGUSR1);
    Nap(0.001);
    still = left_again == before && entered != before ? still + 1 : 0;
  }
  Ready();
  return nullptr;
}

void InterruptUntilStuck(void (*handler)(int)) {
  main_thread = pthread_self();
  Handle(SIGUSR1, handler);
  Start("sender", SendUntilStuck);
}

void* volatile kept = nullptr;

void AllocateInHandler(int) {
  ++entered;
  free(malloc(40'000));
  ++left_again;
}

void HandlerAllocates(long) {
  InterruptUntilStuck(AllocateInHandler);
  for (;;) {
    kept = malloc(50'000);
    free(kept);
  }
}

void TellTimeInHandler(int) {
  const time_t now = 0;
  tm broken_down = {};
  localtime_r(&now, &broken_down);
  sum = static_cast<unsigned long>(broken_down.tm_sec);
}

// The time zone is a named pipe, which nobody opens: localtime keeps its lock while it waits there.
void HandlerTellsTime(long) {
  Must(mkfifo("zone", 0600) == 0, "mkfifo");
  char zone[4096] = ":";
  Must(getcwd(zone + 1, sizeof zone - 10) != nullptr, "getcwd");
  strcat(zone, "/zone");
  setenv("TZ", zone, 1);
  Handle(SIGALRM, TellTimeInHandler);
  const itimerval soon = {{0, 0}, {0, 300'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  Ready();
  TellTimeInHandler(0);
}

void LockInHandler(int) { pthread_mutex_lock(&lock_a); }

void HandlerLocks(long) {
  Handle(SIGUSR1, LockInHandler);
  pthread_mutex_lock(&lock_a);
  Ready();
  raise(SIGUSR1);
}

void LogInHandler(int) { const std::lock_guard<std::mutex> lock(journal); }

void LogThenDie() {
  const std::lock_guard<std::mutex> lock(journal);
  Ready();
  volatile int* const nowhere = nullptr;
  sum = static_cast<unsigned long>(*nowhere);
}

// Of a crash: it would write to the log that the crashed function is writing.
void CrashHandlerLocks(long) {
  Handle(SIGSEGV, LogInHandler);
  LogThenDie();
}

void WriteTableInHandler(int) { pthread_rwlock_wrlock(&table_a); }

void HandlerWrites(long) {
  Handle(SIGUSR1, WriteTableInHandler);
  pthread_rwlock_rdlock(&table_a);
  Ready();
  raise(SIGUSR1);
}

void SpinLock(std::atomic<int>* lock) {
  int free = 0;
  while (!lock->compare_exchange_weak(free, 1)) free = 0;
}

void SpinInHandler(int) { SpinLock(&spin_lock); }

void HandlerSpins(long) {
  Handle(SIGUSR1, SpinInHandler);
  SpinLock(&spin_lock);
  Ready();
  raise(SIGUSR1);
}

void WaitInHandler(int) {
  while (ready_flag == 0) {
  }
}

void HandlerWaitsForFlag(long) {
  Handle(SIGUSR1, WaitInHandler);
  Ready();
  raise(SIGUSR1);
  ready_flag = 1;
}

void DownInHandler(int) { sem_wait(&sem_a); }

void HandlerDowns(long) {
  sem_init(&sem_a, 0, 1);
  Handle(SIGUSR1, DownInHandler);
  sem_wait(&sem_a);
  Ready();
  raise(SIGUSR1);
}

void WaitForOtherInHandler(int) { pthread_mutex_lock(&lock_b); }

void* TakeBothBackwards(void*) {
  pthread_mutex_lock(&lock_b);
  have_first.Come(2);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

// A circle of two threads, of which one waits in a handler.
void HandlerInCircle(long) {
  Handle(SIGUSR1, WaitForOtherInHandler);
  pthread_mutex_lock(&lock_a);
  Start("other", TakeBothBackwards);
  have_first.Come(2);
  Ready();
  raise(SIGUSR1);
}

void JumpOut(int) { siglongjmp(retry_point, 1); }

void UpdateAccount() {
  pthread_mutex_lock(&lock_a);
  raise(SIGUSR1);
  pthread_mutex_unlock(&lock_a);
}

void HandlerJumps(long) {
  Handle(SIGUSR1, JumpOut);
  if (sigsetjmp(retry_point, 1) == 0) UpdateAccount();
  Ready();
  UpdateAccount();
}

// --- Copies.

template <typename Hold>
void KeepInThread(Hold hold) {
  std::thread([hold] {
    hold();
    have_first.Come(2);
    NapForLong();
  }).detach();
  have_first.Come(2);
}

// The child is the program that is asked; its parent stays until it ends.
void InChild(void (*does)()) {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("copy");
    Ready();
    does();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

void LockCopy() { pthread_mutex_lock(&lock_a); }

void CopiedMutex(long) {
  KeepInThread([] { pthread_mutex_lock(&lock_a); });
  InChild(LockCopy);
}

void LockStdCopy() { journal.lock(); }

void CopiedStdMutex(long) {
  KeepInThread([] { journal.lock(); });
  InChild(LockStdCopy);
}

void WriteLockCopy() { pthread_rwlock_wrlock(&table_a); }

void CopiedWriteLock(long) {
  KeepInThread([] { pthread_rwlock_wrlock(&table_a); });
  InChild(WriteLockCopy);
}

void DownCopy() { sem_wait(&sem_a); }

void CopiedSemaphore(long) {
  sem_init(&sem_a, 0, 1);
  KeepInThread([] { sem_wait(&sem_a); });
  InChild(DownCopy);
}

void LockArena() {
  int free = 0;
  if (arena_word.compare_exchange_strong(free, 1)) return;
  while (arena_word.exchange(2) != 0)
    syscall(SYS_futex, &arena_word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, nullptr, nullptr, 0);
}

// As an allocator other than the C library's, which has no handlers of fork.
void AllocateCopy() { LockArena(); }

void CopiedArena(long) {
  KeepInThread(LockArena);
  InChild(AllocateCopy);
}

void SpinCopy() { SpinLock(&spin_lock); }

void CopiedSpinLock(long) {
  KeepInThread([] { SpinLock(&spin_lock); });
  InChild(SpinCopy);
}

void ConsumeCopy() {
  pthread_mutex_lock(&lock_a);
  for (;;) pthread_cond_wait(&not_empty, &lock_a);
}

// The producer is a thread of the parent.
void CopiedCondition(long) {
  std::thread([] {
    for (;;) {
      Nap(0.05);
      pthread_cond_signal(&not_empty);
    }
  }).detach();
  InChild(ConsumeCopy);
}

struct SlowRegistry {
  SlowRegistry() {
    have_first.Come(2);
    NapForLong();
  }
};

SlowRegistry& TheRegistry() {
  static SlowRegistry registry;
  return registry;
}

void UseRegistryCopy() { TheRegistry(); }

void CopiedStatic(long) {
  std::thread([] { TheRegistry(); }).detach();
  have_first.Come(2);
  InChild(UseRegistryCopy);
}

void LockInPrepare() { pthread_mutex_lock(&lock_b); }

// A handler of fork takes a lock whose holder waits for one of who forks.
void PrepareCrossed(long) {
  pthread_atfork(LockInPrepare, nullptr, nullptr);
  pthread_mutex_lock(&lock_a);
  Start("other", TakeBothBackwards);
  have_first.Come(2);
  Ready();
  fork();
}

// --- Signals that cannot come.

void PauseForNothing() {
  BlockAllSignals();
  Ready();
  pause();
}

void PauseBlocked(long) { PauseForNothing(); }

void SuspendForNothing() {
  sigset_t all;
  sigfillset(&all);
  Ready();
  sigsuspend(&all);
}

void SuspendBlocked(long) { SuspendForNothing(); }

void PollForNothing() {
  BlockAllSignals();
  Ready();
  poll(nullptr, 0, -1);
}

void PollBlocked(long) { PollForNothing(); }

// The child would send the signal after it has read what the parent writes after that.
void AwaitChildsSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  int number;
  sigwait(&set, &number);
}

void SigwaitChild(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  MakePipe(work_pipe);
  if (Fork() == 0) {
    Rename("job");
    close(work_pipe[1]);
    ReadByte(work_pipe[0]);
    _exit(0);
  }
  Ready();
  AwaitChildsSignal();
}

// The signals that it does not block, it ignores.
void IgnoreAndPause() {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) Handle(number, SIG_IGN);
  sigset_t most;
  sigfillset(&most);
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGWINCH}) sigdelset(&most, number);
  sigprocmask(SIG_BLOCK, &most, nullptr);
  Ready();
  pause();
}

void PauseIgnored(long) { IgnoreAndPause(); }

// --- Controls.

void SetFlag(int) { ready_flag = 1; }

void PauseHandled(long) {
  Handle(SIGTERM, SetFlag);
  Ready();
  while (ready_flag == 0) pause();
}

// As the first process of a pod: it is there until it is killed.
void PauseOnly(long) {
  Ready();
  for (;;) pause();
}

void SuspendHandled(long) {
  sigset_t block, none;
  sigemptyset(&none);
  sigemptyset(&block);
  sigaddset(&block, SIGHUP);
  sigprocmask(SIG_BLOCK, &block, nullptr);
  Handle(SIGHUP, SetFlag);
  Ready();
  while (ready_flag == 0) sigsuspend(&none);
}

void Sigwait(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Ready();
  int number;
  sigwait(&set, &number);
}

void WriteInHandler(int) {
  const int before = errno;
  WriteByte(work_pipe[1]);
  errno = before;
}

void AlarmPipe(long) {
  MakePipe(work_pipe);
  Handle(SIGALRM, WriteInHandler, SA_RESTART);
  const itimerval each = {{0, 200'000}, {0, 200'000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  Ready();
  for (;;) ReadByte(work_pipe[0]);
}

void CountInHandler(int) { ++entered; }

void AlarmAndCompute(long) {
  Handle(SIGALRM, CountInHandler, SA_RESTART);
  const itimerval each = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  Ready();
  for (unsigned long i = 0;; ++i) sum = sum * 7 + i;
}

pid_t SleepingChild() {
  const pid_t child = Fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  return child;
}

void SelfPipeOfChild(long) {
  MakePipe(work_pipe);
  Handle(SIGCHLD, WriteInHandler, SA_RESTART);
  SleepingChild();
  Ready();
  ReadByte(work_pipe[0]);
}

void SigwaitSleeper(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  SleepingChild();
  Ready();
  AwaitChildsSignal();
}

void SignalfdSleeper(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int file = signalfd(-1, &set, 0);
  SleepingChild();
  Ready();
  signalfd_siginfo got;
  Must(read(file, &got, sizeof got) == sizeof got, "read");
}

// Blocks everything while it waits, as system() nearly does.
void BlockedWaitsForSleeper(long) {
  const pid_t child = SleepingChild();
  BlockAllSignals();
  Ready();
  waitpid(child, nullptr, 0);
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

void Prefork(long) {
  const int listening = Listen();
  for (int i = 0; i < 4; ++i) {
    if (Fork() != 0) continue;
    Rename("worker");
    for (;;) close(accept(listening, nullptr, nullptr));
  }
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void ForkAgainAndAgain(long) {
  Ready();
  for (;;) {
    const pid_t child = Fork();
    if (child == 0) {
      Nap(0.02);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}

void ProtectLocks() { pthread_mutex_lock(&lock_a); }
void ReleaseLocks() { pthread_mutex_unlock(&lock_a); }

// As the C library does it for its own.
void ForkWithHandlers(long) {
  pthread_atfork(ProtectLocks, ReleaseLocks, ReleaseLocks);
  std::thread([] {
    for (;;) {
      pthread_mutex_lock(&lock_a);
      Nap(0.001);
      pthread_mutex_unlock(&lock_a);
      Nap(0.001);
    }
  }).detach();
  const pid_t child = Fork();
  if (child == 0) {
    pthread_mutex_lock(&lock_a);
    pthread_mutex_unlock(&lock_a);
    Ready();
    close(accept(Listen(), nullptr, nullptr));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

void CrashHandlerServes(long) {
  Handle(SIGSEGV, LogInHandler);
  Handle(SIGABRT, LogInHandler);
  Ready();
  close(accept(Listen(), nullptr, nullptr));
}

void MaskedLock(long) {
  Handle(
      SIGALRM,
      [](int) {
        pthread_mutex_lock(&lock_a);
        ++entered;
        pthread_mutex_unlock(&lock_a);
      },
      SA_RESTART);
  const itimerval each = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  Ready();
  for (;;) {
    sigprocmask(SIG_BLOCK, &set, nullptr);
    pthread_mutex_lock(&lock_a);
    sum = sum + 1;
    pthread_mutex_unlock(&lock_a);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }
}

void TimerThread(long) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) { ++entered; };
  timer_t timer;
  Must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  const itimerspec each = {{0, 100'000'000}, {0, 100'000'000}};
  timer_settime(timer, 0, &each, nullptr);
  Ready();
  for (;;) pause();
}

// The library's thread that waits for the timer lets no signal in.
void TimerOfLease(long) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) {
    pthread_mutex_lock(&lock_a);
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock_a);
  };
  timer_t timer;
  Must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  const itimerspec once = {{0, 0}, {600, 0}};
  timer_settime(timer, 0, &once, nullptr);
  Ready();
  pthread_mutex_lock(&lock_a);
  pthread_cond_wait(&not_empty, &lock_a);
  pthread_mutex_unlock(&lock_a);
}

void SelectMasked(long) {
  MakePipe(work_pipe);
  sigset_t block, none;
  sigemptyset(&none);
  sigemptyset(&block);
  sigaddset(&block, SIGTERM);
  sigprocmask(SIG_BLOCK, &block, nullptr);
  Handle(SIGTERM, SetFlag);
  pollfd file = {work_pipe[0], POLLIN, 0};
  Ready();
  while (ready_flag == 0) ppoll(&file, 1, nullptr, &none);
}

void ReadForHandler(long) {
  MakePipe(work_pipe);
  Handle(SIGHUP, SetFlag);  // which ends the read: EINTR
  Ready();
  while (ready_flag == 0) ReadByte(work_pipe[0]);
}

void HandlerNaps(long) {
  Handle(SIGUSR1, [](int) { NapForLong(); });
  pthread_mutex_lock(&lock_a);
  std::thread([] { pthread_mutex_lock(&lock_a); }).detach();
  Ready();
  raise(SIGUSR1);
}

void CopyServes(long) {
  KeepInThread([] { pthread_mutex_lock(&lock_a); });
  InChild([] { close(accept(Listen(), nullptr, nullptr)); });
}

void HandlersOfMany(long) {
  main_thread = pthread_self();
  Handle(SIGUSR2, CountInHandler, SA_RESTART);
  std::thread([] {
    for (;;) {
      pthread_kill(main_thread, SIGUSR2);
      Nap(0.002);
    }
  }).detach();
  MakePipe(work_pipe);
  std::thread([] {
    for (;;) {
      Nap(0.5);
      WriteByte(work_pipe[1]);
    }
  }).detach();
  Ready();
  for (;;) ReadByte(work_pipe[0]);
}

// All signals go to a thread of their own.
void PauseBesideSigwait(long) {
  BlockAllSignals();
  std::thread([] {
    sigset_t set;
    sigfillset(&set);
    int number;
    sigwait(&set, &number);
  }).detach();
  Ready();
  pause();
}

void PauseBlockedButOne(long) {
  sigset_t most;
  sigfillset(&most);
  sigdelset(&most, SIGTERM);
  sigprocmask(SIG_BLOCK, &most, nullptr);
  Ready();
  pause();
}

// Its worker goes on until the process ends.
void PauseBesideWorker(long) {
  BlockAllSignals();
  std::thread([] {
    for (;;) Nap(0.1);
  }).detach();
  Ready();
  pause();
}

void WaitInHandlerForOther(long) {
  Handle(SIGUSR2, SetFlag);
  Handle(SIGUSR1, WaitInHandler);
  Ready();
  raise(SIGUSR1);
}

// The thread that has been interrupted waits for what another one does.
void WaitInHandlerForThread(long) {
  std::thread([] {
    Nap(600);
    ready_flag = 1;
  }).detach();
  Handle(SIGUSR1, WaitInHandler);
  Ready();
  raise(SIGUSR1);
}

const Program kPrograms[] = {
    {"handler-malloc", HandlerAllocates},
    {"handler-localtime", HandlerTellsTime},
    {"handler-mutex", HandlerLocks},
    {"crash-handler", CrashHandlerLocks},
    {"handler-rwlock", HandlerWrites},
    {"handler-spin", HandlerSpins},
    {"handler-flag", HandlerWaitsForFlag},
    {"handler-semaphore", HandlerDowns},
    {"handler-circle", HandlerInCircle},
    {"handler-jumps", HandlerJumps},
    {"copied-mutex", CopiedMutex},
    {"copied-std-mutex", CopiedStdMutex},
    {"copied-write-lock", CopiedWriteLock},
    {"copied-semaphore", CopiedSemaphore},
    {"copied-arena", CopiedArena},
    {"copied-spin-lock", CopiedSpinLock},
    {"copied-condition", CopiedCondition},
    {"copied-static", CopiedStatic},
    {"prepare-crossed", PrepareCrossed},
    {"pause-blocked", PauseBlocked},
    {"suspend-blocked", SuspendBlocked},
    {"poll-blocked", PollBlocked},
    {"sigwait-child", SigwaitChild},
    // Controls.
    {"pause-ignored", PauseIgnored},
    {"pause-beside-sigwait", PauseBesideSigwait},
    {"pause-blocked-but-one", PauseBlockedButOne},
    {"pause-beside-worker", PauseBesideWorker},
    {"handler-flag-of-handler", WaitInHandlerForOther},
    {"handler-flag-of-thread", WaitInHandlerForThread},
    {"pause-handled", PauseHandled},
    {"pause-only", PauseOnly},
    {"suspend-handled", SuspendHandled},
    {"sigwait", Sigwait},
    {"alarm-pipe", AlarmPipe},
    {"alarm-compute", AlarmAndCompute},
    {"self-pipe-child", SelfPipeOfChild},
    {"sigwait-sleeper", SigwaitSleeper},
    {"signalfd-sleeper", SignalfdSleeper},
    {"blocked-sleeper", BlockedWaitsForSleeper},
    {"prefork", Prefork},
    {"fork-again", ForkAgainAndAgain},
    {"fork-handlers", ForkWithHandlers},
    {"crash-handler-serves", CrashHandlerServes},
    {"masked-lock", MaskedLock},
    {"timer-thread", TimerThread},
    {"timer-lease", TimerOfLease},
    {"poll-masked", SelectMasked},
    {"read-handler", ReadForHandler},
    {"handler-naps", HandlerNaps},
    {"copy-serves", CopyServes},
    {"handlers-many", HandlersOfMany},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

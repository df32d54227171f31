// usage: hang_zoo WHAT [BESIDE...]
// Hangs in the way that WHAT says, or looks as if it did: kModes has them. BESIDE, in any order:
// "line" prints one before that; "ticker" naps for ever in a thread, "chatty" prints from one,
// "server" accepts connections in one; "sleeper" is a child that sleeps; "faults" handles SIGSEGV
// and SIGBUS, "handler" handles SIGTERM, "late" begins after 300 ms. Files are made in the current
// folder.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t forks[5] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                            PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                            PTHREAD_MUTEX_INITIALIZER};
pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t table_a = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t table_b = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t fair_table = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_barrier_t phase;
pthread_barrier_t all_have_one;
sem_t items;
sem_t turn_a;
sem_t turn_b;
volatile int ready_flag = 0;
std::atomic<int> spin_lock{1};
volatile unsigned long sum = 0;

namespace {

pthread_t ring[3];
int wake_pipe[2];

void Must(bool fine, const char* what) {
  if (fine) return;
  perror(what);
  _exit(99);
}

void Nap(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  timespec left = {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

void Say(const char* line) {
  puts(line);
  fflush(stdout);
}

pthread_t Start(void* (*what)(void*), const char* name, long number = 0) {
  pthread_t thread;
  Must(pthread_create(&thread, nullptr, what, reinterpret_cast<void*>(number)) == 0,
       "pthread_create");
  pthread_setname_np(thread, name);
  return thread;
}

void Join(std::initializer_list<pthread_t> threads) {
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

long Number(void* argument) { return reinterpret_cast<long>(argument); }

// A child ends with its parent, whatever becomes of that.
pid_t Fork() {
  const pid_t child = fork();
  Must(child >= 0, "fork");
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return child;
}

void ReadByte(int fd) {
  char byte;
  if (read(fd, &byte, 1) < 0) perror("read");
}

void WriteByte(int fd) { Must(write(fd, "", 1) == 1, "write"); }

// --- Hangs of one process.

void TakeTwo(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  pthread_barrier_wait(&all_have_one);
  pthread_mutex_lock(second);
}

void* Left(void*) {
  TakeTwo(&lock_a, &lock_b);
  return nullptr;
}

void* Right(void*) {
  TakeTwo(&lock_b, &lock_a);
  return nullptr;
}

void Abba() {
  pthread_barrier_init(&all_have_one, nullptr, 2);
  Join({Start(Left, "left"), Start(Right, "right")});
}

void* Dine(void* seat) {
  TakeTwo(&forks[Number(seat)], &forks[(Number(seat) + 1) % 5]);
  return nullptr;
}

void Philosophers() {
  pthread_barrier_init(&all_have_one, nullptr, 5);
  Join({Start(Dine, "plato", 0), Start(Dine, "zeno", 1), Start(Dine, "thales", 2),
        Start(Dine, "kant", 3), Start(Dine, "hume", 4)});
}

void SelfLock() {
  pthread_mutex_lock(&lock_a);
  pthread_mutex_lock(&lock_a);
}

void* Consume(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_cond_wait(&work_came, &lock_a);
  return nullptr;
}

// The signal comes before anybody waits.
void LostSignal() {
  pthread_cond_signal(&work_came);
  Join({Start(Consume, "consumer")});
}

void* WriteLeft(void*) {
  pthread_rwlock_wrlock(&table_a);
  pthread_barrier_wait(&all_have_one);
  pthread_rwlock_wrlock(&table_b);
  return nullptr;
}

void* WriteRight(void*) {
  pthread_rwlock_wrlock(&table_b);
  pthread_barrier_wait(&all_have_one);
  pthread_rwlock_wrlock(&table_a);
  return nullptr;
}

void WriteLocks() {
  pthread_barrier_init(&all_have_one, nullptr, 2);
  Join({Start(WriteLeft, "left"), Start(WriteRight, "right")});
}

void* Report(void*) {
  pthread_rwlock_wrlock(&table_a);
  pthread_barrier_wait(&all_have_one);
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void* Refresh(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_barrier_wait(&all_have_one);
  pthread_rwlock_rdlock(&table_a);
  return nullptr;
}

void ReadLockAndMutex() {
  pthread_barrier_init(&all_have_one, nullptr, 2);
  Join({Start(Report, "report"), Start(Refresh, "refresh")});
}

void WaitForItems() { sem_wait(&items); }

void* NeverArrives(void*) {
  pthread_barrier_wait(&phase);
  return nullptr;
}

void ThreeOfFour() {
  pthread_barrier_init(&phase, nullptr, 4);
  Join({Start(NeverArrives, "first"), Start(NeverArrives, "second"), Start(NeverArrives, "third")});
}

void* JoinNext(void* number) {
  pthread_barrier_wait(&all_have_one);
  pthread_join(ring[(Number(number) + 1) % 3], nullptr);
  return nullptr;
}

void JoinRing() {
  pthread_barrier_init(&all_have_one, nullptr, 3);
  ring[0] = pthread_self();
  ring[1] = Start(JoinNext, "two", 1);
  ring[2] = Start(JoinNext, "three", 2);
  JoinNext(nullptr);
}

void OwnPipe() {
  int ends[2];
  Must(pipe(ends) == 0, "pipe");
  ReadByte(ends[0]);
}

void OwnEvent() {
  const int event = eventfd(0, 0);
  uint64_t count;
  if (read(event, &count, sizeof count) < 0) perror("read");
}

void* TakeAndEnd(void*) {
  pthread_mutex_lock(&lock_a);
  return nullptr;
}

void DeadThread() {
  Join({Start(TakeAndEnd, "gone")});
  pthread_mutex_lock(&lock_a);
}

void Spin() {
  while (ready_flag == 0) {
  }
}

void SpinLock() {
  while (spin_lock.exchange(1) != 0) {
  }
}

void* SpinInThread(void*) {
  Spin();
  return nullptr;
}

void JoinSpinner() { Join({Start(SpinInThread, "poller")}); }

// --- Hangs of several processes.

void* KeepLock(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_barrier_wait(&all_have_one);
  for (;;) pause();
}

// The lock comes locked into the child, and who has it does not.
void ForkWithLock() {
  pthread_barrier_init(&all_have_one, nullptr, 2);
  Start(KeepLock, "keeper");
  pthread_barrier_wait(&all_have_one);
  const pid_t child = Fork();
  if (child == 0) pthread_mutex_lock(&lock_a);
  waitpid(child, nullptr, 0);
}

// The child has its parent's memory, and the parent sleeps until that ends: who wants a lock in it
// waits for a thread of its parent.
template <typename Work>
void InVforked(Work work) {
  const pid_t child = vfork();
  if (child == 0) {
    prctl(PR_SET_NAME, "job");
    work();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

void VforkAndLock() {
  pthread_mutex_lock(&lock_a);
  InVforked([] { pthread_mutex_lock(&lock_a); });
}

void VforkAndRead() {
  Must(pipe(wake_pipe) == 0, "pipe");
  InVforked([] {
    char byte = 0;
    (void)!read(wake_pipe[0], &byte, 1);
  });
}

void VforkAndNap() {
  InVforked([] { Nap(4); });
  _exit(7);
}

// The child has its parent's memory and is no thread of it: nothing says so but a comparison.
void WaitForSharer() {
  constexpr size_t kStack = 64 << 10;
  static char stack[kStack];
  const auto work = [](void*) {
    Nap(4);
    sem_post(&items);
    ready_flag = 1;
    syscall(SYS_exit_group, 0);
    return 0;
  };
  Must(clone(work, stack + kStack, CLONE_VM | SIGCHLD, nullptr) > 0, "clone");
  while (sem_wait(&items) != 0) {
  }
  while (ready_flag == 0) {
  }
  _exit(7);
}

// Its read ends when its supervisor says so, whatever comes through the pipe.
void WaitForSupervisor() {
  constexpr int kListener = 100;
  Must(pipe(wake_pipe) == 0, "pipe");
  const pid_t reader = getpid();
  if (Fork() == 0) {
    close(wake_pipe[0]);
    close(wake_pipe[1]);
    Nap(0.5);
    const auto process = static_cast<int>(syscall(SYS_pidfd_open, reader, 0));
    const auto listener = static_cast<int>(syscall(SYS_pidfd_getfd, process, kListener, 0));
    alignas(seccomp_notif) char asked[1024] = {};
    alignas(seccomp_notif_resp) char answer[1024] = {};
    Must(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, asked) == 0, "seccomp");
    Nap(3.5);
    reinterpret_cast<seccomp_notif_resp*>(answer)->id = reinterpret_cast<seccomp_notif*>(asked)->id;
    Must(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, answer) == 0, "seccomp");
    _exit(0);
  }
  sock_filter asks[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {4, asks};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long listener =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  Must(dup2(static_cast<int>(listener), kListener) == kListener, "seccomp");
  ReadByte(wake_pipe[0]);
  _exit(7);
}

// It burns a CPU until another thread is done.
void SpinForWorker() {
  Start(
      [](void*) -> void* {
        Nap(4);
        ready_flag = 1;
        return nullptr;
      },
      "worker");
  while (ready_flag == 0) {
  }
  _exit(7);
}

void StoppedChild() {
  const pid_t child = Fork();
  if (child == 0) raise(SIGSTOP);
  waitpid(child, nullptr, 0);
}

void AbbaInChild() {
  const pid_t child = Fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "worker");
    Abba();
  }
  waitpid(child, nullptr, 0);
}

void AbbaInOneOfTwo() {
  if (Fork() == 0) {
    Nap(0.2);
    _exit(0);
  }
  AbbaInChild();
}

void AbbaBesideWork() {
  if (Fork() == 0) {
    for (;;) {
      Nap(0.1);
      Say("step");
    }
  }
  AbbaInChild();
}

// Each end first asks the other.
void BothAsk(int first[2], int second[2]) {
  if (Fork() == 0) {
    prctl(PR_SET_NAME, "server");
    close(first[1]);
    close(second[0]);
    ReadByte(first[0]);
    WriteByte(second[1]);
    _exit(0);
  }
  close(first[0]);
  close(second[1]);
  ReadByte(second[0]);
}

void TwoPipes() {
  int there[2];
  int back[2];
  Must(pipe(there) == 0 && pipe(back) == 0, "pipe");
  BothAsk(there, back);
}

void SocketPair() {
  int ends[2];
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t child = Fork();
  prctl(PR_SET_NAME, child == 0 ? "server" : "client");
  close(ends[child == 0]);
  ReadByte(ends[child != 0]);
}

// Waits for either of two children, over sockets, as a server does that asks two others.
void AskTwo(void (*first)(int), void (*second)(int)) {
  const int poll = epoll_create1(0);
  void (*const peers[])(int) = {first, second};
  int ours[2];
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    Must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    ours[i] = ends[0];
    if (Fork() == 0) {
      prctl(PR_SET_NAME, i == 0 ? "peer-0" : "peer-1");
      for (int j = 0; j <= i; ++j) close(ours[j]);
      close(poll);
      peers[i](ends[1]);
      for (;;) pause();
    }
    close(ends[1]);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event);
  }
  prctl(PR_SET_NAME, "asker");
  epoll_event event;
  Must(epoll_wait(poll, &event, 1, -1) == 1, "epoll_wait");
}

void AskAgain(int socket) { ReadByte(socket); }

void ThinkAndAnswer(int socket) {
  Nap(4);
  WriteByte(socket);
}

void AskTwoStuck() { AskTwo(AskAgain, AskAgain); }

void AskOneStuck() {
  AskTwo(AskAgain, ThinkAndAnswer);
  _exit(7);
}

int Listen() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
           listen(listening, 8) == 0,
       "listen");
  return listening;
}

// A parent that waits for a child which has more to say than the pipe between them holds.
void UnreadOutput() {
  int ends[2];
  Must(pipe(ends) == 0, "pipe");
  const pid_t child = Fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "talker");
    close(ends[0]);
    char page[4096] = {};
    for (int i = 0; i < 64; ++i) Must(write(ends[1], page, sizeof page) > 0, "write");
    _exit(0);
  }
  close(ends[1]);
  waitpid(child, nullptr, 0);
}

int LockFile(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Must(file >= 0, name);
  flock(file, LOCK_EX);
  return file;
}

void FileLocks() {
  int there[2];
  int back[2];
  Must(pipe(there) == 0 && pipe(back) == 0, "pipe");
  const bool child = Fork() == 0;
  prctl(PR_SET_NAME, child ? "second" : "first");
  LockFile(child ? "b.lock" : "a.lock");
  WriteByte(child ? there[1] : back[1]);
  ReadByte(child ? back[0] : there[0]);
  for (const int end : {there[0], there[1], back[0], back[1]}) close(end);
  LockFile(child ? "a.lock" : "b.lock");
}

pthread_mutex_t* SharedMutex(int robust) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, robust);
  pthread_mutex_init(static_cast<pthread_mutex_t*>(page), &attributes);
  return static_cast<pthread_mutex_t*>(page);
}

int LockAfterDeath(int robust) {
  pthread_mutex_t* const shared = SharedMutex(robust);
  const pid_t child = Fork();
  if (child == 0) {
    pthread_mutex_lock(shared);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return pthread_mutex_lock(shared);
}

void BothLock() {
  pthread_mutex_t* const locks[] = {SharedMutex(PTHREAD_MUTEX_STALLED),
                                    SharedMutex(PTHREAD_MUTEX_STALLED)};
  int there[2];
  int back[2];
  Must(pipe(there) == 0 && pipe(back) == 0, "pipe");
  const bool child = Fork() == 0;
  prctl(PR_SET_NAME, child ? "second" : "first");
  pthread_mutex_lock(locks[child]);
  WriteByte(child ? there[1] : back[1]);
  ReadByte(child ? back[0] : there[0]);
  pthread_mutex_lock(locks[!child]);
}

void DeadProcess() { LockAfterDeath(PTHREAD_MUTEX_STALLED); }

// --- What only looks like one.

void RobustLock() {
  Must(LockAfterDeath(PTHREAD_MUTEX_ROBUST) == EOWNERDEAD, "robust");
  Nap(3);
  _exit(7);
}

void Accept() {
  const int listening = Listen();
  for (;;) close(accept(listening, nullptr, nullptr));
}

void* AcceptInThread(void*) {
  Accept();
  return nullptr;
}

void AcceptUnix() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "zoo.socket");
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
           listen(listening, 8) == 0,
       "listen");
  for (;;) close(accept(listening, nullptr, nullptr));
}

void* WaitForWork(void*) {
  pthread_mutex_lock(&lock_a);
  for (;;) pthread_cond_wait(&work_came, &lock_a);
}

void Pool() {
  for (int i = 0; i < 4; ++i) Start(WaitForWork, "worker");
  AcceptUnix();
}

void Epoll() {
  const int poll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = Listen();
  epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
  for (;;) {
    if (epoll_wait(poll, &event, 1, -1) == 1) close(accept(event.data.fd, nullptr, nullptr));
  }
}

void Poll() {
  pollfd files[] = {{Listen(), POLLIN, 0}, {Listen(), POLLIN, 0}};
  for (;;) {
    poll(files, 2, -1);
    for (const pollfd& file : files) {
      if (file.revents != 0) close(accept(file.fd, nullptr, nullptr));
    }
  }
}

void Datagrams() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
  Must(bind(socket_, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0, "bind");
  for (;;) ReadByte(socket_);
}

void WakeUp(int) {
  const int before = errno;
  if (write(wake_pipe[1], "", 1) < 0) _exit(98);
  errno = before;
}

pid_t Sleeper(const char* seconds) {
  const pid_t child = Fork();
  if (child == 0) execlp("sleep", "sleep", seconds, static_cast<char*>(nullptr));
  return child;
}

void Handle(int signal_number, void (*how)(int)) {
  struct sigaction action = {};
  action.sa_handler = how;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

// As make, sudo and every event loop wait for their children.
void SelfPipe() {
  Must(pipe(wake_pipe) == 0, "pipe");
  Handle(SIGCHLD, WakeUp);
  const pid_t child = Sleeper("4");
  ReadByte(wake_pipe[0]);
  waitpid(child, nullptr, 0);
  _exit(7);
}

void SignalFile() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const int file = signalfd(-1, &children, 0);
  Sleeper("4");
  signalfd_siginfo got;
  Must(read(file, &got, sizeof got) == sizeof got, "read");
  _exit(7);
}

void Compute(double seconds) {
  const clock_t end = clock() + static_cast<clock_t>(seconds * CLOCKS_PER_SEC);
  while (clock() < end) {
    for (unsigned long i = 0; i < 10'000'000; ++i) sum = sum * 7 + i;
  }
}

void WaitByDescriptor(pid_t child) {
  pollfd file = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  Must(poll(&file, 1, -1) == 1, "poll");
  _exit(7);
}

void PidFile() { WaitByDescriptor(Sleeper("4")); }

void PidFileOfAbba() {
  const pid_t child = Fork();
  if (child == 0) Abba();
  WaitByDescriptor(child);
}

// Only the handler writes it, when its time has come.
void Alarm() {
  Must(pipe(wake_pipe) == 0, "pipe");
  Handle(SIGALRM, WakeUp);
  alarm(4);
  ReadByte(wake_pipe[0]);
  _exit(7);
}

// Who comes last to the barrier comes late.
void* ComeLate(void*) {
  Nap(4);
  pthread_barrier_wait(&phase);
  return nullptr;
}

void LateBarrier() {
  pthread_barrier_init(&phase, nullptr, 4);
  Join({Start(NeverArrives, "first"), Start(NeverArrives, "second"), Start(NeverArrives, "third"),
        Start(ComeLate, "late")});
  _exit(7);
}

void* ComputeAndPost(void*) {
  Compute(3);
  sem_post(&items);
  return nullptr;
}

void WaitForComputer() {
  Start(ComputeAndPost, "computer");
  WaitForItems();
  _exit(7);
}

void WaitForSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  int signal_number;
  sigwait(&set, &signal_number);
}

void OwnPipeWithHandler() {
  Must(pipe(wake_pipe) == 0, "pipe");
  Handle(SIGUSR1, WakeUp);
  ReadByte(wake_pipe[0]);
}

void LongComputation() {
  for (unsigned long i = 0; i < 2'000'000'000; ++i) sum = sum * 7 + i;
  _exit(7);
}

void SlowStart() {
  Compute(2);
  Say("ready");
  Accept();
}

void SleepyStart() {
  Nap(3);
  Say("ready");
  Accept();
}

void TimedWait() {
  timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 4;
  pthread_mutex_lock(&lock_a);
  while (pthread_cond_timedwait(&work_came, &lock_a, &end) != ETIMEDOUT) {
  }
  _exit(7);
}

void Sleep() { Nap(1000); }

void* KeepLockForLong(void*) {
  pthread_mutex_lock(&lock_a);
  pthread_barrier_wait(&all_have_one);
  Nap(4);
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void LongLock() {
  pthread_barrier_init(&all_have_one, nullptr, 2);
  Start(KeepLockForLong, "keeper");
  pthread_barrier_wait(&all_have_one);
  pthread_mutex_lock(&lock_a);
  _exit(7);
}

void* Return(void*) {
  for (;;) {
    sem_wait(&turn_b);
    sem_post(&turn_a);
  }
}

// Nobody waits for long, and each waits most of the time.
void HandOver(double pause_s) {
  Start(Return, "other");
  const time_t end = time(nullptr) + 5;
  while (time(nullptr) < end) {
    sem_post(&turn_b);
    sem_wait(&turn_a);
    if (pause_s > 0) Nap(pause_s);
  }
  _exit(7);
}

void HandOverQuickly() { HandOver(0.0001); }
void HandOverSlowly() { HandOver(0.4); }

void Ticks() {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec each = {{0, 300'000'000}, {0, 300'000'000}};
  timerfd_settime(timer, 0, &each, nullptr);
  for (;;) {
    uint64_t times;
    Must(read(timer, &times, sizeof times) > 0, "read");
  }
}

void ReadInput() {
  char line[100];
  while (read(0, line, sizeof line) > 0) {
  }
}

void StopMyself() { raise(SIGSTOP); }

// --- What goes on beside it.

void* Tick(void*) {
  for (;;) Nap(0.02);
}

void* Chat(void*) {
  for (int i = 0;; ++i) {
    printf("request %d served\n", i);
    fflush(stdout);
    Nap(0.05);
  }
}

struct Mode {
  const char* name;
  void (*run)();
};

const Mode kModes[] = {
    {"abba", Abba},
    {"philosophers", Philosophers},
    {"self-lock", SelfLock},
    {"cond-lost", LostSignal},
    {"rwlock", WriteLocks},
    {"rwlock-mutex", ReadLockAndMutex},
    {"semaphore", WaitForItems},
    {"barrier", ThreeOfFour},
    {"join-ring", JoinRing},
    {"own-pipe", OwnPipe},
    {"own-event", OwnEvent},
    {"dead-thread", DeadThread},
    {"spin", Spin},
    {"spin-lock", SpinLock},
    {"join-spinner", JoinSpinner},
    {"fork-lock", ForkWithLock},
    {"stopped-child", StoppedChild},
    {"vfork-lock", VforkAndLock},
    {"vfork-pipe", VforkAndRead},
    {"vfork", VforkAndNap},
    {"sharer", WaitForSharer},
    {"supervisor", WaitForSupervisor},
    {"spin-for-worker", SpinForWorker},
    {"child-abba", AbbaInChild},
    {"one-of-two", AbbaInOneOfTwo},
    {"beside-work", AbbaBesideWork},
    {"two-pipes", TwoPipes},
    {"socket-pair", SocketPair},
    {"unread-output", UnreadOutput},
    {"file-locks", FileLocks},
    {"ask-two", AskTwoStuck},
    {"ask-one", AskOneStuck},
    {"shared-abba", BothLock},
    {"pidfd-abba", PidFileOfAbba},
    {"dead-process", DeadProcess},
    {"robust", RobustLock},
    {"accept", Accept},
    {"pool", Pool},
    {"epoll", Epoll},
    {"poll", Poll},
    {"unix-server", AcceptUnix},
    {"datagrams", Datagrams},
    {"self-pipe", SelfPipe},
    {"signalfd", SignalFile},
    {"pidfd", PidFile},
    {"alarm", Alarm},
    {"late-barrier", LateBarrier},
    {"computer", WaitForComputer},
    {"sigwait", WaitForSignal},
    {"own-pipe-handler", OwnPipeWithHandler},
    {"compute", LongComputation},
    {"slow-start", SlowStart},
    {"sleepy-start", SleepyStart},
    {"timed-wait", TimedWait},
    {"sleep", Sleep},
    {"long-lock", LongLock},
    {"hand-over", HandOverQuickly},
    {"slow-hand-over", HandOverSlowly},
    {"timerfd", Ticks},
    {"input", ReadInput},
    {"stopped", StopMyself},
};

void Beside(const char* word) {
  if (strcmp(word, "line") == 0) Say("begun");
  if (strcmp(word, "ticker") == 0) Start(Tick, "ticker");
  if (strcmp(word, "chatty") == 0) Start(Chat, "chatty");
  if (strcmp(word, "server") == 0) Start(AcceptInThread, "server");
  if (strcmp(word, "sleeper") == 0) Sleeper("100");
  if (strcmp(word, "handler") == 0) Handle(SIGTERM, [](int) { _exit(0); });
  if (strcmp(word, "late") == 0) Nap(0.3);
  if (strcmp(word, "faults") == 0) {
    for (const int fault : {SIGSEGV, SIGBUS}) Handle(fault, [](int) { _exit(97); });
  }
}

}  // namespace

int main(int count, char** words) {
  sem_init(&items, 0, 0);
  sem_init(&turn_a, 0, 0);
  sem_init(&turn_b, 0, 0);
  for (int i = 2; i < count; ++i) Beside(words[i]);
  for (const Mode& mode : kModes) {
    if (count < 2 || strcmp(mode.name, words[1]) != 0) continue;
    mode.run();
    return 0;
  }
  fputs("usage: hang_zoo WHAT [BESIDE...]; WHAT:", stderr);
  for (const Mode& mode : kModes) fprintf(stderr, " %s", mode.name);
  fputs("\n", stderr);
  return 2;
}

// One thread for each way to wait, for ever; or as many as its argument says. Prints "NAME TID" for
// each and then "ready"; a thread that its wait lets go although nobody has woken it prints "woke
// NAME ERRNO". Ends when its standard input does.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

namespace {

pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive_mutex;
pthread_mutex_t robust_mutex;
pthread_mutex_t priority_mutex;
pthread_mutex_t abandoned_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t condition_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t written_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t read_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_barrier_t barrier;
sem_t semaphore;
sem_t* shared_semaphore;  // of the same mapping; nobody ever posts it
sem_t introduced;         // once for each thread that has said its name
std::mutex standard_mutex;
std::condition_variable standard_condition;
pthread_mutex_t* shared_mutex;  // of a mapping that a child has, too; the child holds it
int raw_word = 7;
pthread_t joined;
int pipe_to_read[2];
int pipe_to_write[2];
int pipe_to_poll[2];
int pipe_to_select[2];
int pipe_to_epoll[2];
int unix_pair[2];
int tcp_listener;
int tcp_client;
int tcp_server;
int udp_socket;
int event;
int epoll;
int locked_file;
int record_file;
pid_t stopped_child;

int Tid() { return static_cast<int>(syscall(SYS_gettid)); }

void WaitMutex() { pthread_mutex_lock(&plain_mutex); }
void WaitTimedMutex() {
  const timespec end = {time(nullptr) + 3600, 0};
  pthread_mutex_timedlock(&plain_mutex, &end);
}
void WaitRecursive() { pthread_mutex_lock(&recursive_mutex); }
void WaitRobust() { pthread_mutex_lock(&robust_mutex); }
void WaitPriority() { pthread_mutex_lock(&priority_mutex); }
void WaitAbandoned() { pthread_mutex_lock(&abandoned_mutex); }
void WaitShared() { pthread_mutex_lock(shared_mutex); }
void WaitStandardMutex() { standard_mutex.lock(); }
void WaitCondition() {
  pthread_mutex_lock(&condition_mutex);
  pthread_cond_wait(&condition, &condition_mutex);
}
void WaitTimedCondition() {
  const timespec end = {time(nullptr) + 3600, 0};
  pthread_mutex_lock(&condition_mutex);
  pthread_cond_timedwait(&condition, &condition_mutex, &end);
}
void WaitStandardCondition() {
  static std::mutex mutex;
  std::unique_lock<std::mutex> lock(mutex);
  standard_condition.wait(lock);
}
void WaitWrittenLock() { pthread_rwlock_rdlock(&written_lock); }
void WaitReadLock() { pthread_rwlock_wrlock(&read_lock); }
void WaitBarrier() { pthread_barrier_wait(&barrier); }
void WaitSemaphore() { sem_wait(&semaphore); }
void WaitSharedSemaphore() { sem_wait(shared_semaphore); }
void WaitJoin() { pthread_join(joined, nullptr); }
void WaitRawFutex() { syscall(SYS_futex, &raw_word, FUTEX_WAIT_PRIVATE, 7, nullptr, nullptr, 0); }
void ReadFrom(int fd) {
  char byte;
  if (read(fd, &byte, 1) > 0) errno = 0;
}
void WaitPipe() { ReadFrom(pipe_to_read[0]); }
void WaitFullPipe() {
  char page[4096] = {};
  while (write(pipe_to_write[1], page, sizeof page) > 0) {
  }
}
void WaitUnix() { ReadFrom(unix_pair[0]); }
void WaitAccept() { accept(tcp_listener, nullptr, nullptr); }
void WaitTcp() {
  char byte;
  recv(tcp_client, &byte, 1, 0);
}
void WaitUdp() {
  char byte;
  recv(udp_socket, &byte, 1, 0);
}
void WaitPoll() {
  pollfd file = {pipe_to_poll[0], POLLIN, 0};
  poll(&file, 1, 3600 * 1000);
}
void WaitSelect() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipe_to_select[0], &set);
  select(pipe_to_select[0] + 1, &set, nullptr, nullptr, nullptr);
}
void WaitEpoll() {
  epoll_event got;
  epoll_wait(epoll, &got, 1, -1);
}
void WaitEvent() {
  uint64_t count;
  if (read(event, &count, sizeof count) > 0) errno = 0;
}
void WaitNanosleep() {
  const timespec hour = {3600, 0};
  nanosleep(&hour, nullptr);
}
void WaitPause() { pause(); }
void WaitSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  int signal = 0;
  errno = sigwait(&set, &signal);
}
void WaitChild() { waitpid(stopped_child, nullptr, 0); }
void WaitFlock() { flock(locked_file, LOCK_EX); }
void WaitRecordLock() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  fcntl(record_file, F_SETLKW, &lock);
}

// Holds what others wait for.
void Hold() {
  pthread_mutex_lock(&plain_mutex);
  pthread_mutex_lock(&recursive_mutex);
  pthread_mutex_lock(&robust_mutex);
  pthread_mutex_lock(&priority_mutex);
  pthread_rwlock_wrlock(&written_lock);
  pthread_rwlock_rdlock(&read_lock);
  standard_mutex.lock();
}

struct Animal {
  const char* name;
  void (*wait)();
};

const Animal kAnimals[] = {
    {"mutex", WaitMutex},
    {"timed-mutex", WaitTimedMutex},
    {"recursive", WaitRecursive},
    {"robust", WaitRobust},
    {"priority", WaitPriority},
    {"abandoned", WaitAbandoned},
    {"shared", WaitShared},
    {"std-mutex", WaitStandardMutex},
    {"condition", WaitCondition},
    {"timed-condition", WaitTimedCondition},
    {"std-condition", WaitStandardCondition},
    {"rwlock-read", WaitWrittenLock},
    {"rwlock-write", WaitReadLock},
    {"barrier", WaitBarrier},
    {"semaphore", WaitSemaphore},
    {"shared-sem", WaitSharedSemaphore},
    {"join", WaitJoin},
    {"futex", WaitRawFutex},
    {"pipe", WaitPipe},
    {"full-pipe", WaitFullPipe},
    {"unix", WaitUnix},
    {"accept", WaitAccept},
    {"tcp", WaitTcp},
    {"udp", WaitUdp},
    {"poll", WaitPoll},
    {"select", WaitSelect},
    {"epoll", WaitEpoll},
    {"event", WaitEvent},
    {"sleep", WaitNanosleep},
    {"pause", WaitPause},
    {"signal", WaitSignal},
    {"child", WaitChild},
    {"flock", WaitFlock},
    {"record-lock", WaitRecordLock},
};

void* Live(void* argument) {
  const Animal* const animal = static_cast<const Animal*>(argument);
  prctl(PR_SET_NAME, animal->name);
  printf("%s %d\n", animal->name, Tid());
  fflush(stdout);
  sem_post(&introduced);
  errno = 0;
  animal->wait();
  printf("woke %s %d\n", animal->name, errno);
  fflush(stdout);
  for (;;) pause();
}

void* HoldForEver(void* ready) {
  prctl(PR_SET_NAME, "holder");
  printf("holder %d\n", Tid());
  Hold();
  sem_post(static_cast<sem_t*>(ready));
  for (;;) pause();
}

void* TakeAndEnd(void*) {
  pthread_mutex_lock(&abandoned_mutex);
  return nullptr;
}

void* SleepForEver(void*) {
  prctl(PR_SET_NAME, "joined");
  printf("joined %d\n", Tid());
  sem_post(&introduced);
  for (;;) pause();
}

pthread_t Start(void* (*function)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, function, argument) != 0) abort();
  return thread;
}

void InitMutex(pthread_mutex_t* mutex, int type, int robust, int protocol, int shared) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutexattr_setrobust(&attributes, robust);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutexattr_setpshared(&attributes, shared);
  pthread_mutex_init(mutex, &attributes);
}

void MakeSockets() {
  socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  tcp_listener = socket(AF_INET, SOCK_STREAM, 0);
  bind(tcp_listener, reinterpret_cast<sockaddr*>(&address), size);
  listen(tcp_listener, 4);
  getsockname(tcp_listener, reinterpret_cast<sockaddr*>(&address), &size);
  tcp_client = socket(AF_INET, SOCK_STREAM, 0);
  connect(tcp_client, reinterpret_cast<sockaddr*>(&address), size);
  tcp_server = accept(tcp_listener, nullptr, nullptr);
  udp_socket = socket(AF_INET, SOCK_DGRAM, 0);
  address.sin_port = 0;
  bind(udp_socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

int TemporaryFile() {
  char name[] = "/tmp/wait_zoo.XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  return fd;
}

// Holds the shared mutex and both file locks. `flock` belongs to an open file, so the child opens
// it anew.
pid_t StartChild(int ready) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_mutex_lock(shared_mutex);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", locked_file);
  flock(open(path, O_RDWR), LOCK_EX);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  fcntl(record_file, F_SETLK, &lock);
  if (write(ready, "", 1) != 1) _exit(1);
  for (;;) raise(SIGSTOP);
}

}  // namespace

int main(int count, char** arguments) {
  const int copies = count > 1 ? atoi(arguments[1]) : 1;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  InitMutex(&recursive_mutex, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE,
            PTHREAD_PROCESS_PRIVATE);
  InitMutex(&robust_mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE,
            PTHREAD_PROCESS_PRIVATE);
  InitMutex(&priority_mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT,
            PTHREAD_PROCESS_PRIVATE);
  void* const shared =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared_mutex = static_cast<pthread_mutex_t*>(shared) + 1;
  InitMutex(shared_mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE,
            PTHREAD_PROCESS_SHARED);
  shared_semaphore = reinterpret_cast<sem_t*>(static_cast<char*>(shared) + 1024);
  sem_init(shared_semaphore, 1, 0);
  pthread_barrier_init(&barrier, nullptr, 1000);
  sem_init(&semaphore, 0, 0);
  sem_init(&introduced, 0, 0);
  for (int* ends : {pipe_to_read, pipe_to_write, pipe_to_poll, pipe_to_select, pipe_to_epoll}) {
    if (pipe(ends) != 0) return 1;
  }
  MakeSockets();
  event = eventfd(0, 0);
  epoll = epoll_create1(0);
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_to_epoll[0], &wanted);
  locked_file = TemporaryFile();
  record_file = TemporaryFile();

  int child_ready[2];
  if (pipe(child_ready) != 0) return 1;
  stopped_child = StartChild(child_ready[1]);
  char byte;
  if (read(child_ready[0], &byte, 1) != 1) return 1;
  printf("stopped-child %d\n", stopped_child);

  sem_t held;
  sem_init(&held, 0, 0);
  Start(HoldForEver, &held);
  sem_wait(&held);
  pthread_join(Start(TakeAndEnd, nullptr), nullptr);
  joined = Start(SleepForEver, nullptr);
  sem_wait(&introduced);
  for (const Animal& animal : kAnimals) {
    for (int i = 0; i < copies; ++i) {
      Start(Live, const_cast<Animal*>(&animal));
      sem_wait(&introduced);
    }
  }
  printf("main %d\nready\n", Tid());
  fflush(stdout);
  while (read(0, &byte, 1) > 0) {
  }
  kill(stopped_child, SIGKILL);
  _exit(0);
}

// usage: zoo_kernel_waits NAME
// Threads and processes that sleep in the kernel for what nobody will do, and such as wait there
// for somebody who comes. What they make is in the current folder, and has no name any more when
// they are "ready", unless it says so.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

#include <thread>
#include <vector>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
int work_pipe[2];
int reply_pipe[2];

// Two processes meet without a wait in the kernel that would be seen.
struct SharedState {
  std::atomic<int> came{0};
  std::atomic<int> word_a{0};
  std::atomic<int> word_b{0};
  pthread_mutex_t mutex;
};
SharedState* shared;

SharedState* ShareMemory() {
  void* const memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Must(memory != MAP_FAILED, "mmap");
  auto* const state = new (memory) SharedState();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&state->mutex, &attributes);
  return state;
}

void Come(int count) {
  ++shared->came;
  while (shared->came < count) Nap(0.0005);
}

// Runs the first in this process and the second in a child, by these names.
void AsTwo(void (*first)(), void (*second)()) {
  shared = ShareMemory();
  if (Fork() == 0) {
    Rename("second");
    second();
    _exit(0);
  }
  Rename("first");
  first();
}

// --- Named pipes.

void OpenForReading(const char* name) { open(name, O_RDONLY); }
void OpenForWriting(const char* name) { open(name, O_WRONLY); }

void OpenUnlinked(void (*opens)(const char*)) {
  Must(mkfifo("lonely.fifo", 0600) == 0, "mkfifo");
  std::thread opener(opens, "lonely.fifo");
  Nap(0.2);  // until it sleeps there; nobody can open it after that
  unlink("lonely.fifo");
  Ready();
  opener.join();
}

void FifoReadUnlinked(long) { OpenUnlinked(OpenForReading); }
void FifoWriteUnlinked(long) { OpenUnlinked(OpenForWriting); }

void FifoRead(long) {
  Must(mkfifo("lonely.fifo", 0600) == 0, "mkfifo");
  Ready();
  OpenForReading("lonely.fifo");
}

void FifoWrite(long) {
  Must(mkfifo("lonely.fifo", 0600) == 0, "mkfifo");
  Ready();
  OpenForWriting("lonely.fifo");
}

void OpenRequests() {
  Come(2);
  OpenForWriting("requests.fifo");
  OpenForReading("replies.fifo");
}

void OpenReplies() {
  Come(2);
  OpenForWriting("replies.fifo");
  OpenForReading("requests.fifo");
}

void FifosCrossed(long) {
  Must(mkfifo("requests.fifo", 0600) == 0 && mkfifo("replies.fifo", 0600) == 0, "mkfifo");
  Ready();
  AsTwo(OpenRequests, OpenReplies);
}

// --- Locks of files.

int OpenFile(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Must(file >= 0, "open");
  return file;
}

void FlockBoth(const char* first, const char* second) {
  const int one = OpenFile(first);
  const int other = OpenFile(second);
  flock(one, LOCK_EX);
  Come(2);
  flock(other, LOCK_EX);
}

void FlockCrossed(long) {
  Ready();
  AsTwo([] { FlockBoth("a.lock", "b.lock"); }, [] { FlockBoth("b.lock", "a.lock"); });
}

void FlockTwice(long) {
  const int one = OpenFile("a.lock");
  const int other = OpenFile("a.lock");
  flock(one, LOCK_EX);
  Ready();
  flock(other, LOCK_EX);
}

void LockRange(int file, int command, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_len = 10;
  fcntl(file, command, &range);
}

void OfdBoth(const char* first, const char* second) {
  const int one = OpenFile(first);
  const int other = OpenFile(second);
  LockRange(one, F_OFD_SETLKW, F_WRLCK);
  Come(2);
  LockRange(other, F_OFD_SETLKW, F_WRLCK);
}

void OfdCrossed(long) {
  Ready();
  AsTwo([] { OfdBoth("a.lock", "b.lock"); }, [] { OfdBoth("b.lock", "a.lock"); });
}

void OfdTwice(long) {
  const int one = OpenFile("a.lock");
  const int other = OpenFile("a.lock");
  LockRange(one, F_OFD_SETLKW, F_WRLCK);
  Ready();
  LockRange(other, F_OFD_SETLKW, F_WRLCK);
}

void HoldAndRead() {
  close(work_pipe[1]);
  LockRange(OpenFile("a.lock"), F_SETLKW, F_WRLCK);
  Come(2);
  ReadByte(work_pipe[0]);
}

void LockAndWrite() {
  close(work_pipe[0]);
  Come(2);
  LockRange(OpenFile("a.lock"), F_SETLKW, F_WRLCK);
  WriteByte(work_pipe[1]);
}

void FcntlAgainstPipe(long) {
  MakePipe(work_pipe);
  Ready();
  AsTwo(HoldAndRead, LockAndWrite);
}

// Whoever has the lock has lost its own way to be woken.
void FlockOfStuck(long) {
  Ready();
  AsTwo(
      [] {
        Come(2);
        flock(OpenFile("a.lock"), LOCK_EX);
      },
      [] {
        flock(OpenFile("a.lock"), LOCK_EX);
        MakePipe(work_pipe);
        Come(2);
        ReadByte(work_pipe[0]);
      });
}

// --- System V and POSIX.

void SemaphoreDown(int set, unsigned short number) {
  sembuf down = {number, -1, 0};
  semop(set, &down, 1);
}

int semaphore_set;

void DownBoth(unsigned short first, unsigned short second) {
  SemaphoreDown(semaphore_set, first);
  Come(2);
  SemaphoreDown(semaphore_set, second);
}

char queue_name[64];

// What outlives its users is removed after their end by a process that is none of theirs: it has
// forgotten the environment by which test_zoo.py knows those.
void RemoveAtEnd(void (*removes)()) {
  int alive[2];
  MakePipe(alive);
  if (fork() == 0) {
    if (fork() == 0) {
      close(alive[1]);
      close(1);
      close(2);
      setsid();
      for (char** text = environ; *text != nullptr; ++text) memset(*text, 'x', strlen(*text));
      char byte;
      if (read(alive[0], &byte, 1) <= 0) removes();
    }
    _exit(0);
  }
  wait(nullptr);
  close(alive[0]);
}

void MakeSet() {
  semaphore_set = semget(IPC_PRIVATE, 2, 0600);
  Must(semaphore_set >= 0, "semget");
  RemoveAtEnd([] { semctl(semaphore_set, 0, IPC_RMID); });
  semctl(semaphore_set, 0, SETVAL, 1);
  semctl(semaphore_set, 1, SETVAL, 1);
}

void SysvSemaphores(long) {
  MakeSet();
  Ready();
  AsTwo([] { DownBoth(0, 1); }, [] { DownBoth(1, 0); });
}

void SysvSemaphoreTwice(long) {
  MakeSet();
  SemaphoreDown(semaphore_set, 0);
  Ready();
  SemaphoreDown(semaphore_set, 0);
}

// Whoever took it last has ended, and did not give it back.
void SysvSemaphoreOfDead(long) {
  MakeSet();
  const pid_t worker = fork();
  if (worker == 0) {
    SemaphoreDown(semaphore_set, 0);
    _exit(0);
  }
  waitpid(worker, nullptr, 0);
  Ready();
  SemaphoreDown(semaphore_set, 0);
}

// Its child gives it as often as the parent is told to.
void SysvSemaphoreOfReader(long) {
  MakeSet();
  SemaphoreDown(semaphore_set, 0);
  if (fork() == 0) {
    SemaphoreDown(semaphore_set, 0);
    _exit(0);
  }
  Ready();
  ReadByte(0);
}

struct Message {
  long type;
  char text[8];
};
int message_queue;

void ReceiveType(long type) {
  Message message;
  msgrcv(message_queue, &message, sizeof message.text, type, 0);
}

void SysvQueue(long) {
  message_queue = msgget(IPC_PRIVATE, 0600);
  Must(message_queue >= 0, "msgget");
  RemoveAtEnd([] { msgctl(message_queue, IPC_RMID, nullptr); });
  Ready();
  AsTwo([] { ReceiveType(1); }, [] { ReceiveType(2); });
}

void MakeMessageQueue() {
  message_queue = msgget(IPC_PRIVATE, 0600);
  Must(message_queue >= 0, "msgget");
  RemoveAtEnd([] { msgctl(message_queue, IPC_RMID, nullptr); });
}

void SendType(long type) {
  Message message = {type, "job"};
  msgsnd(message_queue, &message, sizeof message.text, 0);
}

constexpr long kJob = 1, kResult = 2, kUrgent = 3;

[[noreturn]] void WorkForEver() {
  for (;;) {
    ReceiveType(kJob);
    SendType(kResult);
  }
}

// Its worker takes no jobs of that kind.
void SysvQueueUrgent(long) {
  MakeMessageQueue();
  if (fork() == 0) WorkForEver();
  SendType(kJob);
  ReceiveType(kResult);
  SendType(kUrgent);
  Ready();
  ReceiveType(kResult);
}

// Its workers wait for jobs that come when somebody asks it.
void SysvQueueOfServer(long) {
  MakeMessageQueue();
  if (fork() == 0) WorkForEver();
  SendType(kJob);
  ReceiveType(kResult);
  Ready();
  ReadByte(0);
}

// One of the workers takes its time.
void SysvQueueSlow(long) {
  MakeMessageQueue();
  if (fork() == 0) WorkForEver();
  if (fork() == 0) {
    ReceiveType(kUrgent);
    NapForLong();
    SendType(kResult);
    _exit(0);
  }
  SendType(kJob);
  ReceiveType(kResult);
  SendType(kUrgent);
  Ready();
  ReceiveType(kResult);
}

// Whoever is told its number sends to it.
void SysvQueueTold(long) {
  MakeMessageQueue();
  printf("%d\n", message_queue);
  if (fork() == 0) WorkForEver();
  Ready();
  for (;;) ReceiveType(kResult);
}

mqd_t MakeQueue(const char* what, bool keep_name = false) {
  snprintf(queue_name, sizeof queue_name, "/hangscope-zoo-%s-%d", what, getpid());
  mq_attr attributes = {};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t queue = mq_open(queue_name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  Must(queue >= 0, "mq_open");
  if (!keep_name) mq_unlink(queue_name);
  return queue;
}

mqd_t requests;
mqd_t replies;

void ReceiveFrom(mqd_t queue) {
  char message[8];
  mq_receive(queue, message, sizeof message, nullptr);
}

void SendTo(mqd_t queue) { Must(mq_send(queue, "x", 1, 0) == 0, "mq_send"); }

void QueuesCrossed(long) {
  requests = MakeQueue("requests");
  replies = MakeQueue("replies");
  Ready();
  AsTwo([] { ReceiveFrom(replies); }, [] { ReceiveFrom(requests); });
}

void QueueOwn(long) {
  requests = MakeQueue("requests");
  Ready();
  ReceiveFrom(requests);
}

void QueueFull(long) {
  requests = MakeQueue("requests");
  SendTo(requests);
  Ready();
  SendTo(requests);
}

// --- Children that are stopped or traced.

void VforkStuck(long) {
  MakePipe(work_pipe);
  Ready();
  // The child has the parent's memory, and waits for a pipe that only these two have.
  if (vfork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "job");
    char byte;
    if (read(work_pipe[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
}

pid_t StoppedChild() {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  return child;
}

void WaitForStopped(long) {
  const pid_t child = StoppedChild();
  Ready();
  waitpid(child, nullptr, 0);
}

void ReadFromStopped(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    close(work_pipe[0]);
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  close(work_pipe[1]);
  Ready();
  ReadByte(work_pipe[0]);
}

void LockOfStopped(long) {
  shared = ShareMemory();
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    pthread_mutex_lock(&shared->mutex);
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  Ready();
  pthread_mutex_lock(&shared->mutex);
}

void FlockOfStopped(long) {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    flock(OpenFile("a.lock"), LOCK_EX);
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  Ready();
  flock(OpenFile("a.lock"), LOCK_EX);
}

// In the background of a terminal of its own, whose foreground is the parent's group.
void OnTerminal(void (*does)()) {
  int ours;
  const pid_t session = forkpty(&ours, nullptr, nullptr, nullptr);
  Must(session >= 0, "forkpty");
  if (session == 0) {
    EndWithParent();
    Rename("session");
    const pid_t job = Fork();
    if (job == 0) {
      Rename("job");
      setpgid(0, 0);
      does();
      _exit(0);
    }
    setpgid(job, job);
    while (waitpid(job, nullptr, 0) < 0) {
    }
    _exit(0);
  }
  Nap(0.3);
  Ready();
  char bytes[64];
  while (read(ours, bytes, sizeof bytes) > 0) {
  }
}

void TerminalInput(long) {
  OnTerminal([] { ReadByte(0); });
}

void TerminalOutput(long) {
  OnTerminal([] {
    termios settings;
    tcgetattr(0, &settings);
    tcsetattr(0, TCSANOW, &settings);
  });
}

void StopItself(long) {
  Ready();
  raise(SIGSTOP);
}

// The tracer waits for what the traced one, which it has stopped, would write.
void TracedChild(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("traced");
    close(work_pipe[0]);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    WriteByte(work_pipe[1]);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  close(work_pipe[1]);
  Rename("tracer");
  Ready();
  ReadByte(work_pipe[0]);
}

void FrozenChild(long) {
  if (Fork() == 0) {
    Rename("frozen");
    for (;;) Nap(0.1);
  }
  Ready();
  wait(nullptr);
}

// --- Pipes and sockets that are full.

void WriteMuch(int fd) {
  static const char block[65536] = {};
  for (int i = 0; i < 200; ++i) Must(write(fd, block, sizeof block) > 0, "write");
}

void FullPipe(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("talker");
    close(work_pipe[0]);
    WriteMuch(work_pipe[1]);
    _exit(0);
  }
  close(work_pipe[1]);
  Ready();
  waitpid(child, nullptr, 0);  // and then reads
  ReadByte(work_pipe[0]);
}

void FullPipeAndLock(long) {
  MakePipe(work_pipe);
  Ready();
  AsTwo(
      [] {
        Come(2);
        pthread_mutex_lock(&shared->mutex);
        ReadByte(work_pipe[0]);
      },
      [] {
        close(work_pipe[0]);
        pthread_mutex_lock(&shared->mutex);
        Come(2);
        WriteMuch(work_pipe[1]);
      });
}

int ends[2];

void ConnectPair() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any = {};
  socklen_t size = sizeof any;
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
           listen(listening, 1) == 0 &&
           getsockname(listening, reinterpret_cast<sockaddr*>(&any), &size) == 0,
       "listen");
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  Must(connect(ends[0], reinterpret_cast<sockaddr*>(&any), size) == 0, "connect");
  ends[1] = accept(listening, nullptr, nullptr);
  close(listening);
}

void WriteFirst() {
  close(ends[1]);
  WriteMuch(ends[0]);
  ReadByte(ends[0]);
}

void WriteSecond() {
  close(ends[0]);
  WriteMuch(ends[1]);
  ReadByte(ends[1]);
}

void BothFull() {
  Ready();
  AsTwo(WriteFirst, WriteSecond);
}

void TcpFull(long) {
  ConnectPair();
  BothFull();
}

void UnixFull(long) {
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  BothFull();
}

void DatagramsFull(long) {
  Must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair");
  BothFull();
}

void AskFirst() {
  close(ends[1]);
  ReadByte(ends[0]);
}

void AskSecond() {
  close(ends[0]);
  ReadByte(ends[1]);
}

void UnixBothRead(long) {
  Must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
  Ready();
  AsTwo(AskFirst, AskSecond);
}

void TcpBothRead(long) {
  ConnectPair();
  Ready();
  AsTwo(AskFirst, AskSecond);
}

// The thread that would read writes itself.
void TcpOwnFull(long) {
  ConnectPair();
  Ready();
  WriteMuch(ends[0]);
}

void SpliceOwnFull(long) {
  MakePipe(work_pipe);
  MakePipe(reply_pipe);
  fcntl(work_pipe[1], F_SETPIPE_SZ, 4096);
  const char block[4096] = {};
  Must(write(work_pipe[1], block, sizeof block) == 4096 &&
           write(reply_pipe[1], block, sizeof block) == 4096,
       "write");
  Ready();
  splice(reply_pipe[0], nullptr, work_pipe[1], nullptr, 4096, 0);
}

// A pipe of one page, which is full.
void MakeFullPipe(int (&pipe)[2]) {
  MakePipe(pipe);
  fcntl(pipe[1], F_SETPIPE_SZ, 4096);
  const char block[4096] = {};
  Must(write(pipe[1], block, sizeof block) == 4096, "write");
}

void TeeOwnFull(long) {
  MakeFullPipe(work_pipe);
  MakeFullPipe(reply_pipe);
  Ready();
  tee(reply_pipe[0], work_pipe[1], 4096, 0);
}

void GiveOwnFull(long) {
  MakeFullPipe(work_pipe);
  static char page[4096] = {};
  const iovec pages = {page, sizeof page};
  Ready();
  vmsplice(work_pipe[1], &pages, 1, 0);
}

void SpliceOwnEmpty(long) {
  MakePipe(work_pipe);
  MakePipe(reply_pipe);
  Ready();
  splice(work_pipe[0], nullptr, reply_pipe[1], nullptr, 4096, 0);
}

// Who removes it at the end has not opened it.
void MakeLastingQueue(const char* what) {
  snprintf(queue_name, sizeof queue_name, "/hangscope-zoo-%s-%d", what, getpid());
  RemoveAtEnd([] { mq_unlink(queue_name); });
  requests = MakeQueue(what, true);
}

// The queue keeps its name, by which nobody has opened it so far.
void NamedQueueFull(long) {
  MakeLastingQueue("own");
  SendTo(requests);
  Ready();
  SendTo(requests);
}

// Who would accept the connection reads from it.
void ConnectToSelf(int listening, const sockaddr* address, socklen_t size) {
  ends[0] = socket(address->sa_family, SOCK_STREAM, 0);
  Must(listen(listening, 4) == 0 && connect(ends[0], address, size) == 0, "connect");
}

void AskOwn() { ReadByte(ends[0]); }

int ListenOnTcp(sockaddr_in* address) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof *address;
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(listening, reinterpret_cast<sockaddr*>(address), size) == 0 &&
           listen(listening, 4) == 0 &&
           getsockname(listening, reinterpret_cast<sockaddr*>(address), &size) == 0,
       "listen");
  return listening;
}

int ConnectToSelfOverTcp() {
  sockaddr_in address = {};
  const int listening = ListenOnTcp(&address);
  ConnectToSelf(listening, reinterpret_cast<sockaddr*>(&address), sizeof address);
  return listening;
}

int ConnectToSelfOverUnix() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "self.socket");
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  ConnectToSelf(listening, reinterpret_cast<sockaddr*>(&address), sizeof address);
  return listening;
}

void AsksItselfOverTcp(long) {
  ConnectToSelfOverTcp();
  Ready();
  AskOwn();
}

void AsksItselfOverUnix(long) {
  ConnectToSelfOverUnix();
  Ready();
  AskOwn();
}

// --- Descriptors that are never ready.

void WaitForEventfd(int event) {
  eventfd_t value;
  eventfd_read(event, &value);
}

int event_a;
int event_b;

void EventsCrossed(long) {
  event_a = eventfd(0, 0);
  event_b = eventfd(0, 0);
  Ready();
  AsTwo(
      [] {
        WaitForEventfd(event_a);
        eventfd_write(event_b, 1);
      },
      [] {
        WaitForEventfd(event_b);
        eventfd_write(event_a, 1);
      });
}

void TimerNeverArmed(long) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  Ready();
  uint64_t times;
  if (read(timer, &times, sizeof times) < 0) perror("read");
}

void EpollOfNothing(long) {
  const int epoll = epoll_create1(0);
  Ready();
  epoll_event event;
  epoll_wait(epoll, &event, 1, -1);
}

void EpollOfOwn(long) {
  const int epoll = epoll_create1(0);
  MakePipe(work_pipe);
  epoll_event event = {};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, work_pipe[0], &event);
  Ready();
  epoll_wait(epoll, &event, 1, -1);
}

void PidfdOfReader(long) {
  MakePipe(work_pipe);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("job");
    close(work_pipe[1]);
    ReadByte(work_pipe[0]);
    _exit(0);
  }
  pollfd file = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  Ready();
  poll(&file, 1, -1);
}

struct Ring {
  int fd = -1;
  io_uring_params parameters = {};
  char* submissions = nullptr;
  io_uring_sqe* entries = nullptr;

  void Open() {
    fd = static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters));
    if (fd < 0) {
      puts("skip: no io_uring here");
      fflush(stdout);
      _exit(0);
    }
    submissions = static_cast<char*>(mmap(
        nullptr,
        parameters.sq_off.array + parameters.sq_entries * static_cast<unsigned>(sizeof(unsigned)),
        PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING));
    entries =
        static_cast<io_uring_sqe*>(mmap(nullptr, parameters.sq_entries * sizeof(io_uring_sqe),
                                        PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES));
  }

  void Submit(const io_uring_sqe& entry) {
    entries[0] = entry;
    reinterpret_cast<unsigned*>(submissions + parameters.sq_off.array)[0] = 0;
    reinterpret_cast<std::atomic<unsigned>*>(submissions + parameters.sq_off.tail)->store(1);
    Must(syscall(SYS_io_uring_enter, fd, 1, 0, 0, nullptr, 0) == 1, "io_uring_enter");
  }

  void WaitForCompletion() const {
    syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
  }
};

void RingOfNothing(long) {
  Ring ring;
  ring.Open();
  Ready();
  ring.WaitForCompletion();
}

void RingReadsOwnPipe(long) {
  Ring ring;
  ring.Open();
  MakePipe(work_pipe);
  char byte;
  io_uring_sqe entry = {};
  entry.opcode = IORING_OP_READ;
  entry.fd = work_pipe[0];
  entry.addr = reinterpret_cast<uint64_t>(&byte);
  entry.len = 1;
  ring.Submit(entry);
  Ready();
  ring.WaitForCompletion();
}

void WaitForWord(std::atomic<int>* word) {
  while (word->load() == 0) syscall(SYS_futex, word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

void WakeWord(std::atomic<int>* word) {
  word->store(1);
  syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// In a file that has no name any more, and that only these two have mapped.
void FutexOfFile(long) {
  const int file = OpenFile("shared.words");
  unlink("shared.words");
  Must(ftruncate(file, 4096) == 0, "ftruncate");
  static auto* const words = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  Ready();
  AsTwo(
      [] {
        WaitForWord(&words[0]);
        WakeWord(&words[1]);
      },
      [] {
        WaitForWord(&words[1]);
        WakeWord(&words[0]);
      });
}

// Touches a page that another thread should fill, which waits for the lock that the toucher has.
char* missing_page;

void* TouchPage(void*) {
  pthread_mutex_lock(&lock_a);
  missing_page[0] = 1;
  pthread_mutex_unlock(&lock_a);
  return nullptr;
}

void FillPage(int faults) {
  char message[64];
  Must(read(faults, message, sizeof message) > 0, "read");
  pthread_mutex_lock(&lock_a);
}

void PageFault(long) {
  const auto faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api = {};
  api.api = UFFD_API;
  missing_page = static_cast<char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uffdio_register range = {};
  range.range.start = reinterpret_cast<uint64_t>(missing_page);
  range.range.len = 4096;
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 ||
      ioctl(faults, UFFDIO_REGISTER, &range) != 0) {
    puts("skip: no userfaultfd here");
    fflush(stdout);
    _exit(0);
  }
  Start("toucher", TouchPage);
  Nap(0.1);
  Ready();
  FillPage(faults);
}

void ConnectToOwn(long) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "own.socket");
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  Must(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
           listen(listening, 0) == 0,
       "listen");
  const int first = socket(AF_UNIX, SOCK_STREAM, 0);
  Must(connect(first, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
  const int second = socket(AF_UNIX, SOCK_STREAM, 0);
  Ready();
  connect(second, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

// As above, but another process has the pipe's end, too, and waits for this one's end.
void RingOfReader(long) {
  Ring ring;
  MakePipe(work_pipe);
  Ready();
  if (Fork() == 0) {
    Rename("job");
    close(work_pipe[1]);
    ring.Open();
    char byte;
    io_uring_sqe entry = {};
    entry.opcode = IORING_OP_READ;
    entry.fd = work_pipe[0];
    entry.addr = reinterpret_cast<uint64_t>(&byte);
    entry.len = 1;
    ring.Submit(entry);
    ring.WaitForCompletion();
    _exit(0);
  }
  close(work_pipe[0]);
  wait(nullptr);
}

// --- Controls.

void FifoOpenedLater(long) {
  Must(mkfifo("later.fifo", 0600) == 0, "mkfifo");
  Ready();
  OpenForReading("later.fifo");
  NapForLong();
}

void FlockTurns(long) {
  Ready();
  const auto work = [] {
    const int file = OpenFile("a.lock");
    for (;;) {
      flock(file, LOCK_EX);
      Nap(0.05);
      flock(file, LOCK_UN);
    }
  };
  AsTwo(work, work);
}

void FlockOfSleeper(long) {
  Ready();
  AsTwo(
      [] {
        Come(2);
        flock(OpenFile("a.lock"), LOCK_EX);
      },
      [] {
        flock(OpenFile("a.lock"), LOCK_EX);
        Come(2);
        NapForLong();
      });
}

void FcntlOfSleeper(long) {
  Ready();
  AsTwo(
      [] {
        Come(2);
        LockRange(OpenFile("a.lock"), F_SETLKW, F_WRLCK);
      },
      [] {
        LockRange(OpenFile("a.lock"), F_SETLKW, F_WRLCK);
        Come(2);
        NapForLong();
      });
}

void OfdOfServer(long) {
  Ready();
  AsTwo(
      [] {
        Come(2);
        LockRange(OpenFile("a.lock"), F_OFD_SETLKW, F_WRLCK);
      },
      [] {
        LockRange(OpenFile("a.lock"), F_OFD_SETLKW, F_WRLCK);
        Come(2);
        const int listening = socket(AF_INET, SOCK_STREAM, 0);
        listen(listening, 1);
        accept(listening, nullptr, nullptr);
      });
}

void SysvTurns(long) {
  MakeSet();
  semctl(semaphore_set, 1, SETVAL, 0);
  Ready();
  AsTwo(
      [] {
        for (;;) {
          SemaphoreDown(semaphore_set, 0);
          sembuf up = {1, 1, 0};
          semop(semaphore_set, &up, 1);
        }
      },
      [] {
        for (;;) {
          SemaphoreDown(semaphore_set, 1);
          Nap(0.1);
          sembuf up = {0, 1, 0};
          semop(semaphore_set, &up, 1);
        }
      });
}

void SysvOfSleeper(long) {
  MakeSet();
  semctl(semaphore_set, 0, SETVAL, 0);
  Ready();
  AsTwo([] { SemaphoreDown(semaphore_set, 0); },
        [] {
          NapForLong();
          sembuf up = {0, 1, 0};
          semop(semaphore_set, &up, 1);
        });
}

// A queue by whose name others may send.
void QueueServer(long) {
  requests = MakeQueue("server", true);
  RemoveAtEnd([] { mq_unlink(queue_name); });
  Ready();
  for (;;) ReceiveFrom(requests);
}

void QueueTurns(long) {
  requests = MakeQueue("requests");
  replies = MakeQueue("replies");
  Ready();
  AsTwo(
      [] {
        for (;;) {
          SendTo(requests);
          ReceiveFrom(replies);
        }
      },
      [] {
        for (;;) {
          ReceiveFrom(requests);
          Nap(0.02);
          SendTo(replies);
        }
      });
}

void VforkSleeps(long) {
  Ready();
  if (vfork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  wait(nullptr);
}

void StoppedAndServes(long) {
  StoppedChild();
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  listen(listening, 1);
  Ready();
  accept(listening, nullptr, nullptr);
}

void Tracer(long) {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("traced");
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    for (;;) Nap(0.05);
  }
  waitpid(child, nullptr, 0);
  Rename("tracer");
  Ready();
  int status = 0;
  do {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  } while (waitpid(child, &status, 0) == child && WIFSTOPPED(status));
}

void SlowReader(long) {
  MakePipe(work_pipe);
  Ready();
  AsTwo(
      [] {
        for (;;) WriteMuch(work_pipe[1]);
      },
      [] {
        static char block[65536];
        for (;;) {
          Nap(0.1);
          Must(read(work_pipe[0], block, sizeof block) > 0, "read");
        }
      });
}

void TcpTurns(long) {
  ConnectPair();
  Ready();
  AsTwo(
      [] {
        for (;;) {
          WriteByte(ends[0]);
          ReadByte(ends[0]);
        }
      },
      [] {
        for (;;) {
          ReadByte(ends[1]);
          Nap(0.03);
          WriteByte(ends[1]);
        }
      });
}

void UnixSlowReader(long) {
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  Ready();
  AsTwo(
      [] {
        for (;;) WriteMuch(ends[0]);
      },
      [] {
        static char block[65536];
        for (;;) {
          Nap(0.2);
          Must(read(ends[1], block, sizeof block) > 0, "read");
        }
      });
}

void SignalFile(long) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int file = signalfd(-1, &set, 0);
  Ready();
  signalfd_siginfo got;
  Must(read(file, &got, sizeof got) == sizeof got, "read");
}

void TimerFile(long periodic) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec when = {{0, periodic != 0 ? 50'000'000 : 0}, {periodic != 0 ? 1 : 600, 0}};
  timerfd_settime(timer, 0, &when, nullptr);
  Ready();
  for (;;) {
    uint64_t times;
    Must(read(timer, &times, sizeof times) > 0, "read");
  }
}

void EventTurns(long) {
  event_a = eventfd(1, 0);
  event_b = eventfd(0, 0);
  Ready();
  AsTwo(
      [] {
        for (;;) {
          WaitForEventfd(event_a);
          eventfd_write(event_b, 1);
        }
      },
      [] {
        for (;;) {
          WaitForEventfd(event_b);
          Nap(0.05);
          eventfd_write(event_a, 1);
        }
      });
}

// On a file that nobody else touches so far.
void Inotify(long) {
  OpenFile("watched");
  const int file = inotify_init1(0);
  inotify_add_watch(file, "watched", IN_MODIFY);
  Ready();
  char event[512];
  Must(read(file, event, sizeof event) > 0, "read");
}

void RingTimeout(long) {
  Ring ring;
  ring.Open();
  static __kernel_timespec time = {600, 0};
  io_uring_sqe entry = {};
  entry.opcode = IORING_OP_TIMEOUT;
  entry.fd = -1;
  entry.addr = reinterpret_cast<uint64_t>(&time);
  entry.len = 1;
  ring.Submit(entry);
  Ready();
  ring.WaitForCompletion();
}

void RingAccepts(long) {
  Ring ring;
  ring.Open();
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  listen(listening, 1);
  io_uring_sqe entry = {};
  entry.opcode = IORING_OP_ACCEPT;
  entry.fd = listening;
  ring.Submit(entry);
  Ready();
  ring.WaitForCompletion();
}

void FutexTurns(long) {
  Ready();
  AsTwo(
      [] {
        for (;;) {
          WakeWord(&shared->word_a);
          WaitForWord(&shared->word_b);
          shared->word_b = 0;
        }
      },
      [] {
        for (;;) {
          WaitForWord(&shared->word_a);
          shared->word_a = 0;
          Nap(0.02);
          WakeWord(&shared->word_b);
        }
      });
}

void PidfdOfSleeper(long) {
  const pid_t child = Fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(98);
  }
  pollfd file = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  Ready();
  poll(&file, 1, -1);
}

void EpollServer(long) {
  const int epoll = epoll_create1(0);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  listen(listening, 1);
  epoll_event event = {};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
  MakePipe(work_pipe);
  epoll_ctl(epoll, EPOLL_CTL_ADD, work_pipe[0], &event);
  Ready();
  epoll_wait(epoll, &event, 1, -1);
}

void Netlink(long) {
  const int file = socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;
  bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address);
  Ready();
  char message[4096];
  Must(recv(file, message, sizeof message, 0) > 0, "recv");
}

void Mounts(long) {
  pollfd file = {open("/proc/self/mounts", O_RDONLY), POLLPRI, 0};
  Ready();
  poll(&file, 1, -1);
}

void DatagramServer(long) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hangscope-zoo-%d", getpid());
  const int file = socket(AF_UNIX, SOCK_DGRAM, 0);
  Must(bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  Ready();
  ReadByte(file);
}

void SelectTimed(long) {
  MakePipe(work_pipe);
  Ready();
  for (;;) {
    fd_set files;
    FD_ZERO(&files);
    FD_SET(work_pipe[0], &files);
    timeval time = {600, 0};
    select(work_pipe[0] + 1, &files, nullptr, nullptr, &time);
  }
}

void ReceiveTimed(long) {
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const timeval time = {600, 0};
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  Ready();
  ReadByte(ends[0]);
}

void TerminalOutside(long) {
  Ready();
  ReadByte(0);
}

// A name that is gone need not have been the only one.
void FifoRenamed(long) {
  Must(mkfifo("new.fifo", 0600) == 0, "mkfifo");
  std::thread opener(OpenForReading, "new.fifo");
  Nap(0.2);
  Must(rename("new.fifo", "later.fifo") == 0, "rename");
  Ready();
  opener.join();
  NapForLong();
}

// By the number of a descriptor, as a container that has been made waits to be started.
void FifoByNumber(long) {
  Must(mkfifo("later.fifo", 0600) == 0, "mkfifo");
  const int file = open("later.fifo", O_PATH);
  Must(dup2(file, 177) == 177, "dup2");
  Ready();
  OpenForReading("/proc/self/fd/177");
  NapForLong();
}

// Those who send commands or read events will come; in the end it removes both.
void ServeFifos() {
  if (Fork() == 0) {
    Rename("second");
    OpenForReading("events.fifo");
  } else {
    OpenForReading("commands.fifo");
  }
  NapForLong();
  unlink("events.fifo");
  unlink("commands.fifo");
}

void FifosOfServer(long) {
  Must(mkfifo("commands.fifo", 0600) == 0 && mkfifo("events.fifo", 0600) == 0, "mkfifo");
  Ready();
  ServeFifos();
}

// One that serves whoever knows its key has often taken last what it waits for.
void SysvServer(long) {
  semaphore_set = semget(0x5a000000 + getpid(), 1, IPC_CREAT | IPC_EXCL | 0600);
  Must(semaphore_set >= 0, "semget");
  RemoveAtEnd([] { semctl(semaphore_set, 0, IPC_RMID); });
  semctl(semaphore_set, 0, SETVAL, 1);
  Ready();
  for (;;) SemaphoreDown(semaphore_set, 0);
}

// Takes what its child gives.
void SysvChildGives(long) {
  MakeSet();
  Ready();
  AsTwo(
      [] {
        for (;;) SemaphoreDown(semaphore_set, 0);
      },
      [] {
        for (;;) {
          Nap(0.2);
          sembuf up = {0, 1, 0};
          semop(semaphore_set, &up, 1);
        }
      });
}

void SpliceSlowReader(long) {
  MakeFullPipe(work_pipe);
  Ready();
  AsTwo(
      [] {
        static char page[4096] = {};
        const iovec pages = {page, sizeof page};
        for (;;) vmsplice(work_pipe[1], &pages, 1, 0);
      },
      [] {
        static char block[4096];
        for (;;) {
          Nap(0.1);
          Must(read(work_pipe[0], block, sizeof block) > 0, "read");
        }
      });
}

// From its own input, which somebody outside may write.
void SpliceInput(long) {
  MakePipe(work_pipe);
  Ready();
  splice(0, nullptr, work_pipe[1], nullptr, 4096, 0);
}

void NamedQueueSlowReader(long) {
  MakeLastingQueue("slow");
  Ready();
  AsTwo(
      [] {
        for (;;) SendTo(requests);
      },
      [] {
        for (;;) {
          Nap(0.1);
          ReceiveFrom(requests);
        }
      });
}

// Its child, or another thread, will accept.
void SelfAcceptedByThread(long) {
  static int listening;
  listening = ConnectToSelfOverTcp();
  std::thread([] {
    Nap(1);
    const int connection = accept(listening, nullptr, nullptr);
    for (;;) {
      WriteByte(connection);
      Nap(0.2);
    }
  }).detach();
  Ready();
  for (;;) AskOwn();
}

void SelfAcceptedByChild(long) {
  static int listening;
  listening = ConnectToSelfOverUnix();
  Ready();
  AsTwo(
      [] {
        for (;;) AskOwn();
      },
      [] {
        Nap(1);
        const int connection = accept(listening, nullptr, nullptr);
        for (;;) {
          WriteByte(connection);
          Nap(0.2);
        }
      });
}

// The kernel reads for it what its child writes.
void RingReadsChild(long) {
  MakePipe(work_pipe);
  if (Fork() == 0) {
    Rename("job");
    Nap(600);
    _exit(0);
  }
  Ring ring;
  ring.Open();
  char byte;
  io_uring_sqe entry = {};
  entry.opcode = IORING_OP_READ;
  entry.fd = work_pipe[0];
  entry.addr = reinterpret_cast<uint64_t>(&byte);
  entry.len = 1;
  ring.Submit(entry);
  Ready();
  ring.WaitForCompletion();
}

// A thread gives the ring its work after the other has begun to wait for that.
void RingSubmittedLater(long) {
  static Ring ring;
  ring.Open();
  std::thread([] {
    Nap(600);
    io_uring_sqe entry = {};
    entry.opcode = IORING_OP_NOP;
    ring.Submit(entry);
  }).detach();
  Ready();
  ring.WaitForCompletion();
}

// Another thread looks at the time before it fills the page.
void PageFilledLate(long) {
  static const auto faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api = {};
  api.api = UFFD_API;
  missing_page = static_cast<char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uffdio_register range = {};
  range.range.start = reinterpret_cast<uint64_t>(missing_page);
  range.range.len = 4096;
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 ||
      ioctl(faults, UFFDIO_REGISTER, &range) != 0) {
    puts("skip: no userfaultfd here");
    fflush(stdout);
    _exit(0);
  }
  std::thread([] {
    Nap(600);
    uffdio_zeropage zero = {};
    zero.range.start = reinterpret_cast<uint64_t>(missing_page);
    zero.range.len = 4096;
    ioctl(faults, UFFDIO_ZEROPAGE, &zero);
  }).detach();
  Start("toucher", TouchPage);
  Nap(0.1);
  Ready();
  pthread_mutex_lock(&lock_a);
}

const Program kPrograms[] = {
    {"fifo-read-unlinked", FifoReadUnlinked},
    {"fifo-write-unlinked", FifoWriteUnlinked},
    {"fifo-read", FifoRead},
    {"fifo-write", FifoWrite},
    {"fifos-crossed", FifosCrossed},
    {"flock-crossed", FlockCrossed},
    {"flock-twice", FlockTwice},
    {"ofd-crossed", OfdCrossed},
    {"ofd-twice", OfdTwice},
    {"fcntl-pipe", FcntlAgainstPipe},
    {"flock-stuck", FlockOfStuck},
    {"sysv-crossed", SysvSemaphores},
    {"sysv-twice", SysvSemaphoreTwice},
    {"sysv-dead", SysvSemaphoreOfDead},
    {"sysv-reader", SysvSemaphoreOfReader},
    {"sysv-queue", SysvQueue},
    {"sysv-queue-urgent", SysvQueueUrgent},
    {"sysv-queue-server", SysvQueueOfServer},
    {"sysv-queue-slow", SysvQueueSlow},
    {"sysv-queue-told", SysvQueueTold},
    {"queues-crossed", QueuesCrossed},
    {"queue-own", QueueOwn},
    {"queue-full", QueueFull},
    {"vfork-stuck", VforkStuck},
    {"wait-stopped", WaitForStopped},
    {"read-stopped", ReadFromStopped},
    {"lock-stopped", LockOfStopped},
    {"flock-stopped", FlockOfStopped},
    {"tty-input", TerminalInput},
    {"tty-output", TerminalOutput},
    {"stop-itself", StopItself},
    {"traced", TracedChild},
    {"frozen", FrozenChild},
    {"full-pipe", FullPipe},
    {"full-pipe-lock", FullPipeAndLock},
    {"tcp-full", TcpFull},
    {"unix-full", UnixFull},
    {"datagrams-full", DatagramsFull},
    {"unix-both-read", UnixBothRead},
    {"tcp-both-read", TcpBothRead},
    {"tcp-own-full", TcpOwnFull},
    {"splice-own-full", SpliceOwnFull},
    {"events-crossed", EventsCrossed},
    {"timer-never", TimerNeverArmed},
    {"epoll-nothing", EpollOfNothing},
    {"epoll-own", EpollOfOwn},
    {"pidfd-reader", PidfdOfReader},
    {"ring-nothing", RingOfNothing},
    {"ring-own-pipe", RingReadsOwnPipe},
    {"ring-reader", RingOfReader},
    {"tee-own-full", TeeOwnFull},
    {"give-own-full", GiveOwnFull},
    {"splice-own-empty", SpliceOwnEmpty},
    {"queue-full-named", NamedQueueFull},
    {"self-tcp", AsksItselfOverTcp},
    {"self-unix", AsksItselfOverUnix},
    {"futex-file", FutexOfFile},
    {"page-fault", PageFault},
    {"connect-own", ConnectToOwn},
    // Controls.
    {"fifo-later", FifoOpenedLater},
    {"flock-turns", FlockTurns},
    {"flock-sleeper", FlockOfSleeper},
    {"fcntl-sleeper", FcntlOfSleeper},
    {"ofd-server", OfdOfServer},
    {"sysv-turns", SysvTurns},
    {"sysv-sleeper", SysvOfSleeper},
    {"queue-server", QueueServer},
    {"queue-turns", QueueTurns},
    {"vfork-sleeps", VforkSleeps},
    {"stopped-serves", StoppedAndServes},
    {"tracer", Tracer},
    {"slow-reader", SlowReader},
    {"tcp-turns", TcpTurns},
    {"unix-slow-reader", UnixSlowReader},
    {"signalfd", SignalFile},
    {"timerfd", TimerFile},
    {"event-turns", EventTurns},
    {"inotify", Inotify},
    {"ring-timeout", RingTimeout},
    {"ring-accepts", RingAccepts},
    {"futex-turns", FutexTurns},
    {"pidfd-sleeper", PidfdOfSleeper},
    {"epoll-server", EpollServer},
    {"netlink", Netlink},
    {"mounts", Mounts},
    {"datagram-server", DatagramServer},
    {"select-timed", SelectTimed},
    {"receive-timed", ReceiveTimed},
    {"fifo-renamed", FifoRenamed},
    {"fifos-server", FifosOfServer},
    {"fifo-number", FifoByNumber},
    {"sysv-server", SysvServer},
    {"sysv-child-gives", SysvChildGives},
    {"splice-slow-reader", SpliceSlowReader},
    {"splice-input", SpliceInput},
    {"queue-slow-reader", NamedQueueSlowReader},
    {"self-by-thread", SelfAcceptedByThread},
    {"self-by-child", SelfAcceptedByChild},
    {"ring-reads-child", RingReadsChild},
    {"ring-later", RingSubmittedLater},
    {"page-late", PageFilledLate},
    {"tty", TerminalOutside},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

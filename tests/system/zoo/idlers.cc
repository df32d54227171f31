// usage: zoo_idlers NAME
// Threads that wait for what nobody gives, beside such as nap or serve and do nothing for them, and
// behind event loops for which nothing can come. And likewise where something still may.
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
sem_t free_slots;
int work_pipe[2];
int loop_pipe[2];
int answer_event = -1;
int timer = -1;
int seconds_up = 0;
void (*at_noon)() = nullptr;

// --- Who waits.

void* AwaitSlot(void*) {
  sem_wait(&free_slots);
  return nullptr;
}

void* AwaitWork(void*) {
  pthread_mutex_lock(&queue_lock);
  for (;;) pthread_cond_wait(&not_empty, &queue_lock);
}

void* AwaitAnswer(void*) {
  uint64_t count;
  Must(read(answer_event, &count, sizeof count) == sizeof count, "read");
  return nullptr;
}

void* AwaitByte(void*) {
  ReadByte(work_pipe[0]);
  return nullptr;
}

void MakeEvent() {
  answer_event = eventfd(0, 0);
  Must(answer_event >= 0, "eventfd");
}

// --- A main thread that naps and does nothing else.

[[noreturn]] void Stay() {
  Ready();
  for (;;) {
    sleep(1);
    ++seconds_up;
  }
}

void SemaphoreBesideMain(long) {
  sem_init(&free_slots, 0, 0);
  Start("worker", AwaitSlot);
  Stay();
}

void ConditionBesideMain(long) {
  Start("worker", AwaitWork);
  Stay();
}

void EventBesideMain(long) {
  MakeEvent();
  Start("worker", AwaitAnswer);
  Stay();
}

void PipeBesideMain(long) {
  MakePipe(work_pipe);
  Start("worker", AwaitByte);
  Stay();
}

// Two that wait for each other's pipes.
void* AskFirst(void*) {
  ReadByte(work_pipe[0]);
  WriteByte(loop_pipe[1]);
  return nullptr;
}

void* AskSecond(void*) {
  ReadByte(loop_pipe[0]);
  WriteByte(work_pipe[1]);
  return nullptr;
}

void PipesBesideMain(long) {
  MakePipe(work_pipe);
  MakePipe(loop_pipe);
  Start("first", AskFirst);
  Start("second", AskSecond);
  Stay();
}

// --- Event loops.

int MakeLoop(std::initializer_list<int> files) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (const int file : files) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = file;
    Must(epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) == 0, "epoll_ctl");
  }
  return epoll;
}

int loop_epoll = -1;
int next_event = -1;

// It answers each request; but each who could ask waits for an answer.
void* RunLoop(void*) {
  for (;;) {
    epoll_event events[4];
    const int count = epoll_wait(loop_epoll, events, 4, -1);
    for (int i = 0; i < count; ++i) {
      char request;
      if (read(events[i].data.fd, &request, 1) != 1) continue;
      if (request == 's')
        sem_post(&free_slots);
      else if (answer_event >= 0)
        eventfd_write(answer_event, 1);
      else
        WriteByte(work_pipe[1]);
    }
  }
}

void StartLoop() {
  MakePipe(loop_pipe);
  next_event = eventfd(0, 0);
  loop_epoll = MakeLoop({loop_pipe[0], next_event});
  Start("loop", RunLoop);
}

void PipeBehindLoop(long) {
  MakePipe(work_pipe);
  StartLoop();
  Ready();
  AwaitByte(nullptr);
}

void EventBehindLoop(long) {
  MakeEvent();
  StartLoop();
  Ready();
  AwaitAnswer(nullptr);
}

void SemaphoreBehindLoop(long) {
  sem_init(&free_slots, 0, 0);
  StartLoop();
  const pthread_t worker = Start("worker", AwaitSlot);
  Ready();
  Join(worker);
}

// The worker asks the loop for something, which waits for the worker's own socket.
int worker_socket[2];

void* AskAndWait(void*) {
  pthread_mutex_lock(&queue_lock);
  pthread_cond_wait(&not_empty, &queue_lock);
  WriteByte(worker_socket[0]);
  return nullptr;
}

void* SignalWhenAsked(void*) {
  for (;;) {
    epoll_event event;
    if (epoll_wait(loop_epoll, &event, 1, -1) != 1) continue;
    ReadByte(event.data.fd);
    pthread_cond_signal(&not_empty);
  }
}

void ConditionBehindLoop(long) {
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, worker_socket) == 0, "socketpair");
  loop_epoll = MakeLoop({worker_socket[1]});
  Start("loop", SignalWhenAsked);
  const pthread_t worker = Start("worker", AskAndWait);
  Ready();
  Join(worker);
}

// --- What is gone.

// The folder is removed, and what the kernel says of that was read.
void WatchesWhatIsGone(long) {
  Must(mkdir("watched", 0700) == 0, "mkdir");
  const int file = inotify_init1(0);
  inotify_add_watch(file, "watched", IN_CREATE);
  Must(rmdir("watched") == 0, "rmdir");
  char events[512];
  Must(read(file, events, sizeof events) > 0, "read");
  Ready();
  while (read(file, events, sizeof events) > 0) {
  }
}

void WatchesNothingMore(long) {
  mkdir("watched", 0700);
  const int file = inotify_init1(0);
  const int watch = inotify_add_watch(file, "watched", IN_CREATE);
  inotify_rm_watch(file, watch);
  char events[512];
  Must(read(file, events, sizeof events) > 0, "read");
  Ready();
  const int epoll = MakeLoop({file});
  epoll_event event;
  epoll_wait(epoll, &event, 1, -1);
}

int master = -1;
int slave = -1;

void* ReadMaster(void*) {
  char text[64];
  while (read(master, text, sizeof text) > 0) {
  }
  return nullptr;
}

void* ReadSlave(void*) {
  char text[64];
  while (read(slave, text, sizeof text) > 0) {
  }
  return nullptr;
}

// Both sides are read, and nobody else has one of them.
void BothSidesRead(long) {
  Must(openpty(&master, &slave, nullptr, nullptr, nullptr) == 0, "openpty");
  Start("terminal", ReadMaster);
  Ready();
  ReadSlave(nullptr);
}

// The child is asked for something, and waits to be told what.
void BothSidesReadByTwo(long) {
  const pid_t child = forkpty(&master, nullptr, nullptr, nullptr);
  Must(child >= 0, "forkpty");
  if (child == 0) {
    EndWithParent();
    Rename("session");
    slave = 0;
    ReadSlave(nullptr);
    _exit(0);
  }
  Nap(0.2);
  Ready();
  ReadMaster(nullptr);
}

// --- What has no name of its own.

struct Jobs {
  long count;
  pthread_mutex_t left;
  pthread_mutex_t right;
};
Jobs* jobs;

void TakeBothOfJobs(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  Nap(0.2);
  pthread_mutex_lock(second);
}

// Mutexes in memory of a file without a name, which two processes have.
void JobsCrossed(long of_zero) {
  int file = -1;
  if (of_zero == 0) {
    file = memfd_create("jobs", 0);
    Must(file >= 0 && ftruncate(file, 4096) == 0, "memfd_create");
  }
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                            of_zero == 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file, 0);
  Must(memory != MAP_FAILED, "mmap");
  jobs = static_cast<Jobs*>(memory);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&jobs->left, &attributes);
  pthread_mutex_init(&jobs->right, &attributes);
  Ready();
  if (Fork() == 0) {
    Rename("other");
    TakeBothOfJobs(&jobs->right, &jobs->left);
    _exit(0);
  }
  TakeBothOfJobs(&jobs->left, &jobs->right);
}

// --- Controls.

void PostLater(long) {
  sem_init(&free_slots, 0, 0);
  Start("worker", AwaitSlot);
  Ready();
  for (;;) {
    sleep(1);
    if (++seconds_up == 600) sem_post(&free_slots);
  }
}

void PoolBesideMain(long) {
  for (int i = 0; i < 4; ++i) Start("pool", AwaitWork);
  Stay();
}

void CloseLater(long) {
  MakePipe(work_pipe);
  Start("worker", AwaitByte);
  Ready();
  for (;;) {
    sleep(1);
    if (++seconds_up == 600) close(work_pipe[1]);
  }
}

void PostSlot() { sem_post(&free_slots); }

void CallLater(long) {
  sem_init(&free_slots, 0, 0);
  at_noon = PostSlot;
  Start("worker", AwaitSlot);
  Ready();
  for (;;) {
    sleep(1);
    if (++seconds_up == 600) at_noon();
  }
}

void EndLater(long) {
  sem_init(&free_slots, 0, 0);
  Start("worker", AwaitSlot);
  Ready();
  for (int i = 0; i < 600; ++i) sleep(1);
}

void PrintLater(long) {
  MakePipe(work_pipe);
  dup2(work_pipe[1], 2);
  Start("worker", AwaitByte);
  Ready();
  for (;;) {
    sleep(1);
    if (++seconds_up == 600) fputs("late\n", stderr);
  }
}

void HandlerPosts(long) {
  sem_init(&free_slots, 0, 0);
  Handle(SIGUSR1, [](int) { sem_post(&free_slots); });
  Start("worker", AwaitSlot);
  Stay();
}

// The loop has a timer, too, or a connection, or is asked by who naps.
void LoopWithTimer(long) {
  MakePipe(work_pipe);
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  itimerspec time = {};
  time.it_value.tv_sec = 600;
  timerfd_settime(timer, 0, &time, nullptr);
  MakePipe(loop_pipe);
  loop_epoll = MakeLoop({loop_pipe[0], timer});
  Start("loop", RunLoop);
  Ready();
  AwaitByte(nullptr);
}

void LoopThatServes(long) {
  MakePipe(work_pipe);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  listen(listening, 8);
  MakePipe(loop_pipe);
  loop_epoll = MakeLoop({loop_pipe[0], listening});
  Start("loop", RunLoop);
  Ready();
  AwaitByte(nullptr);
}

void LoopOfNapper(long) {
  MakePipe(work_pipe);
  StartLoop();
  Start("napper", [](void*) -> void* {
    NapForLong();
    WriteByte(loop_pipe[1]);
    return nullptr;
  });
  Ready();
  AwaitByte(nullptr);
}

void WatchesFolderOfAnother(long) {
  mkdir("watched", 0700);
  mkdir("gone", 0700);
  const int file = inotify_init1(0);
  inotify_add_watch(file, "watched", IN_CREATE);
  inotify_add_watch(file, "gone", IN_CREATE);
  rmdir("gone");
  char events[512];
  Must(read(file, events, sizeof events) > 0, "read");
  Ready();
  while (read(file, events, sizeof events) > 0) {
  }
}

// Another thread adds a folder after a while.
int watches = -1;

void WatchesMoreLater(long) {
  watches = inotify_init1(0);
  Start("adder", [](void*) -> void* {
    NapForLong();
    inotify_add_watch(watches, ".", IN_CREATE);
    return nullptr;
  });
  Ready();
  char events[512];
  while (read(watches, events, sizeof events) > 0) {
  }
}

void MasterOfAnother(long) {
  const pid_t child = forkpty(&master, nullptr, nullptr, nullptr);
  Must(child >= 0, "forkpty");
  if (child == 0) {
    EndWithParent();
    Rename("session");
    slave = 0;
    ReadSlave(nullptr);
    _exit(0);
  }
  Ready();
  NapForLong();  // the person
}

// Its other side is read, and a person's child naps.
void ChildNapsAtTerminal(long) {
  const pid_t child = forkpty(&master, nullptr, nullptr, nullptr);
  Must(child >= 0, "forkpty");
  if (child == 0) {
    EndWithParent();
    NapForLong();
    _exit(0);
  }
  Ready();
  ReadMaster(nullptr);
}

const Program kPrograms[] = {
    {"sem-main", SemaphoreBesideMain},
    {"cond-main", ConditionBesideMain},
    {"event-main", EventBesideMain},
    {"pipe-main", PipeBesideMain},
    {"pipes-main", PipesBesideMain},
    {"pipe-loop", PipeBehindLoop},
    {"event-loop", EventBehindLoop},
    {"sem-loop", SemaphoreBehindLoop},
    {"cond-loop", ConditionBehindLoop},
    {"watch-gone", WatchesWhatIsGone},
    {"watch-none", WatchesNothingMore},
    {"pty-both", BothSidesRead},
    {"pty-two", BothSidesReadByTwo},
    {"jobs-crossed", JobsCrossed},
    {"post-later", PostLater},
    {"pool-main", PoolBesideMain},
    {"close-later", CloseLater},
    {"call-later", CallLater},
    {"end-later", EndLater},
    {"print-later", PrintLater},
    {"handler-posts", HandlerPosts},
    {"loop-timer", LoopWithTimer},
    {"loop-serves", LoopThatServes},
    {"loop-napper", LoopOfNapper},
    {"watch-other", WatchesFolderOfAnother},
    {"watch-later", WatchesMoreLater},
    {"pty-person", MasterOfAnother},
    {"pty-child-naps", ChildNapsAtTerminal},
};

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

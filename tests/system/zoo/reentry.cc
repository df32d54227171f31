// usage: zoo_reentry NAME
// Programs that wait for what they would have to do themselves, or for each other over a terminal:
// statics that need themselves, locks asked for between naps, prompts that never come.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <thread>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

// --- Statics.

void UseThePool();
void LateWork() { NapForLong(); }

struct Pool {
  explicit Pool(void (*work)()) {
    std::thread worker(work);
    Ready();
    worker.join();
  }
};

Pool& ThePool() {
  static Pool pool_instance(UseThePool);
  return pool_instance;
}

Pool& TheLatePool() {
  static Pool late_instance(LateWork);
  return late_instance;
}

void UseThePool() {
  Nap(0.2);
  ThePool();
}

void StaticJoins(long) { ThePool(); }
void StaticJoinsLate(long) { TheLatePool(); }

// --- Locks that are tried between naps.

pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
Meeting both;

void TryBetweenNaps(pthread_mutex_t* lock) {
  while (pthread_mutex_trylock(lock) != 0) usleep(2000);
}

void* PayIn(void*) {
  pthread_mutex_lock(&accounts);
  both.Come(2);
  TryBetweenNaps(&journal);
  return nullptr;
}

void* PayOut(void*) {
  pthread_mutex_lock(&journal);
  both.Come(2);
  TryBetweenNaps(&accounts);
  return nullptr;
}

void TryCrosswise(long) {
  const pthread_t in = Start("pay in", PayIn);
  const pthread_t out = Start("pay out", PayOut);
  Ready();
  Join({in, out});
}

// Who has it is at work, asleep for a while.
void* AuditFor(void*) {
  pthread_mutex_lock(&journal);
  both.Come(2);
  NapForLong();
  pthread_mutex_unlock(&journal);
  return nullptr;
}

void TryWhileHeld(long) {
  const pthread_t in = Start("pay in", PayIn);
  const pthread_t audit = Start("audit", AuditFor);
  Ready();
  Join({in, audit});
}

// Who has it reads what comes from outside.
void* ReadFor(void*) {
  pthread_mutex_lock(&journal);
  both.Come(2);
  ReadByte(0);
  pthread_mutex_unlock(&journal);
  return nullptr;
}

void TryWhileRead(long) {
  const pthread_t in = Start("pay in", PayIn);
  const pthread_t reader = Start("reader", ReadFor);
  Ready();
  Join({in, reader});
}

// --- Prompts.

int StartCat() {
  int own = -1;
  termios plain = {};
  cfmakeraw(&plain);
  const pid_t child = forkpty(&own, nullptr, &plain, nullptr);
  Must(child >= 0, "forkpty");
  if (child == 0) {
    EndWithParent();
    execlp("cat", "cat", static_cast<char*>(nullptr));
    _exit(99);
  }
  return own;
}

void AwaitPrompt(int own, int other) {
  pollfd files[] = {{own, POLLIN, 0}, {other, POLLIN, 0}};
  while (poll(files, other < 0 ? 1 : 2, -1) >= 0) ReadByte(files[0].revents != 0 ? own : other);
}

void PollPrompt(long) {
  const int own = StartCat();
  Ready();
  AwaitPrompt(own, -1);
}

void EpollPrompt(long) {
  const int own = StartCat();
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  Must(epoll_ctl(epoll, EPOLL_CTL_ADD, own, &event) == 0, "epoll_ctl");
  Ready();
  while (epoll_wait(epoll, &event, 1, -1) >= 0) ReadByte(own);
}

// As a terminal's window does, and as `script` does.
void PollPromptAndSocket(long) {
  int ends[2];
  Must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  if (Fork() == 0) {
    Rename("window");
    NapForLong();
    WriteByte(ends[1]);
  }
  const int own = StartCat();
  Ready();
  AwaitPrompt(own, ends[0]);
}

void PollPromptAndInput(long) {
  const int own = StartCat();
  Ready();
  AwaitPrompt(own, 0);
}

void PollPromptWithTime(long) {
  const int own = StartCat();
  pollfd file = {own, POLLIN, 0};
  Ready();
  poll(&file, 1, 550'000);
  NapForLong();
}

// Another thread types later.
void* TypeLater(void* own) {
  NapForLong();
  WriteByte(static_cast<int>(Number(own)));
  return nullptr;
}

void PollPromptWhileTyped(long) {
  const int own = StartCat();
  Start("typist", TypeLater, own);
  Ready();
  AwaitPrompt(own, -1);
}

constexpr Program kPrograms[] = {
    {"static-joins", StaticJoins},
    {"try-crosswise", TryCrosswise},
    {"poll-prompt", PollPrompt},
    {"epoll-prompt", EpollPrompt},
    {"static-joins-late", StaticJoinsLate},
    {"try-while-held", TryWhileHeld},
    {"try-while-read", TryWhileRead},
    {"poll-prompt-and-socket", PollPromptAndSocket},
    {"poll-prompt-and-input", PollPromptAndInput},
    {"poll-prompt-with-time", PollPromptWithTime},
    {"poll-prompt-while-typed", PollPromptWhileTyped},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

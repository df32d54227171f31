// usage: zoo_reentry NAME
// Programs that wait for what they would have to do themselves, or for each other over a terminal:
// statics that need themselves, locks asked for between naps, prompts that never come.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <mutex>
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

// Two terminals that are there to be opened by their names, as socat links them. Somebody reads
// each, and somebody else may write to it later.
void ReadByName(const char* name) {
  const pid_t child = Fork();
  if (child != 0) return;
  const int terminal = open(name, O_RDWR | O_NOCTTY);
  Must(terminal >= 0, "open");
  Rename("reader");
  ReadByte(terminal);
  _exit(0);
}

void LinkTerminals(long) {
  int made[2];
  char names[2][64];
  MakePipe(made);
  if (Fork() == 0) {
    Rename("link");
    pollfd files[2];
    termios plain = {};
    cfmakeraw(&plain);
    for (int i = 0; i < 2; ++i) {
      int own = -1, theirs = -1;
      Must(openpty(&own, &theirs, names[i], &plain, nullptr) == 0, "openpty");
      files[i] = {own, POLLIN, 0};
    }
    Must(write(made[1], names, sizeof names) == sizeof names, "write");
    poll(files, 2, -1);
    _exit(0);
  }
  Must(read(made[0], names, sizeof names) == sizeof names, "read");
  for (const char* const name : names) ReadByName(name);
  Nap(0.2);
  Ready();
  pause();
}

// --- std::call_once, of a program that was compiled with optimisation.

std::once_flag config_once;
std::once_flag log_once;
volatile bool is_deep = true;

void InitialiseConfig();
[[gnu::noinline]] void EnsureConfig() {
  std::call_once(config_once, InitialiseConfig);
  is_deep = true;  // so that the call above is none of the last kind
}
[[gnu::noinline]] void InitialiseConfig() {
  EnsureConfig();
  is_deep = true;
}

void* Serve(void*) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  Must(listen(listener, 1) == 0, "listen");
  const int client = accept(listener, nullptr, nullptr);
  pthread_exit(reinterpret_cast<void*>(static_cast<long>(client)));
}

void OnceOfItself(long) {
  Start("server", Serve);
  Nap(0.1);
  Ready();
  EnsureConfig();
}

[[gnu::noinline]] void LoadSlowly() { NapForLong(); }
[[gnu::noinline]] void OpenLog(std::once_flag& flag) {
  std::call_once(flag, LoadSlowly);
  is_deep = true;
}
void* UseLog(void*) {
  OpenLog(log_once);
  return nullptr;
}
// One of the two runs it, for long, and this one waits for both within its own.
[[gnu::noinline]] void LoadBoth() {
  const pthread_t first = Start("first", UseLog);
  Nap(0.1);
  const pthread_t second = Start("second", UseLog);
  Nap(0.1);
  Ready();
  Join({first, second});
}

void OnceWithin(long) { std::call_once(config_once, LoadBoth); }

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
    {"once-of-itself", OnceOfItself},
    {"static-joins-late", StaticJoinsLate},
    {"link-terminals", LinkTerminals},
    {"once-within", OnceWithin},
    {"try-while-held", TryWhileHeld},
    {"try-while-read", TryWhileRead},
    {"poll-prompt-and-socket", PollPromptAndSocket},
    {"poll-prompt-and-input", PollPromptAndInput},
    {"poll-prompt-with-time", PollPromptWithTime},
    {"poll-prompt-while-typed", PollPromptWhileTyped},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }

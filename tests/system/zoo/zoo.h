// What the programs of the zoo share. Each is started as `zoo_CLASS NAME [NUMBER]`, prints "ready"
// when it has arranged what it shows, and stays so until it is killed: by who started it, when that
// ends, or after ten minutes of a processor. test_zoo.py kills it much earlier.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace zoo {

struct Program {
  const char* name;
  void (*run)(long number);
};

inline void Must(bool fine, const char* what) {
  if (fine) return;
  perror(what);
  _exit(99);
}

inline void Ready() { Must(write(1, "ready\n", 6) == 6, "write"); }

inline void Nap(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  timespec left = {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

// A wait of ten minutes, by which every control has been killed.
inline void NapForLong() { Nap(600); }

// PR_SET_PDEATHSIG changes nothing that others see of a process, its signals included.
inline void EndWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

inline pid_t Fork() {
  const pid_t child = fork();
  Must(child >= 0, "fork");
  if (child == 0) EndWithParent();
  return child;
}

inline void Rename(const char* name) { prctl(PR_SET_NAME, name); }

inline pthread_t Start(const char* name, void* (*what)(void*), long number = 0) {
  pthread_t thread;
  Must(pthread_create(&thread, nullptr, what, reinterpret_cast<void*>(number)) == 0,
       "pthread_create");
  pthread_setname_np(thread, name);
  return thread;
}

inline long Number(void* argument) { return reinterpret_cast<long>(argument); }

inline void Join(pthread_t thread) { pthread_join(thread, nullptr); }

inline void Join(std::initializer_list<pthread_t> threads) {
  for (const pthread_t thread : threads) Join(thread);
}

// Where threads meet without a wait of their own: whoever comes naps until all are there, and
// nothing is left of it afterwards.
class Meeting {
 public:
  void Come(int count) {
    ++came_;
    while (came_ < count) Nap(0.0005);
  }

 private:
  std::atomic<int> came_{0};
};

inline void ReadByte(int fd) {
  char byte;
  if (read(fd, &byte, 1) < 0) perror("read");
}

inline void WriteByte(int fd) { Must(write(fd, "", 1) == 1, "write"); }

inline void MakePipe(int (&ends)[2]) { Must(pipe(ends) == 0, "pipe"); }

inline void Handle(int signal_number, void (*how)(int), int flags = 0) {
  struct sigaction action = {};
  action.sa_handler = how;
  action.sa_flags = flags;
  sigaction(signal_number, &action, nullptr);
}

inline void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
}

// Runs the program named by the first argument; 2: there is none of that name.
template <size_t kCount>
int RunProgram(const Program (&programs)[kCount], int count, char** arguments) {
  EndWithParent();
  const rlimit ten_minutes = {600, 600};
  setrlimit(RLIMIT_CPU, &ten_minutes);
  for (const Program& program : programs) {
    if (count < 2 || strcmp(program.name, arguments[1]) != 0) continue;
    program.run(count > 2 ? atol(arguments[2]) : 0);
    return 0;
  }
  fprintf(stderr, "usage: %s NAME [NUMBER], where NAME is one of:\n", arguments[0]);
  for (const Program& program : programs) fprintf(stderr, "  %s\n", program.name);
  return 2;
}

}  // namespace zoo

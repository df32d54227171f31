/* Threads of a Linux process: each has a ring of its own, in a file that is mapped and so outlives
 * the process (target/linux.h). Only the thread itself writes to its ring, interrupted by its own
 * signal handlers, so on x86-64 an instruction needs no lock prefix to be atomic enough; elsewhere,
 * and under ThreadSanitizer, which does not see into assembly, port/generic.h does it. */
#ifndef HANGSCOPE_PORT_LINUX_H
#define HANGSCOPE_PORT_LINUX_H

#include <time.h>
#include <unistd.h>

#include "hangscope/config.h"

#define HANGSCOPE_PORT_THREADS 1

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

#define HANGSCOPE_PORT_RESERVE_IS_PORTED
#define HANGSCOPE_PORT_TAKE_IS_PORTED
#define HANGSCOPE_PORT_ATOMICS_ORDER_STORES

/* x86 stores become visible in program order: the clobbers keep the compiler to it. */
HANGSCOPE_INLINE uint32_t hangscope_port_reserve(uint32_t* head) {
  uint64_t ticket = HANGSCOPE_TICKET_STEP;
  __asm__ volatile("xaddq %0, %1" : "+r"(ticket), "+m"(*(uint64_t*)(void*)head)::"memory", "cc");
  return (uint32_t)ticket;
}
HANGSCOPE_INLINE int hangscope_port_take(uint32_t* mark) {
  int busy;
  __asm__ volatile("btsl $11, %1" : "=@ccc"(busy), "+m"(*mark)::"memory");
  return busy;
}

#endif

/* A thread that is halted sleeps; its signal handlers still run, and a deadly signal still ends it.
 */
#define HANGSCOPE_PORT_RELAX_IS_PORTED
HANGSCOPE_INLINE void hangscope_port_relax(void) {
  const struct timespec moment = {0, 1000000};
  (void)nanosleep(&moment, 0);
}
#define HANGSCOPE_PORT_HALT_IS_PORTED
__attribute__((noreturn)) HANGSCOPE_INLINE void hangscope_port_halt(void) {
  for (;;) (void)pause();
}

#include "hangscope/port/generic.h"

#define HANGSCOPE_PORT_WIDE_CLOCK 1
#ifndef HANGSCOPE_CLOCK_KIND
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_SHARED
#endif

#if defined(__x86_64__)
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  uint64_t now;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
}
#else
HANGSCOPE_INLINE uint64_t hangscope_port_clock64(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

/* The low half of the clock, and its quarter-wraps. */
HANGSCOPE_INLINE uint32_t hangscope_port_now(uint32_t* epoch) {
#if defined(__x86_64__)
  uint32_t low;
  uint32_t high;
  /* memory: stays before the reservation */
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
  __asm__("shldl $2, %1, %0" : "+r"(high) : "r"(low) : "cc");
  *epoch = high;
  return low;
#else
  const uint64_t now = hangscope_port_clock64();
  *epoch = (uint32_t)(now >> 30);
  return (uint32_t)now;
#endif
}

#endif

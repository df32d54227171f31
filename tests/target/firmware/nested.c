/* Each hart records without pause, interrupted at random instructions by handlers that record, too,
 * and are interrupted themselves. Each level counts what it records in `ledger`. Now and then a
 * handler stops, with whatever it interrupted unfinished, until the test has looked at everything.
 * When level 0 of all harts has recorded as many as the test asked for, QEMU ends.
 *
 * A record's second parameter is a hash of its first, which is unique: a mix of two shows. */
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "platform.h"
#include "work.h"

#define LEVELS 4         /* the loop, a handler, one that interrupts it, one that interrupts that */
#define MOST_IN_A_ROW 12 /* more than a ring of 8 holds: a handler may lap whom it interrupts */
/* Until the next timer interrupt; a handler takes some 50 where a tick is 12 instructions. */
#define MOST_TICKS 256

#define MSIP 0x02000000u
#define CAUSE_SOFTWARE 3u
#define CAUSE_TIMER 7u
#define MSTATUS_MIE 8u
#define MIE_SOFTWARE_AND_TIMER 0x88u

#define NESTED_EVENTS(EVENT) EVENT(nested_record, USER, "who %x, hash %x", u32, who, u32, hash)
HANGSCOPE_EVENTS(nested, HANGSCOPE_FIRST_USER_ID, NESTED_EVENTS);

/* Read from outside by the test, which writes `goes`. */
struct ledger {
  uint32_t recorded[LEVELS];
  uint32_t stops;
  uint32_t goes;  /* as many as there were stops: go on */
  uint32_t level; /* where it stopped */
  uint32_t done;
};
volatile struct ledger ledger[MAX_HARTS];

static struct {
  uint32_t level;
  uint32_t random;
} harts[MAX_HARTS];

void trap_entry(void);

static unsigned this_hart(void) {
  uintptr_t hart;
  __asm__("csrr %0, mhartid" : "=r"(hart));
  return (unsigned)hart;
}

static uint32_t hash(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/* One context at a time is at a level of a hart, so its count needs no care. */
static void record_one(unsigned hart, uint32_t level) {
  const uint32_t number = ledger[hart].recorded[level];
  const uint32_t who = (uint32_t)hart << 29 | level << 27 | (number & 0x7ffffffu);
  hangscope_nested_record(who, hash(who));
  ledger[hart].recorded[level] = number + 1;
}

/* Interrupts are off. */
static void stop(unsigned hart, uint32_t level) {
  ledger[hart].level = level;
  const uint32_t stops = ledger[hart].stops + 1;
  STORE_RELEASE(&ledger[hart].stops, stops);
  while (LOAD_ACQUIRE(&ledger[hart].goes) != stops) {
  }
}

/* Interrupts are off when it is called. */
void trap_handler(uintptr_t cause) {
  const unsigned hart = this_hart();
  const uint32_t level = ++harts[hart].level;
  const uint32_t random = next_random(&harts[hart].random);
  volatile uint32_t* const software = (volatile uint32_t*)(uintptr_t)(MSIP + 4 * hart);
  switch (cause & 0xff) {
    case CAUSE_SOFTWARE:
      *software = 0;
      break;
    case CAUSE_TIMER:
      platform_set_timer(hart, platform_mtime() + 1 + random % MOST_TICKS);
      break;
    default:
      platform_fail((uint32_t)cause & 0xff);
  }
  if (level < LEVELS - 1) {
    __asm__ volatile("csrsi mstatus, %0" ::"i"(MSTATUS_MIE) : "memory");
  }
  const uint32_t count = (random >> 8) % (MOST_IN_A_ROW + 1);
  for (uint32_t i = 0; i < count; i++) {
    record_one(hart, level);
    if (level < LEVELS - 1 && i == 1 && (random & 0x10000u) != 0) *software = 1;
  }
  __asm__ volatile("csrci mstatus, %0" ::"i"(MSTATUS_MIE) : "memory");
  if ((random & 0x60000u) == 0) stop(hart, level);
  harts[hart].level--;
}

/* On a busy machine interrupts are rare. */
static int every_level_recorded(unsigned hart) {
  for (int level = 0; level < LEVELS; level++) {
    if (ledger[hart].recorded[level] == 0) return 0;
  }
  return 1;
}

static void record_until_enough(unsigned hart) {
  const uint32_t enough = platform_time_parameter_ms(100000);
  harts[hart].random = 0x9e3779b9u + hart;
  __asm__ volatile("csrw mtvec, %0" ::"r"((uintptr_t)trap_entry));
  platform_set_timer(hart, 0);
  __asm__ volatile("csrs mie, %0" ::"r"(MIE_SOFTWARE_AND_TIMER));
  __asm__ volatile("csrsi mstatus, %0" ::"i"(MSTATUS_MIE) : "memory");
  for (uint32_t i = 0; i < enough || !every_level_recorded(hart); i++) record_one(hart, 0);
  __asm__ volatile("csrci mstatus, %0" ::"i"(MSTATUS_MIE) : "memory");
  STORE_RELEASE(&ledger[hart].done, 1);
  stop(hart, 0);
}

static uint32_t ready;

void hart_main(unsigned hart) {
  if (hart >= HANGSCOPE_CORES) park();
  if (hart == 0) {
    (void)hangscope_init();
    STORE_RELEASE(&ready, 1);
  }
  while (LOAD_ACQUIRE(&ready) == 0) {
  }
  record_until_enough(hart);
  if (hart != 0) park();
  for (unsigned other = 0; other < platform_hart_count() && other < HANGSCOPE_CORES; other++) {
    while (LOAD_ACQUIRE(&ledger[other].done) == 0) {
    }
  }
  platform_power_off();
}

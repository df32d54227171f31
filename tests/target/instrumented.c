/* A piece of a program with hangscope's calls in it; valid C11 and C++20. CALLS=0: the same
 * program, written by somebody who never heard of hangscope. */
#include <stdint.h>

#if CALLS
#define HANGSCOPE_DEFINE
#define HANGSCOPE_NAMES 1
#define HANGSCOPE_TASKS 4
#define HANGSCOPE_PARAMETERS 6
#define HANGSCOPE_CLASS_NET HANGSCOPE_CLASS(5)
#include "hangscope/hangscope.h"

#define NET_STATES(VALUE) VALUE(0, down) VALUE(1, training) VALUE(2, up)
HANGSCOPE_ENUMERATION(net_state, NET_STATES);
#define NET_EVENTS(EVENT)                                                                    \
  EVENT(net_sent, NET, "port %u, %u bytes of %p, %d", u16, port, u32, bytes, ptr, from, i64, \
        balance)                                                                             \
  EVENT(net_is, NET, "port %u is %s", u16, port, net_state, state)                           \
  EVENT(net_tag, USER, "%s %d", char4, tag, bool, good)                                      \
  EVENT(net_down, NET, "")
HANGSCOPE_EVENTS(net, HANGSCOPE_FIRST_USER_ID, NET_EVENTS);
#define CALL(...) __VA_ARGS__
#else
#define CALL(...)
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct queue {
  uint32_t words[8];
  unsigned first;
  unsigned count;
  uint32_t seed;
};

struct queue queues[2];
int sent_bytes;
const char* where = "nowhere";
uint32_t outside(uint32_t word);

static uint32_t square(uint32_t number) { return number * number; }

int put(struct queue* queue, uint32_t word) {
  CALL(hangscope_queue_send((uint32_t)(uintptr_t)queue, queue->count);)
  if (queue->count == 8) {
    CALL(hangscope_net_down();)
    CALL(hangscope_net_is(1, square(queue->count) & 1);)
    CALL(hangscope_task_is_named(queue->count, where);)
    CALL(hangscope_task_waits(hangscope_task_slot(queue->count), queue->count,
                              HANGSCOPE_RESOURCE_TIME, 0, HANGSCOPE_NO_TASK);)
    CALL(hangscope_freeze_after(square(queue->count) + 1);)
    return 0;
  }
  queue->words[(queue->first + queue->count++) % 8] = word;
  CALL(hangscope_net_sent((uint16_t)(word >> 16), square(word) % 1500 + queue->words[queue->first],
                          queue, (int64_t)word - queue->seed);)
  return 1;
}

uint32_t take(struct queue* queue, unsigned task) {
  CALL(hangscope_task_waits(task, task + 100, HANGSCOPE_RESOURCE_CHANNEL,
                            (uint32_t)(uintptr_t)queue, HANGSCOPE_NO_TASK);)
  uint32_t sum = task;
  while (queue->count > 0) {
    const uint32_t word = queue->words[queue->first];
    queue->first = (queue->first + 1) % 8;
    queue->count--;
    for (int bit = 0; bit < 32; bit++) {
      sum = (sum >> 1) ^ (((sum ^ (word >> bit)) & 1) ? 0xedb88320u : 0);
      CALL(hangscope_net_tag(0x61626364u + (uint32_t)bit, bit % 3 == 0 && sum != queue->seed);)
    }
    sum += outside(word);
    CALL(hangscope_queue_receive((uint32_t)(uintptr_t)queue, queue->count - sum);)
  }
  CALL(hangscope_task_ready(task, task + 100);)
  sent_bytes += (int)sum;
  return sum;
}

void on_interrupt(unsigned number) {
  CALL(hangscope_isr_enter(number);)
  CALL(hangscope_tick();)
  queues[number % 2].seed = outside(number ^ (uint32_t)where[0]);
  CALL(hangscope_isr_exit(number);)
}

int boot(void) {
  CALL(hangscope_init();)
  int good = put(&queues[0], 1) + put(&queues[1], square(outside(2)));
  CALL(hangscope_set_mask(HANGSCOPE_CLASS_TASK); hangscope_clear(); hangscope_freeze();)
  CALL(hangscope_holder_is(1, 2); hangscope_task_gone(1, 2); hangscope_hexdump(0);
       hangscope_dump(0, 0);)
  return good;
}

/* Asks what was recorded; the answer is known when it is compiled. */
int ask(void) {
  int good = 7;
  CALL(struct hangscope_event event; event.id = 7;)
  CALL(if (hangscope_get(0, 3, &event) == HANGSCOPE_OK) good += (int)event.id;)
  CALL(good += (int)hangscope_count(0) + (int)hangscope_overwrites(0) + (int)hangscope_refusals(0);)
  return good;
}

#ifdef __cplusplus
}
#endif

/* A program that records events: says where, and how many. */
#define _GNU_SOURCE
#define HANGSCOPE_DEFINE
#include <hangscope/hangscope.h>
#include <stdio.h>

#define WORK_EVENTS(EVENT) EVENT(work_done, USER, "portion %u of %s", u32, portion, char4, kind)
HANGSCOPE_EVENTS(work, HANGSCOPE_FIRST_USER_ID, WORK_EVENTS);

int main(void) {
  for (uint32_t i = 0; i < 100; i++) hangscope_work_done(i, 0x61626364);
  struct hangscope_event newest = {0, 0, 0, {0}};
  const uint32_t count = hangscope_count(0);
  const enum hangscope_result result = hangscope_get(0, count - 1, &newest);
  printf("%s %d %u %u %x\n", hangscope_scope_path(), (int)result, newest.id, newest.parameters[0],
         newest.parameters[1]);
  return 0;
}

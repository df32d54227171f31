// Makes a system call that nobody else makes each millisecond or so, and records an event in its
// scope before and after it, with the call's serial number. Prints a line every hundred; runs until
// it is ended.
#define HANGSCOPE_DEFINE
#include <hangscope/hangscope.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#define APP_EVENTS(EVENT) \
  EVENT(calls, USER, "%u", u32, serial) EVENT(called, USER, "%u", u32, serial)
HANGSCOPE_EVENTS(app, HANGSCOPE_FIRST_USER_ID, APP_EVENTS);
int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (uint32_t serial = 1;; serial++) {
    hangscope_calls(serial);
    prctl(0x48530000, serial, 0, 0, 0);
    hangscope_called(serial);
    if (serial % 100 == 0) printf("%u calls\n", serial);
    usleep(1000);
  }
}

// usage: naps_stream posts
// A program that makes a stream of its own: whoever writes to it may wake a thread that waits.
#include <semaphore.h>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

sem_t answer_came;
FILE* journal = nullptr;
int beats = 0;

ssize_t PostInStream(void*, const char*, size_t bytes) {
  if (++beats % 6 == 0) sem_post(&answer_came);
  return static_cast<ssize_t>(bytes);
}

void* PostByStream(void*) {
  for (;;) {
    Nap(0.3);
    fputs("beat\n", journal);
  }
}

void Posts(long) {
  sem_init(&answer_came, 0, 0);
  journal = fopencookie(nullptr, "w", {nullptr, PostInStream, nullptr, nullptr});
  setvbuf(journal, nullptr, _IOLBF, 0);
  Start("helper", PostByStream);
  Ready();
  for (;;) sem_wait(&answer_came);
}

const Program kPrograms[] = {{"posts", Posts}};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }
